"""A damaged log as the report shows it: bounds widen, and no recall is lower than it was as if it were real.

Every frame of the log is spoilt in turn when RAGTRACE_TEST_ALL is set, else some of each kind.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ragtrace.gold import loading, placing
from ragtrace.spool import frames, reader
from ragtrace.spool.records import Record
from ragtrace.store import database
from ragtrace.store.merge import merge
from tests.unit.cli import library
from tests.unit.store.logs import new_id, out, process, query, same, stage, write

SIDES = ("candidate_recall", "final_context_recall")
N_SPOILT = None if os.environ.get("RAGTRACE_TEST_ALL") else 8


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recorded and not merged: the one log has everything."""
    store = tmp_path_factory.mktemp("traced") / "traces.duckdb"
    library.trace(store)
    database.connect(store).close()
    return store


def log_of(store: Path) -> Path:
    [log] = database.spool_of(store).glob("*.log")
    return log


def spans_of_frames(log: Path) -> list[tuple[int, int]]:
    """Begin and end of every frame."""
    data, at, spans = log.read_bytes(), 0, []
    while at < len(data):
        end = at + frames.HEADER.size + frames.HEADER.unpack_from(data, at)[1]
        spans.append((at, end))
        at = end
    return spans


def copied(traced: Path, folder: Path) -> Path:
    store = folder / traced.name
    shutil.copyfile(traced, store)
    shutil.copytree(database.spool_of(traced), database.spool_of(store))
    return store


def judged(store: Path) -> tuple[dict[str, dict[str, Any]], list[tuple[Any, ...]]]:
    """Recall by question, and the span verdicts that name a place."""
    merge(store)
    with database.connect(store) as connection:
        loading.load_rows(connection, library.GOLD)
        placing.place(connection)
        found = connection.execute("select * from query_recall")
        names = [column[0] for column in found.description or ()]
        recall = {
            row["question_id"]: row for row in (dict(zip(names, values, strict=True)) for values in found.fetchall())
        }
        lost = connection.execute(
            "select question_id, lost_stage from stage_loss where verdict = 'lost' and lost_stage is not null order by all"
        ).fetchall()
    return recall, lost


def within(before: dict[str, Any], after: dict[str, Any], side: str) -> bool:
    """What was true lies inside what is said now."""
    return bool(after[side] <= before[side] <= before[f"{side}_high"] <= after[f"{side}_high"])


def test_a_spoilt_frame_widens_bounds_and_lowers_no_recall(traced: Path, tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    truth, lost = judged(copied(traced, tmp_path / "whole"))
    spans = spans_of_frames(log_of(traced))
    step = 1 if N_SPOILT is None else max(1, len(spans) // N_SPOILT)
    for number, (at, end) in list(enumerate(spans))[::step]:
        folder = tmp_path / str(number)
        folder.mkdir()
        store = copied(traced, folder)
        data = bytearray(log_of(store).read_bytes())
        data[(at + end) // 2] ^= 0x55
        log_of(store).write_bytes(data)
        seen, said = judged(store)
        for question_id, row in seen.items():
            before = truth[question_id]
            assert all(within(before, row, side) for side in SIDES), (number, question_id, before, row)
        # A verdict that names a place names the one it was.
        assert set(said) <= set(lost), (number, sorted(set(said) - set(lost)))


def test_the_report_over_a_damaged_log_says_so_and_exits_with_3(traced: Path, tmp_path: Path, run: Any) -> None:
    store = copied(traced, tmp_path)
    at, end = spans_of_frames(log_of(store))[-2]
    data = bytearray(log_of(store).read_bytes())
    data[(at + end) // 2] ^= 0x55
    log_of(store).write_bytes(data)
    shown = run("report", store, "--format", "json")
    assert shown.exit_code == 3, shown.output
    gaps = {row["gap"]: row for row in json.loads(shown.stdout)["incomplete"]}
    assert gaps["damaged_log"]["n"] == end - at
    assert gaps["not_whole"]["n"] == 1


def test_the_report_after_a_lost_file_says_how_many_rows_are_gone(traced: Path, tmp_path: Path, run: Any) -> None:
    store = copied(traced, tmp_path)
    merge(store)
    merge(store)
    (database.spool_of(store) / "checkpoint.sidecar").unlink()
    store.write_bytes(store.read_bytes()[:12288] + os.urandom(4096) + store.read_bytes()[16384:])
    told = run("doctor", store)
    assert told.exit_code == 3
    assert "it held 4 queries" in told.stdout
    shown = run("report", store)
    assert shown.exit_code == 3
    assert "Incomplete: 4 queries gone with a database file that could not be read" in shown.stdout
    told = run("doctor", store, "--format", "json")
    assert told.exit_code == 3
    assert any(one["n"] == 4 and one["advice"] for one in json.loads(told.stdout) if one["subject"] == "database")


def test_one_bad_log_among_others_is_named_by_the_report(traced: Path, tmp_path: Path, run: Any) -> None:
    store = copied(traced, tmp_path)
    (database.spool_of(store) / "7-1-f.log").write_bytes(b"")
    shown = run("report", store)
    assert shown.exit_code == 3
    assert "4 queries" in shown.stdout
    assert "7-1-f.log" in shown.stdout


def test_a_dry_run_says_what_would_go(traced: Path, tmp_path: Path, run: Any) -> None:
    store = copied(traced, tmp_path)
    tried = run("doctor", store, "--delete-run", "hybrid-k50", "--dry-run", "--compact")
    assert "would delete 4 queries" in tried.stderr
    assert "compacted" not in tried.stderr
    assert "4 queries are recorded" in tried.stdout
    assert run("doctor", store, "--dry-run").exit_code == 2


def test_an_interrupted_query_is_counted_apart(traced: Path, tmp_path: Path, run: Any) -> None:
    """Its stages are there, its question is not: no label could be its."""
    store = copied(traced, tmp_path)
    log = log_of(store)
    spans = spans_of_frames(log)
    data = log.read_bytes()
    records = [reader.read(log, at, 1).records[0] for at, _ in spans]
    [*_, last] = [number for number, record in enumerate(records) if record.kind == "query"]
    log.write_bytes(b"".join(data[at:end] for number, (at, end) in enumerate(spans) if number != last))
    shown = run("report", store, "--format", "json")
    assert {"cause": "interrupted", "n_queries": 1} in [
        {key: row[key] for key in ("cause", "n_queries")} for row in json.loads(shown.stdout)["left_out"]
    ]


def _asked(run: str, process_id: int) -> list[Record]:
    """A query of a run in a process."""
    query_id, found = new_id(), out(["a"])
    stages = [
        stage("retrieve", found, query_id=query_id, process_id=process_id),
        stage("generate", same(found), start=3, query_id=query_id, process_id=process_id),
    ]
    return [*stages, query(query_id, stages, run=run, process_id=process_id)]


_CASES: dict[str, tuple[Callable[[], list[Record]], int]] = {
    "all is there": (list, 0),
    "a stage outside every query": (lambda: [stage("retrieve", out(["z"]), is_orphan=True)], 3),
    "a list that could not be read": (lambda: [stage("rerank", is_orphan=True, capture_error="a str is no list")], 3),
    "a query with rows missing": (lambda: _asked("x", 7)[1:], 3),
    "a query cut off by the end of its process": (lambda: _asked("x", 7)[:1], 0),
    "a stage that ended after its query": (lambda: [*(late := _asked("x", 7)), _late(late)], 0),
    "records dropped by the recorder": (
        lambda: [Record("loss", {"process_id": 7, "reason": "queue_full", "n": 1, "first_at_ns": 1, "last_at_ns": 1})],
        3,
    ),
}


def _late(records: list[Record]) -> Record:
    return stage("retrieve", out(["z"]), query_id=records[-1].body["query_id"], start=5, is_detached=True)


@pytest.mark.parametrize("case", _CASES)
def test_doctor_and_report_end_alike(case: str, tmp_path: Path, run: Any) -> None:
    make, exit_code = _CASES[case]
    store = tmp_path / "traces.duckdb"
    write(store, [process(), *_asked("x", 7), *make()])
    shown = run("report", store)
    assert shown.exit_code == exit_code, shown.output
    told = run("doctor", store)
    assert told.exit_code == exit_code, told.output


def test_a_stage_outside_every_query_counts_for_the_run_that_its_process_was_in(tmp_path: Path, run: Any) -> None:
    store = tmp_path / "traces.duckdb"
    write(
        store,
        [
            stage("retrieve", out(["z"]), is_orphan=True, process_id=1, name="before the first"),
            *_asked("one", 1),
            *_asked("two", 1),
            stage("retrieve", out(["z"]), is_orphan=True, process_id=1, name="after the second"),
            *_asked("three", 3),
        ],
    )
    assert _strays(run("report", store, "--run", "one", "--format", "json")) == ["before the first"]
    assert _strays(run("report", store, "--run", "two", "--format", "json")) == ["after the second"]
    assert _strays(run("report", store, "--format", "json")) == ["after the second", "before the first"]
    other = run("report", store, "--run", "three")
    assert other.exit_code == 0, other.output


def test_a_stage_in_a_process_without_queries_may_be_of_any_run(tmp_path: Path, run: Any) -> None:
    """The worker of a pool that was not given the context."""
    store = tmp_path / "traces.duckdb"
    write(store, [*_asked("one", 1), stage("retrieve", out(["z"]), is_orphan=True, process_id=2, name="in a worker")])
    assert _strays(run("report", store, "--run", "one", "--format", "json")) == ["in a worker"]


def _strays(shown: Any) -> list[str]:
    """Names of the stages that a report calls outside every query, with exit code 3."""
    assert shown.exit_code == 3, shown.output
    return [row["detail"] for row in json.loads(shown.stdout)["incomplete"] if row["gap"] == "orphan_stages"]
