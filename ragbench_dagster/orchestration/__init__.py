"""The only folder that imports dagster.

`build.build_definitions` is the whole wiring on one page. Asset bodies read, call one domain function,
write and return metadata; what a stage means belongs to its domain folder.
"""
