"""The data flow of one query, from facts: edges, steps, the final context, places, what is reachable from where.

Written from DESIGN 5 and docs/internals.md section 2, to be obviously right: it searches, it never plans ahead.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tests.model.facts import CandidateList, Query, Stage

Node = tuple[str, int]
"""("in", stage_id), ("out", stage_id) or FINAL."""
FINAL: Node = ("context", 0)


@dataclass(frozen=True)
class Place:
    """Somewhere a piece of evidence can be seen during the query."""

    node: Node
    order: int
    """Comparable: off the path below on the path below the final context."""
    is_on_path: bool
    is_open: bool
    """It may hold anything."""
    counts_stands_for: bool
    lists: tuple[CandidateList, ...]


class Flow:
    """Edges, steps and places of one query."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.stages: dict[int, Stage] = {s.stage_id: s for s in self.on_the_way(query)}
        self.lists = [x for x in query.lists if x.stage_id is None or x.stage_id in self.stages]
        self.outputs = [x for x in self.lists if x.role == "out"]
        self.arcs: dict[Node, set[Node]] = {}
        for stage in self.stages.values():
            self._arc(("in", stage.stage_id), ("out", stage.stage_id))
            if stage.parent_id in self.stages:
                self._arc(("in", stage.parent_id), ("in", stage.stage_id))
                self._arc(("out", stage.stage_id), ("out", stage.parent_id))
        self.edges: dict[int, tuple[str, frozenset[int]]] = {}
        """By list id of an `in` or `context` list: how, and the list ids it came from."""
        for taken in sorted((x for x in self.lists if x.role != "out"), key=lambda x: x.at):
            self._find_edges(taken)
        self.step_in: dict[int, int] = {}
        self.step_out: dict[int, int] = {}
        for stage_id in self.stages:
            self._step_out(stage_id)
        self.final_how, self.final_lists = self._final()
        self.places = self._places()

    @classmethod
    def on_the_way(cls, query: Query) -> list[Stage]:
        """The stage runs that count."""
        return [s for s in query.stages if not cls._is_out_of_sight(query, s)]

    @staticmethod
    def _is_out_of_sight(query: Query, stage: Stage) -> bool:
        """Aside runs and all that ran inside them are not on the way to the answer."""
        by_id = {s.stage_id: s for s in query.stages}
        at: Stage | None = stage
        while at is not None:
            if at.is_aside:
                return True
            at = by_id.get(at.parent_id) if at.parent_id is not None else None
        return False

    def _arc(self, start: Node, end: Node) -> None:
        self.arcs.setdefault(start, set()).add(end)

    def reachable(self, start: Node) -> set[Node]:
        """All nodes that content of `start` can flow to, `start` itself not counted."""
        seen: set[Node] = set()
        todo = list(self.arcs.get(start, ()))
        while todo:
            node = todo.pop()
            if node not in seen:
                seen.add(node)
                todo.extend(self.arcs.get(node, ()))
        return seen

    # ------------------------------------------------------------------ edges
    def _find_edges(self, taken: CandidateList) -> None:
        ended = [x for x in self.outputs if x.at < taken.at]
        how, origins = self._origins(taken, ended)
        self.edges[taken.list_id] = (how, frozenset(x.list_id for x in origins))
        for origin in origins:
            end: Node = ("in", taken.stage_id) if taken.stage_id is not None else FINAL
            self._arc(("out", self._stage_of(origin)), end)

    @staticmethod
    def _stage_of(output: CandidateList) -> int:
        assert output.stage_id is not None
        return output.stage_id

    def _origins(self, taken: CandidateList, ended: list[CandidateList]) -> tuple[str, list[CandidateList]]:
        if taken.sources:
            return "declared", [x for x in ended if x.stage_id in taken.sources]
        same = [x for x in ended if x.list_id == taken.object_of]
        if not same and taken.ids and taken.object_of is None:  # that both are empty tells nothing
            same = [x for x in ended if x.ids == taken.ids and x.is_complete and taken.is_complete]
        if same:
            return "same", [x for x in same if not any(self._supersedes(y, x) for y in same)]
        shared = {x.list_id: set(x.ids) & set(taken.ids) for x in ended}
        changed = [x for x in ended if shared[x.list_id]]
        if changed:
            return "changed", [
                x
                for x in changed
                if not any(self._supersedes(y, x) and shared[x.list_id] <= shared[y.list_id] for y in changed)
            ]
        return "unknown", ended

    def _supersedes(self, later: CandidateList, earlier: CandidateList) -> bool:
        return ("out", self._stage_of(later)) in self.reachable(("out", self._stage_of(earlier)))

    # ------------------------------------------------------------------ steps
    def _step_in(self, stage_id: int) -> int:
        if stage_id not in self.step_in:
            stage = self.stages[stage_id]
            before = [0]
            if stage.parent_id in self.stages:
                before.append(self._step_in(stage.parent_id))
            for taken in self.lists:
                if taken.role == "in" and taken.stage_id == stage_id:
                    how, origins = self.edges[taken.list_id]
                    before += [self._step_out(self._stage_of(x)) for x in self.outputs if x.list_id in origins]
                    if how == "unknown":
                        before += [self._step_out(s.stage_id) for s in self.stages.values() if s.end < stage.start]
            self.step_in[stage_id] = 1 + max(before)
        return self.step_in[stage_id]

    def _step_out(self, stage_id: int) -> int:
        if stage_id not in self.step_out:
            children = [s.stage_id for s in self.stages.values() if s.parent_id == stage_id]
            self.step_out[stage_id] = 1 + max([self._step_in(stage_id), *map(self._step_out, children)])
        return self.step_out[stage_id]

    # ------------------------------------------------------------------ the final context
    def _final(self) -> tuple[str, list[CandidateList]]:
        how, lists, ends = self._find_final()
        for node in ends:
            self._arc(node, FINAL)
        return how, lists

    def _find_final(self) -> tuple[str, list[CandidateList], list[Node]]:
        declared = [x for x in self.lists if x.role == "context"]
        if declared:
            return "declared", declared, []
        final = [x for x in self.outputs if self.stages[self._stage_of(x)].is_final]
        if final:
            return "final_stage", final, [("out", self._stage_of(x)) for x in final]
        generates = [s for s in self.stages.values() if s.kind == "generate"]
        answering = self._inputs(s for s in generates if s.is_answer)
        if answering:
            return "answer_generate", answering, [("in", self._stage_of(x)) for x in answering]
        only = self._inputs(generates) if len(generates) == 1 else []
        if only:
            return "only_generate", only, [("in", self._stage_of(x)) for x in only]
        consumed = {origin for _, origins in self.edges.values() for origin in origins}
        loose = [x for x in self.outputs if x.list_id not in consumed and not self._is_inside_an_output(x)]
        if len(loose) == 1:
            return "inferred", loose, [("out", self._stage_of(loose[0]))]
        return "unknown", [], []

    def _inputs(self, stages: Iterable[Stage]) -> list[CandidateList]:
        ids = {s.stage_id for s in stages}
        return [x for x in self.lists if x.role == "in" and x.stage_id in ids]

    def _is_inside_an_output(self, output: CandidateList) -> bool:
        parent_id = self.stages[self._stage_of(output)].parent_id
        while parent_id is not None and parent_id in self.stages:
            if any(x.stage_id == parent_id for x in self.outputs):
                return True
            parent_id = self.stages[parent_id].parent_id
        return False

    # ------------------------------------------------------------------ places
    def _places(self) -> dict[Node, Place]:
        expands = [self.step_out[s.stage_id] for s in self.stages.values() if s.kind == "expand"]
        first_expand = min(expands, default=0)
        lists: dict[Node, list[CandidateList]] = {}
        for x in self.lists:
            if x.stage_id is not None and not (x.role == "out" and self.stages[x.stage_id].kind == "generate"):
                lists.setdefault((x.role, x.stage_id), []).append(x)
        places: dict[Node, Place] = {}
        for node, members in lists.items():
            step = (self.step_in if node[0] == "in" else self.step_out)[node[1]]
            on_path = FINAL in self.reachable(node)
            order = step + (1_000_000 if on_path else 10)
            places[node] = Place(node, order, on_path, self._is_open(members), step < first_expand, tuple(members))
        if self.final_how != "unknown":
            is_open = self._is_open(self.final_lists)
            places[FINAL] = Place(FINAL, 1_000_000_000, True, is_open, False, tuple(self.final_lists))
        return places

    def _is_open(self, lists: Iterable[CandidateList]) -> bool:
        if not self.query.is_whole:
            return True
        return any(not x.is_complete or any(entry.is_unplaced for entry in x.entries) for x in lists)
