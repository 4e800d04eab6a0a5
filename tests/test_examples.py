"""The examples run as their pages say, and leave what they promise in the store."""

from __future__ import annotations

import difflib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
SERVICE = ROOT / "examples" / "fastapi_service"
EVALUATION = ROOT / "examples" / "offline_eval" / "evaluate.py"
SHARED = Path(os.environ.get("RAGTRACE_SHARED_DATA", ROOT.parent / "shared" / "data"))

QUESTIONS = (
    "How long may a visitor stay?",
    "What is the number to call in case of fire?",
    "How many days of paid leave are there?",
    "Are flights within the country paid for?",
    "Who resets a password?",
)


@contextmanager
def served(module: str, folder: Path) -> Iterator[str]:
    """The service under uvicorn on a free loopback port, as its address; stopped by SIGTERM."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", f"{module}:app", "--app-dir", str(SERVICE), "--port", str(port)]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
    try:
        _wait_until_open(port, process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)


def _wait_until_open(port: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if process.poll() is not None:
            raise AssertionError(f"uvicorn ended: {process.communicate()[1]}")
        time.sleep(0.05)  # the server tells nobody when it listens
    raise AssertionError("uvicorn did not listen within 30 s")


def answers(address: str) -> list[str]:
    """What the service streams for all questions, asked at the same time."""
    from concurrent.futures import ThreadPoolExecutor

    import httpx

    def ask(question: str) -> str:
        response = httpx.post(f"{address}/ask", json={"question": question}, timeout=30)
        response.raise_for_status()
        return response.text

    with ThreadPoolExecutor(len(QUESTIONS)) as pool:
        return list(pool.map(ask, QUESTIONS))


def rows(store: Path, statement: str) -> list[dict[str, Any]]:
    """The result of one select through the command line, as a second process would get it."""
    done = subprocess.run(
        [sys.executable, "-m", "ragtrace", "sql", str(store), statement, "--format", "json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return found["rows"] if isinstance(found, dict) else found


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The folder in which the traced service ran, and what it answered; rows are read while it runs."""
    folder = tmp_path_factory.mktemp("service")
    with served("app", folder) as address:
        given = answers(address)
        seen = rows(folder / "traces.duckdb", "select count(*) as n from queries where status = 'ok'")
    assert seen == [{"n": len(QUESTIONS)}]
    return folder, given


class TestFastapiService:
    def test_tracing_changes_no_answer(self, service: tuple[Path, list[str]], tmp_path: Path) -> None:
        with served("before", tmp_path) as address:
            assert service[1] == answers(address)

    def test_every_request_is_one_whole_query_with_its_four_stages(self, service: tuple[Path, list[str]]) -> None:
        found = rows(
            service[0] / "traces.duckdb",
            "select q.question, f.is_whole, list(s.kind || ' ' || s.name order by s.kind, s.name) as stages "
            "from queries as q join query_flows as f using (query_id) join stages as s using (query_id) "
            "group by all order by q.question",
        )
        stages = ["fuse merge", "generate write_answer", "retrieve by_triples", "retrieve by_words"]
        assert found == [{"question": question, "is_whole": True, "stages": stages} for question in sorted(QUESTIONS)]

    def test_the_passages_are_found_again_in_the_prompt(self, service: tuple[Path, list[str]]) -> None:
        """The prompt is a string: what the merge put out is what the model was given."""
        found = rows(
            service[0] / "traces.duckdb",
            "select f.final_how, count(distinct f.query_id) as n, count(*) as n_passages "
            "from query_flows as f join places as p using (query_id) "
            "join place_lists as l using (query_id, place_no) join candidates as c using (list_id) "
            "where p.side = 'context' group by all",
        )
        assert found == [{"final_how": "only_generate", "n": len(QUESTIONS), "n_passages": 2 * len(QUESTIONS)}]

    def test_the_handbook_is_recorded_as_the_index(self, service: tuple[Path, list[str]]) -> None:
        found = rows(
            service[0] / "traces.duckdb",
            "select count(distinct d.doc_id) as n_documents, count(*) filter (s.kind = 'index') as n_writes "
            "from documents as d join stages as s using (ingest_id)",
        )
        assert found == [{"n_documents": 5, "n_writes": 5}]

    def test_one_users_complaint_is_answered_without_a_gold_file(self, service: tuple[Path, list[str]]) -> None:
        """The command of the example's page."""
        command = re.search(r"^\$ ragtrace why traces.duckdb (.+)$", (SERVICE / "README.md").read_text("utf-8"), re.M)
        assert command
        done = subprocess.run(
            f"{sys.executable} -m ragtrace why traces.duckdb {command[1]}",
            shell=True,
            cwd=service[0],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "by_words" in done.stdout

    def test_the_page_shows_the_difference_as_it_is(self) -> None:
        before, after = ((SERVICE / name).read_text("utf-8").splitlines() for name in ("before.py", "app.py"))
        difference = "\n".join(difflib.unified_diff(before, after, "before.py", "app.py", n=1, lineterm=""))
        assert f"```diff\n{difference}\n```" in (SERVICE / "README.md").read_text("utf-8")


def evaluate(store: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the evaluation; its report must be complete."""
    done = subprocess.run(
        [sys.executable, str(EVALUATION), "--store", str(store), *options], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done


class TestOfflineEvaluation:
    @pytest.mark.parametrize("name", [pytest.param("hotpotqa_100", marks=pytest.mark.full), "expmrc_zh"])
    def test_any_set_with_texts_can_be_taken_by_path(self, name: str, tmp_path: Path) -> None:
        if not SHARED.is_dir():
            pytest.skip(f"no data sets at {SHARED}: set RAGTRACE_SHARED_DATA")
        store, folder = tmp_path / "eval.duckdb", SHARED / name
        files = ("--corpus", str(folder / "corpus.jsonl"), "--questions", str(folder / "questions.jsonl"))
        evaluate(store, *files, "--limit", "20", "--chunk-chars", "300", "--overlap-chars", "60", "--run", "small")
        (summary,) = rows(store, "select run, n_judged, candidate_recall from recall_summary")
        assert (summary["run"], summary["n_judged"]) == ("small", 20)
        assert 0 < summary["candidate_recall"] <= 1

    def test_two_runs_over_the_demos_questions_are_told_apart(self, tmp_path: Path) -> None:
        """Without files it asks the demo's questions."""
        store = tmp_path / "eval.duckdb"
        evaluate(store, "--limit", "8", "--run", "wide", "--k-final", "8")
        evaluate(store, "--limit", "8", "--run", "narrow", "--k-final", "1")
        found = rows(store, "select run, final_context_recall from recall_summary order by run")
        recall = {row["run"]: row["final_context_recall"] for row in found}
        assert set(recall) == {"wide", "narrow"}
        assert recall["narrow"] <= recall["wide"]

    def test_an_overlap_as_large_as_the_chunk_is_refused(self, tmp_path: Path) -> None:
        done = subprocess.run(
            [sys.executable, str(EVALUATION), "--store", str(tmp_path / "x.duckdb"), "--overlap-chars", "600"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2
        assert "--overlap-chars must be smaller" in done.stderr


COMPARISON = ROOT / "examples" / "compare_parsers" / "compare.py"


class TestCompareParsers:
    """In short form: one document of five pages."""

    def compare(self, *options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(COMPARISON), *options]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_every_parser_has_a_line_for_the_document(self, tmp_path: Path) -> None:
        folder = SHARED / "financebench_pdf_dev"
        if not folder.is_dir():
            pytest.skip(f"no data sets at {SHARED}: set RAGTRACE_SHARED_DATA")
        for module in ("pypdf", "pdfminer", "pypdfium2", "pdfplumber"):
            pytest.importorskip(module, reason=f"{module} is not installed: pip install ragtrace[parsers]")
        name, table = "PEPSICO_2023_8K_dated-2023-05-05", tmp_path / "survival.json"
        files = ("--files", str(folder / "corpus"), "--gold", str(folder / "questions.jsonl"), "--table", str(table))
        done = self.compare(*files, "--document", name, "--passages")
        assert done.returncode == 0, done.stderr
        found = {row["parser"]: row for row in json.loads(table.read_text("utf-8")) if row["doc_id"] == name}
        assert set(found) - {"pymupdf"} == {"pypdf", "pdfminer.six", "pypdfium2", "pdfplumber"}
        assert {(row["n_spans"], row["n_left_out"], row["n_empty"]) for row in found.values()} == {(1, 0, 0)}
        # The labels were cut from this parser's text; layout analysis takes tables apart column by column.
        assert found["pypdfium2"]["share_survived"] == 1
        assert found["pdfminer.six"]["share_survived"] < 1
        assert "pdfminer.six, financebench" in done.stdout
        assert "[-" in done.stdout

    def test_what_an_encoding_costs_is_told_from_what_a_tag_stripper_costs(self, tmp_path: Path) -> None:
        """A page in Big5: as UTF-8 its words are gone, by its bytes they are there, among tags and without them."""
        words = "我們在這裡說明退款期限為三十天，逾期不受理。" * 20
        page = f'<html><head><meta charset="big5"></head><body><p>{words}</p><p>End</p></body></html>'
        (tmp_path / "terms.html").write_bytes(page.encode("big5"))
        question = {
            "question_id": "q",
            "question": "?",
            "gold": [{"doc_id": "terms", "quote": words[:24]}],
            "alternatives": [],
        }
        gold, table = tmp_path / "gold.jsonl", tmp_path / "survival.json"
        gold.write_text(json.dumps(question, ensure_ascii=False), encoding="utf-8")
        done = self.compare("--files", str(tmp_path), "--gold", str(gold), "--table", str(table))
        assert done.returncode == 0, done.stderr
        found = {row["parser"]: row["n_missing"] for row in json.loads(table.read_text("utf-8")) if row["doc_id"]}
        assert found == {"utf-8": 1, "charset-normalizer": 0, "beautifulsoup4": 0}

    def test_a_folder_without_documents_is_refused(self, tmp_path: Path) -> None:
        done = self.compare("--files", str(tmp_path))
        assert done.returncode == 2
        assert "nothing to compare: 0 files" in done.stderr
