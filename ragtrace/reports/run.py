"""From a query's name, or a person's SQL, to a result: columns with types, rows. Knows nothing of how results look."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ragtrace.errors import ReportError
from ragtrace.reports import catalogue

if TYPE_CHECKING:
    import duckdb
    import pyarrow

__all__ = ["Result", "run", "run_arrow", "select", "select_arrow"]


class Result(NamedTuple):
    """What a statement gave, as plain values."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    """DuckDB's, lower case."""
    rows: Sequence[tuple[Any, ...]]
    has_more: bool = False
    """There are rows beyond the limit that was asked for."""

    def records(self) -> list[dict[str, Any]]:
        """The rows as mappings, in order; empty when there are none."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def only(self, **values: object) -> Result:
        """The rows in which every named column has the value."""
        at = {self.columns.index(name): value for name, value in values.items()}
        return self._replace(rows=[row for row in self.rows if all(row[i] == value for i, value in at.items())])

    def without(self, *names: str) -> Result:
        """The same rows with the named columns left out; a name it does not have is passed over."""
        kept = [i for i, name in enumerate(self.columns) if name not in names]
        return self._replace(
            columns=tuple(self.columns[i] for i in kept),
            types=tuple(self.types[i] for i in kept),
            rows=[tuple(row[i] for i in kept) for row in self.rows],
        )


def run(connection: duckdb.DuckDBPyConnection, name: str, **parameters: object) -> Result:
    """The result of a named query.

    Raises: ReportNotFoundError, ParameterError; ReportError when DuckDB refuses the statement.
    """
    query = catalogue.find(name)
    return _execute(connection, query.sql, catalogue.bind(query, parameters), name)


def select(connection: duckdb.DuckDBPyConnection, sql: str, limit: int | None = None) -> Result:
    """The result of one reading statement; at most `limit` rows, all when None.

    Raises: ReportError when it is no single reading statement or DuckDB refuses it.
    """
    _must_read(sql)
    return _execute(connection, sql, {}, "the statement", limit)


def run_arrow(connection: duckdb.DuckDBPyConnection, name: str, **parameters: object) -> pyarrow.Table:
    """The result of a named query as Arrow, in DuckDB's own types. Raises: as `run`."""
    query = catalogue.find(name)
    return _arrow(connection, query.sql, catalogue.bind(query, parameters), name)


def select_arrow(connection: duckdb.DuckDBPyConnection, sql: str, **values: object) -> pyarrow.Table:
    """The result of one reading statement as Arrow, with values for the parameters that it names. Raises: as `select`."""
    _must_read(sql, has_values=bool(values))
    return _arrow(connection, sql, values, "the statement")


def _must_read(sql: str, *, has_values: bool = False) -> None:
    import duckdb

    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        raise ReportError(f"this is not SQL that DuckDB reads: {_sentence(error)}", sql=sql) from error
    if len(statements) != 1:
        raise ReportError(f"give one statement, not {len(statements)}", sql=sql)
    if statements[0].type not in (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN):
        kind = statements[0].type.name.lower()
        raise ReportError(f"{kind} is no reading statement; the store is opened read only, use select", sql=sql)
    if statements[0].named_parameters and not has_values:
        names = ", ".join(f"${name}" for name in sorted(statements[0].named_parameters))
        raise ReportError(f"put values in place of {names}; only named queries take parameters", sql=sql)


def _arrow(connection: duckdb.DuckDBPyConnection, sql: str, values: dict[str, object], name: str) -> pyarrow.Table:
    import duckdb

    try:
        # A relation, not a cursor: DuckDB 2 warns that a cursor's rows are copied once more.
        relation = connection.sql(sql, params=values) if values else connection.sql(sql)
        return relation.to_arrow_table()
    except duckdb.Error as error:
        raise _refused(connection, name, error, sql) from error


def _execute(
    connection: duckdb.DuckDBPyConnection, sql: str, values: dict[str, object], name: str, limit: int | None = None
) -> Result:
    import duckdb

    try:
        cursor = connection.execute(sql, values) if values else connection.execute(sql)
        description = cursor.description or []
        rows = cursor.fetchall() if limit is None else cursor.fetchmany(limit + 1)
    except duckdb.Error as error:
        raise _refused(connection, name, error, sql) from error
    has_more = limit is not None and len(rows) > limit
    return Result(
        columns=tuple(column[0] for column in description),
        types=tuple(str(column[1]).lower() for column in description),
        rows=rows[:limit] if has_more else rows,
        has_more=has_more,
    )


def _refused(connection: duckdb.DuckDBPyConnection, name: str, error: Exception, sql: str) -> ReportError:
    """What to do about an error of DuckDB: views of another version are replaced, not to be asked."""
    import duckdb

    said = f"DuckDB refuses {name}: {_sentence(error)}"
    if isinstance(error, (duckdb.CatalogException, duckdb.BinderException)):
        from ragtrace.store import views

        with contextlib.suppress(duckdb.Error):  # no store at all: the error itself is all there is to say
            if views.is_outdated(connection):
                missing = re.search(r"name \"?([\w.]+)\"? does not exist", str(error))
                what = f" has no {missing[1]} yet:" if missing else "'s views are those of another version:"
                said = f"the store{what} run `ragtrace merge` on it once, where the file can be written ({said})"
    return ReportError(said, sql=sql)


def _sentence(error: Exception) -> str:
    """DuckDB's message without the drawing of the place below it, on one line."""
    import duckdb

    lines = [line.strip() for line in str(error).splitlines()]
    if isinstance(error, duckdb.OutOfMemoryException):
        # DuckDB's own advice is a `set`, which no reading statement can be.
        return f"{lines[0]}: give DuckDB more with RAGTRACE_MEMORY_LIMIT, say 4GiB"
    kept = [line for line in lines if line and not line.startswith(("LINE ", "^"))]
    return " ".join(kept)
