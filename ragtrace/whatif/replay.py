"""One query replayed under changed settings: what would stand in the final context, or where the record ends."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ragtrace.whatif.fitting import Fitted
from ragtrace.whatif.rows import Label, Query, Row, Undetermined

__all__ = ["Change", "Outcome", "Replayer", "Settings", "settings"]


class Change(NamedTuple):
    """One setting of one stage at another value."""

    label: Label
    parameter: str
    """k, threshold, constant, weight or budget_tokens."""
    value: float
    which: int = 0
    """weight: of which list, from 0."""


Settings = Mapping[Label, Mapping[str, Any]]
"""Changed values by stage and parameter, as models take them."""


def settings(changes: Iterable[Change]) -> Settings:
    """The changes as models take them."""
    found: dict[Label, dict[str, Any]] = {}
    for change in changes:
        values = found.setdefault(change.label, {})
        if change.parameter == "weight":
            values.setdefault("weight", {})[change.which] = change.value
        else:
            values[change.parameter] = change.value
    return found


class Outcome(NamedTuple):
    """What a query would come to."""

    final: tuple[Row, ...] | None
    """The final context; None where the record ends before it."""
    candidates: tuple[Row, ...] | None
    """What the retrieve runs would return together; None where that is not recorded."""
    n_reranked: int
    """Candidates that rerankers would read, as far as it was replayed."""
    stuck_at: Label | None
    """The stage of which the record does not say what it would put out."""
    why: str | None
    replayed: frozenset[Label]
    """Stages whose choice was replayed; of the others the recorded one stands."""
    made: dict[int, list[Row]]
    """Replayed outputs by node, as far as they go."""


class Replayer:
    """Replays one query at any settings; keeps nothing between two."""

    def __init__(self, query: Query, fitted: Mapping[Label, Fitted]) -> None:
        self.query = query
        self._fitted = fitted
        self._upstream = query.upstream()

    def outcome(self, changed: Settings) -> Outcome:
        """What the query would come to."""
        made: dict[int, list[Row]] = {}
        candidates: tuple[Row, ...] | None
        try:
            candidates = self._union(self.query.retrievals, changed, made)
        except Undetermined:
            candidates = None
        try:
            final = self._union(self.query.final, changed, made)
        except Undetermined as undetermined:
            return self._outcome(None, candidates, made, undetermined.label, undetermined.why)
        return self._outcome(final, candidates, made)

    def _outcome(
        self,
        final: tuple[Row, ...] | None,
        candidates: tuple[Row, ...] | None,
        made: dict[int, list[Row]],
        stuck_at: Label | None = None,
        why: str | None = None,
    ) -> Outcome:
        replayed = frozenset(
            node.label for key, rows in made.items() if rows is not (node := self.query.nodes[key]).out
        )
        return Outcome(final, candidates, self._n_reranked(made), stuck_at, why, replayed, made)

    def before(
        self, label: Label, changed: Settings, made: dict[int, list[Row]] | None = None
    ) -> tuple[Row, ...] | None:
        """What the runs of one stage would take together; None where the record ends before it.

        `made` holds what an outcome of the same settings has already replayed.
        """
        made = {} if made is None else made
        keys = [i for node in self.query.nodes.values() if node.label == label for i in node.inputs]
        try:
            return self._union(keys, changed, made)
        except Undetermined:
            return None

    def _union(self, keys: Iterable[int], changed: Settings, made: dict[int, list[Row]]) -> tuple[Row, ...]:
        found: list[Row] = []
        for key in keys:
            found += self._out(key, changed, made)
        return tuple(found)

    def _out(self, key: int, changed: Settings, made: dict[int, list[Row]]) -> Sequence[Row]:
        node = self.query.nodes[key]
        if self._upstream[key].isdisjoint(changed):
            return node.out
        if key not in made:
            taken = [self._taken(i, rows, changed, made) for i, rows in zip(node.inputs, node.taken, strict=True)]
            values = changed.get(node.label, {})
            if not values and _is_same(taken, node.taken):
                made[key] = node.out
            else:
                made[key] = self._fitted[node.label].replay(node, taken, values)
        return made[key]

    def _taken(self, key: int, recorded: list[Row], changed: Settings, made: dict[int, list[Row]]) -> Sequence[Row]:
        rows = self._out(key, changed, made)
        return recorded if rows is self.query.nodes[key].out else _as_taken(rows, recorded)

    def _n_reranked(self, made: dict[int, list[Row]]) -> int:
        n = 0
        for node in self.query.nodes.values():
            if node.label[0] == "rerank":
                for at, i in enumerate(node.inputs):
                    n += len(made[i]) if i in made else len(node.taken[at])
        return n


def _as_taken(rows: Sequence[Row], recorded: Sequence[Row]) -> Sequence[Row]:
    """The rows as this stage was handed them, where it was: with the place and tokens they had there."""
    own = {row.chunk: row for row in recorded}
    found = []
    for row in rows:
        known = own.get(row.chunk)
        if known is not None and known is not row and row.is_sure:
            score = known.score if row.score is None else row.score
            if (known.item, score, known.tokens) != row[1:4]:
                row = Row(row.chunk, known.item, score, known.tokens)
        found.append(row)
    return found


def _is_same(taken: Sequence[Sequence[Row]], recorded: Sequence[Sequence[Row]]) -> bool:
    """The same lists with the same scores, but for what computing them anew may differ by."""
    return all(
        rows is others
        or (
            len(rows) == len(others)
            and all(
                row.chunk == other.chunk and row.is_sure and _is_alike(row.score, other.score)
                for row, other in zip(rows, others, strict=True)
            )
        )
        for rows, others in zip(taken, recorded, strict=True)
    )


def _is_alike(score: float | None, other: float | None) -> bool:
    if score is None or other is None:
        return score is other
    return math.isclose(score, other, rel_tol=1e-9)
