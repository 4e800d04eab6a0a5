"""What chunks and documents that come late change in rows that are already there: items of rows without a place of their own."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from ragtrace.store.item_lookup import enter_keys
from ragtrace.store.items import MIXED, Book, Context, Derived, enter_derived
from ragtrace.store.tables import stored_in, string_array

__all__ = ["highest_item", "place_again", "write_again"]


def highest_item(connection: duckdb.DuckDBPyConnection) -> int:
    """The largest item number; 0 when there is none."""
    return int(connection.execute("select coalesce(max(item), 0) from items").fetchall()[0][0])


# Runs that wrote a list whose rows came in another merge than the run itself.
_WAITING = """
create or replace temp table staging_waiting as
with
runs as (
    select stage_id, kind, index_name, started_at_ns + coalesce(duration_ns, 0) as written_at_ns
    from stages
    where
        kind in ('chunk', 'index') and coalesce(status, 'ok') = 'ok'
        and stage_id not in (select stage_id from index_writes)
),
theirs as (
    select
        runs.stage_id, runs.kind, runs.index_name, runs.written_at_ns, lists.role, lists.list_id, lists.same_as_list_id,
        bool_or(lists.role = 'out') over (partition by runs.stage_id) as has_output
    from runs
    inner join lists on runs.stage_id = lists.stage_id
)
select stage_id, kind, index_name, written_at_ns, coalesce(same_as_list_id, list_id) as list_id
from theirs
where case when kind = 'chunk' or has_output then role = 'out' else role = 'in' end
"""

_WRITTEN = """
select distinct
    items.chunk_id, staging_waiting.index_name, candidates.item, staging_waiting.stage_id, staging_waiting.written_at_ns,
    staging_waiting.kind = 'index' as is_index
from staging_waiting
inner join candidates on staging_waiting.list_id = candidates.list_id
inner join items on candidates.item = items.item
"""


def write_again(connection: duckdb.DuckDBPyConnection) -> list[str | None]:
    """Enter what index runs wrote whose chunks came in another merge; the chunk ids."""
    connection.execute(_WAITING)
    if not connection.execute("select 1 from staging_waiting limit 1").fetchall():
        return []
    rows = connection.execute(f"select distinct chunk_id from ({_WRITTEN}) as written").fetchall()
    if rows:
        connection.execute(f"insert into index_writes by name {_WRITTEN}")
    return [row[0] for row in rows]


_DERIVED_PLACE = re.compile(r"(?P<how>cut|altered) \d+(?:: (?P<cut>[\d,-]*))?(?:\|may (?P<possible>[\d,-]+))?")

# Items that existed before this piece and took their place, or their text, from elsewhere.
_AFFECTED = """
create or replace temp table staging_affected as
select item
from items
where
    item <= ?
    and (
        ((place is null or place like '=%') and chunk_id in (select chunk_id from staging_chunks))
        or (place like '~%' and doc_id in (select doc_id from staging_parsed))
    )
"""

# Rows that refer to them, straight or as the base of a cut or altered item; each as of the start of its query.
_ROWS = """
create or replace temp table staging_rows_again as
with
referring as (
    select
        item,
        case
            when place like 'cut %' or place like 'altered %' then cast(regexp_extract(place, '[0-9]+') as integer)
            else item
        end as base
    from items
),
wanted as (select item, base from referring where base in (select item from staging_affected)),
found as (
    select distinct candidates.list_id, candidates.item, wanted.base
    from candidates
    inner join wanted on candidates.item = wanted.item
)
select
    found.list_id, found.item, found.base,
    case
        when lists.query_id is null and stages.ingest_id is not null
            then stages.started_at_ns + coalesce(stages.duration_ns, 0) + 1
        else coalesce(queries.started_at_ns, stages.started_at_ns)
    end as as_of_ns
from found
inner join lists on found.list_id = lists.list_id
left join stages on lists.stage_id = stages.stage_id
left join queries on lists.query_id = queries.query_id
"""

_PAIRS = """
create or replace temp table staging_pairs as
select cast(row_number() over (order by base, as_of_ns) - 1 as integer) as number, base, as_of_ns
from (select distinct base, as_of_ns from staging_rows_again) as pairs
"""

_KEYS_AGAIN = """
select
    staging_pairs.number, items.chunk_id, items.id_source, items.index_name, items.doc_id, null::varchar as text_hash,
    case when items.place like '~%' then items.place end as place, coalesce(staging_pairs.as_of_ns, 0) as as_of_ns,
    null::integer as start_at, null::integer as end_at, items.is_altered
from staging_pairs
inner join items on staging_pairs.base = items.item
"""

_RANGES_AGAIN = """
select staging_pairs.number, item_ranges.start_at, item_ranges.end_at, item_ranges.role
from staging_pairs
inner join items on staging_pairs.base = items.item and items.place like '~%'
inner join item_ranges on items.item = item_ranges.item
"""

_TEXTS_AGAIN = """
select staging_pairs.number, items.item_text_hash, items.offset_quality
from staging_pairs
inner join items on staging_pairs.base = items.item
"""

_MOVES = """
create or replace temp table staging_moves as
select
    staging_rows_again.list_id, staging_rows_again.item, staging_rows_again.base, staging_placed_again.item as new_base,
    staging_rows_again.item = staging_rows_again.base as is_straight
from staging_rows_again
inner join staging_pairs
    on
        staging_rows_again.base = staging_pairs.base
        and staging_rows_again.as_of_ns is not distinct from staging_pairs.as_of_ns
inner join staging_placed_again on staging_pairs.number = staging_placed_again.number
where staging_placed_again.item <> staging_rows_again.base
"""

_DERIVED_MOVES = """
select
    staging_moves.list_id, staging_moves.item, staging_moves.base, staging_moves.new_base, items.chunk_id, items.id_source,
    items.index_name, items.place
from staging_moves
inner join items on staging_moves.item = items.item
where not staging_moves.is_straight
"""


class _Again(NamedTuple):
    list_id: int
    item: int
    base: int
    new_base: int
    chunk_id: str | None
    id_source: str
    index_name: str | None
    place: str


def place_again(
    connection: duckdb.DuckDBPyConnection, highest: int, chunk_ids: Iterable[str | None], doc_ids: Iterable[str | None]
) -> int:
    """Re-point rows without a place of their own that chunks written or documents parsed late would have placed.

    `highest` is the largest item from before: what came after was placed with everything known. Returns how many rows changed.
    """
    chunks, documents = sorted(set(chunk_ids) - {None}), sorted(set(doc_ids) - {None})  # type: ignore[type-var]  # None is taken out
    if not highest or not (chunks or documents):
        return 0
    connection.register("staging_chunks", pa.table({"chunk_id": string_array(list(chunks))}))
    connection.register("staging_parsed", pa.table({"doc_id": string_array(list(documents))}))
    connection.execute(_AFFECTED, [highest])
    connection.unregister("staging_chunks")
    connection.unregister("staging_parsed")
    if not connection.execute("select 1 from staging_affected limit 1").fetchall():
        return 0
    connection.execute(_ROWS)
    connection.execute(_PAIRS)
    keys = connection.sql(_KEYS_AGAIN).to_arrow_table()
    if not keys.num_rows:
        return 0
    ranges = connection.sql(_RANGES_AGAIN).to_arrow_table()
    texts = connection.sql(_TEXTS_AGAIN).to_arrow_table()
    connection.register("staging_placed_again", enter_keys(connection, keys, ranges, texts))
    connection.execute(_MOVES)
    connection.unregister("staging_placed_again")
    moves = connection.sql(
        "select list_id, item, new_base as new_item from staging_moves where is_straight"
    ).to_arrow_table()
    return _move(connection, moves) + _move(connection, _derived_moves(connection))


def _derived_moves(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """Moves of rows whose item was cut or altered from one that moves."""
    rows = [_Again(*row) for row in connection.execute(_DERIVED_MOVES).fetchall()]
    book = Book()
    bases: list[int] = []
    numbers: list[int] = []
    contexts: dict[int, Context] = {}
    for row in rows:
        found = _DERIVED_PLACE.match(row.place)
        assert found is not None, "written by items._derived_keys only"
        cut = None if found["how"] == "altered" else _ranges(found["cut"])
        derived = Derived(len(bases), cut, _ranges(found["possible"]))
        bases.append(row.new_base)
        context = Context(row.index_name, row.id_source, None, 0)
        numbers.append(book.memo(context, MIXED)[(row.chunk_id, derived)])
        contexts[numbers[-1]] = context
    items = enter_derived(connection, book, contexts, bases) if rows else {}
    return pa.table({
        "list_id": pa.array([row.list_id for row in rows], pa.int64()),
        "item": pa.array([row.item for row in rows], pa.int32()),
        "new_item": pa.array([items[number] for number in numbers], pa.int32()),
    })  # fmt: skip


def _ranges(text: str | None) -> tuple[tuple[int, int], ...]:
    found: list[Any] = [part.split("-") for part in (text or "").split(",") if part]
    return tuple((int(start), int(end)) for start, end in found)


def _move(connection: duckdb.DuckDBPyConnection, moves: pa.Table) -> int:
    """Point rows of (list, item) to another item; the written chunks follow."""
    if not moves.num_rows:
        return 0
    connection.register("staging_move", moves)
    for name in stored_in("candidates"):
        connection.execute(
            f"update {name} set item = staging_move.new_item from staging_move "
            f"where staging_move.list_id = {name}.list_id and staging_move.item = {name}.item"
        )
    connection.execute(
        "update index_writes set item = staging_move.new_item "
        "from staging_move inner join lists on staging_move.list_id = lists.list_id "
        "where lists.stage_id = index_writes.stage_id and staging_move.item = index_writes.item"
    )
    connection.unregister("staging_move")
    return int(moves.num_rows)
