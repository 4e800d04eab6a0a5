"""Two runs over the same questions, paired: what differs, how surely, and which questions make the difference.

Values per question come from the query `compared_questions`; here is what no SQL does: tests and resampling, by SciPy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ragtrace.errors import NotInstalledError, ParameterError
from ragtrace.reports import run as reports

if TYPE_CHECKING:
    import duckdb

__all__ = ["Compared", "Difference", "compare", "interval"]

N_RESAMPLES = 10_000
SEED = 20_260_101
CONFIDENCE = 0.95
FEWEST_GROUPS = 8
"""Of fewer a resample says nothing: one question drawn again is itself, with bounds of no width."""
_AT_ONCE = 4_000_000
"""Weights drawn in one go: groups × resamples."""

_MEASURES = {"candidate recall": "candidate", "final-context recall": "final", "complete": "complete"}
_COSTS = {"milliseconds a query": "ms", "tokens of the final context": "tokens"}


class Difference(NamedTuple):
    """One measure in both runs, over the questions that both have."""

    measure: str
    part: str
    """all, or a kind or tag of questions."""
    n: int
    """Questions that are judged in both."""
    a: float
    b: float
    difference: float
    """b - a."""
    low: float
    """Bounds of the difference: paired bootstrap, clustered by group, 95 percent."""
    high: float
    p: float | None
    """complete: exact McNemar test over the questions that differ."""
    verdict: str
    """better, worse (b against a), no clear difference, or too few: fewer groups of questions than FEWEST_GROUPS."""
    below_1_a: float | None = None
    """Recalls: share of questions below 1."""
    below_1_b: float | None = None
    below_half_a: float | None = None
    """Recalls: share of questions below 0.5."""
    below_half_b: float | None = None


class Compared(NamedTuple):
    """What `compare` found."""

    a: str
    b: str
    overall: list[Difference]
    parts: list[Difference]
    costs: list[Difference]
    """Latency and tokens: better means less."""
    changed: list[dict[str, Any]]
    """Questions whose final-context recall differs, the greatest loss first, with where each run lost it."""
    only_in_a: list[str]
    only_in_b: list[str]
    unobserved: list[str]
    """Questions in both of which one has no judged query."""
    warnings: list[str]


def compare(connection: duckdb.DuckDBPyConnection, a: str, b: str) -> Compared:
    """Compare run b with run a, question by question.

    Raises: ParameterError when they are one, when one has no scored query, or when they share no judged question;
    NotInstalledError without the extra `stats`.
    """
    if a == b:
        raise ParameterError(f"{a} is compared with itself: give two runs", parameter="b")
    rows = reports.run(connection, "compared_questions", a=a, b=b).records()
    for side, run in (("a", a), ("b", b)):
        if not any(row[f"n_{side}"] or row[f"n_open_{side}"] for row in rows):
            known = [row["run"] for row in reports.run(connection, "runs").records() if row["run"] is not None]
            raise ParameterError(
                f"run {run!r} has no query that asks a labelled question; runs in the store: {', '.join(known)}",
                parameter=side,
            )
    in_both = [row for row in rows if all(row[f"n_{side}"] or row[f"n_open_{side}"] for side in "ab")]
    judged = [row for row in in_both if row["n_a"] and row["n_b"]]
    if not judged:
        raise ParameterError(f"{a} and {b} share no question that is judged in both", parameter="b")
    overall = [_difference(name, "all", column, judged) for name, column in _MEASURES.items()]
    parts = [
        _difference(name, part, column, members)
        for part, members in _parts(judged)
        for name, column in _MEASURES.items()
    ]
    costs = [
        _difference(name, "all", column, members, is_less_better=True)
        for name, column in _COSTS.items()
        if (members := [row for row in judged if row[f"{column}_a"] is not None and row[f"{column}_b"] is not None])
    ]
    shown = ("question_id", "kind", "final_a", "final_b", "lost_a", "lost_b")
    changed = sorted(
        ({name: row[name] for name in shown} for row in judged if row["final_a"] != row["final_b"]),
        key=lambda row: (row["final_b"] - row["final_a"], row["question_id"]),
    )
    return Compared(
        a,
        b,
        overall,
        parts,
        costs,
        changed,
        [row["question_id"] for row in rows if not (row["n_b"] or row["n_open_b"])],
        [row["question_id"] for row in rows if not (row["n_a"] or row["n_open_a"])],
        [row["question_id"] for row in in_both if not (row["n_a"] and row["n_b"])],
        _warnings(connection, a, b, costs),
    )


def interval(n_hits: int, n: int, method: str = "wilson", confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Two-sided bounds of a share: `wilson` (Wilson 1927) or `exact` (Clopper and Pearson 1934). Raises: NotInstalledError."""
    found = _scipy().binomtest(n_hits, n).proportion_ci(confidence, method)
    return float(found.low), float(found.high)


def _scipy() -> Any:
    try:
        from scipy import stats
    except ImportError as error:
        raise NotInstalledError("comparing runs needs SciPy: pip install 'ragtrace[stats]'", module="scipy") from error
    return stats


def _parts(rows: Sequence[Mapping[str, Any]]) -> Iterable[tuple[str, list[Mapping[str, Any]]]]:
    """By kind, then by tag; a part that holds all questions says nothing new."""
    named: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["kind"] is not None:
            named.setdefault(f"kind {row['kind']}", []).append(row)
    for row in rows:
        for tag in row["tags"] or ():
            named.setdefault(f"tag {tag}", []).append(row)
    return [(name, members) for name, members in named.items() if len(members) < len(rows)]


def _difference(
    measure: str, part: str, column: str, rows: Sequence[Mapping[str, Any]], is_less_better: bool = False
) -> Difference:
    first, second = ([float(row[f"{column}_{side}"]) for row in rows] for side in "ab")
    pairs = [after - before for before, after in zip(first, second, strict=True)]
    low, high = _bootstrap(pairs, [row["group_id"] for row in rows])
    n = len(rows)
    mean_a, mean_b = sum(first) / n, sum(second) / n
    p = _mcnemar(pairs) if column == "complete" else None
    is_clear = low > 0 or high < 0
    if p is not None:
        is_clear = is_clear and p < 1 - CONFIDENCE
    verdict = "no clear difference"
    if len({row["group_id"] for row in rows}) < FEWEST_GROUPS:
        verdict = "too few"
    elif is_clear:
        verdict = "better" if (mean_b > mean_a) != is_less_better else "worse"
    below: list[float | None] = [None] * 4
    if column in ("candidate", "final"):
        below = [sum(value < limit for value in values) / n for limit in (1, 0.5) for values in (first, second)]
    return Difference(measure, part, n, mean_a, mean_b, mean_b - mean_a, low, high, p, verdict, *below)


def _mcnemar(pairs: Sequence[float]) -> float:
    """Two-sided exact McNemar test (Edwards' binomial form): of the questions that differ, as many either way?"""
    n_gained, n_lost = sum(pair > 0 for pair in pairs), sum(pair < 0 for pair in pairs)
    if not n_gained + n_lost:
        return 1.0
    return float(_scipy().binomtest(n_gained, n_gained + n_lost, 0.5).pvalue)


def _bootstrap(pairs: Sequence[float], groups: Sequence[str]) -> tuple[float, float]:
    """Percentile bounds of the mean difference: whole groups are drawn again (Efron and Tibshirani 1993), seed fixed."""
    _scipy()
    import numpy as np

    sums: dict[str, list[float]] = {}
    for pair, group in zip(pairs, groups, strict=True):
        sums.setdefault(group, []).append(pair)
    totals = np.array([sum(values) for values in sums.values()])
    counts = np.array([len(values) for values in sums.values()])
    n = len(totals)
    chance = np.random.default_rng(SEED)
    means = []
    n_done = 0
    while n_done < N_RESAMPLES:
        n_now = min(N_RESAMPLES - n_done, max(1, _AT_ONCE // n))
        weights = chance.multinomial(n, np.full(n, 1 / n), size=n_now)
        means.append((weights @ totals) / (weights @ counts))
        n_done += n_now
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(np.concatenate(means), [tail, 1 - tail])
    return float(low), float(high)


def _warnings(connection: duckdb.DuckDBPyConnection, a: str, b: str, costs: Sequence[Difference]) -> list[str]:
    found = []
    for row in reports.run(connection, "compared_settings", a=a, b=b).records():
        if row["in_a"] != row["in_b"]:
            found.append(f"{row['what']}: {_said(row['in_a'])} in {a}, {_said(row['in_b'])} in {b}")
    for cost in costs:
        if cost.measure.startswith("tokens") and abs(cost.difference) > 0.1 * max(cost.a, cost.b):
            found.append(f"{cost.measure}: {cost.a:,.0f} in {a}, {cost.b:,.0f} in {b}")
    return found


def _said(value: str | None) -> str:
    return "not recorded" if value is None else value
