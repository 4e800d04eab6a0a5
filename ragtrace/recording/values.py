"""Plain values out of whatever the service passes: numbers, names, JSON. Never calls a method the user wrote.

A value that cannot be said plainly becomes None or, inside JSON, the name of its type: `repr` and `str` of a client
may connect, and of a document may take seconds.
"""

from __future__ import annotations

import math
from typing import Any

__all__ = ["as_float", "as_id", "as_int", "as_json", "as_name"]

# A filter or a parameter is small; what is larger is data that got there by mistake.
MAX_DEPTH = 8
MAX_ITEMS = 1000
MAX_CHARACTERS = 20_000

_NUMPY = ("numpy", "torch")


def as_int(value: Any) -> int | None:
    """A whole number that fits the store (63 bits), else None. True is no number."""
    if type(value) is not int:
        if value is None or isinstance(value, bool):
            return None
        value = _plain_number(value)
        if isinstance(value, float):
            if not value.is_integer():  # also inf and nan
                return None
            value = int(value)
        if not isinstance(value, int):
            return None
    return value if -(1 << 31) <= value < (1 << 31) else None


def as_float(value: Any) -> float | None:
    """A finite number, else None."""
    if isinstance(value, bool):
        return None
    value = _plain_number(value)
    if value is None:
        return None
    try:
        number = float(value)
    except OverflowError:  # an int beyond every float
        return None
    return number if math.isfinite(number) else None


def as_name(value: Any) -> str | None:
    """A string as it is, a whole number as its digits, a UUID in its canonical form, an enum member of strings as its value."""
    if value is None:
        return None
    if isinstance(value, str):
        return str.__str__(value) if type(value) is not str else value
    number = _plain_number(value) if not isinstance(value, bool) else None
    if isinstance(number, float):
        number = int(number) if number.is_integer() else None
    if number is not None:
        try:
            return str(number)
        except ValueError:  # more digits than Python writes (4,300)
            return None
    if type(value).__name__ == "UUID" and type(value).__module__ == "uuid":
        return str(value)
    inner = getattr(value, "value", None) if type(value).__class__.__name__ in ("EnumMeta", "EnumType") else None
    return inner if isinstance(inner, str) else None


def as_id(value: Any) -> str | None:
    """The id of a candidate or chunk that is named by itself: the same text as in a list, see `shapes_values.id_text`."""
    from ragtrace.recording.shapes_values import (
        id_text,
    )  # not at import: a service that does not record pays for nothing

    try:
        return id_text(value)
    except Exception:  # an object whose class or attributes raise: it is no id
        return None


def as_json(value: Any) -> str:
    """Valid JSON of a value; what has no plain form stands as {"type": name}. Bounded in depth and length.

    A text that does not fit is left out whole, as its type: a redactor does not know half of a secret.
    """
    import json  # not at import: only filters and parameters need it

    budget = [MAX_ITEMS, MAX_CHARACTERS]
    return json.dumps(_plain(value, MAX_DEPTH, budget), ensure_ascii=False, separators=(",", ":"))


def _plain_number(value: Any) -> int | float | None:
    kind = type(value)
    if kind is int or kind is float:
        return value  # type: ignore[no-any-return]  # by its type
    if isinstance(value, (int, float)):
        return float.__float__(value) if isinstance(value, float) else int.__int__(value)
    if kind.__name__ == "Decimal" and kind.__module__ in ("decimal", "_decimal", "_pydecimal"):
        return None if value.is_snan() else float(value)
    # NumPy scalars and 0-d tensors: `item` is theirs, not the user's.
    if kind.__module__.partition(".")[0] in _NUMPY and getattr(value, "ndim", None) == 0:
        try:
            inner = value.item()
        except Exception:  # a tensor without data (meta), or on a lost device
            return None
        return inner if isinstance(inner, (int, float)) and not isinstance(inner, bool) else None
    return None


def _plain(value: Any, depth: int, budget: list[int]) -> Any:
    kind = type(value)
    if value is None or kind is bool:
        return value
    if isinstance(value, str):
        text = str.__str__(value)
        if len(text) > budget[1]:
            return {"type": "str", "length": len(text)}
        budget[1] -= len(text)
        # JSON in the store is UTF-8: a lone surrogate has no form there.
        return text.encode("utf-8", "replace").decode("utf-8")
    if kind is int:
        return value if -(1 << 63) <= value < (1 << 63) else float(value) if abs(value) < 1 << 1000 else None
    number = _plain_number(value)
    if number is not None:
        return number if math.isfinite(number) else None
    if depth and budget[0] > 0:
        if kind is dict:
            plain = {}
            for key, inner in list(value.items()):
                budget[0] -= 1
                if budget[0] < 0:
                    break
                name = as_name(key)
                plain[name if name is not None else f"({type(key).__name__})"] = _plain(inner, depth - 1, budget)
            return plain
        if kind in (list, tuple, set, frozenset):
            listed = []
            for inner in list(value):
                budget[0] -= 1
                if budget[0] < 0:
                    break
                listed.append(_plain(inner, depth - 1, budget))
            return listed
    name = as_name(value)
    return name if name is not None else {"type": f"{kind.__module__}.{kind.__qualname__}"}
