"""What to change: the best value of each setting by spans recovered per cost, and sets of changes where one is not enough."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ragtrace.whatif.examining import EXACT, RERUN, UNCHECKED, Bench, Point
from ragtrace.whatif.grid import Axis
from ragtrace.whatif.replay import Change

__all__ = ["MOST_LOST", "Advice", "advise", "combined", "cost"]

_MOST_IN_A_SET = 3
"""Changes made together. Four would be another pipeline."""

_MOST_SETTINGS = 12
"""Settings tried of one set of stages."""

MOST_LOST = 80
"""Lost spans for which a set is sought."""

_MOST_STEPS = 12
"""Values of a setting that are tried for the nearest that keeps a span beside other changes."""

_Which = tuple[int, ...]
"""Axes by their place."""

_TRUST = {EXACT: 0, UNCHECKED: 1}


class Advice(NamedTuple):
    """One thing to change."""

    point: Point
    n_net: int
    """Spans gained less spans lost."""
    cost: float
    """Tokens read a query, by rerankers and in the final context, more than now; candidates where no tokens are recorded."""
    worth: float
    """Net spans per cost: divided by the cost of a query as a multiple of today's, at least one: saving finds no evidence."""


def cost(point: Point, tokens_per_candidate: float) -> float:
    """What a query costs: tokens of the final context and of what rerankers read; candidates without tokens."""
    context = point.n_context if point.tokens is None else point.tokens
    return (context or 0.0) + point.n_reranked * tokens_per_candidate


def advise(base: Point, points: Iterable[Point]) -> list[Advice]:
    """The best change of each setting (and of each set of settings), the best one first; only those that gain.

    Promised changes come before those that only pass a stage, and a small change before a large one of the same worth.
    """
    per_candidate = (base.tokens or 0.0) / base.n_context if base.tokens and base.n_context else 1.0
    now = cost(base, per_candidate)
    best: dict[tuple[tuple[object, ...], ...], Advice] = {}
    for point in points:
        n_net = len(point.gained) - len(point.lost)
        if n_net <= 0 or point.promise == RERUN or not point.changes:
            continue
        # Where the final context is not known, neither is what it costs: only the reranker's part is.
        then = point if point.final_recall is not None else point._replace(tokens=base.tokens, n_context=base.n_context)
        more = cost(then, per_candidate) - now
        advice = Advice(point, n_net, more, n_net * now / max(now, now + more) if now else float(n_net))
        key = tuple((c.label, c.parameter, c.which) for c in point.changes)
        if key not in best or _order(advice) < _order(best[key]):
            best[key] = advice
    return sorted(best.values(), key=_order)


def _order(advice: Advice) -> tuple[object, ...]:
    point = advice.point
    trust = _TRUST.get(point.promise, 2)
    return (
        trust,
        -round(advice.worth, 9),
        round(advice.cost, 6),
        len(point.changes),
        [(c.label, c.parameter, c.value) for c in point.changes],
    )


def combined(bench: Bench, axes: Sequence[Axis], points: Iterable[Point], most_lost: int = MOST_LOST) -> list[Point]:
    """Sets of changes for spans that no single one keeps: the smallest that does, at the values that these spans need.

    Each set is replayed over all queries, at a few of these values. Empty where every lost span has a single change or
    none helps.
    """
    alone = {span for point in points if point.final_recall is not None for span in point.gained}
    lost = [
        (at, span)
        for at, query in enumerate(bench.queries)
        for span in sorted(bench.lost_now(at))
        if (query.query_id, span) not in alone
    ][:most_lost]
    open_axes = [axis for axis in axes if axis.generous()]
    wanted: dict[_Which, set[tuple[float, ...]]] = {}
    for which, values in _smallest(bench, lost, open_axes):
        wanted.setdefault(which, set()).add(values)
    tried: list[tuple[Change, ...]] = []
    for which, needed in sorted(wanted.items()):
        own = [open_axes[i] for i in which]
        for values in _settings(own, needed):
            tried.append(tuple(axis.change(value) for axis, value in zip(own, values, strict=True)))
    return bench.points(tried)


def _smallest(
    bench: Bench, lost: Sequence[tuple[int, str]], axes: Sequence[Axis]
) -> list[tuple[_Which, tuple[float, ...]]]:
    """For each lost span that some set keeps: which axes, and the values nearest to the recorded ones that keep it."""

    def keeps(asked: Sequence[tuple[int, str, Mapping[int, float]]]) -> list[bool]:
        changes = [(at, tuple(axes[i].change(v) for i, v in values.items())) for at, _, values in asked]
        return [span in kept for (_, span, _), kept in zip(asked, bench.kept(changes), strict=True)]

    found: dict[tuple[int, str], dict[int, float]] = {}
    for size in range(2, _MOST_IN_A_SET + 1):
        asked = [
            (at, span, {i: axes[i].generous()[-1] for i in which})
            for at, span in lost
            if (at, span) not in found
            for which in itertools.combinations(range(len(axes)), size)
        ]
        for (at, span, values), is_kept in zip(asked, keeps(asked), strict=True):
            if is_kept:
                found.setdefault((at, span), dict(values))
    # One setting after the other is drawn back as far as the span allows.
    for place in range(_MOST_IN_A_SET):
        tried: list[tuple[int, str, dict[int, float]]] = []
        for (at, span), values in found.items():
            if place < len(values):
                i = list(values)[place]
                tried += [(at, span, {**values, i: value}) for value in _steps(axes[i])]
        done: set[tuple[int, str]] = set()
        for (at, span, values), is_kept in zip(tried, keeps(tried), strict=True):
            if is_kept and (at, span) not in done:
                done.add((at, span))
                found[at, span] = values
    return [(tuple(values), tuple(values.values())) for values in found.values()]


def _steps(axis: Axis) -> list[float]:
    """The generous values, of many every so-manieth, the furthest among them."""
    values = axis.generous()
    every = -(-len(values) // _MOST_STEPS)
    return [*values[::every], *values[-1:]]


def _settings(axes: Sequence[Axis], needed: Iterable[tuple[float, ...]]) -> list[tuple[float, ...]]:
    """Values of a set to try: each span's own and, rising, those that serve the first n of them."""

    def step(axis: Axis, value: float) -> int:
        return axis.generous().index(value)

    ordered = sorted(needed, key=lambda values: sum(step(a, v) for a, v in zip(axes, values, strict=True)))
    rising: list[tuple[float, ...]] = []
    most: tuple[float, ...] | None = None
    for values in ordered:
        most = (
            values
            if most is None
            else tuple(
                max((a, b), key=lambda v, axis=axis: step(axis, v))  # type: ignore[misc]
                for axis, a, b in zip(axes, most, values, strict=True)
            )
        )
        rising.append(most)
    return list(dict.fromkeys([*rising, *ordered]))[:_MOST_SETTINGS]
