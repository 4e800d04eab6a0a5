"""A pipeline as plain data: documents, chunks, gold, and what each stage took and put out.

A description says what the service did, not what ragtrace makes of it. `recording` runs it through the public API,
`recorded_facts` says what of it must have been recorded, `generator` invents it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Range = tuple[int, int]


@dataclass(frozen=True)
class Document:
    """One source document and what of its way into the index was recorded."""

    doc_id: str
    text: str
    has_scope: bool = True
    """Inside rt.document."""
    has_parse: bool = True
    has_chunks: bool = True
    chunked: tuple[str, ...] = ()
    """Chunk ids in the order the chunker put them out."""
    chunks_by_text: bool = False
    """Chunks carry no offsets: they are placed by their text."""
    index_name: str | None = None
    """The index it was written to on record; None: no index stage."""
    written: tuple[str, ...] = ()
    """Chunk ids that were written."""
    is_indexed_late: bool = False
    """Written after the query."""
    inventoried: tuple[str, ...] = ()
    """Chunk ids in the index's inventory, where one is declared."""

    @property
    def has_recorded_text(self) -> bool:
        """Whether the record knows the parsed text."""
        return self.has_parse or self.has_chunks


@dataclass(frozen=True)
class Chunk:
    """One chunk; its text is that of its ranges, joined by a blank."""

    chunk_id: str
    doc_id: str
    ranges: tuple[Range, ...]
    stands_for: tuple[Range, ...] = ()


@dataclass(frozen=True)
class Gold:
    """One gold span."""

    doc_id: str
    start: int
    end: int
    need: str
    level: str = "span"
    has_quote: bool = True
    has_offsets: bool = True
    lost_quote: str | None = None
    """A passage of the source that the parser did not put out: the label is this quote alone."""


@dataclass(frozen=True)
class Item:
    """One item of a list, as the service shows it."""

    chunk_id: str
    form: str
    """id, pair (id and score), placed (with its range), text (with its text), document (only the document is told),
    altered (with a rewritten text)."""
    part: Range | None = None
    """Which code points of the chunk are left, for placed and text."""


@dataclass(frozen=True)
class Handed:
    """A list as it is handed to a stage: the very object another stage put out, or one that was made on the way."""

    variable: str | None = None
    """The object of that stage's output."""
    items: tuple[Item, ...] | None = None
    """A list of its own; with a variable: what the service made of that object in place."""
    source: str | None = None
    """The stage named by source=."""


@dataclass(frozen=True)
class Step:
    """One run of a stage. `variable` names its output."""

    kind: str
    name: str
    variable: str
    takes: tuple[Handed, ...] = ()
    gives: tuple[Item, ...] | None = None
    """None: it puts out no list."""
    gives_argument: int | None = None
    """It hands back this argument's object, as it is."""
    inside: tuple[Step, ...] = ()
    is_aside: bool = False
    is_final: bool = False
    is_answer: bool = False
    fails: bool = False
    is_unreadable: bool = False
    """Puts out something nobody can read."""
    style: str = "with"
    """with, function, method, coroutine, generator, in_place, nested (its lists in one list)."""
    index_name: str | None = None


@dataclass(frozen=True)
class Context:
    """rt.context(list)."""

    takes: Handed
    is_carried: bool = False


@dataclass(frozen=True)
class Pipeline:
    """One question, its documents and how the service dealt with it."""

    question_id: str
    run: str
    documents: tuple[Document, ...]
    chunks: tuple[Chunk, ...]
    sets: tuple[tuple[Gold, ...], ...]
    steps: tuple[Step | Context, ...]
    mode: StoreMode = field(default_factory=lambda: StoreMode())  # noqa: PLW0108  # it stands below

    @property
    def question(self) -> str:
        """Unlike any other."""
        return f"What does {self.question_id} say?"

    def chunk(self, chunk_id: str) -> Chunk | None:
        """The chunk of this id; None for one that nobody knows."""
        return next((x for x in self.chunks if x.chunk_id == chunk_id), None)

    def document(self, doc_id: str) -> Document:
        """The document of this id."""
        return next(x for x in self.documents if x.doc_id == doc_id)

    def text(self, chunk: Chunk) -> str:
        """The chunk's own text."""
        text = self.document(chunk.doc_id).text
        return " ".join(text[start:end] for start, end in chunk.ranges)


@dataclass(frozen=True)
class StoreMode:
    """What holds for all pipelines that share a store."""

    min_coverage: float = 1.0
    complete_indexes: tuple[str, ...] = ()
    """Indexes declared complete."""
    inventoried_indexes: tuple[str, ...] = ()
    """Indexes whose content is declared by rt.inventory after the writes."""
    is_source_inventoried: bool = False


def part_ranges(ranges: tuple[Range, ...], part: Range | None) -> tuple[Range, ...]:
    """Ranges of the document that are left of a chunk when only these code points of its text are."""
    if part is None:
        return ranges
    left, at = [], 0
    for start, end in ranges:
        first, last = max(part[0], at), min(part[1], at + end - start)
        if first < last:
            left.append((start + first - at, start + last - at))
        at += end - start + 1  # the joining blank
    return tuple(left)
