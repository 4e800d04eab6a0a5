"""Which models give back what was recorded: each way a stage may choose is tried on every complete query of the run.

All ways that survive are kept. Where they differ on a change, the record does not say what would happen.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ragtrace.whatif.fusing import Reciprocal, Weighted
from ragtrace.whatif.models import (
    Budget,
    Cut,
    Facts,
    Kept,
    Mapped,
    Model,
    Ranked,
    Same,
    Searched,
    Threshold,
    Values,
    joined,
)
from ragtrace.whatif.rows import Label, Node, Query, Row, Undetermined, chunks

__all__ = ["LEAST_QUERIES", "Fitted", "fit"]

LEAST_QUERIES = 30
"""Complete queries below which a stage that was given back everywhere still counts as unchecked."""

_CONSTANTS = (60.0, 0.0, 1.0, 2.0, 10.0, 20.0, 40.0, 50.0, 59.0, 61.0, 100.0)
"""Of reciprocal rank fusion, tried where none is declared: 60 is the paper's, 59 and 61 are 60 with other first ranks."""

_CONSTANT_NAMES = ("constant", "rank_constant", "rrf_k", "rrf_constant", "c", "k_rrf", "smoothing")
_WEIGHTS_NAMES = ("weights", "weight", "boosts")
_LISTWISE_NAMES = ("listwise", "is_listwise", "mmr", "diversity", "lambda_mult")

Group = list[Model]


@dataclass(frozen=True, slots=True)
class Fitted:
    """What is known of one stage of the run."""

    label: Label
    models: tuple[Model, ...]
    """Every way of choosing that gives back the record; empty when none does."""
    facts: Facts
    n_queries: int
    """Complete queries it was tried on."""
    why_not: str | None
    """Why it cannot be replayed."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """What it can be replayed at, in a fixed order: what each model can, so that a k that never cut is none."""
        if not self.models:
            return ()
        found = set.intersection(*(set(model.parameters) for model in self.models))
        return tuple(n for n in ("k", "threshold", "constant", "weight", "budget_tokens") if n in found)

    @property
    def is_checked(self) -> bool:
        """It was given back in enough queries."""
        return bool(self.models) and self.n_queries >= LEAST_QUERIES

    def replay(self, node: Node, taken: Sequence[Sequence[Row]], values: Values) -> list[Row]:
        """What it would put out. Raises: Undetermined, with its label."""
        try:
            if not self.models:
                raise Undetermined(self.why_not or "it cannot be replayed")
            found = [model.replay(node, taken, values, self.facts) for model in self.models]
            if any(_shape(other) != _shape(found[0]) for other in found[1:]):
                raise Undetermined("several ways of choosing fit the record, and they differ here")
        except Undetermined as undetermined:
            undetermined.label = self.label
            raise
        return found[0]


def _shape(rows: Sequence[Row]) -> list[tuple[str, int, bool]]:
    return [(row.chunk, row.item, row.is_sure) for row in rows]


def fit(queries: Sequence[Query]) -> dict[Label, Fitted]:
    """Every stage of the run with the models that give back all its complete queries."""
    complete = [query for query in queries if query.left_out is None]
    nodes: dict[Label, list[Node]] = defaultdict(list)
    n_queries: dict[Label, set[int]] = defaultdict(set)
    for query in complete:
        for node in query.nodes.values():
            nodes[node.label].append(node)
            n_queries[node.label].add(query.query_id)
    tokens = _tokens(complete)
    texts = complete[0].texts if complete else {}
    found = {}
    for label, runs in nodes.items():
        facts = Facts(tokens, _became(runs) if label[0] == "expand" else {}, _verdicts(runs), texts)
        models, why = _surviving(label, runs, facts)
        found[label] = Fitted(label, tuple(models), facts, len(n_queries[label]), why)
    return found


def _surviving(label: Label, nodes: Sequence[Node], facts: Facts) -> tuple[list[Model], str | None]:
    """The models of the first group of which some gives back every run, or why there is none."""
    why = "what it put out does not follow from what it took"
    for group in _groups(label[0], nodes, facts):
        models = list(group)
        for node in nodes:
            kept = []
            for model in models:
                try:
                    if _gives_back(model, node, facts):
                        kept.append(model)
                except Undetermined as undetermined:
                    why = undetermined.why
            models = kept
            if not models:
                break
        models = [model for model in models if not _is_idle(model, nodes)]
        if models:
            return _distinct([m for m in models if _is_as_shown(m, nodes, facts)] or models), None
    return [], why


def _distinct(models: Sequence[Model]) -> list[Model]:
    """Pairs of fusions that differ only where sums differ by noise, as one model that says nothing there."""
    found: dict[Model, None] = {}
    for model in models:
        if isinstance(model, Reciprocal | Weighted) and model.noise != "unknown":
            twin = replace(model, noise="tie" if model.noise == "float" else "float")
            model = replace(model, noise="unknown") if twin in models else model
        found[model] = None
    return list(found)


def _is_as_shown(model: Model, nodes: Sequence[Node], facts: Facts) -> bool:
    """Its order goes on behind the cut as the stage shows it: decides between ways of breaking ties."""
    if not isinstance(model, Ranked | Reciprocal | Weighted) or model.rule is None:
        return True
    whole = replace(model, rule=None)
    for node in nodes:
        if len(node.shown) > len(node.out):
            try:
                found = chunks(whole.replay(node, node.taken, {}, facts))
            except Undetermined:
                return False
            known = set(found)
            if found != [chunk for chunk in chunks(node.shown) if chunk in known]:
                return False
    return True


def _gives_back(model: Model, node: Node, facts: Facts) -> bool:
    found = model.replay(node, node.taken, {}, facts)
    if found and not found[-1].is_sure and chunks(found[:-1]) == chunks(node.out):
        return True
    if chunks(found) != chunks(node.out):
        return False
    if isinstance(model, Reciprocal | Weighted) and model.is_scored:
        return all(
            out.score is None or (row.score is not None and math.isclose(row.score, out.score, rel_tol=1e-5))
            for row, out in zip(found, node.out, strict=True)
        )
    return True


def _is_idle(model: Model, nodes: Sequence[Node]) -> bool:
    """A budget that was never seen to let part of a candidate through."""
    if not (isinstance(model, Budget) and model.policy == "part"):
        return False
    whole = {row.item for node in nodes for one in node.taken for row in one}
    return all(row.item in whole for node in nodes for row in node.out)


# ------------------------------------------------------------------ what to try, per kind


def _groups(kind: str, nodes: Sequence[Node], facts: Facts) -> Iterator[Group]:
    """Groups of models in the order of trust: of a later one is made use only where no earlier one fits."""
    yield from _OF_KIND.get(kind, _other)(nodes, facts)


def _retrieve(nodes: Sequence[Node], facts: Facts) -> Iterator[Group]:
    if any(node.inputs for node in nodes):
        yield from _cuts(nodes)
        return
    if all(node.threshold is not None for node in nodes):
        yield [Searched(True)]
    yield [Searched()]


def _fuse(nodes: Sequence[Node], facts: Facts) -> Iterator[Group]:
    params = nodes[0].params
    declared = [float(params[n]) for n in _CONSTANT_NAMES if _is_number(params.get(n))]
    ks = [float(node.k) for node in nodes[:1] if node.k is not None]
    weights: list[tuple[float, ...] | None] = [*_declared_weights(params, max(len(node.taken) for node in nodes))]
    weights = weights or [None]
    rules = [rule for group in _rules(nodes) for rule in group]
    twins = (False, True) if _has_twins(nodes, facts) else (False,)
    by_scores = any("weight" in str(v) or "linear" in str(v) or "score" in str(v) for v in params.values())
    by_scores = by_scores or "alpha" in params or "normalize" in params or "normalization" in params
    shapes = list(itertools.product(("first", "id"), ("float", "tie"), twins))

    def reciprocal(constants: Sequence[float], is_scored: bool, ties: Sequence[tuple[str, str, bool]]) -> Group:
        return [
            Reciprocal(rule, constant, own, *tie, is_scored)
            for constant in dict.fromkeys(constants)
            for own in weights
            for rule in rules
            for tie in ties
        ]

    if by_scores:
        yield [
            Weighted(rule, scaling, own, *tie, True)
            for scaling in ("none", "minmax")
            for own in weights
            for rule in rules
            for tie in shapes
        ]
    as_shown = [("shown", "tie", drops) for drops in twins]
    for ties in (shapes, as_shown):
        for is_scored in (True, False):
            if declared:
                yield reciprocal(declared, is_scored, ties)
            yield reciprocal([*ks, *_CONSTANTS], is_scored, ties)
    yield from _ranked(nodes, is_pointwise=False)


def _filter(nodes: Sequence[Node], facts: Facts) -> Iterator[Group]:
    if all(node.threshold is not None for node in nodes):
        for rules in _rules(nodes):
            yield [Threshold(rule, strict, own) for rule in rules for own in (False, True) for strict in (False, True)]
    yield from _cuts(nodes, or_all=False)
    if not any(node.is_deduplicated for node in nodes):
        yield [Kept()]


def _rerank(nodes: Sequence[Node], facts: Facts) -> Iterator[Group]:
    is_listwise = any(node.params.get(name) for node in nodes[:1] for name in _LISTWISE_NAMES)
    yield from _ranked(nodes, is_pointwise=not is_listwise)


def _ranked(nodes: Sequence[Node], *, is_pointwise: bool) -> Iterator[Group]:
    thresholds: tuple[str | None, ...] = (
        ("least", "above") if all(node.threshold is not None for node in nodes) else (None,)
    )
    for rules in _rules(nodes):
        if is_pointwise:
            yield [Ranked(r, ties, True, t) for r in rules for ties in ("input", "id", "shown") for t in thresholds]
        yield [Ranked(rule, "shown", False, t) for rule in rules for t in thresholds]


def _expand(nodes: Sequence[Node], facts: Facts) -> Iterator[Group]:
    if all(chunks(joined(node.taken)) == chunks(node.out) for node in nodes):
        yield [Mapped()]


def _truncate(nodes: Sequence[Node], facts: Facts) -> Iterator[Group]:
    if all(node.budget_tokens is not None for node in nodes):
        for rules in _rules(nodes, fixed=False):
            yield [
                Budget(p, strict, rule) for rule in rules for p in ("stop", "skip", "part") for strict in (False, True)
            ]
        return
    yield from _cuts(nodes)


def _gap(nodes: Sequence[Node], facts: Facts) -> Iterator[Group]:
    yield from _cuts(nodes)


def _other(nodes: Sequence[Node], facts: Facts) -> Iterator[Group]:
    yield [Same()]


_OF_KIND: Mapping[str, Callable[[Sequence[Node], Facts], Iterator[Group]]] = {
    "retrieve": _retrieve,
    "fuse": _fuse,
    "filter": _filter,
    "rerank": _rerank,
    "expand": _expand,
    "truncate": _truncate,
    "gap": _gap,
}


def _cuts(nodes: Sequence[Node], *, or_all: bool = True) -> Iterator[Group]:
    for rules in _rules(nodes):
        cuts: Group = [Cut(rule) for rule in rules if rule is not None]
        if cuts:
            yield cuts
    if or_all:
        yield [Same()]


def _rules(nodes: Sequence[Node], *, fixed: bool = True) -> Iterator[list[str | int | None]]:
    """How many may go on: k as recorded; else all, where that fits; else a fixed number."""
    longest = max((len(node.out) for node in nodes), default=0)
    if all(node.k is not None for node in nodes):
        yield ["k"]
        fixed = fixed and any(node.k != longest for node in nodes)
    yield [None]
    if fixed and any(len(joined(node.taken)) > len(node.out) == longest for node in nodes):
        yield [longest]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _declared_weights(params: Mapping[str, Any], n_lists: int) -> list[tuple[float, ...]]:
    for name in _WEIGHTS_NAMES:
        value = params.get(name)
        if isinstance(value, Mapping):
            value = list(value.values())
        if isinstance(value, list) and len(value) == n_lists and all(_is_number(v) for v in value):
            return [tuple(float(v) for v in value)]
    alpha = params.get("alpha")
    if _is_number(alpha) and n_lists == 2:
        share = float(alpha)  # type: ignore[arg-type]  # a number, see above
        return [(share, 1.0 - share), (1.0 - share, share)]
    return []


def _has_twins(nodes: Sequence[Node], facts: Facts) -> bool:
    for node in nodes:
        ids = {row.chunk for one in node.taken for row in one}
        hashes = [facts.texts[chunk] for chunk in ids if chunk in facts.texts]
        if len(set(hashes)) < len(hashes):
            return True
    return False


# ------------------------------------------------------------------ what other lists say


def _tokens(queries: Sequence[Query]) -> dict[int, int]:
    found: dict[int, int] = {}
    contested: set[int] = set()
    for query in queries:
        for node in query.nodes.values():
            for rows in (*node.taken, node.out, node.shown):
                for row in rows:
                    if row.tokens is not None and found.setdefault(row.item, row.tokens) != row.tokens:
                        contested.add(row.item)
    return {item: n for item, n in found.items() if item not in contested}


def _became(nodes: Sequence[Node]) -> dict[int, Row]:
    found: dict[int, Row] = {}
    contested: set[int] = set()
    for node in nodes:
        for row, out in zip(joined(node.taken), node.out, strict=False):
            if found.setdefault(row.item, out).item != out.item:
                contested.add(row.item)
    return {item: out for item, out in found.items() if item not in contested}


def _verdicts(nodes: Sequence[Node]) -> dict[str, bool]:
    found: dict[str, bool] = {}
    for node in nodes:
        passed = set(chunks(node.out))
        for row in joined(node.taken):
            if found.setdefault(row.chunk, row.chunk in passed) != (row.chunk in passed):
                return {}
    return found
