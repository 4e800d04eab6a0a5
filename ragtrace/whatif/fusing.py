"""How lists become one: reciprocal rank fusion and weighted scores, with the ways in which ties are broken."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ragtrace.whatif.models import Facts, Values, limit
from ragtrace.whatif.rows import Node, Row, Undetermined

__all__ = ["Reciprocal", "Weighted"]

_ALIKE = 13
"""Significant digits to which two fused scores are the same: beyond it their order is noise of adding them up."""

_NOISE = 1e-13
"""Share of a score: what sums of a few shares differ by when they are added in another order is 2e-16 each."""


@dataclass(frozen=True, slots=True)
class Reciprocal:
    """Reciprocal rank fusion: the sum of weight / (constant + rank) over the lists.

    Cormack, Clarke and Buettcher, SIGIR 2009; weights as search engines add them.
    """

    rule: str | int | None
    constant: float
    weights: tuple[float, ...] | None
    ties: str
    """first (the one met first), id, or shown (as recorded)."""
    noise: str
    """Scores that differ by no more than the noise of adding up: float (in the order that the noise gives), tie, or
    unknown (the record does not tell these apart)."""
    drops_twins: bool
    """Of candidates with one text the best stays."""
    is_scored: bool
    """The sums are the scores it gives."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """The number that goes on, where it cuts; always the constant and each list's weight."""
        return ("constant", "weight") if self.rule is None else ("k", "constant", "weight")

    def replay(self, node: Node, taken: Sequence[Sequence[Row]], values: Values, facts: Facts) -> list[Row]:
        """The best by summed shares, with these sums as scores."""
        constant = float(values.get("constant", self.constant))
        points: dict[str, float] = {}
        for rows, weight in zip(taken, _weights(self.weights, len(taken), values), strict=True):
            if weight == 0.0:
                continue
            for rank, row in enumerate(rows, 1):
                if constant + rank == 0:
                    raise Undetermined("a rank and the constant add up to nothing")
                points[row.chunk] = points.get(row.chunk, 0.0) + weight / (constant + rank)
        return _fused(self, node, taken, points, values, facts)


@dataclass(frozen=True, slots=True)
class Weighted:
    """Fusion by the weighted sum of scores, each list's scores as they are or brought to 0..1 by its own range."""

    rule: str | int | None
    scaling: str
    """none or minmax."""
    weights: tuple[float, ...] | None
    ties: str
    noise: str
    drops_twins: bool
    is_scored: bool

    @property
    def parameters(self) -> tuple[str, ...]:
        """The number that goes on, where it cuts; each list's weight."""
        return ("weight",) if self.rule is None else ("k", "weight")

    def replay(self, node: Node, taken: Sequence[Sequence[Row]], values: Values, facts: Facts) -> list[Row]:
        """The best by summed scores. Undetermined where a candidate has none."""
        points: dict[str, float] = {}
        for rows, weight in zip(taken, _weights(self.weights, len(taken), values), strict=True):
            scores = [row.score for row in rows if row.score is not None]
            if len(scores) < len(rows):
                raise Undetermined("some candidate has no score")
            low, high = (min(scores), max(scores)) if scores else (0.0, 0.0)
            for row, score in zip(rows, scores, strict=True):
                if self.scaling == "minmax":
                    score = (score - low) / (high - low) if high > low else 1.0
                points[row.chunk] = points.get(row.chunk, 0.0) + weight * score
        return _fused(self, node, taken, points, values, facts)


def _weights(weights: tuple[float, ...] | None, n_lists: int, values: Values) -> list[float]:
    """A weight per list; `weight` in the values is (which list, from 0; its weight)."""
    found = list(weights or (1.0,) * n_lists)
    if len(found) != n_lists:
        raise Undetermined("it took another number of lists than it has weights")
    for at, weight in values.get("weight", {}).items():
        if at < n_lists:
            found[at] = weight
    return found


def _fused(
    model: Reciprocal | Weighted,
    node: Node,
    taken: Sequence[Sequence[Row]],
    points: Mapping[str, float],
    values: Values,
    facts: Facts,
) -> list[Row]:
    cut = limit(model.rule, node, values)
    order = _ordered(model, node, points)
    best = _without_twins(model, order, facts)[:cut]
    # Twins left out make the cut reach further down than it says.
    if model.noise == "unknown" and _has_noise(order if model.drops_twins else order[: len(best) + 1], points):
        ties = _ordered(replace(model, noise="tie"), node, points)
        if _without_twins(model, ties, facts)[:cut] != best:
            raise Undetermined("candidates tie but for the noise of adding up")
    known = node.known
    met = {row.chunk: row for rows in reversed(taken) for row in rows} if any(c not in known for c in best) else known
    found = []
    for chunk in best:
        row = known.get(chunk) or met[chunk]
        found.append(Row(chunk, row.item, points[chunk] if model.is_scored else None, row.tokens))
    return found


def _ordered(model: Reciprocal | Weighted, node: Node, points: Mapping[str, float]) -> list[str]:
    order = list(points)  # in the order in which they were met first
    keys = {chunk: _rounded(value) for chunk, value in points.items()} if model.noise == "tie" else points
    if model.ties == "id":
        order.sort()
    elif model.ties == "shown":
        order.sort(key=lambda chunk: node.places.get(chunk, math.inf))
    order.sort(key=keys.__getitem__, reverse=True)
    if model.ties == "shown":
        _hold_known_ties(order, keys, node.places)
    return order


def _without_twins(model: Reciprocal | Weighted, order: list[str], facts: Facts) -> list[str]:
    if not model.drops_twins:
        return order
    seen: dict[str, str] = {}
    return [chunk for chunk in order if seen.setdefault(facts.texts.get(chunk, chunk), chunk) == chunk]


def _hold_known_ties(order: Sequence[str], keys: Mapping[str, float], place: Mapping[str, int]) -> None:
    """Raises: Undetermined when candidates tie of which the record does not say who goes first."""
    for before, after in itertools.pairwise(order):
        if keys[before] == keys[after] and (before not in place or after not in place):
            raise Undetermined("candidates tie whose order is not recorded")


def _has_noise(order: Sequence[str], points: Mapping[str, float]) -> bool:
    """Two scores differ, but by no more than the noise of adding them up."""
    before = math.inf
    for chunk in order:
        score = points[chunk]
        if score != before and before - score <= abs(score) * _NOISE:
            return True
        before = score
    return False


def _rounded(value: float) -> float:
    return float(f"{value:.{_ALIKE}g}")
