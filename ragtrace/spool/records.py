"""What a log holds, decoded: the contract between the recorder (writes) and the merge (reads).

The recorder hands these to `frames.encode`, the reader gives them back. Nothing here knows how bytes look.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["CandidateList", "Columns", "Ids", "Record", "StageRecord"]

Range = tuple[int, int]


class Ids(list[str]):
    """A column in which every row has an id, with all of them joined by NUL: joining checks them, and is what is written."""

    __slots__ = ("joined",)

    joined: str


class Columns(NamedTuple):
    """The candidates of one list as columns. Row i of every column is the candidate of rank i + 1.

    A column that is None says nothing for any row. Dict columns hold only the rows (0-based) that have a value.
    """

    chunk_id: Sequence[str | None]
    """As read, as text; None: the item has no id, its identity is its range or text."""
    id_source: str = "native"
    """items.id_source of the rows whose chunk_id is given."""
    score: array[float] | Sequence[float] | None = None
    """NaN where there is none; what is not finite also stands in score_flag."""
    score_flag: Mapping[int, str] | None = None
    doc_id: Sequence[str | None] | None = None
    start: Sequence[int | None] | None = None
    end: Sequence[int | None] | None = None
    ranges: Mapping[int, Sequence[Range]] | None = None
    """Rows made of several ranges, or of a range whose start and end columns are not used."""
    stands_for: Mapping[int, Sequence[Range]] | None = None
    possible: Mapping[int, Sequence[Range]] | None = None
    """Ranges that may be there (altered text)."""
    cut: Mapping[int, Sequence[Range]] | None = None
    """What is left of the item, as ranges of the text it had in an earlier list of the query (0 = its first character)."""
    altered: Sequence[int] | None = None
    """Rows whose text was rewritten: nothing of them is surely evidence, all of the earlier item may be."""
    text_hash: str | None = None
    """Parsed text that start, end and ranges of all rows refer to; None: the document's text at that time."""
    item_text_hash: Sequence[str | None] | None = None
    offset_quality: Sequence[str | None] | None = None
    tokens: Sequence[int | None] | None = None
    position: Sequence[int | None] | None = None
    dropped: Sequence[int] | None = None
    """Rows with is_kept = false."""
    drop_reason: Mapping[int, str] | None = None
    dropped_by: Mapping[int, str] | None = None
    score_kind: str | None = None
    """What the scores show of themselves, for the stage that put the list out; not written with the list."""


class CandidateList(NamedTuple):
    """One row of the table `lists`, with its candidates."""

    list_id: int
    role: str
    """in, out, considered, dropped, context"""
    columns: Columns | None
    """None: equal to each list in `same_as` (then not empty), or nothing of it could be read."""
    same_as: Sequence[int] = ()
    """in and context lists: earlier lists of the query it equals. One when the very object was recognised,
    else every ended output with equal ids: the merge drops those that another of them supersedes."""
    declared_sources: Sequence[int] = ()
    """stage ids named by source=."""
    argument: str | None = None
    n_declared: int | None = None
    is_complete: bool = True
    is_partial: bool = False


class StageRecord(NamedTuple):
    """One stage run: `row` has the columns of the table `stages` (absent = null)."""

    row: Mapping[str, Any]
    lists: Sequence[CandidateList] = ()


class Record(NamedTuple):
    """One frame."""

    kind: str
    """process, query, stage, context, document, text, parse, inventory, loss"""
    body: Any
    """stage: StageRecord. context: (query_id, CandidateList). All others: a mapping with the columns of
    processes, queries, documents, texts, parses, inventories (one per declaration, with lists chunk_ids or doc_ids), losses."""
