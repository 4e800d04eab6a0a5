"""A store for one test: record with the public API, then ask it for verdicts."""

from __future__ import annotations

import contextlib
import functools
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import duckdb

import ragtrace as rt
from ragtrace.gold import loading, placing
from ragtrace.store import database, merge

Row = dict[str, Any]


@functools.cache
def empty_store() -> bytes:
    """The file of a new store: all tables and views. Making one costs 0.35 s, half of what such a test costs."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "empty.duckdb"
        database.connect(path).close()
        return path.read_bytes()


class Traced:
    """Configured when made; `judge` ends the recording, merges and loads the labels."""

    def __init__(self, store: Path, run: str = "run", **settings: Any) -> None:
        self.store = store
        store.write_bytes(empty_store())
        self.connection: duckdb.DuckDBPyConnection | None = None
        self._open = contextlib.ExitStack()
        rt.configure(store, run=run, merge="off", **settings)

    def judge(
        self, gold: Iterable[Mapping[str, Any]], min_coverage: float = 1.0, clock_skew_ms: float | None = None
    ) -> None:
        """Everything recorded so far into the store, and the labels beside it."""
        self.merge()
        assert self.connection is not None
        loading.load_rows(self.connection, gold, min_coverage=min_coverage, clock_skew_ms=clock_skew_ms)
        placing.place(self.connection)

    def merge(self) -> None:
        """Everything recorded so far into the store, for those who ask for no verdict."""
        rt.shutdown(10)
        merge.merge(self.store)
        self.connection = self._open.enter_context(database.connect(self.store))

    def rows(self, sql: str, *parameters: Any) -> list[Row]:
        """What the store answers, a dictionary a row."""
        assert self.connection is not None, "judge first"
        found = self.connection.execute(sql, parameters)
        names = [column[0] for column in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def close(self) -> None:
        """Recording off, database closed."""
        rt.shutdown(10)
        self._open.close()
        if self.connection is not None:
            self.connection.close()
