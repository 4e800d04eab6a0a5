"""What was recorded, as plain facts: the only thing the model is given. Knows nothing of logs, tables or SQL.

A *spot* is one place of one gold span: `(evidence_id, position)`, position 0 being the span's first character.
A span of a level that is only touched (page, section, document, chunk) has the single spot `(evidence_id, 0)`.
Times are any rising integers: documents, texts, chunk runs, index writes and queries share one clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Spot = tuple[str, int]
NOTHING: frozenset[Spot] = frozenset()


@dataclass(frozen=True)
class Entry:
    """One item of a candidate list, with what it holds of the gold spans."""

    chunk_id: str
    sure: frozenset[Spot] = NOTHING
    """Surely in it."""
    possible: frozenset[Spot] = NOTHING
    """May be in it as well: altered text, or only the document is known."""
    stands_for: frozenset[Spot] = NOTHING
    """In the parent or window it is a key to."""
    is_unplaced: bool = False
    """Nobody knows where it comes from: it may hold anything."""


@dataclass(frozen=True)
class CandidateList:
    """One list that a stage took or put out, or that was declared as context."""

    list_id: int
    role: str
    """in, out or context"""
    stage_id: int | None
    """None for a declared context."""
    at: int
    """Moment in the query's own count of starts and ends: an `in` list's is its stage's start, an `out` list's its end."""
    entries: tuple[Entry, ...] = ()
    object_of: int | None = None
    """The very object that this earlier output list was."""
    sources: tuple[int, ...] = ()
    """Stages named by source=."""
    is_complete: bool = True

    @property
    def ids(self) -> tuple[str, ...]:
        """Chunk ids by rank."""
        return tuple(entry.chunk_id for entry in self.entries)


@dataclass(frozen=True)
class Stage:
    """One run of a wrapped step."""

    stage_id: int
    kind: str
    name: str
    start: int
    end: int
    parent_id: int | None = None
    is_aside: bool = False
    is_final: bool = False
    is_answer: bool = False
    status: str = "ok"
    index_name: str | None = None


@dataclass(frozen=True)
class Span:
    """One gold span. `counting` are the positions that weigh; a touched level has position 0 alone."""

    evidence_id: str
    set_no: int
    need: str
    doc_id: str
    counting: frozenset[int]
    is_need: bool = True

    @property
    def spots(self) -> frozenset[Spot]:
        """Everything that weighs."""
        return frozenset((self.evidence_id, position) for position in self.counting)


@dataclass(frozen=True)
class DocumentRow:
    """A document seen at the source."""

    doc_id: str
    at: int


@dataclass(frozen=True)
class ParsedText:
    """A text a parser put out. `found` are the evidence ids whose passage stands in it; `searched` those looked for."""

    doc_id: str
    at: int
    found: frozenset[str]
    searched: frozenset[str]


@dataclass(frozen=True)
class ChunkRun:
    """What a chunker put out for one document."""

    doc_id: str
    at: int
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class IndexWrite:
    """What one ok index run wrote."""

    index_name: str
    at: int
    entries: tuple[Entry, ...]
    is_complete: bool = False
    """Every write to this index goes through this function."""


@dataclass(frozen=True)
class IndexInventory:
    """All that an index holds at a time."""

    index_name: str
    at: int
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class SourceInventory:
    """All documents the source holds at a time."""

    at: int
    doc_ids: frozenset[str]


@dataclass(frozen=True)
class Ingest:
    """The side before the query, of the whole store."""

    documents: tuple[DocumentRow, ...] = ()
    texts: tuple[ParsedText, ...] = ()
    chunk_runs: tuple[ChunkRun, ...] = ()
    writes: tuple[IndexWrite, ...] = ()
    index_inventories: tuple[IndexInventory, ...] = ()
    source_inventories: tuple[SourceInventory, ...] = ()
    stage_names: Mapping[str, str] = field(default_factory=dict)
    """What the user calls the stages of a kind, where any was recorded."""


@dataclass(frozen=True)
class Query:
    """One question put to the service."""

    query_id: int
    run: str
    started_at: int
    stages: tuple[Stage, ...]
    lists: tuple[CandidateList, ...]
    spans: tuple[Span, ...] = ()
    """The question's gold."""
    is_whole: bool = True


@dataclass(frozen=True)
class Store:
    """Everything a verdict can depend on."""

    ingest: Ingest = field(default_factory=Ingest)
    queries: tuple[Query, ...] = ()
    min_coverage: float = 1.0
