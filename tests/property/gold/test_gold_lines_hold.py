"""What holds for every gold line: it loads as it says or is refused with a reason, never half, never with a crash."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragtrace.gold.sets import BadLabelError, read

anything = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 50) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
item_keys = st.sampled_from("doc_id start end quote doc_version need level grade chunk_id answer".split())
question_keys = st.sampled_from(
    "question_id question gold alternatives gold_mode answer statements kind tags group distractors source".split()
)
wild_items = st.dictionaries(item_keys, anything, max_size=8)
wild_lines = st.dictionaries(
    question_keys, anything | st.lists(wild_items, max_size=3) | st.lists(st.lists(wild_items, max_size=2)), max_size=9
)

good_items = st.fixed_dictionaries(
    {"doc_id": st.sampled_from("abc")},
    optional={
        "quote": st.sampled_from(["one", "two"]),
        "need": st.sampled_from(["x", "y", "#1"]),
        "grade": st.integers(1, 3),
        "answer": st.sampled_from(["x", "y"]),
    },
)
good_sets = st.lists(good_items, min_size=1, max_size=4)
good_lines = st.fixed_dictionaries(
    {"question_id": st.just("q"), "gold": good_sets},
    optional={"alternatives": st.lists(good_sets, max_size=3), "gold_mode": st.sampled_from(["all", "any"])},
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(wild_lines | anything)
def test_any_line_loads_or_says_why_not(line: Any) -> None:
    try:
        labels = read(line)
    except BadLabelError:
        return
    for row in labels.evidence:
        assert row["level"] == "chunk" or row["doc_id"]
        assert (row["start_at"] is None) == (row["end_at"] is None)
        assert row["start_at"] is None or 0 <= row["start_at"] < row["end_at"]
        assert row["is_need"] == (row["grade"] > 0 and not row["is_distractor"])


@settings(max_examples=200, deadline=None)
@given(good_lines)
def test_every_set_keeps_its_needs_and_says_nothing_twice(line: dict[str, Any]) -> None:
    labels = read(line)
    assert len({row["evidence_id"] for row in labels.evidence}) == len(labels.evidence)
    sets = [line["gold"], *line.get("alternatives", [])]
    assert len(labels.evidence) + labels.n_duplicates == sum(map(len, sets))
    assert labels.n_sets == len({row["set_no"] for row in labels.evidence})
    for set_no in {row["set_no"] for row in labels.evidence}:
        rows = [row for row in labels.evidence if row["set_no"] == set_no]
        items = sets[set_no - 1]
        if line.get("gold_mode") == "any":
            assert {row["need"] for row in rows} == {"any"}
            continue
        named = {item["need"] for item in items if "need" in item}
        unnamed = {(item["doc_id"], item.get("quote")) for item in items if "need" not in item}
        assert named <= {row["need"] for row in rows}
        assert len({row["need"] for row in rows}) == len(named) + len(unnamed)


@settings(max_examples=50, deadline=None)
@given(good_lines)
def test_reading_is_repeatable(line: dict[str, Any]) -> None:
    assert read(line) == read(line)
