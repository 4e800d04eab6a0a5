"""A list of candidates in a span, its items by the names that `recording.candidates` reads."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ragtrace.integrations.otel.reading import Items, decoded, first, items_at
from ragtrace.integrations.otel.spans import Span

__all__ = ["List", "listed", "number", "whole"]

Paths = tuple[str, ...]


@dataclass(frozen=True)
class List:
    """Where a list of candidates stands in a span."""

    paths: Paths
    """Of its whole form first: what is incomplete here is looked for at the next."""
    item: Mapping[str, str] = field(default_factory=dict)
    """Key of an item -> the name it is read by (`id`, `score`, `text`, `metadata`, `doc_id`, `start`, `end`)."""
    scores: Paths = ()
    """A list beside it, one score an item."""
    declared: Paths = ()
    """How long the list is said to be."""
    number: str = ""
    """The key of an item that is its place in the stage's input, where it has no id of its own."""
    are_texts: bool = False
    """Whether the items may be bare texts; else those are somebody's way to print an object, and not read."""
    own: frozenset[str] = frozenset()
    """The keys that are an item's own, where those of its metadata stand among them."""
    pattern: str = ""
    """What an item's text says instead of keys, as named groups."""
    only: Mapping[str, str] = field(default_factory=dict)
    """The items that have these values."""
    batch: Paths = ()
    """How many questions the list answers: of more than one, whose an item is cannot be told."""


def listed(span: Span, where: List | None, given: list[Any] | None) -> tuple[Items, int | None] | None:
    """A list and how long it is said to be; None when nothing of it is there."""
    if where is None:
        return None
    best: Items | None = None
    for path in where.paths:
        items = items_at(span, path)
        if items is None or not (where.are_texts or items.are_fresh or all(map(_is_item, items.rows))):
            continue
        if best is None or items.is_complete or len(items.rows) > len(best.rows):
            best = items
        if best.is_complete:
            break
    if best is None:
        return None
    scores = decoded(first(span, where.scores))
    if best.rows and all(type(item) is list for item in best.rows):
        return Items([_rows(inner, where) for inner in best.rows], best.is_complete), None
    rows = best.rows if best.are_fresh and _are_plain(best.rows, where) else _rows(best.rows, where)
    if where.only:
        rows = [row for row in rows if all(row.get(key) == value for key, value in where.only.items())]
    for row in rows:
        if "role" in row:
            del row["role"]  # with one, a passage would look like a chat message
    if isinstance(scores, list) and len(scores) == len(rows):
        for row, score in zip(rows, scores, strict=True):
            row["score"] = number(score)
    if where.number and given is not None:
        rows = [_picked(row, where.number, given) for row in rows]
    declared = whole(first(span, where.declared))
    is_complete = best.is_complete and (declared is None or declared <= len(rows))
    return Items(rows, is_complete and (whole(first(span, where.batch)) or 1) <= 1), declared


def _is_item(item: Any) -> bool:
    return type(item) is dict or isinstance(item, (Mapping, list)) or (isinstance(item, str) and item[:1] == "{")


def _rows(items: Sequence[Any], where: List) -> list[dict[str, Any]]:
    """The items by the names they are read by: those of plain keys in one step, as nearly all are."""
    rows = []
    keys: tuple[str, ...] | None = None
    names: tuple[tuple[str, str], ...] | None = None
    is_named = False  # the keys are the names already
    for item in items:
        if type(item) is dict:
            if (its_keys := tuple(item)) != keys:
                keys, names = its_keys, _plain_names(its_keys, where)
                is_named = names is not None and all(key == name for key, name in names)
            if names is not None:
                if is_named and None not in item.values():
                    row = item.copy()
                else:
                    row = {name: value for key, name in names if (value := item[key]) is not None}
                if type(row.get("score")) is not str and type(row.get("distance")) is not str:
                    rows.append(row)
                    continue
        rows.append(_row(item, where))
    return rows


def _are_plain(items: Sequence[dict[str, Any]], where: List) -> bool:
    """Whether all have the same keys, which are the names they are read by, and scores that are no texts."""
    keys = tuple(items[0])
    if set(map(len, items)) != {len(keys)} or len(set().union(*items)) != len(keys):
        return False
    names = _plain_names(keys, where)
    if names is None or any(key != name for key, name in names):
        return False
    return all(str not in {type(item[key]) for item in items} for key in ("score", "distance") if key in keys)


def _plain_names(keys: tuple[str, ...], where: List) -> tuple[tuple[str, str], ...] | None:
    """Key and name of what is taken as it is; None where `_row` has more to do than that."""
    if where.own or where.pattern or "lc" in keys:
        return None
    names = tuple((key, where.item.get(key, key)) for key in keys)
    outer = {path.partition(".")[0] for path in where.item if "." in path}
    if any(name == "metadata" or name.startswith("metadata.") or name in outer for _, name in names):
        return None
    return names


def _row(item: Any, where: List) -> dict[str, Any]:
    """An item with its keys by the names they are read by, and its metadata as a mapping."""
    names = where.item
    if isinstance(item, str):
        inner = decoded(item)
        item = inner if isinstance(inner, Mapping) else {"text": item}
    if not isinstance(item, Mapping):
        return {}
    if isinstance(item.get("kwargs"), Mapping) and "lc" in item:
        item = item["kwargs"]  # LangChain's own way to write an object
    row: dict[str, Any] = {}
    for key, value in item.items():
        name = names.get(key, key)
        if name == "metadata" and type(value) is str:
            value = decoded(value)
        elif name in ("score", "distance") and type(value) is str:
            value = number(value)
        if value is not None:
            row[name] = value
    if flat := [key for key in row if key.startswith("metadata.")]:
        inner = {key[9:]: row.pop(key) for key in flat}  # Phoenix takes metadata apart
        row["metadata"] = {**row["metadata"], **inner} if isinstance(row.get("metadata"), Mapping) else inner
    for path, name in names.items():
        if "." in path:
            outer, _, key = path.partition(".")
            value = row.get(outer)
            if isinstance(value, Mapping) and value.get(key) is not None:
                row.setdefault(name, value[key])
    if where.own:
        return {
            **{key: value for key, value in row.items() if key in where.own},
            "metadata": {key: value for key, value in row.items() if key not in where.own},
        }
    if where.pattern:
        said = re.search(where.pattern, str(row.get("content") or row.get("text") or ""))
        return {key: number(value) for key, value in said.groupdict().items()} if said else {}
    return row


def _picked(row: dict[str, Any], place: str, given: list[Any]) -> dict[str, Any]:
    at = whole(row.get(place))
    if at is not None and 0 <= at < len(given) and "id" not in row:
        return {**given[at], **{key: value for key, value in row.items() if key != place}}
    return row


# ------------------------------------------------------------------ plain values


def whole(value: Any) -> int | None:
    """The number in a value when it is a whole one; None when there is none."""
    plain = number(value)
    return int(plain) if plain is not None and plain == int(plain) else None


def number(value: Any) -> float | None:
    """The number in a value, a text among them; None when there is none, and for what is beyond measure."""
    if isinstance(value, bool):
        return None
    try:
        plain = float(value)
    except (TypeError, ValueError):
        return None
    return plain if abs(plain) < 1e300 else None
