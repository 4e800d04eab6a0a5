"""`ragtrace gold`: labels in, and what is wrong with them before any report is believed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragtrace.cli.examples import epilog
from ragtrace.cli.opening import StoreArgument, must_exist, reading, writing
from ragtrace.cli.output import Format, FormatOption, console, note, print_result, print_values, progress

__all__ = ["app"]

_FAILED = 1

app = typer.Typer(help="Load labels, and see what is wrong with them.", no_args_is_help=True, rich_markup_mode=None)


@app.command("load", epilog=epilog("gold load"))
def load(
    store: StoreArgument,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSON lines, one question each.", show_default=False)],
    *,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Load the good lines, name the bad ones.")] = False,
    name: Annotated[str | None, typer.Option(help="The set's name [default: the file's].", show_default=False)] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Take over questions that another set labels differently.")
    ] = False,
    create: Annotated[bool, typer.Option("--create", help="Make the store when it is not there yet.")] = False,
    min_coverage: Annotated[
        float | None,
        typer.Option(help="Share of a span's characters that must arrive; kept in the store.", show_default=False),
    ] = None,
    clock_skew_ms: Annotated[
        float | None,
        typer.Option(help="Times of two hosts closer than this are not told apart; kept.", show_default=False),
    ] = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """Load a gold file and place its labels in the parsed texts; a set of the same name is replaced.

    A bad line (its number and reason are said) stops the load and nothing is loaded, unless --skip-bad is given.
    """
    from ragtrace.gold import loading

    if not create:
        must_exist(store, "--create makes it")
    with writing(store) as connection, progress() as show:
        loaded = loading.load(
            connection,
            file,
            skip_bad=skip_bad,
            gold_set=name,
            replace=replace,
            min_coverage=min_coverage,
            clock_skew_ms=clock_skew_ms,
            progress=show,
        )
    for number, reason in loaded.bad:
        note(f"{file}:{number}: left out: {reason}")
    values = loaded._asdict()
    values["bad"] = [{"line": number, "reason": reason} for number, reason in loaded.bad]
    if format is not Format.JSON:
        values["bad"] = len(loaded.bad)
    print_values(values, format)


@app.command("check", epilog=epilog("gold check"))
def check(
    store: StoreArgument,
    corpus: Annotated[
        Path | None,
        typer.Option(help="JSON lines with doc_id and text to hold labels against.", show_default=False),
    ] = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """List the labels that are wrong or taken on trust, each with what to do. Exit code 1 when one is wrong."""
    from ragtrace.gold import checking
    from ragtrace.reports import labels_screen
    from ragtrace.reports.run import Result

    with reading(store) as connection, progress() as show:
        findings = checking.check(connection, corpus, show)
    result = Result(checking.Finding._fields, _types(checking.Finding), [tuple(finding) for finding in findings])
    if format is not Format.TABLE:
        print_result(result, format)
    elif findings:
        screen = console()
        for part in labels_screen.draw(result):
            screen.print(part)
    else:
        typer.echo("Every label stands where it says.")
    if any(finding.is_wrong for finding in findings):
        raise typer.Exit(_FAILED)


@app.command("status", epilog=epilog("gold status"))
def status(store: StoreArgument, format: FormatOption = Format.TABLE) -> None:
    """Show the loaded gold sets: questions, needs, and how many labels stand in the recorded texts."""
    from ragtrace.reports.run import run

    with reading(store) as connection:
        result = run(connection, "gold_status")
    if format is Format.TABLE and not result.rows:
        typer.echo(f"No labels are loaded: ragtrace gold load {store} gold.jsonl")
    else:
        print_result(result, format)


def _types(of: type) -> tuple[str, ...]:
    return tuple("integer" if "int" in str(kind) else "varchar" for kind in of.__annotations__.values())
