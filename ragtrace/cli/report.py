"""`ragtrace report`: where evidence was lost, over all recorded queries."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from ragtrace.cli.opening import StoreArgument, reading
from ragtrace.cli.output import FORMAT_KEY, Format, console, note, print_result, progress
from ragtrace.errors import ParameterError

__all__ = ["report"]

_INCOMPLETE = 3


class By(str, Enum):
    """What recall can be split by."""

    KIND = "kind"
    TAG = "tag"
    RUN = "run"
    RETRIEVER = "retriever"


class ReportFormat(str, Enum):
    """How the report is printed; html is a file of its own."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"
    HTML = "html"


def _remember(context: typer.Context, value: ReportFormat) -> ReportFormat:
    if value is not ReportFormat.HTML:
        context.meta[FORMAT_KEY] = Format(value.value)
    return value


def report(
    store: StoreArgument,
    run: Annotated[str | None, typer.Option(help="Only this run.", show_default=False)] = None,
    by: Annotated[By | None, typer.Option(help="Also split recall by this.", show_default=False)] = None,
    block: Annotated[str | None, typer.Option(help="Only this part, as named in the JSON.", show_default=False)] = None,
    format: Annotated[
        ReportFormat, typer.Option("--format", "-f", callback=_remember, help="How to print it.", show_choices=True)
    ] = ReportFormat.TABLE,
    output: Annotated[
        Path | None,
        typer.Option(help="html: the file to write; the store's name with .html when not given.", show_default=False),
    ] = None,
) -> None:
    """Show where the evidence was lost: recall from source to final context, losses by stage and reason.

    Logs that wait are merged and labels placed first; the service may go on writing. Exit code 3 says that rows are
    missing or damaged, so that a loss may be none. With --format html it is a page with charts and every question,
    in one file that needs no network.
    """
    if format is ReportFormat.HTML:
        _page(store, run, by, block, output)
        return
    if output is not None:
        raise ParameterError(f"--output goes with --format html; redirect the others: … > {output}", output=str(output))
    _printed(store, run, by, block, Format(format.value))


def _page(store: Path, run: str | None, by: By | None, block: str | None, output: Path | None) -> None:
    from ragtrace.reports import page

    for name, value in (("--by", by), ("--block", block)):
        if value is not None:
            raise ParameterError(f"{name} does not go with --format html, which shows everything", option=name)
    path = Path(f"{store.stem}.html") if output is None else output
    with reading(store) as connection, progress() as show:
        shown = page.write(connection, path, str(store), run, show)
    typer.echo(f"{path}  {path.stat().st_size / 1e6:.1f} MB, {len(shown.questions.rows):,} queries")
    if shown.summary.is_incomplete:
        raise typer.Exit(_INCOMPLETE)


def _printed(store: Path, run: str | None, by: By | None, block: str | None, format: Format) -> None:
    from ragtrace.reports import render
    from ragtrace.reports.screen import draw
    from ragtrace.reports.summary import summarise

    with reading(store) as connection:
        summary = summarise(connection, run, by.value if by else None)
    blocks = summary.blocks
    if format is Format.CSV and block is None:
        block = "by" if by else "losses"
        note(f"csv holds one table, here {block}; --block picks another: {', '.join(blocks)}")
    if block is not None:
        if block not in blocks:
            raise ParameterError(f"the report has no block {block!r}; it has {', '.join(blocks)}", block=block)
        print_result(blocks[block], format, block)
    elif format is Format.JSON:
        typer.echo(render.json_text({"store": str(store), "by": summary.by, **blocks}))
    elif format is Format.MARKDOWN:
        for name, result in blocks.items():
            typer.echo(f"## {name}\n\n{render.markdown_text(result)}")
    else:
        screen = console()
        for part in draw(summary, str(store), width=screen.width, is_ascii=screen.options.ascii_only):
            screen.print(part, soft_wrap=isinstance(part, str), markup=False)
    if summary.is_incomplete:
        raise typer.Exit(_INCOMPLETE)
