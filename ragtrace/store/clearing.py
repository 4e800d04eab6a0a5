"""Keeps the spool small: merged logs go, damaged ones are set aside and only the newest kept, left-over temporary files go.

Called by a merge that holds the lock and has opened the file. A log is removed only when the rows are in the file itself,
not in its write-ahead log, which may lose its tail; and what the file holds is written down beside it before.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from pathlib import Path

import duckdb

from ragtrace.store import beside, kept, sidecar

__all__ = ["DAMAGED_SUFFIX", "MAX_DAMAGED", "clear", "sweep"]

DAMAGED_SUFFIX = ".damaged"
MAX_DAMAGED = 20
"""Damaged logs kept to look into; each killed process may leave one, for years. The ledger keeps the count of them all."""
STALE_S = 3600.0
"""A log that is born under another name gets its own within milliseconds."""


def clear(
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    spool: Path,
    ledger: Mapping[str, tuple[int, str]],
    present: set[str],
) -> None:
    """Remove the logs that an earlier merge brought in for good, and note those that somebody else removed.

    `ledger` is offset and status by log, `present` the names of the logs that are there.
    """
    done = [name for name, (_, status) in ledger.items() if status == "done"]
    torn = [name for name, (_, status) in ledger.items() if status == "damaged" and name in present]
    if any(name in present for name in done) or torn:
        beside.keep(connection, spool)
        log = path.with_name(path.name + ".wal")
        if log.exists() and log.stat().st_size:
            sidecar.checkpoint(connection, path)
    for name in done:
        with contextlib.suppress(OSError):  # of another user, or gone: the next merge tries again
            (spool / name).unlink()
    for name in torn:
        with contextlib.suppress(OSError):  # as above
            (spool / name).rename(spool / f"{name}{DAMAGED_SUFFIX}")
    gone = [name for name in done if not (spool / name).exists()]
    if gone:
        torn_done = "select 1 from ledger where list_contains(?, log) and n_damaged_bytes > 0"
        if connection.execute(torn_done, [gone]).fetchall():
            kept.forget(connection)
        connection.execute("delete from ledger where list_contains(?, log)", [gone])
    # A writer that ended leaves its log until a merge has read it to its end: nobody of ours removed these.
    missing = [
        name for name, (_, status) in ledger.items() if status in ("open", "unreadable") and not (spool / name).exists()
    ]
    if missing:
        kept.forget(connection)
        connection.execute("update ledger set status = 'missing' where list_contains(?, log)", [missing])


def sweep(path: Path, spool: Path) -> None:
    """Remove what killed processes left half made, and all but the newest damaged logs. Never raises."""
    left = [
        *path.parent.glob(f"{path.name}.compact*"),
        *spool.glob(f"{sidecar.path_of(path).name}.*"),
        *(file for file in spool.glob(".*.new") if _age_s(file) > STALE_S),
    ]
    damaged = sorted(spool.glob(f"*{DAMAGED_SUFFIX}"), key=_age_s)
    for file in [*left, *damaged[MAX_DAMAGED:]]:
        with contextlib.suppress(OSError):  # not ours to remove: it stays
            file.unlink()


def _age_s(file: Path) -> float:
    try:
        return time.time() - file.stat().st_mtime
    except OSError:
        return 0.0
