"""The words of ragtrace as types: stage kinds, statuses, candidates. Knows nothing of spans, files or databases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = [
    "INGEST_KINDS",
    "KINDS",
    "LIST_ROLES",
    "MODES",
    "QUERY_KINDS",
    "RUN_KINDS",
    "SCORE_KINDS",
    "STATUSES",
    "Candidate",
    "Chunk",
]

INGEST_KINDS = ("ingest", "parse", "chunk", "index")
QUERY_KINDS = ("rewrite", "retrieve", "filter", "fuse", "rerank", "expand", "compress", "truncate", "generate")
KINDS = INGEST_KINDS + QUERY_KINDS
MODES = ("ann", "exact", "lexical", "hybrid", "graph", "sql", "other")
# `interrupted` is never written by the service: the merge gives it to a query whose process ended inside it.
STATUSES = ("ok", "error", "cancelled", "interrupted")
SCORE_KINDS = ("distance", "similarity", "rrf", "logit", "probability", "other", "none")
RUN_KINDS = ("actual", "closed_book", "oracle")
LIST_ROLES = ("in", "out", "considered", "dropped", "context")

Range = tuple[int, int]
"""Code points of the parsed text, half open."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One item of a stage's list, for code that wants to be explicit about what it returns."""

    id: str | int
    """The chunk's id in its index; the join key of every report. 7 and "7" are the same item."""
    score: float | None = None
    """As the stage gave it, never rescaled; its direction belongs to the stage's `score_kind`."""
    doc_id: str | None = None
    """The source document."""
    start: int | None = None
    """First code point in the parsed text, when the candidate is one range."""
    end: int | None = None
    """One past the last code point."""
    ranges: Sequence[Range] = ()
    """Instead of start and end, when the candidate is made of several ranges."""
    text: str | None = None
    """The text as delivered at this stage."""
    tokens: int | None = None
    """Tokens this candidate takes in the prompt."""
    position: int | None = None
    """1-based place in the prompt, where it differs from the rank."""
    kept: bool = True
    """False: the stage looked at it and did not let it through."""
    metadata: Mapping[str, Any] | None = None
    """Read for `filter` reasons; stored only as far as `capture_text` and `redact` allow."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """One piece of a parsed text, for code that wants to be explicit about what it indexes."""

    id: str | int | None = None
    """None when the index gives the id later: the index stage's returned ids are then joined by position."""
    text: str | None = None
    """What is indexed, generated parts included."""
    doc_id: str | None = None
    """None: the document of the surrounding `rt.document`."""
    start: int | None = None
    """First code point in the parsed text; None: found by its text, in document order."""
    end: int | None = None
    """One past the last code point."""
    ranges: Sequence[Range] = ()
    """Instead of start and end, when the chunk is made of several ranges."""
    stands_for: Sequence[Range] = ()
    """Ranges this chunk is only a key to (parent, window, summarised text). Never counted in recall."""
    generated: str | None = None
    """Generated prefix inside `text` (a header, a summary): never evidence."""
    metadata: Mapping[str, Any] | None = None
