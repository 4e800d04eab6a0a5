"""`ragtrace metrics`: the rank metrics of every stage's lists."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from ragtrace.cli.opening import StoreArgument, reading
from ragtrace.cli.output import Format, FormatOption, console, note, print_result

__all__ = ["metrics"]

_DEPTH = 10
_SHOWN = {
    "stage": "stage",
    "n_lists": "n",
    "recall": "recall",
    "precision": "P",
    "hit": "hit",
    "mrr": "MRR",
    "ndcg_linear": "nDCG",
    "ragas_context_ap": "ctxAP",
    "n_useless": "useless",
    "n_nothing": "empty",
}
"""What stands side by side on a terminal of 80 columns, and its heading; JSON and CSV have all under their own names."""


class Unit(str, Enum):
    """What is counted as relevant."""

    DOCUMENT = "document"
    CHUNK = "chunk"
    SPAN = "span"


def metrics(
    store: StoreArgument,
    *,
    k: Annotated[
        list[int] | None, typer.Option("--k", "-k", min=1, help="A depth; may be repeated. 10 when none is given.")
    ] = None,
    run: Annotated[str | None, typer.Option(help="Only this run.", show_default=False)] = None,
    stage: Annotated[str | None, typer.Option(help="Only the lists of this stage.", show_default=False)] = None,
    unit: Annotated[
        Unit | None, typer.Option(help="Only this unit; each that is labelled when not given.", show_default=False)
    ] = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """Show recall, precision, hit, MRR, nDCG, MAP and the context precisions of every stage's ranked lists.

    Ranks are those recorded, never a sort of scores; a repeat counts at its first rank. Questions that cannot be answered or
    judged are in no mean. What each number is: docs/metrics.md.
    """
    from ragtrace.reports import run as reports

    with reading(store) as connection:
        # In front of the view of that name: any depth can be asked for.
        connection.execute("create temp table rank_cutoffs (k bigint)")
        connection.executemany("insert into rank_cutoffs values (?)", [[depth] for depth in sorted(set(k or [_DEPTH]))])
        found = reports.run(connection, "metrics", run=run, stage=stage, unit=None if unit is None else unit.value)
    if format is not Format.TABLE:
        print_result(found, format)
        return
    if not found.rows:
        note(
            "nothing can be measured: no query with labels that can be judged has a ranked list (ragtrace gold status)"
        )
        return
    from ragtrace.reports import render

    screen = console()
    for its_run, its_unit, depth in dict.fromkeys(row[:3] for row in found.rows):
        part = found.only(run=its_run, unit=its_unit, k=depth)
        # A column that says nothing here (undefined, or no empty list) makes room.
        shown = [name for name in _SHOWN if any(row[name] or name == "recall" for row in part.records())]
        table = part.without(*(name for name in part.columns if name not in shown))
        table = table._replace(columns=tuple(_SHOWN[name] for name in table.columns))
        title = f"run {its_run}, " if its_run is not None else ""
        screen.print(render.table(table, f"{title}by {its_unit}, first {depth}", screen.width))
        n_incomplete = sum(row["n_incomplete"] for row in part.records())
        if n_incomplete:
            note(f"{n_incomplete} lists are left out: not all of them is recorded")
