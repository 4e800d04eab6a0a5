"""The recorder: one configuration with its ids, its log and its open scopes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from platform import node as host_name
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from ragtrace import clock, guard, settings
from ragtrace.losses import Losses
from ragtrace.recording import leaving, opening, scopes
from ragtrace.recording.capturing import Capture
from ragtrace.recording.context import current
from ragtrace.recording.runs import Run
from ragtrace.recording.spans import Tracing
from ragtrace.recording.values import as_id, as_name
from ragtrace.spool import frames
from ragtrace.spool.log import Log, spool_of
from ragtrace.spool.records import Record
from ragtrace.version import __version__

if TYPE_CHECKING:
    from ragtrace.recording.nodes import Node
    from ragtrace.recording.rounds import Round
    from ragtrace.recording.scopes import Document, Query, Scope
    from ragtrace.recording.stages import Stage

__all__ = ["Recorder"]

# A worker started inside a request keeps its context for ever: what starts this long after the query's end is not its.
LATE_NS = 60_000_000_000

_recorders: WeakSet[Recorder] = WeakSet()


class Recorder:
    """Writes what one configuration records. Thread-safe; nothing here raises into the service."""

    def __init__(self, configured: settings.Settings) -> None:
        self.settings = configured
        self.losses = Losses()
        self.capture = Capture(configured, self.losses)
        self.tracing = Tracing(configured.tracer_provider)
        self.open: dict[int, Scope] = {}
        """Scopes whose body runs, by id."""
        self._begin_process()
        _recorders.add(self)
        self.log = Log(spool_of(configured.store), self._head, configured.max_queue_bytes, self.losses)

    def _begin_process(self) -> None:
        self.pid = os.getpid()
        self.begun_ns = clock.monotonic_ns()
        self.epoch = object()
        """Another object in a forked child: what began in the parent is told by it."""
        # 62 random bits to begin at, 63 to count in: unique over hosts, rising, positive.
        self.next_id = count(int.from_bytes(os.urandom(8), "big") >> 2 or 1).__next__
        self.process_id = self.next_id()
        self.trace_half = int.from_bytes(os.urandom(8), "big") or 1
        self._has_written = False

    def after_fork(self) -> None:
        """Begin anew in a forked child: its own ids, log and counts; open scopes stay the parent's."""
        parents, self.open = list(self.open.values()), {}
        self._begin_process()
        for scope in parents:
            scope.after_fork()
        self.losses.forget()
        self.capture.after_fork()
        self.log.after_fork()

    @property
    def is_foreign(self) -> bool:
        """Whether this is a forked child that no hook of Python's has told."""
        return self.pid != os.getpid()

    # ---------------------------------------------------------------- scopes

    def begin_run(self, stage: Stage, around: Node | None) -> Run:
        """A run of a stage in the scope around it, not current yet."""
        query = None if around is None or stage.is_ingest else around.query
        if query is not None and not query.is_ended and query.epoch is query.recorder.epoch:
            return Run(stage, self, query, around, query)  # by far the most: as below, without looking further
        parent = living(around)
        scope = self.scope_for(stage, parent)
        run = Run(stage, self, scope, parent, scope.query)
        # A document made for this stage alone ends with it.
        run.owns_scope = scope.is_document and (parent is None or parent.document is not scope)
        return run

    def scope_for(self, stage: Stage, parent: Node | None) -> Scope:
        """The scope a stage runs in: the query or document around it, else one of its own."""
        if parent is not None:
            found = parent.document if stage.is_ingest else parent.query
            if found is None and not stage.is_ingest:
                scope = getattr(parent, "scope", None)
                found = scope if scope is not None and scope.is_orphan else None
            if found is not None:
                return found
        if self.is_foreign:
            self.after_fork()
        if stage.is_ingest:
            return scopes.Document(self, parent, is_implicit=True)
        return scopes.Orphan(self, parent)

    def begin_block(
        self, word: str, arguments: Mapping[str, Any], call: opening.Call | None
    ) -> Query | Round | Document:
        """A query, round or document, not current yet."""
        if self.pid != os.getpid():
            self.after_fork()
        opener = opening.open_query if word == "query" else opening.open_document
        around = current.get()
        return opener(self, None if around is None else living(around), arguments, call)

    # ---------------------------------------------------------------- what is declared

    def declare_context(self, value: Any, carried: Any, extract: Callable[[Any], Any] | None) -> None:
        """See `rt.context`. Never raises."""
        try:
            node = current.get()
            query = node.query if node is not None else None
            if query is None:
                self.losses.add("context_outside_query")
            else:
                query.context(value, carried=carried, extract=extract)
        except Exception as error:  # recording never raises into the service
            guard.swallow(error, "context", self.losses)

    def declare_inventory(
        self, index: str | None, chunk_ids: Iterable[Any] | None, doc_ids: Iterable[Any] | None
    ) -> None:
        """See `rt.inventory`. Never raises."""
        try:
            given = list(chunk_ids if chunk_ids is not None else doc_ids or ())
            names = [self.capture.name(name) for value in given if (name := as_id(value)) is not None]
            if len(names) < len(given):
                # With an id missing the layer would not be complete: that must not be claimed.
                self.losses.add("unreadable_inventory", n=len(given) - len(names))
                return
            row: dict[str, Any] = {
                "inventory_id": self.next_id(),
                "index_name": self.capture.name(as_name(index)),
                "declared_at_ns": clock.wall_ns(),
                "process_id": self.process_id,
            }
            row["chunk_ids" if chunk_ids is not None else "doc_ids"] = names
            self.write([Record("inventory", row)])
        except Exception as error:  # recording never raises into the service
            guard.swallow(error, "inventory", self.losses)

    # ---------------------------------------------------------------- writing

    def write(self, records: Sequence[Record | bytes]) -> None:
        """Append records, or frames made of them, to the log. Never raises."""
        encoded = [record if isinstance(record, bytes) else self._encoded(record) for record in records]
        if b"" in encoded:
            encoded = [frame for frame in encoded if frame]
        if not encoded and not self.losses:
            return
        if not self._has_written:
            self._has_written = True
            leaving.arrange(self)
        self._append(encoded)

    def _encoded(self, record: Record) -> bytes:
        """The frame of a record; empty for one that cannot be said, which must not take the others with it."""
        try:
            return frames.encode(record)
        except Exception as error:  # see above
            self.losses.add("encode_error", detail=f"{record.kind}: {type(error).__name__}")
            guard.swallow(error, "encode", self.losses)
            return b""

    def _append(self, encoded: Sequence[bytes]) -> None:
        """Append frames, and what was lost so far; while the queue is full the counts wait here, or they would be lost too."""
        if not self.losses or self.log.is_full:
            if encoded:
                self.log.append(encoded)
            return
        rows = self.losses.take()
        counts = [
            frames.encode(
                Record("loss", {**row, "detail": self.capture.name(row["detail"]), "process_id": self.process_id})
            )
            for row in rows
        ]
        n_returned = self.log.append(encoded, counts)
        if n_returned:
            self.losses.give_back(rows[-n_returned:])

    def _head(self) -> bytes:
        configured = self.settings
        return frames.encode(
            Record(
                "process",
                {
                    "process_id": self.process_id,
                    "host": host_name(),
                    "pid": self.pid,
                    "service": configured.service,
                    "started_at_ns": clock.wall_ns(),
                    "python": ".".join(map(str, sys.version_info[:3])),
                    "ragtrace": __version__,
                    "capture_text": configured.capture_text,
                },
            )
        )

    def flush(self, timeout_s: float) -> bool:
        """Write what has ended and wait until it is on the disk. Never raises."""
        try:
            for scope in list(self.open.values()):
                scope.write_pending()
            deadline_ns = clock.monotonic_ns() + int(timeout_s * 1e9)
            self._append(())
            is_flushed = self.log.flush(timeout_s)
            if self.losses and is_flushed:
                # What was lost while the queue was full, now that it is empty: nothing may come later to say it.
                self._append(())
                is_flushed = self.log.flush(max(0.0, (deadline_ns - clock.monotonic_ns()) / 1e9))
            return is_flushed
        except Exception as error:  # recording never raises into the service
            guard.swallow(error, "flush", self.losses)
            return False

    def close(self, timeout_s: float) -> bool:
        """Flush and let go of the log; what ends later opens a new one. Never raises."""
        deadline_ns = clock.monotonic_ns() + int(timeout_s * 1e9)
        is_flushed = self.flush(timeout_s)
        try:
            return self.log.close(max(0.0, (deadline_ns - clock.monotonic_ns()) / 1e9)) and is_flushed
        except Exception as error:  # recording never raises into the service
            guard.swallow(error, "close", self.losses)
            return False


def living(node: Node | None) -> Node | None:
    """The node, unless it ended too long ago to have anything to do with what runs now."""
    if node is None:
        return None
    query, document = node.query, node.document
    if query is not None and not query.is_ended and query.epoch is query.recorder.epoch:
        return node
    if query is None and document is None:  # inside a stage that ran outside of every query
        ends = [getattr(node, "ended_ns", 0)]
    else:
        ends = [_ended_ns(scope) for scope in (query, document) if scope is not None]
    return node if 0 in ends or clock.monotonic_ns() - max(ends) <= LATE_NS else None


def _ended_ns(scope: Scope) -> int:
    """When a scope ended, 0 while it runs; one of the parent's in a forked child, at the fork: no end is heard of here.

    A pool's worker takes tasks of later queries too, so there the parent's has ended long ago.
    """
    if scope.is_ended:
        return scope.ended_ns
    recorder = scope.recorder
    if scope.epoch is recorder.epoch:
        return 0
    return -LATE_NS if leaving.is_pool_worker() else recorder.begun_ns


def _after_fork() -> None:
    for recorder in list(_recorders):
        recorder.after_fork()


# Registered once, when recording is first configured: a second `configure` adds a recorder, not a hook.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
