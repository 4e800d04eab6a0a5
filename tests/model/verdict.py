"""The verdict by brute force: every spot of every gold span is followed by itself, with sets and nothing else.

Written from DESIGN 5, docs/internals.md section 3 and the cases of the design, without a look at the SQL. Slow on purpose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tests.model.facts import Query, Span, Spot, Store
from tests.model.flow import FINAL, Flow, Node, Place
from tests.model.layers import LAYER_NAMES, LastLayer, last_layer

FINAL_ORDER = 1_000_000_000
INDEX = 4
UNRECORDED_RETRIEVAL = 5
"""Order of what the retrieve runs may have put out when none of the run is on record."""

Loss = tuple[str, str | None, str]
"""Kind, the stage's name and "in" or "after"."""


@dataclass(frozen=True)
class Standing:
    """How far something came in one reading: the order of its place, and the places of that order that form the *or*."""

    order: int
    nodes: frozenset[Node | tuple[str, int]]

    @property
    def is_final(self) -> bool:
        """Whether it is in the final context."""
        return self.order == FINAL_ORDER


@dataclass(frozen=True)
class Verdict:
    """What is said of a span, need, set or question."""

    verdict: str
    """kept, unobserved or lost"""
    at: frozenset[Loss]
    """Where it was lost, all members of the *or*; empty when it was not, or when no stage is named."""
    between: tuple[frozenset[Loss], frozenset[Loss]] | None
    """The two places of a loss without a named stage, and of an unobserved one."""
    sure: Standing
    possible: Standing


@dataclass(frozen=True)
class SpanResult:
    """One row of `stage_loss` and its rows of `loss_share`."""

    span: Span
    verdict: Verdict
    shares: Mapping[frozenset[Loss], Fraction]
    """Share of the span per place where pieces of it were lost; the empty set is "no stage named"."""
    candidate_coverage: Fraction
    final_coverage: Fraction
    possible_candidate_coverage: Fraction
    possible_final_coverage: Fraction


@dataclass(frozen=True)
class Recall:
    """Share of needs found at one cut, of the best set, and whether some set is complete."""

    share: Fraction
    is_complete: bool


@dataclass(frozen=True)
class QuestionResult:
    """One row of `question_loss` and what the means are made of."""

    query: Query
    spans: Mapping[str, SpanResult]
    needs: Mapping[tuple[int, str], Verdict]
    sets: Mapping[int, Verdict]
    verdict: Verdict
    candidate: Recall
    final: Recall
    possible_candidate: Recall
    possible_final: Recall
    gained: Fraction
    """Share of the needs of the set that is best in the final context (of several, the one with the least gained), found
    there and in no candidate list."""


class Judge:
    """Judges one query: the places of every spot first, then spans, needs, sets and the question."""

    def __init__(self, store: Store, query: Query) -> None:
        self.store = store
        self.query = query
        self.flow = Flow(query)
        self.min_coverage = Fraction(store.min_coverage)
        self.later = {node: self.flow.reachable(node) for node in self.flow.places}
        self.held = {
            reading: {node: self._held(place, reading) for node, place in self.flow.places.items()}
            for reading in ("sure", "possible")
        }
        if self.flow.final_how == "unknown":
            self.held["possible"][FINAL] = self._everything()

    def question(self) -> QuestionResult:
        """The whole result."""
        spans = {span.evidence_id: self.span(span) for span in self.query.spans}
        counted = [span for span in self.query.spans if span.is_need]
        by_need: dict[tuple[int, str], list[Verdict]] = {}
        for span in counted:
            by_need.setdefault((span.set_no, span.need), []).append(spans[span.evidence_id].verdict)
        needs = {key: self._verdict_of(members, max) for key, members in by_need.items()}
        by_set: dict[int, list[Verdict]] = {}
        for (set_no, _), verdict in needs.items():
            by_set.setdefault(set_no, []).append(verdict)
        sets = {key: self._verdict_of(members, min) for key, members in by_set.items()}
        return QuestionResult(
            self.query,
            spans,
            needs,
            sets,
            self._verdict_of(list(sets.values()), max),
            candidate=self._recall(spans, counted, lambda x: x.candidate_coverage),
            final=self._recall(spans, counted, lambda x: x.final_coverage),
            possible_candidate=self._recall(spans, counted, lambda x: x.possible_candidate_coverage),
            possible_final=self._recall(spans, counted, lambda x: x.possible_final_coverage),
            gained=self._gained(spans, counted),
        )

    # ------------------------------------------------------------------ places of spots
    def _everything(self) -> frozenset[Spot]:
        return frozenset(spot for span in self.query.spans for spot in span.spots)

    def _held(self, place: Place, reading: str) -> frozenset[Spot]:
        if reading == "possible" and place.is_open:
            return self._everything()
        spots: set[Spot] = set()
        for one in place.lists:
            for entry in one.entries:
                spots |= entry.sure
                if place.counts_stands_for:
                    spots |= entry.stands_for
                if reading == "possible":
                    spots |= entry.possible
        return frozenset(spots)

    def _order(self, node: Node) -> int:
        return FINAL_ORDER if node == FINAL else self.flow.places[node].order

    def _standing(self, spot: Spot, layer: int, reading: str) -> Standing:
        nodes = [node for node, spots in self.held[reading].items() if spot in spots]
        if not nodes:
            return Standing(layer, frozenset({("layer", layer)}))
        if FINAL in nodes:
            return Standing(FINAL_ORDER, frozenset({FINAL}))
        on_path = [node for node in nodes if self.flow.places[node].is_on_path]
        nodes = on_path or nodes
        alternatives = [x for x in nodes if not any(y in self.later[x] for y in nodes)]
        return Standing(max(map(self._order, nodes)), frozenset(alternatives))

    # ------------------------------------------------------------------ spans
    def span(self, span: Span) -> SpanResult:
        """Verdict, shares and coverage of one gold span."""
        layer = last_layer(self.store.ingest, span, self.query.started_at)
        sure = {spot: self._standing(spot, layer[spot].sure, "sure") for spot in span.spots}
        possible = {spot: self._possible(spot, layer) for spot in span.spots}
        return SpanResult(
            span,
            self._verdict(self._gather(span, sure), self._gather(span, possible)),
            self._shares(span, sure, possible),
            candidate_coverage=self._coverage(span, self._candidates("sure")),
            final_coverage=self._coverage(span, self.held["sure"].get(FINAL, frozenset())),
            possible_candidate_coverage=self._coverage(span, self._candidates("possible")),
            possible_final_coverage=self._coverage(span, self.held["possible"].get(FINAL, frozenset())),
        )

    def _possible(self, spot: Spot, layer: Mapping[Spot, LastLayer]) -> Standing:
        number = layer[spot].possible
        if number == INDEX and not self._retrieve_names_of_the_run():
            number = UNRECORDED_RETRIEVAL
        return self._standing(spot, number, "possible")

    def _gather(self, span: Span, standings: Mapping[Spot, Standing]) -> Standing:
        """The latest place from which on the spots make up min_coverage."""
        for order in sorted({x.order for x in standings.values()}, reverse=True):
            reached = sum(1 for spot in span.spots if standings[spot].order >= order)
            if reached >= self.min_coverage * len(span.spots):
                return _join(x for x in standings.values() if x.order == order)
        raise AssertionError("all spots together make up the span")

    def _shares(
        self, span: Span, sure: Mapping[Spot, Standing], possible: Mapping[Spot, Standing]
    ) -> dict[frozenset[Loss], Fraction]:
        shares: dict[frozenset[Loss], Fraction] = {}
        for spot in span.spots:
            if not sure[spot].is_final:
                at = self._losses(sure[spot]) if sure[spot].nodes == possible[spot].nodes else frozenset()
                shares[at] = shares.get(at, Fraction(0)) + Fraction(1, len(span.spots))
        return shares

    def _candidates(self, reading: str) -> frozenset[Spot]:
        """The union of what the retrieve runs returned; a key to a parent is not the parent."""
        if reading == "possible" and not self._retrieve_names_of_the_run():
            return self._everything()  # retrieval was not recorded
        spots: set[Spot] = set()
        for node, place in self.flow.places.items():
            if node[0] == "out" and self.flow.stages[node[1]].kind == "retrieve":
                if reading == "possible" and place.is_open:
                    return self._everything()
                for one in place.lists:
                    for entry in one.entries:
                        spots |= entry.sure
                        if reading == "possible":
                            spots |= entry.possible
        return frozenset(spots)

    @staticmethod
    def _coverage(span: Span, spots: frozenset[Spot]) -> Fraction:
        return Fraction(len(span.spots & spots), len(span.spots))

    # ------------------------------------------------------------------ words
    def _verdict_of(self, members: Sequence[Verdict], choose: Callable[[Iterable[int]], int]) -> Verdict:
        """Of a need, set or question: the members' best or worst standing, in each reading by itself."""

        def standing(members: Sequence[Standing]) -> Standing:
            order = choose([x.order for x in members])
            return _join(x for x in members if x.order == order)

        return self._verdict(standing([x.sure for x in members]), standing([x.possible for x in members]))

    def _verdict(self, sure: Standing, possible: Standing) -> Verdict:
        nowhere: frozenset[Loss] = frozenset()
        if sure.is_final:
            return Verdict("kept", nowhere, None, sure, possible)
        if possible.is_final:
            return Verdict("unobserved", nowhere, (self._losses(sure), self._losses(possible)), sure, possible)
        if sure.nodes == possible.nodes:
            return Verdict("lost", self._losses(sure), None, sure, possible)
        return Verdict("lost", nowhere, (self._losses(sure), self._losses(possible)), sure, possible)

    def _losses(self, standing: Standing) -> frozenset[Loss]:
        losses: set[Loss] = set()
        for name, number in standing.nodes:
            if name == "layer" and number == INDEX:
                losses |= self._retrieve_runs()
            elif name == "layer" and number == UNRECORDED_RETRIEVAL:
                losses.add(("retrieve", None, "after"))
            elif name == "layer":
                kind = LAYER_NAMES[number]
                losses.add((kind, self.store.ingest.stage_names.get(kind), "in"))
            elif name == "context":
                losses.add(("context", None, "in"))
            else:
                stage = self.flow.stages[number]
                losses.add((stage.kind, stage.name, "in" if name == "in" else "after"))
        return frozenset(losses)

    def _retrieve_runs(self) -> set[Loss]:
        """The query's retrieve runs; when it skipped retrieval, those that other queries of the run had."""
        own = {s.name for s in self.flow.stages.values() if s.kind == "retrieve"}
        names = own or self._retrieve_names_of_the_run()
        return {("retrieve", name, "in") for name in names} or {("retrieve", None, "in")}

    def _retrieve_names_of_the_run(self) -> set[str]:
        return {
            stage.name
            for query in self.store.queries
            if query.run == self.query.run
            for stage in Flow.on_the_way(query)
            if stage.kind == "retrieve"
        }

    def _recall(
        self,
        spans: Mapping[str, SpanResult],
        counted: Sequence[Span],
        coverage: Callable[[SpanResult], Fraction],
    ) -> Recall:
        shares = [Fraction(sum(x.values()), len(x)) for x in self._found(spans, counted, coverage).values()]
        return Recall(max(shares), any(share == 1 for share in shares))

    def _found(
        self,
        spans: Mapping[str, SpanResult],
        counted: Sequence[Span],
        coverage: Callable[[SpanResult], Fraction],
    ) -> dict[int, dict[str, bool]]:
        """Per set and need whether any of its spans is found."""
        found: dict[int, dict[str, bool]] = {}
        for span in counted:
            needs = found.setdefault(span.set_no, {})
            is_found = coverage(spans[span.evidence_id]) >= self.min_coverage
            needs[span.need] = needs.get(span.need, False) or is_found
        return found

    def _gained(self, spans: Mapping[str, SpanResult], counted: Sequence[Span]) -> Fraction:
        candidates = self._found(spans, counted, lambda x: x.candidate_coverage)
        final = self._found(spans, counted, lambda x: x.final_coverage)
        shares = []
        for set_no, needs in final.items():
            gained = [needs[need] and not candidates[set_no][need] for need in needs]
            shares.append((-Fraction(sum(needs.values()), len(needs)), Fraction(sum(gained), len(gained))))
        return min(shares)[1]


def _join(standings: Iterable[Standing]) -> Standing:
    members = list(standings)
    return Standing(members[0].order, frozenset().union(*(x.nodes for x in members)))
