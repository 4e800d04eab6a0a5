"""What is current while a body runs: a query, a document, a round or a stage run, with its span.

A node is current only while its own body runs: a generator's node is taken away at each yield and set again at each
step, with whatever its body left open inside.
"""

from __future__ import annotations

from contextvars import Token
from typing import TYPE_CHECKING, Any

from ragtrace.recording import spans
from ragtrace.recording.context import current

if TYPE_CHECKING:
    from ragtrace.recording.scopes import Document, Query
    from ragtrace.recording.stages import CallPlan

__all__ = ["Node"]


class Node:
    """A query, document, round or stage run as the surroundings of what runs inside it."""

    __slots__ = (
        "_inside", "_otel_inside", "_otel_token", "_token", "document", "is_aside", "parent_span_id", "probe", "query",
        "round", "span", "trace_id",
    )  # fmt: skip

    is_scope = False
    """Whether it is a query or document, and so no step at all."""
    query: Query | None
    document: Document | None
    round: int | None
    is_aside: bool
    probe: str | None
    span: Any
    """The OpenTelemetry span; None without a provider."""
    id: int
    """Without a provider also the span id."""
    trace_id: int
    """0: that of the span."""
    parent_span_id: int
    _token: Token[Node | None] | None
    _inside: Node | None
    _otel_inside: Any
    _otel_token: Any

    def enter(self) -> None:
        """Become current here until `leave`."""
        self._inside = None
        self._otel_inside = None
        self._token = current.set(self)
        self._otel_token = spans.attach(self.span) if self.span is not None else None

    def leave(self) -> None:
        """Stop being current. Harmless when it is not, also in another context than `enter` was called in."""
        token, self._token = self._token, None
        if self._otel_token is not None:
            spans.detach(self._otel_token, self.span)
            self._otel_token = None
        if token is not None:
            try:
                current.reset(token)
            except (ValueError, RuntimeError):
                # Entered in another context (a fixture, a stream that a server drives in a fresh context each step).
                # What a generator's step brought along is taken away again; else nothing is set here.
                if current.get() is self:
                    former = token.old_value
                    current.set(None if former is Token.MISSING else former)

    def is_same_step(self, kind: str, plan: CallPlan, args: tuple[Any, ...]) -> bool:
        """Whether a stage called from this node's body is this very step, decorated a second time."""
        return False

    def pause(self) -> None:
        """Stop being current at a yield, and remember what the body left open inside."""
        self._inside = current.get()
        if self.span is not None:
            self._otel_inside = spans.current_context()
        self.leave()

    def prepare(self) -> None:
        """Nothing is open inside yet; called once before the first `resume`."""
        self._inside = None
        self._otel_inside = self._otel_token = None

    def resume(self) -> None:
        """Become current again for the next step of a generator."""
        inside, otel_inside = self._inside, self._otel_inside
        self._token = current.set(inside if inside is not None else self)
        if self.span is not None:
            self._otel_token = spans.attach_context(otel_inside) if otel_inside is not None else spans.attach(self.span)

    def ids(self) -> tuple[int, int, int]:
        """Trace id, span id and parent's span id; 0 for no parent."""
        if self.span is not None:
            return spans.ids(self.span)
        return self.trace_id, self.id, self.parent_span_id
