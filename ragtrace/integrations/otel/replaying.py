"""Traces of others as records: each stage is told to the recorder as if it ran again, in the order in which it ran.

So lists are recognised, prompts searched and texts kept back by the rules that hold for decorated functions.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ragtrace import clock, guard
from ragtrace.integrations.otel.reading import Items
from ragtrace.integrations.otel.rules import Said
from ragtrace.integrations.otel.spans import Span
from ragtrace.integrations.otel.traces import Asked, Node, queries
from ragtrace.recording.recorder import Recorder
from ragtrace.recording.runs import Run
from ragtrace.recording.scopes import Query
from ragtrace.recording.stages import Stage
from ragtrace.settings import Settings
from ragtrace.spool.records import CandidateList, Record

__all__ = ["Replay", "write_trace"]

_OUR_OWN = "ragtrace"
"""The name of the tracer of decorated stages."""


class _NoTracing:
    """No spans of our own: these are somebody's spans already."""

    tracer = None

    def refresh(self) -> None:
        """Nothing to look for."""

    def outer_ids(self) -> tuple[int, int]:
        """Nothing is around."""
        return 0, 0


class _Ids(NamedTuple):
    trace_id: int
    span_id: int


class _Sent:
    """The span that was sent, where a run looks for its own."""

    __slots__ = ("_ids", "parent")

    def __init__(self, span: Span) -> None:
        self._ids = _Ids(span.trace_id, span.span_id)
        self.parent = _Ids(span.trace_id, span.parent_id)

    def get_span_context(self) -> _Ids:
        """Its ids."""
        return self._ids

    def is_recording(self) -> bool:
        """It has ended."""
        return False

    def end(self) -> None:
        """It has ended."""


class Replay(Recorder):
    """A recorder that holds back what it is told until `commit`: a trace is in the log whole, or not at all.

    Each thread holds back its own: two may write a trace at a time.
    """

    def __init__(self, configured: Settings) -> None:
        super().__init__(configured)
        self.tracing = _NoTracing()  # type: ignore[assignment]  # what a recorder asks of it is there
        self._of_thread = threading.local()

    def write(self, records: Sequence[Record | bytes]) -> None:
        """Hold records back."""
        self._held().extend(records)

    def commit(self) -> None:
        """Append what was held back to the log. Never raises."""
        held = self._held()
        self._of_thread.held = []
        super().write(held)

    def _held(self) -> list[Record | bytes]:
        held: list[Record | bytes] | None = getattr(self._of_thread, "held", None)
        if held is None:
            held = self._of_thread.held = []
        return held

    @property
    def is_waiting(self) -> bool:
        """Whether something of it waits in memory for a disk that refuses."""
        return self.log.is_waiting


def write_trace(
    replay: Replay, spans: Mapping[int, tuple[Span, Said | None]], known: Mapping[int, int] | None = None
) -> dict[int, int]:
    """Append the queries of a trace to the log of the recorder, whole or not at all. Never raises.

    A trace with spans of decorated stages is left out: its service records what they say, and more.

    `known` are spans of the trace that were written earlier, with the query of each; 0 for those that are not known. Returned are these spans with the
    query each was written in, 0 for none. A stage that comes after its query was written is counted as lost, and its
    query is not judged any more: what its model read can no longer be told.
    """
    written = dict.fromkeys(spans, 0)
    if any(span.scope == _OUR_OWN for span, _ in spans.values()):
        return written  # the service records it itself
    late = _late(spans, known) if known else {}
    try:
        for query_id in set(filter(None, late.values())):
            unknown = CandidateList(replay.next_id(), "context", None, is_complete=False)
            replay.write([Record("context", (query_id, unknown))])
        if n_late := sum(map(bool, late.values())):
            replay.losses.add("late_span", n_late)
        for one in queries({span_id: span for span_id, span in spans.items() if span_id not in late}):
            query_id = _replay(replay, one)
            written.update(dict.fromkeys((node.span.span_id for node in one.nodes), query_id))
    except Exception as error:  # what one sender sent must not keep the others' from being written
        guard.swallow(error, "trace", replay.losses)
    replay.commit()
    written.update(late)
    return written


def _late(spans: Mapping[int, tuple[Span, Said | None]], known: Mapping[int, int]) -> dict[int, int]:
    """The spans that belong to a query that is written already, with it; those that say no stage change nothing."""
    found: dict[int, int] = {}
    for span_id in spans:
        above = span_id
        seen = set()
        while above in spans and above not in seen:
            seen.add(above)
            above = spans[above][0].parent_id
        # 0: what an earlier collector wrote of the trace, of which not every span is known.
        query_id = known.get(above, known.get(0))
        if query_id is not None:
            said = spans[span_id][1]
            found[span_id] = query_id if said is not None and said.kind else 0
    return found


def _replay(replay: Replay, asked: Asked) -> int:
    query = Query(
        replay,
        None,
        asked.question(),
        asked.fact(lambda said: said.question_id),
        asked.fact(lambda said: said.session),
        None,
        None,
    )
    nodes = asked.nodes
    head = asked.head.span if asked.head is not None else None
    started_ns = min(node.span.start_ns for node in nodes)
    ended_ns = max(node.span.end_ns for node in nodes)
    query.span = _Sent(head or nodes[0].span)
    query.started_at_ns = head.start_ns if head is not None else started_ns
    answer = _answer(nodes)
    runs: dict[int, Run] = {}
    for start in asked.order():
        node = start.node
        if start.is_end:
            _end(runs[node.span.span_id], node)
        else:
            around = None if start.around is None else runs[start.around.span.span_id]
            runs[node.span.span_id] = _begin(replay, query, around, node, node is answer)
    if not asked.is_whole:
        query.n_stages += 1  # one that is known to have been there and never came: the query is not whole
    query.started_ns = clock.monotonic_ns() - (
        (head.end_ns - head.start_ns) if head is not None else ended_ns - started_ns
    )
    if head is not None and head.error is not None:
        query.status, query.error_type, query.error_message = "error", _error_type(head), head.error or None
    query.finish()
    return query.id


def _answer(nodes: Sequence[Node]) -> Node | None:
    """The model call that answers: the last one to end, when it began after a retriever had ended."""
    models = [node for node in nodes if node.kind == "generate"]
    last = max(models, key=lambda node: node.span.end_ns, default=None)
    retrieved_ns = min((node.span.end_ns for node in nodes if node.kind == "retrieve"), default=None)
    if last is None or retrieved_ns is None or last.span.start_ns < retrieved_ns:
        return None
    return last


@lru_cache(maxsize=1024)
def _stage(kind: str, name: str, arguments: tuple[tuple[str, Any], ...]) -> Stage:
    return Stage(kind, {"name": name, **dict(arguments)})


def _begin(replay: Replay, query: Query, around: Run | None, node: Node, is_answer: bool) -> Run:
    said, span = node.said, node.span
    assert said is not None  # only spans that say something are stages
    kind = said.kind
    if kind == "retrieve" and sum(child.kind == "retrieve" for child in _stages_below(node)) > 1:
        kind = "fuse"  # a retriever that asks several others puts their lists together
    arguments: dict[str, Any] = {
        "mode": said.mode,
        "k": said.k,
        "threshold": said.threshold,
        "score_kind": said.score_kind,
        "higher_is_better": said.is_higher_better,
        "index": said.index_name,
        "model": said.model,
        "answer": is_answer or None,
        "written_by": ", ".join(said.vocabularies) or None,
    }
    stage = _stage(
        kind,
        said.label or span.name or kind,
        tuple((name, value) for name, value in arguments.items() if value is not None),
    )
    run = Run(stage, replay, query, around if around is not None else query, query)
    run.span = _Sent(span)
    run.started_at_ns = span.start_ns
    run.query_text = said.query
    if said.filter is not None:
        run.set_value("filter", said.filter)
    if said.input is not None:
        _take(run, said.input, said.n_input_declared, is_input=True)
    elif kind == "generate" and said.prompt is not None:
        run.input(said.prompt)
        for one in run.lists:
            one.is_complete = one.is_complete and said.is_prompt_complete
    return run


def _stages_below(node: Node) -> list[Node]:
    """The stages directly inside, whatever else is between."""
    found: list[Node] = []
    waiting = list(node.children)
    while waiting:
        inner = waiting.pop()
        if inner.kind:
            found.append(inner)
        else:
            waiting.extend(inner.children)
    return found


def _take(run: Run, items: Items, n_declared: int | None, *, is_input: bool) -> None:
    n_before = len(run.lists)
    if is_input:
        run.input(items.rows)
    else:
        run.output(items.rows)
    for one in run.lists[n_before:]:
        one.n_declared = n_declared
        if not items.is_complete:
            one.is_complete = False


def _end(run: Run, node: Node) -> None:
    said, span = node.said, node.span
    assert said is not None  # see _begin
    if said.output is not None:
        _take(run, said.output, said.n_output_declared, is_input=False)
    error = None if span.error is None else (_error_type(span), span.error or None)
    run.end_as_sent(max(0, span.end_ns - span.start_ns), error)


def _error_type(span: Span) -> str:
    named = [event.attributes.get("exception.type") for event in span.events if event.name == "exception"]
    return next((name for name in (*named, span.attributes.get("error.type")) if isinstance(name, str)), "Error")
