"""Queries and documents: what stages run in, and what is written when they end.

Ended stages wait in their scope as plain columns until it ends; then all is packed and written at once. A stage that
ends after its scope, or in a forked child, or outside every scope, is written by itself.
"""

from __future__ import annotations

import threading
from collections import deque
from itertools import count
from typing import TYPE_CHECKING, Any

from ragtrace import attributes, clock, digest, guard
from ragtrace.recording import context, flow, packing, recognising, spans
from ragtrace.recording.lists import Listed
from ragtrace.recording.nodes import Node
from ragtrace.recording.runs import Run, outcome
from ragtrace.spool.records import Record

if TYPE_CHECKING:
    from ragtrace.recording.ingesting import Parsed
    from ragtrace.recording.recorder import Recorder

__all__ = ["Document", "Orphan", "Query", "Scope"]

# Ended stages are written before their query ends when about this much waits, or when none was written for so long: a
# query that then hangs is killed with nothing unwritten but what it did in its last 10 ms. A write takes 30 µs.
EARLY_BYTES = 256 << 10
EARLY_NS = 10_000_000
_BYTES_PER_RUN = 300
_BYTES_PER_ROW = 30


class Scope(Node):
    """What stage runs belong to. Thread-safe: stages of one query may end in many threads."""

    __slots__ = (
        "_captured",
        "_pending",
        "_pending_bytes",
        "_written_ns",
        "asked",
        "by_object",
        "changed_texts",
        "contexts",
        "ended_ns",
        "epoch",
        "error_message",
        "error_type",
        "first_texts",
        "id",
        "is_closed",
        "is_ended",
        "is_orphan",
        "n_candidates",
        "n_lists",
        "n_stages",
        "next_no",
        "outputs",
        "packing",
        "packing_epoch",
        "parsed",
        "recorder",
        "started_at_ns",
        "started_ns",
        "status",
    )  # fmt: skip

    is_document = False
    is_scope = True

    def __init__(self, recorder: Recorder, parent: Node | None) -> None:
        self.recorder = recorder
        self.epoch = recorder.epoch
        self.id = recorder.next_id()
        self.next_no = count(1).__next__
        self.round = None
        self.is_aside = False
        self.probe = None
        self.is_orphan = False
        self.is_ended = False
        self.is_closed = False
        """Its own row is packed: what is packed now is detached, and no longer counted in that row."""
        self.ended_ns = 0
        self.status = "ok"
        self.error_type: str | None = None
        self.error_message: str | None = None
        self.outputs: list[Listed] = []
        """Outputs of ended stages, in the order of their ends."""
        self.by_object: dict[int, Listed] = {}
        """The latest output by the identity of the object it was read from: a hint, contents are compared too."""
        self.first_texts: dict[Any, str] = {}
        """The text each candidate had when it was first seen in this scope."""
        self.changed_texts: set[Any] = set()
        """Candidates that were also seen with another text than their first."""
        self.asked: dict[str, bytes] = {}
        """Texts that stages were asked, as they are written."""
        self._captured: dict[str, tuple[str | None, str]] = {}
        self.contexts: list[Listed] = []
        self.parsed: list[Parsed] = []
        """Texts that parse stages of a document put out."""
        self.n_stages = self.n_lists = self.n_candidates = 0
        self._pending: deque[Run] = deque()
        self._pending_bytes = 0
        # Taken once per scope, by who packs; RLock because a signal handler may end a stage of the same scope.
        self.packing = threading.RLock()
        self.packing_epoch = self.epoch
        self.span = None
        self.trace_id = self.parent_span_id = 0
        if parent is not None and parent.trace_id:
            self.trace_id, self.parent_span_id = parent.trace_id, parent.id
        self.started_at_ns = clock.wall_ns()
        self.started_ns = self._written_ns = clock.monotonic_ns()

    def begin_span(self, name: str, span_attributes: dict[str, Any]) -> None:
        """Start the span, or draw ids where there is no provider."""
        tracing = self.recorder.tracing
        if tracing.tracer is None:
            tracing.refresh()
        if tracing.tracer is not None:
            self.span = tracing.start(name, span_attributes)
        if self.span is None:
            self._draw_trace_id()

    def captured(self, text: str) -> tuple[str | None, str]:
        """A question as it is stored, and its hash: most stages of a query are asked the same."""
        known = self._captured.get(text)
        if known is None:
            known = self._captured[text] = self.recorder.capture.question(text), digest.of_text(text)
        return known

    def _draw_trace_id(self) -> None:
        if not self.trace_id:
            self.trace_id, self.parent_span_id = self.recorder.tracing.outer_ids()
        # No provider, so nobody else makes ids here: the process's random half and our own number are a trace id.
        self.trace_id = self.trace_id or self.recorder.trace_half << 64 | self.id

    # ---------------------------------------------------------------- stages end

    def take(self, run: Run) -> None:
        """Keep an ended run until the scope ends, or write it when nothing will write it later."""
        end_no = run.end_no
        for one in run.lists:
            one.owner_id, one.end_no = run.id, end_no
            if one.role == "out":
                self.outputs.append(one)
                if run.is_aside or run.probe is not None:
                    one.is_off = True
                if one.is_off and one.object_id in self.by_object:
                    one.object_id = 0  # a logger that hands on what it was given: the object stays the earlier stage's
                elif one.object_id:
                    self.by_object[one.object_id] = one
                self._pending_bytes += _BYTES_PER_ROW * len(one.ids)
        self._pending_bytes += _BYTES_PER_RUN
        self._pending.append(run)
        if context.on_retrieved is not None and run.stage.kind == "retrieve":
            context.on_retrieved(run)
        # Looked at after the run is in line: a scope that ends meanwhile takes it, one that has ended leaves it to us.
        ended_ns = run.started_ns + run.duration_ns
        if (
            self.is_ended
            or ended_ns - self._written_ns >= EARLY_NS
            or self._pending_bytes > EARLY_BYTES
            or self.is_orphan
            or self.epoch is not self.recorder.epoch
        ):
            self._written_ns = ended_ns
            self.write_pending()

    def write_pending(self) -> None:
        """Write the stages that ended so far. Never raises."""
        try:
            if self.packing_epoch is not self.recorder.epoch:
                self.after_fork()  # it had ended before the fork, or no hook of Python's told us of one
            with self.packing:
                records = self._pack_pending()
            if records:
                self.recorder.write(records)
        except Exception as error:  # recording never raises into the service
            guard.swallow(error, "early write", self.recorder.losses)

    def after_fork(self) -> None:
        """In a forked child: what had ended before is the parent's to write, and so was a lock that was held then."""
        self.packing = threading.RLock()
        self.packing_epoch = self.recorder.epoch
        self._pending = deque(run for run in self._pending if run.epoch is self.recorder.epoch)

    def _pack_pending(self) -> list[Record | bytes]:
        records: list[Record | bytes] = []
        pending = self._pending
        while True:
            try:
                run = pending.popleft()
            except IndexError:
                break
            run.is_detached = self.is_closed
            try:
                n_lists, n_candidates = packing.pack_run(self, run, records)
            except Exception as error:  # one run that cannot be packed must not take the query with it
                guard.swallow(error, "packing", self.recorder.losses)
                continue
            self.n_stages += 1
            self.n_lists += n_lists
            self.n_candidates += n_candidates
        self._pending_bytes = 0
        return records

    # ---------------------------------------------------------------- the end

    def finish(self, result: Any = None) -> None:
        """End well. Never raises."""
        self._end(None)

    def finish_parts(self) -> None:
        """End well after the last yield. Never raises."""
        self._end(None)

    def fail(self, error: BaseException) -> None:
        """End with the exception that left the body. Never raises."""
        self._end(error)

    def collect(self, item: Any) -> None:
        """Nothing: what a query yields is its answer."""

    def leave_unwritten(self) -> bool:
        """End without a row, when no stage ever began in here; whether that was so. Nothing is written then."""
        if self.is_ended or self.contexts or self.next_no() != 1:
            return False
        self.is_ended = True
        self.ended_ns = clock.monotonic_ns()
        if self.span is not None:
            spans.end(self.span, None, None)
        self.recorder.open.pop(self.id, None)
        return True

    def _end(self, error: BaseException | None) -> None:
        if self.is_ended:
            return
        self.is_ended = True
        try:
            self.ended_ns = clock.monotonic_ns()
            if error is not None:
                self.status, self.error_type, self.error_message = outcome(error)
            if self.span is not None:
                spans.end(self.span, None, self.error_type)
            recorder = self.recorder
            recorder.open.pop(self.id, None)
            if self.epoch is not recorder.epoch:
                self.write_pending()
                self.is_closed = True
                return  # a forked child left the block too: the query is the parent's
            with self.packing:
                records = self._pack_pending()
                self._pack_end(records)
                self.is_closed = True
            recorder.write(records)
            self._let_go()
        except Exception as trouble:  # recording never raises into the service
            guard.swallow(trouble, "query end", self.recorder.losses)

    def _pack_end(self, records: list[Record | bytes]) -> None:
        """Add the scope's own row; what stages outside every query run in has none."""

    def _let_go(self) -> None:
        """Let the service's objects go. Texts of outputs stay with the scope: an answer streamed later still needs them."""
        self.by_object = {}
        for one in self.outputs:
            one.items = None
        if self.first_texts:
            self.first_texts = {}
            self.changed_texts = set()
        self.contexts = []
        self.parsed = []


class Query(Scope):
    """One question put to the service; what `with rt.query(...) as query` gives."""

    __slots__ = ("parent_query_id", "question", "question_id", "served_from", "session")

    def __init__(
        self,
        recorder: Recorder,
        parent: Node | None,
        question: str | None,
        question_id: str | None,
        session: str | None,
        parent_query_id: int | None,
        served_from: int | None,
    ) -> None:
        super().__init__(recorder, parent)
        self.question = question
        self.question_id = question_id
        self.session = session
        self.parent_query_id = parent_query_id
        self.served_from = served_from
        self.document = None
        settings = recorder.settings
        span_attributes: dict[str, Any] = {attributes.QUERY_ID: self.id}
        if settings.run is not None:
            span_attributes[attributes.RUN] = settings.run[: attributes.MAX_CHARACTERS]
        self.begin_span("query", span_attributes)
        recorder.open[self.id] = self

    @property
    def query(self) -> Query:  # type: ignore[override]  # an attribute would be a cycle that only the collector ends
        """Itself."""
        return self

    def context(self, value: Any, *, carried: Any = None, extract: Any = None) -> None:
        """See `rt.context`."""
        for given, argument in ((value, None), (carried, "carried")):
            if given is None:
                continue
            one = flow.context_list(self, given, argument, extract)
            if one is None:
                one = Listed(self.recorder.next_id(), "context", None, argument)
                one.is_complete = False
                self.recorder.losses.add("capture_error", detail="context")
            elif one.columns is not None:
                one.same_as = recognising.equal_outputs(self.outputs, one.ids, id(given))
                if one.same_as:
                    one.columns = None
            one.end_no = self.next_no()
            if self.is_ended or self.epoch is not self.recorder.epoch:
                self.recorder.write([packing.pack_context(self, one)])
            else:
                self.contexts.append(one)

    def _pack_end(self, records: list[Record | bytes]) -> None:
        for one in self.contexts:
            records.append(packing.pack_context(self, one))
        records.append(packing.pack_query(self))


class Document(Scope):
    """One document on its way into an index; what `with rt.document(...) as document` gives."""

    __slots__ = ("deleted_at_ns", "doc_id", "modified_at_ns", "version")

    is_document = True

    @property
    def document(self) -> Document:  # type: ignore[override]  # as Query.query
        """Itself."""
        return self

    def __init__(
        self,
        recorder: Recorder,
        parent: Node | None,
        doc_id: str | None = None,
        version: str | None = None,
        modified_at_ns: int | None = None,
        deleted_at_ns: int | None = None,
        is_implicit: bool = False,
    ) -> None:
        super().__init__(recorder, parent)
        self.doc_id = doc_id
        self.version = version
        self.modified_at_ns = modified_at_ns
        self.deleted_at_ns = deleted_at_ns
        self.query = parent.query if parent is not None else None
        if is_implicit:
            recorder.tracing.refresh()
            self._draw_trace_id()
        else:
            self.begin_span("document", {})
        recorder.open[self.id] = self

    def _pack_end(self, records: list[Record | bytes]) -> None:
        records.append(packing.pack_document(self))


class Orphan(Scope):
    """What a stage outside every query runs in: it has no row of its own."""

    __slots__ = ()

    def __init__(self, recorder: Recorder, parent: Node | None) -> None:
        super().__init__(recorder, parent)
        self.query = None
        self.document = None
        self.is_orphan = True
        self.recorder.tracing.refresh()
        self._draw_trace_id()
