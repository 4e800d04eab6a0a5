"""What could not be recorded: counted by reason, handed out as records, never kept as text."""

from __future__ import annotations

import threading
from typing import Any

from ragtrace import clock

__all__ = ["Losses"]

# A detail is an exception type or a stage name; a service that makes names up at run time must not grow us without end.
MAX_KEYS = 256


class Losses:
    """Counts since the last `take`, one per reason and detail. Thread-safe; `add` never raises."""

    def __init__(self) -> None:
        # RLock: a garbage collection inside `add` may run a generator's close, which records and may count again.
        self._lock = threading.RLock()
        self._counts: dict[tuple[str, str], list[int]] = {}

    def __bool__(self) -> bool:
        return bool(self._counts)

    def add(self, reason: str, n: int = 1, detail: str = "") -> None:
        """Count n losses. Past 256 distinct details of all reasons a detail is dropped, never a count."""
        now = clock.wall_ns()
        with self._lock:
            if len(self._counts) >= MAX_KEYS and (reason, detail) not in self._counts:
                detail = ""
            entry = self._counts.get((reason, detail))
            if entry is None:
                self._counts[(reason, detail)] = [n, now, now]
            else:
                entry[0] += n
                entry[2] = now

    def take(self) -> list[dict[str, Any]]:
        """The counts as rows of the table `losses` (without process_id), and begin again at nothing."""
        with self._lock:
            counts, self._counts = self._counts, {}
        return [
            {"reason": reason, "n": n, "first_at_ns": first, "last_at_ns": last, "detail": detail or None}
            for (reason, detail), (n, first, last) in counts.items()
        ]

    def forget(self) -> None:
        """Begin at nothing, with a new lock: in a forked child the counts are the parent's to write."""
        self._lock = threading.RLock()
        self._counts = {}

    def give_back(self, rows: list[dict[str, Any]]) -> None:
        """Put rows back that `take` gave and that could not be written."""
        with self._lock:
            for row in rows:
                key = (row["reason"], row["detail"] or "")
                entry = self._counts.setdefault(key, [0, row["first_at_ns"], row["last_at_ns"]])
                entry[0] += row["n"]
                entry[1] = min(entry[1], row["first_at_ns"])
                entry[2] = max(entry[2], row["last_at_ns"])
