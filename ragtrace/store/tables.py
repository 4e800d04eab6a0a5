"""The stored tables as DDL and as Arrow schemas. Both are made from `ragtrace.schema`; nothing is inferred."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from ragtrace import schema

__all__ = [
    "arrow_schema",
    "arrow_table",
    "column_table",
    "create_statements",
    "literal",
    "split",
    "stored_in",
    "string_array",
]

_ARROW_TYPES: dict[str, pa.DataType] = {
    "VARCHAR": pa.string(),
    "BIGINT": pa.int64(),
    "INTEGER": pa.int32(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "VARCHAR[]": pa.list_(pa.string()),
    "INTEGER[]": pa.list_(pa.int32()),
    "BIGINT[]": pa.list_(pa.int64()),
}


# An empty column costs as much to write as a full one, and most rows of the big table have only the first four.
_N_PLAIN = {"candidates": 4}
"""Table -> how many of its columns the rows of plain_<table> have. full_<table> has all, and the name is a view of both."""


def stored_in(name: str) -> tuple[str, ...]:
    """The tables to insert into, to update and to delete from: itself, or the plain and the full one."""
    return (f"plain_{name}", f"full_{name}") if name in _N_PLAIN else (name,)


def split(connection: duckdb.DuckDBPyConnection, names: Iterable[str]) -> None:
    """Lay out a file, which has tables of these names, as it was before there were plain and full ones; its rows count as full."""
    for name in _N_PLAIN.keys() & set(names):
        connection.execute("begin")
        connection.execute(f"alter table {name} rename to {stored_in(name)[-1]}")
        for statement in create_statements([schema.table(name)]):
            connection.execute(statement)
        connection.execute("commit")


def literal(text: str) -> str:
    """A text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def create_statements(tables: Iterable[schema.Table] = schema.TABLES) -> list[str]:
    """DDL for every table with its comments; running it twice changes nothing."""
    statements = []
    for table in tables:
        kind = "view" if table.name in _N_PLAIN else "table"
        statements += _create_plain_and_full(table) if table.name in _N_PLAIN else [_create(table.name, table.columns)]
        statements.append(f"comment on {kind} {table.name} is {literal(table.grain)}")
        for column in table.columns:
            meaning = f"{column.meaning} ({column.unit})" if column.unit else column.meaning
            statements.append(f'comment on column {table.name}."{column.name}" is {literal(meaning)}')
    return statements


def _create(name: str, columns: Iterable[schema.Column]) -> str:
    described = ", ".join(f'"{one.name}" {one.type}' for one in columns)
    return f"create table if not exists {name} ({described})"


def _create_plain_and_full(table: schema.Table) -> list[str]:
    plain, full = stored_in(table.name)
    n_plain = _N_PLAIN[table.name]
    names = ", ".join(f'"{one.name}"' for one in table.columns)
    filled = ", ".join(
        f'"{one.name}"' if number < n_plain else f'cast(null as {one.type}) as "{one.name}"'
        for number, one in enumerate(table.columns)
    )
    return [
        _create(plain, table.columns[:n_plain]),
        _create(full, table.columns),
        f"comment on table {plain} is {literal(f'part of {table.name}: rows of lists that say no more')}",
        f"comment on table {full} is {literal(f'part of {table.name}: rows of all other lists')}",
        f"create or replace view {table.name} as select {filled} from {plain} union all select {names} from {full}",
    ]


def arrow_schema(name: str) -> pa.Schema:
    """The Arrow schema of one table. Raises KeyError for an unknown name."""
    return pa.schema([(column.name, _ARROW_TYPES[column.type]) for column in schema.table(name).columns])


def arrow_table(name: str, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Rows as an Arrow table with exactly the table's columns; keys that are absent are null, unknown keys are ignored."""
    rows = rows if isinstance(rows, list) else list(rows)
    fields = arrow_schema(name)
    given = set().union(*rows)
    names = [field.name for field in fields if field.name in given]
    # Row by row: column by column each dict would have to come from memory anew, ten times slower with 10,000 of them.
    columns = dict(zip(names, zip(*[tuple(map(row.get, names)) for row in rows], strict=True), strict=True))
    return column_table(name, len(rows), columns)


def column_table(name: str, n_rows: int, columns: Mapping[str, Sequence[Any]]) -> pa.Table:
    """Columns of `n_rows` values as an Arrow table with exactly the table's columns; those that are absent are null."""
    fields = arrow_schema(name)
    return pa.Table.from_arrays(
        [
            _column(columns[field.name], field.type) if field.name in columns else pa.nulls(n_rows, field.type)
            for field in fields
        ],
        schema=fields,
    )


def string_array(values: Sequence[Any]) -> pa.Array:
    """Texts as an Arrow column; lone surrogates, which UTF-8 has no bytes for, become question marks."""
    return _column(values, pa.string())


def _column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError, OverflowError):
        # One value of a foreign type or a lone surrogate must not cost the other rows of the merge.
        return pa.array([_one(value, kind) for value in values], kind)


def _one(value: Any, kind: pa.DataType) -> Any:
    if isinstance(value, str) and pa.types.is_string(kind):
        return value.encode("utf-8", "replace").decode("utf-8")
    try:
        pa.array([value], kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError, OverflowError):
        return str(value) if pa.types.is_string(kind) else None
    return value
