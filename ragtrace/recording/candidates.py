"""Candidate lists by shape: what a stage returned or was given, as columns. Knows nothing of spans or files.

Ids, in this order: what `extract` says; a chunk's id in the metadata (chunk_id, chunkId, chunk_uuid, passage_id,
node_id); the item's own id; "id" in the metadata; else document and range, written `doc[start:end]`; else none: such
an item is known by its text. The table of shapes is in docs/candidates.md.

Nothing here raises, consumes an iterator, or asks an object of the service for its repr, str, equality or copy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ragtrace.recording.lists import select
from ragtrace.recording.shapes import ABSENT, peek, plan_of
from ragtrace.recording.shapes_containers import items_of
from ragtrace.recording.shapes_flat import read_flat
from ragtrace.recording.shapes_rows import UNREADABLE, Rows, Texts, row_of, rows_of, scattered
from ragtrace.recording.shapes_scores import Pairs, kind_of_scores
from ragtrace.recording.shapes_values import id_text, offset
from ragtrace.spool.records import Columns

__all__ = ["Extract", "Piece", "Rows", "picked", "pieces", "read", "read_with_texts", "text_of_item", "text_refs"]

Extract = Callable[[Any], Any]
"""Item → Candidate, mapping, (id, score), id, or None for what is no candidate."""


class Piece(NamedTuple):
    """What placing a chunk needs to know of it."""

    text: str | None
    start: int | None
    """Where the splitter says it begins: a hint, often wrong."""
    generated: str | None
    """Generated prefix inside `text`."""


def read_with_texts(
    value: Any, *, extract: Extract | None = None, metadata_locations: bool = True, strings_are_texts: bool = False
) -> Rows | None:
    """The candidates of a list in the order returned, as columns and as texts; None when it is no candidate list.

    Columns are a snapshot; texts are references (None when no row has one), row by row beside them. An empty list is
    one without candidates. Items that are None and the padding of vector searches (-1) are left out. An item that
    cannot be read keeps its rank, without an id. Bare strings are ids, but for prose: a line end, over 200
    characters or eight blanks. `metadata_locations=False` does not look for document and range in items' metadata:
    for services whose ingest side is traced. Never raises.
    """
    try:
        if extract is not None:
            return _extracted(value, extract)
        if type(value) is list and value and type(value[0]) is dict and metadata_locations:
            rows = read_flat(value)
            if rows is not None:
                return rows
        items = items_of(value)
        rows = None if items is None else rows_of(items, metadata_locations, strings_are_texts)
        if rows is not None and type(items) is Pairs:
            rows = rows[0]._replace(score_kind=kind_of_scores(items.tells, rows[0].score)), rows[1]
        return rows
    except Exception:  # whatever foreign objects do when looked at, the list is then one that cannot be read
        return None


def read(value: Any, *, extract: Extract | None = None, metadata_locations: bool = True) -> Columns | None:
    """The columns of `read_with_texts`. Never raises."""
    rows = read_with_texts(value, extract=extract, metadata_locations=metadata_locations)
    return None if rows is None else rows[0]


def text_refs(value: Any, *, extract: Extract | None = None, strings_are_texts: bool = False) -> Texts | None:
    """The texts of `read_with_texts`. Never raises."""
    rows = read_with_texts(value, extract=extract, strings_are_texts=strings_are_texts)
    return None if rows is None else rows[1]


def text_of_item(item: Any) -> str | None:
    """The text of one item of a list, by reference; None when it has none, or is itself a string. Never raises."""
    row = row_of(item, False)
    return row[1][0] if row is not None and row[1] is not None and row[1][0] is not item else None


def pieces(value: Any) -> list[Piece] | None:
    """What a chunk stage put out, for placing: bare strings are chunk texts. None when it is no list. Never raises."""
    try:
        items = items_of(value)
        return None if items is None else [_piece(item) for item in items if item is not None]
    except Exception:  # as in read_with_texts
        return None


def picked(given: Columns, value: Any) -> Columns | None:
    """A reranker's answer that names the rows of its input by number, as Cohere's and sentence-transformers' do.

    `given` is the input list. Rows come in the answer's order with its scores. None when the answer's items do have
    ids or no `index` (or `corpus_id`) within the input: then `read` it. Never raises.
    """
    try:
        items = items_of(value)
        if not items:
            return None
        rows = [row for row in map(_index, items) if row is not None and row < len(given.chunk_id)]
        if len(rows) < len(items):
            return None
        read_rows = rows_of(items, False, False)
        columns = select(given, rows)
        return (
            columns
            if read_rows is None
            else columns._replace(score=read_rows[0].score, score_flag=read_rows[0].score_flag)
        )
    except Exception:  # as in read_with_texts
        return None


# ------------------------------------------------------------------ extract


def _extracted(value: Any, extract: Extract) -> Rows | None:
    items = items_of(value)
    if items is None:
        made = extract(value)  # a container that only the service knows
        rows = None if made is None or made is value else read_with_texts(made)
        return None if rows is None else (rows[0]._replace(id_source="extract"), rows[1])
    read_rows = []
    for item in items:
        row: Rows | None = None
        try:
            made = extract(item)
            if made is None:
                continue
            row = row_of(made, True)
        except Exception:  # the service's function failed on this item only
            pass
        columns, texts = row or UNREADABLE
        if texts is None:
            text = text_of_item(item)
            texts = None if text is None else [text]
        read_rows.append((columns, texts))
    if not read_rows:
        return Columns([]), None
    columns, refs = scattered(len(read_rows), [((row,), read_row) for row, read_row in enumerate(read_rows)])
    return columns._replace(id_source="extract"), refs


# ------------------------------------------------------------------ single items


def _piece(item: Any) -> Piece:
    if isinstance(item, str):
        return Piece(item, None, None)
    text = text_of_item(item)
    start = generated = None
    try:
        plan = plan_of(item)
        if plan is not None:
            made = plan.made([item])
            values = {name: getter(made[source][0]) for name, (source, getter) in plan.rare}
            prefix = values.get("generated")
            generated = prefix if isinstance(prefix, str) else None
            start = offset(plan.start[1](made[plan.start[0]][0])) if plan.start else None
    except Exception:  # the hint is lost, not the piece
        pass
    return Piece(text, start, generated)


def _index(item: Any) -> int | None:
    """The row of the input that an item names, when nothing in it is an id of its own."""
    if isinstance(item, (str, tuple, list, int, float)):
        return None
    for name in ("chunk_id", "id", "_id", "node_id"):
        value = peek(item, name)
        if value is not ABSENT and id_text(value) is not None:
            return None
    for name in ("index", "corpus_id"):
        value = peek(item, name)
        row = None if value is ABSENT else offset(value)
        if row is not None:
            return row
    return None
