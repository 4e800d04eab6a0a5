"""The report on a terminal: bars, widths, and what is said of incomplete data."""

import datetime

import pytest
from rich.console import Console

from ragtrace.reports import catalogue, screen
from ragtrace.reports.run import Result
from ragtrace.reports.summary import BLOCKS, GROUPS, Summary

AT = datetime.datetime(2026, 11, 30, 20, 1)  # noqa: DTZ001 - DuckDB gives naive UTC


def block(name, *rows):
    """A result with the query's own columns; a row is a mapping, what it lacks is null."""
    columns = catalogue.find(name).columns
    values = [tuple(row.get(column.name) for column in columns) for row in rows]
    return Result(tuple(c.name for c in columns), tuple(c.type for c in columns), values)


def summary(**blocks):
    run = {"run": "r", "run_kind": "actual", "n_queries": 3, "first_at": AT, "last_at": AT}
    given = {
        "runs": block("runs", run),
        "final_context": block("final_context", {"run": "r", "final_how": "inferred", "n_queries": 3}),
        "recall": block("recall", {"run": "r", "n_queries": 2, "n_judged": 1, "n_unobserved": 1, "candidate_recall": 1.0,
                                   "gained": 0.0, "lost": 1.0, "final_context_recall": 0.0, "candidate_complete": 1.0,
                                   "final_complete": 0.0, "candidate_recall_low": 0.5, "candidate_recall_high": 1.0,
                                   "final_context_recall_low": 0.0, "final_context_recall_high": 0.5}),
        "waterfall": block(
            "waterfall",
            {"run": "r", "level": "source", "kind": "layer", "is_branch": False, "n_lost": 0, "n_gained": 0},
            {"run": "r", "level": "dense", "kind": "retrieve", "is_branch": True, "recall": 0.5, "n_lost": 0, "n_gained": 0},
            {"run": "r", "level": "final context", "kind": "final context", "is_branch": False, "recall": 0.0,
             "change": -0.5, "n_lost": 1, "n_gained": 2},
        ),
    }  # fmt: skip
    given |= {name: block(name) for name in BLOCKS if name not in given}
    return Summary(given | blocks, None, [row[0] for row in (given | blocks)["runs"].rows])


def drawn(given, width=100, *, is_ascii=False):
    console = Console(width=width, record=True, file=open("/dev/null", "w", encoding="utf-8"), highlight=False)  # noqa: SIM115
    with console.file:
        for part in screen.draw(given, "s.duckdb", width=width, is_ascii=is_ascii):
            console.print(part, soft_wrap=isinstance(part, str), markup=False)
    return console.export_text()


@pytest.mark.parametrize(
    ("share", "is_ascii", "shown"),
    [(1.0, False, "████████"), (0.5, False, "████"), (0.0, False, ""), (None, False, ""), (0.55, False, "████▍"),
     (0.5, True, "####"), (1.7, False, "████████"), (-1, False, "")],
)  # fmt: skip
def test_a_bar_is_as_long_as_its_share(share, is_ascii, shown):
    assert screen.bar(share, 8, is_ascii=is_ascii) == shown


def test_both_bounds_the_unobserved_and_the_way_of_knowing_are_said():
    shown = " ".join(drawn(summary()).split())

    assert "1 of 2 queries judged, 1 unobserved" in shown
    assert "0.500 to 1.000" in shown
    assert "inferred: the only output that nobody took (3 queries)" in shown


def test_a_layer_that_is_not_recorded_is_no_zero():
    source = next(line for line in drawn(summary()).splitlines() if line.startswith("source"))

    assert "not recorded" in source
    assert "0.000" not in source


@pytest.mark.parametrize("width", [80, 100])
def test_numbers_of_the_waterfall_stay_whole_at_every_width(width):
    shown = drawn(summary(), width)

    assert "0.500" in shown
    assert "1 span lost, 2 gained" in shown
    assert max(len(line) for line in shown.split("Next")[0].splitlines()) <= width


def test_dropped_rows_are_said_loudly_and_a_note_quietly():
    gaps = block(
        "incomplete",
        {"gap": "dropped", "detail": "queue_full", "n": 12, "unit": "value", "is_serious": True},
        {"gap": "interrupted", "detail": "r", "n": 1, "unit": "query", "is_serious": False},
    )
    given = summary(incomplete=gaps)
    shown = drawn(given)

    assert given.is_incomplete
    assert "Incomplete: 12 values dropped by the recorder: queue_full" in shown
    assert "Note: 1 query whose process ended inside them: r" in shown
    assert "a loss above may be none" in shown
    assert "a loss above may be none" not in drawn(summary())


def test_what_is_left_out_is_counted_in_words():
    left = block(
        "left_out",
        {"run": "r", "cause": "unanswerable", "n_queries": 1},
        {"run": "r", "cause": "stale", "n_queries": 1, "n_spans": 2},
        {"run": "other", "cause": "cache_hit", "n_queries": 5},
    )
    shown = " ".join(drawn(summary(left_out=left)).split())

    assert "1 query unanswerable by the documents; 2 spans label older than the text." in shown
    assert "cache" not in shown


def test_a_users_names_steer_no_terminal():
    runs = block("runs", {"run": "r\x1b[31m", "run_kind": "actual", "n_queries": 1, "first_at": AT, "last_at": AT})

    assert "\x1b" not in drawn(summary(runs=runs))


def test_every_way_to_split_recall_has_its_query():
    assert all(catalogue.find(name).kind == "report" for name in GROUPS.values())
