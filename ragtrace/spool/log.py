"""A process's own log: whole frames appended by one `os.write` each time, without a lock.

`<pid>-<time>-<random>.log` in the spool, O_APPEND, held by an flock as long as its writer lives, so that a reader can
tell a live log. It is born under another name and gets this one when it is locked and says whose it is: no reader ever
sees a log that nobody seems to hold. A new file begins after a fork, past 64 MB, and when the old one was removed.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from ragtrace import clock, losses
from ragtrace.spool.spill import Spill

try:
    import fcntl
except ImportError:  # Windows has none: logs count as live while they are young
    fcntl = None  # type: ignore[assignment]

__all__ = ["LOG_SUFFIX", "Log", "is_alive", "spool_of"]

LOG_SUFFIX = ".log"
_UNLOCKED = "-unlocked"

MAX_LOG_BYTES = 64 << 20
# A page-cache write takes 10 to 30 µs. One that takes 10 ms tells nothing: on a busy machine the thread was not run, and
# a record that then waits in memory is lost by os._exit (19 of 20 were). So what counts is a share: when writes have
# taken half of the time for so long that this much has gathered, the device makes us wait.
SLOW_NS = 300_000_000
BREAK_NS = 1_000_000_000
# What another file may be spared: `ulimit -f`, a network file system that lost this one, a descriptor closed by others.
_OTHER_FILE = frozenset((errno.EFBIG, errno.ESTALE, errno.EBADF))
# A write of another thread that hangs for so long will not be followed by ours.
HANGING_NS = 100_000_000
# No thread stands this long between choosing a descriptor and writing to it.
RETIRED_NS = 10_000_000_000
# A log that could not be locked (some network file systems) counts as live this long after its last write.
UNLOCKED_LIFE_S = 24 * 3600


def spool_of(store: str | os.PathLike[str]) -> Path:
    """The folder of logs that belongs to a store."""
    return Path(f"{os.fspath(store)}.spool")


def is_alive(path: Path) -> bool:
    """Whether a log's writer may still write to it. Raises FileNotFoundError when it is gone."""
    if fcntl is not None and not path.stem.endswith(_UNLOCKED):
        with open(path, "rb") as file:
            try:
                fcntl.flock(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            except OSError:
                pass  # this file system has no locks here, whatever it had for the writer: judge by age
            else:
                return False
    return time.time() - path.stat().st_mtime < UNLOCKED_LIFE_S


class Log:
    """Appends frames for one process. Nothing here raises; what cannot be written waits, then is counted."""

    def __init__(self, spool: Path, head: Callable[[], bytes], max_queue_bytes: int, lost: losses.Losses) -> None:
        """`head` gives the first frame of each new file."""
        self._spool = spool
        self._head = head
        self._max_queue_bytes = max_queue_bytes
        self._losses = lost
        self._start_again()

    def _start_again(self) -> None:
        self._pid = os.getpid()
        self._fd = -1
        self._file: tuple[int, int] = (0, 0)
        """Device and inode behind the descriptor."""
        self._size = 0
        self._previous_fd = -1
        self._break_until_ns = 0
        self._writing_since_ns = 0
        self._waited_ns = 0
        self._waited_at_ns = 0
        # Held only while a file is opened, never around a write.
        self._opening = threading.RLock()
        self._spill = Spill(self._write, self._max_queue_bytes)
        self.path: Path | None = None
        """The file that is written now."""

    def after_fork(self) -> None:
        """Begin anew in a forked child: the parent keeps its file and what waits in its queue."""
        for fd in (self._fd, self._previous_fd):
            if fd >= 0:
                _close(fd)  # the lock stays with the parent, whose descriptor is the same open file
        self._start_again()

    @property
    def is_full(self) -> bool:
        """Whether what waits for the disk leaves no room: what is appended now may be dropped."""
        return self._spill.is_full

    @property
    def is_waiting(self) -> bool:
        """Whether something that was appended waits in memory for the disk."""
        return self._spill.n_bytes > 0

    def append(self, frames: Sequence[bytes], uncounted: Sequence[bytes] = ()) -> int:
        """Write frames at once, or let them wait when the disk makes trouble. Never raises.

        What does not fit any more is counted as `queue_full`. `uncounted` frames are written after the others (they say
        what was lost); returned is how many of them, from their end, could not be taken and are the caller's again.
        """
        if self._pid != os.getpid():
            self.after_fork()
        now_ns = clock.monotonic_ns()
        if (
            self._spill.n_bytes
            or now_ns < self._break_until_ns
            or (self._writing_since_ns and now_ns - self._writing_since_ns > HANGING_NS)
        ):
            left: Sequence[bytes] = [*frames, *uncounted]
        else:
            left = self._write([*frames, *uncounted] if uncounted else frames)
        if not left or self._spill.put(left):
            return 0
        n_returned = min(len(uncounted), len(left))
        if len(left) > n_returned:
            self._losses.add("queue_full", n=len(left) - n_returned)
        return n_returned

    def flush(self, timeout_s: float) -> bool:
        """Wait until all that was appended is on the disk; false when time ran out or the disk refused."""
        deadline_ns = clock.monotonic_ns() + int(timeout_s * 1e9)
        if self._pid != os.getpid():
            return True
        if not self._spill.drain(deadline_ns):
            return False
        if self._fd < 0:
            return True
        # fsync may take any time on a busy disk, and cannot be told when to stop.
        done = threading.Event()
        thread = threading.Thread(target=self._sync, args=(done,), name="ragtrace-flush", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            self._sync(done)  # no new threads while the interpreter ends
        return done.wait(max(0.0, (deadline_ns - clock.monotonic_ns()) / 1e9))

    def close(self, timeout_s: float) -> bool:
        """Flush and let go of the file; a later append opens a new one."""
        is_flushed = self.flush(timeout_s)
        with self._opening:
            fds, self._fd, self._previous_fd = (self._fd, self._previous_fd), -1, -1
            self._size = 0
        for fd in fds:
            if fd >= 0:
                _retire(fd)
        return is_flushed

    # -------------------------------------------------------------------------------------------- writing

    def _write(self, frames: Sequence[bytes]) -> Sequence[bytes]:
        """Write once; returns the frames that are not wholly in the file."""
        began_ns = clock.monotonic_ns()
        self._writing_since_ns = self._writing_since_ns or began_ns
        try:
            fd = self._fd
            if fd < 0 or self._size >= MAX_LOG_BYTES or not self._is_ours(fd):
                fd = self._open(fd)
            data = frames[0] if len(frames) == 1 else b"".join(frames)
            n_written = os.write(fd, data)
        except OSError as error:
            _warn(self._spool, error)
            self._break_until_ns = clock.monotonic_ns() + BREAK_NS
            self._writing_since_ns = 0
            if error.errno in _OTHER_FILE:
                self._size = MAX_LOG_BYTES
            return frames
        self._writing_since_ns = 0
        self._size += n_written
        now_ns = clock.monotonic_ns()
        if now_ns - began_ns > 1_000_000:
            self._waited_ns = max(0, self._waited_ns - (began_ns - self._waited_at_ns) // 2) + now_ns - began_ns
            self._waited_at_ns = now_ns
            if self._waited_ns > SLOW_NS:
                self._waited_ns = 0
                self._break_until_ns = now_ns + BREAK_NS
        if n_written == len(data):
            return ()
        # A full disk cuts a write. Whole frames before the cut count; the cut one is written again, and readers skip
        # the torn one.
        self._break_until_ns = now_ns + BREAK_NS
        for number, frame in enumerate(frames):
            n_written -= len(frame)
            if n_written < 0:
                return frames[number:]
        return ()

    def _is_ours(self, fd: int) -> bool:
        """Whether the file is still in its folder, and the number still its own: daemons close whatever they find."""
        try:
            found = os.fstat(fd)
        except OSError:
            found = None
        if found is not None and (found.st_dev, found.st_ino) == self._file:
            return found.st_nlink > 0
        with self._opening:
            if self._fd == fd:
                self._fd = -1  # somebody else's by now, or nobody's: not ours to close
        return False

    def _open(self, seen_fd: int) -> int:
        """Begin a new file, unless another thread just did."""
        with self._opening:
            if self._fd not in (seen_fd, -1):
                return self._fd
            self._spool.mkdir(parents=True, exist_ok=True)
            name = f"{self._pid}-{time.time_ns():x}-{os.urandom(4).hex()}"
            hidden = self._spool / f".{name}.new"
            fd = os.open(
                hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), 0o666
            )
            try:
                is_locked = _lock(fd)
                head = self._head()
                opened = os.fstat(fd)
                if os.write(fd, head) != len(head):
                    raise OSError("no room for the first record")
                path = self._spool / f"{name}{'' if is_locked else _UNLOCKED}{LOG_SUFFIX}"
                os.rename(hidden, path)
            except BaseException:
                _close(fd)
                hidden.unlink(missing_ok=True)
                raise
            # Another thread may be inside write() on the old file: it is closed one generation later, or its number
            # could by then belong to a socket of the service.
            if self._previous_fd >= 0:
                _close(self._previous_fd)
            self._file = opened.st_dev, opened.st_ino
            self._previous_fd, self._fd, self._size, self.path = self._fd, fd, len(head), path
            return fd

    def _sync(self, done: threading.Event) -> None:
        try:
            os.fsync(self._fd)
        except OSError:
            return  # not done: flush says so
        done.set()


def _lock(fd: int) -> bool:
    if fcntl is None:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False  # a file system without locks: the name says so
    return True


_next_warning_ns = 0


def _warn(spool: Path, error: OSError) -> None:
    """Say once a minute that records wait: a full disk must not fill the service's own log too."""
    global _next_warning_ns  # noqa: PLW0603  # one instant for all logs of the process
    now_ns = clock.monotonic_ns()
    if now_ns < _next_warning_ns:
        return
    _next_warning_ns = now_ns + 60_000_000_000
    import logging  # only in trouble: nobody else here needs it

    logging.getLogger("ragtrace").warning("cannot write to %s (%s); records wait in memory", spool, error.strerror)


_retired: deque[tuple[int, int]] = deque()
"""Descriptors let go of, with the time."""


def _retire(fd: int) -> None:
    """Let go of a log at once, of its descriptor later.

    Another thread may be about to write to it, and its number could by then belong to a socket of the service.
    """
    if fcntl is not None:
        try:
            fcntl.flock(fd, fcntl.LOCK_UN)
        except OSError:
            pass  # a file system without locks
    now_ns = clock.monotonic_ns()
    _retired.append((now_ns, fd))
    while _retired and now_ns - _retired[0][0] > RETIRED_NS:
        _close(_retired.popleft()[1])


def _close(fd: int) -> None:
    try:
        os.close(fd)
    except OSError:
        pass  # a delayed write error of a network file system; nothing can be done about it here
