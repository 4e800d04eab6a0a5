"""What the store held at its last good state, kept beside it: when rows are gone from the file one can say how many.

`counts.json` in the spool: rows of the tables that matter and the ledger's offsets. Written after every merge, and before
a merge removes logs: whatever was merged later than that is still in the logs. Knows nothing of how a file gets damaged.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

from ragtrace.spool.records import Record
from ragtrace.store.staging import count_candidates

__all__ = ["COUNTED", "Kept", "Risk", "count", "keep", "path_of", "read"]

COUNTED = ("n_queries", "n_candidates", "n_documents", "n_labels")
"""What is counted, in the order said. Queries called interrupted are not: their rows come from no log."""

_COUNTS = """
select
    (select count(*) from queries where status is distinct from 'interrupted'),
    (select count(*) from candidates),
    (select count(*) from documents),
    (select count(*) from evidence)
"""


class Kept(NamedTuple):
    """The last good state."""

    store_id: str | None
    counts: dict[str, int]
    """By COUNTED; what an older ragtrace did not count is missing."""
    offsets: dict[str, int]
    """Log name -> everything before this offset was in the store."""
    at_ns: int


def path_of(spool: Path) -> Path:
    """Where it is kept."""
    return spool / "counts.json"


def count(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """Rows now, by COUNTED."""
    return dict(zip(COUNTED, connection.execute(_COUNTS).fetchall()[0], strict=True))


def keep(connection: duckdb.DuckDBPyConnection, spool: Path) -> None:
    """Write down what the store holds now. A full disk or a read-only folder is no error: the state before stays."""
    facts = connection.execute("select value from store_facts where name = 'store_id'").fetchall()
    kept = {
        "store_id": facts[0][0] if facts else None,
        "at_ns": time.time_ns(),
        **count(connection),
        "ledger": dict(connection.execute("select log, offset_bytes from ledger order by log").fetchall()),
    }
    with contextlib.suppress(OSError):  # it must not cost the merge
        temporary = spool / "counts.json.new"
        temporary.write_text(json.dumps(kept))
        temporary.replace(path_of(spool))


def read(spool: Path) -> Kept | None:
    """What was kept; None when nothing was, or it cannot be read."""
    try:
        found = json.loads(path_of(spool).read_text())
        return Kept(
            found.get("store_id"),
            {name: int(found[name]) for name in COUNTED if name in found},
            {str(log): int(offset) for log, offset in found.get("ledger", {}).items()},
            int(found.get("at_ns", 0)),
        )
    except (OSError, ValueError, TypeError, AttributeError):
        return None


class Risk:
    """How many rows of the last good state are neither in the file now nor come back from the logs."""

    def __init__(self, kept: Kept | None, connection: duckdb.DuckDBPyConnection, is_new_file: bool) -> None:
        """Asked before anything is merged. `is_new_file`: the file of the last good state was set aside."""
        facts = connection.execute("select value from store_facts where name = 'store_id'").fetchall()
        # Another file under the same name (deleted and begun anew) never held those rows.
        is_same = kept is not None and (is_new_file or (bool(facts) and facts[0][0] == kept.store_id))
        self._kept = kept if is_same else None
        self._found = count(connection) if self._kept is not None else {}
        self.is_unknown = is_new_file and self._kept is None

    @property
    def is_open(self) -> bool:
        """Rows are missing from the file, so what the logs bring back has to be counted."""
        return self._kept is not None and any(n > self._found[name] for name, n in self._kept.counts.items())

    def known_until(self, log: str) -> int:
        """Up to where that log was in the store at the last good state; 0 when that need not be known."""
        return self._kept.offsets.get(log, 0) if self._kept is not None and self.is_open else 0

    def bring_back(self, records: Sequence[Record]) -> None:
        """Count records that were in the store at the last good state and are entered again."""
        for name, n in _counted(records).items():
            self._found[name] += n

    def missing(self) -> dict[str, int]:
        """Rows of the last good state that are gone, by COUNTED, without those of which none is."""
        if self._kept is None:
            return {}
        return {name: n - self._found[name] for name, n in self._kept.counts.items() if n > self._found[name]}


def _counted(records: Sequence[Record]) -> Mapping[str, Any]:
    return {
        "n_queries": sum(record.kind == "query" for record in records),
        "n_candidates": count_candidates(list(records)),
        "n_documents": sum(record.kind == "document" for record in records),
    }
