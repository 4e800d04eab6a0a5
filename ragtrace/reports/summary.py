"""What `ragtrace report` says, as named results: one query of `queries/reports` a block, and what to change."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ragtrace.errors import ReportError
from ragtrace.reports.changes import no_advice, what_to_change
from ragtrace.reports.run import Result, run
from ragtrace.store import runs
from ragtrace.whatif.limits import REPORT_QUERIES, REPORT_VALUES

if TYPE_CHECKING:
    import duckdb

__all__ = ["BLOCKS", "GROUPS", "Summary", "summarise"]

BLOCKS = ("runs", "final_context", "recall", "waterfall", "losses", "example", "left_out", "incomplete")
"""The queries whose results make up the report, each with a parameter `run`, in the order shown."""

_MOST_ADVICE = 5

GROUPS = {"kind": "recall_by_kind", "tag": "recall_by_tag", "run": "recall", "retriever": "recall_by_retriever"}
"""What recall can be split by, and the query that does it."""


class Summary(NamedTuple):
    """The report of one store."""

    blocks: dict[str, Result]
    """By the names of BLOCKS, and `what_to_change`; `by` too when it was split."""
    by: str | None
    run_names: list[str | None]
    """The runs reported, the newest first; empty for an empty store."""

    @property
    def is_incomplete(self) -> bool:
        """Something of what the service did is not in the store, so a loss may be none."""
        return any(row["is_serious"] for row in self.blocks["incomplete"].records())


def summarise(
    connection: duckdb.DuckDBPyConnection,
    run_name: str | None = None,
    by: str | None = None,
    *,
    has_advice: bool = True,
) -> Summary:
    """Every block of the report, for one run or for all; without `what_to_change` for who replays more than it does.

    Raises: ReportError for a run that is not in the store, with the runs that are.
    """
    names = runs.names(connection) if run_name is None else [runs.meant(connection, run_name)]
    blocks = {name: run(connection, name, run=run_name) for name in BLOCKS}
    if has_advice:
        blocks["what_to_change"] = _advice(connection, run_name)
    if by is not None:
        blocks["by"] = run(connection, GROUPS[by], run=run_name)
    return Summary(blocks, by, names)


def _advice(connection: duckdb.DuckDBPyConnection, run_name: str | None) -> Result:
    """Of the run, or of the newest one; empty where nothing can be replayed or judged: `ragtrace whatif` says why."""
    from ragtrace.whatif import examine

    try:
        examined = examine(connection, run_name, most_queries=REPORT_QUERIES, most_values=REPORT_VALUES)
    except ReportError:
        return no_advice()
    return what_to_change(examined, _MOST_ADVICE)
