"""Every .sql file's header against DuckDB itself: parameters, columns and types, what it reads, its order."""

import duckdb
import pytest

from ragtrace.reports import catalogue
from ragtrace.store import database

QUERIES = catalogue.load()


@pytest.fixture(scope="module")
def connection(tmp_path_factory) -> duckdb.DuckDBPyConnection:
    """An empty store: all tables, views and macros."""
    with database.connect(tmp_path_factory.mktemp("headers") / "empty.duckdb") as connection:
        yield connection


@pytest.mark.parametrize("name", QUERIES)
def test_a_header_says_what_duckdb_says(connection, name):
    assert catalogue.differences(connection, QUERIES[name]) == []


@pytest.mark.parametrize("name", catalogue.load("view"))
def test_a_view_of_the_catalogue_stands_in_the_store(connection, name):
    described = connection.execute(f"describe {name}").fetchall()

    assert [row[0] for row in described] == [column.name for column in QUERIES[name].columns]


def test_each_kind_of_file_stands_in_its_folder():
    folders = {"report": "reports", "view": "views", "macro": "views", "check": "checks"}

    assert {query.path.name: query.path.parent.name for query in QUERIES.values()} == {
        query.path.name: folders[query.kind] for query in QUERIES.values()
    }
