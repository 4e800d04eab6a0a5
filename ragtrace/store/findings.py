"""One thing found about a store, and the words that all findings share."""

from __future__ import annotations

import time
from typing import NamedTuple

__all__ = ["LEVELS", "Finding", "counted", "moment", "some"]

LEVELS = ("good", "note", "incomplete")
"""good: as it should be · note: worth knowing · incomplete: data is missing or damaged, reports are to be read with it."""


class Finding(NamedTuple):
    """One thing found."""

    level: str
    """One of LEVELS."""
    subject: str
    """logs, queries, verdicts, losses, database, spool or size."""
    n: int
    """How many, or bytes; 0 when there is nothing to count."""
    text: str
    """A sentence."""
    advice: str = ""
    """What to do next; empty when there is nothing to do."""


def some(names: list[str]) -> str:
    """The first three names, and how many more there are."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")


def counted(n: int, one: str, many: str | None = None) -> str:
    """A count with its word and its verb."""
    return f"1 {one} is" if n == 1 else f"{n:,} {many or one + 's'} are"


def moment(at_ns: int | None) -> str:
    """A time in UTC, to the second."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at_ns / 1e9)) if at_ns else "an unknown time"
