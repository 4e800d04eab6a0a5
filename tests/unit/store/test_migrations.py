"""Files of older schemas are brought up to date when they are opened to write, and refused to readers until then."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragtrace import schema
from ragtrace.errors import SchemaVersionError
from ragtrace.store import database
from tests.traced import empty_store


@pytest.fixture
def first(tmp_path: Path) -> Path:
    """A store of schema 1: before there were probes."""
    path = tmp_path / "traces.duckdb"
    path.write_bytes(empty_store())
    with database.connect(path) as connection:
        for column in ("probed_stage_id", "index_version"):
            connection.execute(f"alter table stages drop column {column}")
        connection.execute("insert into stages (stage_id, kind) values (7, 'retrieve')")
        connection.execute("update store_facts set value = '1' where name = 'schema_version'")
        connection.execute("delete from store_facts where name = 'views_hash'")
    return path


def test_a_store_of_the_first_schema_keeps_its_rows_and_gets_the_columns_of_probes(first: Path) -> None:
    """D-14"""
    with database.connect(first) as connection:
        found = connection.execute("select stage_id, kind, probed_stage_id, index_version from stages").fetchall()
        columns = {row[0] for row in connection.execute("describe stages").fetchall()}
        assert found == [(7, "retrieve", None, None)]
        assert columns == {column.name for column in schema.table("stages").columns}
        assert connection.execute("select * from probe_targets").fetchall() == []


def test_a_reader_is_told_to_have_it_migrated(first: Path) -> None:
    with pytest.raises(SchemaVersionError, match="ragtrace merge"):
        database.connect(first, read_only=True)
