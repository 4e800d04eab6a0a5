"""One process at a time merges into a store, compacts it, deletes from it or publishes it into a lake."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from ragtrace.errors import StoreError
from ragtrace.spool.log import spool_of

__all__ = ["hold", "only_one"]


@contextlib.contextmanager
def only_one(path: Path, wait_s: float) -> Iterator[None]:
    """Hold the store's `merge.lock` while the block runs. Raises StoreError when another process holds it longer than `wait_s`."""
    spool = spool_of(path)
    spool.mkdir(parents=True, exist_ok=True)
    with hold(spool / "merge.lock", wait_s, path):
        yield


@contextlib.contextmanager
def hold(lock: Path, wait_s: float, path: Path) -> Iterator[None]:
    """Hold the file `lock` while the block runs. Raises StoreError, which names `path`, when another process holds it longer."""
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        deadline = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    pid = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
                    raise StoreError(
                        f"{path} is being merged by process {pid or '?'}: wait for it to end and try again.",
                        path=str(path),
                        pid=pid,
                    ) from None
                time.sleep(0.02)  # flock has no wait with a limit
            except OSError:
                break  # no locks on this file system: DuckDB's own on the database file keeps two mergers apart, or refuses
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)
