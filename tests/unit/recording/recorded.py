"""What a test recorded, by name: stages with their lists, queries, texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import ragtrace as rt
from ragtrace.spool.records import CandidateList, Record
from ragtrace.testing import records

__all__ = ["Recorded", "Seen", "recorded"]


class Seen(NamedTuple):
    """One stage run."""

    row: dict[str, Any]
    lists: list[CandidateList]

    def one(self, role: str) -> CandidateList:
        """Its only list of a role."""
        (found,) = [one for one in self.lists if one.role == role]
        return found

    def ids(self, role: str = "out") -> list[str | None]:
        """The ids in its only list of a role."""
        columns = self.one(role).columns
        assert columns is not None
        return list(columns.chunk_id)


class Recorded:
    """Everything in the logs of a store."""

    def __init__(self, found: list[Record]) -> None:
        self.records = found
        self.stages = [
            Seen(dict(record.body.row), list(record.body.lists)) for record in found if record.kind == "stage"
        ]

    def rows(self, kind: str) -> list[dict[str, Any]]:
        """The rows of one kind of record."""
        return [record.body for record in self.records if record.kind == kind]

    def query(self) -> dict[str, Any]:
        """The only query."""
        (found,) = self.rows("query")
        return found

    def stage(self, name: str) -> Seen:
        """The only stage run of that name."""
        (found,) = [stage for stage in self.stages if stage.row["name"] == name]
        return found

    def all(self, name: str) -> list[Seen]:
        """The runs of that name, in the order they were written."""
        return [stage for stage in self.stages if stage.row["name"] == name]

    def contexts(self) -> list[CandidateList]:
        """Declared contexts."""
        return [record.body[1] for record in self.records if record.kind == "context"]


def recorded(store: Path) -> Recorded:
    """Flush, and read what is there."""
    assert rt.flush(10)
    return Recorded(records(store))
