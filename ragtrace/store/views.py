"""Installs `queries/views/*.sql` in the database file, so that any DuckDB client can use them.

A file holds one `create or replace view` or `create or replace macro`, or a bare select that becomes the view named like
the file. The `-- reads:` lines of the headers order the installation. A hash of all texts in `store_facts` tells
whether anything changed since the last time. A view with `-- kept: in the store` in its header is computed by `kept`,
and what is installed under its name reads the table of that name in the schema `kept`.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import duckdb

from ragtrace.store.tables import literal

if TYPE_CHECKING:
    from importlib.abc import Traversable  # Python 3.10 has it only here, 3.14 only in importlib.resources.abc

__all__ = [
    "DURING_A_REFRESH",
    "IN_THE_STORE",
    "STALE_FACT",
    "Column",
    "View",
    "create",
    "definition",
    "install",
    "is_outdated",
    "load",
    "order",
    "queries_folder",
    "statement",
]

IN_THE_STORE = "in the store"
"""Header value `kept`: a table of the schema `kept` holds the view's rows."""
DURING_A_REFRESH = "during a refresh"
"""Header value `kept`: read by several views that are kept, so it is computed once for all of them, and dropped."""
STALE_FACT = "kept_is_stale"
"""Name in `store_facts`, there while the kept tables are empty and have yet to be filled."""

_COMMENT_LINES = re.compile(r"^\s*--[^\n]*\n", re.MULTILINE)
_MACRO = re.compile(r"create\s+(or\s+replace\s+)?macro\b", re.IGNORECASE)
_MATERIALIZED = re.compile(r"\bas\s+materialized\b", re.IGNORECASE)
_COLUMN = re.compile(r"^--\s*column:\s*(\w+)\s+(\S+)\s*(.*?)\s*$", re.MULTILINE)
_KEPT = re.compile(r"^--\s*kept:\s*(.*?)\s*$", re.MULTILINE)
_HASH_FACT = "views_hash"


class Column(NamedTuple):
    """One `-- column:` line of a header."""

    name: str
    type: str
    """DuckDB's."""
    meaning: str


class View(NamedTuple):
    """One file of `queries/views`."""

    name: str
    """The file's name without .sql; also the name of what it creates."""
    text: str
    reads: frozenset[str]
    """Names in the header's `-- reads:` lines: tables, views and macros."""
    columns: tuple[Column, ...] = ()
    kept: str | None = None
    """IN_THE_STORE, DURING_A_REFRESH, or None: computed at every read."""

    @property
    def names(self) -> str:
        """Its columns as a list in SQL."""
        return ", ".join(f'"{column.name}"' for column in self.columns)


def queries_folder() -> Traversable:
    """The folder `queries`: inside the installed package, else beside it in a checkout."""
    packaged = resources.files("ragtrace").joinpath("queries")
    if packaged.is_dir():
        return packaged
    return Path(__file__).resolve().parents[2] / "queries"


def load(folder: Traversable | None = None) -> list[View]:
    """All view files in the order of installation; empty when there is no such folder."""
    folder = queries_folder().joinpath("views") if folder is None else folder
    if not folder.is_dir():
        return []
    files = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".sql")), key=lambda entry: entry.name)
    return order([_parse(entry.name[: -len(".sql")], entry.read_text(encoding="utf-8")) for entry in files])


def order(views: list[View]) -> list[View]:
    """The same views, each after the views it reads; otherwise by name. A cycle keeps its order by name."""
    by_name = {view.name: view for view in views}
    done: dict[str, View] = {}
    begun: set[str] = set()

    def put(view: View) -> None:
        if view.name in begun:
            return
        begun.add(view.name)
        for name in sorted(view.reads & by_name.keys()):
            put(by_name[name])
        done[view.name] = view

    for view in sorted(views, key=lambda view: view.name):
        put(view)
    return list(done.values())


def install(connection: duckdb.DuckDBPyConnection, views: list[View] | None = None) -> bool:
    """Create or replace all views and macros in one transaction when their text changed or one is gone; true when it did.

    The kept tables are empty then, and noted as stale.
    """
    views = load() if views is None else views
    if not _is_outdated(connection, views):
        return False
    connection.execute("begin")
    try:
        create(connection, views)
        connection.execute("delete from store_facts where name in (?, ?)", [_HASH_FACT, STALE_FACT])
        connection.execute("insert into store_facts values (?, ?), (?, '1')", [_HASH_FACT, _digest(views), STALE_FACT])
        connection.execute("commit")
    except BaseException:
        # A full disk has ended the transaction already; what filled it is the error to tell.
        with contextlib.suppress(duckdb.Error):
            connection.execute("rollback")
        raise
    return True


def is_outdated(connection: duckdb.DuckDBPyConnection) -> bool:
    """Has the file other views than this version installs, or lacks it some? The next writer installs them."""
    return _is_outdated(connection, load())


def _is_outdated(connection: duckdb.DuckDBPyConnection, views: list[View]) -> bool:
    if _stored_digest(connection) != _digest(views):
        return True
    installed = {name for (name,) in connection.execute("select view_name from duckdb_views()").fetchall()}
    return any(
        not _MACRO.search(view.text) and view.kept != DURING_A_REFRESH and view.name not in installed for view in views
    )


def _stored_digest(connection: duckdb.DuckDBPyConnection) -> str | None:
    stored = connection.execute("select value from store_facts where name = ?", [_HASH_FACT]).fetchall()
    return str(stored[0][0]) if stored else None


def _digest(views: list[View]) -> str:
    texts = [part for view in views for part in (view.name, *_tables(view), statement(view), view.text)]
    return hashlib.blake2b("\0".join(texts).encode(), digest_size=16).hexdigest()


def create(connection: duckdb.DuckDBPyConnection, views: list[View]) -> None:
    """Create or replace all views and macros, given in the order of installation, and the kept tables, empty.

    Raises: duckdb.Error; then the stand-ins are left, unless a transaction around it is rolled back.
    """
    connection.execute("drop schema if exists kept cascade")
    connection.execute("create schema kept")
    # DuckDB binds a new view down to the tables, along every path of the chain: 0.85 s of processor time for 31 views
    # (1.4 s in 1.2.0). Empty temporary tables stand in front of the finished ones meanwhile: 0.25 s, the same views.
    stand_ins: list[str] = []
    for view in views:
        for table in _tables(view):
            connection.execute(table)
        connection.execute(statement(view))
        if not _MACRO.match(_body(view)):
            connection.execute(f"create temp table {view.name} as select * from main.{view.name} limit 0")
            stand_ins.append(view.name)
    for name in stand_ins:
        connection.execute(f"drop table temp.{name}")


def definition(view: View) -> str:
    """The select that computes a view, for one of the bare selects. Raises: ValueError for any other file."""
    body = _body(view)
    if not re.match(r"(select|with)\b", body, re.IGNORECASE):
        raise ValueError(f"{view.name} is no select")
    return body


def _tables(view: View) -> list[str]:
    """The statements that create the table a view is kept in, with its comments; none when it is not kept in the store."""
    if view.kept != IN_THE_STORE:
        return []
    columns = ", ".join(f'"{column.name}" {column.type}' for column in view.columns)
    comments = [
        f'comment on column kept.{view.name}."{column.name}" is {literal(column.meaning)}' for column in view.columns
    ]
    return [f"create table kept.{view.name} ({columns})", *comments]


def statement(view: View) -> str:
    """The statement that installs one file under its name."""
    if view.kept == IN_THE_STORE:
        return f"create or replace view {view.name} as select {view.names} from kept.{view.name}"
    body = _body(view)
    if re.match(r"create\b", body, re.IGNORECASE):
        return view.text
    if _MATERIALIZED.search(body):
        # DuckDB 1.5 and 2.0 drop the word from a view in a file of storage version v1.2.0, and 1.2 then plans every
        # reference anew: minutes for stage_loss. As a text the statement arrives as it was written, in every version.
        return f"create or replace view {view.name} as select * from query({literal(body)})"
    return f"create or replace view {view.name} as\n{view.text}"


def _body(view: View) -> str:
    return _COMMENT_LINES.sub("", view.text).strip()


def _parse(name: str, text: str) -> View:
    reads: set[str] = set()
    for line in re.findall(r"^--\s*reads:(.*)$", text, re.MULTILINE):
        reads.update(re.findall(r"[a-z_][a-z0-9_]*", line.lower()))
    kept = _KEPT.search(text)
    columns = tuple(Column(*found) for found in _COLUMN.findall(text))
    return View(name, text, frozenset(reads - {name}), columns, kept[1] if kept else None)
