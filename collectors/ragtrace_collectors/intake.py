"""Spans in, traces out: what belongs together is held until it is whole, then written to the log.

A request is acknowledged once it is in the journal. A trace is written when its outermost span has come and nothing
more of it has for a while; when that span never comes, after a longer while.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ragtrace.integrations.otel import replaying, rules
from ragtrace.integrations.otel.rules import Said, Vocabulary
from ragtrace.integrations.otel.spans import NO_PARENT, Span
from ragtrace.settings import Settings
from ragtrace_collectors import otlp
from ragtrace_collectors.journal import Journal

__all__ = ["Busy", "Intake", "Limits", "Taken"]

_MOST_RECORDERS = 64
_MOST_WRITTEN = 1_000_000
"""Spans of written traces that are remembered, so that what comes twice counts once: about 100 bytes each."""


class Limits(NamedTuple):
    """What one collector takes."""

    body_bytes: int = 16 << 20
    """A request, after decompression."""
    spans_a_second: int = 20_000
    attributes: int = 20_000
    """Of one span, its events' included: 4 for each of 5,000 candidates."""
    waiting_bytes: int = 256 << 20
    """Traces that are not whole yet, as they were sent."""
    quiet_s: float = 5.0
    """How long nothing more of a trace may come before it is written, once its outermost span is there."""
    rootless_s: float = 60.0
    """The same while its outermost span is not there."""
    oldest_s: float = 600.0
    """A trace that still grows is written as far as it is after so long."""


class Busy(Exception):
    """Not now: come again in `after_s`."""

    def __init__(self, why: str, after_s: int) -> None:
        super().__init__(why)
        self.after_s = after_s


class Taken(NamedTuple):
    """What became of a request."""

    n_spans: int
    n_rejected: int
    why: str
    """Why spans were rejected; "" when none were."""


@dataclass
class _Waiting:
    """A trace that is not written yet."""

    first_s: float
    last_s: float = 0.0
    n_bytes: int = 0
    has_root: bool = False
    spans: dict[int, tuple[Span, Said | None]] = field(default_factory=dict)
    files: set[int] = field(default_factory=set)


class Intake:
    """All that was taken in and is not written. To be called by one thread at a time."""

    def __init__(
        self,
        configured: Settings,
        vocabularies: Sequence[Vocabulary],
        limits: Limits | None = None,
        journal: Journal | None = None,
        onward: Callable[[bytes], None] | None = None,
    ) -> None:
        """`onward` is given each request that was taken in, and must neither block nor raise."""
        self.limits = limits or Limits()
        self._settings = configured
        self._vocabularies = vocabularies
        self._journal = journal
        self._onward = onward
        self._waiting: OrderedDict[int, _Waiting] = OrderedDict()
        """By trace id, the one that grew longest ago first."""
        self._written: OrderedDict[int, dict[int, int]] = OrderedDict()
        """Trace id -> span id -> the query it was written in, 0 for none."""
        self._n_written = 0
        self._recorders: OrderedDict[tuple[str | None, str | None], replaying.Replay] = OrderedDict()
        self._unreleased: list[int] = []
        self.n_bytes = 0
        self._allowed = float(self.limits.spans_a_second)
        self._allowed_at_s = time.monotonic()

    # ---------------------------------------------------------------- in

    def take(self, request: otlp.Request, data: bytes) -> Taken:
        """Take a request in; when this returns, it outlives a kill. Raises: Busy; OSError when the disk refuses."""
        n_spans = sum(len(scope.spans) for resource in request.resource_spans for scope in resource.scope_spans)
        self._pass(n_spans)
        if self.n_bytes + len(data) > self.limits.waiting_bytes:
            self.write_ripe()
            if self.n_bytes + len(data) > self.limits.waiting_bytes:
                raise Busy("too many traces are not whole yet", 5)
        n_rejected = self._drop_oversized(request)
        if n_rejected:
            data = request.SerializeToString()
        number = self._journal.append(data) if self._journal is not None else 0
        self._sort_in(request, len(data), number)
        if self._onward is not None:
            self._onward(data)
        if n_rejected:
            return Taken(n_spans, n_rejected, f"a span may have {self.limits.attributes} attributes, events included")
        return Taken(n_spans, 0, "")

    def take_again(self, written: Mapping[int, dict[int, int]]) -> int:
        """Take in what a former collector left in the journal, but for what it had written; how many requests."""
        for trace_id, spans in written.items():
            self._remember(trace_id, spans)
        n_requests = 0
        if self._journal is None:
            return 0
        for number, data in self._journal.left():
            try:
                request = otlp.request_of(data)
            except otlp.Malformed:
                continue  # it was taken in, so it cannot be; a damaged disk
            self._sort_in(request, len(data), number)
            n_requests += 1
        self._journal.sweep()
        return n_requests

    def left_traces(self) -> frozenset[int]:
        """The traces in what a former collector left."""
        if self._journal is None:
            return frozenset()
        found: set[int] = set()
        for _, data in self._journal.left():
            try:
                found.update(span.trace_id for span in otlp.spans_of(otlp.request_of(data)))
            except otlp.Malformed:
                continue  # as in take_again
        return frozenset(found)

    def _pass(self, n_spans: int) -> None:
        now_s = time.monotonic()
        rate = self.limits.spans_a_second
        self._allowed = min(float(rate), self._allowed + (now_s - self._allowed_at_s) * rate)
        self._allowed_at_s = now_s
        # A request larger than a second's share goes through when the whole of it is there: it is paid off afterwards.
        if self._allowed < min(n_spans, rate):
            raise Busy(f"more than {rate} spans a second", 1)
        self._allowed -= n_spans

    def _drop_oversized(self, request: otlp.Request) -> int:
        most = self.limits.attributes
        n_rejected = 0
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                spans = scope.spans
                for at in range(len(spans) - 1, -1, -1):
                    span = spans[at]
                    if len(span.attributes) + sum(len(event.attributes) for event in span.events) > most:
                        del spans[at]
                        n_rejected += 1
        return n_rejected

    def take_spans(self, spans: Sequence[Span]) -> None:
        """Take spans of a file: neither counted nor kept in a journal."""
        self._sort_spans(spans, 0, 0)

    def _sort_in(self, request: otlp.Request, n_bytes: int, number: int) -> None:
        self._sort_spans(list(otlp.spans_of(request)), n_bytes, number)

    def _sort_spans(self, spans: Sequence[Span], n_bytes: int, number: int) -> None:
        now_s = time.monotonic()
        share = n_bytes // max(1, len(spans))
        for span in spans:
            known = self._written.get(span.trace_id)
            if known is not None and span.span_id in known:
                continue
            trace = self._waiting.get(span.trace_id)
            if trace is None:
                trace = self._waiting[span.trace_id] = _Waiting(now_s)
            if self._journal is not None and number not in trace.files:
                trace.files.add(number)
                self._journal.need(number)
            trace.last_s = now_s
            trace.n_bytes += share
            self.n_bytes += share
            trace.has_root = trace.has_root or span.parent_id == NO_PARENT or span.is_entry
            former = trace.spans.get(span.span_id)
            if former is None or len(former[0].attributes) < len(span.attributes):
                trace.spans[span.span_id] = span, rules.said(span, self._vocabularies)
            self._waiting.move_to_end(span.trace_id)

    # ---------------------------------------------------------------- out

    def write_ripe(self) -> int:
        """Write the traces that are whole; how many. To be called often: it looks at a few when there is nothing to do."""
        now_s = time.monotonic()
        limits = self.limits
        ripe = []
        n_bytes = self.n_bytes
        for trace_id, trace in self._waiting.items():
            quiet_s = now_s - trace.last_s
            is_tight = n_bytes > limits.waiting_bytes // 2
            if (
                (trace.has_root and (quiet_s >= limits.quiet_s or is_tight))
                or quiet_s >= limits.rootless_s
                or now_s - trace.first_s >= limits.oldest_s
            ):
                ripe.append(trace_id)
                n_bytes -= trace.n_bytes
        for trace_id in ripe:
            self._write(trace_id)
        self._release()
        return len(ripe)

    def write_all(self) -> int:
        """Write every trace as far as it has come; how many."""
        n = len(self._waiting)
        for trace_id in list(self._waiting):
            self._write(trace_id)
        self._release()
        return n

    def _write(self, trace_id: int) -> None:
        trace = self._waiting.pop(trace_id)
        self.n_bytes -= trace.n_bytes
        known = self._written.get(trace_id, {})
        replay = self._recorder(trace)
        spans_of_queries = replaying.write_trace(replay, trace.spans, known)
        self._remember(trace_id, spans_of_queries)
        self._unreleased.extend(trace.files)

    def _remember(self, trace_id: int, spans: Mapping[int, int]) -> None:
        known = self._written.setdefault(trace_id, {})
        n_before = len(known)
        known.update(spans)
        self._written.move_to_end(trace_id)
        self._n_written += len(known) - n_before
        while self._n_written > _MOST_WRITTEN:
            self._n_written -= len(self._written.popitem(last=False)[1])

    def _release(self) -> None:
        """Let go of journal files whose traces are written; not while a refusing disk keeps them in memory."""
        if self._journal is None or any(replay.is_waiting for replay in self._recorders.values()):
            return
        numbers, self._unreleased = self._unreleased, []
        for number in numbers:
            self._journal.release(number)
        if numbers and not self._waiting:
            self._journal.sweep()

    def _recorder(self, trace: _Waiting) -> replaying.Replay:
        """The recorder of the run and service that the trace names."""
        run, service = self._settings.run, self._settings.service
        for span, said in trace.spans.values():
            named = (said.run if said is not None else None) or span.resource.get("ragtrace.run")
            if isinstance(named, str) and named:
                run = named
                break
        for span, _ in trace.spans.values():
            named = span.resource.get("service.name")
            if isinstance(named, str) and named:
                service = named
                break
        key = run, service
        replay = self._recorders.get(key)
        if replay is None:
            if len(self._recorders) >= _MOST_RECORDERS:
                self._recorders.popitem(last=False)[1].close(timeout_s=5.0)
            replay = self._recorders[key] = replaying.Replay(self._settings._replace(run=run, service=service))
        self._recorders.move_to_end(key)
        return replay

    def close(self, timeout_s: float = 10.0) -> bool:
        """Write all and let go of the logs and the journal; false when a disk refuses. What is not written stays in the journal."""
        self.write_all()
        is_closed = all([replay.close(timeout_s) for replay in self._recorders.values()])
        self._release()
        if self._journal is not None:
            self._journal.close()
        return is_closed
