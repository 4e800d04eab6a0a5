"""Items: what candidate rows refer to. Distinct keys are collected in memory and looked up and added with set-based SQL.

A key is (chunk id, index, document, text hash, place). `place` is the place as delivered in short form:

    120-480           own range(s), joined by commas, of the text whose hash was delivered with them
    ~120-480          the same, the text being the newest one of the document when the query started
    |for 0-900        ranges the item stands for, behind the own ones; |may 0-900 possible ranges
    =17               delivered without a place; the chunk of that id in the index is item 17
    cut 17: 0-80      what is left of item 17;   altered 17   item 17, rewritten
    null              no place known

So rows that took their place from elsewhere can be told from those that brought it, and late records can re-point them.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from ragtrace.store.item_lookup import enter_keys
from ragtrace.store.tables import string_array

__all__ = [
    "BARE",
    "DOCUMENT",
    "MIXED",
    "PLAIN",
    "Book",
    "Context",
    "Derived",
    "Place",
    "enter_derived",
    "resolve",
    "short",
]

Range = tuple[int, int]


class Place(NamedTuple):
    """A place other than one plain range."""

    doc_id: str | None
    own: Sequence[Range] = ()
    stands_for: Sequence[Range] = ()
    possible: Sequence[Range] = ()
    is_altered: bool = False


class Derived(NamedTuple):
    """An item made of the item of another row: cut down or rewritten."""

    base: int
    """Number of the base in the same book."""
    cut: Sequence[Range] | None
    """Ranges of the base's text that are left; None: rewritten."""
    possible: Sequence[Range] = ()
    doc_id: str | None = None


class Either(NamedTuple):
    """A row without a place that only a later list gives one: its chunk as indexed comes first, it was not cut yet."""

    bare: int
    """Number of the id alone in the same book."""
    later: int
    """Number of the row in the later list: for ids that no index knows."""


class Context(NamedTuple):
    """What the keys of one memo have in common."""

    index_name: str | None
    id_source: str
    text_hash: str | None
    as_of_ns: int
    """Texts and chunks known before this time count, where the rows do not say theirs."""


BARE, DOCUMENT, PLAIN, MIXED = range(4)
"""Shapes of keys: a chunk id · (chunk id, document) · (chunk id, document, start, end) · (chunk id, Place, Derived or Either)."""


class _Memo(dict[Any, int]):
    """Key -> number; a key not seen before is entered in the book."""

    __slots__ = ("entered", "fresh")

    def __init__(self, entered: list[Any]) -> None:
        self.entered = entered
        """The keys of the whole book, by number."""
        self.fresh: list[int] = []
        """Numbers that are not resolved yet, rising."""

    def __missing__(self, key: Any) -> int:
        number = self[key] = len(self.entered)
        self.entered.append(key)
        self.fresh.append(number)
        return number


class Book:
    """Distinct item keys, numbered from 0, with the items of those that are resolved.

    May serve one piece of a merge after the other, as long as no piece brings chunks or texts that could change an answer.
    """

    def __init__(self) -> None:
        self.keys: list[Any] = []
        """By number; None for those that `numbers_of` gave out."""
        self.items: array[int] = array("i")
        """The item of each number that is resolved."""
        self.texts: dict[int, tuple[str | None, str | None]] = {}
        """Number -> (item_text_hash, offset_quality), as first seen."""
        self.memos: dict[tuple[Context, int], _Memo] = {}
        self.fresh_ids: list[tuple[Context, int, pa.Array]] = []
        """Bare chunk ids that are not resolved yet, with the number of the first."""
        self._known: dict[Context, _Known] = {}

    def memo(self, context: Context, shape: int) -> _Memo:
        """The key -> number table of one context and shape."""
        memo = self.memos.get((context, shape))
        if memo is None:
            memo = self.memos[(context, shape)] = _Memo(self.keys)
        return memo

    def numbers_of(self, context: Context, chunk_ids: pa.Array) -> memoryview:
        """The numbers of many bare chunk ids, entering those not seen before; int32 in the same order.

        They are known to Arrow only, by one hash table over the known and the new: an id that `memo` has as well gets
        a second number, and the same item.
        """
        known = self._known.get(context)
        if known is None:
            known = self._known[context] = _Known()
        first, n_known = len(self.keys), len(known.ids)
        encoded = pa.concat_arrays([known.ids, chunk_ids]).dictionary_encode(null_encoding="encode")
        n_new = len(encoded.dictionary) - n_known
        if n_new:
            known.ids = encoded.dictionary
            known.numbers = pa.concat_arrays([known.numbers, pa.array(range(first, first + n_new), pa.int32())])
            self.keys.extend(repeat(None, n_new))
            self.fresh_ids.append((context, first, encoded.dictionary.slice(n_known)))
        numbers = known.numbers.take(encoded.indices.slice(n_known))
        return memoryview(numbers.buffers()[1]).cast("i")[numbers.offset : numbers.offset + len(numbers)]


class _Known:
    """Bare chunk ids of one context, each once, with their numbers."""

    def __init__(self) -> None:
        self.ids: pa.Array = pa.array([], pa.string())
        self.numbers: pa.Array = pa.array([], pa.int32())


def short(ranges: Sequence[Range]) -> str:
    """Ranges in short form."""
    return ",".join(f"{start}-{end}" for start, end in ranges)


def resolve(connection: duckdb.DuckDBPyConnection, book: Book) -> pa.Array:
    """The item of every key of the book, adding those that are new; int32, in the order of the numbers."""
    first = len(book.items)
    if len(book.keys) > first:
        derived = {
            number: context
            for (context, shape), memo in book.memos.items()
            if shape == MIXED
            for number in memo.fresh
            if type(book.keys[number][1]) is Derived
        }
        either = [
            (number, book.keys[number][1])
            for (_, shape), memo in book.memos.items()
            if shape == MIXED
            for number in memo.fresh
            if type(book.keys[number][1]) is Either
        ]
        are_distinct = len(book.fresh_ids) == 1 and not any(memo.fresh for memo in book.memos.values())
        plain = enter_keys(connection, *_plain_keys(book), are_distinct)
        if derived or either:
            book.items.extend(repeat(0, len(book.keys) - first))
            for number, item in zip(plain["number"].to_pylist(), plain["item"].to_pylist(), strict=True):
                book.items[number] = item
            placed = _placed(connection, sorted({book.items[one.bare] for _, one in either}))
            for number, one in either:
                bare = book.items[one.bare]
                book.items[number] = bare if bare in placed else book.items[one.later]
            # The base of a derived key is never derived itself: it is the first item its id had.
            for number, item in (enter_derived(connection, book, derived, book.items) if derived else {}).items():
                book.items[number] = item
        else:
            items = plain.sort_by("number")["item"].combine_chunks()
            book.items.frombytes(memoryview(items.buffers()[1])[4 * items.offset : 4 * (items.offset + len(items))])
        for memo in book.memos.values():
            memo.fresh.clear()
        book.fresh_ids.clear()
        book.texts.clear()
    # A copy: the array goes on growing while Arrow holds the bytes.
    return pa.Array.from_buffers(pa.int32(), len(book.items), [None, pa.py_buffer(book.items.tobytes())])


def enter_derived(
    connection: duckdb.DuckDBPyConnection, book: Book, numbers: Mapping[int, Context], items: Sequence[int]
) -> dict[int, int]:
    """The items of derived keys, adding those that are new; `items[base]` is the item of each one's base."""
    found = enter_keys(connection, *_derived_keys(connection, book, numbers, items))
    return dict(zip(found["number"].to_pylist(), found["item"].to_pylist(), strict=True))


_KEY_TYPES: dict[str, pa.DataType] = {
    "number": pa.int32(), "chunk_id": pa.string(), "id_source": pa.string(), "index_name": pa.string(),
    "doc_id": pa.string(), "text_hash": pa.string(), "place": pa.string(), "as_of_ns": pa.int64(),
    "start_at": pa.int32(), "end_at": pa.int32(), "is_altered": pa.bool_(),
}  # fmt: skip
_CHUNK_ID_NO = list(_KEY_TYPES).index("chunk_id")
_RANGE_TYPES: dict[str, pa.DataType] = {
    "number": pa.int32(), "start_at": pa.int32(), "end_at": pa.int32(), "role": pa.string(),
}  # fmt: skip
_TEXT_TYPES: dict[str, pa.DataType] = {
    "number": pa.int32(),
    "item_text_hash": pa.string(),
    "offset_quality": pa.string(),
}

_Row = tuple[int, int | None, int | None, str]


def _table(columns: Mapping[str, Sequence[Any]], types: Mapping[str, pa.DataType]) -> pa.Table:
    return pa.table(
        {n: string_array(columns[n]) if t == pa.string() else pa.array(columns[n], t) for n, t in types.items()}
    )


def _key_table(n: int, context: Context, columns: Mapping[str, Sequence[Any]]) -> pa.Table:
    """Keys of one context as Arrow; columns that are not given are the context's or null."""
    common = context._asdict()
    arrays = {}
    for name, kind in _KEY_TYPES.items():
        if name in columns:
            arrays[name] = string_array(columns[name]) if kind == pa.string() else pa.array(columns[name], kind)
        elif common.get(name) is not None:
            one = string_array([common[name]]) if kind == pa.string() else pa.array([common[name]], kind)
            arrays[name] = pa.repeat(one[0], n)
        else:
            arrays[name] = pa.nulls(n, kind)
    return pa.table(arrays)


def _plain_keys(book: Book) -> tuple[pa.Table, pa.Table, pa.Table]:
    """All keys but the derived ones, the ranges of those with other than one plain range, and texts."""
    tables = [_key_table(0, Context(None, "", None, 0), {})]
    ranges: list[_Row] = []
    for (context, shape), memo in book.memos.items():
        if not memo.fresh:
            continue
        keys = [book.keys[number] for number in memo.fresh]
        columns: dict[str, Sequence[Any]] = {"number": memo.fresh}
        if shape == BARE:
            columns["chunk_id"] = keys
        elif shape == DOCUMENT:
            columns["chunk_id"], columns["doc_id"] = zip(*keys, strict=True)
        elif shape == PLAIN:
            columns["chunk_id"], columns["doc_id"], columns["start_at"], columns["end_at"] = zip(*keys, strict=True)
        else:
            rows = [(number, *key) for number, key in zip(memo.fresh, keys, strict=True) if type(key[1]) is Place]
            mark = "" if context.text_hash is not None else "~"
            columns = {
                "number": [number for number, _, _ in rows],
                "chunk_id": [chunk_id for _, chunk_id, _ in rows],
                "doc_id": [place.doc_id for _, _, place in rows],
                "place": [mark + _place_text(place) for _, _, place in rows],
                "is_altered": [place.is_altered for _, _, place in rows],
            }
            for number, _, place in rows:
                _add_ranges(ranges, number, place.own, "own")
                _add_ranges(ranges, number, place.stands_for, "stands_for")
                _add_ranges(ranges, number, place.possible, "possible")
        # A key without any place takes its text from its chunk.
        known = context if shape >= PLAIN else context._replace(text_hash=None)
        tables.append(_key_table(len(columns["number"]), known, columns))
    for context, first, ids in book.fresh_ids:
        known_ids = _key_table(len(ids), context._replace(text_hash=None), {"number": range(first, first + len(ids))})
        tables.append(known_ids.set_column(_CHUNK_ID_NO, "chunk_id", ids))
    texts = [(number, *text) for number, text in book.texts.items()]
    return (
        pa.concat_tables(tables),
        _table(dict(zip(_RANGE_TYPES, list(zip(*ranges, strict=True)) or [()] * 4, strict=True)), _RANGE_TYPES),
        _table(dict(zip(_TEXT_TYPES, list(zip(*texts, strict=True)) or [()] * 3, strict=True)), _TEXT_TYPES),
    )


def _place_text(place: Place) -> str:
    text = short(place.own)
    if place.stands_for:
        text += "|for " + short(place.stands_for)
    if place.possible:
        text += "|may " + short(place.possible)
    return text + "|altered" if place.is_altered else text


def _add_ranges(rows: list[_Row], number: int, ranges: Sequence[Range], role: str) -> None:
    rows.extend((number, start, end, role) for start, end in ranges)


def _derived_keys(
    connection: duckdb.DuckDBPyConnection, book: Book, numbers: Mapping[int, Context], items: Sequence[int]
) -> tuple[pa.Table, pa.Table, pa.Table]:
    """Keys of cut and altered items, from the ranges of their bases."""
    known = _ranges_of(connection, sorted({items[book.keys[number][1].base] for number in numbers}))
    tables = []
    found: list[_Row] = []
    for number, context in numbers.items():
        chunk_id, derived = book.keys[number]
        base = items[derived.base]
        ranges = known.get(base, [])
        own = [(start, end) for _, _, start, end, role in ranges if role == "own"]
        maybe = [(start, end) for _, _, start, end, role in ranges if role == "possible"]
        name = f"altered {base}" if derived.cut is None else f"cut {base}: {short(derived.cut)}"
        if derived.possible:
            name += "|may " + short(derived.possible)
        columns = {
            "number": [number], "chunk_id": [chunk_id], "doc_id": [ranges[0][0] if ranges else derived.doc_id],
            "text_hash": [ranges[0][1] if ranges else context.text_hash], "place": [name], "is_altered": [derived.cut is None],
        }  # fmt: skip
        tables.append(_key_table(1, context, columns))
        if derived.cut is None:
            _add_ranges(found, number, own, "possible")
        else:
            _add_ranges(found, number, _sub_ranges(own, derived.cut), "own")
        _add_ranges(found, number, [*maybe, *derived.possible], "possible")
    texts = [(number, *book.texts[number]) for number in numbers if number in book.texts]
    return (
        pa.concat_tables(tables),
        _table(dict(zip(_RANGE_TYPES, list(zip(*found, strict=True)) or [()] * 4, strict=True)), _RANGE_TYPES),
        _table(dict(zip(_TEXT_TYPES, list(zip(*texts, strict=True)) or [()] * 3, strict=True)), _TEXT_TYPES),
    )


def _placed(connection: duckdb.DuckDBPyConnection, items: Sequence[int]) -> set[int]:
    """Those of the items that have a place."""
    if not items:
        return set()
    connection.register("staging_bare", pa.table({"item": pa.array(items, pa.int32())}))
    rows = connection.execute(
        "select i.item from items as i join staging_bare as b on b.item = i.item where i.place is not null"
    ).fetchall()
    connection.unregister("staging_bare")
    return {item for (item,) in rows}


def _ranges_of(connection: duckdb.DuckDBPyConnection, items: Sequence[int]) -> dict[int, list[tuple[Any, ...]]]:
    """doc_id, text_hash, start_at, end_at and role of the ranges of each item, in order of start."""
    connection.register("staging_bases", pa.table({"item": pa.array(items, pa.int32())}))
    rows = connection.execute(
        "select r.item, r.doc_id, r.text_hash, r.start_at, r.end_at, r.role from item_ranges as r "
        "join staging_bases as b on b.item = r.item order by r.item, r.start_at"
    ).fetchall()
    connection.unregister("staging_bases")
    known: dict[int, list[tuple[Any, ...]]] = {}
    for item, *rest in rows:
        known.setdefault(item, []).append(tuple(rest))
    return known


def _sub_ranges(own: Sequence[Range], cut: Sequence[Range]) -> list[Range]:
    """Ranges of an item's text (0 = its first character) as ranges of the document; what lies past its end is left out."""
    found = []
    for low, high in cut:
        at = 0
        for start, end in own:
            length = end - start
            first, last = max(low - at, 0), min(high - at, length)
            if first < last:
                found.append((start + first, start + last))
            at += length
    return found
