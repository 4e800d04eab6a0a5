"""How the candidates of a list look in a log: column after column.

columns mask of those that are there u8 · size of the sparse ones u32 · ids · scores · the others · sparse ones as JSON
texts   how u8 · size u32 · NUL-joined UTF-8, one value for all rows, or JSON when neither can say it
numbers packed little-endian
"""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Callable, Sequence
from struct import Struct
from struct import error as StructError
from typing import Any

from ragtrace.spool.joined import Joined
from ragtrace.spool.records import Columns, Ids

__all__ = ["decode_columns", "encode_columns", "packed_numbers", "text_bytes", "whole_numbers"]

_COLUMN = Struct("<BI")
_JOINED, _JSON, _CONSTANT = 0, 1, 2
_INT32, _INT64 = 0, 1
_INT32_BYTE, _INT64_BYTE = bytes((_INT32,)), bytes((_INT64,))
# No offset, token count or position comes near it: marks a row without a value.
_NULL = -(1 << 63)
_IS_BIG_ENDIAN = sys.byteorder == "big"

_SPARSE_MAPS = ("score_flag", "ranges", "stands_for", "possible", "cut", "drop_reason", "dropped_by")
_SPARSE = frozenset((*_SPARSE_MAPS, "id_source", "text_hash", "altered", "dropped"))

_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_loads = json.loads


def encode_columns(columns: Columns, parts: list[bytes]) -> None:
    """Append the columns of a list. Raises: TypeError, ValueError or struct.error for what is no column."""
    # Taken apart at once: looking names up one by one is a quarter of the whole cost.
    (
        chunk_id, id_source, score, score_flag, doc_id, start, end, ranges, stands_for, possible, cut, altered, text_hash,
        item_text_hash, offset_quality, tokens, position, dropped, drop_reason, dropped_by, _,
    ) = columns  # fmt: skip
    at = len(parts)
    parts.append(b"")
    mask = 0
    joined = chunk_id.joined if type(chunk_id) is Ids else ""
    if joined and chunk_id[0] != chunk_id[-1] and joined.count("\0") == len(chunk_id) - 1:  # by far the most
        data = text_bytes(joined)
        parts.append(_COLUMN.pack(_JOINED, len(data)))
        parts.append(data)
    else:
        _encode_texts(chunk_id, parts)
    if score is not None:
        mask = 1
        parts.append(packed_numbers("d", score))
    if not (doc_id is start is end is item_text_hash is offset_quality is tokens is position):  # all None
        encoders: tuple[tuple[int, Callable[[Any, list[bytes]], None], Any], ...] = (
            (2, _encode_texts, doc_id), (4, _encode_numbers, start), (8, _encode_numbers, end),
            (16, _encode_texts, item_text_hash), (32, _encode_texts, offset_quality),
            (64, _encode_numbers, tokens), (128, _encode_numbers, position),
        )  # fmt: skip
        for bit, encode_column, values in encoders:
            if values is not None:
                mask |= bit
                encode_column(values, parts)
    sparse = b""
    if (
        id_source != "native" or score_flag or ranges or stands_for or possible or cut or altered or text_hash
        or dropped or drop_reason or dropped_by
    ):  # fmt: skip
        sparse = text_bytes(_dumps({
            name: list(value) if name in ("altered", "dropped") else value
            for name, value in zip(Columns._fields, columns, strict=True)
            if value and name in _SPARSE and not (name == "id_source" and value == "native")
        }))  # fmt: skip
        parts.append(sparse)
    parts[at] = _COLUMN.pack(mask, len(sparse))


def decode_columns(body: bytes, at: int, n: int) -> tuple[Columns, int]:
    """The columns of n rows, and where they end. Raises: as `frames.decode`."""
    mask, n_sparse = _COLUMN.unpack_from(body, at)
    at += _COLUMN.size
    chunk_id, at = _decode_texts(body, at, n)
    score = doc_id = start = end = item_text_hash = offset_quality = tokens = position = None
    if mask & 1:
        score = whole_numbers("d", body[at : at + 8 * n])
        at += 8 * n
    if mask <= 1 and not n_sparse:  # most lists; naming all columns takes as long as reading them
        return Columns(chunk_id, "native", score), at
    if mask & 2:
        doc_id, at = _decode_texts(body, at, n)
    if mask & 4:
        start, at = _decode_numbers(body, at, n)
    if mask & 8:
        end, at = _decode_numbers(body, at, n)
    if mask & 16:
        item_text_hash, at = _decode_texts(body, at, n)
    if mask & 32:
        offset_quality, at = _decode_texts(body, at, n)
    if mask & 64:
        tokens, at = _decode_numbers(body, at, n)
    if mask & 128:
        position, at = _decode_numbers(body, at, n)
    columns = Columns(
        chunk_id,
        score=score,
        doc_id=doc_id,
        start=start,
        end=end,
        item_text_hash=item_text_hash,
        offset_quality=offset_quality,
        tokens=tokens,
        position=position,
    )
    if n_sparse:
        sparse = _loads(body[at : at + n_sparse].decode("utf-8", "surrogatepass"))
        at += n_sparse
        for name in _SPARSE_MAPS:
            if name in sparse:
                sparse[name] = {int(row): _as_ranges(value) for row, value in sparse[name].items()}
        columns = columns._replace(**sparse)
    return columns, at


def _as_ranges(value: Any) -> Any:
    return [tuple(pair) for pair in value] if isinstance(value, list) else value


def _encode_texts(values: Sequence[str | None], parts: list[bytes]) -> None:
    n = len(values)
    how = _JOINED
    try:
        # join refuses whatever is not a string: the check costs nothing.
        joined = values.joined if type(values) is Ids else "\0".join(values)  # type: ignore[arg-type]  # None raises and takes the slow way
    except TypeError:
        how, joined = _json_or_constant(values)
    else:
        if n > 1 and values[0] == values[-1] and values.count(values[0]) == n and "\0" not in (values[0] or ""):
            how, joined = _CONSTANT, values[0] or ""
        elif joined.count("\0") != n - 1:
            how, joined = (_JSON, _dumps(list(values))) if n else (_JOINED, "")
    data = text_bytes(joined)
    parts.append(_COLUMN.pack(how, len(data)))
    parts.append(data)


def _json_or_constant(values: Sequence[str | None]) -> tuple[int, str]:
    return _JSON, ("null" if not any(value is not None for value in values) else _dumps(list(values)))


def _decode_texts(body: bytes, at: int, n: int) -> tuple[Sequence[str | None], int]:
    how, size = _COLUMN.unpack_from(body, at)
    at += _COLUMN.size
    end = at + size
    data = body[at:end]
    if how == _JOINED:
        return Joined(data, n) if n else [], end
    text = data.decode("utf-8", "surrogatepass")
    values: list[str | None] = [text] * n if how == _CONSTANT else _loads(text) or [None] * n
    if len(values) != n:
        raise ValueError("a column has another length than its list")
    return values, end


def _encode_numbers(values: Sequence[int | None], parts: list[bytes]) -> None:
    try:
        packed = _INT32_BYTE + packed_numbers("i", values)  # None raises and takes the slow way
    except (TypeError, OverflowError, StructError):
        packed = _INT64_BYTE + packed_numbers("q", [_NULL if value is None else value for value in values])
    parts.append(packed)


def _decode_numbers(body: bytes, at: int, n: int) -> tuple[Sequence[int | None], int]:
    how = body[at]
    at += 1
    if how == _INT32:
        end = at + 4 * n
        return whole_numbers("i", body[at:end]), end
    end = at + 8 * n
    return [None if value == _NULL else value for value in whole_numbers("q", body[at:end])], end


def whole_numbers(code: str, data: bytes) -> array[Any]:
    """The numbers in little-endian bytes."""
    numbers: array[Any] = array(code, data)
    if _IS_BIG_ENDIAN:
        numbers.byteswap()
    return numbers


_packers: dict[tuple[str, int], Callable[..., bytes]] = {}
_MOST_PACKERS = 1000
"""One for each length of a list: a service has a handful of them. `struct` itself keeps a hundred."""


def packed_numbers(code: str, values: Sequence[Any]) -> bytes:
    """Numbers as little-endian bytes: half of the time of making an array of them. Raises: struct.error, OverflowError."""
    if type(values) is array and values.typecode == code and not _IS_BIG_ENDIAN:
        return values.tobytes()
    pack = _packers.get((code, len(values)))
    if pack is None:
        if len(_packers) >= _MOST_PACKERS:
            _packers.clear()
        pack = _packers[code, len(values)] = Struct(f"<{len(values)}{code}").pack
    return pack(*values)


def text_bytes(text: str) -> bytes:
    """UTF-8, lone surrogates as they are."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
