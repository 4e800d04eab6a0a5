"""`ragtrace why`: one question, stage by stage."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragtrace.cli.opening import StoreArgument, reading
from ragtrace.cli.output import Format, FormatOption, console, note
from ragtrace.errors import QuestionNotFoundError

if TYPE_CHECKING:
    import duckdb

    from ragtrace.reports.background import Background
    from ragtrace.reports.question import Explained

__all__ = ["why"]


def why(
    store: StoreArgument,
    question: Annotated[
        str,
        typer.Argument(
            metavar="QUESTION", help="A query_id, a question_id, or the question's text.", show_default=False
        ),
    ],
    *,
    quote: Annotated[
        list[str] | None,
        typer.Option(help="A passage that has the answer, in place of labels; may be repeated.", show_default=False),
    ] = None,
    doc: Annotated[str | None, typer.Option(help="The document the quotes are from.", show_default=False)] = None,
    query: Annotated[int | None, typer.Option(help="This one of the recorded queries.", show_default=False)] = None,
    all_queries: Annotated[bool, typer.Option("--all", help="Every recorded query of the question.")] = False,
    format: FormatOption = Format.TABLE,
) -> None:
    """Show where each piece of evidence of one question stood, stage by stage, and where it fell.

    Of several recorded queries the newest is shown. With --quote no gold file is needed: the passage is looked for in
    the recorded documents and judged for this look only.
    """
    from ragtrace.reports import background
    from ragtrace.reports.question import find

    with reading(store) as connection:
        found = find(connection, question).records()
        chosen = _chosen(found, query, all_queries)
        explained = [_explained(connection, row, quote or [], doc) for row in chosen]
    if format is not Format.TABLE:
        _print_data(explained, format)
        return
    from ragtrace.reports.question_screen import draw

    screen = console()
    for one in explained:
        for part in (*draw(one[0]), *background.draw(one[1])):
            screen.print(part)
    if len(found) > len(chosen):
        note(
            f"{len(found)} queries are recorded of this question, the newest is shown; --all shows all, --query ID one"
        )


def _chosen(found: list[dict[str, Any]], query: int | None, all_queries: bool) -> list[dict[str, Any]]:
    if query is not None:
        chosen = [row for row in found if row["query_id"] == query]
        if not chosen:
            listed = ", ".join(str(row["query_id"]) for row in found)
            raise QuestionNotFoundError(f"query {query} is none of this question's: {listed}", query=query)
        return chosen
    return found if all_queries else found[:1]


def _explained(
    connection: duckdb.DuckDBPyConnection, row: dict[str, Any], quotes: list[str], doc_id: str | None
) -> tuple[Explained, Background]:
    from ragtrace.gold import passage
    from ragtrace.reports import background
    from ragtrace.reports.question import explain

    judged_by: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
    if quotes:
        judged_by = passage.with_temporary_evidence(connection, row["query_id"], quotes, doc_id)
    with judged_by as temporary:
        explained = explain(connection, row)
        behind = background.look(connection, explained)
    for quote, found in temporary.passages.items() if temporary else ():
        if found and found[0].quality == "nearest":
            note(
                f"no recorded text has the quote {quote!r} to the letter, so it is judged as damaged by the parser;"
                f" if the quote is mistyped, give the passage as it stands in {found[0].doc_id}: {found[0].text!r}"
            )
    return explained, behind


def _print_data(told: list[tuple[Explained, Background]], format: Format) -> None:
    from ragtrace.reports import render
    from ragtrace.reports.question import lines

    if format is Format.JSON:
        typer.echo(render.json_text([one.as_json() | {"background": behind.as_json()} for one, behind in told]))
    elif format is Format.CSV:
        typer.echo(render.csv_text(lines([one for one, _ in told])), nl=False)
    else:
        typer.echo(render.markdown_text(lines([one for one, _ in told])), nl=False)
