"""What is missing, damaged or at risk in a store, in plain words: the content of `ragtrace doctor`."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import duckdb

from ragtrace.errors import DamagedStoreError
from ragtrace.store import database, files, kept, rescue, views
from ragtrace.store.findings import LEVELS, Finding, moment, some

__all__ = ["LEVELS", "Finding", "examine"]


def examine(path: str | Path) -> list[Finding]:
    """Everything worth knowing about a store and its spool, worst first. Reads only; a file that cannot be opened is a finding.

    Raises:
        StoreNotFoundError, SchemaVersionError, StoreError: as `database.connect`.
    """
    path = Path(path)
    try:
        with contextlib.closing(database.connect(path, read_only=True)) as connection:
            findings = _of_store(connection, path)
    except DamagedStoreError:
        findings = [files.unopenable(path)]
    except duckdb.Error as error:
        if not database.is_damage(error):
            raise
        findings = [files.unopenable(path)]
    findings += files.beside_the_store(path)
    return sorted(findings, key=lambda finding: -LEVELS.index(finding.level))


def _of_store(connection: duckdb.DuckDBPyConnection, path: Path) -> list[Finding]:
    return [
        *files.logs(connection, path),
        *_queries(connection),
        *_stage_runs(connection),
        *_verdicts(connection, path),
        *_losses(connection),
        *files.sizes(connection, path),
    ]


def _queries(connection: duckdb.DuckDBPyConnection) -> list[Finding]:
    total, n_cut, n_interrupted = connection.execute(
        "select count(*), "
        "count(*) filter (where not coalesce(query_flows.is_whole, false) and queries.status <> 'interrupted'), "
        "count(*) filter (where queries.status = 'interrupted') "
        "from queries left join query_flows on queries.query_id = query_flows.query_id"
    ).fetchall()[0]
    findings = [Finding("good", "queries", total, f"{total:,} queries are recorded.")]
    if n_cut:
        findings.append(
            Finding(
                "incomplete",
                "queries",
                n_cut,
                f"{n_cut:,} queries lack rows that were recorded for them: they are judged with that doubt.",
                "What they lack is in a log that is still to come, or in what is damaged or lost above.",
            )
        )
    if n_interrupted:
        findings.append(
            Finding(
                "note",
                "queries",
                n_interrupted,
                f"{n_interrupted:,} queries were interrupted by the end of their process.",
            )
        )
    n_open = connection.execute(
        "select count(distinct stages.query_id) from stages anti join queries on stages.query_id = queries.query_id "
        "where stages.query_id is not null"
    ).fetchall()[0][0]
    if n_open:
        findings.append(Finding("note", "queries", n_open, f"{n_open:,} queries are still running."))
    return findings


def _stage_runs(connection: duckdb.DuckDBPyConnection) -> list[Finding]:
    """What `incomplete` reports of stage runs, over all runs."""
    # Its text, not the view: the file may be of an older ragtrace.
    (gaps,) = (views.definition(view) for view in views.load() if view.name == "stage_gaps")
    select = f"select gap, detail, sum(n) from ({gaps}) as gaps where is_serious group by gap, detail order by all"
    found: dict[str, list[tuple[str, int]]] = {}
    for gap, detail, n in connection.execute(select).fetchall():
        found.setdefault(gap, []).append((detail or "without a name", int(n)))
    findings = []
    for gap, parts in found.items():
        n = sum(n for _, n in parts)
        named = some([detail for detail, _ in parts])
        if gap == "orphan_stages":
            text = f"{_runs(n)} outside every query and document: {named}."
            advice = "Use `ragtrace.carry` where work goes to other threads."
        else:
            text = f"{_runs(n)} not recorded in full: {named}."
            advice = "What could not be read may hold anything: verdicts there are given with bounds."
        findings.append(Finding("incomplete", "queries", n, text, advice))
    return findings


def _runs(n: int) -> str:
    return "1 stage run was" if n == 1 else f"{n:,} stage runs were"


def _verdicts(connection: duckdb.DuckDBPyConnection, path: Path) -> list[Finding]:
    if not kept.is_stale(connection):
        return []
    return [
        Finding(
            "note",
            "verdicts",
            0,
            "The verdicts kept in the file are stale: a merge was cut off or failed before it computed them anew.",
            f"The next report computes them, or `ragtrace merge {path}`; until then a plain DuckDB client finds no verdicts.",
        )
    ]


_WORDS = {
    "queue_full": (
        "the disk did not take them and the queue was full",
        "See why the disk was slow or full; `max_queue_bytes` sets how much may wait.",
    ),
    "unreadable_candidate": ("items of a list were of no known shape", "Give the stage an `extract=`."),
    "unreadable_inventory": ("an inventory held something that is no id", "Give ids as strings or integers."),
    "redactor_error": ("the redactor raised, and the value was left out", "See to the function given as `redact=`."),
    "context_outside_query": (
        "`rt.context` was called outside of every query",
        "Call it inside, or carry the context with `ragtrace.carry`.",
    ),
    "merge_error": ("the merge could not enter them", "Please report this, with the type in brackets."),
    "newer_record": (
        "a newer ragtrace wrote them",
        "Upgrade ragtrace where you merge before you upgrade the services.",
    ),
    "log_shrank": (
        "the log was cut after it had been read; what was written and not merged is gone",
        "Leave the spool folder to ragtrace.",
    ),
}
"""Reason -> what happened, and what to do. Others are said by their name."""

_GONE = {
    "set_aside_queries": "queries",
    "set_aside_candidates": "candidates",
    "set_aside_documents": "documents",
    "set_aside_labels": "labels",
}


def _losses(connection: duckdb.DuckDBPyConnection) -> list[Finding]:
    rows = connection.execute(
        "select losses.reason, losses.n, losses.first_at_ns, losses.last_at_ns, losses.detail, "
        "processes.pid, processes.host, processes.service "
        "from losses left join processes on losses.process_id = processes.process_id "
        "order by losses.n desc, losses.reason, losses.process_id"
    ).fetchall()
    findings = _gone(connection, {row[0]: row for row in rows if row[0] in rescue.REASONS.values()})
    for reason, n, first_ns, last_ns, detail, pid, host, service in rows:
        if reason in rescue.REASONS.values():
            continue
        who = (
            f"Process {pid} on {host}" + (f" ({service})" if service else "")
            if pid is not None
            else "An unknown process"
        )
        what, advice = _WORDS.get(reason, ("", ""))
        why = f"{reason}: {what}" if what else reason
        found = "The merge" if reason in ("merge_error", "newer_record", "log_shrank") and pid is None else who
        findings.append(
            Finding(
                "incomplete",
                "losses",
                n,
                f"{found} could not record {n:,} times from {moment(first_ns)} to {moment(last_ns)}: {why}"
                + (f" ({detail})." if detail else "."),
                advice,
            )
        )
    return findings


def _gone(connection: duckdb.DuckDBPyConnection, rows: dict[str, tuple[Any, ...]]) -> list[Finding]:
    """Rows that the store once held and that no log brought back."""
    if not rows:
        return []
    at_ns = max(row[3] or 0 for row in rows.values())
    detail = next((row[4] for row in rows.values() if row[4]), None)
    where = (
        f"they are in {detail} only"
        if detail
        else "nobody set a file aside: an older copy was put in its place, or rows were deleted"
    )
    counts = [
        f"{rows[reason][1]:,} {word}"
        for reason, word in _GONE.items()
        if reason in rows and reason != "set_aside_labels"
    ]
    findings = []
    if counts:
        n = rows["set_aside_queries"][1] if "set_aside_queries" in rows else 0
        text = f"{', '.join(counts)} that the store held are gone since {moment(at_ns)}; {where}."
        findings.append(
            Finding(
                "incomplete", "database", n, text, "Reports go on without them; a backup of the file still has them."
            )
        )
    if "set_aside_unknown" in rows:
        text = f"A file was set aside at {moment(at_ns)} and how much it held is not known; {where}."
        findings.append(Finding("incomplete", "database", 0, text, "What the logs still held is in the store."))
    has_labels = connection.execute("select count(*) from evidence").fetchall()[0][0]
    if "set_aside_labels" in rows and not has_labels:
        n = rows["set_aside_labels"][1]
        findings.append(
            Finding(
                "incomplete",
                "database",
                n,
                f"{n:,} labels went with the file.",
                "Load the gold file again: `ragtrace gold load`.",
            )
        )
    return findings
