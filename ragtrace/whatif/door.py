"""The one door: a store's run in, every replayable change of it out."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ragtrace.errors import NotReplayableError, ParameterError, ReportError
from ragtrace.progress import Progress
from ragtrace.store import runs
from ragtrace.whatif import recorded
from ragtrace.whatif.advising import Advice, advise, combined
from ragtrace.whatif.examining import Bench, Point
from ragtrace.whatif.fitting import Fitted, fit
from ragtrace.whatif.grid import Axis, axes
from ragtrace.whatif.judging import Judge
from ragtrace.whatif.limits import MOST_QUERIES, MOST_VALUES
from ragtrace.whatif.rows import Label, Query

if TYPE_CHECKING:
    import duckdb

__all__ = ["Curve", "Examined", "examine"]


class Curve(NamedTuple):
    """One setting and what each value of it would do."""

    axis: Axis
    points: tuple[Point, ...]
    """In the order of the axis's values."""


class Examined(NamedTuple):
    """What a run's recorded lists say of changes to it."""

    run: str | None
    n_queries: int
    """Queries of the run."""
    n_read: int
    """Queries looked at: all, unless they are more than were asked for."""
    n_replayed: int
    """Queries with labels that were replayed."""
    left_out: tuple[tuple[str, int], ...]
    """Why others were not, and how many."""
    stages: tuple[Fitted, ...]
    """Every stage in the order of the way, with what is known of it."""
    base: Point
    """As recorded."""
    curves: tuple[Curve, ...]
    sets: tuple[Point, ...]
    """Changes made together, for evidence that one change does not restore."""
    advice: tuple[Advice, ...]
    """What to change, the best first."""
    names: dict[str, str]
    """doc_id and quote of each evidence_id that some change gains or loses; for people."""


def examine(
    connection: duckdb.DuckDBPyConnection,
    run: str | None = None,
    stage: str | None = None,
    *,
    most_queries: int = MOST_QUERIES,
    most_values: int = MOST_VALUES,
    progress: Progress | None = None,
) -> Examined:
    """Every change of one setting of a run (the newest when None), replayed; of one stage only when it is named.

    Raises: ReportError for an unknown run or one without judged labels; ParameterError for an unknown stage;
    NotReplayableError when nothing of it follows from the record.
    """
    run = runs.meant(connection, run)
    recording = recorded.read(connection, run, most_queries)
    judged = [query for query in recording.queries if query.is_judged]
    if not judged:
        raise ReportError(
            f"no query of run {run!r} has a label that can be judged, so nothing says what a change would gain: load"
            " labels with ragtrace gold load",
            run=run,
        )
    queries = [query for query in judged if query.left_out is None]
    left_out = Counter(query.left_out for query in judged if query.left_out is not None)
    if not queries:
        listed = "; ".join(f"{why} ({n})" for why, n in left_out.most_common())
        raise NotReplayableError(f"no query of run {run!r} can be replayed: {listed}", run=run, left_out=dict(left_out))
    fitted = fit(recording.queries)
    order = _order(queries)
    if stage is not None:
        _must_be_a_stage(stage, order, run)
    with Judge(connection, [query.query_id for query in queries]) as judge:
        bench = Bench(queries, fitted, judge)
        holders = {query.query_id: judge.holders(query.query_id) for query in queries}
        every = axes(queries, fitted, holders, most_values)
        shown = [axis for axis in every if stage in (None, axis.label[1])]
        if not shown:
            raise NotReplayableError(_nothing(run, stage, fitted, order), run=run, stage=stage)
        singles = bench.points([(axis.change(value),) for axis in shown for value in axis.values], progress)
        each = iter(singles)
        curves = [Curve(axis, tuple(next(each) for _ in axis.values)) for axis in shown]
        sets = combined(bench, every, singles) if stage is None else []
        advice = advise(bench.base, [*singles, *sets])
        base = bench.base
    spans = {span for point in (*singles, *sets) for _, span in (*point.gained, *point.lost)}
    return Examined(
        run,
        recording.n_queries,
        len(recording.queries),
        len(queries),
        tuple(left_out.most_common()),
        tuple(fitted[label] for label in order),
        base,
        tuple(curves),
        tuple(sets),
        tuple(advice),
        _names(connection, sorted(spans)),
    )


def _order(queries: Sequence[Query]) -> list[Label]:
    """Every stage in the order of the way."""
    depths: dict[Label, int] = {}
    for query in queries:
        for node in query.nodes.values():
            depths[node.label] = max(depths.get(node.label, 0), node.depth)
    return sorted(depths, key=lambda label: (depths[label], label))


def _must_be_a_stage(stage: str, order: Sequence[Label], run: str | None) -> None:
    names = [name for _, name in order]
    if stage not in names:
        nearest = difflib.get_close_matches(stage, names, n=3, cutoff=0.4)
        hint = f"; nearest: {', '.join(nearest)}" if nearest else ""
        raise ParameterError(
            f"no stage of run {run!r} is named {stage!r}{hint}; it has {', '.join(names)}", stage=stage, nearest=nearest
        )


def _nothing(run: str | None, stage: str | None, fitted: dict[Label, Fitted], order: Sequence[Label]) -> str:
    own = [fitted[label] for label in order if stage in (None, label[1])]
    why = "; ".join(f"{one.label[1]}: {one.why_not or 'it has no setting to change'}" for one in own)
    who = f"run {run!r}" if stage is None else f"stage {stage!r} of run {run!r}"
    return f"nothing of {who} can be replayed ({why}): a new run must be made and compared"


def _names(connection: duckdb.DuckDBPyConnection, spans: Sequence[str]) -> dict[str, str]:
    rows = connection.execute(
        "select evidence_id, doc_id, left(coalesce(quote, span_text), 80) from evidence"
        " where evidence_id in (select unnest($ids))",
        {"ids": list(spans)},
    ).fetchall()
    return {evidence_id: f"{doc_id}: {quote}" if quote else str(doc_id) for evidence_id, doc_id, quote in rows}
