"""`ragtrace merge`, `doctor`, `export`: logs in, what is missing or damaged, data out."""

from __future__ import annotations

import datetime
import re
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragtrace.cli.opening import StoreArgument, bring_up_to_date, must_exist, reading
from ragtrace.cli.output import Format, FormatOption, note, print_result, print_values
from ragtrace.errors import ParameterError

if TYPE_CHECKING:
    import duckdb

__all__ = ["doctor", "export", "merge"]

_INCOMPLETE = 3


class To(str, Enum):
    """What a store can be written as."""

    PARQUET = "parquet"
    TREC = "trec"
    JSONL = "jsonl"
    RAGAS = "ragas"
    DEEPEVAL = "deepeval"


def merge(
    store: StoreArgument,
    *,
    lake: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Then bring the store's Parquet files in this folder up to date.", show_default=False
        ),
    ] = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """Merge the logs of running and ended processes into the store, and place labels in new texts.

    Every command that reads does this first; a service never needs it. With --lake the stored tables are published as
    Parquet by day and run; what did not change is not written again (docs/exports.md).
    """
    values = bring_up_to_date(store)._asdict()
    if lake is not None:
        from ragtrace.store.lake import publish

        values |= {f"lake_{name}": n for name, n in publish(store, lake)._asdict().items()}
    print_values(values, format)


def doctor(
    store: StoreArgument,
    *,
    delete_before: Annotated[
        str | None,
        typer.Option(help="First delete queries older than this: 2026-11-30, or 30d.", show_default=False),
    ] = None,
    delete_run: Annotated[str | None, typer.Option(help="First delete this run's queries.", show_default=False)] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what --delete would delete.")] = False,
    compact: Annotated[bool, typer.Option("--compact", help="Then write the file anew without free space.")] = False,
    format: FormatOption = Format.TABLE,
) -> None:
    """Say in plain words what is missing, damaged or at risk in a store, and how large it is.

    Nothing is merged first, so that what waits is seen. Documents, texts and labels are never deleted. With both
    --delete options only queries that fit both go; --delete-before alone also forgets losses and damage before that
    time. Exit code 3 says that data is incomplete or damaged.
    """
    from ragtrace.reports.run import Result
    from ragtrace.store import health, retention

    must_exist(store)
    if not store.exists():
        note(f"there are logs and no database yet: merging them into {store}")
        bring_up_to_date(store)
    if delete_before is not None or delete_run is not None:
        bring_up_to_date(store)
        before_ns = None if delete_before is None else _instant_ns(delete_before)
        deleted = retention.delete(store, before_ns, delete_run, is_trial=dry_run)
        word = "would delete" if dry_run else "deleted"
        note(
            f"{word} {deleted.n_queries:,} queries with {deleted.n_stages:,} stage runs and {deleted.n_candidates:,} candidates"
        )
    elif dry_run:
        raise ParameterError("--dry-run goes with --delete-before or --delete-run", given="--dry-run")
    if compact and not dry_run:
        sizes = retention.compact(store)
        note(f"compacted from {sizes.bytes_before:,} to {sizes.bytes_after:,} bytes")
    findings = health.examine(store)
    if format is Format.TABLE:
        width = max((len(finding.level) for finding in findings), default=0)
        for finding in findings:
            typer.echo(f"{finding.level:<{width}}  {finding.text}")
            if finding.advice:
                typer.echo(f"{'':<{width}}  {finding.advice}")
    else:
        types = ("varchar", "varchar", "bigint", "varchar", "varchar")
        print_result(Result(health.Finding._fields, types, [tuple(finding) for finding in findings]), format)
    if any(finding.level == "incomplete" for finding in findings):
        raise typer.Exit(_INCOMPLETE)


def export(
    store: StoreArgument,
    target: Annotated[
        Path, typer.Argument(metavar="TARGET", help="A folder for parquet and trec, else a file.", show_default=False)
    ],
    *,
    to: Annotated[To, typer.Option("--to", help="What to write.")] = To.PARQUET,
    run: Annotated[str | None, typer.Option(help="Only this run (all but parquet).", show_default=False)] = None,
    answers: Annotated[
        Path | None,
        typer.Option(
            help="What the service answered, for ragas and deepeval: JSON lines of question_id and answer.",
            show_default=False,
        ),
    ] = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """Write the store for other tools.

    parquet: every table as a file, ids as stored. trec: a run file per run and stage that puts out candidates, and
    qrels.txt from the labels. jsonl: one line a query with the ids and places of its final context. ragas, deepeval:
    JSON lines as these packages load them, with the texts of the final context exactly as sent; a query whose texts
    are not known for sure is left out and counted.
    """
    from ragtrace.store import export as exporting

    if answers is not None and to not in (To.RAGAS, To.DEEPEVAL):
        raise ParameterError("--answers goes with --to ragas or --to deepeval", given="--answers")
    with reading(store) as connection:
        if to is To.PARQUET:
            counts = exporting.parquet(connection, target)
        elif to is To.JSONL:
            counts = {str(target): exporting.contexts(connection, target, run)}
        elif to in (To.RAGAS, To.DEEPEVAL):
            counts = _samples(connection, target, to, run, answers)
        else:
            counts = _trec(connection, target, run)
    print_values(counts, format)


def _trec(connection: duckdb.DuckDBPyConnection, folder: Path, only_run: str | None) -> dict[str, int]:
    """Lines per file written."""
    from ragtrace.reports.run import run as run_query
    from ragtrace.store import export as exporting

    folder.mkdir(parents=True, exist_ok=True)
    counts = {}
    for row in run_query(connection, "stages", run=only_run).records():
        if row["n_lists"]:
            name = _file_name(f"{row['run'] or 'run'}.{row['stage']}.run")
            counts[name] = exporting.trec_run(connection, row["stage"], folder / name, row["run"])
    counts["qrels.txt"] = exporting.trec_qrels(connection, folder / "qrels.txt")
    return counts


def _samples(
    connection: duckdb.DuckDBPyConnection, target: Path, to: To, run: str | None, answers: Path | None
) -> dict[str, int]:
    """Lines written, and queries left out by reason."""
    from ragtrace.reports import samples

    told = None if answers is None else samples.answers_of(answers)
    written = samples.write(connection, target, to.value, run, told)
    return {
        str(target): written.n_written,
        "left out, question not captured": written.n_no_question,
        "left out, final context unknown": written.n_context_unknown,
        "left out, a text not known for sure": written.n_text_unknown,
    }


def _file_name(text: str) -> str:
    """A name that every file system takes."""
    return re.sub(r"[^\w.-]+", "_", text)


def _instant_ns(text: str) -> int:
    """`2026-11-30`, `2026-11-30T12:00` (UTC unless it says otherwise) or `30d` (days ago) as ns UTC."""
    now = datetime.datetime.now(datetime.timezone.utc)
    if match := re.fullmatch(r"(\d+)d", text):
        at = now - datetime.timedelta(days=int(match[1]))
    else:
        try:
            at = datetime.datetime.fromisoformat(text)
        except ValueError:
            raise ParameterError(
                f"{text!r} is no time: write 2026-11-30, 2026-11-30T12:00 or 30d", given=text
            ) from None
        if at.tzinfo is None:
            at = at.replace(tzinfo=datetime.timezone.utc)
    return int(at.timestamp()) * 1_000_000_000
