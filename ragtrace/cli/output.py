"""What commands print and where: results to stdout in the asked format, notes and progress to stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from ragtrace.progress import Progress
    from ragtrace.reports.run import Result

__all__ = [
    "FORMAT_KEY",
    "Format",
    "FormatOption",
    "console",
    "note",
    "print_lines",
    "print_result",
    "progress",
]

FORMAT_KEY = "ragtrace.format"
"""Where the asked format stands in the context, so that errors can follow it."""

_WIDTH_WITHOUT_TERMINAL = 100
"""Columns of a table that goes to a file or a pipe, unless COLUMNS says otherwise."""


class Format(str, Enum):
    """How a result is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"


def _remember(context: typer.Context, value: Format) -> Format:
    context.meta[FORMAT_KEY] = value
    return value


FormatOption = Annotated[
    Format, typer.Option("--format", "-f", callback=_remember, help="How to print it.", show_choices=True)
]


def console(*, stderr: bool = False) -> Console:
    """A terminal to draw on; without one, 100 columns wide and without colour."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    has_width = stream.isatty() or "COLUMNS" in os.environ
    return Console(file=stream, width=None if has_width else _WIDTH_WITHOUT_TERMINAL, highlight=False, emoji=False)


def print_result(result: Result, format: Format, title: str | None = None) -> None:
    """One result on stdout."""
    from ragtrace.reports import render

    if format is Format.TABLE:
        if result.rows:
            screen = console()
            screen.print(render.table(result, title, screen.width))
        else:
            typer.echo("no rows" if title is None else f"{title}: no rows")
        if result.has_more:
            note(f"only the first {len(result.rows)} rows are shown; --limit changes that")
    elif format is Format.JSON:
        typer.echo(render.json_text(result))
    elif format is Format.CSV:
        typer.echo(render.csv_text(result), nl=False)
    else:
        typer.echo(render.markdown_text(result), nl=False)


def print_values(values: Mapping[str, Any], format: Format) -> None:
    """One row of named values: a line each on a terminal, else a result of one row."""
    from ragtrace.reports.run import Result

    if format is Format.TABLE:
        from ragtrace.reports import render

        width = max((len(name) for name in values), default=0)
        for name, value in values.items():
            typer.echo(f"{name:<{width}}  {render.word(value)}")
    elif format is Format.JSON:
        from ragtrace.reports import render

        typer.echo(render.json_text(values))
    else:
        row = tuple(values.values())
        types = tuple("bigint" if isinstance(value, int) else "varchar" for value in row)
        print_result(Result(tuple(values), types, [row]), format)


def print_lines(*lines: str) -> None:
    """Plain lines on stdout."""
    for line in lines:
        typer.echo(line)


def note(text: str) -> None:
    """A sentence for the person, on stderr, so that stdout stays data."""
    typer.echo(text, err=True)


@contextmanager
def progress() -> Iterator[Progress | None]:
    """A bar on stderr while it is a terminal; None otherwise: nothing is drawn into files and pipes."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bars(*columns, console=console(stderr=True), transient=True) as bars:
        tasks: dict[str, Any] = {}

        def show(what: str, n_done: int, n_all: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=n_all)
            bars.update(tasks[what], completed=n_done, total=n_all)

        yield show
