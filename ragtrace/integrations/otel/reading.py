"""Values in a span by path: attributes, JSON inside of them, numbered attributes, events. Nothing here raises.

name                    an attribute
name|a.0.b              what its JSON (or its list or mapping) has under these keys and numbers
name.{i}.item.          a list: the attributes `name.0.item.id`, `name.0.item.score`, `name.1.item.id` …
event:name              a list: the events of that name, in order; `event:name|prefix.` takes the prefix off their keys
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ragtrace.integrations.otel.spans import Span

__all__ = ["Items", "decoded", "first", "has_prefix", "items_at", "prompt_text", "question_text", "value_at"]

_DEEPEST = 6
"""Messages in parts in messages: what is deeper is data, not a conversation."""
_MOST_ITEMS = 100_000
"""No list is numbered higher: a number past it is a mistake, and would make as many empty rows."""


class Items(NamedTuple):
    """A list as a span has it."""

    rows: list[Any]
    """In the order of their numbers; a row of which everything is missing is {}."""
    is_complete: bool
    """False: a number is missing, or something of the list may have been dropped."""
    are_fresh: bool = False
    """Whether the rows were made here, and hold no None: they may be changed, and taken as they are."""


_joined: tuple[Mapping[str, Any], str] = ({}, "")
"""The attributes that were looked at last, and their names as one text: a rule after the other asks the same span."""


def has_prefix(span: Span, prefix: str) -> bool:
    """Whether the name of some attribute begins so."""
    global _joined  # noqa: PLW0603  # replaced as a whole: threads only make it anew
    attributes, names = _joined
    if attributes is not span.attributes:
        names = "\0" + "\0".join(span.attributes)
        _joined = span.attributes, names
    return f"\0{prefix}" in names


def first(span: Span, paths: Sequence[str]) -> Any:
    """The value at the first path where there is one."""
    for path in paths:
        value = value_at(span, path)
        if value is not None and value != "":
            return value
    return None


def value_at(span: Span, path: str) -> Any:
    """The value at a path; None where there is none."""
    if "{i}" in path or path.startswith("event:"):
        items = items_at(span, path)
        return None if items is None else items.rows
    name, _, inside = path.partition("|")
    value = span.attributes.get(name)
    if value is None and name.endswith(".*") and has_prefix(span, name[:-1]):
        value = {
            key[len(name) - 1 :]: found for key, found in span.attributes.items() if key.startswith(name[:-1])
        } or None
    if value is None or not inside:
        return value
    return _inside(decoded(value), inside)


def _inside(value: Any, keys: str) -> Any:
    for key in keys.split("."):
        value = decoded(value)
        if isinstance(value, Mapping) and key == "*":
            value = next(filter(_is_list_of_mappings, map(decoded, value.values())), None)
        elif isinstance(value, Mapping):
            value = value.get(key)
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value


def _is_list_of_mappings(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, Mapping) for item in value)


def decoded(value: Any) -> Any:
    """What a text that holds JSON holds; anything else as it is."""
    if type(value) is str and value[:1] in ("{", "[", '"'):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):  # cut at a length limit, or a text that begins with a bracket
            return value
    return value


# ------------------------------------------------------------------ lists


def items_at(span: Span, path: str) -> Items | None:
    """The list at a path; None where nothing of it is there, or what is there is no list."""
    if path.startswith("event:"):
        return _events(span, path[6:])
    if "{i}" in path:
        return _numbered(span, path)
    value = decoded(value_at(span, path))
    if isinstance(value, str) and value[:1] == "[":
        return Items([], False)  # a list that was cut at a length limit: there was one, and it may hold anything
    return Items(value, True) if isinstance(value, list) else None


def _events(span: Span, path: str) -> Items | None:
    name, _, prefix = path.partition("|")
    rows: list[Any] = [
        {key.removeprefix(prefix): value for key, value in event.attributes.items()}
        for event in span.events
        if event.name == name
    ]
    if not rows:
        return None
    return Items(rows, not span.n_dropped_events)


_MOST_KEYS = 50_000
_LONGEST_NUMBER = 19
_NO_PLACE = (-1, "")


class _Keys(dict[str, tuple[int, str]]):
    """Attribute name -> the number in it and what stands behind, for one path: the same names come with every span."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.before, _, self._after = path.partition("{i}")

    def __missing__(self, key: str) -> tuple[int, str]:
        found = _NO_PLACE
        if key.startswith(self.before):
            at = key.find(self._after, len(self.before) + 1)
            number = key[len(self.before) : at]
            if at > 0 and number.isdecimal() and len(number) < _LONGEST_NUMBER:
                found = int(number), key[at + len(self._after) :]
        if len(self) >= _MOST_KEYS:
            self.clear()
        self[key] = found
        return found


@lru_cache(maxsize=256)
def _keys_of(path: str) -> _Keys:
    return _Keys(path)


def _numbered(span: Span, path: str) -> Items | None:
    keys = _keys_of(path)
    if not has_prefix(span, keys.before):
        return None
    rows: dict[int, dict[str, Any]] = {}
    row: dict[str, Any] = {}
    current = -1
    for key, value in span.attributes.items():
        number, name = keys[key]
        if number != current:
            if number < 0:
                continue
            # What belongs to one item stands together, as nearly everybody writes it.
            row = rows.setdefault(number, {})
            current = number
        if value is not None:
            row[name] = value
    if not rows:
        return None
    n = max(rows) + 1
    if n == len(rows):
        return Items([rows[number] for number in range(n)], not span.n_dropped_attributes, are_fresh=True)
    if n > _MOST_ITEMS:
        return Items([], False)
    return Items([rows.get(number, {}) for number in range(n)], False)


# ------------------------------------------------------------------ texts

_MESSAGE_KEYS = ("content", "contents", "text", "parts", "message", "kwargs", "messages", "prompt", "prompts", "input",
                 "inputs", "template", "value")  # fmt: skip


def prompt_text(value: Any) -> str | None:
    """All that a model is given to read, as one text; None when there is nothing to read."""
    found: list[str] = []
    _gather(value, found, 0)
    return "\n".join(found) if found else None


def _gather(value: Any, found: list[str], depth: int) -> None:
    value = decoded(value)
    if isinstance(value, str):
        if value:
            found.append(value)
    elif depth < _DEEPEST and isinstance(value, list):
        for part in value:
            _gather(part, found, depth + 1)
    elif depth < _DEEPEST and isinstance(value, Mapping):
        for key, part in value.items():
            # Numbered attributes keep what is left of their path: message.contents.0.message_content.text
            if key in _MESSAGE_KEYS or _ENDS_AS_TEXT.search(key):
                _gather(part, found, depth + 1)


_ENDS_AS_TEXT = re.compile(r"[._](?:content|text)$")
_QUESTION_KEYS = ("question", "query", "input", "user_input", "prompt", "text", "q", "query_str", "query_text", "inputs",
                  "messages", "kwargs", "args", "value", "data", "content", "parts")  # fmt: skip
_USERS = frozenset(("user", "human"))


def question_text(value: Any, depth: int = 0) -> str | None:
    """The question in what a service was asked: a text, the last user's message, or a value under a usual name."""
    value = decoded(value)
    if isinstance(value, str):
        return value or None
    if depth >= _DEEPEST:
        return None
    if isinstance(value, list):
        asked = [part for part in value if isinstance(part, Mapping) and _role(part) in _USERS]
        for part in reversed(asked or value):
            found = question_text(part, depth + 1)
            if found is not None:
                return found
        return None
    if isinstance(value, Mapping):
        for key in _QUESTION_KEYS:
            if value.get(key):
                found = question_text(value[key], depth + 1)
                if found is not None:
                    return found
        # Named by the service: `{"data": {"dense": {"query": …}}}`, or one argument of any name.
        for inner in value.values():
            if isinstance(decoded(inner), Mapping) or len(value) == 1:
                found = question_text(inner, depth + 1)
                if found is not None:
                    return found
    return None


def _role(message: Mapping[str, Any]) -> Any:
    inner = message.get("kwargs")
    return message.get("role") or message.get("type") if not isinstance(inner, Mapping) else inner.get("type")
