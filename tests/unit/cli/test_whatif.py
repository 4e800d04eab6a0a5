"""`ragtrace whatif`: what it prints in each format, and one clear sentence where it has nothing to say."""

import csv
import io
import json

import pytest

from ragtrace.reports.changes import CHANGES
from tests.unit.cli import library
from tests.unit.cli.conftest import Run


def test_the_screen_says_what_to_change_and_what_each_value_would_do(store, run: Run):
    result = run("whatif", store)

    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert any(line.startswith("What to change") for line in lines)
    assert any("cross encoder (rerank): k, not recorded, or not the same in all queries" in line for line in lines)
    assert "unchecked" in result.stdout, "three queries prove no replay"


def test_json_names_the_spans_that_a_change_gains(store, run: Run):
    told = json.loads(run("whatif", store, "--stage", "cross encoder", "--format", "json").stdout)

    assert (told["run"], told["n_replayed"]) == ("hybrid-k50", 3)
    two = next(row for row in told["changes"] if row["value"] == 3)
    assert [span["evidence_id"] for span in two["gains"]] == ["q-017#1.1"]
    assert (two["spans_gained"], two["spans_lost"], two["promise"]) == (1, 0, "unchecked")
    assert told["what_to_change"][0]["sentence"].startswith("cross encoder: let ")


def test_csv_and_markdown_have_the_columns_of_the_changes(store, run: Run):
    rows = list(csv.DictReader(io.StringIO(run("whatif", store, "--format", "csv").stdout)))

    assert tuple(rows[0]) == CHANGES
    assert {row["stage"] for row in rows} >= {"dense", "bm25", "cross encoder"}
    assert "## what_to_change" in run("whatif", store, "--format", "markdown").stdout


@pytest.mark.parametrize(
    ("words", "exit_code", "said"),
    [
        (("--run", "hybrid-k5"), 2, "no run is named 'hybrid-k5'; nearest: hybrid-k50"),
        (
            ("--stage", "cross encodr"),
            2,
            "no stage of run 'hybrid-k50' is named 'cross encodr'; nearest: cross encoder",
        ),
        (("--stage", "rrf"), 3, "nothing of stage 'rrf' of run 'hybrid-k50' can be replayed"),
        (("--block", "curves", "--format", "csv"), 2, "what-if has no block 'curves'"),
    ],
)
def test_what_cannot_be_answered_is_said_in_one_sentence(store, run: Run, words, exit_code, said):
    result = run("whatif", store, *words)

    assert (result.exit_code, result.stderr.count("\n")) == (exit_code, 1), result.output
    assert said in result.stderr


def test_the_sentence_is_an_object_when_json_is_asked_for(store, run: Run):
    error = json.loads(run("whatif", store, "--stage", "rrf", "--format", "json").stdout)["error"]

    assert (error["kind"], error["stage"]) == ("NotReplayableError", "rrf")


def test_without_labels_it_says_how_to_load_some(run: Run, tmp_path):
    library.trace(tmp_path / "traces.duckdb", questions=[library.STAY])
    result = run("whatif", tmp_path / "traces.duckdb")

    assert (result.exit_code, result.stderr.count("\n")) == (2, 1), result.output
    assert "ragtrace gold load" in result.stderr
