"""docs/reports.md: every command runs on a traced store."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from ragtrace.reports import run as running
from ragtrace.store import database

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "reports.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ ragtrace (.+)$", PAGE, re.MULTILINE)
QUERIES = [command for command in COMMANDS if command.startswith("queries ")]

EMPTY = {"chunk_cuts", "recall_by_round", "distractors", "distractor_ranks", "rewrite_terms", "cut_ties"}
"""The library cuts nothing, has no distractors, rewrites nothing and gives its losers no score."""


@pytest.fixture(scope="module")
def connection(library_store):
    with database.connect(library_store, read_only=True) as connection:
        yield connection


@pytest.mark.parametrize("command", QUERIES)
def test_a_named_report_of_the_page_runs(connection, command):
    """With the parameters as the command line gives them, as text."""
    _, name, store, *options = shlex.split(command)
    values = dict(option.split("=") for option in options if option != "--param")

    result = running.run(connection, name, **values)

    assert store == "traces.duckdb"
    assert result.columns
    assert result.rows or name in EMPTY


def test_the_others_run_as_they_stand(run, store):
    others = [command for command in COMMANDS if command not in QUERIES]

    assert others == ["why traces.duckdb q-017"]
    for command in others:
        assert run(*shlex.split(command)).exit_code == 0


def test_a_report_is_json_with_the_same_names(run, store):
    (first, *_) = json.loads(run("queries", "retriever_alone", store, "--format", "json").stdout)

    assert {"retriever", "n_only_here", "n_left_out"} <= set(first)
