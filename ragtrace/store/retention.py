"""Keeps the store small: deletes old queries or whole runs, and writes the file anew without its free blocks."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import NamedTuple

import duckdb

from ragtrace.errors import StoreError
from ragtrace.store import beside, database, kept, sidecar
from ragtrace.store.lock import only_one
from ragtrace.store.tables import literal, stored_in

__all__ = ["Compacted", "Deleted", "compact", "delete"]


class Deleted(NamedTuple):
    """What was deleted."""

    n_queries: int
    n_stages: int
    n_candidates: int
    n_items: int


class Compacted(NamedTuple):
    """Size of the file before and after."""

    bytes_before: int
    bytes_after: int


def delete(
    path: str | Path, before_ns: int | None = None, run: str | None = None, wait_s: float = 30.0, is_trial: bool = False
) -> Deleted:
    """Delete the queries that started before a time (ns UTC), of one run, or both, with all that belongs to them.

    By time alone, stage runs outside of every query and what was noted of losses and damage before it go as well.
    Documents, parsed texts, chunks and labels stay: later queries are judged by them. The file shrinks with `compact`.
    A trial says what would go and changes nothing.

    Raises:
        StoreError: neither limit is given, or the store cannot be opened for writing.
    """
    if before_ns is None and run is None:
        raise StoreError("Say what to delete: a time, a run, or both.")
    path = Path(path)
    with only_one(path, wait_s), contextlib.closing(database.connect(path)) as connection:
        connection.execute("begin")
        try:
            connection.execute(
                "create or replace temp table staging_deleted as select query_id from queries "
                "where ($before_ns is null or started_at_ns < $before_ns) and ($run is null or run = $run)",
                {"before_ns": before_ns, "run": run},
            )
            n_queries = _count(connection, "select count(*) from staging_deleted")
            strays_ns = before_ns if run is None else None
            connection.execute(_STRAYS, {"before_ns": strays_ns})
            connection.execute(_LISTS)
            n_candidates = _count(connection, f"select count(*) from candidates where list_id in ({_IN_LISTS})")
            n_stages = _count(connection, f"select count(*) from stages where {_IN_STAGES}")
            for name, which in (
                *((name, f"list_id in ({_IN_LISTS})") for name in stored_in("candidates")),
                ("lists", f"list_id in ({_IN_LISTS})"),
                ("stages", _IN_STAGES),
            ):
                connection.execute(f"delete from {name} where {which}")
            for name in ("place_lists", "places", "edges", "query_flows", "queries"):
                connection.execute(f"delete from {name} where query_id in (select query_id from staging_deleted)")
            if strays_ns is not None:
                connection.execute("delete from losses where last_at_ns < ?", [strays_ns])
                connection.execute(
                    "delete from ledger where status in ('damaged', 'missing') and merged_at_ns < ?", [strays_ns]
                )
            connection.execute(_UNUSED)
            n_items = _count(connection, "select count(*) from staging_unused")
            for name in ("item_ranges", "items"):
                connection.execute(f"delete from {name} where item in (select item from staging_unused)")
            if not is_trial:
                kept.forget(connection)
                kept.refresh(connection)
            connection.execute("rollback" if is_trial else "commit")
        except BaseException:
            # A full disk has ended the transaction already; what filled it is the error to tell.
            with contextlib.suppress(duckdb.Error):
                connection.execute("rollback")
            raise
        if not is_trial:
            # Else the rows would be missed, and counted as gone, at the next merge.
            beside.keep(connection, database.spool_of(path))
            sidecar.checkpoint(connection, path)
    return Deleted(n_queries, n_stages, n_candidates, n_items)


_STRAYS = """
create or replace temp table staging_strays as
select stage_id from stages where is_orphan and started_at_ns < $before_ns
"""
_LISTS = """
create or replace temp table staging_lists as
select list_id from lists
where query_id in (select query_id from staging_deleted) or stage_id in (select stage_id from staging_strays)
"""
_IN_LISTS = "select list_id from staging_lists"
_IN_STAGES = "query_id in (select query_id from staging_deleted) or stage_id in (select stage_id from staging_strays)"

# A cut or altered item needs its base, one placed by its chunk needs that chunk.
_UNUSED = """
create or replace temp table staging_unused as
with
needed as (
    select item from candidates
    union
    select item from index_writes
),
based as (
    select cast(regexp_extract(i.place, '[0-9]+') as integer) as item
    from items as i
    join needed as n on n.item = i.item
    where i.place like 'cut %' or i.place like 'altered %'
)
select item from items where item not in (select item from needed) and item not in (select item from based)
"""


def _count(connection: duckdb.DuckDBPyConnection, sql: str) -> int:
    return int(connection.execute(sql).fetchall()[0][0])


def compact(path: str | Path, wait_s: float = 30.0) -> Compacted:
    """Write the file anew beside itself, without free blocks, and put it in place at once.

    Many small merges leave up to twice the bytes; needs room for a second file while it runs.

    Raises:
        StoreError: the store is in use, or there is no room beside it.
    """
    path = Path(path)
    target = path.with_name(path.name + ".compact")
    with only_one(path, wait_s):
        with contextlib.closing(database.connect(path)) as connection:
            sidecar.checkpoint(connection, path)
        before = path.stat().st_size
        target.unlink(missing_ok=True)
        try:
            with contextlib.closing(duckdb.connect(config={"python_enable_replacements": "false"})) as connection:
                connection.execute(f"attach {literal(str(path))} as old (read_only)")
                connection.execute(
                    f"attach {literal(str(target))} as new (storage_version '{database.STORAGE_VERSION}')"
                )
                connection.execute("copy from database old to new")
                connection.execute("checkpoint new")
            with open(target, "rb") as file:
                os.fsync(file.fileno())
            sidecar.path_of(path).unlink(missing_ok=True)
            os.replace(target, path)
        except (duckdb.Error, OSError) as error:
            target.unlink(missing_ok=True)
            raise StoreError(
                f"{path} could not be compacted ({error}): the file is as it was.", path=str(path)
            ) from error
        with contextlib.closing(database.connect(path)):
            pass  # opens, brings the views up to date and keeps a sidecar
    return Compacted(before, path.stat().st_size)
