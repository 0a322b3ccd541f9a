"""The assets, a module for each group of the graph. Bodies are short; the work is done by the domain."""
