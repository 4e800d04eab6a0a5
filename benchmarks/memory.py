"""What a service grows by: 10,000 requests of 3 × 100 candidates of 4 KB text. `python -m benchmarks.memory`.

Each in a process of its own; without recording, with, and within the user's SDK. `import pyarrow`, which a recorder with a writer thread would
bring along, beside them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from benchmarks.harness import Options, Row, main, run_child

__all__ = ["rows"]

CODE = """
import json, os, sys, tempfile
from pathlib import Path
import ragtrace as rt
how, n_requests = sys.argv[1], int(sys.argv[2])

def resident_mb():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

text = json.dumps([{"id": f"chunk-{n:08d}", "score": n / 100, "text": f"{n:08d} " + "some words " * 372} for n in range(100)])

@rt.retrieve(mode="ann", k=100)
def search(query):
    return json.loads(text)

def request(number):
    with rt.query(f"question {number}"):
        for _ in range(3):
            search("q")

provider = None
if how == "sdk":
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(ConsoleSpanExporter(out=open(os.devnull, "w"))))
with tempfile.TemporaryDirectory() as folder:
    for number in range(50):
        request(number)
    before = resident_mb()
    if how != "plain":
        rt.configure(Path(folder, "bench.duckdb"), merge="off", tracer_provider=provider)
    for number in range(n_requests):
        request(number)
    print(resident_mb() - before)
"""
PYARROW = (
    CODE[: CODE.index("text =")].replace("import ragtrace as rt", "")
    + "before = resident_mb(); import pyarrow; print(resident_mb() - before)"
)


def rows(options: Options) -> Iterator[Row]:
    """Growth with recording, what the same requests grow by without taken off."""
    n = options.scaled(10_000, 200)
    plain = float(run_child(CODE, "plain", n, timeout_s=1200))
    for how, where in (("alone", "standalone"), ("sdk", "in the SDK")):
        grown = float(run_child(CODE, how, n, timeout_s=1200)) - plain
        yield Row(f"growth of a service over {n:,} requests, {where}", grown, "MB", 10)
    yield Row("import pyarrow", float(run_child(PYARROW, "", 0)), "MB")


if __name__ == "__main__":
    sys.exit(main(rows))
