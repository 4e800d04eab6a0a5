"""The commonest list of all, read in the fewest steps: dicts with one set of keys, and what counts directly in them.

What a client's JSON becomes. Anything else, and any doubt, is left to `shapes_rows`, which reads the same lists the
same way, only slower.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any, NamedTuple

from ragtrace.recording.shapes import MOST_PLANS, Field, Plan, kept_plan
from ragtrace.recording.shapes_scores import kind_of_scores
from ragtrace.recording.shapes_values import whole_ranges
from ragtrace.spool.records import Columns, Ids

__all__ = ["learn", "read_flat"]


Rows = tuple[Columns, list[str | None] | None]
"""As in `shapes_rows`."""


class Flat(NamedTuple):
    """A plan without detours: the key of the id, if there is one, and a getter for each other column."""

    id: str | None
    """None: the items are known by their texts."""
    n_keys: int
    has_others: bool
    """Whether there are keys that are not read: then each dict's keys have to be looked at."""
    score: Callable[[Any], Any] | None
    score_tells: str | None
    """As in `Plan`."""
    doc: Callable[[Any], Any] | None
    start: Callable[[Any], Any] | None
    end: Callable[[Any], Any] | None
    text: Callable[[Any], Any] | None


_known: dict[str, Flat | None] = {}
"""By the dicts' keys; None for those that are read in another way."""


def read_flat(items: list[Any]) -> Rows | None:
    """The rows of a list of dicts; None when it has to be read in another way. Never raises."""
    try:
        flat = _known.get("\0".join(items[0]))
        if flat is None:
            return None
        ids = _ids(items, flat)
        if ids is None:
            return None
        score = kind = doc = start = end = texts = None
        if flat.score is not None:
            score = list(map(flat.score, items))
            total = sum(score)
            # Only numbers of Python's own, which never change, sum up to its float: they are packed when they are written.
            if type(total) is not float or not isfinite(total):
                return None
            if flat.score_tells is not None:
                kind = kind_of_scores(flat.score_tells, score)
        if flat.doc is not None:
            doc = Ids(map(flat.doc, items))
            doc.joined = "\0".join(doc)
            if not all(doc):
                return None
        if flat.start is not None and flat.end is not None:
            ranges = whole_ranges(list(map(flat.start, items)), list(map(flat.end, items)))
            if ranges is None:
                return None
            start, end = ranges
        if flat.text is not None:
            texts = list(map(flat.text, items))
            if len(set(map(type, texts))) != 1 or type(texts[0]) is not str:
                return None
        source = "text" if flat.id is None else "native"
        columns = Columns(ids, source, score, None, doc, start, end)
        return columns if kind is None else columns._replace(score_kind=kind), texts
    except Exception:  # an item that is another, or lacks a key: then each may be read by itself
        return None


def _ids(items: list[Any], flat: Flat) -> Sequence[str | None] | None:
    """The column of ids; None when one of the dicts has other keys, or no id. Raises what does not fit."""
    n_keys, key = flat.n_keys, flat.id
    if flat.has_others and len(set().union(*items)) != n_keys:
        return None
    if key is None:
        return None if not flat.has_others and len(set(map(len, items))) != 1 else [None] * len(items)
    if flat.has_others:
        ids = Ids([item[key] for item in items])
    else:
        # All keys of the first are read, so a dict of as many that has them all has no others.
        ids = Ids([item[key] for item in items if len(item) == n_keys])
    ids.joined = "\0".join(ids)  # refuses what is no string
    return ids if len(ids) == len(items) and all(ids) else None


def learn(first: dict[Any, Any]) -> None:
    """Look at how dicts like this one were read, for the next time. Raises what `str.join` raises for its keys."""
    key = "\0".join(first)
    plan = None if key in _known else kept_plan(first)
    if plan is not None:
        if len(_known) >= MOST_PLANS:
            _known.clear()
        _known[key] = _flat(plan, first)


def _flat(plan: Plan, first: dict[Any, Any]) -> Flat | None:
    """The plan for dicts like this one, when it reads nothing but their own keys and leaves nothing open."""
    if plan.containers or plan.doubts or plan.rare or (plan.start and not (plan.end and plan.id)):
        return None
    if plan.id is None and not plan.text:
        return None
    fields = (plan.score, plan.doc, plan.start, plan.end, plan.text)
    names = {_name_of(field) for field in (plan.id, *fields) if field}
    score, *others = [None if field is None else field[1] for field in fields]
    return Flat(plan.id and _name_of(plan.id), len(first), names != set(first), score, plan.score_tells, *others)


def _name_of(field: Field) -> str:
    name: str = field[1].__reduce__()[1][0]  # how an itemgetter is pickled: it hides its key else
    return name
