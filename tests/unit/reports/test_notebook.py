"""A store in a notebook: the page's cells run in a real kernel, and results show themselves."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ragtrace.errors import NotInstalledError, ReportError, StoreNotFoundError
from ragtrace.notebook import Store
from tests.unit.cli import library

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "notebook.md").read_text(encoding="utf-8")
CELLS = re.findall(r"^```python\n(.+?)^```", PAGE, re.MULTILINE | re.DOTALL)
RUN = """
import json, sys
import nbformat
from nbclient import NotebookClient

cells = json.load(open(sys.argv[1]))
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
print(json.dumps([[dict(output.get("data", {})) for output in cell.outputs] for cell in notebook.cells]))
"""


@pytest.fixture(scope="module")
def store(library_path):
    return Store(library_path)


def test_the_cells_of_the_page_run_in_a_real_kernel(library_path, tmp_path):
    pytest.importorskip("nbclient", reason="nbclient is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    shutil.copy(library_path, tmp_path / "traces.duckdb")
    cells = [*CELLS, 'report.charts["waterfall"]', 'store.page("report.html").stat().st_size > 1e6', "store.loss()"]
    (tmp_path / "cells.json").write_text(json.dumps(cells))
    done = subprocess.run(
        [sys.executable, "-c", RUN, "cells.json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)

    assert len(shown) == len(CELLS) + 3
    assert "final_context_recall" in shown[0][0]["text/html"]
    assert set(shown[-3][0]) == {"text/plain", "text/html", "application/vnd.plotly.v1+json"}
    assert shown[-2][0]["text/plain"] == "True"
    assert "<table" in shown[-1][0]["text/html"]


def test_a_table_is_the_same_in_arrow_pandas_and_polars(store):
    loss = store.loss()
    arrow = loss.arrow()

    assert arrow.num_rows == len(loss) == 3
    assert str(arrow.schema.field("query_id").type) == "int64"
    assert loss.pandas()["evidence_id"].tolist() == loss.polars()["evidence_id"].to_list()
    assert loss.records() == arrow.to_pylist()


def test_losses_of_one_run_only(store):
    assert len(store.loss(run="hybrid-k50")) == 3
    with pytest.raises(ReportError, match="no run is named 'hybrid'; nearest: hybrid-k50"):
        store.loss(run="hybrid")


def test_a_run_that_is_not_named_is_the_newest_everywhere(library_path, tmp_path):
    shutil.copy(library_path, tmp_path / "traces.duckdb")
    library.trace(tmp_path / "traces.duckdb", run="newer", questions=[library.STAY])
    store = Store(tmp_path / "traces.duckdb")

    assert set(store.loss().arrow()["run"].to_pylist()) == {"newer"}
    assert store.report().run == "newer"
    assert store.whatif().tables["changes"].records()[0]["run"] == "newer"
    assert len(store.loss(run="hybrid-k50")) == 3


def test_where_the_logs_cannot_be_merged_a_warning_says_why(library_path, tmp_path):
    """Another notebook has the file open: what was merged before is shown, and that it is so is told."""
    path = tmp_path / "traces.duckdb"
    shutil.copy(library_path, path)
    library.trace(path, run="newer", questions=[library.STAY])
    code = (
        "import sys; from ragtrace.store import database\n"
        "with database.connect(sys.argv[1], read_only=True): print('open', flush=True); sys.stdin.readline()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        with pytest.warns(UserWarning, match=f"merged before: .*{other.pid}") as told:
            loss = Store(path).loss()
        other.communicate("close\n")

    assert set(loss.arrow()["run"].to_pylist()) == {"hybrid-k50"}
    assert told[0].filename == __file__


def test_why_tells_what_the_command_tells(store):
    (said,) = store.why(library.STAY).sentences()

    assert said.startswith("lost in cross encoder (rerank)")
    assert store.why("q-017").places.columns[0] == "query_id"


def test_a_hostile_text_is_shown_as_text(store):
    shown = store.sql("select '<script>alert(1)</script>' as \"<b>\", 'x\u202ey' as y")._repr_html_()

    assert "<script" not in shown
    assert "<b>" not in shown
    assert "&lt;script&gt;" in shown
    assert "\u202e" not in shown


def test_a_long_table_says_how_much_of_it_is_shown(store):
    assert "30 rows; the first 20 are shown" in store.sql("select unnest(range(30)) as n")._repr_html_()


def test_a_view_that_is_not_there_names_those_that_are(store):
    moves = store.report().charts["moves"]

    assert moves.view("cross").figure().data[0].type == "heatmap"
    with pytest.raises(LookupError, match="rrf"):
        moves.view("none such")


def test_a_store_that_is_not_there_is_a_sentence(tmp_path):
    with pytest.raises(StoreNotFoundError, match="no store at"):
        Store(tmp_path / "none.duckdb").report()


def test_a_missing_package_names_the_extra(store, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(NotInstalledError, match=r"pip install .ragtrace\[notebook\]"):
        store.loss().polars()


def test_the_file_is_free_between_calls(store):
    from ragtrace.store import database

    store.sql("select 1")
    with database.connect(store.path) as connection:
        assert connection.execute("select count(*) from queries").fetchone() == (4,)


def test_the_door_is_not_loaded_by_the_package():
    code = "import sys, ragtrace; print(sorted(m for m in sys.modules if m.startswith(('ragtrace.reports', 'ragtrace.notebook'))))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
