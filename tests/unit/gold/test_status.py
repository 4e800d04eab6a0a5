"""`ragtrace gold status`: what each set holds, counted by hand."""

from __future__ import annotations

import duckdb

from ragtrace import digest
from ragtrace.gold import loading, rows
from ragtrace.gold.status import status
from tests.unit.gold.conftest import Record


def test_without_gold_there_are_no_sets(store: duckdb.DuckDBPyConnection) -> None:
    assert status(store) == []


def test_a_set_is_counted(store: duckdb.DuckDBPyConnection, record: Record) -> None:
    record("d", "One lovely day. Another day.")
    lovely = {"doc_id": "d", "quote": "lovely"}
    loading.load_rows(
        store,
        [
            {
                "question_id": "a",
                "question": "A?",
                "gold": [lovely, {"doc_id": "d"}],
                "source": "log",
                "reviewed_by": "me",
            },
            {
                "question_id": "b",
                "question": "B?",
                "gold": [lovely],
                "alternatives": [[{"doc_id": "d", "quote": "day"}]],
            },
            {
                "question_id": "c",
                "question": "C?",
                "gold_mode": "any",
                "gold": [lovely, {"doc_id": "x", "quote": "y"}, {"doc_id": "d", "grade": 0}],
                "distractors": [{"doc_id": "d", "quote": "Another"}],
            },
            {"question_id": "e", "question": "E?", "gold": []},
            {"question_id": "f", "question": "F?", "kind": "evidence_unknown"},
        ],
        gold_set="mine",
    )
    by_id = {"query_id": 1, "question_id": "a"}
    by_text = {"query_id": 2, "question_hash": digest.of_text("B?")}
    rows.insert(store, "queries", [by_id, by_text, {"query_id": 3, "question_hash": digest.of_text("?")}])
    (found,) = status(store)
    counted = {name: value for name, value in found.items() if value}
    assert counted == {
        "gold_set": "mine",
        "n_questions": 5,
        "n_asked": 2,
        "n_unanswerable": 1,
        "n_evidence_unknown": 1,
        "n_sets": 4,
        "n_needs": 5,
        "n_spans": 6,
        "n_not_needed": 1,
        "n_distractors": 1,
        "n_level_span": 5,
        "n_level_document": 1,
        "n_mode_all": 4,
        "n_mode_any": 1,
        "n_placed": 6,
        "n_ambiguous": 1,
        "n_document_unknown": 1,
        "placed_share": 6 / 8,
        "source_share": 1 / 5,
        "reviewed_share": 1 / 5,
    }
