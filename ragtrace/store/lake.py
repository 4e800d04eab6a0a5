"""A store as Parquet files by day and run, for engines that read folders: each row exactly once, whatever crashes when.

A store's files are those that its manifest, `manifests/<store_id>.json`, names. A file is never changed: what differs from
the last publication is written under a name made of its content, and then the manifest is replaced in one rename. A kill
before that rename leaves the lake as it was, and files nobody names, which the next publication writes again or removes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import duckdb

from ragtrace import schema
from ragtrace.errors import StoreError
from ragtrace.store import database
from ragtrace.store.lock import hold, only_one
from ragtrace.store.tables import literal

__all__ = ["Published", "files", "publish"]

_NONE = "__HIVE_DEFAULT_PARTITION__"
"""Hive's word for a partition without a value: a query without a run, a stage run outside of every query."""

_QUERY = "left join queries as q on q.query_id = t.query_id"
_JOINS = {
    "queries": ("query_id", ""),
    "stages": ("stage_id", _QUERY),
    "lists": ("list_id", _QUERY),
    "candidates": (
        "list_id, rank",
        "left join lists as l on l.list_id = t.list_id left join queries as q on q.query_id = l.query_id",
    ),
    "query_flows": ("query_id", _QUERY),
    "edges": ("query_id", _QUERY),
    "places": ("query_id, place_no", _QUERY),
    "place_lists": ("query_id, place_no", _QUERY),
}
"""Table that is cut by day and run -> what its files are sorted by, and the way to the query that says both."""

_SORTED = {"items": "item", "item_ranges": "item", "texts": "text_hash", "index_writes": "chunk_id"}


class Published(NamedTuple):
    """What a publication changed in the lake."""

    n_written: int
    """Files written."""
    n_kept: int
    """Files that were the same already."""
    n_dropped: int
    """Files of the last publication that are no longer of the lake."""


class _File(NamedTuple):
    """One file as a manifest names it. `path` is relative to the lake."""

    table: str
    day: str | None
    run: str | None
    n_rows: int
    path: str


def publish(store: str | Path, lake: str | Path, wait_s: float = 30.0) -> Published:
    """Bring the files of `store` in the folder `lake` to what the store holds now. What was deleted in the store goes.

    Files of the last publication stay on disk until the next one: who reads by that manifest ends in peace.

    Raises:
        StoreError: the store or the lake is in use for longer than `wait_s` seconds, the lake cannot be written, or another
            store's files hold queries of this one already.
    """
    store, lake = Path(store), Path(lake)
    try:
        (lake / "manifests").mkdir(parents=True, exist_ok=True)
        with (
            hold(lake / "publish.lock", wait_s, lake),
            only_one(store, wait_s),
            contextlib.closing(database.connect(store, read_only=True)) as connection,
        ):
            return _publish(connection, lake)
    except (OSError, duckdb.IOException) as error:
        raise StoreError(f"{lake} cannot be written ({error}): give another folder.", path=str(lake)) from error


def files(lake: str | Path, table: str) -> list[Path]:
    """The Parquet files that make up one stored table now, over all stores of the lake, sorted. Raises: StoreError."""
    lake = Path(lake)
    found = [one for manifest in (lake / "manifests").glob("*.json") for one in _read(manifest)]
    return sorted(lake / one.path for one in found if one.table == table)


def _publish(connection: duckdb.DuckDBPyConnection, lake: Path) -> Published:
    [(store_id,)] = connection.execute("select value from store_facts where name = 'store_id'").fetchall()
    manifest = lake / "manifests" / f"{store_id}.json"
    _refuse_doubles(connection, lake, manifest)
    before = {one.path: one for one in _read(manifest)} if manifest.exists() else {}
    now: dict[str, _File] = {}
    n_written = 0
    for table in schema.TABLES:
        for one, where in _parts(connection, table, store_id):
            now[one.path] = one
            if one.path not in before or not (lake / one.path).exists():
                _write(connection, table, where, lake / one.path)
                n_written += 1
    if now != before:
        _replace(
            manifest,
            json.dumps(
                {"schema_version": schema.SCHEMA_VERSION, "files": [one._asdict() for one in now.values()]}, indent=1
            ),
        )
    _sweep(lake, store_id, now.keys() | before.keys())
    return Published(n_written, len(now) - n_written, len(before.keys() - now.keys()))


def _refuse_doubles(connection: duckdb.DuckDBPyConnection, lake: Path, own: Path) -> None:
    """Two stores that merged the same logs, or a copy of a store built anew: their rows would count twice."""
    for manifest in sorted((lake / "manifests").glob("*.json")):
        theirs = [str(lake / one.path) for one in _read(manifest) if one.table == "queries"]
        if manifest == own or not theirs:
            continue
        [(n,)] = connection.execute(
            "select count(*) from queries where query_id in (select query_id from read_parquet($theirs))",
            {"theirs": theirs},
        ).fetchall()
        if n:
            raise StoreError(
                f"{n:,} queries of this store are in {lake} already, from another store: delete {manifest} to replace "
                "that store's rows by this one's, or publish into another folder.",
                path=str(lake),
            )


def _parts(connection: duckdb.DuckDBPyConnection, table: schema.Table, store_id: str) -> Iterator[tuple[_File, str]]:
    """Every part of a table that has rows: its file, and the SQL condition that its rows meet."""
    columns = ", ".join(f't."{column.name}"' for column in table.columns)
    described = json.dumps([(column.name, column.type) for column in table.columns])
    parts = connection.execute(
        f"select {_day(table)} as day, {_run(table)} as run, count(*), sum(hash({columns})::hugeint) "
        f"from {_source(table)} group by all order by all"
    ).fetchall()
    for day, run, n_rows, rows in parts:
        digest = hashlib.blake2b(f"{described} {n_rows} {rows}".encode(), digest_size=12).hexdigest()
        folder = f"{table.name}/day={day or _NONE}/run={_NONE if run is None else quote(run, safe='')}"
        path = f"{folder if table.name in _JOINS else table.name}/{store_id}-{digest}.parquet"
        where = f"{_day(table)} is not distinct from {_value(day)} and {_run(table)} is not distinct from {_value(run)}"
        yield _File(table.name, day, run, n_rows, path), where


def _source(table: schema.Table) -> str:
    return f"{table.name} as t {_JOINS[table.name][1] if table.name in _JOINS else ''}"


def _day(table: schema.Table) -> str:
    """The UTC day that its query began, as SQL."""
    of = _query(table)
    return f"strftime(make_timestamp({of}.started_at_ns // 1000), '%Y-%m-%d')" if of else "null::varchar"


def _run(table: schema.Table) -> str:
    of = _query(table)
    return f"{of}.run" if of else "null::varchar"


def _query(table: schema.Table) -> str | None:
    return "t" if table.name == "queries" else "q" if table.name in _JOINS else None


def _value(text: str | None) -> str:
    return "null" if text is None else literal(text)


def _write(connection: duckdb.DuckDBPyConnection, table: schema.Table, where: str, target: Path) -> None:
    """Sorted by id, so that the statistics of a row group tell whether a question is in it. On disk when this returns."""
    target.parent.mkdir(parents=True, exist_ok=True)
    columns = ", ".join(f't."{column.name}"' for column in table.columns)
    order = _JOINS[table.name][0] if table.name in _JOINS else _SORTED.get(table.name)
    by = f"order by {', '.join(f't.{name}' for name in order.split(', '))}" if order else ""
    temporary = target.with_suffix(".writing")
    connection.execute(
        f"copy (select {columns} from {_source(table)} where {where} {by}) "
        f"to {literal(str(temporary))} (format parquet, compression zstd)"
    )
    _sync(temporary)
    os.replace(temporary, target)
    for folder in (target.parent, *target.parent.parents[:3]):
        _sync(folder)


def _replace(manifest: Path, text: str) -> None:
    temporary = manifest.with_suffix(".writing")
    temporary.write_text(text, encoding="utf-8")
    _sync(temporary)
    os.replace(temporary, manifest)
    _sync(manifest.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sweep(lake: Path, store_id: str, named: Iterable[str]) -> None:
    """Remove this store's files that neither this publication nor the one before names."""
    stay = {lake / path for path in named}
    for table in schema.TABLES:
        for path in (lake / table.name).rglob(f"{store_id}-*"):
            if path not in stay:
                path.unlink()


def _read(manifest: Path) -> list[_File]:
    found: dict[str, Any] = json.loads(manifest.read_text(encoding="utf-8"))
    if found["schema_version"] > schema.SCHEMA_VERSION:
        raise StoreError(f"{manifest} is of a newer ragtrace: upgrade ragtrace.", path=str(manifest))
    return [_File(**one) for one in found["files"]]
