"""Asks again while the service runs: a sample of its searches, in a thread of its own, after the query has ended.

Nobody knows yet what evidence they should have found: the whole answer is recorded, and proves a reason once labels come.
What the request's thread does is draw the lot and hand over a few numbers; when the queue is full it passes on.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import threading
import time
import weakref
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from ragtrace import guard
from ragtrace.probes.asking import Asker, Missed
from ragtrace.probes.faithful import is_faithful
from ragtrace.probes.retrievers import Retrievers
from ragtrace.probes.series import Wanted, ask_again
from ragtrace.recording import context

if TYPE_CHECKING:
    from ragtrace.recording.recorder import Recorder
    from ragtrace.recording.runs import Run

__all__ = ["Sampler", "watch"]

MOST_WAITING = 100
_POLL_S = 0.02
# A query that never ends is not waited for.
_MOST_OPEN_S = 60.0
# How often it is said that searches were passed over.
_TELL_S = 60.0
# Query ids count up by one: the golden ratio spreads neighbours over the whole range.
_SPREAD = 0x9E3779B97F4A7C15
_RANGE = 1 << 64


class _Waiting(NamedTuple):
    recorder: Recorder
    missed: Missed
    wanted: Wanted
    taken_s: float


class Sampler:
    """One sample of a process's searches. `take` may be called by many threads."""

    def __init__(self, retrievers: Retrievers, share: float, calls_per_minute: float) -> None:
        self.retrievers = retrievers
        self._limit = int(share * _RANGE)
        self._seconds_per_call = 60.0 / calls_per_minute
        self._begin()
        atexit.register(self.stop)
        if hasattr(os, "register_at_fork"):
            # A fork has one thread: what begins anew there cannot race, as it could in the child's first `take`.
            anew = weakref.WeakMethod(self._after_fork)
            os.register_at_fork(after_in_child=lambda: (begin := anew()) and begin())

    def _after_fork(self) -> None:
        is_stopped = self._is_stopped.is_set()
        self._begin()
        if is_stopped:
            self._is_stopped.set()

    def _begin(self) -> None:
        """Nothing waits, nothing runs: at first, and in a forked child."""
        self._queue: deque[_Waiting] = deque()
        self._is_wanted = threading.Event()
        self._is_stopped = threading.Event()
        self._thread: threading.Thread | None = None
        # Held to count, and once to start the thread: two that begin at once must not start two.
        self._lock = threading.Lock()
        self.n_passed_over = 0
        """Searches that were drawn and not asked again: the queue was full, or their query did not end in a minute."""
        self._n_told = 0
        self._told_s = time.monotonic() - _TELL_S

    # ---------------------------------------------------------------- in the request's thread

    def take(self, run: Run) -> None:
        """Remember a search that has ended, if the lot falls on its query. Never blocks, never raises."""
        try:
            query = run.query
            if query is None or query.id * _SPREAD % _RANGE >= self._limit or run.probe is not None:
                return
            if run.is_aside or run.status != "ok" or self.retrievers.find(run.stage.name) is None:
                return
            if self._is_stopped.is_set():
                return
            if len(self._queue) >= MOST_WAITING:
                self._pass_over()
                return
            waiting = _waiting(run)
            if waiting is None:
                return
            self._queue.append(waiting)
            if self._thread is None:
                self._start()
            self._is_wanted.set()
        except Exception as error:  # recording never raises into the service; at its end no thread can be started
            guard.swallow(error, "probe", run.recorder.losses)

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                thread = threading.Thread(target=self._work, name="ragtrace-probe", daemon=True)
                thread.start()
                self._thread = thread

    def _pass_over(self) -> None:
        with self._lock:
            self.n_passed_over += 1

    # ---------------------------------------------------------------- in its own thread

    def _work(self) -> None:
        askers: dict[int, Asker] = {}
        n_open = 0
        is_first_to_end = False
        while not self._is_stopped.is_set():
            if time.monotonic() - self._told_s >= _TELL_S:
                self._tell()
            try:
                waiting = self._queue.popleft()
            except IndexError:
                self._is_wanted.wait()
                self._is_wanted.clear()
                continue
            recorder = waiting.recorder
            if waiting.missed.query_id in recorder.open:
                n_open += 1
                self._put_back(waiting)
                if n_open >= len(self._queue):  # all that wait were looked at
                    n_open = 0
                    self._is_stopped.wait(_POLL_S)
                continue
            n_open = 0
            if not is_first_to_end:
                # Exit hooks run last in, first out, and the recorder's came in with its first record: ended after it,
                # this thread would go on asking for as long as the merge at exit takes.
                is_first_to_end = True
                atexit.unregister(self.stop)
                atexit.register(self.stop)
            try:
                retriever = self.retrievers.find(waiting.missed.name)
                if retriever is None:
                    continue
                asker = askers.setdefault(id(recorder), Asker(recorder))
                before = asker.n_calls
                ask_again(asker, waiting.missed, retriever, waiting.wanted)
                # Slower than the service by far: the index has other users.
                self._is_stopped.wait((asker.n_calls - before) * self._seconds_per_call)
            except Exception as error:  # one search that cannot be asked again must not end the thread
                guard.swallow(error, "probe", recorder.losses)
        for asker in askers.values():
            asker.close()
        self._tell()

    def _put_back(self, waiting: _Waiting) -> None:
        """Behind the others, whose queries a long stream must not hold up; let go of when it takes too long."""
        if time.monotonic() - waiting.taken_s > _MOST_OPEN_S:
            self._pass_over()
        else:
            self._queue.append(waiting)

    def _tell(self) -> None:
        """Say what was passed over since the last time, if anything."""
        n = self.n_passed_over - self._n_told
        if n:
            self._n_told += n
            self._told_s = time.monotonic()
            logging.getLogger("ragtrace").warning(
                "%d sampled searches were not asked again: %d may wait, for the end of their query and"
                " calls_per_minute; a smaller share or more calls would reach them", n, MOST_WAITING,
            )  # fmt: skip

    def stop(self, timeout_s: float = 1.0) -> bool:
        """Begin no further question and wait for the one that is being asked; false when that takes too long."""
        atexit.unregister(self.stop)
        self._is_stopped.set()
        self._is_wanted.set()
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return True
        thread.join(timeout_s)
        return not thread.is_alive()


def _waiting(run: Run) -> _Waiting | None:
    """What is needed to ask again, without a reference to the query: its texts are to be let go. None: it cannot be."""
    query = run.query
    text = run.query_text
    if query is None or not isinstance(text, str):
        return None
    row = {**run.stage.row, **run.values}
    extra = {**run.stage.extra, **run.extra}
    filter = json.loads(extra["filter"]) if "filter" in extra else None
    if not is_faithful(filter):
        return None
    name = run.recorder.capture.name
    given = [one for one in run.lists if one.role == "out"]
    ids = [name(chunk_id) for one in given for chunk_id in (one.columns.chunk_id if one.columns is not None else ())]
    is_known = all(one.is_complete for one in given) and None not in ids
    missed = Missed(
        query_id=query.id,
        stage_id=run.id,
        name=run.stage.name,
        mode=row.get("mode"),
        k=row.get("k"),
        query=text,
        original=query.question if query.question != text else None,
        filter=filter,
        score_kind=row.get("score_kind"),
        is_higher_better=row.get("is_higher_better"),
        index_name=row.get("index_name"),
        index_version=extra.get("index_version"),
    )
    wanted = Wanted(given=[one for one in ids if one is not None] if is_known else None)
    return _Waiting(run.recorder, missed, wanted, time.monotonic())


def watch(sampler: Sampler | None) -> None:
    """Have a sampler told of every search that ends in this process; None: nobody any more."""
    context.on_retrieved = None if sampler is None else sampler.take
