"""A span that somebody else wrote, as it was sent: plain values, nothing of any SDK."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["NO_PARENT", "Event", "Span"]

NO_PARENT = 0


class Event(NamedTuple):
    """One event of a span."""

    name: str
    attributes: Mapping[str, Any]


class Span(NamedTuple):
    """One ended span. Times in ns UTC; attribute values are str, bool, int, float, bytes, lists and dicts of these."""

    trace_id: int
    span_id: int
    parent_id: int
    """0: it has none."""
    name: str
    scope: str
    """The instrumentation that made it."""
    start_ns: int
    end_ns: int
    attributes: Mapping[str, Any]
    events: Sequence[Event] = ()
    resource: Mapping[str, Any] = {}
    error: str | None = None
    """The status message, "" when an error has none; None: no error."""
    n_dropped_attributes: int = 0
    n_dropped_events: int = 0
    is_entry: bool = False
    """Whether its parent is known to be in another process: then nothing of this one is missing above it."""
