"""Edges, steps, final context and places of one query (docs/internals.md, section 2)."""

from __future__ import annotations

import pytest

from ragtrace.store.edges import FlowList, FlowStage
from ragtrace.store.flow import FINAL_ORDER, Flow, derive


def _out(list_id: int, *ids: str) -> FlowList:
    return FlowList(list_id, "out", ids)


def _in(list_id: int, *ids: str) -> FlowList:
    return FlowList(list_id, "in", ids)


def _same(list_id: int, *equal: int, role: str = "in") -> FlowList:
    return FlowList(list_id, role, same_as=equal, has_rows=False)


def _edges(flow: Flow) -> set[tuple[int, int, str]]:
    return set(flow.edges)


def _place(flow: Flow, stage_id: int | None, side: str) -> tuple[int, bool, list[int]]:
    [found] = [place for place in flow.places if place.stage_id == stage_id and place.side == side]
    return found.step, found.is_on_path, found.later_nos


CHAIN = [
    FlowStage(1, "retrieve", 1, 2, lists=[_out(10, "a", "b", "c")]),
    FlowStage(2, "rerank", 3, 4, lists=[_same(11, 10), _out(12, "b", "a")]),
    FlowStage(3, "generate", 5, 6, lists=[_same(13, 12)]),
]


def test_a_chain_is_one_path_from_the_retriever_to_the_final_context() -> None:
    flow = derive(CHAIN, [])
    assert flow.final_how == "only_generate"
    assert [(p.stage_id, p.side, p.step, p.is_on_path) for p in flow.places] == [
        (1, "out", 2, True), (2, "in", 3, True), (2, "out", 4, True), (3, "in", 5, True), (None, "context", 6, True),
    ]  # fmt: skip
    assert [p.later_nos for p in flow.places] == [[2, 3, 4, 5], [3, 4, 5], [4, 5], [5], []]
    assert flow.places[-1].place_order == FINAL_ORDER


def test_of_equal_lists_the_one_that_another_leads_to_is_superseded() -> None:
    stages = [
        FlowStage(1, "retrieve", 1, 2, lists=[_out(10, "a")]),
        FlowStage(2, "filter", 3, 4, lists=[_same(11, 10), _out(12, "a")]),
        FlowStage(3, "rerank", 5, 6, lists=[_same(13, 10, 12), _out(14, "a")]),
    ]
    assert _edges(derive(stages, [])) == {(10, 11, "same"), (12, 13, "same")}


def test_equal_lists_of_parallel_branches_both_lead_on() -> None:
    stages = [
        FlowStage(1, "retrieve", 1, 2, lists=[_out(10, "a")]),
        FlowStage(2, "retrieve", 3, 4, lists=[_out(11, "a")]),
        FlowStage(3, "rerank", 5, 6, lists=[_same(12, 10, 11), _out(13, "a")]),
    ]
    assert _edges(derive(stages, [])) == {(10, 12, "same"), (11, 12, "same")}


def test_a_changed_list_comes_from_the_latest_output_that_holds_what_it_shares() -> None:
    stages = [
        *CHAIN[:2],
        FlowStage(3, "generate", 5, 6, lists=[_in(13, "b")]),
    ]
    assert (12, 13, "changed") in _edges(derive(stages, []))
    assert (10, 13, "changed") not in _edges(derive(stages, []))


def test_a_changed_list_keeps_the_earlier_output_for_what_only_that_one_holds() -> None:
    """c was not in the reranker's output: someone took it from the retriever's."""
    stages = [*CHAIN[:2], FlowStage(3, "generate", 5, 6, lists=[_in(13, "b", "c")])]
    assert {(10, 13, "changed"), (12, 13, "changed")} <= _edges(derive(stages, []))


def test_a_list_of_unknown_origin_may_come_from_every_ended_output() -> None:
    stages = [*CHAIN[:2], FlowStage(3, "generate", 5, 6, lists=[_in(13, "z")])]
    flow = derive(stages, [])
    assert {(10, 13, "unknown"), (12, 13, "unknown")} <= _edges(flow)
    assert flow.origins[13] == "unknown"


def test_declared_sources_go_before_what_the_ids_say() -> None:
    taken = FlowList(13, "in", ("b",), declared_sources=[1])
    flow = derive([*CHAIN[:2], FlowStage(3, "generate", 5, 6, lists=[taken])], [])
    assert {edge for edge in _edges(flow) if edge[1] == 13} == {(10, 13, "declared")}


def test_a_generator_passed_on_before_it_ended_feeds_its_taker() -> None:
    stages = [
        FlowStage(1, "retrieve", 1, 4, lists=[_out(10, "a", "b")]),
        FlowStage(2, "rerank", 2, 6, lists=[_same(11, 10), _out(12, "a")]),
    ]
    flow = derive(stages, [])
    assert (10, 11, "same") in _edges(flow)
    assert _place(flow, 1, "out")[0] < _place(flow, 2, "in")[0]


def test_the_runs_around_a_stage_never_feed_it() -> None:
    stages = [
        FlowStage(1, "retrieve", 1, 6, lists=[_out(10, "a")]),
        FlowStage(2, "rerank", 2, 3, 1, lists=[_same(11, 10), _out(12, "a")]),
    ]
    assert not [edge for edge in _edges(derive(stages, [])) if edge[1] == 11]


def test_two_generators_that_feed_each_other_do_not_hang() -> None:
    stages = [
        FlowStage(1, "retrieve", 1, 9, lists=[_out(10, "a")]),
        FlowStage(2, "rerank", 2, 5, lists=[_same(11, 10), _out(12, "a")]),
        FlowStage(3, "filter", 6, 7, 1, lists=[_same(13, 12), _out(14, "a")]),
    ]
    flow = derive(stages, [])
    assert flow.places


def test_what_ends_inside_a_run_leads_to_its_output() -> None:
    stages = [
        FlowStage(1, "retrieve", 1, 6, lists=[_out(10, "a")]),
        FlowStage(2, "retrieve", 2, 3, 1, lists=[_out(11, "a", "b")]),
    ]
    flow = derive(stages, [])
    assert _place(flow, 2, "out") == (3, True, [2, 3])
    assert _place(flow, 1, "out")[0] == 4
    assert flow.final_how == "inferred"


@pytest.mark.parametrize("is_off", [True, False])
def test_a_run_aside_takes_no_part_in_the_flow(is_off: bool) -> None:
    stages = [*CHAIN[:2], FlowStage(3, "filter", 5, 6, is_off=is_off, lists=[_same(13, 12), _out(14, "a")])]
    flow = derive(stages, [])
    assert (3 in {place.stage_id for place in flow.places}) is not is_off
    assert [edge for edge in flow.edges if edge.to_list_id == 13] == ([] if is_off else [(12, 13, "same")])


def test_a_declared_context_is_the_final_one_whatever_the_generate_takes() -> None:
    flow = derive(CHAIN, [_same(20, 10, role="context")])
    assert flow.final_how == "declared"
    assert _place(flow, 1, "out")[1]
    assert not _place(flow, 2, "out")[1]
    assert (flow.places[-1].place_no, 10) in flow.place_lists


def test_a_declared_context_comes_from_what_was_put_out_before_it() -> None:
    """Its list number tells when: a later check of citations is no source of it."""
    stages = [*CHAIN[:2], FlowStage(4, "filter", 7, 8, lists=[_out(30, "a")])]
    flow = derive(stages, [FlowList(20, "context", ("a",))])
    assert {edge.from_list_id for edge in flow.edges if edge.to_list_id == 20} == {12}


def test_a_final_stage_goes_before_the_generate() -> None:
    stages = [FlowStage(1, "retrieve", 1, 2, is_final=True, lists=[_out(10, "a", "b", "c")]), *CHAIN[1:]]
    flow = derive(stages, [])
    assert flow.final_how == "final_stage"
    assert (flow.places[-1].place_no, 10) in flow.place_lists


def test_of_several_generates_the_answering_one_counts() -> None:
    stages = [
        *CHAIN[:2],
        FlowStage(3, "generate", 5, 6, lists=[_same(13, 10)]),
        FlowStage(4, "generate", 7, 8, is_answer=True, lists=[_same(14, 12)]),
    ]
    flow = derive(stages, [])
    assert flow.final_how == "answer_generate"
    assert not _place(flow, 3, "in")[1]


def test_the_only_output_that_nobody_took_is_inferred() -> None:
    assert derive(CHAIN[:2], []).final_how == "inferred"


def test_several_outputs_that_nobody_took_leave_the_final_context_unknown() -> None:
    flow = derive([CHAIN[0], FlowStage(2, "retrieve", 3, 4, lists=[_out(11, "x")])], [])
    assert flow.final_how == "unknown"
    assert {place.side for place in flow.places} == {"out"}
    assert not any(place.is_on_path for place in flow.places)


def test_what_the_model_was_given_is_the_final_context_also_when_no_stage_put_out_a_list() -> None:
    assert derive([FlowStage(1, "generate", 1, 2, lists=[_in(10, "a")])], []).final_how == "only_generate"


def test_a_query_without_lists_has_no_known_final_context() -> None:
    assert derive([FlowStage(1, "generate", 1, 2)], []).final_how == "unknown"


def test_places_before_the_first_expand_count_what_a_chunk_stands_for() -> None:
    stages = [
        CHAIN[0],
        FlowStage(2, "expand", 3, 4, lists=[_same(11, 10), _out(12, "p")]),
        FlowStage(3, "generate", 5, 6, lists=[_same(13, 12)]),
    ]
    flow = derive(stages, [])
    assert [place.counts_stands_for for place in flow.places] == [True, True, False, False, False]


def test_an_incomplete_list_stands_at_its_place_so_that_it_is_seen_as_open() -> None:
    unread = FlowList(12, "out", is_complete=False, has_rows=False)
    flow = derive([CHAIN[0], FlowStage(2, "rerank", 3, 4, lists=[_same(11, 10), unread])], [])
    [no] = [place.place_no for place in flow.places if place.stage_id == 2 and place.side == "out"]
    assert (no, 12) in flow.place_lists


def test_ingest_kinds_inside_a_query_carry_the_flow_but_are_no_places() -> None:
    stages = [
        CHAIN[0],
        FlowStage(2, "chunk", 3, 4, lists=[_same(11, 10), _out(12, "a1", "a2")]),
        FlowStage(3, "rerank", 5, 6, lists=[_same(13, 12), _out(14, "a1")]),
    ]
    flow = derive(stages, [])
    assert {place.stage_id for place in flow.places} == {1, 3, None}
    assert _place(flow, 1, "out")[1]
