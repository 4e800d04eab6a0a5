"""The page as a file: what is in it, from where, and what stops it."""

from __future__ import annotations

import builtins
import gzip
import importlib.util
import json
import re
import resource
from base64 import b64decode
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ragtrace.cli.main import app
from ragtrace.reports import page, page_details, question
from ragtrace.reports.run import run


@pytest.fixture(scope="module")
def written(library_path, tmp_path_factory):
    from ragtrace.store import database

    path = tmp_path_factory.mktemp("page") / "page.html"
    with database.connect(library_path, read_only=True) as connection:
        page.write(connection, path, "traces.duckdb")
    return path.read_text(encoding="utf-8")


def unpacked(text, name):
    (packed,) = re.findall(rf'id="{name}">([^<]+)<', text)
    return json.loads(gzip.decompress(b64decode(packed)))


def test_a_question_says_what_why_says(library_store, written):
    details = unpacked(written, "block-0")
    rows = unpacked(written, "data")["rows"]
    for row, known in zip(rows, details, strict=True):
        asked = question.find(library_store, row[page_details.LIST_COLUMNS.index("query_id")]).records()[0]
        explained = question.explain(library_store, asked)
        assert [piece["id"] for piece in known["evidence"]] == [r["evidence_id"] for r in explained.evidence.records()]
        for piece in known["evidence"]:
            places = explained.places.only(evidence_id=piece["id"]).records()
            reasons = explained.reasons.only(evidence_id=piece["id"]).records()
            assert [line[:2] for line in piece["places"]] == [[p["kind"], p["stage"]] for p in places]
            assert [told[0] for told in piece["told"]] == [said for said, _ in question.told(reasons)]


def test_what_is_read_of_questions_is_of_the_run_that_is_shown(library_store):
    for name in ("why_question", "why_evidence", "why_reasons", "why_places", "why_text"):
        whole = run(library_store, name)
        assert whole.rows
        assert run(library_store, name, run="hybrid-k50").rows == whole.rows
        assert run(library_store, name, run="another").rows == []


def test_the_list_has_every_query_of_the_run_and_its_recalls(library_store, written):
    rows = unpacked(written, "data")["rows"]
    found = run(library_store, "question_list").records()

    assert [row[2] for row in rows] == [str(one["query_id"]) for one in found]
    assert [row[8] for row in rows] == pytest.approx([one["final_context_recall"] for one in found], nan_ok=True)


def test_the_page_has_the_text_around_the_evidence_as_far_as_it_is_stored(library_store, written):
    passages = {
        piece["id"]: (piece["before"], piece["passage"], piece["after"])
        for known in unpacked(written, "block-0")
        for piece in known["evidence"]
    }
    stored = {
        row["evidence_id"]: (row["before"], row["passage"], row["after"])
        for row in run(library_store, "why_text").records()
    }

    assert passages == stored


def test_the_same_store_gives_the_same_page(library_store, written):
    assert page.html(page.read(library_store, "traces.duckdb")) == written


def test_the_command_writes_a_page_beside_and_says_how_large_it_is(library_path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["report", str(library_path), "--format", "html"])

    assert result.exit_code == 0, result.output
    assert re.fullmatch(r"traces\.html  \d\.\d MB, 4 queries\n", result.stdout)
    assert [path.name for path in tmp_path.iterdir()] == ["traces.html"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--format", "html", "--by", "kind"], "--by does not go with --format html"),
        (["--format", "html", "--run", "none-such"], "no run is named 'none-such'"),
        (["--format", "json", "--output", "x.json"], "--output goes with --format html"),
    ],
)
def test_what_does_not_go_together_is_said_in_a_sentence(library_path, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["report", str(library_path), *words])

    assert result.exit_code == 2
    assert said in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("package", ["plotly", "jinja2"])
def test_a_missing_package_is_a_sentence_with_what_to_install(library_path, tmp_path, monkeypatch, package):
    find_spec, import_ = importlib.util.find_spec, builtins.__import__

    def without(name, *rest, **more):
        if name.partition(".")[0] == package:
            raise ImportError(name)
        return import_(name, *rest, **more)

    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == package else find_spec(name, *rest)
    )
    monkeypatch.setattr(builtins, "__import__", without)
    page._library.cache_clear()
    page._environment.cache_clear()
    result = CliRunner().invoke(
        app, ["report", str(library_path), "--format", "html", "--output", str(tmp_path / "x.html")]
    )

    assert result.exit_code == 2
    assert 'pip install "ragtrace[html]"' in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_page_of_a_service_that_keeps_its_texts_has_none_of_them(tmp_path):
    """Labels by offsets alone: what is not in the store cannot be in the page."""
    import ragtrace as rt
    from ragtrace.gold import loading
    from ragtrace.store import database
    from ragtrace.store.merge import merge

    text = "The safe opens with 4711. Nobody knows."
    rt.configure(tmp_path / "traces.duckdb", run="r", merge="off", capture_text="none")
    try:
        with rt.document("safe.txt"):
            rt.parse(name="read")(lambda: text)()
        with rt.query("how does the safe open?", question_id="q-1"):
            rt.retrieve(name="dense", k=1)(lambda: [rt.Candidate("c-1", text=text, doc_id="safe.txt")])()
    finally:
        rt.shutdown(10)
    merge(tmp_path / "traces.duckdb")
    (tmp_path / "gold.jsonl").write_text(
        '{"question_id": "q-1", "gold": [{"doc_id": "safe.txt", "start": 0, "end": 24}]}\n'
    )
    with database.connect(tmp_path / "traces.duckdb") as connection:
        loading.load(connection, tmp_path / "gold.jsonl")
        written = page.html(page.read(connection, "traces.duckdb"))
    held = [written, json.dumps(unpacked(written, "data")), json.dumps(unpacked(written, "block-0"))]

    assert "q-1" in held[1]
    assert not [part for part in held if re.search("4711|safe open|opens", part)]


def test_every_name_that_the_documentation_gives_a_chart_is_a_query():
    from ragtrace.reports import catalogue

    text = (Path(__file__).resolve().parents[3] / "docs" / "pictures.md").read_text(encoding="utf-8")
    named = re.findall(r"\| `(\w+)` \|$", text, re.MULTILINE)

    assert len(named) == 8
    assert set(named) <= set(catalogue.load("report"))


def test_an_empty_store_is_a_page_too(tmp_path):
    from ragtrace.store import database

    with database.connect(tmp_path / "empty.duckdb") as connection:
        written = page.html(page.read(connection, "empty.duckdb"))

    assert "no query is recorded yet" in written


def test_the_changes_are_replayed_once_over_as_many_queries_as_the_command_takes(library_store, monkeypatch):
    from ragtrace.whatif import door
    from ragtrace.whatif.limits import MOST_QUERIES

    read, asked = door.recorded.read, []
    monkeypatch.setattr(door.recorded, "read", lambda store, run, most: asked.append(most) or read(store, run, most))
    shown = page.read(library_store, "traces.duckdb")

    assert asked == [MOST_QUERIES]
    assert shown.summary.blocks["what_to_change"].rows


@pytest.mark.parametrize("name", ["pictures.md", "whatif.md", "cli.md"])
def test_the_documentation_has_the_number_of_queries_that_is_replayed(name):
    from ragtrace.whatif.limits import MOST_QUERIES

    text = (Path(__file__).resolve().parents[3] / "docs" / name).read_text(encoding="utf-8")
    said = re.findall(
        r"(\d+) (?:replayed queries|queries with labels are replayed)|so many queries. Default: (\d+)", text
    )

    assert [one or other for one, other in said] == [str(MOST_QUERIES)]


def test_on_a_full_disk_nothing_is_left_behind(library_store, tmp_path):
    (tmp_path / "page.html").write_text("the page of yesterday")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            page.write(library_store, tmp_path / "page.html", "traces.duckdb")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
    assert (tmp_path / "page.html").read_text() == "the page of yesterday"


def test_two_that_write_one_page_at_once_do_not_take_each_others_file(library_store, tmp_path, monkeypatch):
    path, replace = tmp_path / "page.html", Path.replace

    def after_another(unfinished, target):
        monkeypatch.setattr(Path, "replace", replace)
        page.write(library_store, path, "traces.duckdb")
        return replace(unfinished, target)

    monkeypatch.setattr(Path, "replace", after_another)
    page.write(library_store, path, "traces.duckdb")

    assert [one.name for one in tmp_path.iterdir()] == ["page.html"]
