"""The same pipelines by the model and by the views, side by side: every difference as one readable line."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from ragtrace.gold import loading, placing
from ragtrace.store import database, merge
from tests.model.facts import Store
from tests.model.verdict import Judge, Loss, QuestionResult, Verdict
from tests.property.description import Pipeline
from tests.property.recorded_facts import store_facts
from tests.property.recording import gold_lines, record

Row = dict[str, Any]


def differences(pipelines: Sequence[Pipeline]) -> dict[str, list[str]]:
    """Per question id what the views say otherwise than the model; empty when they agree."""
    store = store_facts(pipelines)
    results = {p.question_id: Judge(store, q).question() for p, q in zip(pipelines, store.queries, strict=True)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "traces.duckdb"
        record(pipelines, path)
        views = _views(path, pipelines)
    found: dict[str, list[str]] = {}
    for question_id, difference in _all(store, results, views):
        found.setdefault(question_id, []).append(difference)
    return found


def differing(pipelines: Sequence[Pipeline]) -> set[str]:
    """Question ids of those that the views judge otherwise than the model."""
    return set(differences(pipelines))


def _views(path: Path, pipelines: Sequence[Pipeline]) -> dict[str, list[Row]]:
    merge.merge(path)
    connection = database.connect(path)
    try:
        loading.load_rows(connection, gold_lines(pipelines), min_coverage=pipelines[0].mode.min_coverage)
        placing.place(connection)
        return {
            name: _rows(connection.execute(f"select * from {name}"))
            for name in ("stage_loss", "loss_share", "question_loss", "query_recall", "recall_summary")
        }
    finally:
        connection.close()


def _rows(found: Any) -> list[Row]:
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def _all(store: Store, results: dict[str, QuestionResult], views: dict[str, list[Row]]) -> Iterator[tuple[str, str]]:
    spans = {evidence_id: (q, row) for q, result in results.items() for evidence_id, row in result.spans.items()}
    seen = {row["evidence_id"]: row for row in views["stage_loss"]}
    for evidence_id, (question_id, expected) in spans.items():
        actual = seen.get(evidence_id)
        if actual is None:
            yield question_id, f"stage_loss lacks {evidence_id}"
            continue
        for difference in _compare(_loss_row(expected.verdict), actual):
            yield question_id, f"stage_loss {evidence_id} {difference}"
        coverage = {
            "candidate_coverage": expected.candidate_coverage,
            "final_coverage": expected.final_coverage,
            "candidate_coverage_possible": expected.possible_candidate_coverage,
            "final_coverage_possible": expected.possible_final_coverage,
        }
        for difference in _compare(coverage, actual):
            yield question_id, f"stage_loss {evidence_id} {difference}"
        shares: dict[tuple[str | None, ...], Fraction] = {}
        for losses, share in expected.shares.items():
            shares[_place(losses)] = shares.get(_place(losses), Fraction(0)) + share
        listed: dict[tuple[str | None, ...], float] = {}
        for row in views["loss_share"]:
            if row["evidence_id"] == evidence_id:
                at = (row["lost_kind"], row["lost_stage"], row["lost_at"])
                listed[at] = listed.get(at, 0.0) + row["share"]
        if set(shares) != set(listed) or any(not _equal(shares[at], listed[at]) for at in shares):
            shown = {at: float(share) for at, share in shares.items()}
            yield question_id, f"loss_share {evidence_id} model {shown} views {listed}"
    for evidence_id in set(seen) - set(spans):
        yield seen[evidence_id]["question_id"], f"stage_loss has {evidence_id} too"
    yield from _questions(results, views)
    yield from _runs(store, results, views)


def _questions(results: dict[str, QuestionResult], views: dict[str, list[Row]]) -> Iterator[tuple[str, str]]:
    losses = {row["question_id"]: row for row in views["question_loss"]}
    recalls = {row["question_id"]: row for row in views["query_recall"]}
    for question_id, result in results.items():
        for name, rows, expected in (
            ("question_loss", losses, _loss_row(result.verdict)),
            ("query_recall", recalls, _recall_row(result)),
        ):
            if question_id not in rows:
                yield question_id, f"{name} lacks it"
                continue
            for difference in _compare(expected, rows[question_id]):
                yield question_id, f"{name} {difference}"


def _runs(store: Store, results: dict[str, QuestionResult], views: dict[str, list[Row]]) -> Iterator[tuple[str, str]]:
    summaries = {row["run"]: row for row in views["recall_summary"]}
    for run in sorted({query.run for query in store.queries}):
        members = [result for result in results.values() if result.query.run == run]
        judged = [result for result in members if _is_judged(result)]
        expected = {
            "n_queries": len(members),
            "n_judged": len(judged),
            "n_unobserved": len(members) - len(judged),
            "candidate_recall": _mean([x.candidate.share for x in judged]),
            "gained": _mean([x.gained for x in judged]),
            "final_context_recall": _mean([x.final.share for x in judged]),
            "candidate_complete": _mean([Fraction(x.candidate.is_complete) for x in judged]),
            "final_complete": _mean([Fraction(x.final.is_complete) for x in judged]),
            "candidate_recall_low": _mean([x.candidate.share for x in members]),
            "candidate_recall_high": _mean([x.possible_candidate.share for x in members]),
            "final_context_recall_low": _mean([x.final.share for x in members]),
            "final_context_recall_high": _mean([x.possible_final.share for x in members]),
        }
        if run not in summaries:
            yield run, "recall_summary lacks the run"
            continue
        for difference in _compare(expected, summaries[run]):
            yield run, f"recall_summary {difference}"


def _is_judged(result: QuestionResult) -> bool:
    """Nothing that was not recorded could change its recalls."""
    return result.candidate == result.possible_candidate and result.final == result.possible_final


def _recall_row(result: QuestionResult) -> Row:
    return {
        "is_judged": _is_judged(result),
        "candidate_recall": result.candidate.share,
        "final_context_recall": result.final.share,
        "gained": result.gained,
        "lost": result.candidate.share + result.gained - result.final.share,
        "candidate_complete": result.candidate.is_complete,
        "final_complete": result.final.is_complete,
        "candidate_recall_high": result.possible_candidate.share,
        "final_context_recall_high": result.possible_final.share,
    }


def _mean(values: Sequence[Fraction]) -> Fraction | None:
    return sum(values, Fraction(0)) / len(values) if values else None


# ---------------------------------------------------------------------- words
def _loss_row(verdict: Verdict) -> Row:
    kind, name, at = _place(verdict.at)
    first = last = None
    if verdict.between is not None:
        first = _words(verdict.between[0], verdict.sure.order < 10)
        last = _words(verdict.between[1], verdict.possible.order < 10) if verdict.verdict == "lost" else None
    return {
        "verdict": verdict.verdict,
        "lost_kind": kind,
        "lost_stage": name,
        "lost_at": at,
        "between_first": first,
        "between_last": last,
    }


def _place(losses: frozenset[Loss]) -> tuple[str | None, str | None, str | None]:
    return (
        _joined({kind for kind, _, _ in losses}),
        _joined({name or kind for kind, name, _ in losses}),
        " or ".join(at for at in ("in", "after") if any(at == x for _, _, x in losses)) or None,
    )


def _words(losses: frozenset[Loss], is_layer: bool) -> str | None:
    if is_layer and all(kind == "retrieve" for kind, _, _ in losses):
        return (
            " or ".join(sorted({at for _, _, at in losses})) + f" {_joined({name or kind for kind, name, _ in losses})}"
        )
    if is_layer:
        return _joined({kind for kind, _, _ in losses})
    return _joined({f"{at} {name}" for _, name, at in losses})


def _joined(words: set[str]) -> str | None:
    return " or ".join(sorted(words)) or None


def _compare(expected: Row, actual: Row) -> Iterator[str]:
    for name, value in expected.items():
        if not _equal(value, actual.get(name)):
            shown = float(value) if isinstance(value, Fraction) else value
            yield f"{name}: model {shown!r} views {actual.get(name)!r}"


def _equal(expected: Any, actual: Any) -> bool:
    if expected is None or actual is None or isinstance(expected, str):
        return bool(expected == actual)
    return math.isclose(float(expected), float(actual), abs_tol=1e-9)
