"""`ragtrace compare`: two runs over the same questions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from ragtrace.cli.opening import StoreArgument, reading
from ragtrace.cli.output import Format, FormatOption, console, note, print_lines, print_result
from ragtrace.errors import ParameterError

if TYPE_CHECKING:
    from ragtrace.reports.comparing import Compared, Difference
    from ragtrace.reports.run import Result

__all__ = ["compare"]

_MOST_SHOWN = 10
_FEW = 3


def compare(
    store: StoreArgument,
    a: Annotated[str, typer.Argument(metavar="A", help="A run's label.", show_default=False)],
    b: Annotated[str, typer.Argument(metavar="B", help="The run that is held against it.", show_default=False)],
    block: Annotated[str | None, typer.Option(help="Only this part, as named in the JSON.", show_default=False)] = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """Show what differs between two runs, question by question, and how surely.

    Only questions that both runs have and that are judged in both are compared; the others are named, never counted as
    zero. Bounds are of a paired bootstrap (10,000 resamples of whole groups of questions, fixed seed), the test of
    complete questions is McNemar's exact one. Needs the extra: pip install 'ragtrace[stats]'.
    """
    from ragtrace.reports import comparing, render

    with reading(store) as connection:
        found = comparing.compare(connection, a, b)
    if format is Format.TABLE and block is None:
        _draw(found)
        return
    blocks = _blocks(found)
    if format is Format.CSV and block is None:
        block = "overall"
        note(f"csv holds one table, here {block}; --block picks another: {', '.join(blocks)}")
    if block is not None:
        if block not in blocks:
            raise ParameterError(f"a comparison has no block {block!r}; it has {', '.join(blocks)}", block=block)
        print_result(blocks[block], format, block)
    elif format is Format.JSON:
        listed = {name: result.records() for name, result in blocks.items()}
        named = {name: getattr(found, name) for name in ("only_in_a", "only_in_b", "unobserved", "warnings")}
        typer.echo(render.json_text({"store": str(store), "a": a, "b": b, **listed, **named}))
    else:
        for name, result in blocks.items():
            typer.echo(f"## {name}\n\n{render.markdown_text(result)}")


def _blocks(found: Compared) -> dict[str, Result]:
    from ragtrace.reports.run import Result

    columns = ("question_id", "kind", "final_a", "final_b", "lost_a", "lost_b")
    types = ("varchar", "varchar", "double", "double", "varchar", "varchar")
    changed = Result(columns, types, [tuple(row[name] for name in columns) for row in found.changed])
    return {
        "overall": _result(found.overall),
        "parts": _result(found.parts),
        "costs": _result(found.costs),
        "changed": changed,
    }


def _result(differences: Sequence[Difference]) -> Result:
    from ragtrace.reports.comparing import Difference
    from ragtrace.reports.run import Result

    texts = {"measure": "varchar", "part": "varchar", "n": "bigint", "verdict": "varchar"}
    return Result(
        Difference._fields,
        tuple(texts.get(name, "double") for name in Difference._fields),
        [tuple(one) for one in differences],
    )


def _draw(found: Compared) -> None:
    from ragtrace.reports import render
    from ragtrace.reports.words import counted

    screen = console()

    def table(differences: Sequence[Difference], title: str, hidden: Sequence[str] = ()) -> None:
        if differences:
            shown = _result(differences).without("difference", *hidden)
            screen.print(render.table(shown, title, screen.width))

    below = ("below_1_a", "below_1_b", "below_half_a", "below_half_b")
    print_lines(f"{found.b} against {found.a}, {counted(found.overall[0].n, 'question')} judged in both", "")
    table(found.overall, "Recall: means, and 95 % bounds of the difference", ("part", *below))
    for one in found.overall:
        if one.below_1_a is not None and one.below_half_a is not None:
            print_lines(
                f"{one.measure} below 1: {one.below_1_a:.1%} of questions, then {one.below_1_b:.1%}; "
                f"below 0.5: {one.below_half_a:.1%}, then {one.below_half_b:.1%}"
            )
    table(found.costs, "\nCost: less is better", ("part", "p", *below))
    table(
        [one for one in found.parts if one.measure == "final-context recall"],
        "\nFinal-context recall by kind and tag",
        ("measure", "p", *below),
    )
    if found.changed:
        shown = [*found.changed[:_MOST_SHOWN]]
        title = f"\nQuestions that differ: {len(found.changed)}" + (
            f", the first {_MOST_SHOWN}" if len(found.changed) > _MOST_SHOWN else ""
        )
        result = _blocks(found._replace(changed=shown))["changed"].without("kind")
        screen.print(render.table(result, title, screen.width))
    for run, names in ((found.a, found.only_in_a), (found.b, found.only_in_b)):
        if names:
            print_lines(f"Only in {run}, left out: {_listed(names)}")
    if found.unobserved:
        print_lines(f"Without a judged query in both, left out: {_listed(found.unobserved)}")
    for warning in found.warnings:
        print_lines(f"Not the same in both: {warning}")


def _listed(names: Sequence[str]) -> str:
    from ragtrace.reports.words import counted

    more = f" and {len(names) - _FEW} more" if len(names) > _FEW else ""
    return f"{counted(len(names), 'question')} ({', '.join(names[:_FEW])}{more})"
