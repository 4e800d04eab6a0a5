"""A report while the service writes."""

import json
import subprocess
import sys
from pathlib import Path

from tests.unit.cli import library

ROOT = str(Path(library.__file__).resolve().parents[3])


def test_a_report_sees_a_service_that_is_still_writing(run, tmp_path, monkeypatch):
    """Another process records; nothing of it is waited for, and nothing of it is disturbed."""
    monkeypatch.chdir(tmp_path)
    code = (
        "import sys; from tests.unit.cli import library as l; import ragtrace as rt\n"
        "rt.configure('traces.duckdb', run='live', merge='off'); l._ingest(); l._answer(l.STAY)\n"
        "print('asked', flush=True); sys.stdin.readline(); l._answer(l.PAY); print(rt.shutdown(10), flush=True)"
    )
    service = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": ROOT}
    )
    try:
        assert service.stdout is not None
        assert service.stdout.readline() == "asked\n"
        live = run("report", "traces.duckdb", "--format", "json")
    finally:
        rest, _ = service.communicate("go on\n")
    ended = run("report", "traces.duckdb", "--format", "json")

    assert live.exit_code == 0, live.output
    assert json.loads(live.stdout)["runs"][0]["n_queries"] == 1
    assert rest == "True\n"
    assert json.loads(ended.stdout)["runs"][0]["n_queries"] == 2
