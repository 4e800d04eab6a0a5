"""`ragtrace sql` and `ragtrace queries`: a person's own SQL, and the catalogue of named queries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ragtrace.cli.opening import StoreArgument, reading
from ragtrace.cli.output import Format, FormatOption, print_result
from ragtrace.errors import ParameterError

__all__ = ["queries", "sql"]

_ROWS_ON_A_SCREEN = 1000
"""Rows `sql` draws in a terminal unless told otherwise: more nobody reads, and drawing a million takes minutes."""


def sql(
    store: StoreArgument,
    statement: Annotated[str, typer.Argument(metavar="SELECT", help="One select.", show_default=False)],
    format: FormatOption = Format.TABLE,
    limit: Annotated[
        int | None,
        typer.Option(help="Rows at most, 0 for all [default: 1000 as a table, else all].", min=0, show_default=False),
    ] = None,
) -> None:
    """Put one SQL select to the store, read only.

    Logs that wait are merged first. Tables, views and macros: docs/sql.md.
    """
    from ragtrace.reports.run import select

    if limit is None:
        limit = _ROWS_ON_A_SCREEN if format is Format.TABLE else 0
    with reading(store) as connection:
        result = select(connection, statement, limit or None)
    print_result(result, format)


def queries(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A query's name; none lists them all.", show_default=False)
    ] = None,
    store: Annotated[
        Path | None, typer.Argument(metavar="STORE", help="Run it on this store.", show_default=False)
    ] = None,
    param: Annotated[
        list[str] | None, typer.Option(help="A parameter as name=value; may be repeated.", show_default=False)
    ] = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """List the named queries, show one with its SQL, or run it on a store."""
    from ragtrace.reports import catalogue, run

    if name is None:
        print_result(_catalogue(), format)
        return
    query = catalogue.find(name)
    if store is None:
        _show(query, format)
        return
    values = dict(_pair(text) for text in param or [])
    with reading(store) as connection:
        result = run.run(connection, name, **values)
    print_result(result, format)


def _catalogue() -> Any:
    from ragtrace.reports import catalogue
    from ragtrace.reports.run import Result

    rows = [
        (query.name, query.kind, query.answers, ", ".join(parameter.name for parameter in query.parameters))
        for query in catalogue.load().values()
    ]
    return Result(("name", "kind", "answers", "parameters"), ("varchar",) * 4, rows)


def _show(query: Any, format: Format) -> None:
    if format is Format.JSON:
        from ragtrace.reports import render

        parameters = [parameter._asdict() for parameter in query.parameters]
        columns = [column._asdict() for column in query.columns]
        shown = query._replace(parameters=parameters, columns=columns)._asdict()
        del shown["path"]
        typer.echo(render.json_text(shown))
    else:
        typer.echo(query.sql, nl=False)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ParameterError(f"--param {text!r} must be name=value", parameter=text)
    return name, value
