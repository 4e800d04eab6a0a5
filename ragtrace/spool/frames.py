"""How a record looks in a log: one self-contained frame of bytes per record.

    frame   magic 4 · body length u32 · crc32 u32 (of the body, begun at the type) · type u8 · body
    body    stage    fixed numbers and ids · repeated columns as JSON · the other columns as JSON · lists
            context  query id · list
            others   JSON object
    list    fixed numbers · earlier lists it equals · named sources · argument · columns (see `columns`)

A frame needs no other frame to be read, so a reader can go on after damage at the next whole one. The columns that
are the same in every run of a stage stand in one JSON text, which both sides keep: it costs a look-up, not a parse.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from struct import Struct
from typing import Any, Protocol

from ragtrace.spool.columns import decode_columns, encode_columns, packed_numbers, text_bytes, whole_numbers
from ragtrace.spool.records import CandidateList, Columns, Record, StageRecord

__all__ = [
    "HEADER",
    "KINDS",
    "MAGIC",
    "MAX_BODY_BYTES",
    "decode",
    "encode",
    "extra_bytes",
    "repeated_bytes",
    "stage_frame",
    "text_frame",
]

MAGIC = b"\xa7rt1"
HEADER = Struct("<4sIIB")
# A parsed text is the largest body; what is longer than this is a damaged length, not a record.
MAX_BODY_BYTES = 1 << 30

KINDS = ("process", "query", "stage", "context", "document", "text", "parse", "inventory", "loss")
_KIND_NO = {kind: number for number, kind in enumerate(KINDS)}
_STAGE = _KIND_NO["stage"]
_CONTEXT = _KIND_NO["context"]

_ROLES = ("in", "out", "considered", "dropped", "context")
_ROLE_NO = {role: number for number, role in enumerate(_ROLES)}

_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_loads = json.loads


class ListLike(Protocol):
    """What is read of a list to write it: a `CandidateList`, or anything with its fields."""

    @property
    def list_id(self) -> int: ...
    @property
    def role(self) -> str: ...
    @property
    def columns(self) -> Columns | None: ...
    @property
    def same_as(self) -> Sequence[int]: ...
    @property
    def declared_sources(self) -> Sequence[int]: ...
    @property
    def argument(self) -> str | None: ...
    @property
    def n_declared(self) -> int | None: ...
    @property
    def is_complete(self) -> bool: ...
    @property
    def is_partial(self) -> bool: ...


# ---- stage rows: numbers that every run has · columns that repeat from run to run · the rest
_FIXED = Struct("<qqqqiiqqqQQQQ")
_SPAN = Struct(">QQQQ")
_REPEATED = (
    "kind", "name", "mode", "round", "is_aside", "probe", "is_final", "is_answer", "status", "is_orphan",
    "is_detached", "index_name", "is_index_complete", "k", "threshold", "budget_tokens", "score_kind",
    "is_higher_better", "params",
)  # fmt: skip
_NOT_EXTRA = frozenset(
    ("stage_id", "query_id", "ingest_id", "parent_stage_id", "start_no", "end_no", "started_at_ns", "duration_ns",
     "process_id", "trace_id", "span_id", "parent_span_id", *_REPEATED)
)  # fmt: skip

# Parameters may change with every call (a threshold, a k): what is kept begins anew when it is full.
_MAX_CACHED = 4096
_repeated_rows: dict[bytes, dict[str, Any]] = {}

_SIZES = Struct("<IIH")
_STAGE_HEAD = Struct(_FIXED.format + _SIZES.format[1:])
_Q = Struct("<q")
_LIST = Struct("<qBBIHHH")
_KNOWN_LIST = Struct(_LIST.format + "q")
_IS_COMPLETE, _IS_PARTIAL, _HAS_COLUMNS, _HAS_DECLARED = 1, 2, 4, 8


def encode(record: Record) -> bytes:
    """One whole frame.

    Raises: TypeError, ValueError or struct.error for a body that does not fit its kind; OverflowError past MAX_BODY_BYTES.
    """
    number = _KIND_NO[record.kind]
    if number == _STAGE:
        return _stage(record.body)
    if number == _CONTEXT:
        query_id, context = record.body
        parts = [_Q.pack(query_id or 0)]
        _encode_list(context, parts)
        body = b"".join(parts)
    else:
        body = text_bytes(_dumps(record.body))
    return _framed(number, body)


def text_frame(kind: str, text: str) -> bytes:
    """The frame of a record whose body is at hand as JSON. Raises: OverflowError as `encode`."""
    return _framed(_KIND_NO[kind], text_bytes(text))


def _framed(number: int, body: bytes) -> bytes:
    if len(body) > MAX_BODY_BYTES:
        raise OverflowError(f"a {KINDS[number]} record of {len(body)} bytes is longer than {MAX_BODY_BYTES}")
    return HEADER.pack(MAGIC, len(body), zlib.crc32(body, number), number) + body


def decode(number: int, body: bytes) -> Record:
    """The record of a frame whose checksum held.

    Raises: ValueError, IndexError, KeyError or struct.error when the body was not made by `encode`.
    """
    kind = KINDS[number]
    if number == _STAGE:
        return Record(kind, _decode_stage(body))
    if number == _CONTEXT:
        (query_id,) = _Q.unpack_from(body)
        context, _ = _decode_list(body, 8)
        return Record(kind, (query_id or None, context))
    return Record(kind, _loads(body.decode("utf-8", "surrogatepass")))


# ------------------------------------------------------------------------------------------------ stages


def _stage(stage: StageRecord) -> bytes:
    get = stage.row.get
    numbers = (
        stage.row["stage_id"],
        *(get(name) or 0 for name in ("query_id", "ingest_id", "parent_stage_id", "start_no", "end_no")),
        *(get(name) or 0 for name in ("started_at_ns", "duration_ns", "process_id")),
        *divmod(int(get("trace_id") or "0", 16), 1 << 64),
        *(int(get(name) or "0", 16) for name in ("span_id", "parent_span_id")),
    )
    extra = {name: value for name, value in stage.row.items() if value is not None and name not in _NOT_EXTRA}
    return stage_frame(numbers, repeated_bytes(stage.row), extra_bytes(extra), stage.lists)


def repeated_bytes(row: Mapping[str, Any]) -> bytes:
    """The columns of a stage row that are the same in most of its runs, for `stage_frame`: worth keeping."""
    return text_bytes(_dumps({name: row[name] for name in _REPEATED if row.get(name) is not None}))


def extra_bytes(row: Mapping[str, Any]) -> bytes:
    """The columns of a stage row that differ from run to run, for `stage_frame`."""
    return text_bytes(_dumps(row)) if row else b""


def stage_frame(numbers: tuple[int, ...], repeated: bytes, extra: bytes, lists: Sequence[ListLike]) -> bytes:
    """The frame of a stage run whose repeated columns are at hand as bytes: what `encode` makes, at a third of the cost.

    `numbers`: stage_id, query_id, ingest_id, parent_stage_id, start_no, end_no, started_at_ns, duration_ns,
    process_id, upper and lower half of trace_id, span_id, parent_span_id; 0 for none.
    Raises: as `encode`.
    """
    parts = [_STAGE_HEAD.pack(*numbers, len(repeated), len(extra), len(lists)), repeated, extra]
    for one in lists:
        _encode_list(one, parts)
    return _framed(_STAGE, b"".join(parts))


def _decode_stage(body: bytes) -> StageRecord:
    fixed = _FIXED.unpack_from(body)
    at = _FIXED.size
    n_repeated, n_extra, n_lists = _SIZES.unpack_from(body, at)
    at += _SIZES.size
    repeated = body[at : at + n_repeated]
    at += n_repeated
    known = _repeated_rows.get(repeated)
    if known is None:
        known = _loads(repeated.decode("utf-8", "surrogatepass"))
        if len(_repeated_rows) >= _MAX_CACHED:
            _repeated_rows.clear()
        _repeated_rows[repeated] = known
    row = known.copy()
    stage_id, query_id, ingest_id, parent_id, start_no, end_no, started, duration, process_id = fixed[:9]
    row["stage_id"], row["query_id"], row["ingest_id"] = stage_id, query_id or None, ingest_id or None
    row["parent_stage_id"], row["start_no"], row["end_no"] = parent_id or None, start_no or None, end_no or None
    row["started_at_ns"], row["duration_ns"], row["process_id"] = started, duration, process_id or None
    high, low, span_id, parent_span_id = fixed[9:]
    digits = _SPAN.pack(high, low, span_id, parent_span_id).hex()
    row["trace_id"] = digits[:32] if high or low else None
    row["span_id"] = digits[32:48] if span_id else None
    row["parent_span_id"] = digits[48:] if parent_span_id else None
    if n_extra:
        row.update(_loads(body[at : at + n_extra].decode("utf-8", "surrogatepass")))
        at += n_extra
    lists = []
    for _ in range(n_lists):
        one, at = _decode_list(body, at)
        lists.append(one)
    return StageRecord(row, lists)


# ------------------------------------------------------------------------------------------------ lists


def _encode_list(one: ListLike, parts: list[bytes]) -> None:
    columns, same_as, sources, argument, n_declared = (
        one.columns, one.same_as, one.declared_sources, one.argument, one.n_declared
    )  # fmt: skip
    named = text_bytes(argument) if argument else b""
    if (
        columns is None
        and n_declared is None
        and len(same_as) == 1
        and not sources
        and one.is_complete
        and not one.is_partial
    ):
        # An input that an earlier output is: of the lists of a query every second one.
        parts.append(_KNOWN_LIST.pack(one.list_id, _ROLE_NO[one.role], _IS_COMPLETE, 0, 1, 0, len(named), same_as[0]))
        if named:
            parts.append(named)
        return
    flags = _IS_COMPLETE if one.is_complete else 0
    if one.is_partial:
        flags |= _IS_PARTIAL
    if n_declared is not None:
        flags |= _HAS_DECLARED
    n_rows = 0
    if columns is not None:
        flags |= _HAS_COLUMNS
        n_rows = len(columns[0])
    parts.append(_LIST.pack(one.list_id, _ROLE_NO[one.role], flags, n_rows, len(same_as), len(sources), len(named)))
    if same_as or sources:
        parts.append(packed_numbers("q", (*same_as, *sources)))
    if named:
        parts.append(named)
    if n_declared is not None:
        parts.append(_Q.pack(n_declared))
    if columns is not None:
        encode_columns(columns, parts)


def _decode_list(body: bytes, at: int) -> tuple[CandidateList, int]:
    list_id, role, flags, n_rows, n_same, n_sources, n_argument = _LIST.unpack_from(body, at)
    at += _LIST.size
    same_as: Sequence[int] = ()
    sources: Sequence[int] = ()
    if n_same == 1 and not n_sources:
        same_as = [*_Q.unpack_from(body, at)]
        at += 8
    elif n_same or n_sources:
        end = at + 8 * (n_same + n_sources)
        ids = whole_numbers("q", body[at:end]).tolist()
        same_as, sources = ids[:n_same], ids[n_same:]
        at = end
    argument = None
    if n_argument:
        argument = body[at : at + n_argument].decode("utf-8", "surrogatepass")
        at += n_argument
    n_declared = None
    if flags & _HAS_DECLARED:
        (n_declared,) = _Q.unpack_from(body, at)
        at += 8
    columns = None
    if flags & _HAS_COLUMNS:
        columns, at = decode_columns(body, at, n_rows)
    one = CandidateList(
        list_id,
        _ROLES[role],
        columns,
        same_as,
        sources,
        argument,
        n_declared,
        bool(flags & _IS_COMPLETE),
        bool(flags & _IS_PARTIAL),
    )
    return one, at
