"""The command `ragtrace`: a module per command group; arguments in, one call, exit code out."""
