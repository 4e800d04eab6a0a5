"""Rows in and out of the store in bulk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb

from ragtrace import schema
from ragtrace.store import tables
from ragtrace.store.views import queries_folder

__all__ = ["frame", "insert", "query", "shadows"]


@contextmanager
def frame(connection: duckdb.DuckDBPyConnection, table: str, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The name under which rows with the columns of a table can be read inside the `with`."""
    name = f"_gold_{table}"
    # DuckDB 2.0 refuses to register while a result is half read, as `fetchone` leaves it: a new statement ends that.
    connection.execute("select 1").fetchall()
    connection.register(name, tables.arrow_table(table, rows))
    try:
        yield name
    finally:
        connection.unregister(name)


def query(kind: str, name: str) -> str:
    """The text of `queries/<kind>/<name>.sql`."""
    text: str = queries_folder().joinpath(kind).joinpath(f"{name}.sql").read_text(encoding="utf-8")
    return text


def insert(connection: duckdb.DuckDBPyConnection, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Append rows to a table; a column that a row does not have is null."""
    if not rows:
        return
    names = ", ".join(column.name for column in schema.table(table).columns)
    with frame(connection, table, rows) as name:
        connection.execute(f"insert into {table} ({names}) select {names} from {name}")


@contextmanager
def shadows(
    connection: duckdb.DuckDBPyConnection, empty: Sequence[str] = (), copied: Sequence[str] = ()
) -> Iterator[None]:
    """Temporary tables in front of those of the same names: views read them instead, and nothing is stored.

    Works on a read-only connection. Seen to hold for views and table macros in DuckDB 1.2 and 2.0.
    """
    made: list[str] = []
    try:
        for name in (*empty, *copied):
            limit = "" if name in copied else " limit 0"
            connection.execute(f"create temp table {name} as from main.{name}{limit}")
            made.append(name)
        yield
    finally:
        for name in made:
            connection.execute(f"drop table temp.{name}")
