"""docs/collector.md and docs/i-already-use.md: their blocks run, their options are there, their table names every vocabulary."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from collectors.conftest import ROOT, environment
from typer.testing import CliRunner

from ragtrace.cli.examples import EXAMPLES
from ragtrace.cli.main import app
from ragtrace.integrations.otel import declared
from ragtrace.integrations.otel.rules import said
from ragtrace.integrations.otel.spans import Span
from ragtrace.integrations.otel.vocabularies import VOCABULARIES

PAGES = {name: (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("collector", "i-already-use")}
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.S | re.M)
BLOCKS = [(name, block) for name, page in PAGES.items() for word, block in FENCE.findall(page) if word == "python"]
IN_PROCESS = [block for _, block in BLOCKS if "rt.SpanProcessor()" in block]
SENDING = [block for _, block in BLOCKS if ":4318" in block]

ASKING = """
import runpy, sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

ask = runpy.run_path(sys.argv[1])["ask"]
trace.set_tracer_provider(TracerProvider(shutdown_on_exit=False))
"""
EACH = """
provider = trace.get_tracer_provider()
{block}
ask(provider.get_tracer("service"))
provider.force_flush()
"""


def test_every_python_block_is_one_of_the_two_kinds():
    assert len(IN_PROCESS) == 3
    assert len(SENDING) == 3
    assert len(BLOCKS) == 6


def test_the_blocks_that_send_reach_a_collector(collector, told, tmp_path):
    started = collector()
    run([block.replace("http://127.0.0.1:4318/v1/traces", started.http) for block in SENDING], tmp_path)
    assert started.stop() == 0

    assert len(told()) >= 3 * len(SENDING)


def test_the_blocks_in_the_process_itself_record(tmp_path, told, store):
    """Each adds a further processor to one provider; they write the same traces to the store that was configured last."""
    run(IN_PROCESS, tmp_path)

    assert {stage.row["name"] for stage in told()} == {"dense", "cross encoder", "model"}


def run(blocks, folder: Path) -> None:
    script = folder / "script.py"
    script.write_text(ASKING + "".join(EACH.format(block=block) for block in blocks), encoding="utf-8")
    service = Path(__file__).parent / "test_openinference.py"
    path = environment()["PYTHONPATH"]
    done = subprocess.run(
        [sys.executable, str(script), str(service)], check=False, cwd=folder, capture_output=True, text=True, timeout=60,
        env=environment(PYTHONPATH=f"{path}:{ROOT / 'tests'}", RAGTRACE_MERGE="off"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def write_mapping(folder: Path) -> Path:
    (text,) = [block for word, block in FENCE.findall(PAGES["collector"]) if word == "toml"]
    path = folder / "ours.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_mapping_file_of_the_page_reads_what_it_says(tmp_path):
    vocabulary = declared.read(write_mapping(tmp_path))

    def read(name, attributes):
        return said(Span(1, 2, 0, name, "", 0, 1, attributes), [vocabulary])

    search = read(
        "x", {"app.step": "search", "app.query": "why?", "app.k": 9, "app.hits": '{"results": [{"id": "a"}]}'}
    )
    assert (search.kind, search.query, search.k, search.output.rows) == ("retrieve", "why?", 9, [{"id": "a"}])
    reranked = read("rerank with ours", {"app.given": '["x"]', "app.kept": '[{"key": "a", "payload": {"file": "d"}}]'})
    assert reranked.output.rows == [{"id": "a", "payload": {"file": "d"}, "doc_id": "d"}]
    assert read("y", {"app.question": "why?", "app.question_id": "q-1"}).question_id == "q-1"


@pytest.mark.parametrize("name", PAGES)
def test_every_option_of_the_page_is_one_of_the_command(name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    shown = CliRunner().invoke(app, ["collect", "--help"]).stdout

    options = set(re.findall(r"(--[a-z][a-z-]+)", PAGES[name]))
    assert options
    assert {option for option in options if option not in shown} == set()


@pytest.mark.parametrize("vocabulary", [one.name for one in VOCABULARIES if one.name not in ("ragtrace", "Haystack")])
def test_the_table_names_every_vocabulary(vocabulary):
    assert re.search(rf"^\| {re.escape(vocabulary)}\b", PAGES["collector"], re.M)


@pytest.mark.parametrize("line", EXAMPLES["collect"])
def test_every_example_of_the_help_does_what_it_says(line, collector, tmp_path, monkeypatch):
    """On loopback and on ports that are free; one that listens ends well when it is told to."""
    monkeypatch.chdir(tmp_path)
    write_mapping(tmp_path)
    (tmp_path / "token.txt").write_text("secret\n", encoding="utf-8")
    shutil.copy(Path(__file__).parent / "recorded" / "openinference_haystack.jsonl", tmp_path / "spans.jsonl")
    words = shlex.split(line.replace("0.0.0.0", "127.0.0.1"))
    assert words[:3] == ["ragtrace", "collect", "traces.duckdb"]

    if "--file" in words:
        taken = CliRunner().invoke(app, words[1:])
        assert taken.exit_code == 0, taken.output
        assert taken.stderr
    else:
        assert collector(*words[3:]).stop() == 0
