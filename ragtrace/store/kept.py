"""The verdicts, computed when the store changes and kept in it: planning and running their chain at every read takes seconds.

A view with `-- kept: in the store` has a table in the schema `kept`, filled from the view's own definition. Whatever
changes the rows that verdicts are made of calls `forget` in its transaction and `refresh` at the end of it, so nobody
sees verdicts of an older state. Between the pieces of a long merge the tables are empty and noted as stale; who opens
the file after a kill fills them. Without gold there is nothing to compute.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import cache

import duckdb

from ragtrace.store import views
from ragtrace.store.views import IN_THE_STORE, STALE_FACT, View

__all__ = ["chain", "forget", "is_filled", "is_stale", "refresh", "stand_in", "stand_ins", "transaction"]


@cache
def chain() -> tuple[View, ...]:
    """The views that are kept, in the store or during a refresh, each after those it reads."""
    return tuple(view for view in views.load() if view.kept is not None)


def _stored() -> list[str]:
    return [view.name for view in chain() if view.kept == IN_THE_STORE]


@contextlib.contextmanager
def transaction(connection: duckdb.DuckDBPyConnection, is_refreshing: bool = True) -> Iterator[None]:
    """All or nothing, and the kept views with it. Inside a transaction of the caller's, the caller decides."""
    if _is_in_transaction(connection):
        yield
        return
    connection.begin()
    try:
        yield
        if is_refreshing:
            _fill(connection)
    except BaseException:
        # A full disk has ended the transaction already; what filled it is the error to tell.
        with contextlib.suppress(duckdb.Error):
            connection.rollback()
        raise
    connection.commit()


def _is_in_transaction(connection: duckdb.DuckDBPyConnection) -> bool:
    # Asked, not tried: a begin that fails aborts the transaction it meets.
    asked = [connection.execute("select txid_current()").fetchall() for _ in range(2)]
    return asked[0] == asked[1]


def is_stale(connection: duckdb.DuckDBPyConnection) -> bool:
    """Are the kept tables empty until somebody refreshes them? Never for a file that has none yet."""
    return _has(connection, "select 1 from store_facts where name = ?", STALE_FACT)


def is_filled(connection: duckdb.DuckDBPyConnection) -> bool:
    """Is there gold, and are the kept tables what its verdicts are now?"""
    return _has(connection, "select 1 from evidence") and not is_stale(connection)


def forget(connection: duckdb.DuckDBPyConnection) -> None:
    """Empty the kept tables and note it, because what they were computed from changes. Does nothing the second time.

    Without gold, and where temporary tables stand in front of the gold for one look, there is nothing to forget: who
    takes gold out calls it before.
    """
    if not is_filled(connection) or _is_shadowed(connection):
        return
    tables = [
        f"kept.{name}"
        for (name,) in connection.execute(
            "select table_name from duckdb_tables() where schema_name = 'kept' order by table_name"
        ).fetchall()
    ]
    if not tables:
        return
    with transaction(connection, is_refreshing=False):
        for name in tables:
            connection.execute(f"delete from {name}")
        connection.execute("insert into store_facts values (?, '1')", [STALE_FACT])


def refresh(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill the kept tables when they are stale, in one transaction or in the caller's.

    Raises: duckdb.Error, then they stay stale.
    """
    if is_stale(connection):
        with transaction(connection):
            _fill(connection)


def _fill(connection: duckdb.DuckDBPyConnection) -> None:
    if not is_stale(connection) or _is_shadowed(connection):
        return
    if _has(connection, "select 1 from evidence"):
        _compute(connection, _stored())
    connection.execute("delete from store_facts where name = ?", [STALE_FACT])


@contextlib.contextmanager
def stand_ins(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Inside the `with`, temporary tables stand in front of the kept views, computed from what the connection sees now.

    For gold that lasts one look, and for a file that cannot be written. Works on a read-only connection.
    Raises: duckdb.Error.
    """
    made = stand_in(connection)
    try:
        yield
    finally:
        _drop(connection, made)


def stand_in(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """The same for as long as the connection is open; the names of the tables. Raises: duckdb.Error, then there are none."""
    return _compute(connection, [])


def _compute(connection: duckdb.DuckDBPyConnection, stored: list[str]) -> list[str]:
    """Compute the chain from the definitions: into the tables of the schema `kept` that `stored` names, else temporary ones.

    The temporary tables are dropped when any is stored, and when a view fails; else their names.
    """
    made: list[str] = []
    try:
        for view in chain():
            if view.name in stored:
                connection.execute(f"insert into kept.{view.name} ({view.names}) {views.definition(view)}")
            else:
                connection.execute(f"create or replace temp table {view.name} as {views.definition(view)}")
                made.append(view.name)
    except BaseException:
        # A transaction that the error has ended takes them with it, and lets nothing be dropped any more.
        with contextlib.suppress(duckdb.Error):
            _drop(connection, made)
        raise
    if not stored:
        return made
    _drop(connection, made)
    return []


def _drop(connection: duckdb.DuckDBPyConnection, names: list[str]) -> None:
    for name in names:
        connection.execute(f"drop table temp.{name}")


def _is_shadowed(connection: duckdb.DuckDBPyConnection) -> bool:
    """Do temporary tables stand in front of the gold?"""
    return _has(connection, "select 1 from duckdb_tables() where temporary and table_name = 'evidence'")


def _has(connection: duckdb.DuckDBPyConnection, select: str, *values: object) -> bool:
    return bool(connection.execute(f"select 1 from ({select}) limit 1", list(values)).fetchall())
