"""Verdicts in plain words: one sentence from a row of `why_reasons`. Formats numbers, computes none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ragtrace import alignment
from ragtrace.reports import drift

__all__ = ["FINAL_HOW", "REASONS", "change", "headline", "notes", "place", "proof", "reason", "verdict"]

Row = Mapping[str, Any]

FINAL_HOW = {
    "declared": "declared with rt.context",
    "final_stage": "what the stage marked final put out",
    "answer_generate": "what the answering generate took",
    "only_generate": "what the only generate took",
    "inferred": "inferred: the only output that nobody took",
    "unknown": "not known",
}
"""How a final context is known, in plain words."""


def place(row: Row) -> str:
    """Where it was lost: `in ce (rerank)`, `after dense (retrieve)`, or between which places."""
    if row["lost_kind"] is None:
        ends = [end for end in (row["between_first"], row["between_last"]) if end]
        return (
            f"between {ends[0]} and {ends[1]}"
            if len(ends) == 2
            else f"not before {ends[0]}"
            if ends
            else "nowhere known"
        )
    if row["lost_kind"] == row["lost_stage"]:
        return f"{row['lost_at']} {row['lost_kind']}"
    return f"{row['lost_at']} {row['lost_stage']} ({row['lost_kind']})"


def headline(row: Row) -> str:
    """The question's verdict and its recalls, from a row of `why_question`; each with both bounds where they differ."""
    said = [
        f"{name} {_between(row[column], row[f'{column}_high'])}"
        for name, column in (("candidate recall", "candidate_recall"), ("final-context recall", "final_context_recall"))
    ]
    where = f" {place(row)}" if row["verdict"] == "lost" else ""
    told = ""
    if row["verdict"] == "unobserved":
        told = ": what was recorded does not tell whether the evidence arrived"
    return f"{row['verdict'].upper()}{where}{told}\n{', '.join(said)}"


def _between(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "undefined"
    return f"{low:.3f}" if high - low < 0.0005 else f"{low:.3f} to {high:.3f}"


def verdict(row: Row) -> str:
    """One sentence: kept, unobserved, kept apart, or lost where and why."""
    if row["verdict"] == "kept":
        return "kept: it reached the final context"
    if row["verdict"] == "unobserved":
        since = f"; surely there up to: {row['between_first']}" if row["between_first"] else ""
        return f"unobserved: what was recorded does not tell whether it arrived{since}"
    if row["verdict"] != "lost":
        return f"kept apart as {row['verdict']}, counted nowhere" + (f": {row['detail']}" if row["detail"] else "")
    why = reason(row)
    return f"lost {place(row)}" + (f": {why}" if why else "")


def reason(row: Row) -> str:
    """The reason with the numbers that prove it; empty when there is none."""
    told = REASONS.get(row["reason"] or "")
    if told is None:
        return (row["reason"] or "").replace("_", " ")
    said = told if isinstance(told, str) else told(row)
    if row["detail"] and row["reason"] in ("dropped", "filtered", "deduplicated"):
        said += f" ({row['detail']})"
    return said


def proof(row: Row) -> str:
    """What the reason is proved by; empty when nothing proves it, and for spans that are not lost."""
    if row["proof"] == "probe":
        return f"proved by a probe of the same index: {_BY_PROBE.get(row['probe'] or '', row['probe'])}"
    return {"record": "proved by the record", "declared": "proved by what was declared"}.get(row["proof"] or "", "")


def change(row: Row) -> str:
    """The nearest change that gets it through this stage, as far as it is proved; empty when it is not.

    Says nothing of the stages behind it.
    """
    stage = row["stage"]
    if row["reason"] in ("reranked_out", "fused_out", "below_k") and row["rank_after"] is not None:
        goes_on = row["n_out"] if row["n_out"] is not None and row["proof"] != "probe" else row["k"]
        if goes_on is not None and goes_on < row["rank_after"]:
            if row["reason"] != "below_k":
                return f"Nearest change: {stage} lets {row['rank_after']} through instead of {goes_on}."
            asks = f"Nearest change: {stage} asks for {row['rank_after']} instead of {goes_on}"
            if row["proof"] == "probe" and row["probe"] == "exact" and row["mode"] not in _SURE_MODES:
                return f"{asks}, as far as its approximate search then returns what exact search ranks there."
            return f"{asks}."
    if row["reason"] == "below_threshold" and row["score"] is not None:
        return (
            f"Nearest change: a threshold of {_number(row['score'])} in {stage} instead of {_number(row['threshold'])}."
        )
    return ""


def notes(row: Row) -> list[str]:
    """What else the record says of this loss, a clause each; empty when nothing."""
    return [
        _NOTES.get(note, note.replace("_", " ")) for note in (row["notes"] or "").replace(" ", "").split(",") if note
    ]


def _ordinal(n: int) -> str:
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"


def _ranked_out(row: Row) -> str:
    """9th by the reranker, only 8 go on, 0.02 behind."""
    goes_on = row["n_out"] if row["n_out"] is not None else row["k"]
    rank = row["rank_after"] if row["rank_after"] is not None else row["rank_before"]
    parts = []
    if row["rank_after"] is not None:
        parts.append(f"{_ordinal(rank)} by the {_BY_STAGE[row['reason']]}")
    elif rank is not None:
        lists = "one of the lists" if row["reason"] == "fused_out" else "the list"
        parts.append(f"{_ordinal(rank)} in {lists} it took")
    if goes_on is not None and rank is not None and rank <= goes_on:
        # Not by its rank alone: a rule of the stage's own, such as one passage of a text, let others pass it.
        parts.append("yet another one went on" if goes_on == 1 else f"yet not among the {goes_on} that go on")
    elif goes_on is not None:
        parts.append(_go_on(goes_on))
    if row["gap"] is not None:
        parts.append(f"{_number(row['gap'])} behind")
    return ", ".join(parts) or "not among what it let through"


def _go_on(n: int) -> str:
    return "none goes on" if n == 0 else f"only {n} {'goes' if n == 1 else 'go'} on"


def _by_probe(row: Row) -> str:
    """` by exact search`, or nothing where the stage itself gave the rank."""
    return f" by {_BY_PROBE[row['probe']]}" if row["proof"] == "probe" and row["probe"] in ("exact", "deeper") else ""


def _threshold(row: Row) -> str:
    said = f"its score {_number(row['score'])} did not reach the threshold {_number(row['threshold'])}"
    if row["gap"] is not None:
        said += f", {_number(row['gap'])} short"
    if row["proof"] == "probe" and row["rank_after"] is not None and row["k"] is not None:
        said += f"; ranked {_ordinal(row['rank_after'])}{_by_probe(row)}, k was {row['k']}"
    return said


def _over_budget(row: Row) -> str:
    parts = [f"{_ordinal(row['rank_before'])} in line"] if row["rank_before"] is not None else []
    if row["tokens"] is not None:
        parts.append(f"needed {row['tokens']} tokens")
    if row["tokens_left"] is not None:
        parts.append(f"{row['tokens_left']} of {row['budget']} were left")
    elif row["budget"] is not None:
        parts.append(f"the budget is {row['budget']}")
    if not parts or row["budget"] is None:
        parts += [_go_on(row["n_out"])] if row["n_out"] is not None else ["it did not fit"]
    return ", ".join(parts)


def _below_k(row: Row) -> str:
    return f"ranked {_ordinal(row['rank_after'])}{_by_probe(row)}, k was {row['k']}"


def _ann_miss(row: Row) -> str:
    return f"the approximate search missed it: ranked {_ordinal(row['rank_after'])}{_by_probe(row)}, k was {row['k']}"


def _query_drift(row: Row) -> str:
    """The rewrite lost the year 2021: ranked 4th by the question as asked, 83rd by the query used, k was 50."""
    gone = drift.dropped(row["question"] or "", row["query_text"] or "") if row["query_text"] else ""
    who = f"the rewrite {row['cause_stage']}" if row["cause_stage"] not in (None, "rewrite") else "the rewrite"
    parts = [f"ranked {_ordinal(row['rank_original'])} by the question as asked"]
    if row["rank_after"] is not None:
        parts.append(f"{_ordinal(row['rank_after'])} by the query used")
    else:
        parts.append("not found by the query used")
    return f"{who} {f'lost {gone}' if gone else 'drifted'}: {', '.join(parts)}, k was {row['k']}"


def _filtered(row: Row) -> str:
    if row["proof"] != "probe":
        return "the filter did not let it through"
    return f"the filter inside the store kept it out: ranked {_ordinal(row['rank_after'])} without it, k was {row['k']}"


def _not_indexed(row: Row) -> str:
    if row["proof"] == "probe":
        return "the index does not have its chunk: asked for by its id, it is not there"
    return "its chunk was not written to the index"


def _garbled(row: Row) -> str:
    alike = f": {alignment.letters(row['similarity'])}" if row["similarity"] is not None else ""
    return f"the parsed text has the passage only garbled{alike}"


def _unprobed(row: Row) -> str:
    if row["probe"] is None:
        return "the record alone does not prove why"
    if row["lost_kind"] is None:
        return "nothing tells whether the index has it; `ragtrace probe` can ask"
    return f"the record alone does not prove why; `ragtrace probe` can, by {_BY_PROBE.get(row['probe'], row['probe'])}"


def _failed(row: Row) -> str:
    who = row["cause_stage"] or row["stage"] or "the stage"
    return f"{who} failed" + (f" with {row['detail']}" if row["detail"] else "")


def _gap(row: Row) -> str:
    ranked = f", ranked {_ordinal(row['rank_before'])} there" if row["rank_before"] is not None else ""
    return f"it came out{ranked}, and something outside every recorded stage dropped it"


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.4g}"


_BY_PROBE = {
    "exact": "exact search",
    "deeper": "a deeper search",
    "unfiltered": "search without the filter",
    "original_question": "the question as asked",
    "by_id": "its id",
}
"""How each probe asks, as it is said after `by`."""

_SURE_MODES = ("exact", "lexical", "sql")
"""Searches that return what they rank: a deeper one has what stands there."""

_BY_STAGE = {"reranked_out": "reranker", "fused_out": "fusion"}
"""Who gave the rank, by the reason."""

_NOTES = {
    "split": "it was cut into several chunks",
    "cut_in_tie": "the cut fell between equal scores",
    "crowded_by_duplicates": "items with the same text stood before it",
    "same_text_kept": "an item with the same text did arrive",
    "several": "it fell at several places: no single change restores it",
}

REASONS: dict[str, str | Callable[[Row], str]] = {
    "not_run": "no retriever ran for this query, though the run has one",
    "wrong_index": "another index was searched than the one it is in",
    "stage_failed": _failed,
    "not_consumed": "nothing took that stage's output",
    "stale_cache": "the same chunk came back with an older text",
    "untraced_gap": _gap,
    "parse_error": lambda row: "the parser failed" + (f" with {row['detail']}" if row["detail"] else ""),
    "text_missing": "the passage is not in the parsed text",
    "text_garbled": _garbled,
    "not_covered": "no chunk covers it whole",
    "duplicate_id": "another chunk took its id",
    "not_indexed": _not_indexed,
    "not_visible_yet": "its chunk was written after the query had started",
    "filtered": _filtered,
    "below_threshold": _threshold,
    "fused_out": _ranked_out,
    "reranked_out": _ranked_out,
    "deduplicated": "an item with the same text was taken instead",
    "over_budget": _over_budget,
    "cut_inside": "its chunk was cut, and the cut took it away",
    "compressed_away": "compression left it out",
    "document_absent": "the document is not in the source",
    "stale_version": "the source had the newer version, the index did not",
    "dropped": "the stage declared that it dropped it",
    "ann_miss": _ann_miss,
    "below_k": _below_k,
    "query_drift": _query_drift,
    "unprobed": _unprobed,
}
"""What each reason says, by its code: words, or what makes them of a row."""
