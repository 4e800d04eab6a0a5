"""Every question of a run as the page holds it: a line in the list, and the details behind it, as compact values.

The details say what `ragtrace why` says, from the same statements, asked once for all queries.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ragtrace.reports import question, sentences
from ragtrace.reports.render import plain
from ragtrace.reports.run import Result, run
from ragtrace.reports.words import SCOPES, STATES, role

if TYPE_CHECKING:
    import duckdb

__all__ = ["BLOCK", "LIST_COLUMNS", "PLACE_COLUMNS", "blocks", "lines"]

_SCOPES = {"scored": "no label to judge", "no_gold": "no label"}

BLOCK = 100
"""Questions whose details are unpacked together."""

LIST_COLUMNS = ("question", "question_id", "query_id", "kind", "verdict", "place", "reasons", "candidates", "final")

PLACE_COLUMNS = (
    "kind", "stage", "status", "is_on_path", "n_in", "n_out", "rank_in", "rank_out", "is_kept", "score", "chunk_id",
    "coverage_in", "coverage", "coverage_possible", "is_complete", "lost_here",
)  # fmt: skip

_LONGEST = 600
"""Characters of a passage that are shown; the whole of it stands in the document."""


def lines(questions: Result) -> list[list[Any]]:
    """The list, a row a query in its order, by LIST_COLUMNS; ids as text, since JavaScript rounds 63 bits."""
    return [
        [
            row["question"],
            row["question_id"],
            str(row["query_id"]),
            row["kind"],
            row["verdict"] or _SCOPES.get(row["scope"], row["scope"]),
            sentences.place(row) if row["verdict"] == "lost" else None,
            row["reasons"],
            _rounded(row["candidate_recall"]),
            _rounded(row["final_context_recall"]),
        ]
        for row in questions.records()
    ]


def blocks(connection: duckdb.DuckDBPyConnection, questions: Result, run_name: str | None) -> Iterator[list[Any]]:
    """The details of BLOCK queries of a run at a time, in the order of the list; plain values only."""
    verdicts = _by_query(run(connection, "why_question", run=run_name))
    evidence = _by_query(run(connection, "why_evidence", run=run_name))
    reasons = _by_query(run(connection, "why_reasons", run=run_name))
    places = _by_query(run(connection, "why_places", run=run_name))
    texts = _by_query(run(connection, "why_text", run=run_name))
    rows = questions.records()
    for start in range(0, len(rows), BLOCK):
        yield [
            _details(
                row,
                next(iter(verdicts[row["query_id"]]), None),
                evidence[row["query_id"]],
                reasons[row["query_id"]],
                places[row["query_id"]],
                texts[row["query_id"]],
            )
            for row in rows[start : start + BLOCK]
        ]


def _by_query(result: Result) -> Mapping[int, list[dict[str, Any]]]:
    found: defaultdict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in result.records():
        found[row["query_id"]].append(row)
    return found


def _details(
    row: dict[str, Any],
    verdict: dict[str, Any] | None,
    evidence: Sequence[dict[str, Any]],
    reasons: Sequence[dict[str, Any]],
    places: Sequence[dict[str, Any]],
    texts: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    if verdict is None:
        said = SCOPES.get(row["scope"], "none of its labels can be judged on this query")
        head = f"Not judged: {said}."
    else:
        head = f"The final context is {sentences.FINAL_HOW[verdict['final_how']]}."
        if verdict["verdict"] == "unobserved":
            bounds = sentences.headline(verdict).split("\n")[1]
            head = f"What was recorded does not tell whether the evidence arrived: {bounds}. {head}"
        if not verdict["is_whole"]:
            head += " Rows of this query are missing."
    return {
        "at": plain(row["started_at"]),
        "status": row["status"],
        "head": head,
        "evidence": [
            _evidence(
                piece,
                [line for line in reasons if line["evidence_id"] == piece["evidence_id"]],
                [line for line in places if line["evidence_id"] == piece["evidence_id"]],
                [line for line in texts if line["evidence_id"] == piece["evidence_id"]],
            )
            for piece in evidence
        ],
    }


def _evidence(
    piece: dict[str, Any],
    reasons: Sequence[dict[str, Any]],
    places: Sequence[dict[str, Any]],
    texts: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    text = texts[0] if texts else None
    return {
        "id": piece["evidence_id"],
        "level": piece["level"],
        "doc": piece["doc_id"] or piece["chunk_id"],
        "at": [text["start_at"], text["end_at"]] if text else None,
        "role": role(piece),
        "before": text["before"] if text else None,
        "passage": _short(text["passage"] if text else piece["span_text"]),
        "after": text["after"] if text else None,
        "state": STATES.get(piece["state"] or ""),
        "label": piece["label_note"],
        "places": [[_rounded(line[name]) for name in PLACE_COLUMNS] for line in places],
        "told": [
            [
                said,
                line["verdict"],
                line["stage"],
                sentences.proof(line),
                sentences.notes(line),
                sentences.change(line),
            ]
            for said, line in question.told(reasons)
        ],
    }


def _short(text: str | None) -> str | None:
    return text if text is None or len(text) <= _LONGEST else f"{text[: _LONGEST - 100]} … {text[-80:]}"


def _rounded(value: Any) -> Any:
    """Five digits, and null for what JSON has no word for."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.5g}") if math.isfinite(value) else None
