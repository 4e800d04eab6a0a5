"""A real notebook kernel: cells run again, recording configured again, the package reloaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ragtrace.testing import records

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed (it comes with nbclient)")
pytest.importorskip("nbclient", reason="nbclient is not installed")
pytest.importorskip("ipykernel", reason="ipykernel is not installed")

CONFIGURE = "rt.configure({store!r}, run='r', merge='off')"
DEFINE = """
@rt.retrieve
def dense(query):
    return ["a", "b", "c"]
"""
ASK = """
with rt.query("why?"):
    found = dense("why?")
found
"""
STREAM = """
import asyncio

@rt.query
async def ask(question):
    await asyncio.sleep(0)
    return dense(question)

await asyncio.gather(*(ask(f"q{n}") for n in range(5)))
"""
RELOAD = "import importlib; rt = importlib.reload(rt)"
RUN = """
import json, sys
import nbformat
from nbclient import NotebookClient

cells = json.load(open(sys.argv[1]))
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
texts = [output.get("text", "") for cell in notebook.cells for output in cell.outputs if output.output_type == "stream"]
print("".join(texts), end="")
"""


def run(tmp_path: Path, cells: list[str]) -> str:
    """What the cells printed; a process of its own, as the client's event loop leaves sockets to the collector."""
    import json

    (tmp_path / "cells.json").write_text(json.dumps(cells))
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(tmp_path / "cells.json")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_cells_run_again_record_each_stage_once(tmp_path: Path) -> None:
    """I-29: five configures, functions defined again, a reload: one call is one row."""
    store = tmp_path / "traces.duckdb"
    configure = CONFIGURE.format(store=str(store))
    cells = ["import ragtrace as rt", *[configure] * 5, DEFINE, ASK, ASK, DEFINE, ASK]
    cells += [RELOAD, ASK, configure, DEFINE, ASK, STREAM]
    assert run(tmp_path, cells) == ""
    found = records(store)
    queries = [record.body for record in found if record.kind == "query"]
    stages = [record.body.row for record in found if record.kind == "stage"]
    assert len(queries) == len(stages) == 10
    assert {row["query_id"] for row in stages} == {row["query_id"] for row in queries}
    assert all(row["parent_query_id"] is None for row in queries)
    assert not [record for record in found if record.kind == "loss"]
