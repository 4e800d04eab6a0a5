"""A Phoenix server beside the merge: candidates a second until they can be queried. `python -m benchmarks.ingestion`.

Left out, with the reason printed, where it cannot be installed or started.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.beside import SCRIPTS, installed
from benchmarks.harness import Options, Row, main

__all__ = ["rows"]

RUN_S = 300


def rows(options: Options) -> Iterator[Row]:
    """Speed and size of the server's way."""
    try:
        python = installed(options.cache, "phoenix_server", "arize-phoenix")
        command = [str(python), str(SCRIPTS / "phoenix_server.py"), str(options.scaled(1000, 100))]
        done = subprocess.run(
            command, check=True, timeout=RUN_S, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        found = json.loads(done.stdout.splitlines()[-1])
    except (subprocess.SubprocessError, OSError, ValueError, IndexError) as error:
        print(f"the Phoenix server is left out: {type(error).__name__} while it was installed or run", file=sys.stderr)
        return
    note = f"version {found['version']}"
    yield Row("a Phoenix server, list to queryable", found["per_s"] / 1e6, "M candidates a second", note=note)
    yield Row("a Phoenix server, disk", found["bytes"], "bytes a candidate", note=note)


if __name__ == "__main__":
    sys.exit(main(rows))
