"""The command `ragtrace`: its commands by name, and errors as one sentence with the right exit code.

Exit codes: 0 done · 1 a check or gate failed · 2 the user's mistake · 3 the data is incomplete or damaged.
Command modules import what they need when they run, so that `ragtrace --help` loads no database.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ragtrace.cli import ask, collect, compare, demonstrate, gold, housekeeping, metrics, probe, report, whatif, why
from ragtrace.cli.examples import epilog
from ragtrace.cli.output import FORMAT_KEY, Format
from ragtrace.errors import RagtraceError
from ragtrace.version import __version__

__all__ = ["Commands", "app"]


_MACHINE = {
    "OutOfMemoryException": "give DuckDB more with RAGTRACE_MEMORY_LIMIT, say 4GiB",
    "CatalogException": "another version wrote this store: run `ragtrace merge` on it once, where it can be written",
    "IOException": "make room on the disk or free the file, then try again",
}
"""DuckDB's errors that no change of a query helps against, and what does."""


class Commands(TyperGroup):
    """The group that turns errors a user can act on into one sentence on stderr and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command. Raises: typer.Exit with the error's code; anything unforeseen as it is."""
        try:
            return super().invoke(ctx)
        except RagtraceError as error:
            _say(ctx, type(error).__name__, error.message, error.fields)
            raise typer.Exit(error.exit_code) from error
        except OSError as error:
            if isinstance(error, BrokenPipeError) or error.filename is None:
                raise  # a closed pipe is the reader's right; Typer ends the process quietly
            message = f"{error.filename}: {(error.strerror or 'cannot be used').lower()}"
            _say(ctx, type(error).__name__, message, {"path": str(error.filename)})
            raise typer.Exit(2) from error
        except Exception as error:  # only those of DuckDB that the machine causes; the rest goes on as it is
            # A disk that fills up in a checkpoint is a fatal error to DuckDB.
            kind = "IOException" if "No space left" in str(error) else type(error).__name__
            remedy = _MACHINE.get(kind) if "duckdb" in type(error).__module__ else None
            if remedy is None:
                raise
            _say(ctx, type(error).__name__, f"{str(error).splitlines()[0]}: {remedy}", {})
            raise typer.Exit(2) from error


def _say(ctx: Any, kind: str, message: str, fields: dict[str, object]) -> None:
    """The sentence on stderr; with `--format json` also an object on stdout, so that what reads it gets JSON."""
    typer.echo(f"ragtrace: {message}", err=True)
    if ctx.meta.get(FORMAT_KEY) is Format.JSON:
        from ragtrace.reports import render

        typer.echo(render.json_text({"error": {"kind": kind, "message": message, **fields}}))


app = typer.Typer(
    cls=Commands,
    name="ragtrace",
    help="Where did the evidence go? Names the stage of a RAG service that lost it.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # plain help: the same in every terminal and in docs/cli.md
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"ragtrace {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """The options of `ragtrace` itself; its help is the application's."""


app.command("demo", epilog=epilog("demo"))(demonstrate.demo)
app.command("report", epilog=epilog("report"))(report.report)
app.command("why", epilog=epilog("why"))(why.why)
app.command("probe", epilog=epilog("probe"))(probe.probe)
app.command("whatif", epilog=epilog("whatif"))(whatif.whatif)
app.command("metrics", epilog=epilog("metrics"))(metrics.metrics)
app.command("compare", epilog=epilog("compare"))(compare.compare)
app.add_typer(gold.app, name="gold")
app.command("sql", epilog=epilog("sql"))(ask.sql)
app.command("queries", epilog=epilog("queries"))(ask.queries)
app.command("collect", epilog=epilog("collect"))(collect.collect)
app.command("merge", epilog=epilog("merge"))(housekeeping.merge)
app.command("doctor", epilog=epilog("doctor"))(housekeeping.doctor)
app.command("export", epilog=epilog("export"))(housekeeping.export)
