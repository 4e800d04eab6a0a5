"""Which traces a former collector had written: from the logs, then from the store. What comes again of them counts once."""

from __future__ import annotations

import time
from pathlib import Path

from ragtrace import clock
from ragtrace.errors import RagtraceError
from ragtrace.spool import reader
from ragtrace.spool.log import spool_of

__all__ = ["Written", "written_traces"]

Written = dict[int, dict[int, int]]
"""Trace id -> span id -> the query it is in. 0: the query of spans that are not known."""

_WAIT_S = 10.0
_RECENT_NS = 3600 * 10**9
"""What was asked longer ago is not looked up, unless it is in the journal: nobody sends it again."""


def written_traces(store: Path, traces: frozenset[int]) -> Written:
    """The spans of stages and queries that are in a log, or in the store: of the last hour, and of these traces.

    The logs first: what is taken from a log meanwhile is in the store when that is looked into.
    """
    found: Written = {}
    pairs = [(stage, query) for log in reader.logs(spool_of(store)) for stage, query in _in_log(log.path)]
    for (trace_id, span_id), query_id in pairs + _in_store(store, traces):
        found.setdefault(trace_id, {})[span_id] = query_id
        found[trace_id][0] = query_id
    return found


_Pair = tuple[tuple[int, int], int]


def _in_log(path: Path) -> list[_Pair]:
    found: list[_Pair] = []
    whole: set[int] = set()
    offset = 0
    while True:
        try:
            batch = reader.read(path, offset)
        except FileNotFoundError:
            break  # merged and removed meanwhile
        for record in batch.records:
            if record.kind in ("query", "stage"):
                row = record.body if record.kind == "query" else record.body.row
                if row.get("query_id") and row.get("trace_id") and row.get("span_id"):
                    found.append(((int(row["trace_id"], 16), int(row["span_id"], 16)), row["query_id"]))
                    if record.kind == "query":
                        whole.add(row["query_id"])
        if batch.next_offset == offset:
            break
        offset = batch.next_offset
    # Stages without their query were cut by the kill: their trace is written again.
    return [pair for pair in found if pair[1] in whole]


def _in_store(store: Path, traces: frozenset[int]) -> list[_Pair]:
    if not store.exists():
        return []
    from ragtrace.store import database  # only where there is one: the collector itself needs no DuckDB

    parameters = {"names": [f"{trace:032x}" for trace in traces], "since": clock.wall_ns() - _RECENT_NS}
    deadline_s = time.monotonic() + _WAIT_S
    while True:
        try:
            with database.connect(store, read_only=True) as connection:
                rows = connection.execute(_RECENT, parameters).fetchall()
            return [((int(trace_id, 16), int(span_id, 16)), query_id) for trace_id, span_id, query_id in rows]
        except RagtraceError:
            if time.monotonic() > deadline_s:
                # Damaged, or held for long: a trace that is there twice is better than one that is lost.
                return []
            time.sleep(0.1)


_RECENT = """
with asked as (
    select query_id, trace_id, span_id
    from queries
    where started_at_ns > $since or trace_id in (select unnest($names))
)
select trace_id, span_id, query_id from asked where span_id is not null
union all
select s.trace_id, s.span_id, s.query_id
from stages as s
join asked as a on a.query_id = s.query_id
where s.span_id is not null
"""
