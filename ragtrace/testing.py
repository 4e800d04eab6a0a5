"""For tests of services that record: a pytest fixture, and the switch that makes internal errors raise.

In a `conftest.py`: `from ragtrace.testing import ragtrace_store` (or `pytest_plugins = ["ragtrace.testing"]`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ragtrace import guard
from ragtrace.recording.configuration import configure, shutdown
from ragtrace.spool import reader
from ragtrace.spool.log import spool_of
from ragtrace.spool.records import Record

__all__ = ["ragtrace_store", "raising", "records"]


@contextmanager
def raising(is_on: bool = True) -> Iterator[None]:
    """Internal errors of recording raise inside this block, or (with False) are swallowed as in production."""
    former, guard.raise_internal = guard.raise_internal, is_on
    try:
        yield
    finally:
        guard.raise_internal = former


@pytest.fixture
def ragtrace_store(tmp_path: Path) -> Iterator[Path]:
    """Records the test into a store of its own and gives its path; internal errors raise."""
    store = tmp_path / "traces.duckdb"
    with raising():
        configure(store, merge="off")
        try:
            yield store
        finally:
            shutdown()


def records(store: Path) -> list[Record]:
    """Everything recorded for a store so far and not merged away, log by log in order of writing."""
    found: list[Record] = []
    for log in reader.logs(spool_of(store)):
        offset = 0
        while True:
            batch = reader.read(log.path, offset)
            found.extend(batch.records)
            if batch.next_offset == offset:
                break
            offset = batch.next_offset
    return found
