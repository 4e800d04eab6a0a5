"""`ragtrace demo`: a real service over documents that every machine has."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["demo"]


def demo(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="Where the traces go.")] = Path("demo.duckdb"),
    *,
    queries: Annotated[
        int | None, typer.Option(help="Ask only the first so many questions.", min=1, show_default=False)
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print no report.")] = False,
) -> None:
    """Build, trace and report a hybrid RAG over the Python language reference, with labelled questions of its own.

    Needs the extra `demo` (pip install 'ragtrace[demo]'). Nothing is downloaded. A store that is there gets a further run.
    """
    from ragtrace.cli.demo.main import run

    raise typer.Exit(run(store, queries=queries, quiet=quiet))
