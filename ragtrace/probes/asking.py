"""One question put to one retriever, timed, and recorded as a probe run of the retrieve run it explains.

The answer is read by the same shapes as a recorded stage's. Stages that the retriever's own code is decorated with are
not recorded meanwhile.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ragtrace import clock, digest
from ragtrace.probes.awaiting import Loop
from ragtrace.probes.retrievers import Retriever
from ragtrace.recording import candidates, context
from ragtrace.recording.nodes import Node
from ragtrace.recording.recorder import Recorder
from ragtrace.recording.runs import outcome
from ragtrace.recording.values import as_name
from ragtrace.spool.records import CandidateList, Columns, Record, StageRecord

__all__ = ["Answer", "Asker", "Missed"]

# After every run of the query, in whose place no probe may stand.
_AFTER_ALL = 1 << 30

_MOST_FAILURES = 100
"""Different ones that are remembered: a message may hold the query, and a service asks for years."""

_LONGEST_MESSAGE = 200


class Missed(NamedTuple):
    """A recorded retrieve run that is asked again."""

    query_id: int
    stage_id: int
    name: str
    mode: str | None
    k: int | None
    query: str
    """What it was asked."""
    original: str | None
    """The question as asked; None when it is the same, not known, or was searched as well."""
    filter: Any
    """As it went through JSON; None for none."""
    score_kind: str | None = None
    is_higher_better: bool | None = None
    index_name: str | None = None
    index_version: str | None = None
    """The index's state then, as declared."""


class Answer(NamedTuple):
    """What came back."""

    ids: Sequence[str | None]
    """Chunk ids in rank order; None for an item that has none."""
    is_ok: bool
    """False: it raised, or what it returned is no candidate list."""


class _Asking(Node):
    """What is current while a retriever is asked: stages called from here are the probe itself, not the service's."""

    __slots__ = ("id",)

    def __init__(self, probe: str) -> None:
        self.query = self.document = None
        self.round = None
        self.is_aside = True
        self.probe = probe
        self.span = None
        self.id = self.trace_id = self.parent_span_id = 0

    def is_same_step(self, kind: str, plan: Any, args: tuple[Any, ...]) -> bool:
        """Always: what is called from here is recorded as the probe."""
        return True


class Asker:
    """Asks and records; one thread at a time. Closed at the end."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.n_calls = 0
        self.n_failed = 0
        """Calls that raised or gave no candidate list."""
        self.failures: Counter[str] = Counter()
        """How often each function failed, by a sentence with the exception's type and its message, redacted."""
        self._loop: Loop | None = None

    def version(self, retriever: Retriever) -> str | None:
        """The index's state now as the retriever declares it; None when it does not or cannot."""
        if retriever.index_version is None:
            return None
        try:
            return as_name(self._called("again", retriever.index_version))
        except Exception as error:  # the user's function; without a version the control question decides
            self._failed(retriever.name, "index_version", _raised(error))
            return None

    def search(
        self,
        missed: Missed,
        retriever: Retriever,
        probe: str,
        ask: Callable[[str, int, Any], Any],
        *,
        query: str,
        k: int,
        filter: Any,
        is_exact: bool = False,
        version: str | None = None,
    ) -> Answer:
        """Ask for the k best and record what comes back. Never raises for what the retriever does."""
        row = self._row(missed, probe, version)
        row.update(k=k, query_hash=digest.of_text(query), mode="exact" if is_exact else missed.mode)
        rows = self._read(row, retriever, "exact" if is_exact else "search", ask, query, k, filter)
        return self._record(row, rows)

    def get(self, missed: Missed, retriever: Retriever, ids: Sequence[str], version: str | None) -> Answer:
        """Ask for chunks by id and record which are there and which are not. Never raises for what the retriever does."""
        row = self._row(missed, "by_id", version)
        assert retriever.get is not None
        rows = self._read(row, retriever, "get", retriever.get, list(ids))
        there = set() if rows is None else set(rows[0].chunk_id)
        absent = [] if rows is None else [name for name in ids if name not in there]
        return self._record(row, rows, absent)

    def close(self) -> None:
        """Let go of the event loop that coroutines were run in."""
        if self._loop is not None:
            self._loop.close()
            self._loop = None

    # ---------------------------------------------------------------- the call

    def _row(self, missed: Missed, probe: str, version: str | None) -> dict[str, Any]:
        recorder, name = self.recorder, self.recorder.capture.name
        return {
            "stage_id": recorder.next_id(),
            "query_id": missed.query_id,
            "start_no": _AFTER_ALL,
            "end_no": _AFTER_ALL,
            "kind": "retrieve",
            "name": name(missed.name),
            "mode": missed.mode,
            "probe": probe,
            "probed_stage_id": missed.stage_id,
            "score_kind": missed.score_kind,
            "is_higher_better": missed.is_higher_better,
            "index_name": name(missed.index_name),
            "index_version": name(version),
            "is_detached": True,
            "process_id": recorder.process_id,
        }

    def _read(
        self, row: dict[str, Any], retriever: Retriever, what: str, function: Callable[..., Any], *arguments: Any
    ) -> candidates.Rows | None:
        """What the function returned, as rows; None when it raised or returned no candidate list."""
        self.n_calls += 1
        found, said = self._timed(row, function, *arguments)
        rows = None if said is not None else candidates.read_with_texts(found, extract=retriever.extract)
        if rows is None:
            self.n_failed += 1
            self._failed(retriever.name, what, said or f"returned no candidate list: {type(found).__name__}")
        return rows

    def _timed(self, row: dict[str, Any], function: Callable[..., Any], *arguments: Any) -> tuple[Any, str | None]:
        """What the function returned, and None; or nothing, and what it raised."""
        said = found = None
        row["started_at_ns"] = clock.wall_ns()
        started_ns = clock.monotonic_ns()
        try:
            found = self._called(row["probe"], function, *arguments)
            row["status"] = "ok"
        except Exception as error:  # a retriever that fails is an answer too: it is recorded, and the next one is asked
            said = _raised(error)
            row["status"], row["error_type"] = "error", type(error).__qualname__
        row["duration_ns"] = clock.monotonic_ns() - started_ns
        return found, said

    def _failed(self, name: str, what: str, said: str) -> None:
        # It is shown to who asks and not stored, but to the redactor first: a message may hold the query.
        words = self.recorder.capture.words(f"{name}: {what} {said}")
        if words in self.failures or len(self.failures) < _MOST_FAILURES:
            self.failures[words] += 1

    def _called(self, probe: str, function: Callable[..., Any], *arguments: Any) -> Any:
        token = context.current.set(_Asking(probe))
        try:
            found = function(*arguments)
            if inspect.isawaitable(found):
                found = self._awaited(found)
            return list(found) if inspect.isgenerator(found) else found
        finally:
            context.current.reset(token)

    def _awaited(self, found: Any) -> Any:
        if self._loop is None:
            self._loop = Loop()
        return self._loop.wait(found)

    # ---------------------------------------------------------------- the rows

    def _record(self, row: dict[str, Any], rows: candidates.Rows | None, absent: Sequence[str] = ()) -> Answer:
        recorder = self.recorder
        lists = []
        if rows is None:
            lists.append(CandidateList(recorder.next_id(), "out", None, is_complete=False))
        else:
            lists.append(CandidateList(recorder.next_id(), "out", self._named(_hashed(*rows))))
        if absent:
            named = [recorder.capture.name(name) for name in absent]
            reasons = dict.fromkeys(range(len(named)), "not found")
            lists.append(CandidateList(recorder.next_id(), "dropped", Columns(named, drop_reason=reasons)))
        recorder.write([Record("stage", StageRecord(row, lists))])
        if rows is None:
            return Answer((), False)
        # By the names they have in the store: a redactor may have changed them.
        return Answer([recorder.capture.name(name) for name in rows[0].chunk_id], True)

    def _named(self, columns: Columns) -> Columns:
        name = self.recorder.capture.name
        if not self.recorder.capture.has_redactor:
            return columns
        doc_id = columns.doc_id
        return columns._replace(
            chunk_id=list(map(name, columns.chunk_id)), doc_id=None if doc_id is None else list(map(name, doc_id))
        )


def _raised(error: Exception) -> str:
    _, kind, message = outcome(error)
    flat = " ".join((message or "").split())
    return f"raised {kind}: {flat[:_LONGEST_MESSAGE]}" if flat else f"raised {kind}"


def _hashed(columns: Columns, texts: Sequence[str | None] | None) -> Columns:
    """An item without an id is known by its text."""
    if texts is None or columns.item_text_hash is not None or None not in columns.chunk_id:
        return columns
    return columns._replace(
        item_text_hash=[
            digest.of_text(text) if text is not None and name is None else None
            for name, text in zip(columns.chunk_id, texts, strict=True)
        ]
    )
