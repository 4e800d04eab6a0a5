"""Where finished frames wait while the disk is slow or refuses: a bounded queue and a thread that drains it.

The thread starts with the first frame that has to wait and ends when nothing has waited for a while.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from ragtrace import clock

__all__ = ["Spill"]

# How long the thread leaves a failing disk alone between two tries.
RETRY_S = 0.25
# How long it stays when nothing waits: starting one for every query of a slow second costs more than the disk.
LINGER_S = 3.0
# A few counts of what was lost: they must not be what fills the queue.
_SMALL_BYTES = 4096


class Spill:
    """Frames that wait, at most `max_bytes` of them: the newest are the first to go."""

    def __init__(self, write: Callable[[Sequence[bytes]], Sequence[bytes]], max_bytes: int) -> None:
        """`write` returns the frames it could not write; it never raises."""
        self._write = write
        self._max_bytes = max_bytes
        self._waiting: deque[Sequence[bytes]] = deque()
        # RLock: a collection inside the locked part may close a generator, which records.
        self._lock = threading.RLock()
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()
        self.n_bytes = 0
        """Bytes that wait now, those being written included."""

    @property
    def is_full(self) -> bool:
        """Whether there is no room left for what is small beside a query."""
        return self.n_bytes > 0 and self.n_bytes + _SMALL_BYTES > self._max_bytes

    def put(self, frames: Sequence[bytes]) -> bool:
        """Let frames wait; false when there is no room for them. Never blocks on the disk, never raises."""
        size = sum(map(len, frames))
        with self._lock:
            is_full = self.n_bytes + size > self._max_bytes
            if not is_full:
                self._waiting.append(frames)
                self.n_bytes += size
                self._wake.set()
                if self._thread is None:
                    thread = threading.Thread(target=self._drain, name="ragtrace-spill", daemon=True)
                    try:
                        thread.start()
                        self._thread = thread
                    except RuntimeError:
                        pass  # no new threads while the interpreter ends: `drain` at exit writes what waits
        return not is_full

    def drain(self, deadline_ns: int) -> bool:
        """Wait until nothing waits any more; write here when no thread does. False when time ran out first."""
        while self.n_bytes:
            if self._thread is None or not self._thread.is_alive():
                self._write_next()
            if clock.monotonic_ns() >= deadline_ns:
                return not self.n_bytes
            if self.n_bytes:
                time.sleep(0.002)  # the disk is at work in another thread; there is nothing to be told by
        return True

    def _drain(self) -> None:
        while True:
            if self._write_next():
                time.sleep(RETRY_S)  # the disk refused; asking again at once would only burn the service's processor
            if self._waiting:
                continue
            self._wake.clear()
            if not self._waiting and not self._wake.wait(LINGER_S):
                with self._lock:
                    if not self._waiting:
                        self._thread = None
                        return

    def _write_next(self) -> bool:
        """Write the oldest; true when the disk refused and it waits again."""
        try:
            frames = self._waiting.popleft()
        except IndexError:
            return False
        left = self._write(frames)
        with self._lock:
            self.n_bytes -= sum(map(len, frames)) - sum(map(len, left))
            if left:
                self._waiting.appendleft(left)
        return bool(left)
