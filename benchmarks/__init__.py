"""What ragtrace costs, each figure as a ratio to a peer or a limit in the same run. `python -m benchmarks`."""
