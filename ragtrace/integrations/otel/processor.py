"""`rt.SpanProcessor`: what a collector does with spans, in the process that makes them, without a network."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from ragtrace import guard
from ragtrace.integrations.otel import declared
from ragtrace.integrations.otel.replaying import Replay, write_trace
from ragtrace.integrations.otel.rules import Said, Vocabulary, said
from ragtrace.integrations.otel.spans import NO_PARENT, Event, Span
from ragtrace.integrations.otel.vocabularies import VOCABULARIES
from ragtrace.recording import context

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor as _Base
else:
    _Base = object  # the SDK asks for the methods only, and need not be there before its provider is

__all__ = ["SpanProcessor"]

_MOST_TRACES = 1000
_MOST_SPANS = 10_000
"""Of one trace: what grows past it is written as far as it has come."""
_MOST_WRITTEN = 1000
_OWN_SCOPE = "ragtrace"


class _Open:
    """A trace of which spans have begun."""

    __slots__ = ("n_open", "spans")

    def __init__(self) -> None:
        self.n_open = 0
        self.spans: dict[int, Any] = {}
        """By id, as the SDK gives them: ended, they change no more."""


class SpanProcessor(_Base):
    """Records what the spans of a provider say of retrieval, as `ragtrace collect` does with spans that are sent.

    `provider.add_span_processor(rt.SpanProcessor())`, before or after `rt.configure`, which says where to: without it
    nothing is recorded. A trace is written when the last of its open spans ends. Traces with decorated stages are left
    to these. `mapping` are files that say how spans of no known vocabulary are read.

    Raises: ConfigurationError for a mapping file with a mistake; OSError when it cannot be read. Its methods never raise.
    """

    def __init__(self, *, mapping: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = ()) -> None:
        files = [mapping] if isinstance(mapping, (str, os.PathLike)) else mapping
        self._vocabularies: list[Vocabulary] = [*(declared.read(Path(file)) for file in files), *VOCABULARIES]
        self._begin()
        _processors.add(self)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._open: OrderedDict[int, _Open] = OrderedDict()
        self._written: OrderedDict[int, dict[int, int]] = OrderedDict()
        self._replay: Replay | None = None

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        """Count a span that began. Never raises."""
        recorder = context.recorder
        if recorder is None:
            return
        try:
            trace_id = span.context.trace_id
            with self._lock:
                trace = self._open.get(trace_id)
                if trace is None:
                    trace = self._open[trace_id] = _Open()
                    dropped = self._open.popitem(last=False)[1] if len(self._open) > _MOST_TRACES else None
                    if dropped is not None and dropped.spans:
                        recorder.losses.add("unfinished_trace")
                trace.n_open += 1
        except Exception as error:  # recording never raises into the service
            guard.swallow(error, "span start", recorder.losses)

    def on_end(self, span: Any) -> None:
        """Keep a span that ended; write its trace when it was the last one open. Never raises."""
        recorder = context.recorder
        if recorder is None:
            return
        try:
            trace_id = span.context.trace_id
            with self._lock:
                trace = self._open.get(trace_id)
                if trace is None:
                    return  # it began before `configure`, or too much was open
                trace.n_open -= 1
                trace.spans[span.context.span_id] = span
                if trace.n_open > 0 and len(trace.spans) < _MOST_SPANS:
                    return
                spans, trace.spans = trace.spans, {}
                if trace.n_open <= 0:
                    del self._open[trace_id]
                known = self._written.get(trace_id)
                replay = self._replay_of(recorder.settings)
            self._write(replay, trace_id, spans, known)
        except Exception as error:  # recording never raises into the service
            guard.swallow(error, "span end", recorder.losses)

    def _on_ending(self, span: Any) -> None:
        """Of newer SDKs: nothing to do."""

    def _replay_of(self, configured: Any) -> Replay:
        if self._replay is None or self._replay.settings is not configured:
            former, self._replay = self._replay, Replay(configured)
            if former is not None:
                former.close(timeout_s=1.0)
        return self._replay

    def _write(self, replay: Replay, trace_id: int, spans: dict[int, Any], known: dict[int, int] | None) -> None:
        read: dict[int, tuple[Span, Said | None]] = {}
        for span_id, sent in spans.items():
            span = _span(sent)
            # What decorated stages wrote needs no reading: it is only looked at to be left out.
            read[span_id] = span, None if span.scope == _OWN_SCOPE else said(span, self._vocabularies)
        if known is None and not any(one is not None and one.kind for _, one in read.values()):
            return  # by far the most traces of a service
        written = write_trace(replay, read, known)
        with self._lock:
            self._written.setdefault(trace_id, {}).update(written)
            self._written.move_to_end(trace_id)
            if len(self._written) > _MOST_WRITTEN:
                self._written.popitem(last=False)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Wait until what is written is on the disk; false when that took too long. Never raises."""
        replay = self._replay
        return True if replay is None else replay.flush(timeout_millis / 1000)

    def shutdown(self) -> None:
        """Write the traces that are open as far as they have come. Never raises."""
        recorder = context.recorder
        with self._lock:
            traces, self._open = self._open, OrderedDict()
            replay = self._replay_of(recorder.settings) if recorder is not None and traces else self._replay
        if replay is None:
            return
        for trace_id, trace in traces.items():
            try:
                if trace.spans:
                    self._write(replay, trace_id, trace.spans, self._written.get(trace_id))
            except Exception as error:  # recording never raises into the service
                guard.swallow(error, "shutdown", replay.losses)
        replay.close(timeout_s=5.0)


_processors: WeakSet[SpanProcessor] = WeakSet()


def _after_fork() -> None:
    # What had begun before the fork is the parent's to write.
    for processor in list(_processors):
        processor._begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _span(sent: Any) -> Span:
    """A span of the SDK as a plain one."""
    parent = sent.parent
    status = sent.status
    scope = sent.instrumentation_scope
    ids = sent.context
    return Span(
        ids.trace_id,
        ids.span_id,
        parent.span_id if parent is not None else NO_PARENT,
        sent.name,
        scope.name if scope is not None else "",
        sent.start_time or 0,
        sent.end_time or sent.start_time or 0,
        _plain(sent.attributes),
        [Event(event.name, _plain(event.attributes)) for event in sent.events],
        _plain(sent.resource.attributes),
        (status.description or "") if status.status_code.name == "ERROR" else None,
        sent.dropped_attributes,
        sent.dropped_events,
        parent is not None and parent.is_remote,
    )


def _plain(attributes: Any) -> dict[str, Any]:
    return {key: list(value) if type(value) is tuple else value for key, value in (attributes or {}).items()}
