"""The final context and the places of one query, from its graph of edges. Pure Python; knows no database.

The rules are section 2 of `docs/internals.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ragtrace.model import INGEST_KINDS
from ragtrace.store.edges import Edge, FlowList, FlowStage, Graph, derive_edges

__all__ = ["Flow", "Place", "derive"]

OFF_PATH_ORDER = 10
ON_PATH_ORDER = 1_000_000
FINAL_ORDER = 1_000_000_000


class Place(NamedTuple):
    """One row of the table `places` without its query."""

    place_no: int
    stage_id: int | None
    side: str
    step: int
    is_on_path: bool
    place_order: int
    counts_stands_for: bool
    later_nos: list[int]


class Flow(NamedTuple):
    """What is derived for one query."""

    final_how: str
    places: list[Place]
    place_lists: list[tuple[int, int]]
    """place_no, list_id"""
    edges: list[Edge]
    origins: dict[int, str]
    """in and context list -> same, changed, declared or unknown"""


def derive(stages: Iterable[FlowStage], contexts: Sequence[FlowList]) -> Flow:
    """Edges, final context, steps and places of one query. Never raises for odd data: what is unknown stays unknown."""
    graph = derive_edges(stages, contexts)
    final_how, sources, final_lists = _final_context(graph, contexts)
    before_final = 0
    final_step = 1
    for node in sources:
        before_final |= graph.before[node] | (1 << node)
        final_step = max(final_step, graph.steps[node] + 1)
    places, place_lists = _places(graph, before_final, final_step, final_lists if final_how != "unknown" else None)
    return Flow(final_how, places, place_lists, graph.edges, graph.origins)


def _final_context(graph: Graph, contexts: Sequence[FlowList]) -> tuple[str, list[int], list[FlowList]]:
    """How it is known, the nodes it comes from, and the lists that make it up."""
    owner = graph.owner
    if contexts:
        context_ids = {one.list_id for one in contexts}
        nodes = [2 * owner[edge.from_list_id] + 1 for edge in graph.edges if edge.to_list_id in context_ids]
        return "declared", nodes, list(contexts)
    stages = graph.stages
    finals = [number for number, stage in enumerate(stages) if stage.is_final and stage.outputs]
    if finals:
        return "final_stage", [2 * n + 1 for n in finals], [one for n in finals for one in stages[n].outputs]
    generates = [number for number, stage in enumerate(stages) if stage.kind == "generate"]
    answers = [number for number in generates if stages[number].is_answer and stages[number].inputs]
    if answers:
        return "answer_generate", [2 * n for n in answers], [one for n in answers for one in stages[n].inputs]
    if len(generates) == 1 and stages[generates[0]].inputs:
        return "only_generate", [2 * generates[0]], list(stages[generates[0]].inputs)
    taken = {edge.from_list_id for edge in graph.edges}
    loose = [list_id for list_id, number in owner.items() if list_id not in taken and not _is_inside(graph, number)]
    if len(loose) == 1:
        return "inferred", [2 * owner[loose[0]] + 1], [graph.lists[loose[0]]]
    return "unknown", [], []


def _is_inside(graph: Graph, number: int) -> bool:
    """Does the stage run inside another one that has an output list?"""
    by_id = {stage.stage_id: stage for stage in graph.stages}
    seen = set()
    parent_id = graph.stages[number].parent_stage_id
    while parent_id in by_id and parent_id not in seen:
        seen.add(parent_id)
        if by_id[parent_id].outputs:
            return True
        parent_id = by_id[parent_id].parent_stage_id
    return False


def _places(
    graph: Graph, before_final: int, final_step: int, final_lists: list[FlowList] | None
) -> tuple[list[Place], list[tuple[int, int]]]:
    expands = [graph.steps[2 * n + 1] for n, stage in enumerate(graph.stages) if stage.kind == "expand"]
    first_expand = min(expands, default=0)
    found: list[tuple[int, int, int, int | None, str, Sequence[FlowList]]] = []
    for number, stage in enumerate(graph.stages):
        if stage.kind in INGEST_KINDS:
            continue
        for side, node, lists in (("in", 2 * number, stage.inputs), ("out", 2 * number + 1, stage.outputs)):
            if lists and not (side == "out" and stage.kind == "generate"):
                step = graph.steps[node]
                is_on_path = before_final >> node & 1
                found.append(
                    ((ON_PATH_ORDER if is_on_path else OFF_PATH_ORDER) + step, node, step, stage.stage_id, side, lists)
                )
    found.sort(key=lambda place: (place[0], place[1]))
    number_of = {place[1]: no for no, place in enumerate(found, start=1)}
    later: list[list[int]] = [[] for _ in found]
    for place in found:
        before, no = graph.before[place[1]], number_of[place[1]]
        for earlier in found:
            # Not from the path to what lies beside it: that comes before in the order, and is no later place.
            if before >> earlier[1] & 1 and number_of[earlier[1]] < no:
                later[number_of[earlier[1]] - 1].append(no)
    final_no = len(found) + 1
    places: list[Place] = []
    place_lists: list[tuple[int, int]] = []
    for no, (place_order, node, step, stage_id, side, its_lists) in enumerate(found, start=1):
        is_on_path = bool(before_final >> node & 1)
        if is_on_path and final_lists is not None:
            later[no - 1].append(final_no)
        places.append(Place(no, stage_id, side, step, is_on_path, place_order, step < first_expand, later[no - 1]))
        place_lists.extend((no, list_id) for list_id in _holders(graph, its_lists))
    if final_lists is not None:
        places.append(Place(final_no, None, "context", final_step, True, FINAL_ORDER, False, []))
        place_lists.extend((final_no, list_id) for list_id in _holders(graph, final_lists))
    return places, place_lists


def _holders(graph: Graph, lists: Iterable[FlowList]) -> list[int]:
    """The lists with the rows of these; a list that is itself incomplete stands beside, so that the place is seen as open."""
    holders: dict[int, None] = {}
    for one in lists:
        holders[graph.holder(one).list_id] = None
        if not one.is_complete:
            holders[one.list_id] = None
    return list(holders)
