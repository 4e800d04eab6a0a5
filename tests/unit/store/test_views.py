"""Installing the views."""

import duckdb

from ragtrace.store import tables, views

VIEWS = views.load()


def installed(is_at_once: bool) -> list[tuple[str, str, str]]:
    """Every column of every view, and its text; views are created at once, or one by one as DuckDB does it."""
    with duckdb.connect() as connection:
        for statement in tables.create_statements():
            connection.execute(statement)
        if is_at_once:
            views.create(connection, VIEWS)
        else:
            connection.execute("create schema kept")
            for view in VIEWS:
                for statement in views._tables(view):
                    connection.execute(statement)
                connection.execute(views.statement(view))
        assert connection.execute("select table_name from duckdb_tables() where temporary").fetchall() == []
        return connection.execute(
            "select view_name, column_name, data_type, sql from duckdb_views() "
            "join duckdb_columns() on table_name = view_name where not duckdb_views.internal order by all"
        ).fetchall()


def test_views_created_behind_stand_ins_are_those_created_one_by_one():
    assert installed(is_at_once=True) == installed(is_at_once=False) != []
