"""What records that come late change in rows that are already there: the flow of their query."""

from __future__ import annotations

from collections.abc import Iterable

import duckdb
import pyarrow as pa

from ragtrace.store.edges import FlowList, FlowStage
from ragtrace.store.flow import Flow, derive

__all__ = ["derive_again", "forget_flows", "known_queries"]


def known_queries(connection: duckdb.DuckDBPyConnection, query_ids: Iterable[int]) -> set[int]:
    """Those of the queries that already have rows in the store."""
    with _Keys(connection, query_ids):
        rows = connection.execute(
            # This way round the few keys are the side that is hashed.
            "select query_id from stages where query_id in (select key from staging_ids) "
            "union select query_id from lists where query_id in (select key from staging_ids) "
            "union select query_id from queries where query_id in (select key from staging_ids)"
        ).fetchall()
    return {row[0] for row in rows}


class _Keys:
    """Ids as the table staging_ids while the block runs."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, ids: Iterable[int]) -> None:
        self.connection = connection
        self.table = pa.table({"key": pa.array(list(ids), pa.int64())})

    def __enter__(self) -> None:
        self.connection.register("staging_ids", self.table)

    def __exit__(self, *exception: object) -> None:
        self.connection.unregister("staging_ids")


def forget_flows(connection: duckdb.DuckDBPyConnection, query_ids: Iterable[int]) -> None:
    """Delete what was derived for these queries."""
    with _Keys(connection, query_ids):
        for name in ("query_flows", "edges", "places", "place_lists"):
            connection.execute(f"delete from {name} where query_id in (select key from staging_ids)")


def derive_again(connection: duckdb.DuckDBPyConnection, query_ids: set[int]) -> list[tuple[int, Flow, bool]]:
    """Derive these queries anew from the tables and delete what was derived before; also updates `lists.origin`.

    Returns query id, flow, and whether the query is whole.
    """
    if not query_ids:
        return []
    with _Keys(connection, query_ids):
        parts = _load(connection)
        whole = {row[0] for row in connection.execute(_WHOLE).fetchall()}
    forget_flows(connection, query_ids)
    derived = []
    origins: dict[int, str] = {}
    for query_id in sorted(query_ids):
        stages, contexts = parts.get(query_id, ([], []))
        flow = derive(stages, contexts)
        origins |= flow.origins
        derived.append((query_id, flow, query_id in whole))
    connection.register("staging_origins", pa.table({
        "list_id": pa.array(list(origins), pa.int64()), "origin": pa.array(list(origins.values()), pa.string()),
    }))  # fmt: skip
    connection.execute(
        "update lists set origin = staging_origins.origin from staging_origins where staging_origins.list_id = lists.list_id"
    )
    connection.unregister("staging_origins")
    return derived


_WHOLE = """
with
of_queries as (
    select query_id, status, n_stages, n_lists, n_candidates
    from queries
    where query_id in (select key from staging_ids)
),
stage_counts as (
    select query_id, count(*) as n_stages
    from stages
    where query_id in (select key from staging_ids) and not coalesce(is_detached, false)
    group by query_id
),
list_counts as (
    select
        lists.query_id, count(*) as n_lists,
        coalesce(sum(lists.n_candidates) filter (where lists.same_as_list_id is null), 0) as n_candidates
    from lists
    inner join stages on lists.stage_id = stages.stage_id
    where lists.query_id in (select key from staging_ids) and not coalesce(stages.is_detached, false)
    group by lists.query_id
)
select of_queries.query_id
from of_queries
left join stage_counts on of_queries.query_id = stage_counts.query_id
left join list_counts on of_queries.query_id = list_counts.query_id
where
    of_queries.status <> 'interrupted'
    and coalesce(stage_counts.n_stages, 0) >= coalesce(of_queries.n_stages, 0)
    and coalesce(list_counts.n_lists, 0) >= coalesce(of_queries.n_lists, 0)
    and coalesce(list_counts.n_candidates, 0) >= coalesce(of_queries.n_candidates, 0)
"""

_STAGES = """
select query_id, stage_id, kind, start_no, end_no, parent_stage_id, coalesce(is_aside, false) or probe is not null as is_off,
    coalesce(is_final, false) as is_final, coalesce(is_answer, false) as is_answer
from stages
where query_id in (select key from staging_ids)
"""

_LISTS = """
with
wanted as (
    select query_id, stage_id, list_id, role, same_as_list_id, also_same_as, declared_sources, is_complete
    from lists
    where query_id in (select key from staging_ids)
),
held as (
    select candidates.list_id, list(items.chunk_id order by candidates.rank) as ids
    from candidates
    inner join items on candidates.item = items.item
    where candidates.list_id in (select list_id from wanted)
    group by candidates.list_id
)
select
    wanted.query_id, wanted.stage_id, wanted.list_id, wanted.role, wanted.same_as_list_id, wanted.also_same_as,
    wanted.declared_sources, wanted.is_complete, held.ids
from wanted
left join held on wanted.list_id = held.list_id
order by wanted.list_id
"""


def _load(connection: duckdb.DuckDBPyConnection) -> dict[int, tuple[list[FlowStage], list[FlowList]]]:
    """Stages and context lists per query, as the flow wants them."""
    of_stage: dict[int, list[FlowList]] = {}
    parts: dict[int, tuple[list[FlowStage], list[FlowList]]] = {}
    for query_id, stage_id, list_id, role, same_as_id, also, sources, is_complete, ids in connection.execute(
        _LISTS
    ).fetchall():
        equal = () if same_as_id is None else (same_as_id, *(also or ()))
        has_rows = ids is not None or (same_as_id is None and is_complete)
        one = FlowList(list_id, role, ids or (), equal, sources or (), is_complete is not False, has_rows)
        if stage_id is None:
            parts.setdefault(query_id, ([], []))[1].append(one)
        else:
            of_stage.setdefault(stage_id, []).append(one)
    for query_id, stage_id, kind, start_no, end_no, parent_id, is_off, is_final, is_answer in connection.execute(
        _STAGES
    ).fetchall():
        one_stage = FlowStage(
            stage_id,
            kind,
            start_no,
            end_no,
            parent_id,
            is_off=is_off,
            is_final=is_final,
            is_answer=is_answer,
            lists=of_stage.get(stage_id, ()),
        )
        parts.setdefault(query_id, ([], []))[0].append(one_stage)
    return parts
