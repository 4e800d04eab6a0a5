"""Every change of one setting, replayed over a run: recall, what is gained and lost, what it costs, how sure that is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ragtrace.progress import Progress
from ragtrace.whatif.fitting import Fitted
from ragtrace.whatif.judging import Case, Judge, Verdict
from ragtrace.whatif.replay import Change, Outcome, Replayer, Settings, settings
from ragtrace.whatif.rows import Label, Query, Row

__all__ = ["EXACT", "PASSES", "RERUN", "UNCHECKED", "Bench", "Point"]

EXACT = "exact"
PASSES = "passes"
RERUN = "re-run"
UNCHECKED = "unchecked"

_SURE_MODES = ("exact", "lexical", "sql")
"""Searches of which the best k are the first of the best k + 1."""


class Point(NamedTuple):
    """One change, or several made together, over all replayed queries."""

    changes: tuple[Change, ...]
    """Empty: as recorded."""
    promise: str
    """exact, passes, re-run or unchecked."""
    passes_to: Label | None
    """passes: the stage up to which it is replayed, which must be run."""
    why: str | None
    """What stands in the way of exact."""
    n_queries: int
    n_stuck: int
    """Queries of which the record does not say what would come out."""
    candidate_recall: float | None
    final_recall: float | None
    """None where the final context is not known."""
    n_found: int | None
    """Needs found in the final context."""
    n_needs: int
    gained: frozenset[tuple[int, str]]
    """(query_id, evidence_id) found then and not now: in the final context, or in what `passes_to` takes."""
    lost: frozenset[tuple[int, str]]
    """Found now and not then, likewise."""
    tokens: float | None
    """Of the final context, a query; None where some are not recorded."""
    n_context: float | None
    """Candidates in the final context, a query."""
    n_reranked: float
    """Candidates that rerankers read, a query."""


@dataclass(slots=True)
class _Tried:
    changes: tuple[Change, ...]
    outcomes: list[Outcome]
    cases: list[Case | None]
    stop: Label | None = None
    before: list[tuple[Case, Case] | None] = field(default_factory=list)


class Bench:
    """Tries changes on the queries of one run. `queries` are those that can be replayed and judged."""

    def __init__(self, queries: Sequence[Query], fitted: Mapping[Label, Fitted], judge: Judge) -> None:
        self.queries = queries
        self.fitted = fitted
        self._judge = judge
        self._replayers = [Replayer(query, fitted) for query in queries]
        self._depths: dict[Label, int] = {}
        for query in queries:
            for node in query.nodes.values():
                self._depths[node.label] = max(self._depths.get(node.label, 0), node.depth)
        self._tokens = _tokens(fitted)
        self._base = self._try(())
        self._base_verdicts: list[Verdict] = []
        self._base_verdicts = self._verdicts(self._base)
        self.base = self._point(self._base)

    def points(self, tried: Sequence[tuple[Change, ...]], progress: Progress | None = None) -> list[Point]:
        """One point for each set of changes, in the order given. All are judged at once."""
        done = []
        for n_done, changes in enumerate(tried, 1):
            done.append(self._try(changes))
            if progress:
                progress("replaying changes", n_done, len(tried))
        self._judge.verdicts(
            case
            for one in done
            for case in (*one.cases, *(c for pair in one.before if pair for c in pair))
            if case is not None
        )
        return [self._point(one) for one in done]

    def kept(self, asked: Sequence[tuple[int, tuple[Change, ...]]]) -> list[frozenset[str]]:
        """For each pair of a query (by its place) and changes the spans it would keep; none where the record ends."""
        outcomes = [self._replayers[at].outcome(settings(changes)) for at, changes in asked]
        cases = [
            None if outcome.final is None else self._judge.case(self.queries[at].query_id, outcome.final, ())
            for (at, _), outcome in zip(asked, outcomes, strict=True)
        ]
        known = self._judge.verdicts([case for case in cases if case is not None])
        return [frozenset() if case is None else known[case].kept for case in cases]

    def lost_now(self, at: int) -> frozenset[str]:
        """Spans of one query that are not in its recorded final context."""
        return self._judge.spans(self.queries[at].query_id) - self._base_verdicts[at].kept

    def _case(self, query: Query, outcome: Outcome) -> Case | None:
        """What is to be judged; without the final context where that is not known, None where nothing is."""
        if outcome.final is None and outcome.candidates is None:
            return None
        return self._judge.case(query.query_id, outcome.final or (), outcome.candidates or ())

    def _try(self, changes: tuple[Change, ...]) -> _Tried:
        changed = settings(changes)
        outcomes = [replayer.outcome(changed) for replayer in self._replayers]
        cases = [self._case(query, outcome) for query, outcome in zip(self.queries, outcomes, strict=True)]
        stuck = {outcome.stuck_at for outcome in outcomes if outcome.stuck_at is not None}
        tried = _Tried(changes, outcomes, cases)
        if stuck:
            tried.stop = min(stuck, key=lambda label: (self._depths[label], label))
            tried.before = [self._before(at, tried.stop, changed, outcomes[at].made) for at in range(len(self.queries))]
        for outcome in outcomes:
            outcome.made.clear()
        return tried

    def _before(self, at: int, stop: Label, changed: Settings, made: dict[int, list[Row]]) -> tuple[Case, Case] | None:
        then = self._replayers[at].before(stop, changed, made)
        now = self._replayers[at].before(stop, {})
        if then is None or now is None:
            return None
        query_id = self.queries[at].query_id
        return self._judge.case(query_id, now, ()), self._judge.case(query_id, then, ())

    def _verdicts(self, tried: _Tried) -> list[Verdict]:
        cases = [case for case in tried.cases if case is not None]
        known = self._judge.verdicts(cases)
        return [known[case] for case in cases]

    def _point(self, tried: _Tried) -> Point:
        n = len(self.queries)
        promise, stop, why = self._promise(tried)
        known = self._judge.verdicts([c for c in tried.cases if c is not None])
        judged = [None if case is None else known[case] for case in tried.cases]
        whole = [v for v, o in zip(judged, tried.outcomes, strict=True) if v is not None and o.final is not None]
        searched = [
            v for v, o in zip(judged, tried.outcomes, strict=True) if v is not None and o.candidates is not None
        ]
        gained: set[tuple[int, str]] = set()
        lost: set[tuple[int, str]] = set()
        sides: list[tuple[frozenset[str], frozenset[str], frozenset[str]] | None]
        if tried.stop is None:
            sides = [(now.kept, v.kept, v.may_be_kept) for now, v in zip(self._base_verdicts, whole, strict=False)]
        else:
            both = self._judge.verdicts(c for pair in tried.before if pair for c in pair)
            sides = [
                None if pair is None else (both[pair[0]].kept, both[pair[1]].kept, both[pair[1]].may_be_kept)
                for pair in tried.before
            ]
        for query, side in zip(self.queries, sides, strict=False):
            if side is not None:
                now_kept, then_kept, may_be_kept = side
                gained.update((query.query_id, span) for span in then_kept - now_kept)
                lost.update((query.query_id, span) for span in now_kept - may_be_kept)
        is_whole = len(whole) == n and not any(v.is_open for v in whole)
        tokens, n_context = self._context(tried.outcomes) if is_whole else (None, None)
        return Point(
            tried.changes,
            promise,
            stop,
            why,
            n,
            n - len(whole) + sum(v.is_open for v in whole),
            _mean([v.candidate_recall for v in searched]) if len(searched) == n else None,
            _mean([v.final_recall for v in whole]) if is_whole else None,
            sum(v.n_found for v in whole) if is_whole else None,
            sum(v.n_needs for v in self._base_verdicts or whole),
            frozenset(gained),
            frozenset(lost),
            tokens,
            n_context,
            _mean([float(outcome.n_reranked) for outcome in tried.outcomes]) or 0.0,
        )

    def _promise(self, tried: _Tried) -> tuple[str, Label | None, str | None]:
        changed = {change.label for change in tried.changes}
        if tried.stop is not None:
            why = Counter(o.why for o in tried.outcomes if o.stuck_at == tried.stop).most_common(1)[0][0]
            return (RERUN, None, why) if tried.stop in changed else (PASSES, tried.stop, why)
        n_open = sum(verdict.is_open for verdict in self._verdicts(tried))
        n_open += sum(
            any(row.item in self._judge.unplaced for row in outcome.final or ()) for outcome in tried.outcomes
        )
        if n_open and changed:  # as recorded, nothing is replayed
            last = max(self._behind(changed), key=lambda label: self._depths[label])
            return PASSES, last, "what it leaves of some candidate is not recorded"
        replayed = changed.union(*(outcome.replayed for outcome in tried.outcomes))
        thin = [label for label in replayed if not self.fitted[label].is_checked]
        if thin:
            n_least = min(self.fitted[label].n_queries for label in thin)
            return UNCHECKED, None, f"{n_least} complete queries are too few to check a replay on"
        loose = [change for change in tried.changes if self._is_loose(change)]
        if loose:
            return UNCHECKED, None, "as far as a smaller approximate search returns the same first ones"
        return EXACT, None, None

    def _behind(self, changed: set[Label]) -> set[Label]:
        """The changed stages and all behind them."""
        found = set(changed)
        for query in self.queries:
            for key, labels in query.upstream().items():
                if labels & changed:
                    found.add(query.nodes[key].label)
        return found

    def _is_loose(self, change: Change) -> bool:
        if change.label[0] != "retrieve" or change.parameter != "k":
            return False
        nodes = [node for query in self.queries for node in query.nodes.values() if node.label == change.label]
        return any(
            node.mode not in _SURE_MODES and not node.inputs and len(node.shown) == len(node.out) > change.value
            for node in nodes
        )

    def _context(self, outcomes: Sequence[Outcome]) -> tuple[float | None, float | None]:
        sums: list[float] = []
        for outcome in outcomes:
            own = [self._tokens_of(row) for row in outcome.final or ()]
            if any(tokens is None for tokens in own):
                return None, _mean([float(len(o.final or ())) for o in outcomes])
            sums.append(float(sum(tokens for tokens in own if tokens is not None)))
        return _mean(sums), _mean([float(len(o.final or ())) for o in outcomes])

    def _tokens_of(self, row: Row) -> int | None:
        return self._tokens.get(row.item) if row.tokens is None else row.tokens


def _tokens(fitted: Mapping[Label, Fitted]) -> Mapping[int, int]:
    return next((one.facts.tokens for one in fitted.values()), {})


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
