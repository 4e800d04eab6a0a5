"""What-if as one screen of a terminal: what to change, a small table a setting, what cannot be replayed. Draws only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ragtrace.reports import changes
from ragtrace.reports.render import visible, word
from ragtrace.whatif.door import Curve, Examined
from ragtrace.whatif.examining import PASSES, RERUN, Point

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["draw"]

_MOST_ADVICE = 8
_MOST_VALUES = 9
"""Lines of a setting; the other values are in the JSON and CSV."""


def draw(examined: Examined, store: str) -> Iterator[RenderableType]:
    """The parts of the screen, top to bottom."""
    from rich.text import Text

    run = "without a name" if examined.run is None else visible(examined.run)
    of = f" of {examined.n_queries:,}" if examined.n_replayed < examined.n_queries else ""
    yield Text.assemble((store, "bold"), "  run ", (run, "bold"), f"  {examined.n_replayed:,}{of} queries replayed")
    if examined.n_read < examined.n_queries:
        yield Text(f"{examined.n_read:,} queries are looked at; --queries N looks at more.", style="italic")
    for cause, n in examined.left_out:
        yield Text(f"Left out: {n:,}: {cause}", style="yellow")
    base = examined.base
    tokens = "" if base.tokens is None else f", {base.tokens:,.0f} tokens a query"
    yield Text(
        f"As recorded: final-context recall {word(base.final_recall)},"
        f" {base.n_found} of {base.n_needs} needs found{tokens}."
    )
    yield Text()
    yield from advice(examined)
    for curve in examined.curves:
        yield _curve(curve)
        yield from _whys(curve)
    yield from _stages(examined)


def advice(examined: Examined, most: int = _MOST_ADVICE) -> Iterator[RenderableType]:
    """What to change, a sentence a line, the best first."""
    from rich.text import Text

    yield Text("What to change", style="bold")
    for one in examined.advice[:most]:
        yield Text(f"  {visible(changes.sentence(examined, one))}")
    if not examined.advice:
        yield Text("  No change of a recorded setting would keep more evidence than it loses.")
    yield Text()


def _curve(curve: Curve) -> RenderableType:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    axis = curve.axis
    shown = _shown(curve)
    recorded = (
        "not recorded, or not the same in all queries"
        if axis.recorded is None
        else f"recorded {changes.number(axis.recorded)}"
    )
    of = f" of {axis.which_name or f'list {axis.which + 1}'}" if axis.parameter == "weight" else ""
    rest = f"; {len(shown)} of {len(curve.points)} values" if len(shown) < len(curve.points) else ""
    grid = Table(
        title=Text(f"{axis.label[1]} ({axis.label[0]}): {axis.parameter}{of}, {recorded}{rest}", style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        header_style="dim",
        padding=(0, 1),
    )
    for name in (axis.parameter, "candidates", "final", "needs", "gains", "loses", "tokens", "reranked"):
        grid.add_column(name, justify="right", no_wrap=True)
    grid.add_column("promise", overflow="fold")
    for point in shown:
        value = point.changes[0].value
        style = "bold" if value == axis.recorded else ""
        cells = (
            changes.number(value),
            word(point.candidate_recall),
            word(point.final_recall),
            "-" if point.n_found is None else f"{point.n_found}/{point.n_needs}",
            "-" if point.promise == RERUN else str(len(point.gained)),
            "-" if point.promise == RERUN else str(len(point.lost)),
            "-" if point.tokens is None else f"{point.tokens:,.0f}",
            f"{point.n_reranked:,.0f}",
        )
        grid.add_row(*(Text(cell, style=style) for cell in cells), Text(_promise(point, value == axis.recorded)))
    return grid


def _promise(point: Point, is_recorded: bool) -> str:
    if is_recorded:
        return "as recorded"
    if point.promise == PASSES and point.passes_to is not None:
        return visible(f"passes to {point.passes_to[1]}")
    return point.promise


def _whys(curve: Curve) -> Iterator[RenderableType]:
    """What stands in the way of exact, each said once."""
    from rich.text import Text

    found = dict.fromkeys((_promise(point, False), point.why) for point in _shown(curve) if point.why is not None)
    for promise, why in found:
        yield Text(f"  {promise}: {why}", style="dim")
    if found:
        yield Text()


def _shown(curve: Curve) -> Sequence[Point]:
    """The recorded value, the ends, and those where something changes; few enough for a screen."""
    points = curve.points
    if len(points) <= _MOST_VALUES:
        return points
    at_recorded = next((i for i, p in enumerate(points) if p.changes[0].value == curve.axis.recorded), 0)
    wanted = [at_recorded, 0, len(points) - 1]
    turns = [
        i
        for i in range(1, len(points))
        if (points[i].gained, points[i].lost) != (points[i - 1].gained, points[i - 1].lost)
    ]
    turns.sort(key=lambda i: abs(i - at_recorded))
    for i in (*turns, *range(0, len(points), max(1, len(points) // _MOST_VALUES))):
        if len(set(wanted)) == _MOST_VALUES:
            break
        wanted.append(i)
    return [points[i] for i in sorted(set(wanted))]


def _stages(examined: Examined) -> Iterator[RenderableType]:
    from rich.text import Text

    stuck = [one for one in examined.stages if not one.models]
    if stuck:
        yield Text("Must be run again to know", style="bold")
        for one in stuck:
            yield Text(f"  {visible(one.label[1])} ({one.label[0]}): {one.why_not}")
    yield Text("  Another chunk size, index, embedding or reranking model, and a deeper search than recorded: re-run.")
