"""The catalogue of `queries/`: every .sql file with what its header says, held against what DuckDB says of it.

A header is the comment a file opens with, one `-- key: value` a line, further lines of a value indented:

    -- report:  losses                                   (or view:, check:, macro: the file's name and what it is)
    -- answers: where and why was evidence lost?
    -- grain:   one row per run, place and reason
    -- kept:    in the store                             (or: during a refresh; views only, see ragtrace.store.kept)
    -- param:   run      varchar = null   label of a run; null = every run
    -- column:  n_spans  bigint           spans lost there
    -- reads:   stage_loss, settings

A parameter without `= value` must be given. Knows nothing of how results look.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ragtrace.errors import HeaderError, ParameterError, ReportNotFoundError
from ragtrace.store.views import queries_folder

if TYPE_CHECKING:
    from importlib.abc import Traversable

    import duckdb

__all__ = ["NAMING_KEYS", "Field", "Parameter", "Query", "bind", "differences", "find", "load", "parse"]

NAMING_KEYS = ("report", "view", "check", "macro")
_KEYS = (*NAMING_KEYS, "answers", "grain", "kept", "param", "column", "reads", "order")
_LINE = re.compile(r"--\s?(?:(?P<key>[a-z]+):)?\s*(?P<value>.*?)\s*$")
_FIELD = re.compile(r"(?P<name>\w+)\s+(?P<type>[\w(),\[\]]+)(?:\s*=\s*(?P<default>\S+))?(?:\s+(?P<meaning>.*))?$")


class Field(NamedTuple):
    """One column of a result."""

    name: str
    type: str
    """DuckDB's, lower case."""
    meaning: str


class Parameter(NamedTuple):
    """One `$name` of a statement."""

    name: str
    type: str
    """DuckDB's, lower case."""
    meaning: str
    is_required: bool
    default: object
    """Value when not given; None is SQL's null."""


class Query(NamedTuple):
    """One .sql file."""

    name: str
    kind: str
    """report, view, check or macro."""
    answers: str
    grain: str
    parameters: tuple[Parameter, ...]
    columns: tuple[Field, ...]
    reads: tuple[str, ...]
    """Tables and views it selects from, in the header's order."""
    sql: str
    """The whole file, header included."""
    path: Path


@cache
def load(kind: str | None = None) -> Mapping[str, Query]:
    """Every query by name, in alphabetical order; only those of one kind when given.

    Raises: HeaderError for a file whose header cannot be read, or two files of one name.
    """
    queries: dict[str, Query] = {}
    for path in sorted(_files(queries_folder()), key=lambda path: path.stem):
        query = parse(path.read_text(encoding="utf-8"), path)
        if query.name in queries:
            raise HeaderError(f"{path}: the name {query.name!r} is taken by {queries[query.name].path}", path=str(path))
        queries[query.name] = query
    return {name: query for name, query in queries.items() if kind in (None, query.kind)}


def find(name: str) -> Query:
    """The query of that name. Raises: ReportNotFoundError, with the nearest names."""
    queries = load()
    if name in queries:
        return queries[name]
    nearest = difflib.get_close_matches(name, queries, n=3, cutoff=0.4)
    hint = f"; nearest: {', '.join(nearest)}" if nearest else ""
    raise ReportNotFoundError(
        f"no query is named {name!r}{hint}; `ragtrace queries` lists them all", name=name, nearest=nearest
    )


def parse(text: str, path: Path) -> Query:
    """The query a file holds. Raises: HeaderError with path and line."""
    entries: dict[str, list[str]] = {key: [] for key in _KEYS}
    for number, key, value in _entries(text, path):
        if key not in entries:
            raise HeaderError(f"{path}:{number}: {key!r} is no header key; known: {', '.join(_KEYS)}", path=str(path))
        entries[key].append(value)
    named = [(key, entries[key][0]) for key in NAMING_KEYS if entries[key]]
    if len(named) != 1:
        raise HeaderError(f"{path}: the header must have one of {', '.join(NAMING_KEYS)}", path=str(path))
    kind, name = named[0]
    if name != path.stem:
        raise HeaderError(f"{path}: the header says {kind} {name!r}; file and header must agree", path=str(path))
    for key in ("answers", "grain"):
        if not entries[key]:
            raise HeaderError(f"{path}: the header lacks `-- {key}:`", path=str(path))
    reads = tuple(word.strip() for line in entries["reads"] for word in line.split(",") if word.strip())
    return Query(
        name=name,
        kind=kind,
        answers=" ".join(entries["answers"]),
        grain=" ".join(entries["grain"]),
        parameters=tuple(_parameter(value, path) for value in entries["param"]),
        columns=tuple(
            Field(m["name"], m["type"].lower(), m["meaning"] or "")
            for m in (_field(value, path) for value in entries["column"])
        ),
        reads=reads,
        sql=text,
        path=path,
    )


def bind(query: Query, given: Mapping[str, object]) -> dict[str, object]:
    """A value for every parameter of a query: what is given, else the default.

    Text is read as the parameter's type, so values may come from a command line. Raises: ParameterError.
    """
    known = {parameter.name for parameter in query.parameters}
    for name in given:
        if name not in known:
            takes = f"it takes {', '.join(sorted(known))}" if known else "it takes none"
            raise ParameterError(f"{query.name} has no parameter {name!r}; {takes}", query=query.name, parameter=name)
    values: dict[str, object] = {}
    for parameter in query.parameters:
        if parameter.name in given:
            values[parameter.name] = _value(query.name, parameter, given[parameter.name])
        elif parameter.is_required:
            raise ParameterError(
                f"{query.name} needs {parameter.name} ({parameter.type}: {parameter.meaning}); "
                f"give it with --param {parameter.name}=…",
                query=query.name,
                parameter=parameter.name,
            )
        else:
            values[parameter.name] = parameter.default
    return values


def differences(connection: duckdb.DuckDBPyConnection, query: Query) -> list[str]:
    """What a header says and DuckDB does not, one sentence each; empty when they agree.

    The connection must hold every table and view the query reads. Raises: duckdb.Error when it cannot be bound.
    """
    import duckdb

    found: list[str] = []
    statements = duckdb.extract_statements(query.sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        return [f"holds {len(statements)} statements; must be one select"]
    declared = {parameter.name for parameter in query.parameters}
    used = set(statements[0].named_parameters)
    found += [f"parameter {name} is declared and not used" for name in sorted(declared - used)]
    found += [f"parameter {name} is used and not declared" for name in sorted(used - declared)]
    if found:
        return found
    nothing: dict[str, object] = {name: None for name in used}
    described = connection.execute(f"describe {query.sql}", nothing).fetchall()
    actual = [(name, kind.lower()) for name, kind, *_ in described]
    promised = [(column.name, column.type) for column in query.columns]
    if actual != promised:
        found.append(f"columns are {_listed(actual)}; the header says {_listed(promised)}")
    row = connection.execute("select json_serialize_sql($sql)", {"sql": query.sql}).fetchone()
    assert row is not None  # a scalar select has one row
    tree = json.loads(row[0])
    tables = _tables(tree) - _common(tree)
    if tables != set(query.reads):
        found.append(f"reads {', '.join(sorted(tables))}; the header says {', '.join(query.reads)}")
    if query.kind in ("report", "check"):
        modifiers = tree["statements"][0]["node"].get("modifiers", [])
        if not any(modifier["type"] == "ORDER_MODIFIER" for modifier in modifiers):
            found.append("has no order by at its end")
    return found


def _files(folder: Traversable) -> Iterator[Path]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _files(entry)
        elif entry.name.endswith(".sql"):
            yield Path(str(entry))


def _entries(text: str, path: Path) -> Iterator[tuple[int, str, str]]:
    """(line number, key, value) of the header, continuation lines joined."""
    current: tuple[int, str, str] | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        match = _LINE.match(line)
        if match is None:
            break
        if match["key"] is not None:
            if current is not None:
                yield current
            current = (number, match["key"], match["value"])
        elif current is None:
            raise HeaderError(f"{path}:{number}: a file opens with its header, `-- key: value`", path=str(path))
        elif match["value"]:
            current = (current[0], current[1], f"{current[2]} {match['value']}")
    if current is not None:
        yield current


def _field(value: str, path: Path) -> re.Match[str]:
    match = _FIELD.match(value)
    if match is None:
        raise HeaderError(f"{path}: {value!r} must be a name, a type and a meaning", path=str(path))
    return match


def _parameter(value: str, path: Path) -> Parameter:
    match = _field(value, path)
    default = match["default"]
    parameter = Parameter(match["name"], match["type"].lower(), match["meaning"] or "", default is None, None)
    if default in (None, "null"):
        return parameter
    return parameter._replace(default=_value(path.stem, parameter, default))


def _value(query: str, parameter: Parameter, given: object) -> object:
    """A given value in the parameter's type; only text is converted, since only a command line gives text for all."""
    if not isinstance(given, str) or parameter.type == "varchar":
        return given
    try:
        if parameter.type in ("integer", "bigint", "smallint", "hugeint"):
            return int(given)
        if parameter.type in ("double", "float"):
            return float(given)
        if parameter.type == "boolean":
            return {"true": True, "false": False}[given.lower()]
    except (ValueError, KeyError):
        raise ParameterError(
            f"{query}: {parameter.name} must be {parameter.type}, not {given!r}", query=query, parameter=parameter.name
        ) from None
    return given


def _listed(columns: list[tuple[str, str]]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in columns)


def _tables(tree: object) -> set[str]:
    """Names of everything selected from, common table expressions included."""
    if isinstance(tree, dict):
        here = {tree["table_name"]} if tree.get("type") == "BASE_TABLE" else set()
        return here.union(*(_tables(value) for value in tree.values()))
    if isinstance(tree, list):
        return set().union(*(_tables(value) for value in tree))
    return set()


def _common(tree: object) -> set[str]:
    """Names of the common table expressions."""
    if isinstance(tree, dict):
        here: set[str] = {entry["key"] for entry in tree["cte_map"]["map"]} if "cte_map" in tree else set()
        return here.union(*(_common(value) for value in tree.values()))
    if isinstance(tree, list):
        return set().union(*(_common(value) for value in tree))
    return set()
