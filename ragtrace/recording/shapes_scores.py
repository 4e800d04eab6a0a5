"""Which end of a list's scores is the better one, where what the store returned shows it.

A store returns the best first, so the order of scores that it gave proves their direction; their name alone does not:
Milvus calls an inner product `distance`, Qdrant calls a Euclidean distance `score`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import Any

from ragtrace.recording.shapes_values import root_module

__all__ = ["BY_NAME", "BY_ORDER", "Pairs", "kind_of_scores", "what_tells"]

BY_NAME = "name"
"""They are called distances, and are ones unless the order says otherwise."""
BY_ORDER = "order"
"""Only the order tells."""

_DISTANCES = ("distance", "_distance")
_CALL_EVERYTHING_SCORE = frozenset(("qdrant_client", "qdrant_edge"))
_CALL_EVERYTHING_DISTANCE = frozenset(("pymilvus",))


class Pairs(list[Any]):
    """(id, score) pairs made of the arrays of a search."""

    __slots__ = ("tells",)

    tells: str
    """`BY_NAME` or `BY_ORDER`."""


def what_tells(name: str, item: Any, metadata: Sequence[str]) -> str | None:
    """`BY_NAME`, `BY_ORDER`, or None: the scores of items like this one are taken for what the service says of them.

    `name` is where the score stands, `metadata` the names under which the item has metadata.
    """
    root = root_module(type(item))
    if name in _DISTANCES:
        return BY_ORDER if root in _CALL_EVERYTHING_DISTANCE or "entity" in metadata else BY_NAME
    return BY_ORDER if root in _CALL_EVERYTHING_SCORE else None


def kind_of_scores(tells: str | None, scores: Sequence[float] | None) -> str | None:
    """`distance` when less is better, `similarity` when more is, None when nothing shows it. `scores` in list order."""
    if tells is None or not scores:
        return None
    known = [score for score in scores if not isnan(score)]
    rising = sorted(known)
    if rising and rising[0] < rising[-1]:
        if known == rising:
            return "distance"
        if known[::-1] == rising:
            return "similarity"
    return "distance" if tells == BY_NAME else None
