"""Words that the terminal and the page share: causes, gaps, names of lines, counts. Formats, computes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["CAUSES", "GAPS", "SCOPES", "STATES", "VOIDS", "counted", "gap", "line_name", "plural", "role"]

CAUSES = {
    "no_gold": "without a gold label",
    "unanswerable": "unanswerable by the documents",
    "evidence_unknown": "evidence unknown",
    "interrupted": "cut off by the end of their process",
    "cache_hit": "answered from a whole-answer cache",
    "ambiguous_question": "text of several labelled questions",
    "no_final_context": "failed or cancelled before a final context",
    "stale": "label older than the text",
    "later": "label newer than the query",
    "deleted": "document deleted before the query",
    "misaligned": "label's quote not at its offsets",
    "no_label": "without a label that can be judged",
    "not_whole": "judged although rows are missing",
    "not_asked": "labelled and not asked",
}
"""Causes of `left_out` in plain words."""

GAPS = {
    "dropped": "dropped by the recorder",
    "set_aside": "gone with a database file that could not be read",
    "damaged_log": "skipped in a damaged log",
    "unread_log": "of the spool not readable by this user",
    "missing_log": "of the spool removed before its end was merged",
    "not_whole": "with rows missing",
    "interrupted": "whose process ended inside them",
    "orphan_stages": "outside every query and document (carry the context into pools with rt.carry)",
    "detached_stages": "ended after their query",
    "capture_error": "not recorded in full",
    "void_probe": "of a retriever counted for nothing",
}
"""Gaps of `incomplete` in plain words."""

VOIDS = {
    "index_version": "the index has another version now",
    "written_since": "the index was written to since",
    "answers_differ": "the same search now answers otherwise: the index has changed, or search= is not what was recorded",
    "unknown_version": "nothing tells that the index is the same: register index_version=, or a search= that answers",
    "failed": "the control question, whether the index is the same, failed",
    "unreadable": "what came back could not be read in full",
}
"""Why the answer of a probe is void, by probe_runs.void."""

SCOPES = {
    "no_gold": 'no gold label belongs to this question; give the passage that has the answer with --quote "…"',
    "unanswerable": "the gold set says that the documents do not answer this question",
    "evidence_unknown": "nobody has labelled where the answer to this question stands",
    "cache_hit": "it was answered from a whole-answer cache; ask for the query that filled it",
    "ambiguous_question": "several labelled questions have this text; record the query with question_id=",
    "interrupted": "its process ended inside it",
    "no_final_context": "it failed or was cancelled before it had a final context",
}
"""Why a whole query is not judged, by query_scope.scope."""

STATES = {
    "stale": "the label is older than the text, which no longer has the passage",
    "later": "the label was made on a text that is newer than this query",
    "deleted": "the document was deleted before this query",
    "misaligned": "the label's quote does not stand at its offsets",
}
"""Why a label is kept apart, by label_states.state."""


def gap(row: Mapping[str, Any]) -> str:
    """A row of `incomplete` in words."""
    detail = VOIDS.get(row["detail"], row["detail"]) if row["gap"] == "void_probe" else row["detail"]
    return f"{counted(row['n'], row['unit'])} {GAPS.get(row['gap'], row['gap'])}{f': {detail}' if detail else ''}"


def counted(n: int, one: str) -> str:
    """A count with its word: 1 query, 2 queries."""
    return f"{n:,} {one if n == 1 else plural(one)}"


def plural(one: str) -> str:
    """The word for several: queries, losses, more spans; of a noun that comes last."""
    if one.endswith("y"):
        return f"{one[:-1]}ies"
    return f"{one}es" if one.endswith("s") else f"{one}s"


def line_name(row: Mapping[str, Any]) -> str:
    """How a line of the waterfall is called: a layer by its name, a stage with its kind."""
    level = "parsed text" if row["kind"] == "layer" and row["level"] == "text" else str(row["level"])
    return level if row["kind"] in ("layer", row["level"]) else f"{level} ({row['kind']})"


def role(evidence: Mapping[str, Any]) -> str:
    """What this piece is needed for, where it is not simply needed."""
    parts = []
    if evidence["n_sets"] > 1:
        parts.append(f"set {evidence['set_no']} of {evidence['n_sets']}, any complete one is enough")
    if evidence["n_spans"] > 1:
        parts.append(f"one of {evidence['n_spans']} spans for need {evidence['need']}, any is enough")
    return f"  ({'; '.join(parts)})" if parts else ""
