"""The rounds of an agent's loop."""

from __future__ import annotations

from typing import Any

from ragtrace.recording.nodes import Node

__all__ = ["Round"]


class Round(Node):
    """A retrieval round inside a query: it has no row, its stages carry its number."""

    __slots__ = ("id",)

    def __init__(self, parent: Node, number: int) -> None:
        query = parent.query
        assert query is not None
        self.id = query.id
        self.query = query
        self.document = parent.document
        self.round = number
        self.is_aside = parent.is_aside
        self.probe = parent.probe
        self.span = None
        self.trace_id, self.parent_span_id = parent.trace_id, parent.parent_span_id

    def finish(self, result: Any = None) -> None:
        """Nothing is written of a round."""

    def finish_parts(self) -> None:
        """Nothing is written of a round."""

    def fail(self, error: BaseException) -> None:
        """Nothing is written of a round."""

    def collect(self, item: Any) -> None:
        """Nothing is written of a round."""
