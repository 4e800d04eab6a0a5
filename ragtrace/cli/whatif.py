"""`ragtrace whatif`: what other settings would have kept, from the recorded lists."""

from __future__ import annotations

from typing import Annotated

import typer

from ragtrace.cli.opening import StoreArgument, reading
from ragtrace.cli.output import Format, FormatOption, console, note, print_result, progress
from ragtrace.errors import ParameterError
from ragtrace.whatif.limits import MOST_QUERIES

__all__ = ["whatif"]


def whatif(
    store: StoreArgument,
    run: Annotated[
        str | None, typer.Option(help="The run to replay; the newest when not given.", show_default=False)
    ] = None,
    stage: Annotated[str | None, typer.Option(help="Only the settings of this stage.", show_default=False)] = None,
    block: Annotated[str | None, typer.Option(help="Only this part, as named in the JSON.", show_default=False)] = None,
    queries: Annotated[int, typer.Option(min=1, help="Replay at most so many queries.")] = MOST_QUERIES,
    format: FormatOption = Format.TABLE,
) -> None:
    """Show recall and cost as a function of every k, threshold, weight and budget, replayed from the recorded lists.

    Each change says what is promised: exact (replayed to the final context), passes (through a stage, the later ones must
    be run), unchecked (too few queries to check the replay on) or re-run; and what it loses beside what it gains.
    """
    from ragtrace.reports import changes, render
    from ragtrace.reports.changes_screen import draw
    from ragtrace.whatif import examine

    with reading(store) as connection, progress() as show:
        examined = examine(connection, run, stage, most_queries=queries, progress=show)
    if format is Format.TABLE and block is None:
        screen = console()
        for part in draw(examined, str(store)):
            screen.print(part)
        return
    blocks = changes.blocks(examined)
    if format is Format.CSV and block is None:
        block = "changes"
        note(f"csv holds one table, here {block}; --block picks another: {', '.join(blocks)}")
    if block is not None:
        if block not in blocks:
            raise ParameterError(f"what-if has no block {block!r}; it has {', '.join(blocks)}", block=block)
        print_result(blocks[block], format, block)
    elif format is Format.JSON:
        typer.echo(render.json_text({"store": str(store), **changes.as_json(examined)}))
    else:
        for name, result in blocks.items():
            typer.echo(f"## {name}\n\n{render.markdown_text(result)}")
