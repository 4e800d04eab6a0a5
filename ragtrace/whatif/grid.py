"""Which values are tried: a few around the recorded one, and every value at which some evidence gets through or not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ragtrace.whatif.fitting import Fitted
from ragtrace.whatif.models import Budget, joined
from ragtrace.whatif.replay import Change
from ragtrace.whatif.rows import Label, Node, Query, Row, Undetermined

__all__ = ["Axis", "axes"]

_ALL_UP_TO = 40
"""Up to here every k is tried; past it those at which evidence stands, and a few between."""

_SHARES = (0.25, 0.5, 0.75, 0.9, 1.1, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0)
"""Of the recorded budget."""

_CONSTANTS = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 40.0, 60.0, 80.0, 100.0, 200.0, 500.0, 1000.0)

_WEIGHTS = (0.0, 0.25, 0.5, 2.0, 4.0)
"""Times the recorded weight. Of two lists only less weight is tried: it is more weight of the other."""


class Axis(NamedTuple):
    """One setting of one stage and the values it is tried at."""

    label: Label
    parameter: str
    which: int
    """weight: of which list, from 0."""
    which_name: str | None
    """weight: who put that list out."""
    recorded: float | None
    """None where it differs between queries."""
    values: tuple[float, ...]
    """Rising; the recorded one is among them."""

    def change(self, value: float) -> Change:
        """This setting at a value."""
        return Change(self.label, self.parameter, value, self.which)

    def generous(self) -> list[float]:
        """Values that let more through than the recorded one, the nearest first; empty where none does for sure."""
        if self.recorded is None or self.parameter not in ("k", "budget_tokens", "threshold"):
            return []
        if self.parameter == "threshold" and self.which:
            return [value for value in reversed(self.values) if value < self.recorded]
        return [value for value in self.values if value > self.recorded]


def axes(
    queries: Sequence[Query],
    fitted: Mapping[Label, Fitted],
    holders: Mapping[int, set[int]],
    most_values: int,
) -> list[Axis]:
    """Every setting that can be replayed, in the order of the way, with its values, at most so many.

    `holders` names per query the items that hold evidence of it.
    """
    runs: dict[Label, list[tuple[Node, set[int]]]] = {}
    depths: dict[Label, int] = {}
    for query in queries:
        for node in query.nodes.values():
            runs.setdefault(node.label, []).append((node, holders.get(query.query_id, set())))
            depths[node.label] = max(depths.get(node.label, 0), node.depth)
    found = []
    for label in sorted(runs, key=lambda label: (depths[label], label)):
        for parameter in fitted[label].parameters:
            if parameter == "weight":
                found += _weights(label, runs[label], queries, fitted[label])
                continue
            axis = _axis(label, parameter, runs[label], fitted[label], most_values)
            if axis is not None:
                found.append(axis)
    return found


def _axis(
    label: Label, parameter: str, runs: Sequence[tuple[Node, set[int]]], fitted: Fitted, most_values: int
) -> Axis | None:
    recorded, values = _OF_PARAMETER[parameter](runs, fitted)
    own = set(values) if recorded is None else {*values, recorded}
    if len(own) < 2:
        return None
    # A threshold on a score of which more is better lets more through when it sinks.
    sinks = int(parameter == "threshold" and runs[0][0].is_higher_better)
    return Axis(label, parameter, sinks, None, recorded, _thinned(own, recorded, most_values))


def _thinned(values: Iterable[float], recorded: float | None, most: int) -> tuple[float, ...]:
    ordered = sorted(values)
    if len(ordered) > most:
        kept = {ordered[round(i * (len(ordered) - 1) / (most - 1))] for i in range(most)}
        ordered = sorted(kept if recorded is None else {*kept, recorded})
    return tuple(ordered)


def _common(values: Iterable[float | None]) -> float | None:
    """The one value of all; None when they differ or there is none."""
    counted = Counter(value for value in values if value is not None)
    return next(iter(counted)) if len(counted) == 1 else None


def _ks(runs: Sequence[tuple[Node, set[int]]], fitted: Fitted) -> tuple[float | None, set[float]]:
    recorded = _common(node.k for node, _ in runs)
    rules = [rule for model in fitted.models if isinstance(rule := getattr(model, "rule", None), int)]
    if recorded is None and rules:
        recorded = float(rules[0])
    if recorded is not None and fitted.label[0] == "fuse" and "k" not in _rules(fitted):
        recorded = float(rules[0]) if rules else None
    longest = 0
    standing: set[float] = set()
    for node, holders in runs:
        order = _uncut(node, fitted)
        longest = max(longest, len(order))
        standing.update(float(at) for at, row in enumerate(order, 1) if row.item in holders)
    ks = {float(k) for k in range(1, min(longest, _ALL_UP_TO) + 1)} | standing
    k = float(_ALL_UP_TO)
    while k < longest:
        ks.add(float(int(k)))
        k *= 1.25
    return recorded, ks | {float(longest)} if longest else set()


def _rules(fitted: Fitted) -> set[object]:
    return {getattr(model, "rule", None) for model in fitted.models}


def _uncut(node: Node, fitted: Fitted) -> Sequence[Row]:
    """What the stage ranks, best first, losers too."""
    if not node.inputs:
        return node.shown
    try:
        return fitted.replay(node, node.taken, {"k": 1_000_000})
    except Undetermined:
        return node.shown


def _thresholds(runs: Sequence[tuple[Node, set[int]]], fitted: Fitted) -> tuple[float | None, set[float]]:
    values: set[float] = set()
    every: list[float] = []
    for node, holders in runs:
        rows = [*node.shown, *joined(node.taken)] if node.taken else node.shown
        scored = [(row.score, row.item in holders) for row in rows if row.score is not None]
        values.update(score for score, is_holder in scored if is_holder)
        every += [score for score, _ in scored]
    every.sort()
    values.update(every[i * (len(every) - 1) // 10] for i in range(11) if every)
    return _common(node.threshold for node, _ in runs), values


def _budgets(runs: Sequence[tuple[Node, set[int]]], fitted: Fitted) -> tuple[float | None, set[float]]:
    recorded = _common(node.budget_tokens for node, _ in runs)
    values: set[float] = set() if recorded is None else {float(int(recorded * share)) for share in _SHARES}
    # Where the record does not tell whether the sum may reach the budget, one more is enough for both.
    spare = int(any(isinstance(model, Budget) and model.is_strict for model in fitted.models))
    for node, holders in runs:
        used = 0
        for row in joined(node.taken):
            tokens = fitted.facts.tokens.get(row.item, row.tokens)
            if tokens is None:
                break
            used += tokens
            if row.item in holders:
                values.add(float(used + spare))
    return recorded, values


def _constants(runs: Sequence[tuple[Node, set[int]]], fitted: Fitted) -> tuple[float | None, set[float]]:
    return _common(getattr(model, "constant", None) for model in fitted.models), set(_CONSTANTS)


_OF_PARAMETER = {"k": _ks, "threshold": _thresholds, "budget_tokens": _budgets, "constant": _constants}


def _weights(
    label: Label, runs: Sequence[tuple[Node, set[int]]], queries: Sequence[Query], fitted: Fitted
) -> list[Axis]:
    n_lists = {len(node.taken) for node, _ in runs}
    if len(n_lists) != 1:
        return []
    names = _names(label, queries)
    found = []
    n = n_lists.pop()
    for at in range(n):
        recorded = _common((getattr(model, "weights", None) or {at: 1.0})[at] for model in fitted.models)
        if recorded:
            values = sorted({recorded, *(recorded * times for times in _WEIGHTS if times < 1 or n > 2)})
            found.append(Axis(label, "weight", at, names.get(at), recorded, tuple(values)))
    return found


def _names(label: Label, queries: Sequence[Query]) -> dict[int, str]:
    for query in queries:
        for node in query.nodes.values():
            if node.label == label:
                return {at: query.nodes[key].label[1] for at, key in enumerate(node.inputs)}
    return {}
