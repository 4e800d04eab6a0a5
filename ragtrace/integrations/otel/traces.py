"""The spans of one trace as queries: which span asks a question, which stages are inside, in which order all began and ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from ragtrace.integrations.otel.rules import Said
from ragtrace.integrations.otel.spans import NO_PARENT, Span

__all__ = ["Asked", "Node", "Start", "queries"]


class Node:
    """A span with what it says, and its place in the trace."""

    __slots__ = ("children", "depth", "kind", "said", "span")

    def __init__(self, span: Span, said: Said | None) -> None:
        self.span = span
        self.said = said
        self.kind = said.kind if said is not None else ""
        self.children: list[Node] = []

    @property
    def question(self) -> str | None:
        """What was asked of it, where it is no stage."""
        return self.said.question if self.said is not None else None

    def subtree(self) -> Iterable[Node]:
        """It and all below, parents first, in the order of their starts."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))


class Start(NamedTuple):
    """A stage begins here, or ends."""

    node: Node
    around: Node | None
    """The stage it runs in."""
    is_end: bool
    at_ns: int


class Asked(NamedTuple):
    """One question put to a service."""

    head: Node | None
    """The span that stands for it; None: it never came, and neither may others have."""
    tops: list[Node]
    """The spans directly below the missing one, or the head alone."""
    is_whole: bool
    """Whether every span that others name as their parent is there."""

    @property
    def nodes(self) -> list[Node]:
        """All spans of it."""
        return [node for top in self.tops for node in top.subtree()]

    def fact(self, read: Callable[[Said], Any]) -> Any:
        """The first thing that one of its spans says, from the top down."""
        for node in self.nodes:
            value = None if node.said is None else read(node.said)
            if value is not None:
                return value
        return None

    def question(self) -> str | None:
        """What was asked: of the span on top that says it, else of the first retriever."""
        asked = self.fact(lambda said: said.question) or self.fact(lambda said: said.query)
        return asked if isinstance(asked, str) else None

    def order(self) -> list[Start]:
        """The starts and ends of its stages. At one instant, what is inside is inside, and one comes after the other."""
        found: list[Start] = []
        for top in self.tops:
            _walk(top, None, 0, found)
        return sorted(found, key=lambda start: start.at_ns)  # stable: the tree's order decides at one instant


def _walk(top: Node, around: Node | None, not_before_ns: int, found: list[Start]) -> None:
    """Append starts and ends in the tree's order; without recursion, because somebody else made the tree."""
    waiting: list[tuple[Node, Node | None, int, bool]] = [(top, around, not_before_ns, False)]
    while waiting:
        node, outer, earliest_ns, is_end = waiting.pop()
        # Clocks of two machines differ: nothing begins before what it is part of.
        start_ns = max(node.span.start_ns, earliest_ns)
        if is_end:
            found.append(Start(node, outer, True, max(node.span.end_ns, start_ns)))
            continue
        inner = outer
        if node.kind:
            found.append(Start(node, outer, False, start_ns))
            waiting.append((node, outer, earliest_ns, True))
            inner = node
        waiting.extend((child, inner, start_ns, False) for child in reversed(node.children))


def queries(spans: Mapping[int, tuple[Span, Said | None]]) -> list[Asked]:
    """The questions of one trace, by span id, that have at least one stage."""
    nodes = {span_id: Node(span, said) for span_id, (span, said) in spans.items()}
    tops: dict[int, list[Node]] = {}
    for node in sorted(nodes.values(), key=lambda node: (node.span.start_ns, -node.span.end_ns)):
        parent_id = node.span.parent_id
        parent = nodes.get(parent_id)
        if parent is None or parent is node:
            tops.setdefault(parent_id, []).append(node)
        else:
            parent.children.append(node)
    found: list[Asked] = []
    for parent_id, group in tops.items():
        loose: list[Node] = []
        for top in group:
            if parent_id != NO_PARENT and top.kind and not top.span.is_entry:
                loose.append(top)  # what it was part of is missing: others of it may be as well
            else:
                found.extend(_heads(top))
        if loose:
            found.append(Asked(None, loose, False))
    return [asked for asked in found if any(node.kind for node in asked.nodes)]


def _heads(top: Node) -> list[Asked]:
    """The questions below a span: as a rule one, its own.

    Several, when it holds several whole ones, each with a question, a retriever and a model: a loop over questions.
    """
    inner = [child for child in top.children if child.question is not None and not child.kind and _is_whole(child)]
    if top.kind or len({child.question for child in inner}) < 2:
        return [Asked(top, [top], True)]
    rest = Node(top.span, top.said)
    rest.children = [child for child in top.children if child not in inner]
    return [*(asked for child in inner for asked in _heads(child)), Asked(rest, [rest], True)]


def _is_whole(node: Node) -> bool:
    kinds = {inner.kind for inner in node.subtree()}
    return "retrieve" in kinds and "generate" in kinds
