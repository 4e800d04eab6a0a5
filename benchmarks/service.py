"""What recording does to a service: requests of 5 ms at 100 a second, with and without. `python -m benchmarks.service`.

One thread answers what arrives every 10 ms: three lists of 100 candidates a
request, each parsed from JSON. Seconds with and without recording take turns, so that what else the machine does meets both.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter

import ragtrace as rt
from benchmarks.harness import Options, Row, main
from benchmarks.recording import candidate_json

__all__ = ["rows"]

TEXT = candidate_json(100)
WORK_S = 0.005
PERIOD_S = 0.010
N_A_TURN = 50


def search(query: str) -> list[dict[str, object]]:
    """A client call: an answer that is parsed."""
    found: list[dict[str, object]] = json.loads(TEXT)
    return found


recorded_search = rt.retrieve(mode="ann", k=100)(search)


def plain(question: str) -> None:
    """A request that is not recorded."""
    for _ in range(3):
        search(question)


def recorded(question: str) -> None:
    """The same, recorded."""
    with rt.query(question):
        for _ in range(3):
            recorded_search(question)


def request(body: Callable[[str], None]) -> float:
    """Milliseconds of one request: its work, as much waiting as makes 5 ms without recording."""
    began = perf_counter()
    body("how long is a vacation?")
    time.sleep(max(0.0, WORK_S - _plain_s))
    return (perf_counter() - began) * 1000


_plain_s = 0.0


def rows(options: Options) -> Iterator[Row]:
    """p50, p99 and p99.9, with over without."""
    global _plain_s  # noqa: PLW0603  # measured once, before the rounds
    for _ in range(20):
        began = perf_counter()
        plain("q")
        _plain_s = perf_counter() - began
    taken: dict[Callable[[str], None], list[float]] = {plain: [], recorded: []}
    with tempfile.TemporaryDirectory() as folder:
        rt.configure(Path(folder, "bench.duckdb"), merge="off")
        for _ in range(options.scaled(40, 4)):
            for body, times in taken.items():
                for _ in range(N_A_TURN):
                    began = perf_counter()
                    times.append(request(body))
                    time.sleep(max(0.0, PERIOD_S - (perf_counter() - began)))
        rt.shutdown()
    without, with_us = (statistics.quantiles(times, n=1000, method="inclusive") for times in taken.values())
    yield Row("a 5 ms request without recording, p50", without[499], "ms")
    for name, at, budget in (("p50", 499, 1.03), ("p99", 989, 1.25), ("p99.9", 998, 1.5)):
        yield Row(f"a 5 ms request, 3 × 100 candidates, {name}", with_us[at] / without[at], "× not recording", budget)


if __name__ == "__main__":
    sys.exit(main(rows))
