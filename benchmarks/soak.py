"""A million queries' worth of records through one process and into one store: memory and time. `python -m benchmarks.soak`.

By hand: half a millisecond a query, recording and merging together, so about ten minutes for all on a machine that does nothing else. Small
queries (two stages of five and three candidates) are recorded and merged turn by turn, as a service and a merging process take turns. What
each holds is printed after every tenth; the growth of both between the first tenth and the end is what is judged, and that the last tenth of
the recording takes no longer than the first.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import ragtrace as rt
from benchmarks.harness import Options, Row, main, run_child

__all__ = ["rows"]

N_QUERIES = 1_000_000
N_TURNS = 20
# DuckDB keeps blocks of the file in memory, up to its limit of 1 GiB: what grows with the store is a cache.
MERGE_GROWTH_MB = 1024
MERGE = """
import resource, sys
from ragtrace.store.merge import merge
print(merge(sys.argv[1]).n_candidates, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


@rt.retrieve(mode="ann", k=5)
def search(query: str) -> list[dict[str, object]]:
    """Five of a hundred thousand."""
    first = hash(query) % 100_000
    return [{"id": f"chunk-{first + number:06d}", "score": 1 / (number + 1)} for number in range(5)]


@rt.rerank(k=3)
def best(query: str, found: list[dict[str, object]]) -> list[dict[str, object]]:
    """The first three."""
    return found[:3]


def resident_mb() -> float:
    """What this process holds."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def rows(options: Options) -> Iterator[Row]:
    """Memory over time, growth, steadiness, and whether every row arrived."""
    n_a_turn = options.scaled(N_QUERIES, N_TURNS * 10) // N_TURNS
    record_s: list[float] = []
    merge_s: list[float] = []
    held_mb: list[float] = []
    merging_mb: list[float] = []
    n_candidates = 0
    tenth = N_TURNS // 10
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder, "soak.duckdb")
        rt.configure(store, run="soak", merge="off")
        for turn in range(N_TURNS):
            began = time.process_time()
            for number in range(n_a_turn):
                question = f"question {turn * n_a_turn + number}"
                with rt.query(question):
                    best(question, search(question))
            record_s.append(time.process_time() - began)
            began = time.perf_counter()
            n_new, peak_mb = run_child(MERGE, store, timeout_s=3600).split()[-2:]
            merge_s.append(time.perf_counter() - began)
            n_candidates += int(n_new)
            merging_mb.append(float(peak_mb))
            gc.collect()
            held_mb.append(resident_mb())
            if not (turn + 1) % tenth:
                yield Row(
                    f"soak, held after {(turn + 1) * n_a_turn:,} queries",
                    held_mb[-1],
                    "MB",
                    note=f"merging {merging_mb[-1]:,.0f} MB, store {store.stat().st_size / 2**20:,.0f} MB, after {time.perf_counter() - begin:,.0f} s",
                )
        rt.shutdown()
    n = n_a_turn * N_TURNS
    yield Row(f"soak of {n:,} queries, growth after the first tenth", held_mb[-1] - held_mb[tenth - 1], "MB", 10)
    yield Row("soak, growth of the merging process", merging_mb[-1] - merging_mb[tenth - 1], "MB", MERGE_GROWTH_MB)
    slower = sum(record_s[-tenth:]) / sum(record_s[:tenth])
    yield Row("soak, recording of the last tenth", slower, "× the first tenth", 1.25)
    slower = sum(merge_s[-tenth:]) / sum(merge_s[:tenth])
    yield Row("soak, merging of the last tenth", slower, "× the first tenth", note=f"{sum(merge_s):,.0f} s in all")
    yield Row("soak, candidate rows that did not arrive", n * 8 - n_candidates, "rows", 0)


if __name__ == "__main__":
    sys.exit(main(rows))
