"""A store that another version wrote, where nothing can be written: one sentence that says what to do."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb
import pytest

from ragtrace.errors import ReportError
from ragtrace.reports import run
from ragtrace.store import database, views


@pytest.fixture
def older(library_path: Path, tmp_path: Path) -> Path:
    """Without two views, and with the mark of other texts."""
    path = tmp_path / "older.duckdb"
    shutil.copy(library_path, path)
    with duckdb.connect(str(path)) as connection:
        connection.execute("drop view stage_gaps")
        connection.execute("drop view loss_share")
        connection.execute("update store_facts set value = 'of an older version' where name = 'views_hash'")
    return path


@pytest.mark.parametrize("missing", ["stage_gaps", "loss_share"])
def test_a_missing_view_says_to_merge(older: Path, missing: str):
    with database.connect(older, read_only=True) as connection, pytest.raises(ReportError) as caught:
        run.select(connection, f"select * from {missing}")

    assert caught.value.message.startswith(f"the store has no {missing} yet: run `ragtrace merge` on it once")


def test_a_missing_name_in_a_store_of_this_version_is_the_user_s_own(library_store: duckdb.DuckDBPyConnection):
    with pytest.raises(ReportError) as caught:
        run.select(library_store, "select * from stage_los")

    assert caught.value.message.startswith("DuckDB refuses the statement")


def test_whoever_writes_next_brings_the_views_back(older: Path):
    with database.connect(older) as connection:
        assert not views.is_outdated(connection)
        assert run.run(connection, "incomplete").columns


def test_a_view_that_somebody_dropped_comes_back_too(older: Path):
    database.connect(older).close()
    with duckdb.connect(str(older)) as connection:
        connection.execute("drop view stage_gaps")

    with database.connect(older) as connection:
        assert not views.is_outdated(connection)
