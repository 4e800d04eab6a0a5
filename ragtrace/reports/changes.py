"""What-if as named results and sentences: rows of what `ragtrace.whatif` found. Formats numbers, computes none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ragtrace.reports.run import Result
from ragtrace.reports.words import counted, plural
from ragtrace.whatif.advising import Advice
from ragtrace.whatif.door import Curve, Examined
from ragtrace.whatif.examining import PASSES, UNCHECKED, Point
from ragtrace.whatif.replay import Change

__all__ = ["CHANGES", "as_json", "blocks", "no_advice", "no_changes", "number", "sentence", "what", "what_to_change"]

_SETTING = {
    "run": "varchar",
    "stage": "varchar",
    "kind": "varchar",
    "parameter": "varchar",
    "of_list": "varchar",
    "value": "double",
    "recorded": "double",
}
_PROMISE = {
    "promise": "varchar",
    "passes_to": "varchar",
}
_MEASURES = {
    "candidate_recall": "double",
    "final_context_recall": "double",
    "needs_found": "bigint",
    "needs": "bigint",
    "spans_gained": "bigint",
    "spans_lost": "bigint",
    "tokens": "double",
    "candidates_in_context": "double",
    "candidates_reranked": "double",
    "n_queries": "bigint",
    "n_undetermined": "bigint",
    "why": "varchar",
}
_CHANGE = _SETTING | _PROMISE | _MEASURES
_SET = {"run": "varchar", "change": "varchar"} | _PROMISE | _MEASURES

CHANGES = tuple(_CHANGE)
"""Columns of the block `changes`, one row per setting and value."""

_ADVICE: dict[str, str] = {
    "run": "varchar",
    "change": "varchar",
    "promise": "varchar",
    "spans_gained": "bigint",
    "spans_lost": "bigint",
    "more_tokens": "double",
    "more_reranked": "double",
    "worth": "double",
    "n_queries": "bigint",
    "sentence": "varchar",
}


def blocks(examined: Examined) -> dict[str, Result]:
    """`changes`, `sets` (of several changes), `what_to_change`, `stages` (what can be replayed) and `left_out`."""
    changes = [
        (*_setting(examined, curve, point), *_promised(point), *_measured(point))
        for curve in examined.curves
        for point in curve.points
    ]
    sets = [
        (examined.run, what(examined, point.changes), *_promised(point), *_measured(point)) for point in examined.sets
    ]
    stages = [
        (examined.run, one.label[1], one.label[0], ", ".join(one.parameters), one.n_queries, _state(one), one.why_not)
        for one in examined.stages
    ]
    return {
        "changes": _result(_CHANGE, changes),
        "sets": _result(_SET, sets),
        "what_to_change": what_to_change(examined),
        "stages": Result(
            ("run", "stage", "kind", "settings", "n_queries", "replay", "why_not"),
            ("varchar", "varchar", "varchar", "varchar", "bigint", "varchar", "varchar"),
            stages,
        ),
        "left_out": Result(
            ("run", "cause", "n_queries"),
            ("varchar", "varchar", "bigint"),
            [(examined.run, why, n) for why, n in examined.left_out],
        ),
    }


def what_to_change(examined: Examined, most: int | None = None) -> Result:
    """The advice as rows, the best first."""
    base = examined.base
    rows = [
        (
            examined.run,
            what(examined, advice.point.changes),
            _promise(advice.point),
            len(advice.point.gained),
            len(advice.point.lost),
            _more(advice.point.tokens, base.tokens),
            _more(advice.point.n_reranked, base.n_reranked),
            round(advice.worth, 6),
            advice.point.n_queries,
            sentence(examined, advice),
        )
        for advice in examined.advice[:most]
    ]
    return _result(_ADVICE, rows)


def no_advice() -> Result:
    """The same columns without rows."""
    return _result(_ADVICE, [])


def no_changes() -> Result:
    """The columns of `changes` without rows."""
    return _result(_CHANGE, [])


def as_json(examined: Examined) -> dict[str, Any]:
    """Every block; with each change the spans it gains and loses."""
    found: dict[str, Any] = dict(blocks(examined))
    points = [point for curve in examined.curves for point in curve.points]
    for name, own in (("changes", points), ("sets", examined.sets)):
        found[name] = [
            {**row, "gains": _spans(point.gained), "loses": _spans(point.lost)}
            for row, point in zip(found[name].records(), own, strict=True)
        ]
    head = {"run": examined.run, "n_queries": examined.n_queries, "n_read": examined.n_read}
    recorded = dict(zip(_MEASURES, _measured(examined.base), strict=True))
    return {**head, "n_replayed": examined.n_replayed, "recorded": recorded, **found}


def _spans(spans: frozenset[tuple[int, str]]) -> list[dict[str, Any]]:
    return [{"query_id": query_id, "evidence_id": span} for query_id, span in sorted(spans)]


def _result(columns: Mapping[str, str], rows: Sequence[tuple[object, ...]]) -> Result:
    return Result(tuple(columns), tuple(columns.values()), rows)


def _setting(examined: Examined, curve: Curve, point: Point) -> tuple[object, ...]:
    """By _SETTING."""
    axis, value = curve.axis, point.changes[0].value
    return examined.run, axis.label[1], axis.label[0], axis.parameter, axis.which_name, value, axis.recorded


def _promised(point: Point) -> tuple[object, ...]:
    """By _PROMISE."""
    return point.promise, point.passes_to[1] if point.passes_to else None


def _measured(point: Point) -> tuple[object, ...]:
    """By _MEASURES."""
    return (
        point.candidate_recall,
        point.final_recall,
        point.n_found,
        point.n_needs,
        len(point.gained),
        len(point.lost),
        point.tokens,
        point.n_context,
        point.n_reranked,
        point.n_queries,
        point.n_stuck,
        point.why,
    )


def _state(one: Any) -> str:
    if not one.models:
        return "re-run"
    return "replayable" if one.is_checked else "unchecked"


def _more(then: float | None, now: float | None) -> float | None:
    return None if then is None or now is None else then - now


def _promise(point: Point) -> str:
    if point.promise == PASSES and point.passes_to is not None:
        return f"passes as far as {point.passes_to[1]}"
    return f"{point.promise}: {point.why}" if point.promise == UNCHECKED and point.why else point.promise


def sentence(examined: Examined, advice: Advice) -> str:
    """One change with what it gains, costs and loses, and what is promised."""
    point, base = advice.point, examined.base
    n_gained, n_lost = len(point.gained), len(point.lost)
    if point.n_found is not None and base.n_found is not None and point.passes_to is None:
        gain = f"{point.n_found - base.n_found:,} more of {point.n_needs:,} needs found"
        if point.n_found <= base.n_found:
            gain = f"{counted(n_gained, 'more span')} kept"
    else:
        to = point.passes_to[1] if point.passes_to else "the end"
        gain = f"{counted(n_gained, 'more span')} would reach {to}"
    parts = [gain, *_costs(point, base), f"loses {n_lost:,}"]
    return f"{what(examined, point.changes)}: {', '.join(parts)} — {_promise(point)}"


def _costs(point: Point, base: Point) -> list[str]:
    parts = []
    tokens = _more(point.tokens, base.tokens)
    if tokens is not None:
        parts.append("no more tokens" if abs(tokens) < 0.5 else f"{_signed(tokens, 'token')} a query")
    elif point.n_context is not None and base.n_context is not None and point.n_context != base.n_context:
        parts.append(f"{_signed(point.n_context - base.n_context, 'candidate')} in the context of a query")
    reranked = point.n_reranked - base.n_reranked
    if abs(reranked) >= 0.05:
        parts.append(f"{_signed(reranked, 'candidate')} reranked a query")
    return parts


def _signed(n: float, one: str) -> str:
    amount = f"{abs(n):,.0f}" if abs(n) >= 10 else f"{abs(n):.1f}".removesuffix(".0")
    return f"{amount} {'more' if n > 0 else 'fewer'} {one if amount == '1' else plural(one)}"


def what(examined: Examined, changes: Sequence[Change]) -> str:
    """The changes in words: `rerank: let 12 instead of 8 go on`."""
    axes = {(c.axis.label, c.axis.parameter, c.axis.which): c.axis for c in examined.curves}
    return " and ".join(
        f"{change.label[1]}: {_words(change, axes[change.label, change.parameter, change.which])}" for change in changes
    )


def _words(change: Change, axis: Any) -> str:
    value = number(change.value)
    before = "" if axis.recorded is None else f" instead of {number(axis.recorded)}"
    if change.parameter == "k":
        return f"ask for {value}{before}" if change.label[0] == "retrieve" else f"let {value}{before} go on"
    if change.parameter == "budget_tokens":
        return f"a budget of {value}{before} tokens"
    if change.parameter == "weight" and change.value == 0:
        return f"leave {axis.which_name or f'list {change.which + 1}'} out (weight 0{before})"
    if change.parameter == "weight":
        return f"weight {value}{before} for {axis.which_name or f'list {change.which + 1}'}"
    return f"{change.parameter} {value}{before}"


def number(value: float) -> str:
    """Whole numbers with thousands set off, others to four digits."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.4g}"
