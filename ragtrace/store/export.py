"""The store's content for other tools: every table as Parquet, a stage as a TREC run with qrels, final contexts as JSON lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb

from ragtrace import schema
from ragtrace.errors import StoreError
from ragtrace.store.tables import literal

_ESCAPED = re.compile(r"\s|%[0-9A-Fa-f]{2}")
"""What a name must not have to be written as it is: a blank, or what would be read as an escaped one."""

__all__ = ["contexts", "parquet", "trec_qrels", "trec_run"]


def parquet(connection: duckdb.DuckDBPyConnection, folder: str | Path) -> dict[str, int]:
    """Write every stored table to `<folder>/<table>.parquet`; the number of rows of each.

    Raises: StoreError when the folder cannot be written.
    """
    folder = Path(folder)
    counts = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for table in schema.TABLES:
            columns = ", ".join(f'"{column.name}"' for column in table.columns)
            target = literal(str(folder / f"{table.name}.parquet"))
            [(counts[table.name],)] = connection.execute(
                f"copy (select {columns} from {table.name}) to {target} (format parquet, compression zstd)"
            ).fetchall()
    except (OSError, duckdb.IOException) as error:
        raise StoreError(f"{folder} cannot be written ({error}): give another folder.", path=str(folder)) from error
    return counts


_RUN = """
with
runs as (
    select query_id, stage_id, start_no from stages where name = $stage and probe is null and not coalesce(is_aside, false)
),
asked as (
    -- A question asked again within a run: two lists under one topic would be one to a TREC tool.
    select
        q.query_id, q.run, coalesce(s.question_id, q.question_id, cast(q.query_id as varchar)) as topic,
        row_number() over (
            partition by q.run, coalesce(s.question_id, q.question_id, cast(q.query_id as varchar))
            order by q.started_at_ns desc, q.query_id desc
        ) = 1 as is_newest
    from queries as q
    left join query_scope as s on s.query_id = q.query_id
    where ($run is null or q.run = $run) and q.query_id in (select query_id from runs)
),
outputs as (
    select r.query_id, r.start_no, coalesce(l.same_as_list_id, l.list_id) as list_id
    from runs as r
    join lists as l on l.stage_id = r.stage_id and l.role = 'out'
),
found as (
    -- A stage that ran in several rounds: its lists one behind the other, each item at its first place.
    select o.query_id, coalesce(i.chunk_id, 'item-' || i.item) as chunk_id, min((o.start_no, c.rank)) as at
    from outputs as o
    join candidates as c on c.list_id = o.list_id
    join items as i on i.item = c.item
    where coalesce(c.is_kept, true)
    group by o.query_id, coalesce(i.chunk_id, 'item-' || i.item)
)
select
    a.topic, f.chunk_id,
    row_number() over (partition by f.query_id order by f.at, f.chunk_id) as place, a.run
from found as f
join asked as a on a.query_id = f.query_id
where a.is_newest
order by topic, f.query_id, place
"""

_QRELS = """
with
covered as (
    select c.item, n.evidence_id
    from item_covers as c
    join needed_evidence as n on n.evidence_no = c.evidence_no
    where c.role = 'own' and c.to_at > c.from_at
)
select e.question_id as topic, i.chunk_id, max(cast(ceil(e.grade) as integer)) as grade
from covered as c
join items as i on i.item = c.item
join evidence as e on e.evidence_id = c.evidence_id
where i.chunk_id is not null
group by e.question_id, i.chunk_id
order by e.question_id, i.chunk_id
"""


def trec_run(connection: duckdb.DuckDBPyConnection, stage: str, path: str | Path, run: str | None = None) -> int:
    """Write the output of a stage as a TREC run (topic Q0 item rank score tag); the number of lines.

    The topic is the id of the labelled question, else the query id; of a question asked more than once in a run the
    newest query stands. The score is the negative rank: a recorded score may be a distance, and
    TREC tools sort by score. Blanks in names are written as in addresses (`a b` is `a%20b`), so that no two names
    become one.

    Raises: StoreError when no stage of this name was recorded, or the file cannot be written.
    """
    rows = connection.execute(_RUN, {"stage": stage, "run": run}).fetchall()
    if not rows:
        names = [
            row[0]
            for row in connection.execute(
                "select distinct name from stages where query_id is not null order by name"
            ).fetchall()
        ]
        raise StoreError(
            f"No output of a stage named {stage!r} is recorded; there are: {', '.join(names) or 'none'}.",
            stage=stage,
            stages=names,
        )
    lines = (
        f"{_word(topic)} Q0 {_word(item)} {rank} {-rank} {_word(tag or 'ragtrace')}" for topic, item, rank, tag in rows
    )
    return _write(path, lines)


def trec_qrels(connection: duckdb.DuckDBPyConnection, path: str | Path) -> int:
    """Write which chunks hold some of the evidence of which question (topic 0 item grade); the number of lines."""
    rows = connection.execute(_QRELS).fetchall()
    return _write(path, (f"{_word(topic)} 0 {_word(item)} {grade}" for topic, item, grade in rows))


_CONTEXTS = """
with
context_lists as (
    select p.query_id, l.list_id
    from places as p
    join place_lists as l on l.query_id = p.query_id and l.place_no = p.place_no
    where p.side = 'context'
),
ranges as (
    select item, list({'start': start_at, 'end': end_at} order by start_at) as ranges
    from item_ranges
    where role = 'own'
    group by item
),
held as (
    select
        x.query_id,
        list(
            {'rank': c.rank, 'id': i.chunk_id, 'doc_id': i.doc_id, 'score': c.score, 'tokens': c.tokens, 'ranges': r.ranges}
            order by x.list_id, c.rank
        ) as context
    from context_lists as x
    join candidates as c on c.list_id = x.list_id
    join items as i on i.item = c.item
    left join ranges as r on r.item = c.item
    group by x.query_id
)
select q.query_id, q.question_id, q.question, q.run, q.status, f.final_how, h.context
from queries as q
left join query_flows as f on f.query_id = q.query_id
left join held as h on h.query_id = q.query_id
where $run is null or q.run = $run
order by q.query_id
"""


def contexts(connection: duckdb.DuckDBPyConnection, path: str | Path, run: str | None = None) -> int:
    """Write one JSON object per query with its final context in rank order (null where it is unknown); the number of lines.

    Raises: StoreError when the file cannot be written.
    """
    names = ("query_id", "question_id", "question", "run", "status", "final_how", "context")
    rows = connection.execute(_CONTEXTS, {"run": run}).fetchall()
    return _write(path, (json.dumps(_record(names, row), ensure_ascii=False) for row in rows))


def _record(names: tuple[str, ...], row: tuple[Any, ...]) -> dict[str, Any]:
    record = dict(zip(names, row, strict=True))
    if record["context"] is None and record["final_how"] not in (None, "unknown"):
        record["context"] = []
    return record


def _word(text: object) -> str:
    """A name as one word: as it is where it can be, else with blanks and % as in addresses, which no two names share."""
    said = str(text)
    if _ESCAPED.search(said):
        said = "".join(quote(char, safe="") if char.isspace() or char == "%" else char for char in said)
    return said or "%00"


def _write(path: str | Path, lines: Iterator[str]) -> int:
    n = 0
    try:
        with open(path, "w", encoding="utf-8") as file:
            for line in lines:
                file.write(line + "\n")
                n += 1
    except OSError as error:
        raise StoreError(f"{path} cannot be written ({error.strerror}): give another path.", path=str(path)) from error
    return n
