"""The demo: its parser, its labels, and a whole run with honest losses."""

from __future__ import annotations

import collections
import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ragtrace.cli.demo import corpus
from ragtrace.cli.demo.chunking import split_text
from ragtrace.cli.demo.main import QUESTIONS, run
from ragtrace.cli.demo.parse import parse_page
from ragtrace.errors import NotInstalledError, StoreError
from ragtrace.store import database

LABELS = [json.loads(line) for line in QUESTIONS.read_text("utf-8").splitlines()]


def items(label: dict[str, Any]) -> list[dict[str, Any]]:
    """Every gold item of a question, of all its sets."""
    return [item for group in [label["gold"], *label.get("alternatives", [])] for item in group]


class TestParser:
    def test_wrapped_lines_become_one_paragraph(self) -> None:
        assert parse_page("One\ntwo.  Three.\n\nFour.\n") == "One two. Three.\n\nFour."

    def test_a_word_that_was_broken_at_its_hyphen_is_joined(self) -> None:
        assert parse_page('a bare "raise" re-\nraises it') == 'a bare "raise" re-raises it'

    def test_headings_keep_their_depth(self) -> None:
        assert parse_page("A\n***\n\nB\n===\n\nC\n---") == "# A\n\n## B\n\n### C"

    def test_code_keeps_its_lines_and_loses_its_margin(self) -> None:
        page = "For example:\n\n   if x:\n       y\n\n   z\n\nDone."
        assert parse_page(page) == "For example:\n\nif x:\n    y\n\nz\n\nDone."

    def test_list_items_stand_alone(self) -> None:
        assert parse_page("* one\n  more\n* two") == "* one more\n\n* two"

    def test_emphasis_goes_and_star_arguments_stay(self) -> None:
        assert parse_page('*x* is **bold** in "f(*args, **kwargs)"') == 'x is bold in "f(*args, **kwargs)"'

    def test_a_table_becomes_a_line_per_row_or_nothing(self) -> None:
        page = "+----+-----+\n| A  | B   |\n|====|=====|\n| a1 | b   |\n|    | c   |\n+----+-----+"
        assert parse_page(page) == "A | B\na1 | b c"
        assert parse_page(page, keep_tables=False) == ""

    def test_an_empty_page_is_an_empty_text(self) -> None:
        assert parse_page("") == ""


class TestChunking:
    def test_passages_lie_where_they_say(self) -> None:
        for page in corpus.pages()[:20]:
            text = parse_page(page.raw)
            for passage in split_text(page.doc_id, page.edition, text, max_chars=500, min_chars=1):
                assert passage["text"] == text[passage["start"] : passage["end"]]

    def test_nothing_but_blanks_is_left_out_when_no_passage_is_too_short(self) -> None:
        for page in corpus.pages()[:20]:
            text = parse_page(page.raw)
            passages = split_text(page.doc_id, page.edition, text, max_chars=500, min_chars=1)
            assert "".join("".join(p["text"].split()) for p in passages) == "".join(text.split())

    def test_no_passage_crosses_a_heading_or_exceeds_the_size(self) -> None:
        text = "# A\n\n" + "word " * 300 + "\n\n# B\n\nshort"
        passages = split_text("d", "1", text, max_chars=200, min_chars=1)
        assert all(len(p["text"]) <= 200 for p in passages)
        assert passages[-1]["text"] == "# B\n\nshort"

    def test_short_pieces_are_left_out(self) -> None:
        assert split_text("d", "1", "# A\n\nNew.", max_chars=200, min_chars=60) == []


class TestLabels:
    def test_there_are_many_and_of_every_kind(self) -> None:
        kinds = collections.Counter(label["kind"] for label in LABELS)
        assert len(LABELS) >= 40
        assert {"fact", "multi_span", "alternatives", "unanswerable", "version", "table", "grammar"} <= set(kinds)
        assert any(label.get("distractors") for label in LABELS)
        assert len({label["question_id"] for label in LABELS}) == len(LABELS)

    def test_every_quote_of_the_current_edition_stands_in_its_page(self) -> None:
        """Labels were made on 3.11; elsewhere a handful of passages were reworded since or before."""
        texts = {page.doc_id: parse_page(page.raw) for page in corpus.pages()}
        current = [item for label in LABELS for item in items(label) if "doc_version" not in item]
        absent = [item for item in current if item["quote"] not in texts.get(item["doc_id"], "")]
        assert len(absent) == 0 if sys.version_info[:2] == (3, 11) else len(absent) <= 0.1 * len(current)

    def test_the_quotes_of_the_earlier_edition_stand_only_there(self) -> None:
        earlier = {page.doc_id: parse_page(page.raw) for page in corpus.earlier_pages()}
        current = {page.doc_id: parse_page(page.raw) for page in corpus.pages()}
        marked = [
            item for label in LABELS for item in [*items(label), *label.get("distractors", [])] if "doc_version" in item
        ]
        assert marked
        for item in marked:
            assert item["quote"] in earlier[item["doc_id"]]
            assert item["quote"] not in current[item["doc_id"]]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one run of the demo."""
    path = tmp_path_factory.mktemp("demo") / "demo.duckdb"
    assert run(path, quiet=True) == 0
    return path


def select(path: Path, statement: str) -> list[tuple[Any, ...]]:
    with database.connect(path, read_only=True) as connection:
        return connection.execute(statement).fetchall()


class TestRun:
    def test_every_question_is_a_whole_query(self, demo: Path) -> None:
        found = select(demo, "select count(*), bool_and(is_whole), min(final_how), max(final_how) from query_flows")
        assert found == [(len(LABELS), True, "answer_generate", "answer_generate")]

    def test_nothing_was_left_unrecorded(self, demo: Path) -> None:
        assert select(demo, "select reason, n from losses") == []
        assert select(demo, "select name, capture_error from stages where capture_error is not null") == []
        assert select(demo, "select count(*) from lists where not is_complete") == [(0,)]

    def test_evidence_is_lost_at_stages_before_and_after_the_search(self, demo: Path) -> None:
        kinds = {row[0] for row in select(demo, "select distinct lost_kind from stage_loss where verdict = 'lost'")}
        assert {"parse", "chunk", "retrieve", "fuse", "filter", "rerank", "truncate"} <= kinds

    def test_nothing_is_unobserved(self, demo: Path) -> None:
        """Every stage is recorded in full, so every verdict is certain."""
        assert select(demo, "select question_id from stage_loss where verdict = 'unobserved'") == []

    def test_the_losses_at_the_parser_are_tables(self, demo: Path) -> None:
        lost = "select question_id from stage_loss where verdict = 'lost' and lost_kind = 'parse'"
        kinds = {label["question_id"]: label["kind"] for label in LABELS}
        assert {kinds[row[0]] for row in select(demo, lost)} == {"table"}

    def test_the_label_of_the_earlier_edition_is_stale(self, demo: Path) -> None:
        stale = "select evidence_id from label_states where state = 'stale'"
        assert select(demo, stale) == [("with-backslash#1.1",)]

    def test_unanswerable_questions_are_in_no_mean(self, demo: Path) -> None:
        n_unanswerable = sum(label["kind"] == "unanswerable" for label in LABELS)
        n_stale = 1
        assert select(demo, "select n_judged from recall_summary") == [(len(LABELS) - n_unanswerable - n_stale,)]

    def test_the_final_context_holds_less_than_the_candidates_and_more_than_nothing(self, demo: Path) -> None:
        ((candidates, gained, final),) = select(
            demo, "select candidate_recall, gained, final_context_recall from recall_summary"
        )
        assert 0.5 < final < candidates < 1
        assert gained >= 0

    def test_a_second_run_to_the_same_store_has_a_label_of_its_own(
        self, demo: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """And its report ends with commands that work."""
        assert run(demo, queries=12) == 0
        printed = capsys.readouterr().out
        assert select(demo, "select run, count(*) from queries group by run order by run") == [
            ("demo", len(LABELS)),
            ("demo-2", 12),
        ]
        commands = [line.strip() for line in printed.splitlines() if line.startswith("  ragtrace ")]
        assert len(commands) >= 2
        assert any(command.startswith("ragtrace why ") for command in commands)
        for command in commands:
            done = subprocess.run(
                command.replace("ragtrace", f"{sys.executable} -m ragtrace", 1),
                shell=True,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, (command, done.stderr)
            assert done.stdout
        # One of them asked the retrievers again.
        proofs = "select distinct proof from reasons where run = 'demo-2' and lost_kind = 'retrieve'"
        assert select(demo, proofs) == [("probe",)]

    def test_the_same_questions_find_the_same_candidates_again(self, demo: Path, tmp_path: Path) -> None:
        """Deterministic: other people see the losses that the page describes."""
        again = tmp_path / "again.duckdb"
        run(again, queries=12, quiet=True)
        ranked = (
            "select q.question_id, s.name, l.role, c.rank, i.chunk_id, round(c.score, 4) from queries as q "
            "join stages as s using (query_id) join lists as l using (stage_id) join candidates as c using (list_id) "
            "join items as i using (item) where q.run = 'demo' and q.question_id in (select question_id from given) "
            "order by all"
        )
        asked = ", ".join(f"('{label['question_id']}')" for label in LABELS[:12])
        statement = f"with given(question_id) as (values {asked}) {ranked}"
        assert select(again, statement) == select(demo, statement)


class TestTrouble:
    def test_a_file_that_is_no_store_is_refused_and_kept(self, tmp_path: Path) -> None:
        path = tmp_path / "notes.txt"
        path.write_text("my notes " * 2000)
        with pytest.raises(StoreError):
            run(path, quiet=True)
        assert path.read_text().startswith("my notes")

    def test_a_missing_library_is_named_with_the_command_that_installs_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "bm25s", None)
        for module in ("pipeline", "search"):
            monkeypatch.delitem(sys.modules, f"ragtrace.cli.demo.{module}", raising=False)
        with pytest.raises(NotInstalledError, match=r"bm25s.*pip install 'ragtrace\[demo\]'"):
            run(tmp_path / "demo.duckdb", quiet=True)
        assert not (tmp_path / "demo.duckdb").exists()

    def test_progress_is_drawn_on_a_terminal(self, tmp_path: Path) -> None:
        """And nothing of it goes to stdout."""
        leader, follower = pty.openpty()
        script = "from pathlib import Path; from ragtrace.cli.demo.main import run; run(Path('d.duckdb'), queries=2)"
        process = subprocess.Popen(
            [sys.executable, "-c", script],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=follower,
            env={**os.environ, "TERM": "xterm"},
        )
        os.close(follower)
        drawn = b""
        while chunk := _read(leader):
            drawn += chunk
        stdout, _ = process.communicate(timeout=120)
        os.close(leader)
        assert process.returncode == 0
        assert b"pages" in drawn
        assert b"questions" in drawn
        assert b"\x1b[" not in stdout


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux's word for: the other end has closed
        return b""
