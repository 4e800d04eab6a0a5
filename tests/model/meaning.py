"""What a verdict means, played out: had these places dropped nothing, what would have reached the final context?

The flow is run once more with the places from an order on (or only those after it) handing on all they hold, along every
arc. A place that leads nowhere hands it to the final context: that nobody took its list is what it dropped.
"""

from __future__ import annotations

from fractions import Fraction

from tests.model.facts import Span, Spot
from tests.model.flow import FINAL, Node
from tests.model.layers import layers
from tests.model.verdict import FINAL_ORDER, Judge


def would_be_kept(judge: Judge, order: int, is_inclusive: bool) -> bool:
    """Whether the question would have been kept."""
    needs: dict[tuple[int, str], bool] = {}
    for span in judge.query.spans:
        if span.is_need:
            key = (span.set_no, span.need)
            needs[key] = needs.get(key, False) or span_would_be_kept(judge, span, order, is_inclusive)
    return any(all(kept for (s, _), kept in needs.items() if s == set_no) for set_no, _ in needs)


def span_would_be_kept(judge: Judge, span: Span, order: int, is_inclusive: bool) -> bool:
    """Whether the span would have been kept had every place from this order on (or after it) dropped nothing."""

    def drops_nothing(at: int) -> bool:
        return at >= order if is_inclusive else at > order

    content = _layered(judge, span, drops_nothing(4), order, is_inclusive)
    nodes = {node for start, ends in judge.flow.arcs.items() for node in (start, *ends)} | set(judge.held["sure"])
    held: dict[Node, set[Spot]] = {node: set(judge.held["sure"].get(node, ())) for node in nodes | {FINAL}}
    held[FINAL] |= content
    is_changing = True
    while is_changing:
        is_changing = False
        for node in nodes - {FINAL}:
            if not drops_nothing(_order(judge, node)):
                continue
            ends = set(judge.flow.arcs.get(node, ()))
            if FINAL not in judge.flow.reachable(node):
                ends.add(FINAL)
            for end in ends:
                if not held[node] <= held[end]:
                    held[end] |= held[node]
                    is_changing = True
    share = Fraction(len(held[FINAL] & span.spots), len(span.spots))
    return share >= judge.min_coverage


def _order(judge: Judge, node: Node) -> int:
    """As a place's, also for the nodes of stages that had no list there."""
    if node == FINAL:
        return FINAL_ORDER
    step = (judge.flow.step_in if node[0] == "in" else judge.flow.step_out)[node[1]]
    return step + (1_000_000 if FINAL in judge.flow.reachable(node) else 10)


def _layered(judge: Judge, span: Span, retrieves_all: bool, order: int, is_inclusive: bool) -> set[Spot]:
    """What the layers hand on when each from that order on drops nothing; all stages are later and drop nothing then."""
    if not retrieves_all:
        return set()
    found: set[Spot] = set()
    for number, layer in enumerate(layers(judge.store.ingest, span, judge.query.started_at), start=1):
        if number > order or (is_inclusive and number == order):
            found |= layer.seen
    if is_inclusive and order == 0:
        found |= span.spots  # the document itself
    return found & span.spots
