"""How stages choose: small exact models of cuts, thresholds, expansions and budgets. Fusions are in `fusing`.

A model takes the lists a stage took and gives the list it would put out. Which models fit a stage is found by replaying
the record (`fitting`). A setting that is replayed stands in `values` under the parameter's name; without one the
recorded setting holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ragtrace.whatif.rows import Node, Row, Undetermined

__all__ = [
    "Budget",
    "Cut",
    "Facts",
    "Kept",
    "Mapped",
    "Model",
    "Ranked",
    "Same",
    "Searched",
    "Threshold",
    "Values",
    "joined",
    "limit",
]

Values = Mapping[str, Any]


@dataclass(slots=True)
class Facts:
    """What the run's other lists say of the candidates of one stage."""

    tokens: Mapping[int, int] = field(default_factory=dict)
    """By item; only where every list agrees."""
    became: Mapping[int, Row] = field(default_factory=dict)
    """Expansions: by the item that went in, the row that came out; only where every query agrees."""
    verdicts: Mapping[str, bool] = field(default_factory=dict)
    """Filters: by chunk, whether it was let through; empty where some chunk had both."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """By chunk, the hash of its text."""


class Model(Protocol):
    """One way a stage may choose."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """The settings it can be replayed at."""
        ...

    def replay(self, node: Node, taken: Sequence[Sequence[Row]], values: Values, facts: Facts) -> list[Row]:
        """What the stage would put out. Raises: Undetermined where the record does not say."""
        ...


def joined(taken: Sequence[Sequence[Row]]) -> list[Row]:
    """All lists one after the other, each chunk where it stands first."""
    if len(taken) == 1:
        return list(taken[0])
    found: dict[str, Row] = {}
    for rows in taken:
        for row in rows:
            found.setdefault(row.chunk, row)
    return list(found.values())


def limit(rule: str | int | None, node: Node, values: Values) -> int | None:
    """How many go on: what is tried, else as the rule says: k as recorded, a fixed number, or all."""
    if values.get("k") is not None:
        return int(values["k"])
    return node.k if rule == "k" else rule if isinstance(rule, int) else None


def _delivered(node: Node, rows: Sequence[Row]) -> list[Row]:
    """The rows as this stage put them out where it did: it may deliver another place, score or count of tokens."""
    own = node.delivered
    return [own.get(row.chunk, row) for row in rows]


@dataclass(frozen=True, slots=True)
class Same:
    """Puts out what it takes."""

    parameters = ()

    def replay(self, node: Node, taken: Sequence[Sequence[Row]], values: Values, facts: Facts) -> list[Row]:
        """The lists, one after the other."""
        return _delivered(node, joined(taken))


@dataclass(frozen=True, slots=True)
class Cut:
    """Lets the first so many of what it takes go on, in the order it takes them."""

    rule: str | int | None
    parameters = ("k",)

    def replay(self, node: Node, taken: Sequence[Sequence[Row]], values: Values, facts: Facts) -> list[Row]:
        """The first ones."""
        return _delivered(node, joined(taken)[: limit(self.rule, node, values)])


@dataclass(frozen=True, slots=True)
class Searched:
    """A retriever: the first k of what it found, as far down as it shows what it found; a threshold where it has one."""

    has_threshold: bool = False

    @property
    def parameters(self) -> tuple[str, ...]:
        """Always k."""
        return ("k", "threshold") if self.has_threshold else ("k",)

    def replay(self, node: Node, taken: Sequence[Sequence[Row]], values: Values, facts: Facts) -> list[Row]:
        """The first k of what it showed."""
        rows = list(node.shown)
        shows_all = len(node.shown) > len(node.out)
        n_asked = node.k
        if self.has_threshold:
            threshold = values.get("threshold", node.threshold)
            looser = node.is_higher_better == (threshold < node.threshold) and threshold != node.threshold
            if looser and not shows_all:
                raise Undetermined("what it found behind the threshold is not recorded")
            rows = [row for row in rows if _reaches(row.score, threshold, node.is_higher_better, False)]
        k = values.get("k", n_asked)
        if k is None:
            return rows if self.has_threshold else list(node.out)
        is_exhausted = n_asked is not None and len(node.shown) < n_asked and not self.has_threshold
        if k > len(node.shown) and k > (n_asked or 0) and not is_exhausted:
            raise Undetermined("what it would have found further down is not recorded")
        return rows[: int(k)]


def _reaches(score: float | None, threshold: float, is_higher_better: bool, is_strict: bool) -> bool:
    if score is None:
        return False
    if is_strict:
        return score > threshold if is_higher_better else score < threshold
    return score >= threshold if is_higher_better else score <= threshold


@dataclass(frozen=True, slots=True)
class Ranked:
    """Orders what it takes by the score it gives each, and lets the best go on. Each score is the candidate's own.

    Without scores the order shown holds, for the very candidates that were recorded together.
    """

    rule: str | int | None
    ties: str
    """input (the order taken), id, or shown (as recorded)."""
    is_scored: bool
    threshold: str | None = None
    """least (a score that equals it passes) or above."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """The number that goes on, where it cuts; the threshold where there is one."""
        cut = () if self.rule is None else ("k",)
        return (*cut, "threshold") if self.threshold else cut

    def replay(self, node: Node, taken: Sequence[Sequence[Row]], values: Values, facts: Facts) -> list[Row]:
        """The best ones. Undetermined for candidates it did not score."""
        rows = joined(taken)
        places = node.places
        if any(row.chunk not in places for row in rows):
            raise Undetermined("it never scored some of what it would get")
        shown = node.shown
        if self.is_scored:
            if any(shown[places[row.chunk]].score is None for row in rows):
                raise Undetermined("it gave no score to some of what it took")
            if self.ties == "id":
                rows.sort(key=lambda row: row.chunk)
            elif self.ties == "shown":
                rows.sort(key=lambda row: places[row.chunk])
            rows.sort(key=lambda row: shown[places[row.chunk]].score or 0.0, reverse=node.is_higher_better)
        else:
            if {row.chunk for row in rows} != {row.chunk for one in node.taken for row in one}:
                raise Undetermined("it orders a list as a whole: another list would have to be run")
            rows.sort(key=lambda row: places[row.chunk])
        if self.threshold:
            threshold = values.get("threshold", node.threshold)
            is_strict, is_higher = self.threshold == "above", node.is_higher_better
            rows = [row for row in rows if _reaches(shown[places[row.chunk]].score, threshold, is_higher, is_strict)]
        best = rows[: limit(self.rule, node, values)]
        own = node.delivered
        return [own.get(row.chunk) or _with(row, shown[places[row.chunk]]) for row in best]


def _with(row: Row, shown: Row) -> Row:
    return Row(row.chunk, row.item, shown.score, row.tokens if shown.tokens is None else shown.tokens, row.is_sure)


@dataclass(frozen=True, slots=True)
class Threshold:
    """Lets through whose score reaches the threshold, in the order taken; then the first so many, where it has a k."""

    rule: str | int | None
    is_strict: bool
    is_own: bool
    """By the score this stage shows; else by the score it is handed."""
    parameters = ("threshold",)

    def replay(self, node: Node, taken: Sequence[Sequence[Row]], values: Values, facts: Facts) -> list[Row]:
        """Those that reach it."""
        threshold = values.get("threshold", node.threshold)
        own = {row.chunk: row.score for row in node.shown}
        rows = joined(taken)
        if self.is_own and any(row.chunk not in own for row in rows):
            raise Undetermined("it never scored some of what it would get")
        passed = [
            row
            for row in rows
            if _reaches(own[row.chunk] if self.is_own else row.score, threshold, node.is_higher_better, self.is_strict)
        ]
        return _delivered(node, passed[: limit(self.rule, node, values)])


@dataclass(frozen=True, slots=True)
class Kept:
    """A filter: lets each candidate through or not for what it is, whatever stands beside it."""

    parameters = ()

    def replay(self, node: Node, taken: Sequence[Sequence[Row]], values: Values, facts: Facts) -> list[Row]:
        """Those it let through. Undetermined for candidates it never met."""
        met = {row.chunk for one in node.taken for row in one}
        passed = {row.chunk for row in node.out}
        found = []
        for row in joined(taken):
            is_kept = row.chunk in passed if row.chunk in met else facts.verdicts.get(row.chunk)
            if is_kept is None:
                raise Undetermined("it never met some of what it would get")
            if is_kept:
                found.append(row)
        return _delivered(node, found)


@dataclass(frozen=True, slots=True)
class Mapped:
    """An expansion: each candidate becomes its own larger piece."""

    parameters = ()

    def replay(self, node: Node, taken: Sequence[Sequence[Row]], values: Values, facts: Facts) -> list[Row]:
        """The larger pieces. Undetermined for candidates that were expanded in no query."""
        own = {row.item: out for row, out in zip(joined(node.taken), node.out, strict=False)}
        found = []
        for row in joined(taken):
            out = own.get(row.item) or facts.became.get(row.item)
            if out is None:
                raise Undetermined("what it would make of some of what it would get is not recorded")
            found.append(out)
        return found


@dataclass(frozen=True, slots=True)
class Budget:
    """Lets candidates go on, in the order taken, while their tokens fit the budget."""

    policy: str
    """stop (at the first that does not fit), skip (it, and go on) or part (of it goes on, then stop)."""
    is_strict: bool
    """The sum must stay below the budget."""
    rule: str | int | None = None
    parameters = ("budget_tokens",)

    def replay(self, node: Node, taken: Sequence[Sequence[Row]], values: Values, facts: Facts) -> list[Row]:
        """Those that fit. Undetermined where a candidate's tokens are not recorded."""
        budget = int(values.get("budget_tokens", node.budget_tokens))
        rows = joined(taken)[: limit(self.rule, node, values)]
        found: list[Row] = []
        used = 0
        for row in rows:
            tokens = facts.tokens.get(row.item, row.tokens)
            if tokens is None:
                raise Undetermined("the tokens of some candidate are not recorded")
            if used + tokens < budget or (used + tokens == budget and not self.is_strict):
                used += tokens
                found.append(Row(row.chunk, row.item, row.score, tokens))
                continue
            if self.policy == "part":
                found += self._part(node, taken, budget, used, row)
            if self.policy != "skip":
                break
        return found

    def _part(self, node: Node, taken: Sequence[Sequence[Row]], budget: int, used: int, row: Row) -> list[Row]:
        """What is left of the row, none or one: as recorded when the same room was left for it, else unknown."""
        mine = [r.item for r in joined(taken)]
        here = mine.index(row.item) + 1
        if budget == node.budget_tokens and mine[:here] == [r.item for r in joined(node.taken)][:here]:
            return [node.delivered[row.chunk]] if row.chunk in node.delivered else []
        return [Row(row.chunk, row.item, row.score, max(0, budget - used), False)]
