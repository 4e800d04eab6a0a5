"""The library's traced store, merged and labelled once; never to be written to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from ragtrace.gold import loading
from ragtrace.store import database
from ragtrace.store.merge import merge
from tests.unit.cli import library


@pytest.fixture(scope="session")
def library_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("library")
    library.trace(folder / "traces.duckdb")
    merge(folder / "traces.duckdb")
    with database.connect(folder / "traces.duckdb") as connection:
        loading.load(connection, library.write_gold(folder / "gold.jsonl"))
    return folder / "traces.duckdb"


@pytest.fixture
def library_store(library_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with database.connect(library_path, read_only=True) as connection:
        yield connection
