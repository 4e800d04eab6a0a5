"""A merger killed between two pieces leaves no verdicts of an older state: none are there, and the next command fills them."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from ragtrace.gold import loading
from ragtrace.store import database, kept
from ragtrace.store.merge import merge
from tests.unit.cli import library

_KILLED = """
import os, signal, sys
from ragtrace.gold import placing
from ragtrace.store import commit, merge

merge.READ_BYTES, merge.PIECE_CANDIDATES = 2000, 1
enter, n_left = commit.Committer._enter, int(sys.argv[2])

def counted(self, *given, **named):
    global n_left
    entered = enter(self, *given, **named)
    n_left -= 1
    if not n_left:
        os.kill(os.getpid(), signal.SIGKILL)
    return entered

commit.Committer._enter = counted
merge.merge(sys.argv[1], after=placing.place)
"""


def _command(*given: object) -> str:
    command = [sys.executable, "-m", "ragtrace", *map(str, given)]
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, timeout=120).stdout


@pytest.fixture
def waiting(tmp_path: Path) -> Path:
    """A folder with a store that is judged, and logs of a second run that wait beside it."""
    folder = tmp_path / "waiting"
    folder.mkdir()
    store = folder / "traces.duckdb"
    library.trace(store)
    merge(store)
    with database.connect(store) as connection:
        loading.load(connection, library.write_gold(folder / "gold.jsonl"))
    library.trace(store, run="second")
    return folder


def test_the_next_report_says_what_it_would_have_said(waiting: Path, tmp_path: Path) -> None:
    whole, torn = (shutil.copytree(waiting, tmp_path / name) / "traces.duckdb" for name in ("whole", "torn"))
    done = subprocess.run([sys.executable, "-c", _KILLED, torn, "2"], check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL

    with duckdb.connect(torn, read_only=True) as plain:
        assert kept.is_stale(plain)
        assert plain.execute("select count(*) from stage_loss").fetchall() == [(0,)]
    said = _command("report", torn, "--format", "json")
    assert said.replace(str(torn), str(whole)) == _command("report", whole, "--format", "json")
    with duckdb.connect(torn, read_only=True) as plain:
        assert not kept.is_stale(plain)
        assert plain.execute("select count(distinct run) from stage_loss").fetchall() == [(2,)]
