"""Spans in the user's own OpenTelemetry provider, when there is one.

Never sets a provider, never announces a trace that exists nowhere.

The API is imported when recording is configured, not with ragtrace.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ragtrace.attributes import ERROR_TYPE, MAX_CHARACTERS, N_CANDIDATES

__all__ = ["Tracing", "attach", "attach_context", "current_context", "detach", "end", "ids"]

_context: Any = None
_trace: Any = None
_span_key: Any = None


def load() -> bool:
    """Import the OpenTelemetry API; false when it is not installed."""
    global _context, _trace
    if _trace is None:
        try:
            from opentelemetry import context, trace
        except ImportError:
            return False
        _context, _trace = context, trace
    return True


class Tracing:
    """The tracer to use, looked up anew once a query: a service may set its provider after `configure`."""

    def __init__(self, provider: Any) -> None:
        self._given = provider
        self._seen: Any = None
        self._max_attributes = _attribute_limit()
        self.tracer: Any = None
        """None: there is no provider."""
        self._is_loaded = load()
        self._is_named = "OTEL_PYTHON_TRACER_PROVIDER" in os.environ

    def refresh(self) -> None:
        """Look for the provider."""
        if not self._is_loaded or self.tracer is not None:
            return  # a provider that is set stays: OpenTelemetry refuses another
        if self._given is None and getattr(_trace, "_TRACER_PROVIDER", self) is None and not self._is_named:
            return  # as the next line finds out too, by a look at the environment that takes 2 µs
        provider = self._given if self._given is not None else _trace.get_tracer_provider()
        if provider is self._seen:
            return
        self._seen = provider
        is_none = isinstance(provider, (_trace.ProxyTracerProvider, _trace.NoOpTracerProvider))
        try:
            tracer = None if is_none else provider.get_tracer("ragtrace")
        except Exception:  # as in start
            tracer = None
        # A disabled SDK gives one whose spans have no ids: with our own, the rows of a query still hang together.
        self.tracer = None if isinstance(tracer, _trace.NoOpTracer) else tracer
        limit = getattr(getattr(provider, "_span_limits", None), "max_span_attributes", None)
        if isinstance(limit, int):
            self._max_attributes = min(limit, _attribute_limit())

    def start(self, name: str, attributes: Mapping[str, Any]) -> Any:
        """A started span, child of the current one; not yet current itself. None without a provider."""
        if self.tracer is None:
            return None
        if len(attributes) >= self._max_attributes:
            # One place is left for what is known at the end; of too many the SDK drops the oldest.
            attributes = dict(list(attributes.items())[: max(0, self._max_attributes - 1)])
        try:
            return self.tracer.start_span(
                name if len(name) <= MAX_CHARACTERS else name[:MAX_CHARACTERS], attributes=attributes
            )
        except Exception:  # a provider that fails costs its span only
            return None

    def outer_ids(self) -> tuple[int, int]:
        """Trace and span id of a current span that came from outside, when there is no provider here; 0 for none."""
        if not self._is_loaded or not _context.get_current():
            return 0, 0
        context = _trace.get_current_span().get_span_context()
        return (context.trace_id, context.span_id) if context.is_valid else (0, 0)


def attach(span: Any) -> Any:
    """Make a span current; the token for `detach`, None when it could not be."""
    try:
        return _context.attach(_trace.set_span_in_context(span))
    except Exception:  # as in Tracing.start
        return None


def attach_context(context: Any) -> Any:
    """Make a remembered context current; the token for `detach`."""
    return _context.attach(context)


def current_context() -> Any:
    """OpenTelemetry's context as it is now."""
    return _context.get_current()


def detach(token: Any, span: Any) -> None:
    """Undo the attach of a span. Silent where OpenTelemetry's own detach logs an error: when left in another context."""
    var = getattr(token, "var", None)
    if var is None:
        try:
            _context.detach(token)  # a runtime context of the user's own
        except Exception:  # as in Tracing.start
            pass
        return
    try:
        var.reset(token)
    except (ValueError, RuntimeError):
        # Left in another context, or twice. A dead span that came along with a generator's step must not stay current.
        if _trace.get_current_span() is span and isinstance(token.old_value, type(_context.get_current())):
            var.set(token.old_value)


def ids(span: Any) -> tuple[int, int, int]:
    """Trace id, span id and parent's span id; 0 for no parent, or where a foreign span does not say it."""
    try:
        context = span.get_span_context()
        parent = getattr(span, "parent", None)
        return context.trace_id, context.span_id, getattr(parent, "span_id", None) or 0
    except Exception:  # as in Tracing.start
        return 0, 0, 0


def end(span: Any, n_candidates: int | None, error_type: str | None) -> None:
    """End a span. An error is named by its type only: a message may hold the user's text."""
    try:
        if span.is_recording():
            if error_type is not None:  # one place is left, and this is what is asked for first
                span.set_attribute(ERROR_TYPE, error_type)
                span.set_status(_trace.Status(_trace.StatusCode.ERROR, error_type))
            elif n_candidates is not None:
                span.set_attribute(N_CANDIDATES, n_candidates)
        span.end()
    except Exception:  # as in Tracing.start
        pass


def _attribute_limit() -> int:
    """How many attributes the user's limits leave; the oldest are lost past it, so we send fewer."""
    # A number that cannot be read is the SDK's to complain about.
    limits = [os.environ.get(name, "") for name in ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "OTEL_ATTRIBUTE_COUNT_LIMIT")]
    return min((int(limit) for limit in limits if limit.isdecimal()), default=128)
