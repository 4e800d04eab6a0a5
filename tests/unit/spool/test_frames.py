"""Records come back from bytes as they went in."""

from __future__ import annotations

import math
from array import array

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragtrace.spool import frames
from ragtrace.spool.records import CandidateList, Columns, Record, StageRecord

# Any code point, lone surrogates and NUL too: ids come from anywhere.
TEXTS = st.text(st.characters(codec=None), max_size=12)
OFFSETS = st.one_of(st.none(), st.integers(0, 2**31 - 1))


def back(record: Record) -> Record:
    """Through bytes and back."""
    frame = frames.encode(record)
    magic, size, _, number = frames.HEADER.unpack_from(frame)
    body = frame[frames.HEADER.size :]
    assert (magic, size) == (frames.MAGIC, len(body))
    return frames.decode(number, body)


def stage(lists: list[CandidateList], **row: object) -> Record:
    return Record("stage", StageRecord({"stage_id": 7, "kind": "retrieve", "name": "dense", **row}, lists))


@st.composite
def columns(draw: st.DrawFn) -> Columns:
    n = draw(st.integers(0, 5))

    def column(values: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
        return st.one_of(st.none(), st.lists(values, min_size=n, max_size=n))

    ranges = (
        st.one_of(
            st.none(),
            st.dictionaries(
                st.integers(0, max(0, n - 1)),
                st.lists(st.tuples(st.integers(0, 9), st.integers(9, 99)), min_size=1),
                min_size=1,
            ),
        )
        if n
        else st.none()
    )
    return Columns(
        draw(st.lists(st.one_of(st.none(), TEXTS), min_size=n, max_size=n)),
        id_source=draw(st.sampled_from(["native", "text"])),
        score=draw(column(st.floats(allow_nan=False))),
        doc_id=draw(column(st.one_of(st.none(), TEXTS))),
        start=draw(column(OFFSETS)),
        end=draw(column(OFFSETS)),
        ranges=draw(ranges),
        cut=draw(ranges),
        item_text_hash=draw(column(st.one_of(st.none(), st.just("ab")))),
        tokens=draw(column(OFFSETS)),
        position=draw(column(OFFSETS)),
    )


def plain(value: object) -> object:
    """Arrays as lists: they compare by value."""
    if isinstance(value, Columns):
        return [plain(part) for part in value]
    if isinstance(value, array):
        return list(value)
    return value


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)  # it is the machine that is slow
@given(columns(), st.lists(st.integers(1, 2**62), max_size=3), st.booleans())
def test_any_columns_come_back_as_they_were(given_columns: Columns, same_as: list[int], flag: bool) -> None:
    one = CandidateList(9, "in", given_columns, same_as, [4], "hits", 12, flag, not flag)
    found = back(stage([one])).body.lists[0]
    assert plain(found.columns) == plain(given_columns)
    assert found._replace(columns=None) == one._replace(columns=None)


def test_a_stage_row_comes_back_with_its_ids_flags_and_texts() -> None:
    row = {
        "stage_id": 2**62, "query_id": 5, "parent_stage_id": 6, "start_no": 1, "end_no": 4, "started_at_ns": 10**18,
        "duration_ns": 5, "process_id": 3, "trace_id": "0" * 15 + "1" + "f" * 16, "span_id": "00000000000000aa",
        "kind": "retrieve", "name": "密", "k": 50, "threshold": 0.5, "is_aside": False, "query_text": "why\ud800?",
        "filter": '{"a":1}',
    }  # fmt: skip
    found = back(stage([], **row)).body.row
    assert {name: found[name] for name in row} == row
    assert found["ingest_id"] is found["parent_span_id"] is None


def test_scores_that_are_not_numbers_come_back() -> None:
    one = CandidateList(1, "out", Columns(["a", "b"], score=array("d", [math.nan, math.inf]), score_flag={1: "inf"}))
    found = back(stage([one])).body.lists[0].columns
    assert math.isnan(found.score[0]) and found.score[1] == math.inf and found.score_flag == {1: "inf"}


def test_an_empty_list_is_told_from_one_of_which_nothing_is_known() -> None:
    empty, unknown = back(stage([CandidateList(1, "out", Columns([])), CandidateList(2, "out", None)])).body.lists
    assert list(empty.columns.chunk_id) == [] and unknown.columns is None


@pytest.mark.parametrize("kind", ["process", "query", "document", "text", "parse", "inventory", "loss"])
def test_rows_of_other_kinds_come_back(kind: str) -> None:
    row = {"query_id": 2**62, "question": "a\0b\ud800", "n": None, "chunk_ids": ["a", "b"]}
    assert back(Record(kind, row)) == Record(kind, row)


def test_a_context_comes_back_with_its_query() -> None:
    one = CandidateList(1, "context", Columns(["a"]), argument="carried")
    query_id, found = back(Record("context", (5, one))).body
    assert (query_id, found.argument, found.columns.chunk_id) == (5, "carried", ["a"])


def test_kept_bytes_make_the_same_frame_as_the_record() -> None:
    row = {"stage_id": 7, "query_id": 5, "kind": "fuse", "name": "rrf", "status": "ok", "trace_id": "f" * 32}
    one = CandidateList(1, "out", Columns(["a"]))
    fast = frames.stage_frame(
        (7, 5, 0, 0, 0, 0, 0, 0, 0, 2**64 - 1, 2**64 - 1, 0, 0),
        frames.repeated_bytes(row),
        frames.extra_bytes({}),
        [one],
    )
    assert fast == frames.encode(Record("stage", StageRecord(row, [one])))
