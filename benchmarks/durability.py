"""Finished queries that are lost when a process ends, by the way it ends. `python -m benchmarks.durability`.

A child says each query's number on a pipe when its `with` block is left; what was said and is not in the logs is lost.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness import Options, Row, main
from ragtrace.testing import records

__all__ = ["rows"]

CODE = """
import os, sys
import ragtrace as rt
how, store = sys.argv[1:3]
rt.configure(store, merge="off")

@rt.retrieve
def search(query):
    return [{"id": f"{query}-{n}", "score": 1 / (n + 1)} for n in range(100)]

def record(name, n):
    for number in range(n):
        with rt.query(f"{name}-{number}"):
            search("q")
        os.write(1, f"{name}-{number}\\n".encode())

if how == "kill":
    record("k", 10**9)
record("first", 10)
if how == "fork":
    children = []
    for child in range(3):
        pid = os.fork()
        if not pid:
            record(f"child-{child}", 10)
            os._exit(0)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)
    record("last", 10)
elif how == "exec":
    os.execv("/bin/true", ["true"])
elif how == "os._exit":
    os._exit(1)
elif how == "exception":
    raise SystemExit(7)
elif how == "SIGTERM":
    record("t", 10**9)
"""


def said_and_lost(how: str, after_s: float | None, number: int) -> tuple[int, int]:
    """Queries that a child said had ended, and how many of them no log holds."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder, "bench.duckdb")
        said_at = Path(folder, "said")
        with open(said_at, "wb") as said:
            process = subprocess.Popen([sys.executable, "-c", CODE, how, str(store)], stdout=said)
            if after_s is not None:
                deadline = time.monotonic() + 60
                while not said_at.stat().st_size and time.monotonic() < deadline:
                    time.sleep(0.01)
                time.sleep(after_s)
                os.kill(process.pid, number)
            process.wait(timeout=60)
        # A kill may cut the last line: a query is said when its line is whole.
        names = [line for line in said_at.read_text().splitlines(keepends=True) if line.endswith("\n")]
        kept = {record.body["question"] for record in records(store) if record.kind == "query"}
        return len(names), sum(name.rstrip("\n") not in kept for name in names)


def rows(options: Options) -> Iterator[Row]:
    """One row for each way to end."""
    chance = random.Random(7)
    n_kills = options.scaled(20, 3)
    total = [said_and_lost("kill", chance.uniform(0, 0.3), signal.SIGKILL) for _ in range(n_kills)]
    n_said, n_lost = map(sum, zip(*total, strict=True))
    yield Row("finished queries lost by kill −9", n_lost, f"of {n_said:,} in {n_kills} kills", 0)
    for how in ("os._exit", "exception", "fork", "exec"):
        n_said, n_lost = said_and_lost(how, None, 0)
        yield Row(f"finished queries lost by {how}", n_lost, f"of {n_said}", 0)
    n_said, n_lost = said_and_lost("SIGTERM", 0.1, signal.SIGTERM)
    yield Row("finished queries lost by SIGTERM", n_lost, f"of {n_said}", 0)


if __name__ == "__main__":
    sys.exit(main(rows))
