"""Pure statistics, one method a module, each with its paper. Nothing here reads a file or knows a judge.

Which method holds its promise was settled by simulation before it was written here; the tests repeat the
simulations. Intervals are two-sided 95 %, a pair of floats, or None where nothing can be said.
"""
