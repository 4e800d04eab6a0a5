"""Sizes past the ordinary: long lists, long texts, records beyond a bound, times in any zone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import ragtrace as rt
from ragtrace.spool import frames
from ragtrace.store import database, merge
from ragtrace.testing import records
from tests.traced import Traced


def test_ten_thousand_candidates_are_ten_thousand_rows_in_their_order(tmp_path: Path) -> None:
    trace = Traced(tmp_path / "t.duckdb")
    ids = [f"c{number * 7919 % 10_000}" for number in range(10_000)]
    with rt.query("q"):
        found = rt.retrieve(lambda: [{"id": one, "score": 1 / (n + 1)} for n, one in enumerate(ids)])()
        rt.truncate(k=5, final=True)(lambda hits: hits[:5])(found)
    trace.judge(
        [{"question_id": "q", "question": "q", "gold": [{"level": "chunk", "doc_id": "d", "chunk_id": ids[9_999]}]}]
    )
    (row,) = trace.rows(
        "select count(*) as n, count(distinct item) as n_items, max(rank) as last from candidates as c "
        "join lists as l using (list_id) join stages as s using (stage_id) where s.kind = 'retrieve'"
    )
    assert row == {"n": 10_000, "n_items": 10_000, "last": 10_000}
    (loss,) = trace.rows("select lost_stage, lost_kind, rank_before from stage_loss")
    assert (loss["lost_kind"], loss["rank_before"]) == ("truncate", 10_000)
    trace.close()


def test_texts_of_megabytes_are_stored_whole_and_searched(tmp_path: Path) -> None:
    trace = Traced(tmp_path / "t.duckdb")
    text = "All work and no play. " * 150_000 + "The needle lies here. " + "And so on. " * 50_000
    with rt.document("d"):
        rt.parse(lambda: text)()
    with rt.query("q" * 1_000_000):
        rt.retrieve(lambda: [{"id": "a", "doc_id": "d", "start": 0, "end": len(text), "text": text}])()
    trace.judge(
        [{"question_id": "q", "question": "q" * 1_000_000, "gold": [{"doc_id": "d", "quote": "The needle lies here."}]}]
    )
    assert trace.rows("select length(text) as n from texts") == [{"n": len(text)}]
    assert [row["verdict"] for row in trace.rows("select verdict from stage_loss")] == ["kept"]
    trace.close()


@pytest.mark.expects_internal_error
def test_a_record_longer_than_a_frame_is_counted_and_takes_nothing_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "MAX_BODY_BYTES", 10_000)
    trace = Traced(tmp_path / "t.duckdb")
    with rt.document("d"):
        rt.parse(lambda: "long " * 10_000)()
    with rt.query("q"):
        rt.retrieve(lambda: ["a"])()
    trace.judge([{"question_id": "q", "question": "q", "gold": [{"doc_id": "d", "quote": "long"}]}])
    assert trace.rows("select reason, n::int as n from losses") == [
        {"reason": "encode_error", "n": 1},
        {"reason": "internal_error", "n": 1},
    ]
    assert trace.rows("select count(*) as n from queries") == [{"n": 1}]
    assert [row["verdict"] for row in trace.rows("select verdict from stage_loss")] == ["unobserved"]
    trace.close()


def test_no_column_of_texts_comes_near_two_gibibytes() -> None:
    """D-20: an Arrow string column ends at 2 GiB: what is entered at once is a piece, and one record more."""
    assert merge.PIECE_BYTES + merge.READ_BYTES + frames.MAX_BODY_BYTES < 2**31


def test_texts_past_a_piece_are_entered_in_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """D-20"""
    monkeypatch.setattr(merge, "PIECE_BYTES", 1 << 20)
    monkeypatch.setattr(merge, "READ_BYTES", 1 << 20)
    trace = Traced(tmp_path / "t.duckdb")
    for number in range(5):
        with rt.document(f"d{number}"):
            rt.parse(lambda number=number: str(number) * 900_000)()
    rt.shutdown(10)
    merge.merge(trace.store)
    trace.connection = database.connect(trace.store)
    assert trace.rows("select count(*)::int as n, sum(length(text))::int as size from texts") == [
        {"n": 5, "size": 4_500_000}
    ]
    trace.close()


def test_a_caller_s_variable_is_never_taken_for_a_table(tmp_path: Path) -> None:
    """D-21"""
    lost_rows = pd.DataFrame({"run": ["mine"]})  # noqa: F841
    stage_loss = pd.DataFrame({"run": ["mine"]})  # noqa: F841
    connection = database.connect(tmp_path / "t.duckdb")
    assert connection.execute("select * from stage_loss").fetchall() == []
    with pytest.raises(Exception, match="lost_rows"):
        connection.execute("select * from lost_rows")
    connection.close()


ZONES = """
import os, sys, time, ragtrace as rt
from ragtrace import clock
clock.wall_ns = iter(range(1_793_494_000_000_000_000, 1_793_600_000_000_000_000, 1_000_000)).__next__
rt.configure(sys.argv[1], merge="off")
with rt.document("d", modified_at=1_793_000_000):
    rt.parse(lambda: "It closes at four.")()
with rt.query("when?"):
    pass
rt.shutdown(5)
"""


def test_times_are_the_same_numbers_in_every_zone(tmp_path: Path) -> None:
    """D-22"""
    seen = []
    for zone in ("UTC", "Asia/Tokyo", "America/New_York"):
        store = tmp_path / f"{zone.replace('/', '-')}.duckdb"
        subprocess.run([sys.executable, "-c", ZONES, str(store)], env={**os.environ, "TZ": zone}, check=True)
        seen.append([
            {name: value for name, value in record.body.items() if name.endswith("_at_ns") and "ended" not in name}
            for record in records(store) if record.kind in ("query", "document", "parse")
        ])  # fmt: skip
    assert seen[0] == seen[1] == seen[2]
    assert seen[0][1]["modified_at_ns"] == 1_793_000_000 * 10**9
