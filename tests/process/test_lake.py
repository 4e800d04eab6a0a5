"""A store in a lake: the files its manifest names are the store's rows, each once, also when the publisher is killed."""

from __future__ import annotations

import json
import random
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import duckdb
import pytest

from ragtrace import schema
from ragtrace.errors import StoreError
from ragtrace.store import lake, retention
from ragtrace.store.merge import merge
from tests.unit.cli import library

DOC = Path(__file__).parents[2] / "docs" / "exports.md"

_KILLED = """
import os, signal, sys
from ragtrace.store import lake

n_left = int(sys.argv[3])

def killed_before(call):
    def counted(*given, **named):
        global n_left
        n_left -= 1
        if n_left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*given, **named)
    return counted

os.replace, lake._sync, Path = killed_before(os.replace), killed_before(lake._sync), lake.Path
Path.unlink = killed_before(Path.unlink)
lake.publish(sys.argv[1], sys.argv[2])
print(n_left)
"""


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store of one run that is published in `lake`, and then a second run merged that is not."""
    folder = tmp_path_factory.mktemp("two runs")
    library.trace(folder / "traces.duckdb", run="a/b=%'")
    merge(folder / "traces.duckdb")
    lake.publish(folder / "traces.duckdb", folder / "lake")
    shutil.copy(folder / "traces.duckdb", folder / "first.duckdb")
    library.trace(folder / "traces.duckdb", run="second")
    merge(folder / "traces.duckdb")
    return folder


@pytest.fixture
def folder(two_runs: Path, tmp_path: Path) -> Path:
    return shutil.copytree(two_runs, tmp_path / "copy")


def _rows(store: Path, table: schema.Table) -> Counter[str]:
    columns = ", ".join(f'"{column.name}"' for column in table.columns)
    with duckdb.connect(store, read_only=True) as connection:
        return Counter(map(repr, connection.execute(f"select {columns} from {table.name}").fetchall()))


def _published(folder: Path, table: schema.Table) -> Counter[str]:
    columns = ", ".join(f'"{column.name}"' for column in table.columns)
    files = [str(path) for path in lake.files(folder, table.name)]
    if not files:
        return Counter()
    read = "select {} from read_parquet($files, hive_partitioning = false)"
    return Counter(map(repr, duckdb.execute(read.format(columns), {"files": files}).fetchall()))


def _holds(folder: Path, store: Path) -> bool:
    return all(_published(folder, table) == _rows(store, table) for table in schema.TABLES)


def _on_disk(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file() and path.parent.name != "manifests"}


def test_every_row_is_there_once_and_only_what_changed_is_written(folder: Path) -> None:
    store, target = folder / "traces.duckdb", folder / "lake"
    assert _holds(target, folder / "first.duckdb")
    first = set(lake.files(target, "candidates"))
    assert len(first) == 2  # of the run, and of what was recorded outside of every query
    changed = lake.publish(store, target)
    assert changed.n_written and changed.n_kept
    assert _holds(target, store)
    of_run = {path for path in first if "__HIVE" not in path.parent.name}
    assert of_run < set(lake.files(target, "candidates"))
    assert lake.publish(store, target)._replace(n_kept=0) == (0, 0, 0)
    named = {path for table in schema.TABLES for path in lake.files(target, table.name)}
    assert _on_disk(target) == named | {target / "publish.lock"}


def test_what_is_deleted_in_the_store_goes_from_the_lake(folder: Path) -> None:
    store, target = folder / "traces.duckdb", folder / "lake"
    lake.publish(store, target)
    retention.delete(store, run="second")
    assert lake.publish(store, target).n_dropped
    assert _holds(target, store)
    assert not [path for path in lake.files(target, "queries") if "second" in str(path)]


def test_another_stores_rows_stay_and_a_query_never_counts_twice(folder: Path, tmp_path: Path) -> None:
    target, other = folder / "lake", tmp_path / "other.duckdb"
    lake.publish(folder / "traces.duckdb", target)
    library.trace(other, run="second")
    merge(other)
    lake.publish(other, target)
    queries = schema.table("queries")
    both = _rows(folder / "traces.duckdb", queries) + _rows(other, queries)
    assert _published(target, queries) == both

    rebuilt = tmp_path / "rebuilt.duckdb"
    shutil.copy(other, rebuilt)
    with duckdb.connect(rebuilt) as connection:
        connection.execute("update store_facts set value = 'rebuilt' where name = 'store_id'")
    with pytest.raises(StoreError, match="from another store: delete"):
        lake.publish(rebuilt, target)
    assert _published(target, queries) == both


def test_one_question_is_found_by_the_statistics(folder: Path) -> None:
    lake.publish(folder / "traces.duckdb", folder / "lake")
    for path in lake.files(folder / "lake", "candidates"):
        ids = duckdb.execute("select list_id from read_parquet($path)", {"path": str(path)}).fetchall()
        assert ids == sorted(ids)
        [(n,)] = duckdb.execute(
            "select count(*) from parquet_metadata($path) "
            "where path_in_schema = 'list_id' and (stats_min_value is null or stats_max_value is null)",
            {"path": str(path)},
        ).fetchall()
        assert n == 0


def test_the_example_of_the_page_reads_what_counts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.publish(folder / "traces.duckdb", folder / "lake")
    monkeypatch.chdir(folder)
    [example] = re.findall(r"```sql\n(set variable files.*?)```", DOC.read_text(encoding="utf-8"), re.DOTALL)
    with duckdb.connect() as connection:
        rows = connection.execute(example).fetchall()
    with duckdb.connect(folder / "traces.duckdb", read_only=True) as connection:
        counted = connection.execute("select run, count(*) from queries group by all").fetchall()
    assert sorted(row[1:] for row in rows) == sorted(counted)


def _killed_at(folder: Path, n: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", _KILLED, folder / "traces.duckdb", folder / "lake", str(n)]
    return subprocess.run(command, stdout=subprocess.PIPE, check=False, text=True, timeout=120)


@pytest.mark.parametrize("n_points", [3, pytest.param(40, marks=pytest.mark.full)])
def test_a_kill_anywhere_leaves_the_old_or_the_new(two_runs: Path, tmp_path: Path, n_points: int) -> None:
    whole = shutil.copytree(two_runs, tmp_path / "whole")
    n_calls = 1_000_000 - int(_killed_at(whole, 1_000_000).stdout)
    points = {0, n_calls - 1, *random.Random(n_points).sample(range(n_calls), min(n_points - 2, n_calls))}
    for n in sorted(points):
        torn = shutil.copytree(two_runs, tmp_path / f"torn {n}")
        assert _killed_at(torn, n).returncode == -signal.SIGKILL
        is_new = _holds(torn / "lake", torn / "traces.duckdb")
        assert is_new or _holds(torn / "lake", torn / "first.duckdb"), n
        lake.publish(torn / "traces.duckdb", torn / "lake")
        assert _holds(torn / "lake", torn / "traces.duckdb"), n
        lake.publish(torn / "traces.duckdb", torn / "lake")
        named = {path for table in schema.TABLES for path in lake.files(torn / "lake", table.name)}
        assert _on_disk(torn / "lake") == named | {torn / "lake" / "publish.lock"}, n
        assert json.loads(next((torn / "lake" / "manifests").glob("*.json")).read_text(encoding="utf-8"))["files"]
