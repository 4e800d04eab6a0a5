"""Public gold sets load as they are: counts recomputed here from the raw lines, every label where its set says.

The sets are not part of the checkout; RAGTRACE_SHARED_DATA names their folder (default: ../shared/data beside it).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pytest

from ragtrace.gold import checking, loading
from tests.unit.gold.conftest import Record

SETS = (
    "chroma_chunking",
    "cmrc2018_dev",
    "expmrc_en",
    "expmrc_zh",
    "financebench_pdf_dev",
    "hotpotqa_100",
    "policyqa_dev",
    "ramdocs_conflict",
    "squad2_dev_half",
    "vaswani_npl",
    "xquad_6langs",
)


def folder(name: str) -> Path:
    """The set's folder; skips with the reason where it is absent."""
    root = os.environ.get("RAGTRACE_SHARED_DATA")
    beside = Path(__file__).resolve().parents[4] / "shared" / "data"
    path = (Path(root) if root else beside) / name
    if not (path / "questions.jsonl").is_file():
        pytest.skip(f"the gold set {name} is not on this machine (RAGTRACE_SHARED_DATA)")
    return path


def lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            yield json.loads(line)


class Expected(NamedTuple):
    n_questions: int
    n_spans: int
    n_sets: int
    n_duplicates: int
    n_unanswerable: int


def expected(path: Path) -> Expected:
    """Counted from the raw lines, by nothing but what the README of the sets says."""
    n_questions = n_spans = n_sets = n_duplicates = n_unanswerable = 0
    for question in lines(path / "questions.jsonl"):
        n_questions += 1
        n_unanswerable += question["gold"] == []
        for items in [question["gold"], *question.get("alternatives", [])]:
            one_per_answer = question.get("gold_mode") == "one_per_answer"
            distinct = {(i["doc_id"], i["start"], i["end"], i["answer"] if one_per_answer else None) for i in items}
            n_sets += bool(items)
            n_spans += len(distinct)
            n_duplicates += len(items) - len(distinct)
    return Expected(n_questions, n_spans, n_sets, n_duplicates, n_unanswerable)


@pytest.mark.parametrize("name", SETS)
def test_a_public_set_loads_as_it_is(store: duckdb.DuckDBPyConnection, name: str) -> None:
    path = folder(name)
    loaded = loading.load(store, path / "questions.jsonl")
    seen = (loaded.n_questions, loaded.n_spans, loaded.n_sets, loaded.n_duplicates, loaded.n_unanswerable)
    assert seen == expected(path)
    assert (loaded.gold_set, loaded.bad, loaded.n_evidence_unknown) == (name, [], 0)
    assert store.execute("select count(*) from evidence").fetchall() == [(loaded.n_spans,)]


@pytest.mark.parametrize("name", SETS)
def test_every_label_of_a_public_set_is_right_in_its_corpus(store: duckdb.DuckDBPyConnection, name: str) -> None:
    """The sets' own check found that text[start:end] is the quote for every span."""
    path = folder(name)
    loading.load(store, path / "questions.jsonl")
    findings = checking.check(store, path / "corpus.jsonl")
    assert [finding for finding in findings if finding.is_wrong] == []
    assert {finding.problem for finding in findings} <= {"question_repeated"}


def test_each_answer_of_a_conflict_set_is_a_need(store: duckdb.DuckDBPyConnection) -> None:
    path = folder("ramdocs_conflict")
    loading.load(store, path / "questions.jsonl")
    found = dict(
        store.execute(
            "select question_id, list_sort(list(distinct need)) from evidence group by question_id"
        ).fetchall()
    )
    wanted = {q["question_id"]: sorted({i["answer"] for i in q["gold"]}) for q in lines(path / "questions.jsonl")}
    assert found == wanted
    kept = store.execute("select count(*) from questions where extra like '%\"conflicting\":%'").fetchall()
    assert kept == [(len(wanted),)]


def test_relevant_documents_are_any_of_one_need_at_document_level(store: duckdb.DuckDBPyConnection) -> None:
    path = folder("vaswani_npl")
    loading.load(store, path / "questions.jsonl")
    assert store.execute("select distinct level, need, is_need, n_characters from evidence").fetchall() == [
        ("document", "any", True, 1)
    ]


def test_keys_of_a_sets_own_are_kept(store: duckdb.DuckDBPyConnection) -> None:
    loading.load(store, folder("hotpotqa_100") / "questions.jsonl")
    assert store.execute("select distinct level from evidence").fetchall() == [("span",)]
    (extra,) = store.execute("select extra from questions where question_id = '5a77ec115542992a6e59dff7'").fetchall()[0]
    assert json.loads(extra)["level"] == "easy"
    policies = folder("policyqa_dev")
    loading.load(store, policies / "questions.jsonl")
    first = next(lines(policies / "questions.jsonl"))
    (extra,) = store.execute("select extra from questions where question_id = ?", [first["question_id"]]).fetchall()[0]
    assert json.loads(extra)["scope_doc_id"] == first["scope_doc_id"]


def test_two_sets_that_label_the_same_questions_differently_are_told_apart(store: duckdb.DuckDBPyConnection) -> None:
    """expmrc_zh asks the questions of cmrc2018_dev and marks whole sentences instead of answers."""
    loading.load(store, folder("cmrc2018_dev") / "questions.jsonl")
    n_both = sum(1 for _ in lines(folder("expmrc_zh") / "questions.jsonl"))
    loaded = loading.load(store, folder("expmrc_zh") / "questions.jsonl", replace=True)
    assert loaded.n_questions == n_both
    counts = dict(store.execute("select gold_set, count(*) from questions group by gold_set").fetchall())
    assert counts == {"cmrc2018_dev": 3219 - n_both, "expmrc_zh": n_both}


@pytest.mark.parametrize(("unit", "width", "name"), [("utf-16-le", 2, "UTF-16"), ("utf-8", 1, "UTF-8")])
def test_labels_counted_in_another_unit_are_caught_and_the_unit_is_named(
    store: duckdb.DuckDBPyConnection, record: Record, unit: str, width: int, name: str
) -> None:
    """Six scripts, each text behind an emoji: a label is misaligned wherever the unit moves it past a letter."""
    path = folder("xquad_6langs")
    texts = {
        r["doc_id"]: "\U0001f642" + r["text"] for r in lines(path / "corpus.jsonl") if r["doc_id"].endswith("-000")
    }
    for doc_id, text in texts.items():
        record(doc_id, text)
    questions = []
    moved: set[str] = set()
    for question in lines(path / "questions.jsonl"):
        (item,) = question["gold"]
        text = texts.get(item["doc_id"])
        if text is None:
            continue
        at = item["start"] + 1
        assert text[at : at + len(item["quote"])] == item["quote"]
        start = len(text[:at].encode(unit)) // width
        end = start + len(item["quote"].encode(unit)) // width
        if any(char.isalnum() for char in text[at:start]):
            moved.add(question["question_id"])
        questions.append({**question, "gold": [{**item, "start": start, "end": end}]})
    loading.load_rows(store, questions)
    found = store.execute("select question_id, label_note from evidence where label_status = 'misaligned'").fetchall()
    assert len(moved) > 500
    assert moved <= {question_id for question_id, _ in found}
    assert sum(name in note for _, note in found) >= 0.98 * len(found)
