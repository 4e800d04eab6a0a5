"""Verdicts in plain words, from rows as `why_reasons` gives them."""

import re
from pathlib import Path

import pytest

from ragtrace.reports import catalogue, drift, sentences

ROW = dict.fromkeys(column.name for column in catalogue.find("why_reasons").columns)


def row(**values):
    assert set(values) <= set(ROW)
    return {**ROW, "verdict": "lost", "lost_at": "in", **values}


RERANKED = row(lost_kind="rerank", lost_stage="ce", stage="ce", reason="reranked_out", rank_after=9, n_out=8, gap=0.02)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (RERANKED, "lost in ce (rerank): 9th by the reranker, only 8 go on, 0.02 behind"),
        (row(lost_kind="rerank", lost_stage="ce", stage="ce", reason="reranked_out", rank_before=21, n_out=1),
         "lost in ce (rerank): 21st in the list it took, only 1 goes on"),
        (row(lost_kind="retrieve", lost_stage="bm25 or dense", stage="dense", reason="unprobed"),
         "lost in bm25 or dense (retrieve): the record alone does not prove why"),
        (row(lost_kind="truncate", lost_stage="pack", stage="pack", reason="over_budget", rank_before=3, tokens=212, budget=800),
         "lost in pack (truncate): 3rd in line, needed 212 tokens, the budget is 800"),
        (row(lost_kind="filter", lost_stage="acl", stage="acl", reason="dropped", detail="tenant by acl_rule"),
         "lost in acl (filter): the stage declared that it dropped it (tenant by acl_rule)"),
        (row(lost_kind="filter", lost_stage="min", stage="min", reason="below_threshold", score=0.41, threshold=0.5),
         "lost in min (filter): its score 0.41 did not reach the threshold 0.5"),
        (row(lost_kind="retrieve", lost_stage="dense", lost_at="after", stage="dense", reason="stage_failed",
             cause_stage="ce", detail="TimeoutError"), "lost after dense (retrieve): ce failed with TimeoutError"),
        (row(lost_kind="chunk", lost_stage="chunk", reason="not_covered"), "lost in chunk: no chunk covers it whole"),
        (row(between_first="ingest", between_last="in dense", reason="unprobed"),
         "lost between ingest and in dense: the record alone does not prove why"),
        (row(verdict="kept"), "kept: it reached the final context"),
        (row(verdict="unobserved", between_first="after dense"),
         "unobserved: what was recorded does not tell whether it arrived; surely there up to: after dense"),
        (row(verdict="stale", detail="the passage changed"), "kept apart as stale, counted nowhere: the passage changed"),
    ],
)  # fmt: skip
def test_a_verdict_is_one_sentence(given, said):
    assert sentences.verdict(given) == said


PROBED = {"stage": "dense", "lost_kind": "retrieve", "lost_stage": "dense", "proof": "probe", "k": 50}
IN_WORDS = {
    "not_run": ({}, "no retriever ran for this query, though the run has one"),
    "wrong_index": ({}, "another index was searched than the one it is in"),
    "stage_failed": ({"stage": "ce", "detail": "TimeoutError"}, "ce failed with TimeoutError"),
    "not_consumed": ({}, "nothing took that stage's output"),
    "stale_cache": ({}, "the same chunk came back with an older text"),
    "untraced_gap": (
        {"rank_before": 3}, "it came out, ranked 3rd there, and something outside every recorded stage dropped it"
    ),
    "parse_error": ({"detail": "ValueError"}, "the parser failed with ValueError"),
    "text_missing": ({}, "the passage is not in the parsed text"),
    "text_garbled": ({"similarity": 0.874}, "the parsed text has the passage only garbled: 87% of its letters in order"),
    "not_covered": ({}, "no chunk covers it whole"),
    "duplicate_id": ({}, "another chunk took its id"),
    "not_indexed": ({"proof": "probe"}, "the index does not have its chunk: asked for by its id, it is not there"),
    "not_visible_yet": ({}, "its chunk was written after the query had started"),
    "filtered": (
        {**PROBED, "probe": "unfiltered", "rank_after": 3},
        "the filter inside the store kept it out: ranked 3rd without it, k was 50",
    ),
    "below_threshold": (
        {**PROBED, "probe": "exact", "score": 0.41, "threshold": 0.5, "gap": 0.09, "rank_after": 3},
        "its score 0.41 did not reach the threshold 0.5, 0.09 short; ranked 3rd by exact search, k was 50",
    ),
    "fused_out": ({"rank_before": 40, "n_out": 30}, "40th in one of the lists it took, only 30 go on"),
    "deduplicated": ({}, "an item with the same text was taken instead"),
    "reranked_out": ({"rank_after": 9, "n_out": 8, "gap": 0.02}, "9th by the reranker, only 8 go on, 0.02 behind"),
    "over_budget": (
        {"rank_before": 4, "tokens": 212, "budget": 3000, "tokens_left": 40},
        "4th in line, needed 212 tokens, 40 of 3000 were left",
    ),
    "cut_inside": ({}, "its chunk was cut, and the cut took it away"),
    "compressed_away": ({}, "compression left it out"),
    "document_absent": ({"proof": "declared"}, "the document is not in the source"),
    "stale_version": ({"proof": "declared"}, "the source had the newer version, the index did not"),
    "dropped": ({"detail": "tenant by acl"}, "the stage declared that it dropped it (tenant by acl)"),
    "ann_miss": (
        {**PROBED, "probe": "exact", "rank_after": 7},
        "the approximate search missed it: ranked 7th by exact search, k was 50",
    ),
    "below_k": ({**PROBED, "probe": "exact", "rank_after": 83}, "ranked 83rd by exact search, k was 50"),
    "query_drift": (
        {**PROBED, "probe": "original_question", "rank_original": 4, "rank_after": 83, "cause_stage": "rewrite",
         "question": "how many visitors came in 2021?", "query_text": "number of visitors"},
        "the rewrite lost the year 2021: ranked 4th by the question as asked, 83rd by the query used, k was 50",
    ),
    "unprobed": (
        {"lost_kind": "retrieve", "probe": "exact"},
        "the record alone does not prove why; `ragtrace probe` can, by exact search",
    ),
}  # fmt: skip


def test_every_reason_there_is_has_its_words():
    """A reason without words would be shown by its code."""
    reasons = re.findall(r"^ +when '(\w+)' then \d+$", catalogue.find("span_reasons").sql, re.MULTILINE)

    assert len(reasons) > 20
    assert set(reasons) == set(sentences.REASONS) == set(IN_WORDS)


@pytest.mark.parametrize("reason", IN_WORDS)
def test_each_reason_is_said_with_its_numbers(reason):
    values, said = IN_WORDS[reason]

    assert sentences.reason(row(reason=reason, **values)) == said


def test_each_reason_stands_on_the_page_of_reasons():
    page = (Path(__file__).resolve().parents[3] / "docs" / "reasons.md").read_text(encoding="utf-8")

    assert {reason for reason in sentences.REASONS if f"| `{reason}` |" not in page} == {"unprobed"}


@pytest.mark.parametrize(
    ("proof", "probe", "said"),
    [
        ("record", None, "proved by the record"),
        ("declared", None, "proved by what was declared"),
        ("probe", "exact", "proved by a probe of the same index: exact search"),
        (None, "exact", ""),
    ],
)
def test_the_class_of_proof_is_said(proof, probe, said):
    assert sentences.proof(row(proof=proof, probe=probe)) == said


@pytest.mark.parametrize(
    ("question", "query", "said"),
    [
        ("Revenue of Kepler Ltd in 2021 and 2022?", "revenue of Kepler Ltd", "the years 2021 and 2022"),
        ("Is section 17.4 in force?", "section in force", "the number 17.4"),
        ("Where did Kepler live?", "where did she live", "the name Kepler"),
        ("may dogs enter the library", "may dogs enter", "the word library"),
        ("may dogs enter", "may dogs enter the library", ""),
        ("", "", ""),
    ],
)
def test_what_a_rewrite_dropped_is_named_by_its_weight(question, query, said):
    """Years before numbers before names before other words."""
    assert drift.dropped(question, query) == said


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (RERANKED, "Nearest change: ce lets 9 through instead of 8."),
        ({**RERANKED, "rank_after": None}, ""),
        ({**RERANKED, "n_out": 12}, ""),
        (row(reason="below_threshold", stage="min", score=0.41, threshold=0.5),
         "Nearest change: a threshold of 0.41 in min instead of 0.5."),
        (row(reason="unprobed"), ""),
        (row(reason="below_k", stage="dense", rank_after=83, k=50, n_out=50),
         "Nearest change: dense asks for 83 instead of 50."),
        (row(reason="below_k", stage="dense", rank_after=83, k=50, proof="probe", probe="deeper", mode="ann"),
         "Nearest change: dense asks for 83 instead of 50."),
        (row(reason="below_k", stage="dense", rank_after=83, k=50, proof="probe", probe="exact", mode="lexical"),
         "Nearest change: dense asks for 83 instead of 50."),
        (row(reason="below_k", stage="dense", rank_after=83, k=50, proof="probe", probe="exact", mode="ann"),
         "Nearest change: dense asks for 83 instead of 50, as far as its approximate search then returns what exact "
         "search ranks there."),
    ],
)  # fmt: skip
def test_a_change_is_named_only_where_the_record_proves_it(given, said):
    assert sentences.change(given) == said


@pytest.mark.parametrize(
    ("n", "said"), [(1, "1st"), (2, "2nd"), (3, "3rd"), (11, "11th"), (12, "12th"), (21, "21st"), (113, "113th")]
)
def test_ranks_are_said_as_people_say_them(n, said):
    given = {**RERANKED, "rank_after": n, "gap": None, "n_out": 0}

    assert sentences.reason(given) == f"{said} by the reranker, none goes on"


def test_notes_are_clauses():
    assert sentences.notes(row(notes="split, cut_in_tie")) == [
        "it was cut into several chunks", "the cut fell between equal scores"
    ]  # fmt: skip
    assert sentences.notes(row()) == []
