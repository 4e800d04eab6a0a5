"""Writes one piece of decoded records into the tables, inside the transaction of the caller.

Ingest records go first: the query rows of the same piece are then placed through them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from ragtrace.spool.records import CandidateList, StageRecord
from ragtrace.store import late, late_places, scopes
from ragtrace.store.items import Book, resolve
from ragtrace.store.patterns import FlowRows, Patterns
from ragtrace.store.staging import Candidates, Piece, Scope
from ragtrace.store.tables import arrow_table, column_table, stored_in

__all__ = ["Entered", "enter"]


class Entered(NamedTuple):
    """What one piece brought."""

    n_queries: int
    n_stages: int
    n_candidates: int
    is_new_ground: bool
    """It brought chunks or texts: what was known of items before may no longer hold."""


def enter(connection: duckdb.DuckDBPyConnection, piece: Piece, book: Book) -> Entered:
    """Write a piece: rows, items, candidates, flows; then whatever earlier rows it changes.

    `book` holds item keys from pieces before; see `Book` for when a new one is due.
    """
    touched = late.known_queries(connection, piece.queries.keys())
    highest = late_places.highest_item(connection)
    for name in ("documents", "texts", "parses", "inventories", "processes", "losses", "queries", "stages"):
        _ENTER_ROWS[name](connection, piece.rows[name])
    lists = _Lists()
    writes = _enter_ingests(connection, piece, lists)
    _insert_writes(connection, writes)
    made_in_queries = _enter_queries(connection, piece, lists, touched, book)
    _insert_writes(connection, made_in_queries)
    lists.insert(connection)
    chunk_ids = [write[0] for write in writes + made_in_queries]
    if piece.ingests:
        chunk_ids += late_places.write_again(connection)
    late_places.place_again(connection, highest, chunk_ids, [row.get("doc_id") for row in piece.rows["parses"]])
    _derive_again(connection, touched)
    return Entered(
        len(piece.rows["queries"]),
        len(piece.rows["stages"]),
        piece.n_candidates,
        bool(chunk_ids or piece.rows["parses"]),
    )


def _derive_again(connection: duckdb.DuckDBPyConnection, query_ids: set[int]) -> None:
    flows = FlowRows()
    for query_id, flow, is_all_there in late.derive_again(connection, query_ids):
        flows.add(query_id, flow, is_all_there, None, None)
    flows.insert(connection)


# ------------------------------------------------------------------------------------------------ rows


def _insert(
    connection: duckdb.DuckDBPyConnection, name: str, rows: Sequence[Mapping[str, Any]], where: str = "true"
) -> None:
    if not rows:
        return
    connection.register("staging_rows", arrow_table(name, rows))
    connection.execute(f"insert into {name} by name select * from staging_rows as s where {where}")
    connection.unregister("staging_rows")


def _insert_once(key: str) -> Any:
    """A writer of rows whose key may come again (a process in each of its logs, a text with each document)."""

    def write(connection: duckdb.DuckDBPyConnection, rows: Sequence[Mapping[str, Any]]) -> None:
        distinct = list({row.get(key): row for row in reversed(rows)}.values())[::-1]
        name = write_to
        _insert(connection, name, distinct, f"not exists (select 1 from {name} as t where t.{key} = s.{key})")

    write_to = {"process_id": "processes", "text_hash": "texts"}[key]
    return write


def _replace(name: str, key: str) -> Any:
    """A writer of rows of which the latest one stands."""

    def write(connection: duckdb.DuckDBPyConnection, rows: Sequence[Mapping[str, Any]]) -> None:
        if not rows:
            return
        latest = list({row.get(key): row for row in rows}.values())
        connection.register("staging_keys", pa.table({"key": pa.array([row.get(key) for row in latest], pa.int64())}))
        connection.execute(f"delete from {name} where {key} in (select key from staging_keys)")
        connection.unregister("staging_keys")
        _insert(connection, name, latest)

    return write


def _plain(name: str) -> Any:
    return lambda connection, rows: _insert(connection, name, rows)


def _enter_losses(connection: duckdb.DuckDBPyConnection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Losses are kept summed per process and reason."""
    if not rows:
        return
    _insert(connection, "losses", rows)
    connection.execute(
        "create or replace temp table staging_losses as select process_id, reason, sum(n)::bigint as n, min(first_at_ns) as first_at_ns, "
        "max(last_at_ns) as last_at_ns, arg_max(detail, last_at_ns) as detail from losses group by process_id, reason"
    )
    connection.execute("delete from losses")
    connection.execute("insert into losses by name select * from staging_losses")


_ENTER_ROWS = {
    "documents": _replace("documents", "ingest_id"),
    "texts": _insert_once("text_hash"),
    "parses": _plain("parses"),
    "inventories": _plain("inventories"),
    "processes": _insert_once("process_id"),
    "losses": _enter_losses,
    # A query counted as interrupted may still end: its row then takes the place of the one made for it.
    "queries": _replace("queries", "query_id"),
    "stages": _plain("stages"),
}


class _Lists:
    """Rows of the table `lists`."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []
        """In the order of `_LIST_COLUMNS`."""

    def add_scope(self, scope: Scope, query_id: int | None, origins: Mapping[int, str]) -> None:
        """All lists of a scope."""
        known = {one.list_id: one for stage in scope.stages for one in stage.lists}
        origin_of = origins.get
        for stage in scope.stages:
            stage_id = stage.row["stage_id"]
            for one in stage.lists:
                self.rows.append(_list_row(one, query_id, stage_id, origin_of(one.list_id), known))
        for one in scope.contexts:
            self.rows.append(_list_row(one, query_id, None, origin_of(one.list_id), known))

    def insert(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Write them."""
        if self.rows:
            columns = dict(zip(_LIST_COLUMNS, zip(*self.rows, strict=True), strict=True))
            connection.register("staging_rows", column_table("lists", len(self.rows), columns))
            connection.execute("insert into lists by name select * from staging_rows")
            connection.unregister("staging_rows")
        connection.execute(
            "update lists set n_candidates = t.n_candidates from lists as t "
            "where lists.n_candidates is null and t.list_id = lists.same_as_list_id and t.n_candidates is not null"
        )


_LIST_COLUMNS = (
    "list_id", "query_id", "stage_id", "role", "argument", "same_as_list_id", "also_same_as", "declared_sources", "n_candidates",
    "n_declared", "is_complete", "is_partial", "origin",
)  # fmt: skip


def _list_row(
    one: CandidateList,
    query_id: int | None,
    stage_id: int | None,
    origin: str | None,
    known: Mapping[int, CandidateList],
) -> tuple[Any, ...]:
    # Taken apart at once: there are as many lists as stages, and looking names up one by one is half of the cost.
    list_id, role, columns, same_as, sources, argument, n_declared, is_complete, is_partial = one
    equal = same_as if columns is None else ()
    n_rows = len(columns.chunk_id) if columns is not None else _n_rows(one, known)
    return (
        list_id, query_id, stage_id, role, argument, equal[0] if equal else None, list(equal[1:]) if len(equal) > 1 else None,
        list(sources) if sources else None, n_rows, n_declared, is_complete, is_partial, origin,
    )  # fmt: skip


def _holder(one: CandidateList, known: Mapping[int, CandidateList]) -> CandidateList:
    """The list with the rows of this one, as far as it is at hand."""
    seen = set()
    while one.columns is None and one.same_as and one.list_id not in seen and one.same_as[0] in known:
        seen.add(one.list_id)
        one = known[one.same_as[0]]
    return one


def _n_rows(one: CandidateList, known: Mapping[int, CandidateList]) -> int | None:
    """Rows of a list, or of the one it equals; None while that one has not come."""
    one = _holder(one, known)
    if one.columns is not None:
        return len(one.columns.chunk_id)
    return None if one.same_as and one.same_as[0] not in known else 0


# ------------------------------------------------------------------------------------------------ ingest side

Write = tuple[str | None, str | None, int, int, int, bool]
"""chunk_id, index_name, item, stage_id, written_at_ns, is_index"""


def _enter_ingests(connection: duckdb.DuckDBPyConnection, piece: Piece, lists: _Lists) -> list[Write]:
    if not piece.ingests:
        return []
    documents = _documents(connection, piece)
    book, candidates = Book(), Candidates()
    numbers: dict[int, Sequence[int]] = {}
    for (kind, number), scope in piece.ingests.items():
        doc_id = documents.get(number) if kind == "ingest" else None
        ended_ns = max(_ended_ns(stage) for stage in scope.stages)
        numbers |= scopes.number_rows(book, candidates, scope, ended_ns + 1, doc_id)
        lists.add_scope(scope, None, {})
    candidates.number_bare(book)
    items = resolve(connection, book)
    _insert_candidates(connection, candidates, items)
    stages = [stage for scope in piece.ingests.values() for stage in scope.stages]
    return _writes(stages, book, numbers, items)


def _ended_ns(stage: StageRecord) -> int:
    return int(stage.row.get("started_at_ns") or 0) + int(stage.row.get("duration_ns") or 0)


def _documents(connection: duckdb.DuckDBPyConnection, piece: Piece) -> dict[int, str]:
    """ingest_id -> doc_id, of this piece and of earlier ones."""
    found = {row["ingest_id"]: row.get("doc_id") for row in piece.rows["documents"]}
    missing = [number for kind, number in piece.ingests if kind == "ingest" and number not in found]
    if missing:
        connection.register("staging_keys", pa.table({"key": pa.array(missing, pa.int64())}))
        found |= dict(
            connection.execute(
                "select ingest_id, doc_id from documents where ingest_id in (select key from staging_keys)"
            ).fetchall()
        )
        connection.unregister("staging_keys")
    return {number: doc_id for number, doc_id in found.items() if doc_id is not None}


def _writes(
    stages: Iterable[StageRecord], book: Book, numbers: Mapping[int, Sequence[int]], items: pa.Array
) -> list[Write]:
    known = {one.list_id: one for stage in stages for one in stage.lists}
    found: dict[Write, None] = {}
    for stage in stages:
        row = stage.row
        if row.get("kind") not in ("chunk", "index") or row.get("status", "ok") != "ok":
            continue
        for written in scopes.written_lists(stage):
            for number in numbers.get(_holder(written, known).list_id, ()):
                key = book.keys[number]
                chunk_id = key[0] if type(key) is tuple else key
                item = items[number].as_py()
                found[
                    (chunk_id, row.get("index_name"), item, row["stage_id"], _ended_ns(stage), row["kind"] == "index")
                ] = None
    return list(found)


def _insert_writes(connection: duckdb.DuckDBPyConnection, writes: Sequence[Write]) -> None:
    names = ("chunk_id", "index_name", "item", "stage_id", "written_at_ns", "is_index")
    _insert(connection, "index_writes", [dict(zip(names, write, strict=True)) for write in writes])


def _insert_candidates(connection: duckdb.DuckDBPyConnection, candidates: Candidates, items: pa.Array) -> None:
    if not len(candidates):
        return
    for name, rows in zip(stored_in("candidates"), candidates.tables(items), strict=True):
        if rows.num_rows:
            connection.register("staging_candidates", rows)
            connection.execute(f"insert into {name} by name select * from staging_candidates")
            connection.unregister("staging_candidates")


# ------------------------------------------------------------------------------------------------ query side


def _enter_queries(
    connection: duckdb.DuckDBPyConnection, piece: Piece, lists: _Lists, touched: set[int], book: Book
) -> list[Write]:
    all_scopes = [*piece.queries.values(), *piece.orphans]
    if not all_scopes:
        return []
    as_of = _times(connection, [scope.begin_ns() for scope in all_scopes])
    candidates, flows, patterns = Candidates(), FlowRows(), Patterns()
    numbers: dict[int, Sequence[int]] = {}
    for scope, as_of_ns in zip(all_scopes, as_of, strict=True):
        numbers.update(scopes.number_rows(book, candidates, scope, as_of_ns))
    rows = {row["query_id"]: row for row in piece.rows["queries"]}
    for query_id, scope in piece.queries.items():
        flow, stage_ids, list_ids = patterns.flow_of(scope, _chunk_ids)
        lists.add_scope(scope, query_id, {list_ids[number]: how for number, how in flow.origins.items()})
        if query_id not in touched:
            flows.add(query_id, flow, is_whole(rows.get(query_id), scope, numbers), stage_ids, list_ids)
    for scope in piece.orphans:
        lists.add_scope(scope, None, {})
    candidates.number_bare(book)
    items = resolve(connection, book)
    _insert_candidates(connection, candidates, items)
    flows.insert(connection)
    stages = [
        stage
        for scope in piece.queries.values()
        for stage in scope.stages
        if stage.row.get("kind") in ("chunk", "index")
    ]
    return _writes(stages, book, numbers, items) if stages else []


def _chunk_ids(one: CandidateList) -> Sequence[str | None]:
    return scopes.with_ids(one.columns).chunk_id if one.columns is not None else ()


def _times(connection: duckdb.DuckDBPyConnection, begins: Sequence[int]) -> list[int]:
    """For each start the earliest time as of which the same texts and chunks are known: queries share item keys so."""
    low, high = min(begins), max(begins)
    rows = connection.execute(
        "with events as (select parsed_at_ns as known_at_ns from parses union select written_at_ns from index_writes) "
        "select known_at_ns from events where known_at_ns >= $low and known_at_ns < $high "
        "union select max(known_at_ns) from events where known_at_ns < $low order by known_at_ns",
        {"low": low, "high": high},
    ).fetchall()
    events = [row[0] for row in rows if row[0] is not None]
    return [events[at - 1] + 1 if (at := bisect_left(events, begin)) else 0 for begin in begins]


def is_whole(row: Mapping[str, Any] | None, scope: Scope, numbers: Mapping[int, Sequence[int]]) -> bool:
    """Did every stage, list and candidate come that the query row counts? Runs that ended after their query are not counted."""
    if row is None:
        return False
    stages = [stage for stage in scope.stages if not stage.row.get("is_detached")]
    lists = [one for stage in stages for one in stage.lists]
    return (
        len(stages) >= (row.get("n_stages") or 0)
        and len(lists) >= (row.get("n_lists") or 0)
        and sum(len(numbers.get(one.list_id, ())) for one in lists) >= (row.get("n_candidates") or 0)
    )
