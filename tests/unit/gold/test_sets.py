"""The rules of a gold line: sets, needs, levels, duplicates, and the reason for every line that cannot be loaded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ragtrace import digest
from ragtrace.gold.sets import BadLabelError, read

SPAN = {"doc_id": "d", "start": 3, "end": 9, "quote": "lovely"}


def line(**keys: Any) -> dict[str, Any]:
    return {"question_id": "q", "question": "What?", "gold": [SPAN], **keys}


def item(**keys: Any) -> dict[str, Any]:
    return {**SPAN, **keys}


def needs(labels: Any) -> list[tuple[int, str, bool]]:
    return [(row["set_no"], row["need"], row["is_need"]) for row in labels.evidence]


def test_a_span_keeps_what_was_labelled() -> None:
    (row,) = read(line(gold=[item(doc_version="v1", match="exact")])).evidence
    assert row["evidence_id"] == "q#1.1"
    assert (row["doc_id"], row["doc_version"], row["start_at"], row["end_at"]) == ("d", "v1", 3, 9)
    assert (row["quote"], row["level"], row["grade"]) == ("lovely", "span", 1.0)
    assert json.loads(row["extra"]) == {"match": "exact"}


def test_a_question_joins_by_the_hash_of_its_text() -> None:
    assert read(line()).question["question_hash"] == digest.of_text("What?")


def test_items_without_need_are_needs_of_their_own_beside_named_ones() -> None:
    gold = [SPAN, item(start=20, end=26, need="#1"), item(start=40, end=46, need="b"), item(start=60, end=66, need="b")]
    found = needs(read(line(gold=gold)))
    assert len({need for _, need, _ in found}) == 3
    assert found[2][1] == found[3][1] == "b"


def test_any_makes_one_need_of_all_items() -> None:
    gold = [SPAN, item(start=20, end=26)]
    assert {need for _, need, _ in needs(read(line(gold=gold, gold_mode="any")))} == {"any"}


def test_one_per_answer_takes_the_answer_as_need() -> None:
    gold = [item(answer="a"), item(start=20, end=26, answer="b"), item(start=40, end=46, answer="a")]
    assert [need for _, need, _ in needs(read(line(gold=gold, gold_mode="one_per_answer")))] == ["a", "b", "a"]


def test_alternatives_are_further_sets() -> None:
    labels = read(line(alternatives=[[item(end=12, quote="lovely an")], [item(end=15, quote="lovely and s")]]))
    assert labels.n_sets == 3
    assert [row["evidence_id"] for row in labels.evidence] == ["q#1.1", "q#2.1", "q#3.1"]


def test_grade_zero_is_kept_but_never_a_need() -> None:
    gold = [SPAN, item(start=20, end=26, grade=0), item(start=40, end=46, grade=-1), item(start=60, end=66, grade=2)]
    assert [is_need for _, _, is_need in needs(read(line(gold=gold)))] == [True, False, False, True]


def test_a_question_with_nothing_but_grade_zero_has_unknown_evidence() -> None:
    question = read(line(gold=[item(grade=0)])).question
    assert question["is_evidence_unknown"]
    assert not question["is_unanswerable"]


def test_distractors_stand_in_set_zero_and_are_no_need() -> None:
    labels = read(line(distractors=[{"doc_id": "old", "quote": "ugly"}]))
    row = labels.evidence[-1]
    assert (row["evidence_id"], row["set_no"], row["is_need"], row["is_distractor"]) == ("q#0.1", 0, False, True)
    assert labels.n_sets == 1


@pytest.mark.parametrize(
    ("keys", "is_unanswerable", "is_unknown"),
    [
        ({"gold": []}, True, False),
        ({"gold": [], "kind": "evidence_unknown"}, False, True),
        ({"gold": None, "kind": "evidence_unknown"}, False, True),
        ({"gold": [SPAN]}, False, False),
    ],
)
def test_empty_gold_is_unanswerable_unless_the_evidence_is_unknown(
    keys: dict[str, Any], is_unanswerable: bool, is_unknown: bool
) -> None:
    question = read(line(**keys)).question
    assert (question["is_unanswerable"], question["is_evidence_unknown"]) == (is_unanswerable, is_unknown)


@pytest.mark.parametrize(
    ("keys", "level"),
    [
        ({"doc_id": "d", "quote": "lovely"}, "span"),
        ({"doc_id": "d", "start": 3, "end": 9}, "span"),
        ({"doc_id": "d", "start": 3, "end": 9, "quote": None}, "document"),
        ({"doc_id": "d", "quote": None}, "document"),
        ({"doc_id": "d"}, "document"),
        ({"doc_id": "d", "start": 3, "end": 9, "quote": None, "level": "page"}, "page"),
        ({"chunk_id": "c"}, "chunk"),
        ({"chunk_id": 7, "level": "chunk"}, "chunk"),
    ],
)
def test_the_level_follows_from_what_is_given(keys: dict[str, Any], level: str) -> None:
    (row,) = read(line(gold=[keys])).evidence
    assert row["level"] == level


def test_a_negative_start_beside_a_quote_is_no_offset() -> None:
    """SQuAD-like sets write -1 where an annotator's text does not stand literally in the paragraph."""
    (row,) = read(line(gold=[item(start=-1, end=14)])).evidence
    assert (row["start_at"], row["end_at"], row["level"]) == (None, None, "span")


def test_whole_numbers_that_a_table_turned_into_floats_are_offsets() -> None:
    (row,) = read(line(gold=[item(start=3.0, end=9.0)])).evidence
    assert (row["start_at"], row["end_at"]) == (3, 9)


def test_ids_that_are_numbers_are_read_as_text() -> None:
    labels = read({"question_id": 7, "gold": [{"doc_id": 12, "quote": "x"}]})
    assert labels.question["question_id"] == "7"
    assert labels.question["question_hash"] is None
    assert labels.evidence[0]["doc_id"] == "12"


def test_unknown_keys_are_kept_and_a_top_level_level_is_no_evidence_level() -> None:
    labels = read(line(level="easy", scope_doc_id="d", tags="one"))
    assert json.loads(labels.question["extra"]) == {"level": "easy", "scope_doc_id": "d"}
    assert labels.evidence[0]["level"] == "span"
    assert labels.question["tags"] == ["one"]


def test_equal_labels_count_once_and_the_quote_and_higher_grade_are_kept() -> None:
    bare = {"doc_id": "d", "start": 3, "end": 9}
    labels = read(line(gold=[bare, item(grade=3), item()]))
    (row,) = labels.evidence
    assert labels.n_duplicates == 2
    assert (row["quote"], row["grade"]) == ("lovely", 3.0)


def test_equal_ranges_with_different_quotes_are_both_kept() -> None:
    """One of them is wrong; dropping either in silence could drop the right one."""
    labels = read(line(gold=[SPAN, item(quote="lively")]))
    assert (len(labels.evidence), labels.n_duplicates) == (2, 0)


def test_one_range_that_serves_two_named_needs_is_two_labels() -> None:
    labels = read(line(gold=[item(need="a"), item(need="b")]))
    assert len(labels.evidence) == 2


def test_a_set_that_repeats_another_counts_once() -> None:
    other = item(start=20, end=26)
    labels = read(line(gold=[SPAN, other], alternatives=[[other, SPAN], [SPAN]]))
    assert (labels.n_sets, labels.n_duplicates) == (2, 2)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ([1], "not a JSON object"),
        ({"question": "What?", "gold": []}, "no `question_id`"),
        ({"question_id": "", "gold": []}, "no `question_id`"),
        ({"question_id": True, "gold": []}, "`question_id` is True"),
        (line(question=5), "`question` is not a text"),
        ({"question_id": "q", "question": "What?"}, "no `gold`"),
        (line(gold={"doc_id": "d"}), "`gold` is not a list"),
        (line(gold_mode="most"), "`gold_mode` is 'most'"),
        (line(gold=["d"]), "item 1 of set 1 is not a JSON object"),
        (line(gold=[{"quote": "x"}]), "item 1 of set 1: no `doc_id`"),
        (line(gold=[item(quote=5)]), "`quote` is not a text"),
        (line(gold=[item(quote="  ")]), "`quote` is empty"),
        (line(gold=[item(end=None)]), "only one of `start` and `end`"),
        (line(gold=[{"doc_id": "d", "start": -1, "end": 4}]), "`start` is -1"),
        (line(gold=[item(start=9, end=9)]), "the range 9 to 9 is empty"),
        (line(gold=[item(start="3")]), "`start` is '3', not a whole number"),
        (line(gold=[item(start=True)]), "`start` is True, not a whole number"),
        (line(gold=[item(start=3.5)]), "`start` is 3.5"),
        (line(gold=[item(end=2**31)]), "more characters than a text can have"),
        (line(gold=[item(level="paragraph")]), "`level` is 'paragraph'"),
        (line(gold=[item(level="chunk")]), "no `chunk_id`"),
        (line(gold=[{"doc_id": "d", "level": "page"}]), "neither a range"),
        (line(gold=[item(grade="high")]), "`grade` is 'high'"),
        (line(gold=[item(grade=float("nan"))]), "`grade` is nan"),
        (line(gold_mode="one_per_answer"), "no `answer`"),
        (line(gold=[], alternatives=[[SPAN]]), "`gold` is empty, yet there are `alternatives`"),
        (line(alternatives=[SPAN]), "`alternatives` is not a list of lists"),
        (line(alternatives=[[]]), "`alternatives` 1 needs nothing"),
        (line(alternatives=[[item(grade=0)]]), "`alternatives` 1 needs nothing"),
        (line(tags={"a": 1}), "`tags` is not a list"),
        (line(tags=["\ud800"]), "a lone surrogate"),
        (line(gold=[item(quote="lov\udc00ely")]), "U+DC00"),
    ],
)
def test_a_line_that_cannot_be_loaded_says_why(bad: Any, reason: str) -> None:
    with pytest.raises(BadLabelError) as error:
        read(bad)
    assert reason in str(error.value)
