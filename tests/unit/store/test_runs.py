"""Which run is meant: one definition for reports, what-if and notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from ragtrace.errors import ReportError
from ragtrace.reports.summary import summarise
from ragtrace.store import database, runs
from tests.traced import empty_store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    (tmp_path / "traces.duckdb").write_bytes(empty_store())
    with database.connect(tmp_path / "traces.duckdb") as connection:
        yield connection


def asked(connection: duckdb.DuckDBPyConnection, *started: tuple[str | None, int]) -> None:
    for query_id, (run, at_ns) in enumerate(started, start=1):
        connection.execute(
            "insert into queries (query_id, run, started_at_ns, run_kind) values (?, ?, ?, 'actual')",
            [query_id, run, at_ns],
        )


def test_the_newest_run_is_that_of_the_newest_query_to_the_nanosecond(store: duckdb.DuckDBPyConnection) -> None:
    """Of two runs within one microsecond the report showed one and what-if replayed the other."""
    asked(store, ("a", 1_000_100), ("b", 1_000_200), (None, 500), ("a", 1_000_000))

    assert runs.names(store) == ["b", "a", None]
    assert runs.meant(store) == "b"
    assert summarise(store).run_names == runs.names(store)


def test_an_unknown_run_offers_the_nearest(store: duckdb.DuckDBPyConnection) -> None:
    asked(store, ("hybrid-k50", 1), (None, 2))

    with pytest.raises(ReportError, match="'hybrid-k5'; nearest: hybrid-k50; runs in the store: hybrid-k50") as told:
        runs.meant(store, "hybrid-k5")
    assert told.value.fields["runs"] == [None, "hybrid-k50"]


def test_without_a_query_no_run_is_meant(store: duckdb.DuckDBPyConnection) -> None:
    assert runs.names(store) == []
    with pytest.raises(ReportError, match="no query is recorded yet"):
        runs.meant(store)
