"""Runs the demo: ingest, ask every question, merge, load the labels, report. The report ends with what to try next."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import ragtrace as rt
from ragtrace.cli.opening import writing
from ragtrace.cli.output import print_lines, progress
from ragtrace.errors import NotInstalledError
from ragtrace.progress import Progress

if TYPE_CHECKING:
    import duckdb

    from ragtrace.cli.demo.pipeline import Manual

__all__ = ["QUESTIONS", "RETRIEVERS", "run"]

QUESTIONS = Path(__file__).with_name("questions.jsonl")
"""The gold file of the demo: one question a line, quotes from the language reference."""

RETRIEVERS = "ragtrace.cli.demo.probing:retrievers"
"""What `ragtrace probe --with` takes for a store of the demo."""

_RUN = "demo"


def run(path: Path, *, queries: int | None = None, quiet: bool = False) -> int:
    """Build, trace and report the demo into the store at `path`; returns the exit code, 0.

    A store that holds runs of the demo gets a further one: `demo-2` and so on. `queries` asks only the first that
    many questions. `quiet` prints no report. Nothing is downloaded, no file but the store is written.

    Raises: NotInstalledError when the libraries of the extra `demo` are missing; StoreError when `path` cannot be
    a store.
    """
    manual = _service()
    # Opened before the work, so that a file that is no store is refused at once and not after it.
    with writing(path) as connection:
        label = _new_label(connection)
    rt.configure(path, run=label, service="ragtrace demo", merge="off")
    try:
        with progress() as show:
            _ingest(manual, show)
            _ask(manual, queries, show)
    finally:
        rt.shutdown()
    _load_labels(path)
    if not quiet:
        from ragtrace.cli.report import report

        report(path, run=label)
        command = f"ragtrace probe {shlex.quote(str(path))} --with {RETRIEVERS} --run {label}"
        print_lines("", "Asked again, the retrievers tell why they missed what they missed:", f"  {command}")
    return 0


def _service() -> Manual:
    try:
        from ragtrace.cli.demo.pipeline import Manual
    except ImportError as error:
        missing = (error.name or "a library").partition(".")[0]
        raise NotInstalledError(
            f"the demo needs {missing}, which is not installed: pip install 'ragtrace[demo]'", missing=missing
        ) from error
    return Manual()


def _new_label(connection: duckdb.DuckDBPyConnection) -> str:
    """`demo`, or the first `demo-n` that the store does not know."""
    taken = {row[0] for row in connection.execute("select distinct run from queries").fetchall()}
    label, n = _RUN, 1
    while label in taken:
        n += 1
        label = f"{_RUN}-{n}"
    return label


def _ingest(manual: Manual, show: Progress | None) -> None:
    from ragtrace.cli.demo.corpus import earlier_pages, pages

    all_pages = [*earlier_pages(), *pages()]
    for n, page in enumerate(all_pages, 1):
        manual.add(page)
        if show is not None:
            show("pages", n, len(all_pages))
    manual.build()


def _ask(manual: Manual, queries: int | None, show: Progress | None) -> None:
    questions = [json.loads(line) for line in QUESTIONS.read_text("utf-8").splitlines()][:queries]
    for n, question in enumerate(questions, 1):
        manual.ask(question["question"], question["question_id"])
        if show is not None:
            show("questions", n, len(questions))


def _load_labels(path: Path) -> None:
    from ragtrace.gold import loading

    with writing(path) as connection, progress() as show:
        loading.load(connection, QUESTIONS, gold_set="demo", progress=show)
