"""What was taken in and is not in the log yet: requests as they came, so that what was acknowledged outlives a kill.

Files `collector-<number>.journal` in the spool, one collector at a time. A record: magic 4 · length u32 · crc32 u32 ·
protobuf bytes of the request. A file goes when every trace that came in it has been written.
"""

from __future__ import annotations

import os
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from struct import Struct

from ragtrace.errors import SpoolError

try:
    import fcntl
except ImportError:  # Windows has none: that a second collector runs is then the user's to know
    fcntl = None  # type: ignore[assignment]

__all__ = ["Journal"]

_HEAD = Struct("<4sII")
_MAGIC = b"\xa7rj1"
_NAME = re.compile(r"collector-(\d+)\.journal")
MAX_FILE_BYTES = 64 << 20


class Journal:
    """Appends requests, counts which file is still needed, gives back what a former collector left. One thread."""

    def __init__(self, spool: Path) -> None:
        """Raises: SpoolError when another collector writes here; OSError when nobody can."""
        self._spool = spool
        spool.mkdir(parents=True, exist_ok=True)
        self._lock = os.open(spool / "collector.lock", os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
        if fcntl is not None:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                os.close(self._lock)
                raise SpoolError(
                    f"another collector writes to {spool}: stop it, or give this one a store of its own",
                    path=str(spool),
                ) from error
        self._needed: Counter[int] = Counter()
        self._fd = -1
        self._size = 0
        self.number = max(self._files(), default=0)
        """The file that is written now."""

    def _files(self) -> dict[int, Path]:
        return {
            int(found.group(1)): Path(entry.path)
            for entry in os.scandir(self._spool)
            if (found := _NAME.fullmatch(entry.name))
        }

    def left(self) -> Iterator[tuple[int, bytes]]:
        """The requests that a former collector left, oldest first, each with its file. A torn end is passed over."""
        for number, path in sorted(self._files().items()):
            with open(path, "rb") as file:
                while len(head := file.read(_HEAD.size)) == _HEAD.size:
                    magic, size, crc = _HEAD.unpack(head)
                    data = file.read(size)
                    if magic != _MAGIC or len(data) < size or zlib.crc32(data) != crc:
                        break  # cut by a kill before it was acknowledged
                    yield number, data

    def append(self, data: bytes) -> int:
        """Write a request; the number of its file. Raises: OSError, and then nothing of it is there."""
        if self._fd < 0 or self._size >= MAX_FILE_BYTES:
            self._open()
        record = _HEAD.pack(_MAGIC, len(data), zlib.crc32(data)) + data
        try:
            n_written = os.write(self._fd, record)
            if n_written < len(record):
                raise OSError(28, "no space left", str(self._path))
        except OSError:
            os.ftruncate(self._fd, self._size)  # what is not whole would hide what comes after it
            raise
        self._size += len(record)
        return self.number

    def _open(self) -> None:
        number = self.number + 1
        self._path = self._spool / f"collector-{number}.journal"
        # Requests as they came, before anything is redacted: for nobody else to read.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        fd = os.open(self._path, flags, 0o600)
        if self._fd >= 0:
            os.close(self._fd)
        former, self.number, self._fd, self._size = self.number, number, fd, 0
        if not self._needed[former]:
            self._remove(former)

    def need(self, number: int) -> None:
        """One more trace needs this file."""
        self._needed[number] += 1

    def release(self, number: int) -> None:
        """One trace less needs this file."""
        self._needed[number] -= 1
        if self._needed[number] <= 0 and (number != self.number or self._fd < 0):
            self._remove(number)

    def _remove(self, number: int) -> None:
        self._needed.pop(number, None)
        (self._spool / f"collector-{number}.journal").unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove the files that nothing needs; the one that is written now begins anew when it is large enough."""
        for number in self._files():
            if not self._needed[number] and (number != self.number or self._fd < 0):
                self._remove(number)
        if self._fd >= 0 and self._size and not self._needed[self.number]:
            os.ftruncate(self._fd, 0)
            self._size = 0

    def close(self) -> None:
        """Let go of the files; those that nothing needs are removed."""
        self.sweep()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            if not self._needed[self.number]:
                self._remove(self.number)
        os.close(self._lock)
