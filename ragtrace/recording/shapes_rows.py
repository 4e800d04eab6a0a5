"""The items of a list as columns: all at once when they are of one kind, else one by one.

Knows nothing of what stood around the items (`shapes_containers`) nor of how one kind is read (`shapes`).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from math import nan
from types import NoneType
from typing import Any

from ragtrace.recording import shapes_flat
from ragtrace.recording.shapes import Field, Plan, peek, plan_of
from ragtrace.recording.shapes_scores import kind_of_scores, what_tells
from ragtrace.recording.shapes_values import documents, id_text, ids, offset, offsets, root_module, scores, whole_ranges
from ragtrace.spool.records import Columns, Ids

__all__ = ["UNREADABLE", "Rows", "Texts", "row_of", "rows_of", "scattered"]

Range = tuple[int, int]
Texts = list[str | None]
Rows = tuple[Columns, Texts | None]
"""The columns of a list, and its texts by reference when any row has one."""


def rows_of(items: Sequence[Any], metadata_locations: bool, strings_are_texts: bool) -> Rows | None:
    """The rows of a list's items; None when none of them can be read. Raises what the items raise."""
    if not items:
        return Columns([]), None
    first = items[0]
    kind = type(first)
    rows: Rows | None = None
    if kind is dict:
        rows = _of_kind(items, metadata_locations)
    elif kind is str:
        rows = _of_strings(items, strings_are_texts)
    elif kind is tuple and len(first) == 2:
        rows = _of_pairs(items, metadata_locations)
    elif root_module(kind) == "sqlalchemy":
        rows = _of_entities(items, metadata_locations) or _of_kind(items, metadata_locations)
    elif first is not None and not isinstance(first, (tuple, list)) and id_text(first) is None:
        rows = _of_kind(items, metadata_locations)
    return rows or _by_kinds([item for item in items if item is not None], metadata_locations)


def _of_strings(items: Sequence[str], are_texts: bool) -> Rows | None:
    """Ids, or texts, or some of both; None when not all are strings."""
    try:
        joined = "\0".join(items)
    except TypeError:
        return None
    if are_texts:
        return Columns([None] * len(items), "text"), list(items)
    if len(max(items, key=len)) <= _SHORT and "" not in items:
        identities = Ids(items)
        identities.joined = joined
        return Columns(identities), None
    names = [None if is_prose(item) else item or None for item in items]
    return Columns(names, "native" if any(names) else "text"), list(items) if None in names else None


_SHORT = 40
"""Strings up to this length are not searched for the signs of prose."""
_LONGEST_ID = 200
_BLANKS = 8


def is_prose(text: str) -> bool:
    """Whether a bare string is a text rather than an id. Never raises."""
    return len(text) > _SHORT and (len(text) > _LONGEST_ID or "\n" in text or text.count(" ") >= _BLANKS)


def _of_pairs(items: Sequence[Any], metadata_locations: bool) -> Rows | None:
    """(id, score), (score, id) when only one of them can be the id, (item, score), (score, item)."""
    try:
        left, right = zip(*items, strict=True)
    except (TypeError, ValueError):
        return None
    if _is_score_first(left[0], right[0]):
        left, right = right, left
    if type(right[0]) is str:
        return None  # (id, text) and the like
    if id_text(left[0]) is None:
        rows = _of_kind(left, metadata_locations) or _by_kinds(left, metadata_locations)
        if rows is None:
            return None
        columns, texts = rows
        score, flag = scores(right)
        return columns._replace(score=score, score_flag=flag), texts
    identities, is_full = ids(left)
    if not is_full:
        return None
    return Columns(identities, "native", *scores(right)), None


def _of_entities(items: Sequence[Any], metadata_locations: bool) -> Rows | None:
    """What SQLAlchemy makes of `select(Chunk, distance)`: rows of an object and its score."""
    first = items[0]
    names = peek(first, "_fields")
    if type(names) is not tuple or len(names) != 2 or id_text(first[0]) is not None:
        return None
    rows = _of_pairs([tuple(item) for item in items], metadata_locations)
    if rows is None:
        return None
    kind = kind_of_scores(what_tells(names[1], first, ()), rows[0].score)
    return rows[0]._replace(score_kind=kind), rows[1]


def _is_score_first(left: Any, right: Any) -> bool:
    """True when the left one is a number and the right one can only be the item: no id is a broken number."""
    if right is None or left is None:
        return False
    if type(left) is int or type(left) is str:
        return type(left) is int and type(right) is not str and not _is_like_number(right)
    if type(left) is float:
        return type(right) is not float
    is_right_item = id_text(right) is not None or not _is_like_number(right)
    return _is_like_number(left) and id_text(left) is None and is_right_item


def _is_like_number(value: Any) -> bool:
    return isinstance(value, (int, float)) or hasattr(type(value), "__float__")


def _of_kind(items: Sequence[Any], metadata_locations: bool) -> Rows | None:
    """Read items that are all of the first one's kind; None when they are not, or leave open what they are."""
    first = items[0]
    try:
        plan = plan_of(first)
        if plan is None:
            return None
        made = plan.made(items)
        if not _are_alike(made):
            return None
        rows = _planned(made, plan, metadata_locations)
        if rows is None:
            plan = plan_of(first, fresh=True)
            rows = plan and _planned(plan.made(items), plan, metadata_locations)
        elif type(first) is dict:
            shapes_flat.learn(first)
        return rows
    except Exception:  # a row that does not fit: each is then read by itself
        return None


def _are_alike(made: Sequence[Sequence[Any]]) -> bool:
    """False when some dicts have keys that the first one has not: the plan is made for the first.

    A key that one of them lacks is noticed where it is read. A union of all keys takes a third of the time of comparing them.
    """
    for column in made:  # noqa: SIM110  # a generator would cost every request more than the loop
        if type(column[0]) is dict and len(set().union(*column)) != len(column[0]):
            return False
    return True


def _planned(made: Sequence[Sequence[Any]], plan: Plan, metadata_locations: bool) -> Rows | None:
    """The columns of items of one kind, from their container columns.

    None when some of them have what the plan takes to be empty, or lack an id. Raises what the items raise.
    """
    if not metadata_locations and plan.without_locations is not None:
        plan = plan.without_locations

    def column(field: Field) -> list[Any]:
        return list(map(field[1], made[field[0]]))

    for field in plan.doubts:
        if not set(map(type, column(field))) <= {NoneType}:
            return None
    source = plan.id_source
    identities: Sequence[str | None] = ()
    if plan.id:
        identities, is_full = ids(map(plan.id[1], made[plan.id[0]]))
        if not is_full:
            return None
    score, flag = scores(column(plan.score)) if plan.score else (None, None)
    kind = kind_of_scores(plan.score_tells, score) if plan.score_tells else None
    doc = documents(column(plan.doc)) if plan.doc else None
    texts: Texts | None = column(plan.text) if plan.text else None
    if texts is not None and not set(map(type, texts)) <= {str}:
        texts = [text if isinstance(text, str) else None for text in texts]
    start = end = None
    if plan.start:
        start, end = _locations(plan, column, texts)
    if not plan.id:
        source, identities = "range", [None] * len(made[0])
        if doc is not None and start is not None and end is not None:
            identities = [
                f"{doc[row]}[{start[row]}:{end[row]}]" if doc[row] and start[row] is not None else None
                for row in range(len(made[0]))
            ]
        if not any(identities):
            source = "text"
    columns = Columns(identities, source, score, flag, doc, start, end, score_kind=kind)
    for name, field in plan.rare:
        columns = _with_rare(columns, name, column(field))
    return columns, texts


Offsets = Sequence[int | None] | None


def _locations(plan: Plan, column: Callable[[Field], list[Any]], texts: Texts | None) -> tuple[Offsets, Offsets]:
    """Start and end columns: both or neither in each row; a missing end is where the text ends."""
    if plan.start is None:
        return None, None
    raw_starts = column(plan.start)
    raw_ends = column(plan.end) if plan.end is not None else None
    whole = whole_ranges(raw_starts, raw_ends) if raw_ends is not None else None
    if whole is not None:
        return whole
    start = offsets(raw_starts)
    if start is None:
        return None, None
    end = offsets(raw_ends) if raw_ends is not None else None
    begins: list[int | None] = list(start)
    ends: list[int | None] = list(end) if end is not None else [None] * len(start)
    for row, begin in enumerate(begins):
        stop = ends[row]
        text = texts[row] if texts is not None else None
        if stop is None and begin is not None and text is not None:
            stop = ends[row] = begin + len(text)
        if begin is None or stop is None or stop < begin:
            begins[row] = ends[row] = None
    return (begins, ends) if any(begin is not None for begin in begins) else (None, None)


def _with_rare(columns: Columns, name: str, values: Sequence[Any]) -> Columns:
    if name in ("ranges", "stands_for"):
        several: Any = {row: ranges for row, value in enumerate(values) if (ranges := _ranges(value))}
        return columns._replace(**{name: several}) if several else columns
    if name in ("tokens", "position"):
        counts: Any = offsets(values)
        return columns._replace(**{name: counts})
    if name == "kept":
        dropped = [row for row, value in enumerate(values) if value is False]
        return columns._replace(dropped=dropped) if dropped else columns
    return columns


def _ranges(value: Any) -> tuple[Range, ...]:
    made = []
    for pair in value if isinstance(value, (list, tuple)) else ():
        if isinstance(pair, (list, tuple)) and len(pair) == 2:
            start, end = offset(pair[0]), offset(pair[1])
            if start is not None and end is not None and start <= end:
                made.append((start, end))
    return tuple(made)


# ------------------------------------------------------------------ rows that differ


def _by_kinds(items: Sequence[Any], metadata_locations: bool) -> Rows | None:
    """Read items of several kinds: those that are read alike together, the rest one by one."""
    if not items:
        return Columns([]), None
    groups: dict[int, tuple[Plan | None, list[int]]] = {}
    for row, item in enumerate(items):
        plan = _plan_or_none(item)
        groups.setdefault(id(plan), (plan, []))[1].append(row)
    parts: list[tuple[Sequence[int], Rows]] = []
    for plan, rows in groups.values():
        part = _planned_or_none([items[row] for row in rows], plan, metadata_locations) if plan and rows[1:] else None
        if part is not None:
            parts.append((rows, part))
        else:
            parts.extend(((row,), row_of(items[row], metadata_locations) or UNREADABLE) for row in rows)
    if all(part is UNREADABLE for _, part in parts):
        return None
    return scattered(len(items), parts)


def _plan_or_none(item: Any) -> Plan | None:
    try:
        return plan_of(item)
    except Exception:  # this row only: the others are still read
        return None


def _planned_or_none(items: Sequence[Any], plan: Plan, metadata_locations: bool) -> Rows | None:
    try:
        return _planned(plan.made(items), plan, metadata_locations)
    except Exception:  # a row that does not fit: each is then read by itself
        return None


UNREADABLE: Rows = (Columns([None], "text"), None)


def row_of(item: Any, metadata_locations: bool) -> Rows | None:
    """One item as a list of one; None when it cannot be read. Never raises."""
    try:
        if isinstance(item, str):
            return _of_strings([item], False)
        if isinstance(item, (tuple, list)) and not hasattr(item, "_fields"):
            return _of_values(list(item), metadata_locations)
        identity = id_text(item)
        if identity is not None:
            # A float is an id inside a data frame, where gaps make floats of ints; as an item it is a number.
            return (Columns([identity]), None) if type(item) is not float else None
        rows = None
        for fresh in (False, True):
            plan = plan_of(item, fresh)
            rows = plan and _planned(plan.made([item]), plan, metadata_locations)
            if rows is not None and rows[0].chunk_id[0] is not None:
                break
        if rows is None and isinstance(item, tuple):  # a named tuple whose names say nothing
            return _of_values(list(tuple.__iter__(item)), metadata_locations)
        return rows
    except Exception:  # this row only: the others are still read
        return None


def _of_values(row: list[Any], metadata_locations: bool) -> Rows | None:
    """A pair, or a plain database row: the id first, a broken number last is the score, the longest string the text."""
    if len(row) < 2 or isinstance(row[0], (list, tuple)):
        return None
    if len(row) == 2 and _is_score_first(*row):
        row.reverse()
    identity = id_text(row[0])
    if identity is None:
        inner = row_of(row[0], metadata_locations) if len(row) == 2 else None
        if inner is None:
            return None
        score, flag = scores(row[1:])
        return inner[0]._replace(score=score, score_flag=flag), inner[1]
    if type(row[0]) is float:
        return None
    last = row[-1]
    # In a longer row an int is a count, a page or a date as a number.
    is_score = not isinstance(last, (str, bytes)) and (len(row) == 2 or type(last) is not int)
    score, flag = scores([last]) if is_score else (None, None)
    between = [value for value in row[1:] if isinstance(value, str)]
    return Columns([identity], "native", score, flag), [max(between, key=len)] if between else None


_PER_ROW = ("score", "doc_id", "start", "end", "tokens", "position")
_BY_ROW = ("score_flag", "ranges", "stands_for")


def scattered(n: int, parts: Sequence[tuple[Sequence[int], Rows]]) -> Rows:
    """One list of n rows from lists that hold some of them each: (rows they are, what was read)."""
    parts = sorted(parts, key=lambda part: part[0][0])
    identities: Texts = [None] * n
    texts: Texts = [None] * n
    made: dict[str, Any] = {}
    dropped: list[int] = []
    for rows, (columns, refs) in parts:
        for at, row in enumerate(rows):
            identities[row] = columns.chunk_id[at]
            if refs is not None:
                texts[row] = refs[at]
        dropped.extend(rows[at] for at in columns.dropped or ())
        for name in _BY_ROW:
            for at, value in (getattr(columns, name) or {}).items():
                made.setdefault(name, {})[rows[at]] = value
    for name in _PER_ROW:
        of_name = [(rows, column) for rows, (columns, _) in parts if (column := getattr(columns, name)) is not None]
        if of_name:
            values: Any = array("d", [nan]) * n if name == "score" else [None] * n
            for rows, column in of_name:
                for at, row in enumerate(rows):
                    values[row] = column[at]
            made[name] = values
    if dropped:
        made["dropped"] = sorted(dropped)
    kinds = {columns.score_kind for _, (columns, _) in parts if columns.score is not None}
    if len(kinds) == 1:
        made["score_kind"] = kinds.pop()
    source = next((columns.id_source for _, (columns, _) in parts if any(columns.chunk_id)), "text")
    return Columns(identities, source, **made), texts if any(text is not None for text in texts) else None
