"""Results as JSON, CSV, Markdown and terminal tables."""

import csv
import datetime
import decimal
import io
import json
import math

import pytest
from rich.console import Console

from ragtrace.reports import render
from ragtrace.reports.run import Result

RESULT = Result(
    ("name", "n", "share", "is_new", "ranges"),
    ("varchar", "bigint", "double", "boolean", "integer[]"),
    [("a|b\n[red]", 12345, 0.123456, True, [1, 2]), (None, None, math.nan, False, [])],
)


def drawn(result: Result, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    console.print(render.table(result))
    return console.file.getvalue()


def test_json_has_names_full_numbers_and_null_for_what_is_not_finite():
    assert json.loads(render.json_text(RESULT)) == [
        {"name": "a|b\n[red]", "n": 12345, "share": 0.123456, "is_new": True, "ranges": [1, 2]},
        {"name": None, "n": None, "share": None, "is_new": False, "ranges": []},
    ]


def test_json_takes_a_mixture_of_results_and_values():
    text = render.json_text({"block": RESULT._replace(rows=[]), "n": decimal.Decimal("1.5"), "b": b"\x01"})

    assert json.loads(text) == {"block": [], "n": 1.5, "b": "01"}


def test_json_writes_times_as_iso_8601():
    at = datetime.datetime(2026, 11, 30, tzinfo=datetime.timezone.utc)

    assert json.loads(render.json_text([at])) == ["2026-11-30T00:00:00+00:00"]


def test_csv_is_read_back_as_it_was():
    rows = list(csv.reader(io.StringIO(render.csv_text(RESULT))))

    assert rows == [
        list(RESULT.columns),
        ["a|b\n[red]", "12345", "0.123456", "true", "[1, 2]"],
        ["", "", "", "false", "[]"],
    ]


def test_markdown_keeps_a_cell_in_its_cell():
    lines = render.markdown_text(RESULT).splitlines()

    assert lines[1] == "| --- | ---: | ---: | --- | --- |"
    assert lines[2] == r"| a\|b<br>[red] | 12345 | 0.123 | yes | 1, 2 |"
    assert len(lines) == 4


def test_a_terminal_table_shows_a_users_markup_as_text():
    assert "[red]" in drawn(RESULT)


def test_a_terminal_table_lets_no_escape_sequence_through():
    """A recorded text must not be able to repaint the terminal of whoever reads the report."""
    shown = drawn(Result(("name",), ("varchar",), [("\x1b[31mred\x1b]0;title\x07",)]))

    assert "\x1b" not in shown
    assert "\x07" not in shown


@pytest.mark.parametrize("width", [40, 100])
def test_a_terminal_table_fits_its_width_and_loses_no_character(width):
    wide = Result(("name",), ("varchar",), [("x" * 300,)])
    lines = drawn(wide, width).splitlines()

    assert max(len(line) for line in lines) <= width
    assert sum(line.count("x") for line in lines) == 300


def test_only_and_without_pick_rows_and_columns():
    assert [row[1] for row in RESULT.only(is_new=True).rows] == [12345]
    assert RESULT.without("share", "ranges", "nothing").columns == ("name", "n", "is_new")
