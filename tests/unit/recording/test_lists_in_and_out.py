"""What a stage takes and puts out, and which lists are told to be the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ragtrace as rt

from .recorded import Seen, recorded


def hits(*ids: str, text: bool = False) -> list[dict[str, Any]]:
    """Freshly made candidates."""
    return [
        {"id": one, "score": 1.0 / (rank + 1), **({"text": f"passage {one}: " + f"word{one} " * 12} if text else {})}
        for rank, one in enumerate(ids)
    ]


@rt.retrieve
def dense(query: str, *ids: str) -> list[dict[str, Any]]:
    return hits(*(ids or ("a", "b", "c")))


@rt.retrieve
def lexical(query: str) -> list[dict[str, Any]]:
    return hits("c", "d")


@rt.retrieve
def with_texts(query: str) -> list[dict[str, Any]]:
    return hits("a", "b", "c", text=True)


@rt.rerank
def rerank(query: str, found: Any) -> Any:
    return found[:2]


def out_id(stage: Seen) -> int:
    return stage.one("out").list_id


def test_the_very_list_that_came_out_goes_in_as_the_same(ragtrace_store: Path) -> None:
    with rt.query("q"):
        rerank("q", dense("q"))
    found = recorded(ragtrace_store)
    taken = found.stage("rerank").one("in")
    assert list(taken.same_as) == [out_id(found.stage("dense"))]
    assert taken.columns is None and taken.argument == "found"


def test_a_copy_equals_every_output_with_the_same_ids(ragtrace_store: Path) -> None:
    with rt.query("q"):
        dense("q")
        rerank("q", list(dense("q")))
    found = recorded(ragtrace_store)
    assert list(found.stage("rerank").one("in").same_as) == [out_id(stage) for stage in reversed(found.all("dense"))]


def test_a_list_that_was_sliced_in_between_is_recorded_in_full(ragtrace_store: Path) -> None:
    with rt.query("q"):
        rerank("q", dense("q")[1:])
    taken = recorded(ragtrace_store).stage("rerank").one("in")
    assert not taken.same_as and taken.columns is not None and list(taken.columns.chunk_id) == ["b", "c"]


def test_the_same_object_changed_in_between_is_no_longer_the_same(ragtrace_store: Path) -> None:
    with rt.query("q"):
        found = dense("q")
        del found[0]
        rerank("q", found)
    seen = recorded(ragtrace_store)
    assert seen.stage("dense").ids() == ["a", "b", "c"]
    assert seen.stage("rerank").ids("in") == ["b", "c"]


@pytest.mark.parametrize("pack", [lambda a, b: [a, b], lambda a, b: (a, b), lambda a, b: {"dense": a, "lexical": b}])
def test_lists_of_lists_are_taken_one_by_one(pack: Any, ragtrace_store: Path) -> None:
    @rt.fuse
    def fuse(lists: Any) -> Any:
        return hits("c", "a")

    with rt.query("q"):
        fuse(pack(dense("q"), lexical("q")))
    found = recorded(ragtrace_store)
    taken = [list(one.same_as) for one in found.stage("fuse").lists if one.role == "in"]
    assert taken == [[out_id(found.stage("dense"))], [out_id(found.stage("lexical"))]]


def test_a_list_nobody_made_is_taken_when_it_holds_more_than_bare_ids(ragtrace_store: Path) -> None:
    with rt.query("q"):
        rerank("q", hits("x", "y"))
    assert recorded(ragtrace_store).stage("rerank").ids("in") == ["x", "y"]


def test_bare_strings_are_taken_only_when_they_name_earlier_candidates(ragtrace_store: Path) -> None:
    @rt.filter
    def keep(found: Any, tags: list[str]) -> Any:
        return found

    with rt.query("q"):
        dense("q")
        keep(["b", "z"], ["public", "staff"])
    stage = recorded(ragtrace_store).stage("keep")
    assert [list(one.columns.chunk_id) for one in stage.lists if one.role == "in" and one.columns] == [["b", "z"]]


def test_an_empty_list_counts_when_it_is_the_only_one(ragtrace_store: Path) -> None:
    @rt.retrieve
    def nothing(query: str) -> list[Any]:
        return []

    with rt.query("q"):
        rerank("q", nothing("q"))
    found = recorded(ragtrace_store)
    assert found.stage("nothing").ids() == []
    assert list(found.stage("rerank").one("in").same_as) == [out_id(found.stage("nothing"))]


def test_a_stage_that_sorts_in_place_puts_out_its_argument(ragtrace_store: Path) -> None:
    @rt.rerank
    def in_place(found: list[Any]) -> None:
        found.reverse()

    with rt.query("q"):
        in_place(dense("q"))
    seen = recorded(ragtrace_store).stage("in_place")
    assert seen.ids() == ["c", "b", "a"]
    assert seen.one("out").is_complete


def test_a_stage_that_returns_nothing_and_changed_none_of_its_lists_has_an_unknown_output(ragtrace_store: Path) -> None:
    @rt.fuse
    def lost(one: Any, two: Any) -> None:
        return None

    with rt.query("q"):
        lost(dense("q"), lexical("q"))
    seen = recorded(ragtrace_store).stage("lost")
    assert seen.one("out").columns is None and not seen.one("out").is_complete
    assert "no output" in seen.row["capture_error"]


def test_what_cannot_be_read_is_an_incomplete_list_and_said(ragtrace_store: Path) -> None:
    @rt.retrieve
    def odd(query: str) -> Any:
        return object()

    with rt.query("q"):
        odd("q")
    seen = recorded(ragtrace_store).stage("odd")
    assert not seen.one("out").is_complete and "object" in seen.row["capture_error"]


def test_what_the_service_does_to_a_list_later_changes_nothing_recorded(ragtrace_store: Path) -> None:
    with rt.query("q"):
        found = dense("q")
        for one in found:
            one["id"] = "changed"
        found.clear()
    assert recorded(ragtrace_store).stage("dense").ids() == ["a", "b", "c"]


def test_generators_given_as_arguments_are_not_consumed(ragtrace_store: Path) -> None:
    @rt.rerank
    def take(found: Any) -> Any:
        return list(found)

    with rt.query("q"):
        assert take(one for one in ["a", "b"]) == ["a", "b"]
    assert recorded(ragtrace_store).stage("take").ids() == ["a", "b"]


def test_a_block_tells_its_lists_losers_and_considered(ragtrace_store: Path) -> None:
    with rt.query("q"):
        found = dense("q")
        with rt.rerank(name="cross", k=2) as stage:
            stage.input(found)
            stage.considered(hits("b", "a", "c"))
            stage.output(found[:1])
            stage.dropped("b", "acl", by="tenant")
            stage.dropped(7)
    seen = recorded(ragtrace_store)
    cross = seen.stage("cross")
    assert list(cross.one("in").same_as) == [out_id(seen.stage("dense"))]
    assert cross.ids("considered") == ["b", "a", "c"] and cross.ids() == ["a"] and cross.ids("dropped") == ["b", "7"]
    assert cross.one("dropped").columns.drop_reason == {0: "acl"}  # type: ignore[union-attr]
    assert cross.one("dropped").columns.dropped_by == {0: "tenant"}  # type: ignore[union-attr]
    assert cross.row["stage_id"] == stage.id


def test_a_block_names_the_source_of_a_list_that_nothing_else_tells(ragtrace_store: Path) -> None:
    with rt.query("q"):
        with rt.retrieve(name="first") as first:
            first.output(["a"])
        with rt.expand(name="parents") as parents:
            parents.input(["parent of a"], source=first)
            parents.output(["parent of a"])
    seen = recorded(ragtrace_store)
    taken = seen.stage("parents").one("in")
    assert list(taken.declared_sources) == [seen.stage("first").row["stage_id"]]


def test_inside_a_function_the_current_stage_takes_the_same_calls(ragtrace_store: Path) -> None:
    @rt.filter
    def acl(found: list[Any]) -> list[Any]:
        rt.current_stage().dropped(found[0]["id"], "acl")
        return found[1:]

    with rt.query("q"):
        acl(dense("q"))
    assert recorded(ragtrace_store).stage("acl").ids("dropped") == ["a"]
    rt.current_stage().dropped("nobody")


def test_a_prompt_is_the_list_of_the_candidates_found_in_it(ragtrace_store: Path) -> None:
    @rt.truncate(budget_tokens=100)
    def pack(found: list[Any]) -> str:
        return "Answer from:\n" + "\n---\n".join(one["text"] for one in found[:2])

    @rt.generate
    def answer(prompt: str) -> str:
        return "because"

    with rt.query("q"):
        answer(pack(with_texts("q")))
    found = recorded(ragtrace_store)
    assert found.stage("pack").ids() == ["a", "b"]
    assert found.stage("pack").one("out").is_complete
    assert list(found.stage("answer").one("in").same_as) == [out_id(found.stage("pack"))]


def test_chat_messages_are_searched_like_a_prompt(ragtrace_store: Path) -> None:
    @rt.generate
    def answer(messages: list[dict[str, str]]) -> str:
        return "because"

    with rt.query("q"):
        found = with_texts("q")
        answer([{"role": "system", "content": "Be short."}, {"role": "user", "content": found[2]["text"]}])
    assert recorded(ragtrace_store).stage("answer").ids("in") == ["c"]


def test_a_prompt_without_any_candidate_may_hold_anything(ragtrace_store: Path) -> None:
    @rt.generate
    def answer(prompt: str) -> str:
        return "because"

    with rt.query("q"):
        with_texts("q")
        answer("quite another text")
    taken = recorded(ragtrace_store).stage("answer").one("in")
    assert taken.columns is None and not taken.is_complete


def test_a_prompt_before_any_candidate_is_no_list(ragtrace_store: Path) -> None:
    @rt.generate
    def answer(prompt: str) -> str:
        return "because"

    with rt.query("q"):
        answer("what is a vacation?")
    assert recorded(ragtrace_store).stage("answer").lists == []


def test_a_candidate_whose_text_was_cut_says_what_is_left_of_it(ragtrace_store: Path) -> None:
    with rt.query("q"):
        found = with_texts("q")
        text = found[0]["text"]
        rerank("q", [{"id": "a", "text": text[: len(text) // 2]}])
    columns = recorded(ragtrace_store).stage("rerank").one("in").columns
    assert columns is not None and columns.cut is not None
    ((start, end),) = columns.cut[0]
    assert start == 0 and len(text) // 2 - 2 <= end <= len(text) // 2


def test_a_candidate_whose_text_was_rewritten_is_altered(ragtrace_store: Path) -> None:
    with rt.query("q"):
        with_texts("q")
        rerank("q", [{"id": "b", "text": "An entirely new sentence says it in other terms."}])
    columns = recorded(ragtrace_store).stage("rerank").one("in").columns
    assert columns is not None and columns.altered == [0]


def test_the_whole_text_after_a_list_that_showed_a_smaller_range_is_the_whole_again(ragtrace_store: Path) -> None:
    with rt.query("q"):
        found = with_texts("q")
        rerank("q", [rt.Candidate("a", doc_id="d", start=0, end=3), rt.Candidate("b")])
        rerank("q", [{"id": "b", "text": found[1]["text"]}, {"id": "a", "text": found[0]["text"]}])
    columns = recorded(ragtrace_store).all("rerank")[1].one("in").columns
    assert columns is not None
    assert columns.cut is not None and {row: list(map(tuple, cut)) for row, cut in columns.cut.items()} == {
        1: [(0, len(found[0]["text"]))]
    }


def test_parameters_are_read_from_the_decorator_first_then_from_the_call(ragtrace_store: Path) -> None:
    @rt.retrieve(k=50, ef=128)
    def search(query: str, k: int = 5, threshold: float = 0.25, filter: Any = None, index: str = "main") -> list[str]:
        return ["a"]

    with rt.query("q"):
        search("why?", k=7, filter={"tenant": object(), "year": 2021})
    row = recorded(ragtrace_store).stage("search").row
    assert (row["k"], row["threshold"], row["index_name"], row["query_text"]) == (50, 0.25, "main", "why?")
    assert row["params"] == '{"ef":128}'
    assert row["filter"] == '{"tenant":{"type":"builtins.object"},"year":2021}'


def test_a_rewrite_puts_out_texts(ragtrace_store: Path) -> None:
    @rt.rewrite
    def one(question: str) -> str:
        return "better"

    @rt.rewrite
    def several(question: str) -> list[str]:
        return ["first", "second"]

    with rt.query("q"):
        one("q"), several("q")
    found = recorded(ragtrace_store)
    assert found.stage("one").row["query_text"] == "better"
    assert found.stage("several").row["query_text"] == '["first","second"]'
    assert not found.stage("one").lists


def test_counts_of_the_query_say_what_was_written_for_it(ragtrace_store: Path) -> None:
    with rt.query("q"):
        rerank("q", dense("q"))
    row = recorded(ragtrace_store).query()
    assert (row["n_stages"], row["n_lists"], row["n_candidates"]) == (2, 3, 5)


def test_a_reranker_that_answers_with_row_numbers_is_joined_to_its_input(ragtrace_store: Path) -> None:
    @rt.rerank
    def cohere(query: str, found: list[Any]) -> list[dict[str, Any]]:
        return [{"index": 2, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.1}]

    with rt.query("q"):
        cohere("q", dense("q"))
    assert recorded(ragtrace_store).stage("cohere").ids() == ["c", "a"]
