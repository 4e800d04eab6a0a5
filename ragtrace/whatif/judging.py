"""What is found in replayed lists, by the very views that judge the recorded ones.

A database in memory holds the pieces of the evidence and, for each replayed case, where they would stand. The
definitions of `queries/views` (`span_ends`, `span_verdicts`, `query_recall`) are run over it as they are: what counts as
found is said there and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import duckdb

from ragtrace.store.views import queries_folder
from ragtrace.whatif.rows import Row

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Case", "Judge", "Verdict"]

_PIECES = """
select
    label_states.query_id,
    label_states.evidence_no,
    needed_evidence.evidence_id,
    needed_evidence.set_no,
    needed_evidence.need,
    label_states.state = 'clock' as is_untimed,
    evidence_cuts.piece,
    evidence_cuts.weight,
    evidence_cuts.total,
    evidence_cuts.item,
    evidence_cuts.role
from label_states
inner join needed_evidence on label_states.evidence_no = needed_evidence.evidence_no
inner join evidence_cuts on label_states.evidence_no = evidence_cuts.evidence_no
where label_states.is_scored and label_states.query_id in (select unnest($ids))
"""

_UNPLACED = """
select items.item
from items
left join item_ranges on items.item = item_ranges.item
where items.doc_id is null and item_ranges.item is null
"""

# What the definitions read besides the pieces: names only, of which a replay needs none.
_TABLES = """
create table place_names (query_id bigint, place_no integer, lost_kind varchar, lost_stage varchar, lost_at varchar, words varchar);
create table retrieve_runs (query_id bigint, stage_id bigint, name varchar, index_name varchar, status varchar);
create table queries (query_id bigint, run varchar);
create table stages (stage_id bigint, kind varchar, name varchar);
create table query_scope (query_id bigint, run varchar, question_id varchar);
"""

_PIECE_ENDS = """
create or replace table piece_ends as
with

cases as materialized (

    select distinct placed.case_no, placed.query_id from placed

),

own as materialized (

    select distinct query_id, evidence_no, piece, weight, total from pieces

),

held as (

    select
        placed.case_no,
        pieces.evidence_no,
        pieces.piece,
        max(case when placed.is_final and placed.is_sure and pieces.role = 'own' and not pieces.is_untimed then 1 else 0 end)
            as is_final,
        max(case when placed.is_final and pieces.role <> 'stands_for' then 1 else 0 end) as may_be_final,
        max(case when placed.is_candidate and placed.is_sure and pieces.role = 'own' and not pieces.is_untimed then 1 else 0 end)
            as is_candidate,
        max(case when placed.is_candidate and pieces.role <> 'stands_for' then 1 else 0 end) as may_be_candidate
    from placed
    inner join pieces on placed.query_id = pieces.query_id and placed.item = pieces.item
    group by placed.case_no, pieces.evidence_no, pieces.piece

),

filled as materialized (

    select
        cases.case_no as query_id,
        own.evidence_no,
        own.piece,
        own.weight,
        own.total,
        coalesce(held.is_final, 0) as is_final,
        coalesce(held.may_be_final, 0) as may_be_final,
        coalesce(held.is_candidate, 0) as is_candidate,
        coalesce(held.may_be_candidate, 0) as may_be_candidate
    from cases
    inner join own on cases.query_id = own.query_id
    left join held on cases.case_no = held.case_no and own.evidence_no = held.evidence_no and own.piece = held.piece

),

readings as (

    select 'sure' as reading, query_id, evidence_no, piece, weight, total, is_final, is_candidate from filled
    union all
    select 'possible' as reading, query_id, evidence_no, piece, weight, total, may_be_final, may_be_candidate from filled

)

select
    readings.query_id,
    readings.evidence_no,
    readings.piece,
    readings.weight,
    readings.total,
    readings.reading,
    cast(case when readings.is_final = 1 then 1000000000 else 4 end as bigint) as end_order,
    cast(null as integer) as end_place_no,
    cast(null as integer) as end_rank,
    cast(null as integer) as end_item,
    cast(null as double) as end_score,
    cast(null as integer) as end_tokens,
    true as is_first,
    readings.is_candidate = 1 as is_candidate,
    readings.is_final = 1 as is_final
from readings
"""

_VERDICTS = """
with

needs as (

    select
        span_verdicts.query_id,
        needed_evidence.set_no,
        needed_evidence.need,
        max(case when span_verdicts.verdict = 'kept' then 1 else 0 end) as is_found
    from span_verdicts
    inner join needed_evidence on span_verdicts.evidence_no = needed_evidence.evidence_no
    group by span_verdicts.query_id, needed_evidence.set_no, needed_evidence.need

),

sets as (

    select needs.query_id, needs.set_no, sum(needs.is_found) as n_found, count(*) as n_needs
    from needs
    group by needs.query_id, needs.set_no

),

best as (

    select
        sets.query_id,
        sets.n_found,
        sets.n_needs,
        row_number() over (partition by sets.query_id order by sets.n_found / sets.n_needs desc, sets.set_no) as place
    from sets

),

spans as (

    select
        span_verdicts.query_id,
        list(needed_evidence.evidence_id order by needed_evidence.evidence_id)
            filter (where span_verdicts.verdict = 'kept') as kept,
        list(needed_evidence.evidence_id order by needed_evidence.evidence_id)
            filter (where span_verdicts.verdict in ('kept', 'unobserved')) as may_be_kept,
        bool_or(span_verdicts.verdict = 'unobserved') as is_open
    from span_verdicts
    inner join needed_evidence on span_verdicts.evidence_no = needed_evidence.evidence_no
    group by span_verdicts.query_id

)

select
    spans.query_id,
    spans.kept,
    spans.may_be_kept,
    spans.is_open,
    query_recall.candidate_recall,
    query_recall.final_context_recall,
    best.n_found,
    best.n_needs
from spans
inner join query_recall on spans.query_id = query_recall.query_id
inner join best on spans.query_id = best.query_id and best.place = 1
"""


_PIECE_COLUMNS = {
    "query_id": "bigint",
    "evidence_no": "bigint",
    "evidence_id": "varchar",
    "set_no": "integer",
    "need": "varchar",
    "is_untimed": "boolean",
    "piece": "bigint",
    "weight": "bigint",
    "total": "bigint",
    "item": "integer",
    "role": "varchar",
}
_SETTING_COLUMNS = {"min_coverage": "double", "clock_skew_ns": "bigint"}
_PLACED_COLUMNS = {
    "case_no": "bigint",
    "query_id": "bigint",
    "item": "integer",
    "is_sure": "boolean",
    "is_final": "boolean",
    "is_candidate": "boolean",
}


class Case(NamedTuple):
    """Two lists of one query, reduced to the items that hold evidence of it: equal cases are judged once."""

    query_id: int
    final: frozenset[tuple[int, bool]]
    """(item, surely whole)."""
    candidates: frozenset[int]


class Verdict(NamedTuple):
    """What the views say of a case."""

    kept: frozenset[str]
    """evidence_ids of the spans found in the final list."""
    may_be_kept: frozenset[str]
    """With those that may be there or not."""
    is_open: bool
    """Some span may be there or not."""
    candidate_recall: float
    final_recall: float
    n_found: int
    """Needs of the best set that are found in the final list."""
    n_needs: int


class Judge:
    """Judges replayed lists of the given queries. Closed like a file."""

    def __init__(self, store: duckdb.DuckDBPyConnection, query_ids: Sequence[int]) -> None:
        pieces = store.execute(_PIECES, {"ids": list(query_ids)}).fetchall()
        settings = store.execute("select min_coverage, clock_skew_ns from setting_values").fetchall()
        self.unplaced = frozenset(item for (item,) in store.execute(_UNPLACED).fetchall())
        self._holders: dict[int, set[int]] = {}
        self._spans: dict[int, set[str]] = {}
        for query_id, _, evidence_id, *_, item, _ in pieces:
            self._holders.setdefault(query_id, set()).add(item)
            self._spans.setdefault(query_id, set()).add(evidence_id)
        self._known: dict[Case, Verdict] = {}
        self._memory = duckdb.connect(":memory:", config={"threads": 1})
        self._memory.execute(_TABLES)
        self._enter("pieces", _PIECE_COLUMNS, pieces)
        self._enter("setting_values", _SETTING_COLUMNS, settings)
        self._memory.execute(
            "create table needed_evidence as select distinct evidence_no, evidence_id, set_no, need from pieces"
        )

    def _enter(self, name: str, columns: Mapping[str, str], rows: Sequence[Sequence[object]]) -> None:
        # Lists side by side: no Arrow, whose import costs more than this.
        given = {column: [row[at] for row in rows] for at, column in enumerate(columns)}
        read = ", ".join(f"unnest(cast(${column} as {kind}[])) as {column}" for column, kind in columns.items())
        self._memory.execute(f"create or replace table {name} as select {read}", given)

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._memory.close()

    def holders(self, query_id: int) -> set[int]:
        """Items that hold some evidence of a query."""
        return self._holders.get(query_id, set())

    def spans(self, query_id: int) -> frozenset[str]:
        """evidence_ids of a query's judged spans."""
        return frozenset(self._spans.get(query_id, ()))

    def case(self, query_id: int, final: Iterable[Row], candidates: Iterable[Row]) -> Case:
        """The lists reduced to what can matter."""
        holders = self.holders(query_id)
        return Case(
            query_id,
            frozenset((row.item, row.is_sure) for row in final if row.item in holders),
            frozenset(row.item for row in candidates if row.item in holders),
        )

    def verdicts(self, cases: Iterable[Case]) -> Mapping[Case, Verdict]:
        """A verdict for each case; queries without judged labels have none."""
        new = [case for case in dict.fromkeys(cases) if case not in self._known and case.query_id in self._holders]
        if new:
            self._judge(new)
        return self._known

    def _judge(self, cases: Sequence[Case]) -> None:
        rows: list[tuple[object, ...]] = []
        for case_no, case in enumerate(cases):
            # A row without an item, so that a case with nothing in it is one too.
            rows.append((case_no, case.query_id, None, False, False, False))
            rows += [(case_no, case.query_id, item, is_sure, True, False) for item, is_sure in case.final]
            rows += [(case_no, case.query_id, item, True, False, True) for item in case.candidates]
        self._enter("placed", _PLACED_COLUMNS, rows)
        self._memory.execute(_PIECE_ENDS)
        self._memory.execute("delete from query_scope")
        self._memory.execute("insert into query_scope select distinct case_no, null, null from placed")
        for name in ("span_ends", "span_verdicts", "query_recall"):
            text = queries_folder().joinpath("views").joinpath(f"{name}.sql").read_text(encoding="utf-8")
            self._memory.execute(f"create or replace table {name} as {text}")
        for case_no, kept, may_be_kept, *told in self._memory.execute(_VERDICTS).fetchall():
            self._known[cases[case_no]] = Verdict(frozenset(kept or ()), frozenset(may_be_kept or ()), *told)
