"""What is current: the recorder, and the query, document or stage whose body is running here.

This module, `stages`, `doors`, `wrapping`, `stepping`, `parameters` and `configuration` are all that `import ragtrace`
loads; the rest comes with the first `configure`, so that a service that does not record pays for nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, copy_context
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from ragtrace.recording.nodes import Node
    from ragtrace.recording.recorder import Recorder
    from ragtrace.recording.runs import Run

__all__ = ["carry", "current", "recorder"]

P = ParamSpec("P")
R = TypeVar("R")

recorder: Recorder | None = None
"""The configured recorder; None: every decorator is a plain call."""

on_retrieved: Callable[[Run], None] | None = None
"""Told of every retrieve run of a query that ends, in the thread it ends in; None: nobody asks again."""

current: ContextVar[Node | None] = ContextVar("ragtrace", default=None)


def carry(fn: Callable[P, R]) -> Callable[P, R]:
    """A function that runs in the context of this moment, whatever thread calls it: for pools and executors.

    `pool.submit(rt.carry(search), q)`. May be called many times and by many threads at once. Works as a plain call
    when nothing is recorded. Not for process pools: what their workers record is kept as orphans. Never raises.
    """
    captured = copy_context()

    @wraps(fn)
    def carried(*args: P.args, **kwargs: P.kwargs) -> R:
        # A context can be entered by one thread at a time: each call has a copy of its own.
        return captured.copy().run(fn, *args, **kwargs)

    return carried
