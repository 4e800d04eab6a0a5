"""Who took whose list: the edges of one query, derived by value. Pure Python; knows no database.

The rules are section 2 of `docs/internals.md`. Stages are walked in the order of their starts and ends, so that what was
reachable when a list was taken is known as one bit mask per node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

__all__ = ["Edge", "FlowList", "FlowStage", "Graph", "derive_edges"]


class FlowList:
    """One list of a query, as far as the flow needs it."""

    __slots__ = ("_id_set", "declared_sources", "has_rows", "ids", "is_complete", "list_id", "role", "same_as")

    def __init__(
        self,
        list_id: int,
        role: str,
        ids: Sequence[str | None] = (),
        same_as: Sequence[int] = (),
        declared_sources: Sequence[int] = (),
        is_complete: bool = True,
        has_rows: bool = True,
    ) -> None:
        self.list_id = list_id
        self.role = role
        self.ids = ids
        """Chunk ids in rank order; of a list that only equals another: empty."""
        self.same_as = same_as
        self.declared_sources = declared_sources
        self.is_complete = is_complete
        self.has_rows = has_rows
        """False: its candidates stand in a list it equals, or nothing of it could be read."""
        self._id_set: frozenset[str] | None = None

    def id_set(self) -> frozenset[str]:
        """The distinct chunk ids; candidates without any are left out."""
        if self._id_set is None:
            self._id_set = frozenset(self.ids) - {None}  # type: ignore[assignment]  # None is taken out here
        return self._id_set  # type: ignore[return-value]  # set in the line above


class FlowStage:
    """One stage run of a query, as far as the flow needs it."""

    __slots__ = (
        "contexts",
        "end_no",
        "inputs",
        "is_answer",
        "is_final",
        "is_off",
        "kind",
        "outputs",
        "parent_stage_id",
        "stage_id",
        "start_no",
    )

    def __init__(
        self,
        stage_id: int,
        kind: str,
        start_no: int | None = None,
        end_no: int | None = None,
        parent_stage_id: int | None = None,
        *,
        is_off: bool = False,
        is_final: bool = False,
        is_answer: bool = False,
        lists: Iterable[FlowList] = (),
    ) -> None:
        self.stage_id = stage_id
        self.kind = kind
        self.start_no = stage_id if start_no is None else start_no
        self.end_no = self.start_no if end_no is None else end_no
        self.parent_stage_id = parent_stage_id
        self.is_off = is_off
        """Aside or probe: takes no part in the flow."""
        self.is_final = is_final
        self.is_answer = is_answer
        self.inputs: list[FlowList] = []
        self.outputs: list[FlowList] = []
        for one in lists:
            if one.role == "in":
                self.inputs.append(one)
            elif one.role == "out":
                self.outputs.append(one)


class Edge(NamedTuple):
    """The list `to_list_id` took the list `from_list_id`."""

    from_list_id: int
    to_list_id: int
    how: str


class Graph:
    """The flow of one query: node 2i is the input of stage i, node 2i + 1 its output; stages by start."""

    __slots__ = ("before", "edges", "lists", "origins", "owner", "stages", "steps")

    def __init__(self, stages: Iterable[FlowStage], contexts: Iterable[FlowList]) -> None:
        stages = list(stages)
        self.stages = sorted((s for s in stages if not s.is_off), key=lambda s: (s.start_no, s.stage_id))
        self.before = [0] * (2 * len(self.stages))
        """Per node: the nodes it is reachable from, as a bit mask."""
        self.steps = [0] * (2 * len(self.stages))
        self.edges: list[Edge] = []
        self.origins: dict[int, str] = {}
        """Per in and context list: same, changed, declared or unknown."""
        self.lists: dict[int, FlowList] = {one.list_id: one for one in contexts}
        self.owner: dict[int, int] = {}
        """Output list -> index of its stage."""
        # What an aside run put out is no origin, but a list that equals it has its rows there.
        self.lists.update((one.list_id, one) for stage in stages if stage.is_off for one in stage.outputs)
        for number, stage in enumerate(self.stages):
            for one in stage.inputs:
                self.lists[one.list_id] = one
            for one in stage.outputs:
                self.lists[one.list_id] = one
                self.owner[one.list_id] = number

    def holder(self, one: FlowList) -> FlowList:
        """The list with the rows of this one: itself, or the first of those it equals."""
        seen = set()
        while not one.has_rows and one.same_as and one.list_id not in seen:
            seen.add(one.list_id)
            following = next((self.lists[other] for other in one.same_as if other in self.lists), None)
            if following is None:
                return one
            one = following
        return one


def derive_edges(stages: Iterable[FlowStage], contexts: Sequence[FlowList]) -> Graph:
    """The graph of one query with edges, steps of every stage node, and what each node is reachable from."""
    graph = Graph(stages, contexts)
    walk = _Walk(graph)
    for one in contexts:
        walk.take(one, None)
    return graph


class _Walk:
    """Walks starts and ends in order."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.ended: list[tuple[int, FlowList]] = []
        numbers = {stage.stage_id: number for number, stage in enumerate(graph.stages)}
        self.numbers = numbers
        self.parents = [
            numbers.get(stage.parent_stage_id, -1) if stage.parent_stage_id is not None else -1
            for stage in graph.stages
        ]
        self.has_ended = [False] * len(graph.stages)
        self.early: list[tuple[int, int]] = []
        """Arcs from an output that had not ended when it was taken (a generator passed on)."""
        events = []
        for number, stage in enumerate(graph.stages):
            events.append((stage.start_no, 0, number))
            events.append((max(stage.end_no, stage.start_no), 1, number))
        events.sort()
        for _, is_end, number in events:
            if is_end:
                self._end(number)
            else:
                self._start(number)
        if self.early:
            self._settle()

    def _start(self, number: int) -> None:
        graph = self.graph
        before, step = 0, 0
        parent = self.parents[number]
        # A parent that started later (numbers out of order) cannot have been entered yet.
        if 0 <= parent < number:
            before = graph.before[2 * parent] | (1 << (2 * parent))
            step = graph.steps[2 * parent]
        graph.before[2 * number] = before
        graph.steps[2 * number] = step + 1
        for one in graph.stages[number].inputs:
            for source in self.take(one, number):
                out = 2 * source + 1
                before |= graph.before[out] | (1 << out)
                step = max(step, graph.steps[out])
            if graph.origins[one.list_id] == "unknown":
                # It comes after all that had ended, also after what put out no list.
                ended = (graph.steps[2 * other + 1] for other, has_ended in enumerate(self.has_ended) if has_ended)
                step = max(step, *ended, 0)
        graph.before[2 * number] = before
        graph.steps[2 * number] = step + 1
        # Provisional, for a generator whose list is taken before it ends.
        graph.before[2 * number + 1] = before | (1 << (2 * number))
        graph.steps[2 * number + 1] = step + 2

    def _end(self, number: int) -> None:
        graph = self.graph
        self.has_ended[number] = True
        out = 2 * number + 1
        parent = self.parents[number]
        if parent >= 0 and not self.has_ended[parent]:
            parent_out = 2 * parent + 1
            graph.before[parent_out] |= graph.before[out] | (1 << out)
            graph.steps[parent_out] = max(graph.steps[parent_out], graph.steps[out] + 1)
        for one in graph.stages[number].outputs:
            self.ended.append((number, one))

    def take(self, one: FlowList, number: int | None) -> set[int]:
        """Derive the edges of one in or context list; the stages they come from."""
        graph = self.graph
        how, sources = self._sources(one, number)
        graph.origins[one.list_id] = how
        stages = set()
        for source in sources:
            graph.edges.append(Edge(source.list_id, one.list_id, how))
            owner = graph.owner[source.list_id]
            stages.add(owner)
            if number is not None and not self.has_ended[owner]:
                self.early.append((2 * owner + 1, 2 * number))
        return stages

    def _sources(self, one: FlowList, number: int | None) -> tuple[str, list[FlowList]]:
        if one.declared_sources:
            declared = [
                output
                for stage_id in one.declared_sources
                if self._may_feed(self.numbers.get(stage_id), number)
                for output in self.graph.stages[self.numbers[stage_id]].outputs
            ]
            if declared:
                return "declared", declared
        if one.same_as:
            owner = self.graph.owner
            equal = [self.graph.lists[i] for i in one.same_as if i in owner and self._may_feed(owner[i], number)]
            if len(equal) > 1:
                equal = [a for a in equal if not any(self._leads(a, b) for b in equal if b is not a)]
            if equal:
                # The rows are those of the latest that is not superseded: an earlier equal list may not be cut yet.
                kept = sorted((a.list_id for a in equal), reverse=True)
                one.same_as = [*kept, *(i for i in one.same_as if i not in kept)]
                return "same", equal
        # A declared context has no stage: what was put out before it has a smaller number.
        ended = [output for _, output in self.ended if number is not None or output.list_id < one.list_id]
        ids = self.graph.holder(one).id_set()
        if ids:
            holder = self.graph.holder
            shares = [(output, ids & holder(output).id_set()) for output in ended]
            shares = [share for share in shares if share[1]]
            if shares:
                return "changed", [
                    a
                    for a, shared in shares
                    if not any(self._leads(a, b) and shared <= others for b, others in shares if b is not a)
                ]
        return "unknown", ended

    def _leads(self, a: FlowList, b: FlowList) -> bool:
        """Is output b reachable from output a?"""
        owner = self.graph.owner
        return bool(self.graph.before[2 * owner[b.list_id] + 1] >> (2 * owner[a.list_id] + 1) & 1)

    def _may_feed(self, source: int | None, number: int | None) -> bool:
        """Has the source ended, or can it be a generator that was passed on: started before, not around the taker?"""
        if source is None:
            return False
        if number is None or self.has_ended[source]:
            return True
        if source >= number:
            return False
        around = self.parents[number]
        while 0 <= around < number and around != source:
            around = self.parents[around]
        return around != source

    def _settle(self) -> None:
        """Once more over all arcs in topological order, now that every end is known."""
        arcs = self._arcs()
        order = _topological(len(self.graph.before), arcs)
        if order is None:
            # Two generators that feed each other: what was taken before it ended is left out of the flow.
            arcs = [arc for arc in arcs if arc not in self.early]
            order = _topological(len(self.graph.before), arcs)
        if order is None:
            return
        before = [0] * len(order)
        steps = [1] * len(order)
        following: dict[int, list[int]] = {}
        for source, target in arcs:
            following.setdefault(source, []).append(target)
        for node in order:
            for target in following.get(node, ()):
                before[target] |= before[node] | (1 << node)
                steps[target] = max(steps[target], steps[node] + 1)
        self.graph.before, self.graph.steps = before, steps

    def _arcs(self) -> list[tuple[int, int]]:
        graph = self.graph
        arcs = [(2 * n, 2 * n + 1) for n in range(len(graph.stages))]
        for child, parent in enumerate(self.parents):
            if parent >= 0:
                arcs.append((2 * parent, 2 * child))
                if graph.stages[child].end_no <= graph.stages[parent].end_no:
                    arcs.append((2 * child + 1, 2 * parent + 1))
        takers = {one.list_id: number for number, stage in enumerate(graph.stages) for one in stage.inputs}
        for edge in graph.edges:
            taker = takers.get(edge.to_list_id)
            if taker is not None:
                arcs.append((2 * graph.owner[edge.from_list_id] + 1, 2 * taker))
        return arcs


def _topological(n_nodes: int, arcs: Sequence[tuple[int, int]]) -> list[int] | None:
    """All nodes, each after those with an arc to it; None when there is a cycle."""
    waiting = [0] * n_nodes
    following: dict[int, list[int]] = {}
    for source, target in arcs:
        waiting[target] += 1
        following.setdefault(source, []).append(target)
    ready = [node for node in range(n_nodes) if not waiting[node]]
    for node in ready:
        for target in following.get(node, ()):
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    return ready if len(ready) == n_nodes else None
