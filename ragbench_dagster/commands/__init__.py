"""The bodies of the ragbench subcommands, one module a group; cli.py wires them."""
