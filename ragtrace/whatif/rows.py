"""What is replayed: rows of candidate lists, and one query's stage runs as a graph of lists. Data only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = ["Label", "Node", "Query", "Row", "Undetermined", "chunks"]

Label = tuple[str, str]
"""Kind and name of a stage; the kind `gap` is code between two stages that changed a list."""


class Row(NamedTuple):
    """One candidate of a list."""

    chunk: str
    """Its id; what lists are compared by."""
    item: int
    """items.item: the chunk with its place as delivered there."""
    score: float | None = None
    tokens: int | None = None
    is_sure: bool = True
    """False: only a part of it may be there (the last one that a budget cuts)."""


class Undetermined(Exception):
    """A replay came to where the record ends: a result, not an error. `label` is set by whoever knows the stage."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why
        self.label: Label | None = None


@dataclass(slots=True)
class Node:
    """One stage run, or one gap, of one query."""

    label: Label
    inputs: tuple[int, ...]
    """Keys of the nodes whose output it took, in the order of its arguments."""
    taken: list[list[Row]]
    """What it took, as recorded, a list for each input."""
    out: list[Row]
    """What it put out, as recorded."""
    shown: list[Row]
    """All that it ranked, losers too, in its own order; equal to `out` where it shows no more."""
    mode: str | None = None
    k: int | None = None
    threshold: float | None = None
    budget_tokens: int | None = None
    is_higher_better: bool = True
    params: Mapping[str, Any] = field(default_factory=dict)
    is_deduplicated: bool = False
    """It declared that it dropped something as a duplicate."""
    depth: int = 0
    """1 + the largest depth of its inputs."""
    _places: dict[str, int] | None = None
    _delivered: dict[str, Row] | None = None
    _known: dict[str, Row] | None = None

    @property
    def places(self) -> Mapping[str, int]:
        """By chunk, where it stands in `shown`, from 0."""
        if self._places is None:
            self._places = {row.chunk: at for at, row in enumerate(self.shown)}
        return self._places

    @property
    def delivered(self) -> Mapping[str, Row]:
        """By chunk, the row as it was put out."""
        if self._delivered is None:
            self._delivered = {row.chunk: row for row in self.out}
        return self._delivered

    @property
    def known(self) -> Mapping[str, Row]:
        """By chunk, the row as it was put out, else as it was taken first."""
        if self._known is None:
            self._known = {row.chunk: row for rows in reversed(self.taken) for row in reversed(rows)}
            self._known.update(self.delivered)
        return self._known


@dataclass(slots=True)
class Query:
    """One recorded query."""

    query_id: int
    nodes: dict[int, Node]
    final: tuple[int, ...]
    """Keys of the nodes whose outputs together are the final context."""
    retrievals: tuple[int, ...]
    """Keys of its retrieve runs; not every one lies on the way to the final context."""
    is_judged: bool
    """It has labels, and nothing unrecorded could change its recalls."""
    left_out: str | None = None
    """Why it cannot be replayed; null when it can."""
    texts: dict[str, str] = field(default_factory=dict)

    def upstream(self) -> dict[int, frozenset[Label]]:
        """Per node, the labels of it and of all it depends on."""
        found: dict[int, frozenset[Label]] = {}

        def of(key: int) -> frozenset[Label]:
            if key not in found:
                node = self.nodes[key]
                found[key] = frozenset([node.label]).union(*(of(i) for i in node.inputs))
            return found[key]

        for key in self.nodes:
            of(key)
        return found


def chunks(rows: Iterable[Row]) -> Sequence[str]:
    """The ids, in order."""
    return [row.chunk for row in rows]
