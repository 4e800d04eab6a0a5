"""Opens a store that a merge will write to, whatever became of the file: repaired, without its write-ahead log, or anew.

What cannot be read is renamed, never deleted. The order: the sidecar (`database.connect`); the file without a write-ahead log
that cannot be replayed, whose rows are in the logs still; a new file, filled from the logs that are there.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import NamedTuple

import duckdb

from ragtrace.errors import DamagedStoreError
from ragtrace.store import beside, database, kept, sidecar

__all__ = ["ASIDE", "REASONS", "Opened", "note_risk", "open_anew", "open_store", "set_aside"]

ASIDE = ".damaged-"
"""Between the store's name and the time at which it was set aside."""
REASONS = {
    "n_queries": "set_aside_queries",
    "n_candidates": "set_aside_candidates",
    "n_documents": "set_aside_documents",
    "n_labels": "set_aside_labels",
    "unknown": "set_aside_unknown",
}
"""What is missing -> its reason in the table `losses`: rows that the store held and that no log brought back. n of the last
counts files of which nothing is known."""


class Opened(NamedTuple):
    """An open store, and what it cost."""

    connection: duckdb.DuckDBPyConnection
    set_aside: str | None = None
    """New name of the file, or of its write-ahead log, that could not be read."""
    is_new_file: bool = False


def open_store(path: Path) -> Opened:
    """The store open for writing; what cannot be read is set aside.

    Raises: StoreError when the trouble is not damage: in use, no permission, a newer schema.
    """
    kept = beside.read(database.spool_of(path))
    if path.is_file() and not path.stat().st_size and kept is not None and any(kept.counts.values()):
        return open_anew(path)  # DuckDB would take an empty file for a new one
    try:
        return Opened(database.connect(path))
    except DamagedStoreError:
        pass
    stamp = _stamp(path)
    log = path.with_name(path.name + ".wal")
    if log.exists():
        aside = path.with_name(f"{path.name}{ASIDE}{stamp}.wal")
        log.rename(aside)
        try:
            return Opened(database.connect(path), aside.name)
        except DamagedStoreError:
            aside.rename(log)
    return open_anew(path)


def open_anew(path: Path) -> Opened:
    """A new store in place of a file that cannot be read. Raises: OSError when it cannot be renamed."""
    name = set_aside(path)
    return Opened(database.connect(path), name, is_new_file=True)


def set_aside(path: Path) -> str:
    """Rename a file that cannot be read, with its write-ahead log; the new name. Raises OSError when it cannot."""
    target = path.with_name(f"{path.name}{ASIDE}{_stamp(path)}")
    path.rename(target)
    with contextlib.suppress(FileNotFoundError):
        path.with_name(path.name + ".wal").rename(target.with_name(target.name + ".wal"))
    sidecar.path_of(path).unlink(missing_ok=True)
    return target.name


def _stamp(path: Path) -> str:
    """The time, made one that no file set aside has."""
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
    number, free = 1, stamp
    while any(path.with_name(f"{path.name}{ASIDE}{free}{end}").exists() for end in ("", ".wal")):
        number += 1
        free = f"{stamp}-{number}"
    return free


def note_risk(connection: duckdb.DuckDBPyConnection, risk: beside.Risk, name: str | None) -> None:
    """Keep in the store how many rows are gone, and with which file: a row for each of REASONS in `losses`."""
    missing = {"unknown": 1} if risk.is_unknown else risk.missing()
    now_ns = time.time_ns()
    rows = [[REASONS[what], n, now_ns, now_ns, name] for what, n in missing.items()]
    if rows:
        kept.forget(connection)
        connection.executemany(
            "insert into losses (process_id, reason, n, first_at_ns, last_at_ns, detail) values (null, ?, ?, ?, ?, ?)",
            rows,
        )
