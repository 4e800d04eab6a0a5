"""`ragtrace gold check`: each kind of wrong label is found, by itself and with what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ragtrace.errors import GoldError
from ragtrace.gold import checking, loading, placing, rows
from tests.unit.gold.conftest import Record

TEXT = "Refunds. Items can be returned within 30 days of purchase. Refunds above 500 need a lead."
QUOTE = "returned within 30 days"
START = TEXT.index(QUOTE)
GOOD = {"doc_id": "d", "start": START, "end": START + len(QUOTE), "quote": QUOTE}


def load(store: duckdb.DuckDBPyConnection, *items: dict[str, Any]) -> None:
    loading.load_rows(store, [{"question_id": "q", "question": "?", "gold": [{**i} for i in items]}], gold_set="set")


def problems(store: duckdb.DuckDBPyConnection) -> list[tuple[str, bool]]:
    return [(finding.problem, finding.is_wrong) for finding in checking.check(store)]


def test_good_labels_have_no_findings(store: duckdb.DuckDBPyConnection, record: Record) -> None:
    record("d", TEXT)
    load(store, GOOD, {"doc_id": "d"}, {"doc_id": "d", "quote": "30 days of purchase"})
    assert checking.check(store) == []


def test_a_store_without_labels_is_one_clear_sentence(store: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(GoldError, match="no labels are loaded"):
        checking.check(store)


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        ({**GOOD, "start": START + 4, "end": START + 4 + len(QUOTE)}, "misaligned"),
        ({"doc_id": "d", "start": 70, "end": 200}, "out_of_range"),
        ({"doc_id": "d", "quote": "Refunds"}, "ambiguous"),
        ({"doc_id": "d", "quote": "Bicycles are parked behind the warehouse"}, "text_missing"),
        ({"doc_id": "d", "quote": "Items can be retumed w1thin 30 days of purchose"}, "text_garbled"),
        ({**GOOD, "doc_id": "elsewhere"}, "document_unknown"),
        ({**GOOD, "doc_version": "9"}, "version_unknown"),
    ],
)
def test_a_wrong_label_is_found_with_what_to_do(
    store: duckdb.DuckDBPyConnection, record: Record, item: dict[str, Any], problem: str
) -> None:
    record("d", TEXT, version="1")
    load(store, GOOD, item)
    (finding,) = checking.check(store)
    assert (finding.problem, finding.is_wrong) == (problem, True)
    assert (finding.gold_set, finding.question_id, finding.evidence_id) == ("set", "q", "q#1.2")
    assert (finding.doc_id, finding.quote) == (item["doc_id"], item.get("quote"))
    assert finding.what_to_do


def test_a_label_that_only_an_older_text_holds_is_stale(store: duckdb.DuckDBPyConnection, record: Record) -> None:
    record("d", TEXT)
    record("d", TEXT.replace("30 days", "a fortnight"))
    load(store, GOOD)
    assert problems(store) == [("stale", True)]


def test_a_label_whose_passage_moved_is_not_stale(store: duckdb.DuckDBPyConnection, record: Record) -> None:
    record("d", TEXT)
    record("d", "New. " + TEXT)
    load(store, GOOD)
    assert problems(store) == []


def test_a_label_of_a_deleted_document_is_found(store: duckdb.DuckDBPyConnection, record: Record) -> None:
    record("d", TEXT)
    gone = {"ingest_id": 99, "doc_id": "d", "recorded_at_ns": 5000, "deleted_at_ns": 5000, "status": "ok"}
    rows.insert(store, "documents", [gone])
    load(store, GOOD)
    assert problems(store) == [("deleted", True)]
    record("d", TEXT, at=6000)
    assert problems(store) == []


def test_a_chunk_that_nothing_recorded_has_is_wrong_and_without_any_chunk_only_unchecked(
    store: duckdb.DuckDBPyConnection,
) -> None:
    load(store, {"chunk_id": "c", "level": "chunk"})
    assert problems(store) == [("unchecked", False)]
    store.execute("insert into items (item, chunk_id) values (1, 'other')")
    assert problems(store) == [("chunk_unknown", True)]


def test_what_is_used_on_trust_is_listed_apart(store: duckdb.DuckDBPyConnection, record: Record) -> None:
    load(store, GOOD)
    assert problems(store) == [("unchecked", False)]
    record("d", TEXT)
    load(store, {**GOOD, "end": GOOD["end"] + 3})
    assert problems(store) == [("inexact_range", False)]


def test_questions_that_their_text_does_not_tell_apart_are_listed(
    store: duckdb.DuckDBPyConnection, record: Record
) -> None:
    record("d", TEXT)
    loading.load_rows(store, [{"question_id": n, "question": "Same?", "gold": [GOOD]} for n in (1, 2)])
    assert problems(store) == [("question_repeated", False)] * 2


# ------------------------------------------------------------------ against a corpus


def corpus(path: Path, **texts: str) -> Path:
    path.write_text("".join(json.dumps({"doc_id": d, "text": t}) + "\n" for d, t in texts.items()), encoding="utf-8")
    return path


def test_a_corpus_by_path_is_enough_to_check_before_tracing(store: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    load(store, GOOD, {**GOOD, "start": 0, "end": len(QUOTE)})
    (finding,) = checking.check(store, corpus(tmp_path / "corpus.jsonl", d=TEXT))
    assert (finding.problem, finding.evidence_id) == ("misaligned", "q#1.2")


def test_checking_against_a_corpus_changes_nothing_in_the_store(
    store: duckdb.DuckDBPyConnection, record: Record, tmp_path: Path
) -> None:
    record("d", TEXT)
    load(store, GOOD)
    tables = ("evidence", "evidence_places", "parses", "texts", "documents")
    before = [store.execute(f"from main.{name}").fetchall() for name in tables]
    assert len(checking.check(store, corpus(tmp_path / "corpus.jsonl", d="Something else", e="x"))) == 1
    assert [store.execute(f"from main.{name}").fetchall() for name in tables] == before
    assert [store.execute(f"from {name}").fetchall() for name in tables] == before
    assert placing.place(store).n_labels == 0


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{}\n", "line 1: not a JSON object with a `doc_id` and a `text`"),
        ('{"doc_id": "d", "text": "x"}\n[]\n', "line 2: not a JSON object"),
        ('{"doc_id": "d", "text": "x"}\n{"doc_id": "d", "text": "y"}\n', "line 2: doc_id 'd' stands in it twice"),
        ("nonsense\n", "line 1"),
    ],
)
def test_a_corpus_that_cannot_be_read_says_where_and_leaves_no_trace(
    store: duckdb.DuckDBPyConnection, tmp_path: Path, content: str, reason: str
) -> None:
    load(store, GOOD)
    path = tmp_path / "corpus.jsonl"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(GoldError) as error:
        checking.check(store, path)
    assert reason in error.value.message
    assert problems(store) == [("unchecked", False)]


def test_a_corpus_that_is_not_there_is_one_clear_sentence(store: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    load(store, GOOD)
    with pytest.raises(GoldError, match="no such file"):
        checking.check(store, tmp_path / "nowhere.jsonl")
