"""Asks again for what the queries in a store lost: offline, with a budget, newest queries first."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ragtrace import clock, digest
from ragtrace.errors import ConfigurationError
from ragtrace.gold.placing import place
from ragtrace.probes.asking import Asker, Missed
from ragtrace.probes.faithful import is_faithful
from ragtrace.probes.retrievers import Retriever, Retrievers
from ragtrace.probes.series import Wanted, ask_again, possible
from ragtrace.progress import Progress
from ragtrace.recording.recorder import Recorder
from ragtrace.settings import read
from ragtrace.store import database, runs
from ragtrace.store.merge import merge

if TYPE_CHECKING:
    import duckdb

__all__ = ["Probed", "ask_stored"]

# A name that a redactor changed is none that the index knows.
_REDACTED_NAME = re.compile(r"#[0-9a-f]{12}\Z")


class Probed(NamedTuple):
    """What was asked again."""

    n_targets: int = 0
    """Retrieve runs that missed evidence without proof of why."""
    n_asked: int = 0
    """Of these, how many were asked again."""
    n_calls: int = 0
    """Calls of the retrievers."""
    n_failed: int = 0
    """Of these, calls that raised or gave no candidate list."""
    n_proved: int = 0
    """Evidence spans, per query, whose loss has a proof now and had none before."""
    n_unproved: int = 0
    """Those that still have none."""
    void: Mapping[str, int] = {}
    """Runs whose answers prove nothing, because the index is not known to be the same: by reason."""
    failures: Mapping[str, int] = {}
    """What failed and how often, by a sentence: `dense: search raised NameError: …`."""
    skipped: Mapping[str, int] = {}
    """Runs that were not asked, by reason: not_registered, query_not_captured, filter_not_captured, asked_before."""
    is_cut_short: bool = False
    """The budget was used up first."""


class _Target(NamedTuple):
    missed: Missed
    retriever: Retriever
    wanted: Wanted


def ask_stored(
    store: str | Path,
    retrievers: Retrievers,
    *,
    run: str | None = None,
    n_calls: int | None = None,
    seconds: float | None = None,
    progress: Progress | None = None,
) -> Probed:
    """Ask again for what the store's queries lost without proof, record the answers and merge them.

    Raises: StoreError when the store cannot be opened or merged; ReportError for a run that is not in it;
    ConfigurationError when the service redacted names and no redactor is set here.
    """
    path = Path(store)
    settings = read(
        path, run=None, run_kind=None, service="ragtrace probe", tracer_provider=None, capture_text="none",
        redact=None, max_queue_bytes=None, merge="off",
    )  # fmt: skip
    deadline_ns = None if seconds is None else clock.monotonic_ns() + int(seconds * 1e9)
    merge(path, after=place)
    with database.connect(path, read_only=True) as connection:
        if settings.redact is None and connection.execute(_REDACTED).fetchall():
            raise ConfigurationError(
                "names in this store look redacted, and the retrievers would give them as they are: set RAGTRACE_REDACT to "
                "the service's redactor, module:function (builtins:str when they only look so)"
            )
        if run is not None:
            runs.meant(connection, run)
        before = _unproved(connection, run)
        targets, skipped = _targets(connection, retrievers, run)
    recorder = Recorder(settings)
    asker = Asker(recorder)
    void: Counter[str] = Counter()
    n_asked = 0
    is_cut_short = False
    try:
        for target in targets:
            is_late = deadline_ns is not None and clock.monotonic_ns() >= deadline_ns
            if is_late or (n_calls is not None and asker.n_calls >= n_calls):
                is_cut_short = True
                break
            outcome = ask_again(asker, target.missed, target.retriever, target.wanted)
            n_asked += 1
            if outcome.void is not None:
                void[outcome.void] += 1
            if progress is not None:
                progress("asking again", n_asked, len(targets))
    finally:
        asker.close()
        recorder.close(timeout_s=10.0)
    merge(path, after=place)
    with database.connect(path, read_only=True) as connection:
        after = _unproved(connection, run)
        lost = set(connection.execute(_PROVED, {"run": run}).fetchall())
    return Probed(
        n_targets=len(targets) + sum(skipped.values()),
        n_asked=n_asked,
        n_calls=asker.n_calls,
        n_failed=asker.n_failed,
        n_proved=len(before & lost),
        n_unproved=len(after),
        void=dict(void),
        failures=dict(asker.failures),
        skipped=dict(skipped),
        is_cut_short=is_cut_short,
    )


_REDACTED = """
select 1 from items
where regexp_matches(chunk_id, '#[0-9a-f]{12}$') or regexp_matches(doc_id, '#[0-9a-f]{12}$')
limit 1
"""

_UNPROVED = """
select query_id, evidence_id
from stage_loss
where reason = 'unprobed' and (run = $run or $run is null)
    and (query_id, evidence_id) in (select query_id, evidence_id from probe_targets)
"""


# Those that came in meanwhile are neither here nor in what was unproved before.
_PROVED = """
select query_id, evidence_id
from stage_loss
where verdict = 'lost' and (run = $run or $run is null)
group by query_id, evidence_id
having bool_and(reason <> 'unprobed')
"""


def _unproved(connection: duckdb.DuckDBPyConnection, run: str | None) -> set[tuple[int, str]]:
    return set(connection.execute(_UNPROVED, {"run": run}).fetchall())


_TARGETS = """
select
    query_id, stage_id, name, mode, k, score_kind, is_higher_better, index_name, index_version, filter, query_text,
    query_hash, question, question_hash, is_original_searched, flatten(list(coalesce(chunk_ids, []))) as chunk_ids
from probe_targets
where run = $run or $run is null
group by all
order by max(started_at_ns) desc, query_id, stage_id
"""

_GIVEN = """
select lists.stage_id, list(items.chunk_id) as ids
from lists
join candidates on candidates.list_id = coalesce(lists.same_as_list_id, lists.list_id)
join items using (item)
where lists.role = 'out' and candidates.is_kept is distinct from false
    and lists.stage_id in (select stage_id from probe_targets)
group by lists.stage_id
having bool_and(coalesce(lists.is_complete, true)) and count(items.chunk_id) = count(*)
"""

_EMPTY = """
select stage_id from lists
where role = 'out' and n_candidates = 0 and is_complete is distinct from false
    and stage_id in (select stage_id from probe_targets)
"""

_ASKED_IDS = """
select distinct probe_runs.probed_stage_id, items.chunk_id
from probe_runs
join lists on lists.stage_id = probe_runs.stage_id
join candidates using (list_id)
join items using (item)
where probe_runs.void is null and probe_runs.probe = 'by_id' and lists.role in ('out', 'dropped')
"""

_DONE = """
select probed_stage_id, probe, coalesce(max(depth), 0) as depth
from probe_runs
where void is null and probe <> 'again'
group by probed_stage_id, probe
"""


def _targets(
    connection: duckdb.DuckDBPyConnection, retrievers: Retrievers, run: str | None
) -> tuple[list[_Target], Counter[str]]:
    given = {stage_id: ids for stage_id, ids in connection.execute(_GIVEN).fetchall()}
    given |= {row[0]: [] for row in connection.execute(_EMPTY).fetchall() if row[0] not in given}
    depths: dict[int, dict[str, int]] = {}
    for stage_id, probe, depth in connection.execute(_DONE).fetchall():
        depths.setdefault(stage_id, {})[probe] = depth
    asked_ids: dict[int, set[str]] = defaultdict(set)
    for stage_id, chunk_id in connection.execute(_ASKED_IDS).fetchall():
        asked_ids[stage_id].add(chunk_id)
    found = connection.execute(_TARGETS, {"run": run})
    names = [column[0] for column in found.description or ()]
    targets: list[_Target] = []
    skipped: Counter[str] = Counter()
    for values in found.fetchall():
        row = dict(zip(names, values, strict=True))
        missed = _missed(row)
        retriever = retrievers.find(row["name"])
        if retriever is None:
            skipped["not_registered"] += 1
            continue
        if isinstance(missed, str):
            skipped[missed] += 1
            continue
        ids = [name for name in dict.fromkeys(row["chunk_ids"]) if not _REDACTED_NAME.search(name)]
        # One that may now be asked deeper than it was is asked again, or by ids that a later label is about.
        known = depths.get(missed.stage_id, {})
        is_by_id_done = asked_ids[missed.stage_id].issuperset(ids)
        done = {
            probe for probe, depth in known.items() if (is_by_id_done if probe == "by_id" else depth >= retriever.max_k)
        }
        if possible(missed, retriever, ids) <= done:
            skipped["asked_before"] += 1
            continue
        targets.append(_Target(missed, retriever, Wanted(ids, given.get(missed.stage_id), done)))
    return targets, skipped


def _missed(row: Mapping[str, Any]) -> Missed | str:
    """The run as it can be asked again, or why it cannot."""
    question = _if_true(row["question"], row["question_hash"])
    query = _if_true(row["query_text"], row["query_hash"])
    if query is None and question is not None and row["query_hash"] == row["question_hash"]:
        query = question
    if query is None:
        return "query_not_captured"
    filter = None if row["filter"] is None else json.loads(row["filter"])
    if not is_faithful(filter):
        return "filter_not_captured"
    is_drift_possible = question is not None and question != query and not row["is_original_searched"]
    return Missed(
        query_id=row["query_id"],
        stage_id=row["stage_id"],
        name=row["name"],
        mode=row["mode"],
        k=row["k"],
        query=query,
        original=question if is_drift_possible else None,
        filter=filter,
        score_kind=row["score_kind"],
        is_higher_better=row["is_higher_better"],
        index_name=row["index_name"],
        index_version=row["index_version"],
    )


def _if_true(text: str | None, text_hash: str | None) -> str | None:
    """The text, unless it is not the very one that was asked: redaction changes it, the hash stays."""
    return text if text is not None and text_hash is not None and digest.of_text(text) == text_hash else None
