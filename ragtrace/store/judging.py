"""Judges again only the queries that a merge brought, where nothing that other queries are judged by has changed.

Most merges of a running service bring queries and no document: then the kept views are computed for these queries alone,
and for their runs what is said of a run as a whole. What else can reach the verdicts of other queries is compared before
and after: which indexes are recorded since when, which retrievers a run has, which items hold evidence. Everything that
is rarer (documents, inventories, losses, probes, late hosts) has the whole chain computed, as `kept` does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import duckdb
import pyarrow as pa

from ragtrace.model import INGEST_KINDS
from ragtrace.store import kept, views
from ragtrace.store.staging import Piece

__all__ = ["Change", "begin"]

_QUIET = ("documents", "texts", "parses", "inventories", "losses")
"""Tables of which a row may change how any query is judged."""

_INDEXES = "select index_name, only_index_name, complete_from_ns from recorded_indexes order by all"

_RETRIEVERS = """
select distinct queries.run, retrieve_runs.name
from queries
inner join retrieve_runs on queries.query_id = retrieve_runs.query_id
"""

_LATE_HOSTS = """
select 1
from (
    select process_id from queries
    union all
    select process_id from documents
    union all
    select process_id from parses
    union all
    select process_id from inventories
    union all
    select process_id from stages
) as known
where list_contains(?, process_id) and process_id not in (select process_id from processes where process_id is not null)
limit 1
"""

# An inventory names ids: whatever item has one of them stands for it where no write is recorded.
_NEW_HOLDERS = """
with
holders as materialized (
    select item_covers.item, item_covers.evidence_no, item_covers.role, items.chunk_id, items.index_name
    from item_covers
    inner join items on item_covers.item = items.item
)
select 1
from holders
left join holders as known
    on
        known.item <= ?
        and known.role = 'own'
        and holders.evidence_no = known.evidence_no
        and holders.chunk_id is not distinct from known.chunk_id
        and holders.index_name is not distinct from known.index_name
where
    holders.item > ?
    and (
        (holders.role <> 'stands_for' and known.item is null)
        or exists (select 1 from inventories where doc_id is null and (index_name is not null or chunk_id is not null))
    )
limit 1
"""

_RUNS = """
insert into staging_runs
select distinct run from queries where query_id in (select query_id from staging_judged)
"""

_OF_THE_RUNS = "exists (select 1 from staging_runs where staging_runs.run is not distinct from {name}.run)"


def begin(connection: duckdb.DuckDBPyConnection, piece: Piece) -> Change | None:
    """What must be known before a piece is entered; None when all kept views have to be computed anew, or none at all."""
    if not kept.is_filled(connection) or not _is_of_queries(connection, piece):
        return None
    return Change(connection, piece.queries)


def _is_of_queries(connection: duckdb.DuckDBPyConnection, piece: Piece) -> bool:
    """Does the piece bring nothing but runs of query-side stages in queries, and their processes?"""
    if any(piece.rows[name] for name in _QUIET) or piece.ingests or piece.orphans:
        return False
    if any(row.get("kind") in INGEST_KINDS or row.get("probe") is not None for row in piece.rows["stages"]):
        return False
    # What a probe proves is held against every item and every state of the index that is known.
    if connection.execute("select 1 from stages where probe is not null limit 1").fetchall():
        return False
    processes = [row["process_id"] for row in piece.rows["processes"]]
    if not processes:
        return True
    # A host that becomes known late says more of the times of what its process has recorded before.
    return not connection.execute(_LATE_HOSTS, [processes]).fetchall()


class Change:
    """The queries of one piece, and what other queries were judged by before it."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, query_ids: Iterable[int]) -> None:
        self.connection = connection
        self.query_ids = list(query_ids)
        self.indexes = self._rows(_INDEXES)
        self.retrievers = set(self._rows(_RETRIEVERS))
        ((self.highest_item,),) = self._rows("select coalesce(max(item), 0) from items")
        # A query that is known already may get another run by the rows that come now.
        self._number("staging_judged", self.query_ids)
        connection.execute("create or replace temp table staging_runs (run varchar)")
        connection.execute(_RUNS)

    def judge(self) -> None:
        """Bring the kept views up to date in the transaction that entered the piece.

        Forgets them when more has changed than these queries. Does nothing when they are forgotten already.
        """
        if kept.is_stale(self.connection):
            return
        if self._rows(_INDEXES) != self.indexes or self._has_new_holders():
            kept.forget(self.connection)
            return
        self._add_runs({run for run, _ in set(self._rows(_RETRIEVERS)) ^ self.retrievers})
        self.connection.execute(_RUNS)
        chain = kept.chain()
        of_queries = [view for view in chain if any(column.name == "query_id" for column in view.columns)]
        of_runs = [view for view in chain if view.kept == views.IN_THE_STORE and view not in of_queries]
        self._judge_queries([view for view in chain if view not in of_runs])
        self._sum_up(of_runs)
        for name in ("staging_judged", "staging_runs"):
            self.connection.execute(f"drop table temp.{name}")

    def _rows(self, select: str, *values: object) -> list[tuple[Any, ...]]:
        return self.connection.execute(select, list(values)).fetchall()

    def _number(self, name: str, query_ids: list[int]) -> None:
        self.connection.register("staging_given", pa.table({"query_id": pa.array(query_ids, pa.int64())}))
        self.connection.execute(f"create or replace temp table {name} as select query_id from staging_given")
        self.connection.unregister("staging_given")

    def _has_new_holders(self) -> bool:
        """Did the piece bring an item that says of some evidence what no item said before?

        Of an item that holds evidence other queries learn only that this id, in this index, holds it. That it cuts the
        evidence into smaller pieces changes nothing for them: what they saw covers both parts of a piece or neither.
        """
        (highest,) = self._rows("select coalesce(max(item), 0) from items")[0]
        return bool(highest > self.highest_item and self._rows(_NEW_HOLDERS, *[self.highest_item] * 2))

    def _add_runs(self, runs: set[str | None]) -> None:
        """Judge all queries of these runs: what their queries usually search is how they are judged when they do not."""
        for run in runs:
            self.connection.execute(
                "insert into staging_judged select query_id from queries where coalesce(run, '') = coalesce(?, '') "
                "and query_id not in (select query_id from staging_judged)",
                [run],
            )

    def _judge_queries(self, chain: list[views.View]) -> None:
        """Every view that is kept, from temporary tables of the same names that know these queries alone."""
        for view in chain:
            body = views.definition(view)
            if view.name == "query_scope":
                body = f"select {view.names} from ({body}) as scope where query_id in (select query_id from staging_judged)"
            self.connection.execute(f"create or replace temp table {view.name} as {body}")
        for view in chain:
            if view.kept == views.IN_THE_STORE:
                self.connection.execute(
                    f"delete from kept.{view.name} where query_id in (select query_id from staging_judged)"
                )
                self.connection.execute(
                    f"insert into kept.{view.name} ({view.names}) select {view.names} from temp.{view.name}"
                )
        for view in chain:
            self.connection.execute(f"drop table temp.{view.name}")

    def _sum_up(self, of_runs: list[views.View]) -> None:
        """What is said of the runs of these queries, from the kept views of all their queries."""
        (names,) = (view.names for view in kept.chain() if view.name == "query_scope")
        self.connection.execute(
            f"create or replace temp table query_scope as select {names} from main.query_scope "
            f"where {_OF_THE_RUNS.format(name='query_scope')}"
        )
        for view in of_runs:
            self.connection.execute(f"delete from kept.{view.name} where {_OF_THE_RUNS.format(name=view.name)}")
            self.connection.execute(
                f"insert into kept.{view.name} ({view.names}) select {view.names} "
                f"from ({views.definition(view)}) as found where {_OF_THE_RUNS.format(name='found')}"
            )
        self.connection.execute("drop table temp.query_scope")
