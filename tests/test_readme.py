"""What README.md promises runs: the service's lines, the label, every statement."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import ragtrace as rt

PAGE = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")
HANDBOOK = "A visitor may stay for up to ninety days in a year. Longer stays need a permit. Pets stay outside."


def block(language: str) -> str:
    """The only block of one language."""
    found = re.findall(rf"```{language}\n(.*?)```", PAGE, re.S)
    assert len(found) == 1
    return str(found[0])


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store made by the README's own lines, with its own label."""
    monkeypatch.chdir(tmp_path)
    passages = [(n, m.start(), m.end()) for n, m in enumerate(re.finditer(r"[^.]+\.", HANDBOOK))]

    class Search:
        def search(self, question: str, k: int) -> list[rt.Candidate]:
            return [rt.Candidate(f"p{n}", 1.0 - n / 10, doc_id="handbook.pdf", start=a, end=b) for n, a, b in passages]

    class Reranker:
        def order(self, question: str, found: list[rt.Candidate]) -> list[rt.Candidate]:
            return found[::-1]

    class Model:
        def complete(self, question: str, found: list[rt.Candidate]) -> str:
            return f"{len(found)} passages read"

    names: dict[str, object] = {"my_store": Search(), "my_reranker": Reranker(), "my_model": Model()}
    exec(compile(block("python"), "README.md", "exec"), names)

    @rt.parse
    def parse(raw: str) -> str:
        return raw

    with rt.document("handbook.pdf"):
        parse(HANDBOOK)
    assert names["answer"]("How long may a visitor stay?") == "3 passages read"  # type: ignore[operator]
    rt.shutdown(10)
    Path("questions.jsonl").write_text(block("json"), encoding="utf-8")
    return tmp_path / "traces.duckdb"


def commands() -> list[list[str]]:
    """Every ragtrace command of the page but the demo's and the report of its file."""
    lines = re.findall(r"^\$ ragtrace (.+)$", PAGE, re.M)
    return [[part.strip('"') for part in re.findall(r'"[^"]*"|\S+', line)] for line in lines]


def test_every_command_and_statement_of_the_readme_runs(store: Path) -> None:
    assert len(commands()) == 4
    for command in sorted(commands(), key=lambda c: c[0] == "why"):
        done = subprocess.run(
            [sys.executable, "-m", "ragtrace", *command], cwd=store.parent, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        assert done.stdout.strip()
    with duckdb.connect(str(store), read_only=True) as connection:
        for statement in block("sql").split(";"):
            if statement.strip():
                connection.execute(statement).fetchall()
        assert connection.execute("select verdict from stage_loss").fetchall() == [("kept",)]


def test_the_label_of_the_readme_is_one_json_object_a_line() -> None:
    assert [set(json.loads(line)) for line in block("json").strip().split("\n")] == [
        {"question_id", "question", "gold"}
    ]
