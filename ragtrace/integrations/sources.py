"""Where in a parsed text the pieces of a framework lie: what its loaders, splitters and stores do, as ingest stages.

Frameworks load, split and write in separate calls, over many documents at once, and hide the ranges. Here each piece is
remembered, by its object, with the text it was cut from, so that all three are recorded by document and in place.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple
from weakref import ReferenceType, ref

from ragtrace.integrations.steps import begin
from ragtrace.model import Chunk
from ragtrace.recording import context, texts
from ragtrace.recording.doors import document
from ragtrace.recording.ingesting import PAGE_BREAK

__all__ = ["Part", "Source", "Text", "chunked", "indexed", "parsed", "remember", "remember_id", "source_of"]

Range = tuple[int, int]


class Text:
    """A parsed text, in the pages it came in."""

    def __init__(self, doc_id: str | None, pages: Sequence[str]) -> None:
        self.doc_id = doc_id
        self.pages = list(pages)
        self.whole = PAGE_BREAK.join(self.pages)

    @property
    def given(self) -> Any:
        """As a chunk stage takes it: one string, or its pages."""
        return self.pages if len(self.pages) > 1 else self.whole


class Source(NamedTuple):
    """Where a piece lies."""

    text: Text
    ranges: tuple[Range, ...]
    stands_for: tuple[Range, ...] = ()


class Part(NamedTuple):
    """A framework's object that holds a piece of a text."""

    item: Any
    text: str
    doc_id: str | None = None
    chunk_id: str | None = None
    start: int | None = None
    """Where it begins in what it was cut from, if the framework says so: a hint."""
    is_start_exact: bool = False
    """Whether the framework looked for the place in document order: taken where the text stands there."""
    generated: str | None = None
    stands_for: tuple[Range, ...] = ()


_known: dict[int, tuple[ReferenceType[Any], Source]] = {}
_by_id: OrderedDict[str, Source] = OrderedDict()
"""The same by the piece's own id, for frameworks that copy their objects; without the text."""
_MOST_IDS = 20_000


def remember(item: Any, source: Source) -> None:
    """Remember where an object's text lies, as long as the object lives."""
    key = id(item)

    def forget(_: Any) -> None:
        _known.pop(key, None)

    try:
        _known[key] = ref(item, forget), source
    except TypeError:
        pass  # it takes no weak reference: its text is looked for


def source_of(item: Any, chunk_id: str | None = None) -> Source | None:
    """Where the object's text lies, if it was seen being cut; of a copy the id tells."""
    found = _known.get(id(item))
    if found is not None and found[0]() is item:
        return found[1]
    return None if chunk_id is None else _by_id.get(chunk_id)


def remember_id(chunk_id: str, source: Source) -> None:
    """Remember where a piece lies by its id, the oldest forgotten first."""
    _by_id[chunk_id] = source._replace(text=Text(source.text.doc_id, ()))
    try:
        while len(_by_id) > _MOST_IDS:
            _by_id.popitem(last=False)
    except KeyError:
        pass  # another thread took the last one


# ------------------------------------------------------------------------------------------------ parse


def parsed(name: str, parts: Sequence[Part]) -> None:
    """Record what a loader gave: the pieces of one document are its pages."""
    for pages in _by_document(parts):
        text = _remembered(pages)
        with _in_hand(text.doc_id):
            run = begin("parse", name, None)
            if run is not None:
                run.output(text.given)
                run.exit(None)


def _by_document(parts: Sequence[Part]) -> list[list[Part]]:
    """The parts of each document, documents in the order they came; a part without one stands alone."""
    found: dict[Any, list[Part]] = {}
    for number, part in enumerate(parts):
        found.setdefault(number if part.doc_id is None else part.doc_id, []).append(part)
    return list(found.values())


def _remembered(pages: Sequence[Part]) -> Text:
    text = Text(pages[0].doc_id, [page.text for page in pages])
    at = 0
    for page in pages:
        remember(page.item, Source(text, ((at, at + len(page.text)),)))
        at += len(page.text) + len(PAGE_BREAK)
    return text


def _in_hand(doc_id: str | None) -> AbstractContextManager[Any]:
    """The document that the service has in hand, else one of this id."""
    around = context.current.get()
    if doc_id is None or (around is not None and around.document is not None and not around.document.is_ended):
        return nullcontext()
    return document(doc_id)


# ------------------------------------------------------------------------------------------------ chunk


def chunked(name: str, parts: Sequence[Part], pieces: Sequence[tuple[Part, int]], **values: Any) -> None:
    """Record a split: `pieces` with the number of the part each was cut from, in the order returned.

    One chunk run for each text. The places come from the parts' own, where their text stands there to the letter.
    """
    for fresh in _by_document([part for part in parts if source_of(part.item) is None]):
        _remembered(fresh)
    by_text: dict[int, tuple[Text, list[int]]] = {}
    sources = [source_of(part.item) for part in parts]
    for row, (_, number) in enumerate(pieces):
        source = sources[number]
        if source is not None:
            by_text.setdefault(id(source.text), (source.text, []))[1].append(row)
    for number, source in enumerate(sources):  # a text of which nothing was left is split all the same
        if source is not None and not any(of == number for _, of in pieces):
            by_text.setdefault(id(source.text), (source.text, []))
    for text, rows in by_text.values():
        ranges = _ranges(text, parts, sources, pieces, rows)
        chunks = [
            Chunk(
                id=pieces[row][0].chunk_id,
                text=pieces[row][0].text,
                start=pieces[row][0].start if not ranges[row] and len(parts) == 1 else None,
                ranges=ranges[row],
                stands_for=pieces[row][0].stands_for,
                generated=pieces[row][0].generated,
            )
            for row in rows
        ]
        with _in_hand(text.doc_id):
            run = begin("chunk", name, None, **values)
            if run is None:
                continue
            run.input(text.given)
            run.output(chunks)
            columns = run.lists[-1].columns
            for at, row in enumerate(rows):
                part = pieces[row][0]
                found: tuple[Range, ...] = ()
                if columns is not None and columns.ranges and at in columns.ranges:
                    found = tuple((first, end) for first, end in columns.ranges[at])
                elif columns is not None and columns.start is not None and columns.end is not None:
                    start, end = columns.start[at], columns.end[at]
                    found = () if start is None or end is None else ((start, end),)
                source = Source(text, found, part.stands_for)
                remember(part.item, source)
                if part.chunk_id is not None:
                    remember_id(part.chunk_id, source)
            run.exit(None)


def _ranges(
    text: Text,
    parts: Sequence[Part],
    sources: Sequence[Source | None],
    pieces: Sequence[tuple[Part, int]],
    rows: Sequence[int],
) -> dict[int, tuple[Range, ...]]:
    """The ranges of those pieces that stand to the letter in a part that does so in the text; none where it is the text."""
    found: dict[int, tuple[Range, ...]] = dict.fromkeys(rows, ())
    by_part: dict[int, list[int]] = {}
    for row in rows:
        by_part.setdefault(pieces[row][1], []).append(row)
    for number, its_rows in by_part.items():
        source, part = sources[number], parts[number]
        if source is None or len(source.ranges) != 1:
            continue
        start, end = source.ranges[0]
        for row in its_rows:
            piece = pieces[row][0]
            if piece.is_start_exact and piece.start is not None and piece.text:
                first, last = start + piece.start, start + piece.start + len(piece.text)
                if last <= end and text.whole[first:last] == piece.text:
                    found[row] = ((first, last),)
        if (start, end) == (0, len(text.whole)) or text.whole[start:end] != part.text:
            continue
        its = [pieces[row][0] for row in its_rows]
        placed = texts.place_chunks(part.text, [(piece.text, piece.start, piece.generated) for piece in its])
        for row, (ranges, quality) in zip(its_rows, placed, strict=True):
            if quality == "exact" and not found[row]:
                found[row] = tuple((start + first, start + last) for first, last in ranges)
    return found


# ------------------------------------------------------------------------------------------------ index


def indexed(name: str, index: str | None, parts: Sequence[Part], ids: Sequence[Any] | None) -> None:
    """Record a write into an index, with the ids that the pieces have in it (None: their own)."""
    if not parts:
        return
    run = begin("index", name, None, index=index)
    if run is None:
        return
    chunks = []
    for part in parts:
        source = source_of(part.item, part.chunk_id)
        chunks.append(
            Chunk(
                id=part.chunk_id,
                text=part.text,
                doc_id=part.doc_id if source is None or source.text.doc_id is None else source.text.doc_id,
                ranges=() if source is None else source.ranges,
                stands_for=part.stands_for or (() if source is None else source.stands_for),
                generated=part.generated,
            )
        )
    run.input(chunks)
    run.output(list(ids) if ids is not None and len(ids) == len(parts) else None)
    run.exit(None)


Reader = Callable[[Any], Part]
"""A framework's object as a part."""
