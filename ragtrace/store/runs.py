"""The runs of a store: which there are, the newest first, and the one that a person means."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from ragtrace.errors import ReportError

if TYPE_CHECKING:
    import duckdb

__all__ = ["meant", "names"]

_NAMES = "select run from queries group by run order by max(started_at_ns) desc, run nulls last"


def names(connection: duckdb.DuckDBPyConnection) -> list[str | None]:
    """Every run, the one with the newest query first; None is the run without a name. Empty without a query."""
    return [name for (name,) in connection.execute(_NAMES).fetchall()]


def meant(connection: duckdb.DuckDBPyConnection, run: str | None = None) -> str | None:
    """The run of that name, the newest when none is named.

    Raises: ReportError for one that is not there, with the nearest names; when no query is recorded.
    """
    known = names(connection)
    if run is None:
        if not known:
            raise ReportError("no query is recorded yet: run the traced service first")
        return known[0]
    if run not in known:
        named = [name for name in known if name is not None]
        nearest = difflib.get_close_matches(run, named, n=3, cutoff=0.4)
        hint = f"; nearest: {', '.join(nearest)}" if nearest else ""
        raise ReportError(
            f"no run is named {run!r}{hint}; runs in the store: {', '.join(named) or 'none'}",
            run=run, nearest=nearest, runs=known,
        )  # fmt: skip
    return run
