"""The SQL of the views is not DuckDB's alone: sqlglot reads every file and writes it for the engines of a lake."""

from __future__ import annotations

import pytest

from ragtrace.store import views

sqlglot = pytest.importorskip("sqlglot", reason="sqlglot is not installed")

VIEWS = [view for view in views.load() if not views.statement(view).startswith("create or replace macro")]


@pytest.mark.parametrize("dialect", ["spark", "trino", "clickhouse"])
@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_a_view_can_be_written_for_another_engine(view: views.View, dialect: str) -> None:
    """Nothing is left that sqlglot does not know, and what it writes can be read back."""
    written = sqlglot.transpile(view.text, read="duckdb", write=dialect, unsupported_level=sqlglot.ErrorLevel.RAISE)
    assert len(written) == 1
    sqlglot.parse_one(written[0], read=dialect)


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_a_view_calls_only_functions_that_are_known_elsewhere(view: views.View) -> None:
    """An anonymous function is one that sqlglot passes through untouched, whatever the other engine calls it."""
    unknown = {
        node.name.lower() for node in sqlglot.parse_one(view.text, read="duckdb").find_all(sqlglot.exp.Anonymous)
    }
    assert unknown == set()
