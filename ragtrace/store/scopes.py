"""Gives every candidate row of one query or ingest document its item key. Knows no database.

Most lists take the fast way: all rows of the scope come with one plain range, or none with any place. Otherwise rows are
walked in the order the lists came up, so that a row without a place finds the one its id had elsewhere in the query.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator, Mapping, Sequence
from operator import le
from typing import Any, cast

from ragtrace.spool.records import CandidateList, Columns, StageRecord
from ragtrace.store.items import BARE, DOCUMENT, MIXED, PLAIN, Book, Context, Derived, Either, Place
from ragtrace.store.staging import Candidates, Scope

__all__ = ["number_rows", "with_ids", "written_lists"]

_PLACES = slice(Columns._fields.index("doc_id"), Columns._fields.index("offset_quality") + 1)
_NO_PLACES = (None,) * (_PLACES.stop - _PLACES.start)
"""Columns that say where an item stands or what its text is."""


def with_ids(columns: Columns) -> Columns:
    """The same columns, rows without an id named by their range or text (hash); what has neither stays without."""
    if None not in columns.chunk_id:
        return columns
    ids: list[str | None] = list(columns.chunk_id)
    for row, chunk_id in enumerate(ids):
        if chunk_id is None:
            ids[row] = _made_id(columns, row)
    source = "range" if columns.start is not None or columns.ranges else "text"
    return columns._replace(chunk_id=ids, id_source=source if set(columns.chunk_id) == {None} else columns.id_source)


def _made_id(columns: Columns, row: int) -> str | None:
    doc_id = columns.doc_id[row] if columns.doc_id is not None else None
    ranges = _ranges(columns, row)
    if doc_id is not None and ranges:
        name = f"{doc_id}\0{ranges}"
    elif columns.item_text_hash is not None and columns.item_text_hash[row] is not None:
        return columns.item_text_hash[row]
    else:
        return None
    return hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def number_rows(
    book: Book, candidates: Candidates, scope: Scope, as_of_ns: int, doc_id: str | None = None
) -> dict[int, Sequence[int]]:
    """Enter the rows of every list of the scope; the key numbers of each list in rank order.

    Where all are lists of bare ids and nothing was written, the numbers mean nothing: `candidates.number_bare` gives them.

    `doc_id` is the document of rows that name none (ingest side).
    """
    numbers = _bare(candidates, scope, as_of_ns) if doc_id is None else None
    if numbers is not None:
        return numbers
    lists = list(_ordered(scope))
    names = {stage.row.get("index_name") for stage in scope.stages} - {None}
    only_name = next(iter(names)) if len(names) == 1 else None
    entries: list[tuple[CandidateList, Columns, str | None]] = []
    shapes: set[int] = set()
    for one, index_name in lists:
        columns = one.columns
        if columns is None:
            continue
        columns = with_ids(columns)
        if doc_id is not None:
            columns = _in_document(columns, doc_id)
        shapes.add(_shape(columns))
        entries.append((one, columns, index_name or only_name))
    numbers = {}
    if len(shapes) <= 1 and MIXED not in shapes and (len(names) <= 1 or PLAIN in shapes):
        shape = next(iter(shapes), BARE)
        for one, columns, index_name in entries:
            context = Context(index_name, columns.id_source, columns.text_hash, as_of_ns)
            numbers[one.list_id] = taken = _fast(book, context, columns, shape)
            _remember_texts(book, columns, taken)
            candidates.add(one.list_id, columns, taken)
    else:
        walk = _Walk(book, as_of_ns)
        for one, columns, index_name in entries:
            numbers[one.list_id] = walk.take(columns, index_name)
        walk.finish()
        for one, columns, _ in entries:
            taken = numbers[one.list_id]
            _remember_texts(book, columns, taken)
            candidates.add(one.list_id, columns, taken)
    return numbers


def _bare(candidates: Candidates, scope: Scope, as_of_ns: int) -> dict[int, Sequence[int]] | None:
    """Enter the rows where every list has ids and nothing that tells a place or text, of at most one index; else None."""
    found: list[tuple[int, Columns]] = []
    index_name = None
    for stage in scope.stages:
        row = stage.row
        name = row.get("index_name")
        if name != index_name:
            if index_name is not None and name is not None:
                return None
            index_name = name if index_name is None else index_name
        for one in stage.lists:
            columns = one.columns
            if columns is not None:
                if columns[_PLACES] != _NO_PLACES or None in columns.chunk_id:
                    return None
                found.append((one.list_id, columns))
        if row.get("kind") in ("chunk", "index"):
            return None
    for one in scope.contexts:
        columns = one.columns
        if columns is not None:
            if columns[_PLACES] != _NO_PLACES or None in columns.chunk_id:
                return None
            found.append((one.list_id, columns))
    contexts: dict[str, Context] = {}
    numbers: dict[int, Sequence[int]] = {}
    for list_id, columns in found:
        source = columns.id_source
        context = contexts.get(source)
        if context is None:
            context = contexts[source] = Context(index_name, source, None, as_of_ns)
        numbers[list_id] = candidates.add_bare(list_id, columns, context)
    return numbers


def written_lists(stage: StageRecord) -> list[CandidateList]:
    """What a chunk or index run wrote: its output list, else its input lists."""
    outputs = [one for one in stage.lists if one.role == "out" and (one.columns is not None or one.same_as)]
    if outputs or stage.row.get("kind") == "chunk":
        return outputs
    return [one for one in stage.lists if one.role == "in"]


def _ordered(scope: Scope) -> Iterator[tuple[CandidateList, str | None]]:
    """Lists in the order they came up, with the index their stage names; contexts last."""
    found: list[tuple[int, int, CandidateList, str | None]] = []
    for number, stage in enumerate(scope.stages):
        row = stage.row
        start_no = row.get("start_no") or number
        end_no = row.get("end_no") or start_no
        index_name = row.get("index_name")
        given = {
            len(one.columns.chunk_id): one.columns
            for one in stage.lists
            if one.role == "in" and one.columns is not None
        }
        for one in stage.lists:
            is_given_ids = row.get("kind") == "index" and one.role == "out"
            known = _with_places(one, given) if is_given_ids else one
            found.append((start_no if one.role == "in" else end_no, one.list_id, known, index_name))
    found.sort(key=lambda entry: entry[:2])
    for _, _, one, index_name in found:
        yield one, index_name
    for one in scope.contexts:
        yield one, None


def _with_places(one: CandidateList, given: Mapping[int, Columns]) -> CandidateList:
    """The ids an index gave back are by position those of the chunks it took; `given` has these by their number."""
    columns = one.columns
    if columns is None or _shape(columns) != BARE:
        return one
    taken = given.get(len(columns.chunk_id))
    if taken is None or _shape(taken) == BARE:
        return one
    return one._replace(columns=taken._replace(chunk_id=columns.chunk_id, id_source=columns.id_source))


def _in_document(columns: Columns, doc_id: str) -> Columns:
    given = columns.doc_id
    if given is None:
        return columns._replace(doc_id=[doc_id] * len(columns.chunk_id))
    if None in given:
        return columns._replace(doc_id=[doc_id if one is None else one for one in given])
    return columns


def _shape(columns: Columns) -> int:
    if columns.cut or columns.altered or columns.ranges or columns.stands_for or columns.possible:
        return MIXED
    start, end, doc_id = columns.start, columns.end, columns.doc_id
    if doc_id is None:
        return BARE
    if start is None or end is None:
        return MIXED if None in doc_id else DOCUMENT
    if None in doc_id or None in start or None in end or not start:
        return MIXED
    # No None is among them.
    return (
        PLAIN
        if min(cast("Sequence[int]", start)) >= 0 and all(map(le, cast("Any", start), cast("Any", end)))
        else MIXED
    )


def _fast(book: Book, context: Context, columns: Columns, shape: int) -> Sequence[int]:
    number_of = book.memo(context, shape).__getitem__
    if shape == PLAIN:
        keys: Any = zip(columns.chunk_id, columns.doc_id, columns.start, columns.end, strict=True)  # type: ignore[arg-type]  # plain: all are given
    elif shape == DOCUMENT:
        keys = zip(columns.chunk_id, columns.doc_id, strict=True)  # type: ignore[arg-type]  # all are given
    else:
        keys = columns.chunk_id
    return array("i", map(number_of, keys))


def _remember_texts(book: Book, columns: Columns, numbers: Sequence[int]) -> None:
    hashes, qualities = columns.item_text_hash, columns.offset_quality
    if hashes is None and qualities is None:
        return
    nothing: Sequence[None] = [None] * len(numbers)
    for number, text_hash, quality in zip(numbers, hashes or nothing, qualities or nothing, strict=False):
        if number >= len(book.items) and number not in book.texts and (text_hash is not None or quality is not None):
            book.texts[number] = (text_hash, quality)


def _ranges(columns: Columns, row: int) -> list[tuple[int, int]]:
    """The own ranges of a row; empty when there are none that can be used."""
    several = columns.ranges.get(row) if columns.ranges else None
    if several:
        return [(start, end) for start, end in several if 0 <= start <= end]
    if columns.start is None or columns.end is None:
        return []
    start, end = columns.start[row], columns.end[row]
    return [(start, end)] if start is not None and end is not None and 0 <= start <= end else []


class _Walk:
    """The slow way: row by row, knowing what each id was before in the scope."""

    def __init__(self, book: Book, as_of_ns: int) -> None:
        self.book = book
        self.as_of_ns = as_of_ns
        self.latest: dict[Any, int] = {}
        """id, (id, document) and (id, document or None, text hash, "text") -> number of the latest row that had a place."""
        self.first: dict[Any, int] = {}
        """The same, the earliest row: for rows that came up before any row with a place."""
        self.came_bare: set[Any] = set()
        """id and (id, document) that came up before any row with a place."""
        self.indexes: dict[Any, str] = {}
        """id -> the index it was last seen in."""
        self.waiting: list[tuple[array[int], int, Any, Any, Context, int | None]] = []
        """Rows without a place so far; last the number of what a row stands for, where it says that alone."""

    def take(self, columns: Columns, index_name: str | None) -> array[int]:
        """The numbers of one list's rows; rows that wait for a later place are filled in by `finish`."""
        numbers: array[int] = array("i")
        entered: list[tuple[Any, str | None, str | None, int]] = []
        altered = frozenset(columns.altered or ())
        for row, chunk_id in enumerate(columns.chunk_id):
            doc_id = columns.doc_id[row] if columns.doc_id is not None else None
            text = columns.item_text_hash[row] if columns.item_text_hash is not None else None
            if index_name is not None:
                self.indexes[chunk_id] = index_name
            context = Context(
                index_name or self.indexes.get(chunk_id), columns.id_source, columns.text_hash, self.as_of_ns
            )
            number = self._number(columns, row, chunk_id, doc_id, text, context, row in altered)
            if number is None:
                stands_for = tuple(columns.stands_for.get(row, ())) if columns.stands_for else ()
                stand_in = None
                if stands_for:  # it lies somewhere in there
                    stand_in = self.book.memo(context, MIXED)[(chunk_id, Place(doc_id, (), stands_for, stands_for))]
                self.waiting.append((numbers, row, chunk_id, doc_id, context, stand_in))
                self.came_bare.update(key for key in _names(chunk_id, doc_id, None) if key not in self.first)
                number = -1
            else:
                entered.append((chunk_id, doc_id, text, number))
            numbers.append(number)
        # Entered after the whole list: a row twice in one list is no earlier place of itself.
        for chunk_id, doc_id, text, number in entered:
            for key in _names(chunk_id, doc_id, text):
                self.latest[key] = number
                if not self._is_derived(number):
                    self.first.setdefault(key, number)
        return numbers

    def finish(self) -> None:
        """Rows that found no place in an earlier list: their chunk's as indexed, else from a later list, else without."""
        for numbers, row, chunk_id, doc_id, context, stand_in in self.waiting:
            key = chunk_id if doc_id is None else (chunk_id, doc_id)
            number = self.book.memo(context, BARE if doc_id is None else DOCUMENT)[key]
            later = self.first.get(key, stand_in) if chunk_id is not None else stand_in
            if later is not None:
                number = self.book.memo(context, MIXED)[(chunk_id, Either(number, later))]
            numbers[row] = number

    def _number(
        self,
        columns: Columns,
        row: int,
        chunk_id: Any,
        doc_id: str | None,
        text: str | None,
        context: Context,
        is_altered: bool,
    ) -> int | None:
        mixed = self.book.memo(context, MIXED)
        plain = self.book.memo(context, PLAIN)
        own = _ranges(columns, row) if doc_id is not None else []
        stands_for = tuple(columns.stands_for.get(row, ())) if columns.stands_for else ()
        possible = tuple(columns.possible.get(row, ())) if columns.possible else ()
        cut = columns.cut.get(row) if columns.cut else None
        if cut is not None or is_altered:
            base = self._base(chunk_id, doc_id, own, stands_for, context)
            return mixed[(chunk_id, Derived(base, None if cut is None else tuple(cut), possible, doc_id))]
        if possible or len(own) > 1 or (own and stands_for):
            return mixed[(chunk_id, Place(doc_id, tuple(own), stands_for, possible))]
        if own:
            return plain[(chunk_id, doc_id, own[0][0], own[0][1])]
        return self._earlier(chunk_id, doc_id, text)

    def _base(
        self,
        chunk_id: Any,
        doc_id: str | None,
        own: Sequence[tuple[int, int]],
        stands_for: Sequence[tuple[int, int]],
        context: Context,
    ) -> int:
        """The number of the text that a cut or altered one is compared with: the first that its id had in the query."""
        key = chunk_id if doc_id is None else (chunk_id, doc_id)
        base = self.first.get(key)
        if base is None and len(own) == 1:
            return self.book.memo(context, PLAIN)[(chunk_id, doc_id, own[0][0], own[0][1])]
        if base is None and (own or stands_for):
            return self.book.memo(context, MIXED)[(chunk_id, Place(doc_id, tuple(own), tuple(stands_for)))]
        if base is not None and key not in self.came_bare:
            return base
        bare = self.book.memo(context, BARE if doc_id is None else DOCUMENT)[key]
        return bare if base is None else self.book.memo(context, MIXED)[(chunk_id, Either(bare, base))]

    def _is_derived(self, number: int) -> bool:
        key = self.book.keys[number]
        return type(key) is tuple and type(key[1]) is Derived

    def _earlier(self, chunk_id: Any, doc_id: str | None, text: str | None) -> int | None:
        if chunk_id is None:
            return None
        # A row that names its document is not the same id of another document.
        for key in reversed(_names(chunk_id, doc_id, text)[0 if doc_id is None else 1 :]):
            found = self.latest.get(key)
            if found is not None:
                return found
        return None


def _names(chunk_id: Any, doc_id: str | None, text: str | None) -> list[Any]:
    """Under what a row is found again, the most exact name last."""
    names: list[Any] = [chunk_id] if doc_id is None else [chunk_id, (chunk_id, doc_id)]
    if text is not None:
        names.append((chunk_id, text, "text"))
    return names
