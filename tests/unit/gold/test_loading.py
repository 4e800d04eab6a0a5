"""Gold files into the store: all or nothing, bad lines by number, sets that replace themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ragtrace.errors import GoldError
from ragtrace.gold import loading


def question(question_id: str, quote: str = "lovely", **keys: Any) -> dict[str, Any]:
    gold = [{"doc_id": "d", "quote": quote}]
    return {"question_id": question_id, "question": f"What is {question_id}?", "gold": gold, **keys}


def write(path: Path, *lines: Any) -> Path:
    path.write_text("".join((x if isinstance(x, str) else json.dumps(x)) + "\n" for x in lines), encoding="utf-8")
    return path


def ids(store: duckdb.DuckDBPyConnection, gold_set: str | None = None) -> list[str]:
    found = store.execute(
        "select question_id from questions where ? is null or gold_set = ? order by 1", [gold_set, gold_set]
    )
    return [row[0] for row in found.fetchall()]


def test_a_file_is_loaded_and_counted(store: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    path = write(
        tmp_path / "dev.jsonl",
        question("a"),
        question("b", gold=[]),
        question("c", gold=[], kind="evidence_unknown"),
        question("d", alternatives=[[{"doc_id": "d", "quote": "loveliest"}]]),
    )
    loaded = loading.load(store, path)
    assert loaded == loading.Loaded(4, 3, 3, 0, [], "dev", 1, 1, 0)
    assert store.execute("select count(*) from evidence").fetchall() == [(3,)]


def test_a_bad_line_stops_the_load_with_file_number_and_reason(
    store: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    path = write(tmp_path / "dev.jsonl", question("a"), "{not json", question("b", gold_mode="most"))
    with pytest.raises(GoldError) as error:
        loading.load(store, path)
    assert f"{path}, line 2: not JSON" in error.value.message
    assert "1 more bad line" in error.value.message
    assert error.value.fields["line"] == 2
    assert [number for number, _ in error.value.fields["bad"]] == [2, 3]  # type: ignore[attr-defined]
    assert ids(store) == []


def test_skip_bad_loads_the_rest_and_lists_the_bad(store: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    path = write(tmp_path / "dev.jsonl", question("a"), "[]", "", question("b"))
    loaded = loading.load(store, path, skip_bad=True)
    assert loaded.bad == [(3 - 1, "not a JSON object")]
    assert ids(store) == ["a", "b"]


def test_bytes_that_are_no_utf8_are_a_bad_line(store: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    path = tmp_path / "dev.jsonl"
    path.write_bytes(json.dumps(question("a")).encode() + b"\n\xff\xfe\n")
    assert loading.load(store, path, skip_bad=True).bad == [(2, "not UTF-8 (byte 1 of the line)")]


def test_a_byte_order_mark_and_line_separators_inside_texts_do_no_harm(
    store: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    path = tmp_path / "dev.jsonl"
    text = json.dumps(question("a", quote="one\u2028two\u0085three"), ensure_ascii=False)
    path.write_bytes(b"\xef\xbb\xbf" + text.encode() + b"\r\n")
    assert loading.load(store, path).n_questions == 1
    assert store.execute("select quote from evidence").fetchall() == [("one\u2028two\u0085three",)]


def test_a_file_that_is_not_there_is_one_clear_sentence(store: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    with pytest.raises(GoldError, match="there is no such file"):
        loading.load(store, tmp_path / "nowhere.jsonl")


def test_a_file_without_questions_is_refused_and_the_old_set_stays(
    store: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    path = write(tmp_path / "dev.jsonl", question("a"))
    loading.load(store, path)
    write(path, "")
    with pytest.raises(GoldError, match="no question in it"):
        loading.load(store, path)
    assert ids(store) == ["a"]


def test_loading_a_set_again_replaces_it(store: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    path = write(tmp_path / "dev.jsonl", question("a"), question("b"))
    loading.load(store, path)
    write(path, question("b", quote="changed"), question("c"))
    assert loading.load(store, path).n_replaced == 2
    assert ids(store) == ["b", "c"]
    assert store.execute("select quote from evidence where question_id = 'b'").fetchall() == [("changed",)]


def test_loading_twice_is_loading_once(store: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    path = write(tmp_path / "dev.jsonl", question("a"), question("b"))
    loading.load(store, path)
    before = store.execute("from evidence order by evidence_id").fetchall()
    loading.load(store, path)
    assert store.execute("from evidence order by evidence_id").fetchall() == before


def test_a_question_that_another_set_labels_differently_is_a_bad_line(store: duckdb.DuckDBPyConnection) -> None:
    loading.load_rows(store, [question("a"), question("b")], gold_set="one")
    with pytest.raises(GoldError, match="labelled differently in the set 'one'"):
        loading.load_rows(store, [question("a", quote="other")], gold_set="two")
    loaded = loading.load_rows(store, [question("a", quote="other"), question("c")], gold_set="two", skip_bad=True)
    assert [number for number, _ in loaded.bad] == [1]
    assert (ids(store, "one"), ids(store, "two")) == (["a", "b"], ["c"])


def test_a_question_that_another_set_labels_in_the_same_way_stays_there(store: duckdb.DuckDBPyConnection) -> None:
    loading.load_rows(store, [question("a")], gold_set="one")
    assert loading.load_rows(store, [question("a"), question("b")], gold_set="two").n_duplicates == 1
    assert (ids(store, "one"), ids(store, "two")) == (["a"], ["b"])


def test_replace_takes_a_question_over(store: duckdb.DuckDBPyConnection) -> None:
    loading.load_rows(store, [question("a"), question("b")], gold_set="one")
    loading.load_rows(store, [question("a", quote="other")], gold_set="two", replace=True)
    assert (ids(store, "one"), ids(store, "two")) == (["b"], ["a"])
    assert store.execute("select quote from evidence where question_id = 'a'").fetchall() == [("other",)]


def test_a_question_twice_in_one_file_counts_once_or_is_bad(store: duckdb.DuckDBPyConnection) -> None:
    loaded = loading.load_rows(store, [question("a"), question("a"), question("a", quote="x")], skip_bad=True)
    assert (loaded.n_questions, loaded.n_duplicates) == (1, 1)
    assert loaded.bad == [(3, "question_id 'a' stands in line 1 with other labels")]


def test_settings_are_kept_and_held_to_their_range(store: duckdb.DuckDBPyConnection) -> None:
    loading.load_rows(store, [question("a")], min_coverage=0.75, clock_skew_ms=0)
    assert store.execute("select name, value from settings order by 1").fetchall() == [
        ("clock_skew_ms", 0.0),
        ("min_coverage", 0.75),
    ]
    for settings in (
        {"min_coverage": 0.0},
        {"min_coverage": 1.1},
        {"clock_skew_ms": -1},
        {"min_coverage": float("nan")},
    ):
        with pytest.raises(GoldError):
            loading.load_rows(store, [question("a")], **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "gold_set"),
    [("dev.jsonl", "dev"), ("my.set.jsonl", "my.set"), ("nq/questions.jsonl", "nq"), ("nq/gold.jsonl", "nq")],
)
def test_a_set_is_named_by_its_file_or_folder(tmp_path: Path, name: str, gold_set: str) -> None:
    assert loading.set_name(tmp_path / name) == gold_set


def test_a_load_inside_a_transaction_of_the_caller_leaves_the_decision_to_the_caller(
    store: duckdb.DuckDBPyConnection,
) -> None:
    store.begin()
    loading.load_rows(store, [question("a")])
    assert ids(store) == ["a"]
    store.rollback()
    assert ids(store) == []


def test_progress_is_told_while_labels_are_read_and_placed(store: duckdb.DuckDBPyConnection) -> None:
    told: list[tuple[str, int, int]] = []
    loading.load_rows(store, (question(str(n)) for n in range(2001)), progress=lambda *args: told.append(args))
    assert [what for what, _, _ in told] == ["reading labels", "placing labels"]
    assert all(done <= of for _, done, of in told)
