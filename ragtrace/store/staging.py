"""Rows of one piece of a merge, in memory: records sorted by table, candidates as columns. Knows no database."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from math import nan
from struct import Struct
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ragtrace.model import INGEST_KINDS
from ragtrace.spool.joined import Joined
from ragtrace.spool.records import CandidateList, Columns, Record, StageRecord
from ragtrace.store.items import Book, Context
from ragtrace.store.tables import string_array

__all__ = ["Candidates", "Piece", "Scope", "count_candidates"]

_LIST_ID = Struct("=q")
_NUMBER_BYTES = 4
_NO_SCORE = array("d", (float("nan"),))


class _Ranks:
    """The ranks 1 ... n as bytes, cut from one run that grows."""

    def __init__(self) -> None:
        self.bytes = memoryview(b"")

    def upto(self, n: int) -> memoryview:
        """Ranks 1 ... n."""
        if _NUMBER_BYTES * n > len(self.bytes):
            self.bytes = memoryview(array("i", range(1, max(1024, 2 * n) + 1)).tobytes())
        return self.bytes[: _NUMBER_BYTES * n]


_RANKS = _Ranks()


class _Rows:
    """Candidate rows as columns, one run of bytes a list: what came as bytes from a log is not unpacked."""

    def __init__(self) -> None:
        self.n = 0
        self.list_ids: list[bytes] = []
        self.ranks: list[memoryview] = []
        self.scores: list[Any] = []
        self.numbers: list[Any] = []

    def add(self, list_id: int, score: Any, n: int, numbers: Any) -> None:
        self.n += n
        self.list_ids.append(_LIST_ID.pack(list_id) * n)
        self.ranks.append(_RANKS.upto(n))
        if type(score) is not array:
            score = _NO_SCORE * n if score is None else array("d", [nan if one is None else one for one in score])
        self.scores.append(score)
        self.numbers.append(numbers)

    def columns(self, items: pa.Array) -> dict[str, pa.Array]:
        """The columns that every row has, the numbers exchanged for `items[number]`."""
        n = self.n
        scores = _from_bytes(self.scores, n, pa.float64())
        return {
            "list_id": _from_bytes(self.list_ids, n, pa.int64()),
            "rank": _from_bytes(self.ranks, n, pa.int32()),
            "item": items.take(_from_bytes(self.numbers, n, pa.int32())),
            "score": pc.if_else(pc.is_finite(scores), scores, pa.scalar(None, pa.float64())),
        }


class Candidates:
    """Candidate rows; the items are numbers in a `Book` until they are resolved. Lists with more columns stand apart."""

    def __init__(self) -> None:
        self._plain = _Rows()
        self._full = _Rows()
        self._dense: dict[str, list[Any]] = {}
        self._sparse: dict[str, dict[int, Any]] = {}
        self._bare: dict[Context, list[tuple[list[Any], int, Sequence[str | None]]]] = {}
        """Per context the lists of bare ids that are not numbered yet, each with where its numbers belong."""

    def __len__(self) -> int:
        return self._plain.n + self._full.n

    def add(self, list_id: int, columns: Columns, numbers: Sequence[int]) -> None:
        """Append the rows of one list."""
        rows = self._rows(columns, len(numbers))
        rows.add(list_id, columns.score, len(numbers), numbers if type(numbers) is array else array("i", numbers))

    def add_bare(self, list_id: int, columns: Columns, context: Context) -> range:
        """Append the rows of one list of bare ids, to be numbered by `number_bare`; as many numbers as there are rows, of no meaning."""
        ids = columns.chunk_id
        n = len(ids)
        rows = self._rows(columns, n)
        lists = self._bare.get(context)
        if lists is None:
            lists = self._bare[context] = []
        lists.append((rows.numbers, len(rows.numbers), ids))
        rows.add(list_id, columns.score, n, b"")
        return range(n)

    def _rows(self, columns: Columns, n: int) -> _Rows:
        """Where a list of `n` rows belongs, its other columns entered there."""
        tokens, position, dropped = columns.tokens, columns.position, columns.dropped
        flags, reasons, culprits = columns.score_flag, columns.drop_reason, columns.dropped_by
        if tokens is position is None and not (dropped or flags or reasons or culprits):
            return self._plain
        first = self._full.n
        for name, values in (("tokens", tokens), ("position", position)):
            if values is not None:
                dense = self._dense.setdefault(name, [])
                dense.extend([None] * (first - len(dense)))
                dense.extend(values)
        if dropped:
            self._enter("is_kept", first, n, dict.fromkeys(dropped, False))
        for name, sparse in (("score_flag", flags), ("drop_reason", reasons), ("dropped_by", culprits)):
            if sparse:
                self._enter(name, first, n, sparse)
        return self._full

    def _enter(self, name: str, first: int, n: int, values: Mapping[int, Any]) -> None:
        target = self._sparse.setdefault(name, {})
        for row, value in values.items():
            if 0 <= row < n:
                target[first + row] = value

    def number_bare(self, book: Book) -> None:
        """Number all bare ids at once: with Arrow each row costs a fifth of what a look-up in a dict costs."""
        for context, lists in self._bare.items():
            joined = [one for one in lists if type(one[2]) is Joined]
            ids = _split([one[2].data for one in joined])  # type: ignore[attr-defined]  # Joined, as just asked
            if ids is None:
                joined = []
            else:
                self._number(book.numbers_of(context, ids), joined)
            others = [one for one in lists if type(one[2]) is not Joined] if joined else lists
            if others:
                values = list(chain.from_iterable(its_ids for _, _, its_ids in others))
                self._number(book.numbers_of(context, string_array(values)), others)
        self._bare.clear()

    def _number(self, numbers: memoryview, lists: Sequence[tuple[list[Any], int, Sequence[str | None]]]) -> None:
        at = 0
        for target, place, ids in lists:
            end = at + len(ids)
            target[place] = numbers[at:end]
            at = end

    def tables(self, items: pa.Array) -> tuple[pa.Table, pa.Table]:
        """The rows of the two tables that hold `candidates`, plain ones first."""
        return pa.table(self._plain.columns(items)), pa.table(self._full.columns(items) | self._more())

    def _more(self) -> dict[str, pa.Array]:
        n = self._full.n
        columns: dict[str, pa.Array] = {}
        for name, kind in (
            ("score_flag", pa.string()), ("tokens", pa.int32()), ("position", pa.int32()), ("is_kept", pa.bool_()),
            ("drop_reason", pa.string()), ("dropped_by", pa.string()),
        ):  # fmt: skip
            if name in self._dense:
                values = self._dense[name]
                columns[name] = pa.array(values + [None] * (n - len(values)), kind)
            elif name in self._sparse:
                values = [None] * n
                for row, value in self._sparse[name].items():
                    values[row] = value
                columns[name] = string_array(values) if kind == pa.string() else pa.array(values, kind)
            else:
                columns[name] = pa.nulls(n, kind)
        return columns


def _from_bytes(parts: Sequence[Any], n: int, kind: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(kind, n, [None, pa.py_buffer(b"".join(parts))])


def _split(parts: Sequence[bytes]) -> pa.Array | None:
    """NUL-joined texts as one Arrow column; None where Arrow cannot hold them: lone surrogates are no UTF-8."""
    if not parts:
        return pa.array([], pa.string())
    try:
        text = b"\0".join(parts).decode("utf-8")
    except UnicodeDecodeError:
        return None
    return pc.split_pattern(pa.array([text], pa.string()), "\0").flatten()


class Scope:
    """The stage runs and context lists of one query, one ingest document, or one orphan run."""

    __slots__ = ("contexts", "stages", "started_at_ns")

    def __init__(self) -> None:
        self.stages: list[StageRecord] = []
        self.contexts: list[CandidateList] = []
        self.started_at_ns: int | None = None
        """Start of the query where its row is at hand."""

    def begin_ns(self) -> int:
        """When the query started; where its row has not come yet: when its first stage at hand did."""
        if self.started_at_ns is not None:
            return self.started_at_ns
        return min((stage.row.get("started_at_ns") or 0 for stage in self.stages), default=0)


class Piece:
    """The records of one transaction, sorted."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Mapping[str, Any]]] = {
            name: []
            for name in ("processes", "queries", "documents", "texts", "parses", "inventories", "losses", "stages")
        }
        self.queries: dict[int, Scope] = {}
        self.ingests: dict[tuple[str, int], Scope] = {}
        """Keyed ("ingest", ingest_id) or ("stage", stage_id) for runs outside every document."""
        self.orphans: list[Scope] = []
        self.n_candidates = 0

    def add(self, records: Iterable[Record]) -> None:
        """Sort records in; kinds that are not known are left out."""
        for kind, body in records:
            if kind == "stage":
                self._add_stage(body)
            elif kind == "context":
                query_id, context = body
                self._query(query_id).contexts.append(context)
                self._count(context)
            elif kind == "query":
                self.rows["queries"].append(body)
                self._query(body["query_id"]).started_at_ns = body.get("started_at_ns")
            elif kind == "inventory":
                self.rows["inventories"].extend(_inventory_rows(body))
            elif kind in _TABLE_OF:
                self.rows[_TABLE_OF[kind]].append(body)

    def _query(self, query_id: int) -> Scope:
        scope = self.queries.get(query_id)
        if scope is None:
            scope = self.queries[query_id] = Scope()
        return scope

    def _add_stage(self, stage: StageRecord) -> None:
        row = stage.row
        self.rows["stages"].append(row)
        for one in stage.lists:
            self._count(one)
        query_id = row.get("query_id")
        if query_id is not None:
            self._query(query_id).stages.append(stage)
        elif row.get("kind") in INGEST_KINDS:
            ingest_id = row.get("ingest_id")
            key = ("ingest", ingest_id) if ingest_id is not None else ("stage", row["stage_id"])
            self.ingests.setdefault(key, Scope()).stages.append(stage)
        else:
            scope = Scope()
            scope.stages.append(stage)
            self.orphans.append(scope)

    def _count(self, one: CandidateList) -> None:
        self.n_candidates += _n_rows(one)


def count_candidates(records: Iterable[Record]) -> int:
    """How many candidate rows the records bring."""
    n = 0
    for kind, body in records:
        if kind == "stage":
            n += sum(_n_rows(one) for one in body.lists)
        elif kind == "context":
            n += _n_rows(body[1])
    return n


def _n_rows(one: CandidateList) -> int:
    return len(one.columns.chunk_id) if one.columns is not None else 0


_TABLE_OF = {"process": "processes", "document": "documents", "text": "texts", "parse": "parses", "loss": "losses"}


def _inventory_rows(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One row per id; one with neither id for an empty layer."""
    common = {name: body.get(name) for name in ("inventory_id", "index_name", "declared_at_ns", "process_id")}
    rows = [{**common, "chunk_id": str(chunk_id)} for chunk_id in body.get("chunk_ids") or ()]
    rows += [{**common, "doc_id": str(doc_id)} for doc_id in body.get("doc_ids") or ()]
    return rows or [common]
