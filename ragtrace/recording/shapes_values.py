"""Ids, scores, offsets and document names as plain values. Calls no method of an object it does not know.

NumPy, PyTorch and their like are known by the module their types come from; none of them is imported.
"""

from __future__ import annotations

import datetime
import uuid
from array import array
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from math import isfinite, isnan, nan
from struct import pack
from sys import byteorder
from types import NoneType
from typing import Any

from ragtrace.spool.records import Ids

__all__ = [
    "LIBRARIES_OF_NUMBERS",
    "documents",
    "id_text",
    "ids",
    "offset",
    "offsets",
    "root_module",
    "scalar",
    "scores",
    "whole_ranges",
]

LIBRARIES_OF_NUMBERS = frozenset(("numpy", "torch", "jax", "jaxlib", "cupy", "tensorflow", "mlx"))


def root_module(kind: type) -> str:
    """The top-level package a type says it comes from; empty when it does not say."""
    module = kind.__module__
    return module.partition(".")[0] if type(module) is str else ""


def scalar(value: Any) -> Any:
    """The Python number, string or None inside a NumPy scalar or a tensor of one element; anything else as it is."""
    if root_module(type(value)) not in LIBRARIES_OF_NUMBERS:
        return value
    plain = value.item() if hasattr(value, "item") else value.numpy().item()
    return plain if type(plain) in _PLAIN else value


_PLAIN = frozenset((int, float, bool, str, bytes))


def id_text(value: Any) -> str | None:
    """An id as text: what makes 7, "7", 7.0, Decimal("7") and np.int64(7) the same item.

    UUIDs in their canonical form; bytes as UTF-8, else as hex digits; object ids that carry their bytes (`binary`)
    as hex digits; dates in ISO form. None for no id: None, "", booleans, NaN, 7.5, and objects of other types,
    whose `str` is the service's code and is not called.
    """
    reader = _EXACT.get(type(value))
    if reader is not None:
        return reader(value) or None
    for kind, reader in _DERIVED.items():
        if isinstance(value, kind):
            return reader(value) or None
    plain = scalar(value)
    if plain is not value:
        return id_text(plain)
    binary = getattr(value, "binary", None)
    return bytes(binary).hex() if type(binary) is bytes else None


def _no_id(value: Any) -> None:
    return None


def _of_float(value: float) -> str | None:
    return str(int(value)) if value.is_integer() else None


def _of_decimal(value: Decimal) -> str | None:
    return str(int(value)) if value.is_finite() and value == int(value) else None


def _of_bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.hex()


_EXACT: dict[type, Callable[[Any], str | None]] = {
    str: str,
    int: str,
    NoneType: _no_id,
    bool: _no_id,
    float: _of_float,
    bytes: _of_bytes,
    Decimal: _of_decimal,
    uuid.UUID: str,
    datetime.date: datetime.date.isoformat,
    datetime.datetime: datetime.datetime.isoformat,
}
# Enumerations and np.str_ are strings or ints as well; what they print is another matter.
_DERIVED: dict[type, Callable[[Any], str | None]] = {
    str: str.__str__,
    uuid.UUID: uuid.UUID.__str__,
    int: lambda value: str(int.__index__(value)),
}


def ids(values: Iterable[Any]) -> tuple[Sequence[str | None], bool]:
    """A column of ids as text, see `id_text`; and whether every row has one."""
    given = Ids(values)
    try:
        joined = "\0".join(given)  # the cheapest check that all of them are strings: 7 ns each
    except TypeError:
        pass
    else:
        if all(given):  # none is empty
            given.joined = joined
            return given, True
    made = list(map(_id_or_none, given))
    return made, None not in made


def _id_or_none(value: Any) -> str | None:
    try:
        return id_text(value)
    except Exception:  # an object whose class or attributes raise: it is no id
        return None


def documents(values: Sequence[Any]) -> Sequence[str | None] | None:
    """A column of document names, see `id_text`; None when no row has one."""
    made, is_full = ids(values)
    return made if is_full or any(made) else None


def scores(values: Sequence[Any]) -> tuple[Sequence[float] | None, dict[int, str] | None]:
    """A column of scores as numbers with NaN where there is none, and the flags of those that are not finite.

    A float32 becomes the double of equal value. Both None when no row has a score.
    """
    try:
        total = sum(values)
        # Only numbers of Python's own, which never change, sum up to its float: they are packed when they are written.
        if type(total) is float and isfinite(total):
            return values, None
    except Exception:  # None, strings, tensors, numbers beyond every float: one by one
        pass
    return _scores_one_by_one(values)


def _scores_one_by_one(values: Sequence[Any]) -> tuple[array[float] | None, dict[int, str] | None]:
    made, flags = array("d"), {}
    for row, value in enumerate(values):
        number = nan
        if value is not None:
            try:
                plain = scalar(value)
                # Only numbers: "0.5" is a string, and float() of an unknown object may be anything.
                number = float(plain) if isinstance(plain, (float, int, Decimal)) else nan
                flag = "" if isfinite(number) else _flag(number, plain)
            except Exception:  # a tensor on a lost device, an int beyond every float: a score that cannot be read
                flag = "unreadable"
            if flag:
                flags[row] = flag
        made.append(number)
    if not flags and all(map(isnan, made)):
        return None, None
    return made, flags or None


def _flag(number: float, plain: Any) -> str:
    if isnan(number):
        return "nan" if isinstance(plain, (float, Decimal)) else "unreadable"
    return "inf" if number > 0 else "-inf"


def offset(value: Any) -> int | None:
    """A code point offset; None for none at all, and for what is none: -1, 12.5, "12", True."""
    kind = type(value)
    if kind is not int:
        if value is None or kind is bool or kind is str:
            return None
        value = scalar(value)
        if type(value) is float and value.is_integer():  # a data frame turns a column of ints with gaps to floats
            value = int(value)
        if type(value) is not int:
            return None
    return value if 0 <= value <= _LARGEST_OFFSET else None


# The column is a 32-bit integer.
_LARGEST_OFFSET = 2**31 - 1


def whole_ranges(starts: Sequence[Any], ends: Sequence[Any]) -> tuple[array[int], array[int]] | None:
    """Start and end columns when every row has a range; None when one has none or a broken one."""
    try:
        # "I" refuses what is negative or no int.
        first, last = array("I", starts).tobytes(), array("I", ends).tobytes()
    except Exception:  # None, -1, floats: row by row
        return None
    # All rows are compared at once, as one number with a digit of 32 bits a row, whose highest bit is free when both
    # offsets fit the column. Set before subtracting, it stays where the end is not before the start.
    highest = int.from_bytes(b"\0\0\0\x80" * len(starts), "little")
    low, high = int.from_bytes(first, byteorder), int.from_bytes(last, byteorder)
    if (low | high) & highest or ((high | highest) - low) & highest != highest:
        return None
    return array("i", first), array("i", last)


def offsets(values: Sequence[Any]) -> Sequence[int | None] | None:
    """A column of offsets, see `offset`; None when no row has one. An array when every row has."""
    try:
        made = array("i", pack(f"{len(values)}I", *values))  # refuses what is negative or no int
        if not values or max(values) <= _LARGEST_OFFSET:
            return made
    except Exception:  # None, -1, floats: one by one
        pass
    one_by_one = list(map(_offset_or_none, values))
    return None if one_by_one.count(None) == len(one_by_one) else one_by_one


def _offset_or_none(value: Any) -> int | None:
    try:
        return offset(value)
    except Exception:  # a number that cannot be asked for its value
        return None
