"""Reading logs: which there are, who still writes, and their records from an offset on.

Readers never lock what a writer needs and never change a log. Damage is passed over: reading goes on at the next frame
whose length and checksum hold.
"""

from __future__ import annotations

import os
import re
import zlib
from pathlib import Path
from struct import error as StructError
from typing import NamedTuple

from ragtrace.spool import frames
from ragtrace.spool.log import LOG_SUFFIX, is_alive
from ragtrace.spool.records import Record

__all__ = ["Batch", "Log", "logs", "read"]

DEFAULT_MAX_BYTES = 64 << 20

_NAME = re.compile(rf"\d+(-\w+)*{re.escape(LOG_SUFFIX)}")


class Log(NamedTuple):
    """One log file of a spool."""

    path: Path
    is_alive: bool
    """Its writer held it when asked. Ask before reading: what a dead log holds then is all it will ever hold."""


class Batch(NamedTuple):
    """What one read gave."""

    records: list[Record]
    next_offset: int
    """Where the next read begins; equal to the offset given when there was nothing whole."""
    n_damaged_bytes: int
    """Bytes before next_offset that belong to no whole frame."""
    is_torn_tail: bool
    """The file ends inside a frame: a write that is under way in a live log, a cut one in a dead log."""
    n_newer: int = 0
    """Whole frames of a kind that only a newer ragtrace knows: passed over, no damage."""


def logs(spool: str | os.PathLike[str]) -> list[Log]:
    """The logs of a spool, oldest name first; empty when the folder is missing. Raises OSError otherwise.

    Files of other names, folders and pipes are not logs. One that may not be read counts as live: nobody can say that it ended.
    """
    try:
        names = sorted(entry.name for entry in os.scandir(spool) if _NAME.fullmatch(entry.name) and entry.is_file())
    except FileNotFoundError:
        return []
    found = []
    for name in names:
        path = Path(spool, name)
        try:
            found.append(Log(path, is_alive(path)))
        except FileNotFoundError:
            continue  # another reader has taken it in and removed it
        except OSError:
            found.append(Log(path, True))
    return found


def read(path: str | os.PathLike[str], offset: int = 0, max_bytes: int = DEFAULT_MAX_BYTES) -> Batch:
    """Whole records from `offset` on, of at most about `max_bytes`; a larger single record is read whole.

    A read that ends at the limit inside a frame is no torn tail: `next_offset` is that frame's begin.
    Raises: OSError when the file cannot be read.
    """
    with open(path, "rb", buffering=0) as file:
        # The size is asked once: a live log grows, and reading "until nothing is left" would never end.
        size = os.fstat(file.fileno()).st_size
        end = min(size, offset + max(max_bytes, frames.HEADER.size))
        data = _read_range(file.fileno(), offset, end)
        while True:
            is_file_end = end >= size
            records, at, n_damaged, is_open, n_newer = _scan(data, is_file_end)
            if at or is_file_end:
                return Batch(records, offset + at, n_damaged, is_open and is_file_end, n_newer)
            # The first frame alone is longer than the limit.
            end = min(size, offset + 2 * (end - offset))
            data = _read_range(file.fileno(), offset, end)


def _scan(data: bytes, is_file_end: bool) -> tuple[list[Record], int, int, bool, int]:
    """Records, bytes used, bytes damaged among them, whether an unfinished frame follows, frames of later kinds."""
    records: list[Record] = []
    at = n_damaged = n_newer = 0
    view = memoryview(data)
    while at < len(data):
        end = _whole_frame(view, at)
        if end == 0:
            # Cut, or damaged: only a later whole frame can tell. One cut by the limit is read again with more behind it.
            if not is_file_end and _may_go_on(data, at):
                return records, at, n_damaged, True, n_newer
            found = _next_frame(data, view, at + 1)
            if found < 0:
                return records, at, n_damaged, True, n_newer
            n_damaged += found - at
            at = found
            continue
        try:
            records.append(frames.decode(data[at + 12], data[at + frames.HEADER.size : end]))
        except (ValueError, IndexError, KeyError, TypeError, StructError):
            # The checksum held, so a newer ragtrace wrote it, or one of its kind in another form: counted, not fatal.
            n_newer += 1
        at = end
    return records, at, n_damaged, False, n_newer


def _whole_frame(data: memoryview, at: int) -> int:
    """The end of the frame at `at`; 0 when it is not whole or its checksum does not hold."""
    start = at + frames.HEADER.size
    if start > len(data):
        return 0
    magic, size, crc, number = frames.HEADER.unpack_from(data, at)
    end = int(start + size)
    if magic != frames.MAGIC or size > frames.MAX_BODY_BYTES or end > len(data):
        return 0
    return end if zlib.crc32(data[start:end], number) == crc else 0


def _may_go_on(data: bytes, at: int) -> bool:
    """Whether the bytes at `at` are the begin of a frame that ends past the data."""
    head = data[at : at + frames.HEADER.size]
    if len(head) < frames.HEADER.size:
        return frames.MAGIC.startswith(head[:4]) or head.startswith(frames.MAGIC)
    magic, size, _, _ = frames.HEADER.unpack(head)
    return bool(magic == frames.MAGIC and size <= frames.MAX_BODY_BYTES and at + frames.HEADER.size + size > len(data))


def _next_frame(data: bytes, view: memoryview, at: int) -> int:
    """Where the next whole frame begins at or after `at`; -1 when there is none."""
    while (at := data.find(frames.MAGIC, at)) >= 0:
        if _whole_frame(view, at):
            return at
        at += 1
    return -1


def _read_range(fd: int, start: int, end: int) -> bytes:
    parts = []
    while start < end:
        part = os.pread(fd, end - start, start)
        if not part:
            break
        parts.append(part)
        start += len(part)
    return b"".join(parts)
