"""A file that ragtrace wrote is read by older DuckDB versions, without ragtrace installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ragtrace as rt

VERSIONS = ("1.2.2", "1.4.4", "1.5.0")

READ = """
import json, sys
import duckdb
try:
    import ragtrace
    sys.exit("ragtrace must not be importable here")
except ImportError:
    pass
with duckdb.connect(sys.argv[1], read_only=True) as c:
    loss = c.execute("select question_id, verdict, lost_kind, lost_stage, lost_at from stage_loss order by all").fetchall()
    recall = c.execute("select candidate_recall, final_context_recall from recall_summary").fetchall()
    macros = c.execute("select count(*) from duckdb_functions() where not internal").fetchone()[0]
print(json.dumps({"duckdb": duckdb.__version__, "loss": loss, "recall": recall}))
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One small store in a folder with blanks and letters beyond ASCII: one span kept, one reranked out."""
    folder = tmp_path_factory.mktemp("Ablage für Spuren 跡")
    path = folder / "traces.duckdb"
    text = "The rain in Spain stays in the plain. The moon over Rome shines on the dome."
    rt.configure(path, run="a", merge="off")

    @rt.retrieve(k=2, mode="exact")
    def search(question: str) -> list[rt.Candidate]:
        return [
            rt.Candidate("c1", 0.9, doc_id="d", start=0, end=37),
            rt.Candidate("c2", 0.8, doc_id="d", start=38, end=76),
        ]

    @rt.rerank(k=1, final=True)
    def rerank(question: str, found: list[rt.Candidate]) -> list[rt.Candidate]:
        return found[:1]

    @rt.parse
    def parse(raw: str) -> str:
        return raw

    with rt.document("d"):
        parse(text)
    for question_id in ("rain", "moon"):
        with rt.query(question_id, question_id=question_id):
            rerank(question_id, search(question_id))
    rt.shutdown(10)
    gold = folder / "gold.jsonl"
    rows = [
        {"question_id": "rain", "question": "rain", "gold": [{"doc_id": "d", "start": 4, "end": 8, "quote": "rain"}]},
        {"question_id": "moon", "question": "moon", "gold": [{"doc_id": "d", "start": 42, "end": 46, "quote": "moon"}]},
    ]
    gold.write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    ragtrace = [sys.executable, "-m", "ragtrace"]
    subprocess.run([*ragtrace, "merge", str(path)], check=True)
    subprocess.run([*ragtrace, "gold", "load", str(path), str(gold)], check=True)
    return path


@pytest.mark.timeout(180)
@pytest.mark.parametrize("version", VERSIONS)
def test_an_older_duckdb_reads_the_verdicts_without_ragtrace(store: Path, version: str, tmp_path: Path) -> None:
    """D-08, D-22"""
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--target",
        str(tmp_path),
        f"duckdb=={version}",
    ]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"duckdb {version} could not be installed here: {done.stderr.strip().splitlines()[-1:]}")
    # -S -E: no site-packages, so neither ragtrace nor the newer duckdb can be found.
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{READ}"
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    for zone in ("UTC", "Asia/Tokyo"):
        read = subprocess.run(
            [sys.executable, "-S", "-E", "-c", code, str(store)],
            env={**env, "TZ": zone, "LC_ALL": "tr_TR.UTF-8"},
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
        assert read.returncode == 0, read.stderr
        answer = json.loads(read.stdout)
        assert answer["duckdb"] == version
        assert answer["loss"] == [["moon", "lost", "rerank", "rerank", "in"], ["rain", "kept", None, None, None]]
        assert answer["recall"] == [[1.0, 0.5]]
