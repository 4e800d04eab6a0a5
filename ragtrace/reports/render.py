"""How a result looks: a terminal table, JSON, CSV, Markdown. The same column names in each. Computes nothing."""

from __future__ import annotations

import csv
import datetime
import decimal
import io
import json
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ragtrace.reports.run import Result

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

__all__ = [
    "FORMATS",
    "csv_text",
    "hanging",
    "is_number",
    "json_text",
    "markdown_text",
    "plain",
    "table",
    "visible",
    "word",
]

FORMATS = ("table", "json", "csv", "markdown")

_MOST_UPRIGHT = 4
"""Rows that are set side by side when they do not fit below each other."""

_NUMBERS = (
    "tinyint",
    "smallint",
    "integer",
    "bigint",
    "hugeint",
    "utinyint",
    "usmallint",
    "uinteger",
    "ubigint",
    "float",
    "double",
    "decimal",
)

# Embeddings, overrides and isolates of text direction; marks that scripts need (joiners, LRM, RLM) are left alone.
_OVERRIDES = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def plain(value: Any) -> Any:
    """A value as JSON has it: NaN and infinities null, times ISO 8601, bytes hex, decimals numbers."""
    match value:
        case Result():
            return [plain(record) for record in value.records()]
        case float():
            return value if math.isfinite(value) else None
        case None | bool() | int() | str():
            return value
        case Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [plain(item) for item in value]
        case datetime.date() | datetime.time():
            return value.isoformat()
        case decimal.Decimal():
            return float(value)
        case bytes() | bytearray() | memoryview():
            return bytes(value).hex()
        case datetime.timedelta():
            return value.total_seconds()
        case _:  # a uuid; whatever DuckDB adds next
            return str(value)


def json_text(value: Any) -> str:
    """Any mixture of results, mappings, lists and values as indented JSON; a result is a list of objects."""
    return json.dumps(plain(value), ensure_ascii=False, indent=2)


def csv_text(result: Result) -> str:
    """A header line and a line a row; null is empty; numbers in full; lists as JSON."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(result.columns)
    for row in result.rows:
        writer.writerow([_cell_in_full(value) for value in row])
    return stream.getvalue()


def markdown_text(result: Result) -> str:
    """A pipe table; numbers as in the terminal, right-aligned."""
    ruler = ["---:" if is_number(kind) else "---" for kind in result.types]
    lines = [list(result.columns), ruler]
    lines += [[word(value).replace("|", "\\|").replace("\n", "<br>") for value in row] for row in result.rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def table(result: Result, title: str | None = None, width: int = 100) -> Table:
    """A table for a terminal: numbers right-aligned with three decimals, null as `-`.

    A few rows that are wider than `width` columns stand upright: a line a column, so that nothing is broken.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    drawn = Table(
        title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold"
    )
    # Text, not str: a user's "[red]" is data, not markup.
    cells = [[Text(visible(word(value))) for value in row] for row in result.rows]
    if len(cells) <= _MOST_UPRIGHT and _width(result.columns, cells) > width:
        drawn.show_header = False
        drawn.add_column(style="bold", no_wrap=True)
        for _ in cells:
            drawn.add_column(overflow="fold")
        for name, *values in zip(result.columns, *cells, strict=True):
            drawn.add_row(name, *values)
        return drawn
    is_wide = _width(result.columns, cells) > width
    for i, (name, kind) in enumerate(zip(result.columns, result.types, strict=True)):
        widest = max((row[i].cell_len for row in cells), default=0)
        header = _broken(name, widest) if is_wide else name
        # Words may be broken, numbers not.
        least = widest if is_number(kind) else None
        drawn.add_column(header, justify="right" if is_number(kind) else "left", overflow="fold", min_width=least)
    for row in cells:
        drawn.add_row(*row)
    return drawn


def _broken(name: str, width: int) -> str:
    """A column's name on as many lines as its cells' width asks for, broken behind underscores only."""
    lines: list[str] = []
    for part in re.findall(r"[^_]*_*", name):
        if lines and len(lines[-1]) + len(part) <= width:
            lines[-1] += part
        elif part:
            lines.append(part)
    return "\n".join(lines)


def _width(columns: Sequence[str], cells: Sequence[Sequence[Text]]) -> int:
    """Columns of a terminal that a table needs so that nothing is broken."""
    widest = [max([len(name), *(row[i].cell_len for row in cells)]) for i, name in enumerate(columns)]
    return sum(widest) + 3 * len(widest)


def hanging(mark: str, text: Text) -> Table:
    """A paragraph two columns in, behind a mark; what does not fit on its first line stands below its first letter."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid()
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(Text(f"  {mark}", style=text.style), text)
    return grid


def word(value: Any) -> str:
    """One value for reading: floats with three decimals, null as `-`, flags as yes and no, lists with commas."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (float, decimal.Decimal)):
        return f"{value:.3f}"
    if isinstance(value, (list, tuple)):
        return ", ".join(word(item) for item in value)
    if isinstance(value, Mapping):
        return json.dumps(plain(value), ensure_ascii=False)
    return str(plain(value))


def visible(text: str) -> str:
    """A text whose control characters, lone surrogates and overrides of direction are shown as U+FFFD.

    What was recorded must not steer the terminal of whoever reads it, nor fail to be encoded.
    """
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(character: str) -> str:
    steers = unicodedata.category(character) in ("Cc", "Cs") or character in _OVERRIDES
    return "\N{REPLACEMENT CHARACTER}" if steers and character not in "\n\t" else character


def _cell_in_full(value: Any) -> str:
    value = plain(value)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict)) else str(value)


def is_number(kind: str) -> bool:
    """Is a DuckDB type one of numbers? Lists of numbers are not."""
    return kind.startswith(_NUMBERS) and not kind.endswith("]")
