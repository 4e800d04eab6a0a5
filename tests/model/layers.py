"""The four layers before the query, as of the query's start: which spots of a span each of them holds.

Written from DESIGN 5 and docs/internals.md section 3. Each layer is made from the one before: source, text, chunks, index.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tests.model.facts import Entry, Ingest, Span, Spot

LAYER_NAMES = ("ingest", "parse", "chunk", "index", "retrieve")
"""Where a spot is lost whose last place was nowhere, source, text, chunks, index."""


@dataclass(frozen=True)
class Layer:
    """One layer's content as far as one span goes."""

    seen: frozenset[Spot]
    is_complete: bool


class LastLayer(NamedTuple):
    """Number of the last layer that holds a spot: 0 nowhere, 1 source, 2 text, 3 chunks, 4 index."""

    sure: int
    possible: int


def layers(ingest: Ingest, span: Span, before: int) -> tuple[Layer, Layer, Layer, Layer]:
    """Source, text, chunks and index as they stood when the query began."""
    return (
        _source(ingest, span, before),
        _text(ingest, span, before),
        _chunks(ingest, span, before),
        _index(ingest, span, before),
    )


def last_layer(ingest: Ingest, span: Span, before: int) -> dict[Spot, LastLayer]:
    """For every spot of the span the last layer that surely, and that possibly, holds it."""
    found = layers(ingest, span, before)
    result = {}
    for spot in span.spots:
        sure = possible = 0
        may_be_here = True
        for number, layer in enumerate(found, start=1):
            if spot in layer.seen:
                sure = number
                may_be_here = True
            elif layer.is_complete:
                may_be_here = False
            if may_be_here:
                possible = number
        result[spot] = LastLayer(sure, max(sure, possible))
    return result


def _source(ingest: Ingest, span: Span, before: int) -> Layer:
    inventories = [x for x in ingest.source_inventories if x.at < before]
    is_there = any(x.doc_id == span.doc_id and x.at < before for x in ingest.documents) or any(
        span.doc_id in x.doc_ids for x in inventories
    )
    return Layer(span.spots if is_there else frozenset(), bool(inventories))


def _text(ingest: Ingest, span: Span, before: int) -> Layer:
    texts = [x for x in ingest.texts if x.doc_id == span.doc_id and x.at < before]
    if not texts:
        return Layer(frozenset(), False)
    newest = max(texts, key=lambda x: x.at)
    return Layer(span.spots if span.evidence_id in newest.found else frozenset(), span.evidence_id in newest.searched)


def _chunks(ingest: Ingest, span: Span, before: int) -> Layer:
    runs = [x for x in ingest.chunk_runs if x.doc_id == span.doc_id and x.at < before]
    if not runs:
        return Layer(frozenset(), False)
    return _holds(max(runs, key=lambda x: x.at).entries, span, is_complete=True)


def _index(ingest: Ingest, span: Span, before: int) -> Layer:
    writes = [x for x in ingest.writes if x.at < before]
    inventories = [x for x in ingest.index_inventories if x.at < before]
    names = {x.index_name for x in writes} | {x.index_name for x in inventories}
    entries: list[Entry] = []
    is_complete = bool(names)
    for name in names:
        declared = [x for x in inventories if x.index_name == name]
        since = -1
        if declared:
            newest = max(declared, key=lambda x: x.at)
            entries += newest.entries
            since = newest.at
        written = [x for x in writes if x.index_name == name]
        for write in written:
            if write.at > since:
                entries += write.entries
        if not declared and not any(x.is_complete for x in written):
            is_complete = False
    return _holds(tuple(entries), span, is_complete)


def _holds(entries: tuple[Entry, ...], span: Span, is_complete: bool) -> Layer:
    seen: set[Spot] = set()
    for entry in entries:
        seen |= entry.sure & span.spots
        if entry.is_unplaced:
            is_complete = False
    return Layer(frozenset(seen), is_complete)
