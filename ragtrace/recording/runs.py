"""One run of one stage: from the call's arguments to what is written of it. Never raises into the service."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ragtrace import clock, guard
from ragtrace.recording import candidates, flow, ingesting, spans
from ragtrace.recording.lists import Listed
from ragtrace.recording.nodes import Node
from ragtrace.recording.parameters import Argument
from ragtrace.recording.values import as_float, as_id, as_int, as_json, as_name
from ragtrace.spool.records import Record

if TYPE_CHECKING:
    from ragtrace.recording.recorder import Recorder
    from ragtrace.recording.scopes import Query, Scope
    from ragtrace.recording.stages import CallPlan, Stage

__all__ = ["Run", "outcome"]

_READERS = {"k": as_int, "budget_tokens": as_int, "round": as_int, "threshold": as_float, "filter": as_json,
          "index": as_name, "index_version": as_name, "sub_query": as_name, "mode": as_name}  # fmt: skip
_COLUMN = {"index": "index_name"}
# These differ from call to call: with them no run would look like another.
_EXTRA = frozenset(("filter", "sub_query", "index_version"))
NOTHING: Mapping[str, Any] = {}


class Run(Node):
    """A stage while it runs; also what `with rt.retrieve(...) as stage` gives."""

    __slots__ = (
        "__dict__", "_is_ended", "call", "duration_ns", "end_no", "epoch", "id", "is_orphan", "list_arguments", "lists",
        "parent_stage_id", "query_text", "recorder", "scope", "stage", "start_no", "started_at_ns", "started_ns", "values",
    )  # fmt: skip

    # What few runs have stands in the class: to set it for each is a tenth of what a run costs.
    parts: list[Any] | None = None
    """What a generator yielded so far."""
    given: Sequence[Argument] = ()
    """Arguments of a chunk or index stage until its result is known."""
    ingest_records: Sequence[Record] = ()
    """Parses and texts to be written with it."""
    extra: Mapping[str, Any] = NOTHING
    """Parameters that differ from call to call, as the call said them."""
    errors: Sequence[str] = ()
    """What could not be recorded."""
    _has_told_output = False
    _losers: list[tuple[str, str | None, str | None]] | None = None
    is_generator = False
    owns_scope = False
    is_detached = False
    status = "ok"
    error_type: str | None = None
    error_message: str | None = None

    def __init__(
        self, stage: Stage, recorder: Recorder, scope: Scope, parent: Node | None, query: Query | None
    ) -> None:
        self.stage = stage
        self.recorder = recorder
        self.scope = scope
        self.query = query
        self.document = scope.document
        self.is_orphan = scope.is_orphan
        if parent is not None:
            self.parent_stage_id = parent.id if type(parent) is Run and parent.scope is scope else 0
            self.round = parent.round
            self.is_aside = stage.is_aside or parent.is_aside
            self.probe = parent.probe
        else:
            self.parent_stage_id = 0
            self.round = self.probe = None
            self.is_aside = stage.is_aside
        self.lists: list[Listed] = []
        self.epoch = recorder.epoch
        self.list_arguments: list[tuple[Any, Any]] = []
        self.call: tuple[CallPlan, tuple[Any, ...]] | None = None
        """The decorated function's call while it runs."""
        self.query_text: str | list[str] | None = None
        self.values: Mapping[str, Any] = NOTHING
        """Parameters of the stage that the call said, by column."""
        self._is_ended = False
        self.end_no = self.duration_ns = 0
        self.id = recorder.next_id()
        self.start_no = scope.next_no()
        tracing = recorder.tracing
        self.span = None if tracing.tracer is None else tracing.start(*recorder.capture.span(stage))
        if self.span is not None:
            self.trace_id = 0
        else:
            self.trace_id = scope.trace_id
            self.parent_span_id = 0 if parent is None else parent.id
        self.started_at_ns = clock.wall_ns()
        self.started_ns = clock.monotonic_ns()

    # ---------------------------------------------------------------- what a `with` block tells

    def is_same_step(self, kind: str, plan: CallPlan, args: tuple[Any, ...]) -> bool:
        """See `Node.is_same_step`: an override that calls its super, or one decorator above the other.

        The same kind, a function of the same name, and the same object (or, without one, the very same arguments): not
        a recursion, which calls the same function.
        """
        if self.call is None or kind != self.stage.kind:
            return False
        own_plan, own_args = self.call
        if plan is own_plan or plan.function != own_plan.function or not args or not own_args:
            return False
        if plan.parameters.is_method:
            return args[0] is own_args[0]
        return len(args) == len(own_args) and all(one is other for one, other in zip(args, own_args, strict=True))

    @property
    def ended_ns(self) -> int:
        """Monotonic; 0 while it runs."""
        return self.started_ns + self.duration_ns if self._is_ended else 0

    @property
    def is_ingest(self) -> bool:
        """Whether the stage is one of ingest, parse, chunk, index."""
        return self.stage.is_ingest

    def input(self, value: Any, *, source: Run | Iterable[Run] | None = None) -> None:
        """Record a list this stage takes. `source` names the stages it came from, where its candidates cannot tell.

        Never raises.
        """
        try:
            if self.is_ingest:
                ingesting.take_inputs(self, [("input", value)])
                return
            n_before = len(self.lists)
            flow.take_inputs(self, [("input", value)])
            if len(self.lists) == n_before and (stated := flow.stated_list(self, value)) is not None:
                self.lists.append(stated)
            if source is not None:
                sources = [source] if isinstance(source, Run) else list(source)
                if len(self.lists) == n_before:
                    one = flow.given_list(self, value, "in")
                    self.lists.append(one)
                for one in self.lists[n_before:]:
                    one.declared_sources = [run.id for run in sources if isinstance(run, Run)]
        except Exception as error:  # recording never raises into the service
            self._failed(error)

    def output(self, value: Any) -> None:
        """Record a list this stage puts out (a text, for parse). Several calls add up. Never raises."""
        try:
            self._has_told_output = True
            self._take_output(value)
        except Exception as error:  # recording never raises into the service
            self._failed(error)

    def considered(self, value: Any) -> None:
        """Record all candidates the stage looked at, losers too, in its own order with its own scores. Never raises."""
        try:
            one = flow.given_list(self, value, "considered")
            self.lists.append(one)
        except Exception as error:  # recording never raises into the service
            self._failed(error)

    def dropped(self, id: str | int, reason: str | None = None, *, by: str | None = None) -> None:
        """Record that a candidate was not let through, why, and by which field, rule or rival. Never raises."""
        try:
            name = as_id(id)
            if name is None:
                self.recorder.losses.add("unreadable_candidate", detail=self.stage.name)
                return
            if self._losers is None:
                self._losers = []
            # A rival that did it is named like the candidate that it is.
            reason, by = as_name(reason), as_id(by)
            reason = None if reason is None else self.recorder.capture.words(reason)
            self._losers.append((name, reason, None if by is None else self.recorder.capture.name(by)))
        except Exception as error:  # recording never raises into the service
            self._failed(error)

    def __enter__(self) -> Run:
        """A run is entered by `with rt.retrieve(...)`, never by itself."""
        raise TypeError("use `with rt.retrieve(...) as stage:`")

    def __exit__(self, *details: object) -> None:
        """See `__enter__`."""

    # ---------------------------------------------------------------- from the call

    def take_call(self, plan: CallPlan, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Snapshot what the call says and the lists it hands over. Never raises."""
        try:
            for lookup in plan.values:
                value = lookup.value(args, kwargs)
                if value is not None:
                    self.set_value(lookup.name, value)
            stage = self.stage
            if plan.is_asked:
                at = plan.asked_at
                asked = args[at] if at < len(args) else None
                self.query_text = asked if type(asked) is str else plan.parameters.first_text(plan.texts, args, kwargs)
            elif stage.query is not None:
                self.query_text = stage.query
            if stage.is_ingest:
                ingesting.take_inputs(self, plan.parameters.arguments(args, kwargs))
            elif kwargs or stage.searches_strings or not flow.are_texts(args):
                flow.take_inputs(self, plan.parameters.arguments(args, kwargs))
        except Exception as error:  # recording never raises into the service
            self._failed(error)

    def set_value(self, name: str, value: Any) -> None:
        """Set one of the stage's parameters for this run; what has no plain form is noted."""
        plain = _READERS[name](value)
        if plain is None:
            self.note(f"unreadable {name}")
        elif name in _EXTRA:
            self.extra = {**self.extra, name: plain}
        else:
            self.values = {**self.values, _COLUMN.get(name, name): plain}

    # ---------------------------------------------------------------- generators

    def collect(self, item: Any) -> None:
        """Snapshot one yielded item. Never raises."""
        try:
            kind = self.stage.kind
            if kind == "generate":
                return
            if self.is_ingest or kind == "rewrite" or (isinstance(item, str) and kind != "retrieve"):
                self._keep(item)
                return
            rows = candidates.read_with_texts([item], extract=self.stage.extract)
            if rows is None:
                rows = candidates.read_with_texts(item, extract=self.stage.extract)  # it yields whole lists
            if rows is None:
                self.note(f"unreadable item: {type(item).__name__}")
            self._keep(rows)
        except Exception as error:  # recording never raises into the service
            self._failed(error)

    def _keep(self, part: Any) -> None:
        if self.parts is None:
            self.parts = []
        self.parts.append(part)

    def _take_parts(self, parts: list[Any]) -> None:
        kind = self.stage.kind
        self.parts = None
        if kind == "generate":
            return
        if self.is_ingest or kind == "rewrite":
            self._take_output(parts)
            return
        if parts and all(isinstance(part, str) for part in parts):
            self._take_output("".join(parts))
            return
        read = [part for part in parts if type(part) is tuple]
        one = flow.joined_list(self, read)
        one.is_complete = len(read) == len(parts)
        self.lists.append(one)

    # ---------------------------------------------------------------- the end

    def finish(self, result: Any) -> None:
        """End well with what the function returned. Never raises."""
        if self._is_ended:
            return
        self._is_ended = True
        self.duration_ns = clock.monotonic_ns() - self.started_ns
        try:
            if self.stage.is_ingest:
                ingesting.take_output(self, result)
            else:
                flow.take_output(self, result)
            if self._losers is not None:
                self.lists.append(flow.dropped_list(self, self._losers))
        except Exception as error:  # recording never raises into the service
            self._failed(error)
        self._close(None)

    def finish_parts(self) -> None:
        """End well after the last yield. Never raises."""
        self._end(None)

    def fail(self, error: BaseException) -> None:
        """End with the exception that left the body. Never raises."""
        self._end(error)

    def exit(self, error: BaseException | None) -> None:
        """End of a `with` block. Never raises."""
        self._end(error)

    def end_as_sent(self, duration_ns: int, error: tuple[str, str | None] | None) -> None:
        """End as somebody else's span says: how long it took, and its error's class and message. Never raises."""
        if self._is_ended:
            return
        self._is_ended = True
        self.duration_ns = duration_ns
        try:
            if error is not None:
                self.status = "error"
                self.error_type, self.error_message = error
                for one in self.lists:
                    one.is_partial = one.role == "out"
            elif not self._has_told_output:
                self._no_output()
        except Exception as trouble:  # recording never raises into the service
            self._failed(trouble)
        self._close(None)

    def _end(self, error: BaseException | None) -> None:
        if self._is_ended:
            return
        self._is_ended = True
        self.duration_ns = clock.monotonic_ns() - self.started_ns
        try:
            if error is not None:
                self.status, self.error_type, self.error_message = outcome(error)
            if self.parts is not None:
                self._take_parts(self.parts)
            elif error is None and not self._has_told_output:
                self._no_output()
            if error is not None:
                for one in self.lists:
                    if one.role == "out":
                        one.is_partial = True
            if self._losers is not None:
                self.lists.append(flow.dropped_list(self, self._losers))
        except Exception as trouble:  # recording never raises into the service
            self._failed(trouble)
        self._close(error)

    def _close(self, error: BaseException | None) -> None:
        """What every end has in common: the span, the place in the order of ends, and the hand-over to the scope."""
        try:
            self.list_arguments = []
            self.call = None
            scope = self.scope
            self.epoch = self.recorder.epoch
            if self.span is not None:
                n_out = next((len(one.ids) for one in self.lists if one.role == "out"), None)
                spans.end(self.span, n_out, self.error_type)
            self.end_no = scope.next_no()
            scope.take(self)
            if self.owns_scope:
                if error is None:
                    scope.finish()
                else:
                    scope.fail(error)
        except Exception as trouble:  # recording never raises into the service
            guard.swallow(trouble, "stage end", self.recorder.losses)

    def _take_output(self, value: Any) -> None:
        if self.is_ingest:
            ingesting.take_output(self, value)
        else:
            flow.take_output(self, value)

    def _no_output(self) -> None:
        """A `with` block that told no output, or a generator that yielded nothing."""
        if self.is_ingest and self.given:
            self._take_output(None)  # as of a function that returns nothing: what it took is what it wrote
        if self.is_ingest or self.stage.kind in ("generate", "rewrite"):
            return
        if self.is_generator:
            self.lists.append(flow.joined_list(self, []))
        else:
            self.note("no output")
            self.lists.append(flow.unread(self))

    # ---------------------------------------------------------------- notes

    def note(self, what: str) -> None:
        """Remember something of this run that could not be recorded."""
        if len(self.errors) < 8 and what not in self.errors:
            self.errors = [*self.errors, what]

    def note_rewrite(self, result: Any) -> None:
        """The query texts a rewrite put out."""
        if isinstance(result, str):
            self.query_text = result
            return
        values = list(result.values()) if isinstance(result, dict) else result
        texts = [text for text in values if isinstance(text, str)] if isinstance(values, (list, tuple)) else []
        if texts:
            self.query_text = texts
        else:
            self.note(f"unreadable output: {type(result).__name__}")

    def _failed(self, error: Exception) -> None:
        self.note(f"{type(error).__name__} while recording")
        guard.swallow(error, f"{self.stage.kind} stage", self.recorder.losses)


def outcome(error: BaseException) -> tuple[str, str, str | None]:
    """Status, exception class and message. Only texts among the exception's arguments are read: `str` may be the user's."""
    kind = type(error)
    # CancelledError, GeneratorExit, KeyboardInterrupt and SystemExit are no Exception; that of concurrent.futures is.
    is_cancelled = not isinstance(error, Exception) or kind.__name__ == "CancelledError"
    arguments = error.args
    message = " ".join(argument for argument in arguments if isinstance(argument, str)) if arguments else None
    return ("cancelled" if is_cancelled else "error"), kind.__qualname__, message or None
