"""What all benchmarks share: a row of the table, and a benchmark run by itself.

Each benchmark is a module with `rows(options) -> Iterator[Row]`. Own cost is the call with us minus the call without,
in turns, and of each the lower quartile of all rounds: what else the machine does only adds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from time import perf_counter_ns
from typing import Any, NamedTuple

__all__ = ["Options", "Row", "lower_quartile", "main", "printed", "run_child", "timed"]


class Row(NamedTuple):
    """One figure and what it is held against."""

    what: str
    measured: float
    unit: str
    budget: float | None = None
    """None: for information only."""
    is_at_most: bool = True
    """Whether the budget is the most that is allowed, or the least."""
    note: str = ""

    @property
    def is_met(self) -> bool | None:
        """None without a budget."""
        if self.budget is None:
            return None
        return self.measured <= self.budget if self.is_at_most else self.measured >= self.budget

    @property
    def limit(self) -> str:
        """The budget as it is printed."""
        return "" if self.budget is None else f"{'≤' if self.is_at_most else '≥'} {self.budget:g}"


class Options(NamedTuple):
    """How much is measured, and where peers are installed."""

    scale: float = 1.0
    """Share of the usual number of rounds, requests and rows."""
    cache: Path = Path(".bench")

    def scaled(self, n: int, least: int = 1) -> int:
        """A usual number at this scale."""
        return max(least, round(n * self.scale))


def timed(call: Callable[..., Any], *args: Any) -> int:
    """Nanoseconds of one call."""
    began = perf_counter_ns()
    call(*args)
    return perf_counter_ns() - began


def lower_quartile(values: Sequence[float]) -> float:
    """The lower quartile."""
    return statistics.quantiles(values, n=4)[0]


def run_child(code: str, *arguments: object, timeout_s: float = 300) -> str:
    """What a Python script prints that is run in a new interpreter. Raises: CalledProcessError when it fails."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, timeout=timeout_s).stdout


def printed(row: Row) -> str:
    """A row as a line of a terminal."""
    mark = {True: "", False: "OVER" if row.is_at_most else "UNDER", None: ""}[row.is_met]
    return f"{row.what:58} {row.measured:12,.3f} {row.unit:26} {row.limit:8} {mark:5} {row.note}".rstrip()


def arguments() -> argparse.ArgumentParser:
    """The command line of every benchmark."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the usual rounds, requests and rows")
    parser.add_argument("--cache", type=Path, default=Path(".bench"), help="where peers are installed")
    return parser


def main(rows: Callable[[Options], Iterable[Row]]) -> int:
    """Run one benchmark by itself; 1 when a row misses its budget."""
    given = arguments().parse_args()
    found = list(shown(rows(Options(given.scale, given.cache)), is_quiet=given.json))
    if given.json:
        print(json.dumps([row._asdict() for row in found], indent=1, ensure_ascii=False))
    return int(any(row.is_met is False for row in found))


def shown(rows: Iterable[Row], is_quiet: bool) -> Iterator[Row]:
    """The rows, each printed when it is known."""
    for row in rows:
        if not is_quiet:
            print(printed(row), flush=True)
        yield row
