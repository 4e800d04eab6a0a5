"""What doctor says, what can be exported, and what is deleted and compacted."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from ragtrace import schema
from ragtrace.errors import StoreError
from ragtrace.gold import loading
from ragtrace.spool import frames
from ragtrace.spool.records import Record
from ragtrace.store import database, export, kept, retention
from ragtrace.store.health import examine
from ragtrace.store.merge import merge
from tests.unit.store.logs import BEGIN_NS, ingested, merged, new_id, out, process, query, rows, same, stage, write


def _query(question_id: str = "q1", run: str = "r", at_ns: int = BEGIN_NS) -> list[Record]:
    query_id = new_id()
    found = out(["a", "b"], score=[0.25, 0.5])
    stages = [
        stage("retrieve", found, query_id=query_id, name="dense search", at_ns=at_ns),
        stage("generate", same(found), start=3, query_id=query_id, at_ns=at_ns),
    ]
    return [*stages, query(query_id, stages, at_ns, question_id=question_id, run=run)]


def _said(store: Path, level: str) -> str:
    return " ".join(finding.text for finding in examine(store) if finding.level == level)


def test_a_healthy_store_has_nothing_to_complain_of(store: Path) -> None:
    merged(store, [process(), *_query()])
    assert {finding.level for finding in examine(store)} == {"good"}


def test_logs_that_wait_are_told(store: Path) -> None:
    write(store, _query())
    assert "1 log is waiting" in _said(store, "note")


def test_damage_losses_and_missing_rows_are_told_first(store: Path) -> None:
    loss = Record(
        "loss", {"process_id": 7, "reason": "queue_full", "n": 2000, "first_at_ns": BEGIN_NS, "last_at_ns": BEGIN_NS}
    )
    log = write(store, [process(), *_query()[1:], loss])
    with open(log, "ab") as file:
        file.write(frames.encode(_query()[0])[:-5])
    merge(store)
    said = _said(store, "incomplete")
    assert "Process 1 on h could not record 2,000 times from 2023-11-14 22:13:20 UTC" in said
    assert "1 queries lack rows" in said
    assert "bytes of logs were damaged" in said
    assert examine(store)[0].level == "incomplete"


def test_stages_outside_every_query_and_lists_that_could_not_be_read_are_told(store: Path) -> None:
    strays = [stage("retrieve", out(["z"]), is_orphan=True, name="dense") for _ in range(2)]
    unread = stage("rerank", ingest_id=new_id(), capture_error="a str is no list")
    merged(store, [process(), *_query(), *strays, unread])
    said = _said(store, "incomplete")
    assert "2 stage runs were outside every query and document: dense." in said
    assert "1 stage run was not recorded in full: rerank: a str is no list." in said


def test_verdicts_that_wait_to_be_computed_are_told(store: Path) -> None:
    merged(store, _query())
    with database.connect(store) as connection:
        loading.load_rows(connection, [{"question_id": "q1", "question": "?", "gold": []}])
        connection.execute("insert into evidence (evidence_id) values ('e')")
        kept.forget(connection)
    assert "verdicts kept in the file are stale" in _said(store, "note")
    merge(store)
    assert "stale" not in _said(store, "note")


def test_a_file_set_aside_is_told_with_what_is_in_it_only(store: Path) -> None:
    """D-05"""
    write(store, _query())
    merge(store)
    merge(store)
    database.spool_of(store).joinpath("checkpoint.sidecar").unlink()
    store.write_bytes(store.read_bytes()[:12288] + b"\0" * 4096 + store.read_bytes()[16384:])
    merge(store)
    said = _said(store, "incomplete")
    assert "1 queries, 2 candidates that the store held are gone" in said
    assert "they are in tr äces.duckdb.damaged-" in said


def test_every_table_is_written_as_parquet(store: Path, tmp_path: Path) -> None:
    merged(store, _query())
    with database.connect(store, read_only=True) as connection:
        counts = export.parquet(connection, tmp_path / "lake")
    assert set(counts) == {table.name for table in schema.TABLES}
    assert counts["candidates"] == 2
    with duckdb.connect() as plain:
        assert plain.execute(f"select count(*) from '{tmp_path}/lake/candidates.parquet'").fetchall() == [(2,)]


def test_a_stage_is_written_as_a_trec_run_by_rank(store: Path, tmp_path: Path) -> None:
    merged(store, _query("my question"))
    with database.connect(store, read_only=True) as connection:
        assert export.trec_run(connection, "dense search", tmp_path / "run") == 2
        with pytest.raises(StoreError, match="there are: dense search, generate"):
            export.trec_run(connection, "nothing", tmp_path / "run2")
    assert (tmp_path / "run").read_text() == "my%20question Q0 a 1 -1 r\nmy%20question Q0 b 2 -2 r\n"


def test_names_that_differ_in_blanks_only_stay_two_in_a_trec_run(store: Path, tmp_path: Path) -> None:
    merged(store, [*_query("a b"), *_query("a_b"), *_query("a%20b")])
    with database.connect(store, read_only=True) as connection:
        export.trec_run(connection, "dense search", tmp_path / "run")
    topics = {line.split()[0] for line in (tmp_path / "run").read_text().splitlines()}
    assert topics == {"a%20b", "a_b", "a%2520b"}


def test_of_a_question_asked_twice_in_a_run_the_newest_query_is_in_its_trec_run(store: Path, tmp_path: Path) -> None:
    merged(store, [*_query("q", at_ns=BEGIN_NS), *_query("q", at_ns=BEGIN_NS + 1_000_000), *_query("q", "other")])
    with database.connect(store, read_only=True) as connection:
        export.trec_run(connection, "dense search", tmp_path / "run")
    assert sorted((tmp_path / "run").read_text().splitlines()) == [
        "q Q0 a 1 -1 other", "q Q0 a 1 -1 r", "q Q0 b 2 -2 other", "q Q0 b 2 -2 r",
    ]  # fmt: skip


def test_chunks_that_hold_evidence_are_the_qrels(store: Path, tmp_path: Path) -> None:
    merged(store, [*ingested("d", ["a", "b"], [(0, 10), (10, 20)]), *_query()])
    with database.connect(store) as connection:
        connection.execute(
            "insert into evidence (evidence_id, question_id, set_no, need, is_need, level, grade, doc_id, start_at, end_at, n_characters, label_status)"
            " values ('q1#1.1', 'q1', 1, 'n', true, 'span', 2, 'd', 12, 15, 3, 'placed')"
        )
        connection.execute(
            "insert into evidence_places values ('q1#1.1', 'd', 'hash-1', true, 12, 15, 'exact', 1, null)"
        )
        assert export.trec_qrels(connection, tmp_path / "qrels") == 1
    assert (tmp_path / "qrels").read_text() == "q1 0 b 2\n"


def test_final_contexts_are_written_as_json_lines(store: Path, tmp_path: Path) -> None:
    merged(store, [*ingested("d", ["a"], [(0, 10)]), *_query()])
    with database.connect(store, read_only=True) as connection:
        assert export.contexts(connection, tmp_path / "contexts.jsonl") == 1
    written = json.loads((tmp_path / "contexts.jsonl").read_text())
    assert (written["question_id"], written["final_how"]) == ("q1", "only_generate")
    assert [(one["rank"], one["id"], one["ranges"]) for one in written["context"]] == [
        (1, "a", [{"start": 0, "end": 10}]),
        (2, "b", None),
    ]


def test_old_queries_go_with_all_that_is_theirs_and_documents_stay(store: Path) -> None:
    merged(
        store,
        [*ingested("d", ["a"], [(0, 10)]), *_query("old", at_ns=BEGIN_NS), *_query("new", at_ns=BEGIN_NS + 1_000_000)],
    )
    deleted = retention.delete(store, before_ns=BEGIN_NS + 500_000)
    assert (deleted.n_queries, deleted.n_stages, deleted.n_candidates) == (1, 2, 2)
    assert rows(store, "select question_id from queries") == [("new",)]
    assert rows(store, "select count(*) from candidates where list_id not in (select list_id from lists)") == [(0,)]
    assert rows(store, "select count(*) from index_writes") == [(2,)]


def test_a_run_goes_and_items_that_nothing_refers_to_with_it(store: Path) -> None:
    merged(store, [*_query("x", run="one"), *_query("y", run="two")])
    retention.delete(store, run="one")
    assert rows(store, "select count(*) from items") == [(2,)]
    assert retention.delete(store, run="two").n_items == 2
    assert rows(store, "select count(*) from items") == [(0,)]


def test_a_trial_says_what_would_go_and_changes_nothing(store: Path) -> None:
    merged(store, [*_query("x", run="one"), *_query("y", run="two")])
    tried = retention.delete(store, run="one", is_trial=True)
    assert rows(store, "select count(*) from queries") == [(2,)]
    assert retention.delete(store, run="one") == tried
    assert tried.n_queries == 1


def test_what_was_noted_of_losses_and_stray_runs_goes_by_age_alone(store: Path) -> None:
    loss = Record(
        "loss", {"process_id": 7, "reason": "queue_full", "n": 1, "first_at_ns": BEGIN_NS, "last_at_ns": BEGIN_NS}
    )
    stray = stage("retrieve", out(["z"]), is_orphan=True)
    merged(store, [process(), *_query("old"), loss, stray])
    retention.delete(store, before_ns=BEGIN_NS + 1_000_000, run="other")
    assert rows(store, "select (select count(*) from losses), (select count(*) from stages)") == [(1, 3)]
    assert retention.delete(store, before_ns=BEGIN_NS + 1_000_000).n_stages == 3
    assert rows(
        store, "select (select count(*) from losses), (select count(*) from stages), (select count(*) from items)"
    ) == [(0, 0, 0)]


def test_deleting_without_a_limit_is_refused(store: Path) -> None:
    with pytest.raises(StoreError, match="Say what to delete"):
        retention.delete(store)


def test_a_compacted_file_holds_the_same_and_the_views(store: Path) -> None:
    merged(store, _query())
    before = rows(store, "select * from stages order by all")
    compacted = retention.compact(store)
    assert compacted.bytes_after <= compacted.bytes_before
    assert rows(store, "select * from stages order by all") == before
    assert rows(store, "select count(*) > 0 from duckdb_views() where view_name = 'stage_loss'") == [(True,)]
    assert rows(store, "select count(*) from duckdb_columns() where table_name = 'queries' and comment is null") == [
        (0,)
    ]
    assert merged(store, _query(), "9-9-z.log").n_queries == 1
