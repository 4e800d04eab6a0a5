"""What became of candidates' texts between stages: which stand in a string, which were cut, which were rewritten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ragtrace import digest
from ragtrace.recording import prompts, texts
from ragtrace.recording.lists import Listed, join, select
from ragtrace.spool.records import Columns

if TYPE_CHECKING:
    from ragtrace.recording.scopes import Scope

__all__ = ["compare_texts", "list_in_string", "note_places"]


def list_in_string(
    scope: Scope, kind: str, before_no: int, one: Listed
) -> tuple[Columns | None, Sequence[int], bool] | None:
    """Columns, equal lists and completeness of a list that is a string; None when no candidate was at hand.

    The candidates at hand are those of the outputs ended before, latest first. What is not found of them after a
    compression is altered, not gone.
    """
    text = one.string or ""
    at_hand = []
    for output in reversed(scope.outputs):
        if not output.end_no or output.end_no >= before_no or output is one:
            continue
        if output.string is not None:
            if output.string == text:
                return None, (output.list_id,), True
            output_columns = output.columns
            if output_columns is None:
                continue
        if output.columns is not None:
            at_hand.append(output)
    sources: list[tuple[Listed, int]] = []
    seen: set[Any] = set()
    for output in at_hand:
        for row, identity in enumerate(output.ids):
            if identity is not None and identity not in seen:
                seen.add(identity)
                sources.append((output, row))
    if not sources:
        return None
    # A list of ids alone has no texts; another list of the query may have had the same candidates with theirs.
    known = [
        (output.texts[row] if output.texts is not None else None) or scope.first_texts.get(output.ids[row])
        for output, row in sources
    ]
    found = prompts.find_in(text, known)
    is_complete = None not in known and bool(found)
    if one.role == "out" and kind == "compress":
        present = {index for index, _ in found}
        missing = [index for index in range(len(sources)) if index not in present]
        is_complete = None not in known
    else:
        missing = []
    rows = [index for index, _ in found] + missing
    if not rows:
        return None, (), False
    columns = join([select(sources[index][0].columns, [sources[index][1]]) for index in rows])  # type: ignore[arg-type]  # at_hand has columns
    cut = {}
    for number, (_, ranges) in enumerate(found):
        if ranges is not None:
            cut[number] = ranges
    columns = columns._replace(
        cut={**(columns.cut or {}), **cut} or None,
        altered=sorted({*(columns.altered or ()), *range(len(found), len(rows))}) or None,
        offset_quality=None,
    )
    if cut:
        columns = _without_places(columns, cut)
    one.columns = columns
    one.ids = [sources[index][0].ids[sources[index][1]] for index in rows]
    one.texts = [None] * len(rows)
    return columns, (), is_complete


def compare_texts(scope: Scope, one: Listed, columns: Columns) -> tuple[Columns, bool]:
    """The columns with `cut` and `altered` marked, and whether a candidate grew by text of unknown place."""
    first_texts = scope.first_texts
    cut: dict[int, Any] = {}
    altered: list[int] = []
    is_grown = False
    hashes: list[str | None] | None = None
    chunk_ids = columns.chunk_id
    assert one.texts is not None
    for row, (identity, text) in enumerate(zip(one.ids, one.texts, strict=True)):
        if identity is None:
            continue
        if text is None:
            _note_place(scope, columns, row, identity)
            continue
        first = first_texts.setdefault(identity, text)
        if first is not text and first != text:
            if _has_fitting_place(columns, row, len(text)):
                continue
            ranges = texts.cut(first, text)
            if ranges is not None:
                cut[row] = ranges
            elif first in text:
                is_grown = True
            else:
                altered.append(row)
            scope.changed_texts.add(identity)
        elif identity in scope.changed_texts and not _has_fitting_place(columns, row, len(text)):
            cut[row] = ((0, len(text)),)  # the whole again, and not what was left of it in between
        if chunk_ids[row] is None:
            hashes = hashes or [None] * len(chunk_ids)
            hashes[row] = _digest_of(text)
    if hashes is not None and columns.item_text_hash is None:
        columns = columns._replace(item_text_hash=hashes)
    if cut or altered:
        columns = _without_places(columns, {*cut, *altered})._replace(
            cut={**(columns.cut or {}), **cut} or None,
            altered=sorted({*(columns.altered or ()), *altered}) or None,
        )
    return columns, is_grown


def note_places(scope: Scope, one: Listed, columns: Columns) -> None:
    """Remember the candidates of a list without texts whose place is not as long as their text was."""
    if columns.start is not None or columns.ranges:
        for row, identity in enumerate(one.ids):
            if identity is not None:
                _note_place(scope, columns, row, identity)


def _note_place(scope: Scope, columns: Columns, row: int, identity: Any) -> None:
    first = scope.first_texts.get(identity)
    if first is not None and _has_place(columns, row) and not _has_fitting_place(columns, row, len(first)):
        scope.changed_texts.add(identity)


_digests: dict[int, str] = {}
_MOST_DIGESTS = 20_000
"""Some 3 MB."""


def _digest_of(text: str) -> str:
    """The digest of a candidate's text, which most searches of a service find again and again.

    Python has hashed the text already, with a random key of 128 bits: 20,000 texts share one of its 2^64 values by
    chance once in 10^11 processes. Looking up costs a twentieth of what 800 characters cost to digest.
    """
    key = hash(text)
    known = _digests.get(key)
    if known is None:
        if len(_digests) >= _MOST_DIGESTS:
            _digests.clear()
        known = _digests[key] = digest.of_text(text)
    return known


def _has_fitting_place(columns: Columns, row: int, length: int) -> bool:
    """Whether the row came with ranges that are as long as its text: then they say where it is from."""
    if columns.ranges and row in columns.ranges:
        return sum(end - start for start, end in columns.ranges[row]) == length
    if columns.start is None or columns.end is None:
        return False
    start, end = columns.start[row], columns.end[row]
    return start is not None and end is not None and end - start == length


def _has_place(columns: Columns, row: int) -> bool:
    if columns.ranges and row in columns.ranges:
        return True
    return columns.start is not None and columns.start[row] is not None


def _without_places(columns: Columns, rows: Any) -> Columns:
    """Without the ranges of rows whose text is no longer that of their metadata."""
    start, end, ranges = columns.start, columns.end, columns.ranges
    if start is not None:
        start = [None if row in rows else value for row, value in enumerate(start)]
    if end is not None:
        end = [None if row in rows else value for row, value in enumerate(end)]
    if ranges:
        ranges = {row: value for row, value in ranges.items() if row not in rows} or None
    return columns._replace(start=start, end=end, ranges=ranges)
