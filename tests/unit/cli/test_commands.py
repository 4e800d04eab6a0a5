"""What each command prints, in each format."""

import csv
import io
import json
import shlex

import pytest

from ragtrace.cli import examples
from ragtrace.version import __version__
from tests.unit.cli import library
from tests.unit.cli.conftest import Run

FORMATS = ("table", "json", "csv", "markdown")


def test_sql_prints_the_same_columns_in_every_format(store, run: Run):
    statement = "select question_id, verdict, lost_stage from stage_loss order by question_id"
    shown = {name: run("sql", store, statement, "--format", name) for name in FORMATS}

    assert {result.exit_code for result in shown.values()} == {0}
    expected = [
        {"question_id": "q-017", "verdict": "lost", "lost_stage": "cross encoder"},
        {"question_id": "q-018", "verdict": "lost", "lost_stage": "bm25 or dense"},
        {"question_id": "q-019", "verdict": "kept", "lost_stage": None},
    ]
    assert json.loads(shown["json"].stdout) == expected
    assert list(csv.DictReader(io.StringIO(shown["csv"].stdout))) == [
        {name: value or "" for name, value in row.items()} for row in expected
    ]
    assert shown["markdown"].stdout.splitlines()[0] == "| question_id | verdict | lost_stage |"
    assert "cross encoder" in shown["table"].stdout


def test_sql_says_when_rows_were_left_off(store, run: Run):
    result = run("sql", store, "select * from range(5)", "--limit", 2)

    assert "only the first 2 rows are shown" in result.stderr
    assert run("sql", store, "select * from range(2000)", "--format", "csv").stdout.count("\n") == 2001


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("delete from queries", "delete is no reading statement"),
        ("select 1; select 2", "give one statement, not 2"),
        ("selec 1", "this is not SQL that DuckDB reads"),
        ("select nothing from stage_loss", "DuckDB refuses the statement"),
        ("select $k", "put values in place of $k"),
        ("", "give one statement, not 0"),
    ],
)
def test_sql_that_does_not_read_is_refused_in_a_sentence(store, run: Run, statement, said):
    result = run("sql", store, statement)

    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_queries_lists_every_query_and_shows_one(run: Run):
    names = {row["name"] for row in json.loads(run("queries", "--format", "json").stdout)}

    assert {"losses", "stage_loss", "recall_summary"} <= names
    assert run("queries", "losses").stdout.startswith("-- report:")
    assert json.loads(run("queries", "losses", "--format", "json").stdout)["grain"]


def test_queries_runs_one_with_parameters(store, run: Run):
    rows = json.loads(
        run("queries", "nearest_questions", store, "--param", "asked=dogs", "--param", "n=1", "-f", "json").stdout
    )

    assert [row["question"] for row in rows] == [library.DOGS]


def test_why_marks_the_line_where_the_evidence_ends(store, run: Run):
    result = run("why", store, "q-017")

    ends = [line for line in result.stdout.splitlines() if "ends here" in line]
    assert len(ends) == 1
    assert "cross encoder" in ends[0]
    assert "LOST in cross encoder (rerank)" in result.stdout
    assert "2nd by the reranker, only 1 goes on, 0.1 behind" in result.stdout
    assert "lets 2 through instead of 1" in result.stdout
    assert "Visitors may stay for 90 days" in result.stdout
    assert max(len(line) for line in result.stdout.splitlines()) <= 100


def test_why_takes_a_question_by_id_by_text_and_by_query_id(store, run: Run):
    by_id = json.loads(run("why", store, "q-017", "--format", "json").stdout)
    by_text = json.loads(run("why", store, library.STAY, "--format", "json").stdout)
    by_query = json.loads(run("why", store, by_id[0]["query"]["query_id"], "--format", "json").stdout)

    assert by_id[0]["places"] == by_text[0]["places"] == by_query[0]["places"]
    assert [one["query"]["matched_by"] for one in (by_id[0], by_text[0], by_query[0])] == [
        "question_id",
        "text",
        "query_id",
    ]


def test_why_judges_a_quote_without_any_gold_file(store, run: Run):
    result = run("why", store, library.DOGS, "--quote", "A card costs ten francs")

    assert result.exit_code == 0
    assert "LOST in bm25 or dense (retrieve)" in result.stdout


def test_why_says_that_a_quote_stands_in_no_document(store, run: Run):
    result = run("why", store, library.DOGS, "--quote", "Dogs of any size are welcome in the garden")

    assert result.exit_code == 2
    assert "no recorded document has this passage" in result.stderr


def test_why_shows_the_newest_of_several_queries_and_names_the_others(store, run: Run):
    library.trace(store, run="second", questions=[library.STAY])

    newest = run("why", store, "q-017")
    every = json.loads(run("why", store, "q-017", "--all", "--format", "json").stdout)
    older = run("why", store, "q-017", "--query", every[1]["query"]["query_id"])

    assert "run second" in newest.stdout
    assert "2 queries are recorded of this question" in newest.stderr
    assert [one["query"]["run"] for one in every] == ["second", "hybrid-k50"]
    assert "run hybrid-k50" in older.stdout


def test_report_shows_one_screen(store, run: Run):
    result = run("report", store)

    assert result.exit_code == 0
    assert max(len(line) for line in result.stdout.splitlines()) <= 100
    shown = " ".join(result.stdout.split())
    for said in (
        "run hybrid-k50", "4 queries", "what the only generate took", "final context", "candidate recall 0.667",
        "final-context recall 0.333", "in cross encoder (rerank)", "unanswerable", "ragtrace why",
    ):  # fmt: skip
        assert said in shown, said


def test_report_as_json_is_one_object_with_every_block(store, run: Run):
    blocks = json.loads(run("report", store, "--by", "kind", "--format", "json").stdout)

    assert blocks["recall"][0]["candidate_recall"] == pytest.approx(2 / 3)
    assert blocks["recall"][0]["final_context_recall"] == pytest.approx(1 / 3)
    assert {(row["lost_stage"], row["reason"]) for row in blocks["losses"]} == {
        ("cross encoder", "reranked_out"), ("bm25 or dense", "unprobed"),
    }  # fmt: skip
    assert [(row["cause"], row["n_queries"]) for row in blocks["left_out"]] == [("unanswerable", 1)]
    assert {row["kind"]: row["final_context_recall"] for row in blocks["by"]} == {"fact": 0.0, "number": 1.0}
    assert set(blocks) >= {"runs", "final_context", "recall", "waterfall", "losses", "left_out", "incomplete"}


@pytest.mark.parametrize("by", ["kind", "tag", "run", "retriever"])
def test_report_splits_recall(store, run: Run, by):
    result = run("report", store, "--by", by, "--block", "by", "--format", "csv")

    assert result.exit_code == 0
    assert by in result.stdout.splitlines()[0].split(",")
    assert len(result.stdout.splitlines()) > 1


def test_report_as_csv_holds_one_table_and_says_which(store, run: Run):
    result = run("report", store, "--format", "csv")

    assert [row["reason"] for row in csv.DictReader(io.StringIO(result.stdout))] == ["reranked_out", "unprobed"]
    assert "csv holds one table, here losses" in result.stderr
    assert run("report", store, "--block", "nothing").exit_code == 2


def test_report_of_several_runs_shows_the_newest_and_all_in_a_table(store, run: Run):
    library.trace(store, run="second", questions=[library.PAY])

    result = run("report", store)
    one = run("report", store, "--run", "hybrid-k50")

    assert "2 runs are in the store" in result.stdout
    assert "run second" in result.stdout
    assert "run hybrid-k50" in one.stdout
    assert "second" not in one.stdout


def test_merge_says_what_it_brought_in(store, run: Run):
    library.trace(store, run="second")

    assert json.loads(run("merge", store, "--format", "json").stdout)["n_queries"] == 4
    assert json.loads(run("merge", store, "--format", "json").stdout)["n_queries"] == 0


# `demo` builds an index for seconds and `collect` serves until it is told to end: they have tests of their own.
@pytest.mark.parametrize(
    "line",
    [line for command, lines in examples.EXAMPLES.items() if command not in {"demo", "collect"} for line in lines],
)
def test_every_example_of_the_help_does_what_it_says(store, run: Run, line):
    words = shlex.split(line.split(" > ")[0])
    if words[1] == "compare":
        library.trace(store, run=words[4])

    result = run(*words[1:])

    assert result.exit_code == 0, result.output
    assert result.stdout


def test_a_probe_says_what_it_asked_and_what_is_proved_now(store, run: Run):
    asked = json.loads(run("probe", store, "--with", "service:retrievers", "--format", "json").stdout)
    reasons = json.loads(run("why", store, "q-018", "--format", "json").stdout)[0]["reasons"]

    assert (asked["n_targets"], asked["n_asked"], asked["n_proved"]) == (2, 2, 1)
    assert {(row["stage"], row["reason"], row["proof"]) for row in reasons} >= {("dense", "below_k", "probe")}
    again = run("probe", store, "--with", "service:retrievers")
    assert "0 of 1 retrieve run that missed evidence were asked again, in 0 calls." in again.stdout
    assert "No further loss has a proof now, 0 still have none." in again.stdout
    assert "all that can be asked of them was asked before" in again.stderr


def test_a_probe_names_the_retriever_that_raised_and_what(store, run: Run, monkeypatch):
    from ragtrace.probes import Retriever
    from tests.unit.cli import library

    def broken(question, k, filter):
        return unknown_index.search(question, k)  # noqa: F821 - that is the trouble

    monkeypatch.setattr(library, "broken", [Retriever("dense", search=broken)], raising=False)
    failed = run("probe", store, "--with", "tests.unit.cli.library:broken")
    as_json = run("probe", store, "--with", "tests.unit.cli.library:broken", "--format", "json")

    assert (failed.exit_code, as_json.exit_code) == (3, 3)
    assert "dense: search raised NameError: name 'unknown_index' is not defined\n" in failed.stderr
    assert "1 answer counts for nothing: the control question" in failed.stderr
    assert "register index_version=" not in failed.stderr
    assert json.loads(as_json.stdout)["failures"] == {
        "dense: search raised NameError: name 'unknown_index' is not defined": 1
    }


@pytest.mark.parametrize(
    ("n_proved", "n_unproved", "said"),
    [
        (1, 1, "1 loss has a proof now, 1 still has none."),
        (2, 0, "2 losses have a proof now, 0 still have none."),
        (0, 3, "No further loss has a proof now, 3 still have none."),
    ],
)
def test_a_probe_speaks_of_one_and_of_many(store, run: Run, monkeypatch, n_proved, n_unproved, said):
    from ragtrace.probes import stored

    probed = stored.Probed(1, 1, 1, 0, n_proved, n_unproved, {"answers_differ": 1}, {}, {"asked_before": 1})
    monkeypatch.setattr(stored, "ask_stored", lambda *_, **__: probed)
    result = run("probe", store, "--with", "service:retrievers")

    assert "1 of 1 retrieve run that missed evidence was asked again, in 1 call." in result.stdout
    assert said in result.stdout
    assert "1 answer counts for nothing" in result.stderr
    assert "1 was not asked: " in result.stderr


@pytest.mark.parametrize("named", ["nowhere:retrievers", "service:nothing", "json:dumps.nothing", "service:rt"])
def test_a_probe_with_what_is_no_retriever_says_so(store, run: Run, named):
    result = run("probe", store, "--with", named)

    assert result.exit_code == 2
    assert "--with" in result.stderr


def test_gold_check_fails_on_a_wrong_label(store, run: Run, tmp_path):
    bad = {
        "question_id": "q-030",
        "question": "?",
        "gold": [{"doc_id": "hours.txt", "start": 3, "end": 9, "quote": "opens!"}],
    }
    (tmp_path / "bad.jsonl").write_text(json.dumps(bad), encoding="utf-8")
    assert run("gold", "load", store, tmp_path / "bad.jsonl").exit_code == 0

    result = run("gold", "check", store, "--format", "json")

    assert result.exit_code == 1
    assert [row["question_id"] for row in json.loads(result.stdout)] == ["q-030"]


def test_the_version_is_printed(run: Run):
    result = run("--version")

    assert (result.exit_code, result.stdout) == (0, f"ragtrace {__version__}\n")
