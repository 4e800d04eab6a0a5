"""However a process ends, every query that had finished is in its log."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from textwrap import indent

import pytest

from ragtrace.testing import records

HEAD = """
import os, sys, signal, threading, time, multiprocessing
import ragtrace as rt

@rt.retrieve
def dense(query):
    return [{"id": f"c{n}", "score": 1 / (n + 1)} for n in range(100)]

def ask(n=1):
    for _ in range(n):
        with rt.query("why?"):
            dense("why?")

rt.configure(sys.argv[1], merge="off")

def main():
"""

ENDINGS = {
    "the script ends": ("ask(20)", 20),
    "sys.exit": ("ask(20); sys.exit(3)", 20),
    "an exception": ("ask(20); raise ValueError", 20),
    "os._exit": ("ask(20); os._exit(0)", 20),
    "kill -9": ("ask(20); os.kill(os.getpid(), signal.SIGKILL)", 20),
    "SIGTERM": ("ask(20); os.kill(os.getpid(), signal.SIGTERM); time.sleep(5)", 20),
    "exec": ("ask(20); os.execv(sys.executable, [sys.executable, '-c', ''])", 20),
    "a daemon thread at work": ("threading.Thread(target=ask, args=(10**9,), daemon=True).start(); ask(20)", 20),
    "fork": ("ask(1)\nif os.fork() == 0:\n    ask(20); os._exit(0)\nos.wait()", 21),
    "fork inside a query": (
        "with rt.query('why?'):\n    dense('q')\n    if os.fork() == 0:\n        ask(20); os._exit(0)\n    os.wait()", 21
    ),
    "a forked child that leaves its parent's query too": (
        "with rt.query('why?'):\n    dense('q')\n    pid = os.fork()\n    dense('q')\nif pid: os.wait()", 1
    ),
    "multiprocessing fork": (
        "c = multiprocessing.get_context('fork')\nask(1)\nps = [c.Process(target=ask, args=(1,)) for _ in range(20)]\n"
        "[p.start() for p in ps]; [p.join() for p in ps]", 21
    ),
    "a pool with one task a child": (
        "c = multiprocessing.get_context('fork')\nask(1)\n"
        "with c.Pool(2, maxtasksperchild=1) as pool:\n    pool.map(ask, [1] * 10, chunksize=1)", 11
    ),
    "multiprocessing forkserver": (
        "c = multiprocessing.get_context('forkserver')\nask(1)\nps = [c.Process(target=ask, args=(1,)) for _ in range(4)]\n"
        "[p.start() for p in ps]; [p.join() for p in ps]", 5
    ),
    "multiprocessing spawn": (
        "c = multiprocessing.get_context('spawn')\nask(1)\nps = [c.Process(target=ask, args=(1,)) for _ in range(2)]\n"
        "[p.start() for p in ps]; [p.join() for p in ps]", 3
    ),
    "a ProcessPoolExecutor": (
        "from concurrent.futures import ProcessPoolExecutor\nask(1)\n"
        "with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context('fork')) as pool:\n    list(pool.map(ask, [1] * 20))",
        21,
    ),
    "a fork that no hook of Python's hears of": (
        # A thread that asks for the interpreter's lock just then would be waited for by the child: Python's hook sees to it.
        "import ctypes\nask(1)\nsys.setswitchinterval(60)\nif ctypes.PyDLL(None).fork() == 0:\n    ask(20); os._exit(0)\n"
        "os.wait()", 21
    ),
    "fork while another thread records": (
        "threading.Thread(target=ask, args=(10**9,), daemon=True).start(); time.sleep(0.2)\n"
        "for _ in range(10):\n    if os.fork() == 0:\n        ask(2); os._exit(0)\n    os.wait()\nask(1)", 21
    ),
}  # fmt: skip


def run(store: Path, body: str, *, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    # Newer Pythons warn of each fork beside a thread, which is the script's own doing here.
    quiet = ["-W", "ignore:This process:DeprecationWarning"]
    return subprocess.run(
        [sys.executable, *quiet, str(script(store, body)), str(store)],
        capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip


def script(store: Path, body: str) -> Path:
    """A file, as children that start anew import it."""
    path = store.with_name(f"{store.name}.py") if store.parent.is_dir() else store.parents[1] / "script.py"
    path.write_text(HEAD + indent(body, "    ") + "\n\nif __name__ == '__main__':\n    main()\n")
    return path


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_finished_query_is_in_the_log_once(ending: str, tmp_path: Path) -> None:
    body, expected = ENDINGS[ending]
    store = tmp_path / "traces.duckdb"
    done = run(store, body)
    found = records(store)
    queries = [record.body["query_id"] for record in found if record.kind == "query"]
    assert len(set(queries)) == len(queries)
    if "thread" in ending:
        assert len(queries) >= expected
    else:
        assert (len(queries), expected) == (expected, expected), f"{ending}: found / expected"
    stages = [record.body.row["stage_id"] for record in found if record.kind == "stage"]
    assert len(set(stages)) == len(stages)
    whole = {record.body.row["query_id"] for record in found if record.kind == "stage"}
    assert set(queries) <= whole
    if ending != "an exception":
        assert done.stderr == ""


def test_a_forked_child_s_stages_inside_its_parent_s_query_are_kept(tmp_path: Path) -> None:
    store = tmp_path / "traces.duckdb"
    run(
        store,
        "with rt.query('why?'):\n    dense('q')\n    if os.fork() == 0:\n        dense('q'); os._exit(0)\n    os.wait()",
    )
    found = records(store)
    (query,) = [record.body for record in found if record.kind == "query"]
    stages = [record.body.row for record in found if record.kind == "stage"]
    assert [row["query_id"] for row in stages] == [query["query_id"]] * 2
    assert query["n_stages"] == 1


def test_a_process_killed_at_random_points_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    """D-06"""
    for number in range(40 if os.environ.get("RAGTRACE_TEST_ALL") else 6):
        store = tmp_path / f"{number}.duckdb"
        body = "while True:\n    with rt.query('why?') as q:\n        dense('why?')\n    print(q.id, flush=True)"
        command = [sys.executable, str(script(store, body)), str(store)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(0.01 + 0.031 * number)
            process.send_signal(signal.SIGKILL)
            acknowledged = {int(line) for line in process.stdout.read().split("\n")[:-1] if line}
        found = {record.body["query_id"] for record in records(store) if record.kind == "query"}
        assert acknowledged <= found


def test_a_process_that_ends_while_its_disk_is_full_ends_in_time_and_quietly(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    began = time.monotonic()
    done = run(tmp_path / "file" / "traces.duckdb", "ask(20)")
    assert time.monotonic() - began < 15
    assert "Traceback" not in done.stderr and done.returncode == 0


def test_a_stopped_and_continued_process_goes_on(tmp_path: Path) -> None:
    store = tmp_path / "traces.duckdb"
    body = "ask(5); print('ready', flush=True); sys.stdin.readline(); ask(5); rt.flush(5)"
    command = [sys.executable, str(script(store, body)), str(store)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        os.kill(process.pid, signal.SIGSTOP)
        assert len([record for record in records(store) if record.kind == "query"]) == 5
        os.kill(process.pid, signal.SIGCONT)
        process.communicate("\n", timeout=60)
    assert len([record for record in records(store) if record.kind == "query"]) == 10


def test_import_loads_no_analysis_library_and_not_the_recorder(tmp_path: Path) -> None:
    code = "import sys, ragtrace; print([n for n in sys.modules if n.split('.')[0] in ('duckdb', 'pyarrow', 'numpy') or n == 'ragtrace.recording.recorder'])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


def test_recording_loads_no_analysis_library(tmp_path: Path) -> None:
    done = run(tmp_path / "t.duckdb", "ask(1); print([n for n in sys.modules if n in ('duckdb', 'pyarrow', 'numpy')])")
    assert done.stdout.strip() == "[]"
