"""Lists as they pass a stage's border: snapshots as columns, with what is needed to know them again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ragtrace.spool.records import Columns, Ids

__all__ = ["Listed", "identities", "join", "select"]

_DENSE = ("score", "doc_id", "start", "end", "item_text_hash", "offset_quality", "tokens", "position")
_MAPS = ("score_flag", "ranges", "stands_for", "possible", "cut", "drop_reason", "dropped_by")
_ROWS = ("altered", "dropped")
_NAN = float("nan")


class Listed:
    """One list that a stage took, put out or looked at. Read once, when it passed; never changed by the service.

    Written as it is when there is nothing to search or compare: it has the fields of a `CandidateList`. What most lists
    have in common stands in the class: setting it for each costs more than reading ten candidates.
    """

    texts: Sequence[str | None] | None = None
    """References to the candidates' texts, kept while the query is open."""
    ids: Sequence[Any] = ()
    """What two lists are compared by; see `identities`."""
    string: str | None = None
    """A text to be searched for candidates when the query ends."""
    same_as: Sequence[int] = ()
    declared_sources: Sequence[int] = ()
    n_declared: int | None = None
    is_complete: bool = True
    is_partial: bool = False
    object_id: int = 0
    """Identity of the object it was read from: a hint only."""
    items: list[Any] | None = None
    """The very items of an output while its query is open: the same ones in the same list are the same list."""
    owner_id: int = 0
    """The stage run it belongs to."""
    end_no: int = 0
    is_off: bool = False
    """Put out by an aside or probe run: equal ids do not make it the origin of anything."""

    def __init__(self, list_id: int, role: str, columns: Columns | None, argument: str | None = None) -> None:
        self.list_id = list_id
        self.role = role
        self.columns = columns
        self.argument = argument


def identities(columns: Columns, texts: Sequence[str | None] | None) -> Sequence[Any]:
    """What makes each row the same item in another list: its id, else its place, else its text."""
    ids = columns.chunk_id
    if type(ids) is Ids or None not in ids:
        return ids
    if columns.start is None and texts is not None and not any(ids):
        return list(texts)
    known: list[Any] = list(ids)
    for row, chunk_id in enumerate(ids):
        if chunk_id is not None:
            continue
        start = columns.start[row] if columns.start is not None else None
        if start is not None:
            doc_id = columns.doc_id[row] if columns.doc_id is not None else None
            known[row] = (doc_id, start, columns.end[row] if columns.end is not None else None)
        elif texts is not None and texts[row] is not None:
            known[row] = texts[row]
    return known


def select(columns: Columns, rows: Sequence[int]) -> Columns:
    """The columns of some rows, in that order; scores are left out, they belong to the list they were given in."""
    new_row: dict[int, int] = {row: number for number, row in enumerate(rows)}
    chosen: dict[str, Any] = {}
    for name in _DENSE:
        values = getattr(columns, name)
        if values is not None and name not in ("score", "tokens", "position"):
            chosen[name] = [values[row] for row in rows]
    for name in ("ranges", "stands_for", "possible", "cut"):
        values = getattr(columns, name)
        if values:
            chosen[name] = {new_row[row]: value for row, value in values.items() if row in new_row}
    altered = [new_row[row] for row in columns.altered if row in new_row] if columns.altered else None
    ids = columns.chunk_id
    return Columns(
        [ids[row] for row in rows],
        id_source=columns.id_source,
        text_hash=columns.text_hash,
        altered=altered or None,
        **chosen,
    )


def join(parts: Iterable[Columns]) -> Columns:
    """One list out of several, in order. The id source and text hash are those of the first that has any."""
    parts = list(parts)
    if len(parts) == 1:
        return parts[0]
    lengths = [len(part.chunk_id) for part in parts]
    joined: dict[str, Any] = {}
    for name in _DENSE:
        if any(getattr(part, name) is not None for part in parts):
            blank = _NAN if name == "score" else None
            values: list[Any] = []
            for part, length in zip(parts, lengths, strict=True):
                column = getattr(part, name)
                values.extend(column if column is not None else [blank] * length)
            joined[name] = values
    begin = 0
    maps: dict[str, Any] = {}
    rows: dict[str, Any] = {}
    for part, length in zip(parts, lengths, strict=True):
        for name in _MAPS:
            found: Mapping[int, Any] | None = getattr(part, name)
            if found:
                maps.setdefault(name, {}).update({row + begin: value for row, value in found.items()})
        for name in _ROWS:
            marked: Sequence[int] | None = getattr(part, name)
            if marked:
                rows.setdefault(name, []).extend(row + begin for row in marked)
        begin += length
    return Columns(
        [chunk_id for part in parts for chunk_id in part.chunk_id],
        id_source=next((part.id_source for part in parts if part.chunk_id), "native"),
        text_hash=next((part.text_hash for part in parts if part.text_hash is not None), None),
        score_kind=next((part.score_kind for part in parts if part.score_kind is not None), None),
        **joined,
        **maps,
        **rows,
    )
