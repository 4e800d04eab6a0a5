"""`python -m ragtrace.cli.merge_at_exit STORE`: what a process that ends starts, so that its rows are in the file.

Says nothing and never fails loudly: when the store is busy, broken or cannot be written, the logs wait for the next reader.
Imports no command-line library: the script that ends waits for this.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ragtrace.errors import RagtraceError
from ragtrace.gold.placing import place
from ragtrace.store.merge import merge

__all__ = ["main"]

# The process that ends waits 5 s; another merger at work will take these logs in too, or the next one.
WAIT_S = 4.0


def main(store: str) -> int:
    """Merge and place labels; 0 when that was done, else the error's exit code."""
    try:
        merge(Path(store), wait_s=WAIT_S, after=place)
    except RagtraceError as error:
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
