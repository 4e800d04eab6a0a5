"""A store in a notebook: results as Arrow, pandas or polars that show themselves as tables, and the page's charts.

The file is opened for each call and closed again, so that a kernel which stays open for days keeps nobody from merging.
"""

from __future__ import annotations

import html
import importlib
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragtrace.errors import NotInstalledError, StoreError, StoreNotFoundError
from ragtrace.reports import changes, drawing, page, pictures_changes, question, render
from ragtrace.reports.drawing import Picture
from ragtrace.reports.run import Result, run_arrow, select_arrow
from ragtrace.reports.summary import summarise
from ragtrace.store import runs
from ragtrace.whatif.limits import MOST_QUERIES

if TYPE_CHECKING:
    import duckdb
    import polars
    import pyarrow

__all__ = ["Chart", "Report", "Store", "Table", "WhatIf", "Why"]

_MOST_SHOWN = 20
"""Rows a table shows of itself."""

_LOSS = """
select * from stage_loss where run is not distinct from $run order by query_id, set_no, need, evidence_id
"""

_ARROW_TYPES = {"varchar": "string", "bigint": "int64", "integer": "int32", "double": "float64", "boolean": "bool"}


class Table:
    """A result: hand it on with `.arrow()`, `.pandas()` or `.polars()`; a notebook shows its first rows."""

    def __init__(self, data: pyarrow.Table, title: str = "") -> None:
        self._data = data
        self.title = title

    def __len__(self) -> int:
        return int(self._data.num_rows)

    @property
    def columns(self) -> list[str]:
        """The names, in order."""
        return list(self._data.column_names)

    def arrow(self) -> pyarrow.Table:
        """As Arrow, in the types of the store. Never raises."""
        return self._data

    def pandas(self) -> Any:
        """As a pandas DataFrame. Raises: NotInstalledError."""
        _imported("pandas")  # Arrow's own message does not say which extra has it
        return self._data.to_pandas()

    def polars(self) -> polars.DataFrame:
        """As a polars frame. Raises: NotInstalledError."""
        frame: polars.DataFrame = _imported("polars").from_arrow(self._data)
        return frame

    def records(self) -> list[dict[str, Any]]:
        """The rows as mappings, in order; empty when there are none."""
        rows: list[dict[str, Any]] = self._data.to_pylist()
        return rows

    def __repr__(self) -> str:
        title = f"{self.title}: " if self.title else ""
        return f"<{title}{len(self):,} rows; {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        return _html_table(self._data, self.title)


class Chart:
    """One chart of the report: shown by Jupyter, with its table where the front end draws no Plotly."""

    def __init__(self, picture: Picture, view: int = 0) -> None:
        self.title = picture.title
        self.said = picture.said
        self.views = [view.name for view in picture.views]
        """What `.view(n)` can show: one a stage, or a setting."""
        self.table = Table(_arrow_of(picture.table), picture.title)
        self._picture = picture
        self._view = view

    def view(self, which: int | str) -> Chart:
        """The same chart at another of its views, by number or by a part of its name. Raises: LookupError."""
        if isinstance(which, str):
            which = next((i for i, name in enumerate(self.views) if which in name), -1)
        if not 0 <= which < len(self.views):
            raise LookupError(f"there are {len(self.views)} views: {'; '.join(self.views) or 'nothing to draw'}")
        return Chart(self._picture, which)

    def figure(self) -> Any:
        """A plotly.graph_objects.Figure, to go on with. Raises: NotInstalledError; LookupError where nothing is drawn."""
        graphs = _imported("plotly.graph_objects")
        if not self.views:
            raise LookupError(self.said)
        return graphs.Figure(self._form())

    def __repr__(self) -> str:
        return f"<{self.title}. {self.said}>"

    def _form(self) -> dict[str, Any]:
        form = self._picture.views[self._view].form
        title = " – ".join(part for part in (self.title, drawing.label(self.views[self._view], 80)) if part)
        layout = {
            **form["layout"],
            "height": form["layout"]["height"] + 90,
            "title": {"text": f"{title}<br><sub>{drawing.label(self.said, 160)}</sub>"},
            "margin": {"t": 80, "l": 10, "r": 10, "b": 40},
        }
        return {"data": form["data"], "layout": layout}

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        shown = f"{_paragraph(self.said)}{self.table._repr_html_()}"
        bundle: dict[str, Any] = {"text/plain": repr(self), "text/html": shown}
        if self.views:
            # JupyterLab, Notebook 7 and VS Code draw this; neither the kernel nor the front end asks a network.
            bundle["application/vnd.plotly.v1+json"] = self._form()
        return bundle


class Report:
    """What `ragtrace report` says of a run: tables and charts by name."""

    def __init__(self, store: str, run_name: str | None, tables: Mapping[str, Table], drawn: Sequence[Picture]) -> None:
        self.store = store
        self.run = run_name
        self.tables = dict(tables)
        """By the names of the blocks of `ragtrace report --format json`."""
        self.charts = {picture.name: Chart(picture) for picture in drawn}
        """waterfall, flow, losses, kinds, spread, moves."""

    def __repr__(self) -> str:
        return f"<report of {self.store}, run {self.run}: tables {', '.join(self.tables)}; charts {', '.join(self.charts)}>"

    def _repr_html_(self) -> str:
        shown = [_paragraph(f"{self.store}, run {self.run}"), self.tables["recall"]._repr_html_()]
        shown += [self.tables[name]._repr_html_() for name in ("waterfall", "losses", "left_out", "what_to_change")]
        names = ", ".join(f'.charts["{name}"]' for name in self.charts)
        return "".join([*shown, _paragraph(f"Charts: {names}")])


class Why:
    """What `ragtrace why` says of each recorded query of a question, the newest first."""

    def __init__(self, explained: Sequence[question.Explained]) -> None:
        self.queries = list(explained)
        self.places = Table(_arrow_of(question.lines(explained)), "Stage by stage")
        self.reasons = Table(_arrow_of(_joined([one.reasons for one in explained])), "Reasons")
        self.evidence = Table(_arrow_of(_joined([one.evidence for one in explained])), "Evidence")

    def sentences(self) -> list[str]:
        """The verdict on each piece of evidence, in words."""
        return [
            said
            for one in self.queries
            for piece in one.evidence.records()
            for said, _ in question.told(one.reasons.only(evidence_id=piece["evidence_id"]).records())
        ]

    def __repr__(self) -> str:
        return "\n".join(["<why>", *self.sentences()])

    def _repr_html_(self) -> str:
        asked = self.queries[0].query["question"] or "(its text was not captured)"
        said = "".join(f'<li dir="auto">{_escaped(line)}</li>' for line in self.sentences())
        return f"{_paragraph(asked)}<ul>{said}</ul>{self.places._repr_html_()}"


class WhatIf:
    """What `ragtrace whatif` says of a run."""

    def __init__(self, tables: Mapping[str, Table], picture: Picture) -> None:
        self.tables = dict(tables)
        """changes, sets, what_to_change, stages, left_out."""
        self.chart = Chart(picture)

    def __repr__(self) -> str:
        return f"<what-if: {self.chart.said}>"

    def _repr_html_(self) -> str:
        return f"{_paragraph(self.chart.said)}{self.tables['what_to_change']._repr_html_()}"


class Store:
    """A store by its path. Every call merges the logs that wait, reads, and closes the file again."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"

    def report(self, run: str | None = None) -> Report:
        """Tables and charts of one run, the newest when none is named. Raises: StoreError, ReportError."""
        with self._reading() as connection:
            read = page.read_pictures(connection, summarise(connection, run), run)
        tables = {name: Table(_arrow_of(block), name) for name, block in read.blocks.items()}
        return Report(str(self.path), read.run_name, tables, read.pictures)

    def loss(self, run: str | None = None) -> Table:
        """Where each evidence span of one run was lost and why: its rows of the view `stage_loss`.

        Of the newest run when none is named. Raises: StoreError, ReportError.
        """
        with self._reading() as connection:
            return Table(select_arrow(connection, _LOSS, run=runs.meant(connection, run)), "stage_loss")

    def why(self, asked: str) -> Why:
        """One question by query_id, question_id or text. Raises: StoreError, QuestionNotFoundError with the nearest."""
        with self._reading() as connection:
            found = question.find(connection, str(asked)).records()
            return Why([question.explain(connection, row) for row in found])

    def whatif(self, run: str | None = None, stage: str | None = None, queries: int = MOST_QUERIES) -> WhatIf:
        """Every change of one setting, replayed over at most so many queries. Raises: StoreError, ReportError."""
        from ragtrace.whatif import examine

        with self._reading() as connection:
            examined = examine(connection, run, stage, most_queries=queries)
        tables = {name: Table(_arrow_of(block), name) for name, block in changes.blocks(examined).items()}
        return WhatIf(tables, pictures_changes.curves(examined))

    def sql(self, statement: str) -> Table:
        """One reading statement. Raises: StoreError, ReportError."""
        with self._reading() as connection:
            return Table(select_arrow(connection, statement))

    def query(self, name: str, **parameters: object) -> Table:
        """A named query of `ragtrace queries`. Raises: StoreError, ReportNotFoundError, ParameterError."""
        with self._reading() as connection:
            return Table(run_arrow(connection, name, **parameters), name)

    def page(self, output: str | os.PathLike[str], run: str | None = None) -> Path:
        """The report as one HTML file; its path. Raises: StoreError, ReportError, NotInstalledError."""
        path = Path(output)
        with self._reading() as connection:
            page.write(connection, path, str(self.path), run)
        return path

    @contextmanager
    def _reading(self) -> Iterator[duckdb.DuckDBPyConnection]:
        from ragtrace.gold import placing
        from ragtrace.store import database
        from ragtrace.store.merge import merge

        if not self.path.exists() and not database.spool_of(self.path).is_dir():
            raise StoreNotFoundError(f"there is no store at {self.path}, nor logs beside it", path=str(self.path))
        try:
            merge(self.path, after=placing.place)
        except StoreError as error:
            # Whoever merges now, or a folder that may not be written to: what was merged before can be read.
            if not self.path.exists():
                raise
            # At the cell's line: above this generator stand contextlib and the method.
            warnings.warn(f"shown is what was merged before: {error.message}", stacklevel=4)
        with database.connect(self.path, read_only=True) as connection:
            yield connection


def _imported(name: str) -> Any:
    package = name.partition(".")[0]
    try:
        return importlib.import_module(name)
    except ImportError:
        raise NotInstalledError(
            f'{package} is not installed: pip install "ragtrace[notebook]"', package=package
        ) from None


def _arrow_of(result: Result) -> pyarrow.Table:
    """A result whose rows are plain values, in the nearest Arrow types."""
    import pyarrow

    columns = list(zip(*result.rows, strict=True)) if result.rows else [()] * len(result.columns)
    arrays = []
    for values, kind in zip(columns, result.types, strict=True):
        if kind in _ARROW_TYPES or not result.rows:
            arrays.append(pyarrow.array(values, type=pyarrow.type_for_alias(_ARROW_TYPES.get(kind, "string"))))
        else:
            arrays.append(pyarrow.array(values))
    return pyarrow.table(arrays, names=list(result.columns))


def _joined(results: Sequence[Result]) -> Result:
    return results[0]._replace(rows=[row for result in results for row in result.rows])


def _html_table(data: pyarrow.Table, title: str) -> str:
    head = "".join(f"<th>{_escaped(name)}</th>" for name in data.column_names)
    rows = data.slice(0, _MOST_SHOWN).to_pylist()
    cells = [[_escaped(render.word(value)) for value in row.values()] for row in rows]
    body = "".join(f"<tr>{''.join(map('<td dir=auto>{}</td>'.format, row))}</tr>" for row in cells)
    more = f"; the first {len(rows)} are shown" if data.num_rows > len(rows) else ""
    caption = f"{_escaped(title)}{': ' if title else ''}{data.num_rows:,} rows{more}"
    return (
        f'<div style="overflow-x: auto"><table><caption style="text-align: start">{caption}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _paragraph(text: str) -> str:
    return f'<p dir="auto">{_escaped(text)}</p>'


def _escaped(text: object) -> str:
    return html.escape(render.visible(str(text)))
