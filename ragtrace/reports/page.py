"""`ragtrace report --format html`: one self-contained page. Fills the template; every number comes from a named result.

The chart library and everything a page of thousands of questions holds is packed (gzip, then base64) and unpacked by
the browser when it is needed. The content security policy allows the two scripts by their hashes and no other source,
so that neither a recorded text can run anything nor the page ask a network.
"""

from __future__ import annotations

import base64
import functools
import gzip
import hashlib
import importlib.util
import json
import secrets
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ragtrace.errors import NotInstalledError, ReportError
from ragtrace.progress import Progress
from ragtrace.reports import changes, page_details, pictures, pictures_changes, render, sentences
from ragtrace.reports.drawing import Picture
from ragtrace.reports.run import Result, run
from ragtrace.reports.summary import Summary, summarise
from ragtrace.reports.words import CAUSES, counted, gap
from ragtrace.version import __version__

if TYPE_CHECKING:
    import duckdb
    from jinja2 import Environment

__all__ = ["Drawn", "Page", "html", "read", "read_pictures", "write"]

_INSTALL = 'pip install "ragtrace[html]"'

_STEPS = 4

_TILES = (
    ("candidate_recall", "candidate recall"),
    ("gained", "gained after it"),
    ("lost", "lost after it"),
    ("final_context_recall", "final-context recall"),
)


class Drawn(NamedTuple):
    """One run's blocks of the report, and its charts."""

    run_name: str | None
    blocks: dict[str, Result]
    """Of the summary; all but `runs` hold this run only."""
    pictures: tuple[Picture, ...]


class Page(NamedTuple):
    """What a page shows of one run."""

    store: str
    run_name: str | None
    summary: Summary
    """Its blocks hold this run only, but for `runs`, which holds all."""
    pictures: tuple[Picture, ...]
    questions: Result
    blocks: tuple[str, ...]
    """Details of page_details.BLOCK questions each, packed, in the order of `questions`."""


def read_pictures(connection: duckdb.DuckDBPyConnection, summary: Summary, run_name: str | None = None) -> Drawn:
    """The blocks of one run, the newest when none is named, and the charts that are drawn of named results."""
    names = summary.run_names
    shown = run_name if run_name is not None else names[0] if names else None
    blocks = {
        name: result.only(run=shown) if "run" in result.columns and name != "runs" else result
        for name, result in summary.blocks.items()
    }
    # Labelled questions that nobody asked belong to no run.
    not_asked = [
        row for row in summary.blocks["left_out"].only(cause="not_asked").rows if row not in blocks["left_out"].rows
    ]
    blocks["left_out"] = blocks["left_out"]._replace(rows=[*blocks["left_out"].rows, *not_asked])
    recall = next(iter(blocks["recall"].records()), None)
    drawn = [pictures.waterfall(blocks["waterfall"], recall)]
    for name, draw in pictures.DRAWN.items():
        drawn.append(draw(blocks[name] if name in blocks else run(connection, name, run=shown).only(run=shown)))
    return Drawn(shown, blocks, tuple(drawn))


def read(
    connection: duckdb.DuckDBPyConnection, store: str, run_name: str | None = None, progress: Progress | None = None
) -> Page:
    """Everything the page of one run needs, the newest run when none is named.

    Raises: ReportError for a run that is not in the store.
    """
    from ragtrace.whatif import examine

    summary = summarise(connection, run_name, has_advice=False)  # of the one replay below
    shown, own, drawn = read_pictures(connection, summary, run_name)
    _tell(progress, 1)
    try:
        examined = examine(connection, shown, progress=progress)
    except ReportError as error:
        curves = pictures_changes.no_curves(error.message)
        own["what_to_change"] = changes.no_advice()
    else:
        curves = pictures_changes.curves(examined)
        own["what_to_change"] = changes.what_to_change(examined)
    _tell(progress, 2)
    questions = run(connection, "question_list", run=shown).only(run=shown)
    details = tuple(_packed(block) for block in page_details.blocks(connection, questions, shown))
    _tell(progress, _STEPS)
    return Page(store, shown, summary._replace(blocks=own), (*drawn, curves), questions, details)


def html(page: Page) -> str:
    """The page's text. Raises: NotInstalledError when Jinja2 or Plotly is not installed."""
    environment = _environment()
    library = _library()
    script = _template("page.js")
    summary = page.summary
    recall = next(iter(summary.blocks["recall"].records()), None)
    data = {
        "columns": page_details.LIST_COLUMNS,
        "place_columns": page_details.PLACE_COLUMNS,
        "block": page_details.BLOCK,
        "rows": page_details.lines(page.questions),
        "views": {picture.name: [view.form for view in picture.views] for picture in page.pictures},
    }
    return environment.get_template("page.html.j2").render(
        store=page.store,
        run=next(iter(summary.blocks["runs"].only(run=page.run_name).records()), None),
        n_runs=len(summary.run_names),
        runs=summary.blocks["runs"],
        final_context=[
            f"{sentences.FINAL_HOW[row['final_how']]} ({counted(row['n_queries'], 'query')})"
            for row in summary.blocks["final_context"].records()
        ],
        recall=recall,
        tiles=_TILES,
        left_out=[_left_out(row) for row in summary.blocks["left_out"].records()],
        gaps=[_gap(row) for row in summary.blocks["incomplete"].records()],
        pictures=page.pictures,
        advice=summary.blocks["what_to_change"],
        n_questions=len(page.questions.rows),
        version=__version__,
        style=_template("page.css"),
        script=script,
        policy=f"script-src '{_hash(script)}' '{_hash(library.code)}'",
        library=library.packed,
        data=_packed(data),
        blocks=page.blocks,
    )


def write(
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    store: str,
    run_name: str | None = None,
    progress: Progress | None = None,
) -> Page:
    """The page of a run as a file, written whole or not at all.

    Raises: NotInstalledError, ReportError; OSError when the file cannot be written.
    """
    _environment(), _library()  # before minutes of reading
    page = read(connection, store, run_name, progress)
    # Two that write the same page at once have a file each, and the last one stands.
    unfinished = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
    try:
        unfinished.write_text(html(page), encoding="utf-8", errors="replace", newline="\n")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return page


class _Library(NamedTuple):
    code: str
    packed: str


@functools.cache
def _library() -> _Library:
    """Plotly's JavaScript as its Python package ships it. Raises: NotInstalledError."""
    found = importlib.util.find_spec("plotly")
    if found is None or not found.submodule_search_locations:
        raise NotInstalledError(f"the page needs Plotly, which is not installed: {_INSTALL}", package="plotly")
    path = Path(found.submodule_search_locations[0]) / "package_data" / "plotly.min.js"
    code = path.read_text(encoding="utf-8")
    return _Library(code, _pack(code))


@functools.cache
def _environment() -> Environment:
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    except ImportError:
        raise NotInstalledError(
            f"the page needs Jinja2, which is not installed: {_INSTALL}", package="jinja2"
        ) from None
    environment = Environment(
        loader=FunctionLoader(_template),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(word=render.word, visible=render.visible, counted=counted, is_number=render.is_number)
    return environment


def _template(name: str) -> str:
    return (files("ragtrace.reports") / "templates" / name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    """As a content security policy names a script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode('utf-8')).digest()).decode('ascii')}"


def _packed(value: Any) -> str:
    return _pack(json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False))


def _pack(text: str) -> str:
    # No time stamp inside: the same store gives the same page. A lone surrogate is no text to a browser.
    return base64.b64encode(gzip.compress(text.encode("utf-8", errors="replace"), 6, mtime=0)).decode("ascii")


def _left_out(row: Mapping[str, Any]) -> str:
    n = counted(row["n_queries"], "query") if row["n_spans"] is None else counted(row["n_spans"], "span")
    return f"{n} {CAUSES.get(row['cause'], row['cause'])}"


def _gap(row: Mapping[str, Any]) -> tuple[bool, str]:
    return bool(row["is_serious"]), gap(row)


def _tell(progress: Progress | None, n_done: int) -> None:
    if progress is not None:
        progress("reading for the page", n_done, _STEPS)
