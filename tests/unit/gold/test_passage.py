"""One quote and no gold file: found in the documents, judged for one query, nothing stored."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from ragtrace import digest
from ragtrace.errors import GoldError, QuestionNotFoundError
from ragtrace.gold import checking, loading, passage, rows
from ragtrace.store import database, views
from tests.unit.gold.conftest import Record

TEXT = "Refunds. Items can be returned within 30 days of purchase. Keep the receipt."
QUOTE = "returned within 30 days"
START = TEXT.index(QUOTE)


def test_a_quote_is_found_to_the_letter_newest_text_first(store: duckdb.DuckDBPyConnection, record: Record) -> None:
    old, other, new = record("d", TEXT), record("a", "x " + TEXT), record("d", "New. " + TEXT)
    found = passage.locate(store, QUOTE)
    assert [(p.doc_id, p.text_hash, p.is_newest, p.start_at) for p in found] == [
        ("a", other, True, START + 2),
        ("d", new, True, START + 5),
        ("d", old, False, START),
    ]
    assert {(p.quality, p.similarity, p.text) for p in found} == {("exact", 1.0, QUOTE)}


def test_every_place_in_a_document_is_found(store: duckdb.DuckDBPyConnection, record: Record) -> None:
    record("d", "day by day by day")
    assert [p.start_at for p in passage.locate(store, "day")] == [0, 7, 14]


def test_a_quote_is_found_in_normal_form(store: duckdb.DuckDBPyConnection, record: Record) -> None:
    record("d", TEXT)
    (found,) = passage.locate(store, "returned\n within  30\u00a0days")
    assert (found.quality, found.text) == ("normalized", QUOTE)


def test_the_nearest_passage_is_offered_with_its_similarity(store: duckdb.DuckDBPyConnection, record: Record) -> None:
    record("d", TEXT)
    record("e", "Bicycles are parked behind the warehouse.")
    found = passage.locate(store, "Items may be returned in 30 days from purchase")
    assert (found[0].doc_id, found[0].quality) == ("d", "nearest")
    assert 0.6 < found[0].similarity < 1


def test_nothing_like_it_is_an_empty_list(store: duckdb.DuckDBPyConnection, record: Record) -> None:
    record("d", TEXT)
    assert passage.locate(store, "完全に違う文章です") == []


def test_one_document_can_be_named(store: duckdb.DuckDBPyConnection, record: Record) -> None:
    record("d", TEXT)
    record("e", TEXT + " ")
    assert [p.doc_id for p in passage.locate(store, QUOTE, doc_id="e")] == ["e"]


def test_a_document_that_is_not_recorded_is_named_with_the_nearest(
    store: duckdb.DuckDBPyConnection, record: Record
) -> None:
    record("handbook.txt", TEXT)
    record("fees.txt", TEXT)
    with pytest.raises(GoldError) as caught:
        passage.locate(store, QUOTE, "handbok.txt")
    assert caught.value.message == (
        "no document 'handbok.txt' is recorded in this store; nearest: 'handbook.txt', 'fees.txt'"
    )


def test_without_any_captured_text_or_quote_it_says_what_to_do(
    store: duckdb.DuckDBPyConnection, record: Record
) -> None:
    record("d", TEXT, is_captured=False)
    with pytest.raises(GoldError, match="no parsed text was captured"):
        passage.locate(store, QUOTE)
    with pytest.raises(GoldError, match="the quote is empty"):
        passage.locate(store, " ")


# ------------------------------------------------------------------ evidence for one look


@pytest.fixture
def asked(store: duckdb.DuckDBPyConnection, record: Record) -> duckdb.DuckDBPyConnection:
    """A store with three documents, a gold question and three queries: by id, by text, by neither."""
    views.create(store, views.load())
    record("d", TEXT)
    record("e", "In short: " + QUOTE + ".")
    record("f", "Bicycles.")
    loading.load_rows(store, [{"question_id": "q", "question": "How long?", "gold": [{"doc_id": "f"}]}])
    hashed = digest.of_text("How long?")
    rows.insert(
        store,
        "queries",
        [
            {"query_id": 1, "question_id": "q", "question_hash": hashed},
            {"query_id": 2, "question_hash": digest.of_text("Since when?")},
        ],
    )
    return store


def test_a_quote_stands_in_front_of_the_loaded_labels_and_goes_away(asked: duckdb.DuckDBPyConnection) -> None:
    before = asked.execute("from evidence").fetchall()
    with passage.with_temporary_evidence(asked, 1, [QUOTE]) as temporary:
        assert temporary.question_id == "q"
        found = asked.execute("select doc_id, need, label_status, span_text from evidence order by doc_id").fetchall()
        assert found == [("d", "quote 1", "placed", QUOTE), ("e", "quote 1", "placed", QUOTE)]
        assert asked.execute("select question_id from questions").fetchall() == [("q",)]
    assert asked.execute("from evidence").fetchall() == before
    assert asked.execute("select question_id from questions").fetchall() == [("q",)]


def test_a_query_without_an_id_is_joined_by_its_text(asked: duckdb.DuckDBPyConnection) -> None:
    with passage.with_temporary_evidence(asked, 2, [QUOTE]) as temporary:
        assert temporary.question_id == "query 2"
        found = asked.execute(
            "select query_id from queries join questions on queries.question_hash = questions.question_hash"
        ).fetchall()
        assert found == [(2,)]


def test_several_quotes_are_several_needs(asked: duckdb.DuckDBPyConnection) -> None:
    with passage.with_temporary_evidence(asked, 1, [QUOTE, "Keep the receipt"]):
        found = asked.execute("select distinct need from evidence order by 1").fetchall()
        assert found == [("quote 1",), ("quote 2",)]


def test_a_damaged_quote_is_laid_on_the_document_that_nearly_has_it(asked: duckdb.DuckDBPyConnection) -> None:
    with passage.with_temporary_evidence(asked, 1, ["Items can be retumed w1thin 30 days of purchose"]):
        assert asked.execute("select doc_id, label_status from evidence").fetchall() == [("d", "text_garbled")]


def test_a_quote_that_no_document_has_needs_the_documents_name(asked: duckdb.DuckDBPyConnection) -> None:
    lost = "The warranty for frozen goods ends after seven weeks"
    with (
        pytest.raises(GoldError, match="no recorded document has this passage"),
        passage.with_temporary_evidence(asked, 1, [lost]),
    ):
        pass
    with passage.with_temporary_evidence(asked, 1, [lost], doc_id="f"):
        assert asked.execute("select doc_id, label_status from evidence").fetchall() == [("f", "text_missing")]
    assert asked.execute("select doc_id from evidence").fetchall() == [("f",)]


def test_an_unknown_query_is_one_clear_sentence(asked: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(QuestionNotFoundError, match="no query 9"), passage.with_temporary_evidence(asked, 9, [QUOTE]):
        pass


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A store on disk with its views, one document and one query."""
    path = tmp_path / "store.duckdb"
    text_hash = digest.of_text(TEXT)
    with database.connect(path) as connection:
        rows.insert(connection, "documents", [{"ingest_id": 1, "doc_id": "d", "recorded_at_ns": 1, "status": "ok"}])
        parse = {"stage_id": 1, "doc_id": "d", "text_hash": text_hash, "n_characters": len(TEXT), "parsed_at_ns": 2}
        rows.insert(connection, "parses", [parse])
        rows.insert(connection, "texts", [{"text_hash": text_hash, "text": TEXT, "is_aligned": True}])
        query = {"query_id": 5, "question_hash": digest.of_text("How long?"), "status": "ok", "started_at_ns": 9}
        rows.insert(connection, "queries", [query])
    return path


def test_the_views_of_a_read_only_store_judge_the_quote(file: Path) -> None:
    with database.connect(file, read_only=True) as connection:
        assert connection.execute("from needed_evidence").fetchall() == []
        with passage.with_temporary_evidence(connection, 5, [QUOTE]):
            found = connection.execute("select question_id, doc_id, n_characters from needed_evidence").fetchall()
            assert found == [("query 5", "d", len(QUOTE))]
        assert connection.execute("from needed_evidence").fetchall() == []


def test_a_read_only_store_can_be_checked_against_a_corpus(file: Path, tmp_path: Path) -> None:
    with database.connect(file) as connection:
        loading.load_rows(connection, [{"question_id": "q", "gold": [{"doc_id": "d", "quote": QUOTE}]}])
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text('{"doc_id": "d", "text": "nothing of it"}', encoding="utf-8")
    with database.connect(file, read_only=True) as connection:
        assert [finding.problem for finding in checking.check(connection, corpus)] == ["text_missing"]
        assert checking.check(connection) == []
