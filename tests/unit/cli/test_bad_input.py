"""Bad input: one clear sentence on stderr, the right exit code, no traceback, nothing lost."""

import json
import subprocess
import sys

import duckdb
import pytest

from ragtrace.store import database
from tests.unit.cli import library
from tests.unit.cli.conftest import Run

READERS = (("report",), ("sql", "select 1"), ("why", "q-017"), ("gold", "check"), ("gold", "status"), ("merge",))


def command(words: tuple[str, ...], store: object) -> list[object]:
    """The words with the store where it belongs: behind the command's own."""
    at = 2 if words[0] == "gold" else 1
    return [*words[:at], store, *words[at:]]


def assert_one_sentence(result, exit_code: int, *said: str) -> None:
    assert result.exit_code == exit_code, result.output
    assert result.stderr.startswith("ragtrace: "), result.stderr
    assert result.stderr.count("\n") == 1, result.stderr
    for word in said:
        assert word in result.stderr


@pytest.mark.parametrize("words", READERS, ids=lambda words: " ".join(words[:2]))
def test_an_unknown_store_is_named_and_not_made(run: Run, tmp_path, words):
    result = run(*command(words, tmp_path / "typo.duckdb"))

    assert_one_sentence(result, 2, "typo.duckdb", "check the path")
    assert not list(tmp_path.iterdir())


def test_labels_are_not_loaded_into_a_store_that_is_a_typo(run: Run, tmp_path):
    gold = library.write_gold(tmp_path / "gold.jsonl")

    assert_one_sentence(run("gold", "load", tmp_path / "typo.duckdb", gold), 2, "--create")
    assert run("gold", "load", tmp_path / "new.duckdb", gold, "--create").exit_code == 0
    assert sorted(path.name for path in tmp_path.glob("*.duckdb")) == ["new.duckdb"]


@pytest.mark.parametrize("words", READERS, ids=lambda words: " ".join(words[:2]))
def test_a_store_of_a_newer_schema_is_refused(store, run: Run, words):
    with duckdb.connect(store) as connection:
        connection.execute("update store_facts set value = '999' where name = 'schema_version'")

    assert_one_sentence(run(*command(words, store)), 2, "newer ragtrace", "999")


def test_an_error_is_also_an_object_when_json_is_asked_for(run: Run, tmp_path):
    result = run("report", tmp_path / "typo.duckdb", "--format", "json")

    error = json.loads(result.stdout)["error"]
    assert error["kind"] == "StoreNotFoundError"
    assert error["path"].endswith("typo.duckdb")
    assert error["message"] in result.stderr


@pytest.mark.parametrize("words", READERS, ids=lambda words: " ".join(words[:2]))
def test_a_folder_is_no_store(run: Run, tmp_path, words):
    (tmp_path / "folder").mkdir()

    assert_one_sentence(run(*command(words, tmp_path / "folder")), 2, "is a folder")


@pytest.mark.parametrize("words", READERS, ids=lambda words: " ".join(words[:2]))
def test_a_file_that_is_no_database_is_left_as_it_is(run: Run, tmp_path, words):
    other = tmp_path / "thesis.duckdb"
    other.write_text("chapter one\n" * 1000, encoding="utf-8")

    result = run(*command(words, other))

    assert_one_sentence(result, 3 if result.exit_code == 3 else 2, "thesis.duckdb")
    assert other.read_text(encoding="utf-8") == "chapter one\n" * 1000


def test_a_database_of_somebody_else_is_left_as_it_is(run: Run, tmp_path):
    other = tmp_path / "sales.duckdb"
    with duckdb.connect(other) as connection:
        connection.execute("create table sales (n integer)")

    assert_one_sentence(run("report", other), 2, "no ragtrace store")
    with duckdb.connect(other) as connection:
        assert connection.execute("show tables").fetchall() == [("sales",)]


def test_a_store_locked_by_another_process_is_said_with_its_pid(store, run: Run):
    holder = subprocess.Popen(
        [sys.executable, "-c", f"import duckdb, sys; c = duckdb.connect({str(store)!r}); print('open', flush=True); sys.stdin.read()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        result = run("report", store)
    finally:
        holder.communicate()

    assert_one_sentence(result, 2, str(holder.pid), "close it there")


def test_a_store_that_another_process_reads_is_reported_as_it_was_merged(store, run: Run):
    """Two reports at once: only one can merge, both can read."""
    holder = subprocess.Popen(
        [sys.executable, "-c", f"import duckdb, sys; c = duckdb.connect({str(store)!r}, read_only=True); print('open', flush=True); sys.stdin.read()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        result = run("report", store)
    finally:
        holder.communicate()

    assert result.exit_code == 0
    assert "shown is what was merged before" in result.stderr
    assert "candidate recall" in result.stdout


def test_a_broken_log_costs_its_broken_part_only_and_is_named(store, run: Run):
    library.trace(store, run="second")
    log = next(store.with_name("traces.duckdb.spool").glob("*.log"))
    data = bytearray(log.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 40] = b"\xff" * 40
    log.write_bytes(data)

    result = run("report", store)
    damaged = json.loads(run("report", store, "--format", "json").stdout)["incomplete"]

    assert result.exit_code == 3
    assert "Incomplete:" in result.stdout
    assert "skipped in a damaged log" in result.stdout
    assert log.name in [row["detail"] for row in damaged if row["gap"] == "damaged_log"]
    assert run("report", store, "--run", "hybrid-k50").stdout.count("run hybrid-k50") == 1


def test_a_gold_file_with_a_bad_line_is_refused_with_number_and_reason(store, run: Run, tmp_path):
    lines = [json.dumps(line) for line in library.GOLD]
    lines[1] = '{"question_id": "q-018", "gold": [{"doc_id": "hours.txt", "start": 9, "end": 3}]}'
    (tmp_path / "bad.jsonl").write_text("\n".join(lines), encoding="utf-8")
    before = run("gold", "status", store, "--format", "json").stdout

    refused = run("gold", "load", store, tmp_path / "bad.jsonl", "--replace")
    after = run("gold", "status", store, "--format", "json").stdout
    skipped = run("gold", "load", store, tmp_path / "bad.jsonl", "--replace", "--skip-bad", "--format", "json")

    assert_one_sentence(refused, 2, "bad.jsonl", "2")
    assert after == before
    assert skipped.exit_code == 0
    assert [entry["line"] for entry in json.loads(skipped.stdout)["bad"]] == [2]
    assert json.loads(skipped.stdout)["n_questions"] == 3
    assert "bad.jsonl:2: left out" in skipped.stderr


def test_a_gold_file_that_is_not_there_is_said(store, run: Run, tmp_path):
    assert_one_sentence(run("gold", "load", store, tmp_path / "nothing.jsonl"), 2, "nothing.jsonl")


def test_an_unknown_question_offers_the_nearest(store, run: Run):
    result = run("why", store, "q-0017", "--format", "json")

    assert_one_sentence(result, 2, "nearest: q-017")
    assert json.loads(result.stdout)["error"]["nearest"][0]["question_id"] == "q-017"


def test_a_query_of_another_question_is_refused(store, run: Run):
    assert_one_sentence(run("why", store, "q-017", "--query", 12), 2, "query 12")


def test_an_unknown_run_names_those_there_are(store, run: Run):
    assert_one_sentence(
        run("report", store, "--run", "hybrid-k5"), 2, "no run is named 'hybrid-k5'; nearest: hybrid-k50"
    )


def test_an_unknown_query_name_offers_the_nearest(store, run: Run):
    assert_one_sentence(run("queries", "loses", store), 2, "losses")
    assert_one_sentence(run("queries", "losses", store, "--param", "k=1"), 2, "no parameter 'k'")
    assert_one_sentence(run("queries", "losses", store, "--param", "k"), 2, "name=value")
    assert_one_sentence(run("queries", "matching_queries", store), 2, "needs asked")


def test_a_label_on_a_document_that_was_never_parsed_is_found_by_the_check(store, run: Run, tmp_path):
    line = {"question_id": "q-031", "question": "?", "gold": [{"doc_id": "garden.txt", "quote": "a rose"}]}
    (tmp_path / "garden.jsonl").write_text(json.dumps(line), encoding="utf-8")

    loaded = run("gold", "load", store, tmp_path / "garden.jsonl")
    found = json.loads(run("gold", "check", store, "--format", "json").stdout)

    assert loaded.exit_code == 0
    assert [(row["problem"], row["doc_id"]) for row in found] == [("document_unknown", "garden.txt")]
    assert run("report", store).exit_code == 0


def test_an_empty_store_is_reported_as_empty(run: Run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    database.connect("empty.duckdb").close()

    result = run("report", "empty.duckdb")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "no query is recorded yet" in result.stdout
    assert json.loads(run("report", "empty.duckdb", "--format", "json").stdout)["runs"] == []
    assert_one_sentence(run("why", "empty.duckdb", "q-1"), 2, "no query is recorded")


def test_a_store_with_traces_and_no_gold_says_how_to_go_on(run: Run, tmp_path):
    library.trace(tmp_path / "traces.duckdb")

    result = run("report", tmp_path / "traces.duckdb")

    assert result.exit_code == 0
    assert "ragtrace gold load" in result.stdout
    assert "--quote" in result.stdout
    assert "recall" not in result.stdout.replace("nothing can be said of recall", "")
    assert "Not judged" in run("why", tmp_path / "traces.duckdb", library.STAY).stdout


def test_a_wrong_option_is_a_mistake_of_the_user(store, run: Run):
    assert run("report", store, "--by", "weather").exit_code == 2
    assert run("report").exit_code == 2
