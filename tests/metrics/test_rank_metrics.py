"""Rank metrics: the numbers of the definitions by hand, and what other people's programs say of random runs."""

from __future__ import annotations

import random
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import ragtrace as rt
from ragtrace.cli.main import app
from ragtrace.gold.loading import load_rows
from ragtrace.reports import run as reports
from ragtrace.store.database import connect
from ragtrace.store.merge import merge
from tests.real.corpora import data_folder

Ask = Callable[[str], list[dict[str, Any]]]
Run = Mapping[str, list[str]]
Qrels = Mapping[str, Mapping[str, int]]

DEPTHS = (1, 3, 5, 10, 20)


def measured(store: Path, runs: Run, gold: list[dict[str, Any]], fields: Callable[[str], Any] = lambda id: id) -> Ask:
    """Record one retrieve run a question, load the labels, and give what asks the store."""
    rt.configure(store, run="test", merge="off")
    for question_id, ids in runs.items():
        with rt.query(question_id, question_id=question_id), rt.retrieve(name="search", k=50) as stage:
            stage.output([fields(id) for id in ids])
    assert rt.shutdown(10)
    merge(store)
    with connect(store) as connection:
        load_rows(connection, gold)

    def ask(sql: str) -> list[dict[str, Any]]:
        with connect(store, read_only=True) as connection:
            return reports.select(connection, sql).records()

    return ask


def chunks(question_id: str, grades: Mapping[str, int]) -> dict[str, Any]:
    items = [{"chunk_id": id, "level": "chunk", "grade": grade} for id, grade in grades.items()]
    return {"question_id": question_id, "question": question_id, "gold": items}


def of_search(ask: Ask, unit: str = "chunk") -> dict[tuple[str, int], dict[str, Any]]:
    rows = ask(
        "select q.question_id, m.* from rank_metrics as m join rank_lists as l using (query_id, place_no)"
        f" join queries as q using (query_id) where l.stage = 'search' and m.unit = '{unit}'"
    )
    return {(row["question_id"], row["k"]): row for row in rows}


def test_one_useless_between_two_of_four(tmp_path: Path) -> None:
    """Labels 1, 0, 1; and the same with the last of them moved to rank 2."""
    gold = [chunks(name, dict.fromkeys(("a", "b", "c", "d"), 1)) for name in ("apart", "together")]
    found = of_search(measured(tmp_path / "t.duckdb", {"apart": ["a", "x", "b"], "together": ["a", "b", "x"]}, gold))
    apart, together = found["apart", 3], found["together", 3]
    assert apart["ragas_context_ap"] == pytest.approx(5 / 6, abs=1e-9)
    assert (apart["precision"], apart["recall"]) == (pytest.approx(2 / 3), 0.5)
    assert apart["average_precision"] == pytest.approx(5 / 12)
    assert apart["id_precision"] == pytest.approx(2 / 3)
    assert together["ragas_context_ap"] == pytest.approx(1, abs=1e-9)


def test_useless_and_nothing_are_two_outcomes(tmp_path: Path) -> None:
    gold = [chunks(name, {"a": 1}) for name in ("useless", "nothing", "late")]
    runs = {"useless": ["x", "y"], "nothing": [], "late": ["x", "y", "z", "a"]}
    ask = measured(tmp_path / "t.duckdb", runs, gold)
    found = of_search(ask)
    assert {name: found[name, 3]["outcome"] for name in runs} == {
        "useless": "useless",
        "nothing": "nothing returned",
        "late": "useless",
    }
    assert found["late", 5]["reciprocal_rank"] == 0.25
    assert found["late", 3]["reciprocal_rank"] == 0
    assert found["nothing", 3]["id_precision"] is None
    assert found["useless", 3]["id_precision"] == 0
    assert found["useless", 5]["precision"] == 0
    (row,) = ask("select * from stage_metrics where stage = 'search' and unit = 'chunk' and k = 3")
    assert (row["n_queries"], row["n_useless"], row["n_nothing"], row["recall"]) == (3, 2, 1, 0)


def test_a_repeat_counts_at_its_first_rank_and_keeps_its_place(tmp_path: Path) -> None:
    """Precision is over k ranks, however few were returned."""
    found = of_search(
        measured(tmp_path / "t.duckdb", {"q": ["x", "a", "a", "b"]}, [chunks("q", {"a": 1, "b": 1, "c": 1})])
    )
    assert [found["q", k]["n_found"] for k in (1, 3, 5)] == [0, 1, 2]
    assert found["q", 10]["precision"] == pytest.approx(0.2)
    assert found["q", 5]["average_precision"] == pytest.approx((1 / 2 + 2 / 4) / 3)


def test_spans_are_found_by_the_ranges_of_chunks(tmp_path: Path) -> None:
    """Two chunkers: one cuts the span in two, so it is whole at rank 3; every candidate that holds some is relevant."""
    text = "".join(chr(97 + n % 26) for n in range(200))
    spot = {"whole": (40, 120), "left": (0, 60), "right": (60, 200), "other": (120, 200)}
    store = tmp_path / "t.duckdb"
    rt.configure(store, run="test", merge="off")
    with rt.document("doc"), rt.parse() as stage:
        stage.output(text)
    rt.shutdown(10)
    gold = [
        {"question_id": name, "question": name, "gold": [{"doc_id": "doc", "start": 50, "end": 70}]}
        for name in ("one", "two")
    ]
    runs = {"one": ["other", "whole"], "two": ["left", "other", "right"]}
    found = of_search(
        measured(store, runs, gold, lambda id: rt.Candidate(id, 1.0, doc_id="doc", start=spot[id][0], end=spot[id][1])),
        "span",
    )
    assert [found["one", k]["recall"] for k in (1, 3)] == [0, 1]
    assert [found["two", k]["recall"] for k in (1, 3)] == [0, 1]
    assert (found["one", 3]["reciprocal_rank"], found["two", 3]["reciprocal_rank"]) == (0.5, 1)
    assert found["two", 3]["precision"] == pytest.approx(2 / 3)
    assert found["two", 3]["ndcg_linear"] is None


def test_what_cannot_be_measured_is_not_in_the_mean(tmp_path: Path) -> None:
    """Unanswerable questions and unlabelled ones have no row; a list that could not be read in full is counted."""
    gold = [chunks("q", {"a": 1}), {"question_id": "empty", "question": "empty", "gold": []}]
    ask = measured(tmp_path / "t.duckdb", {"q": ["a"], "empty": ["a"], "unlabelled": ["a"]}, gold)
    assert {name for name, _ in of_search(ask)} == {"q"}
    (row,) = ask("select n_queries, n_incomplete, recall from stage_metrics where stage = 'search' and k = 1")
    assert row == {"n_queries": 1, "n_incomplete": 0, "recall": 1.0}


# ------------------------------------------------------------------ other people's programs


@pytest.fixture(scope="module")
def drawn() -> tuple[Run, Qrels]:
    """Lists of different lengths, empty ones among them; grades 1 to 3; relevant ones that no list has."""
    chance = random.Random(11)
    pool = [f"c{number}" for number in range(80)]
    runs = {f"q{n}": chance.sample(pool, chance.choice((0, 1, 7, 25, 40))) for n in range(60)}
    qrels = {name: {id: chance.randint(1, 3) for id in chance.sample(pool, chance.randint(1, 30))} for name in runs}
    return runs, qrels


@pytest.fixture(scope="module")
def ours(drawn: tuple[Run, Qrels], tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], dict[str, Any]]:
    runs, qrels = drawn
    store = tmp_path_factory.mktemp("oracles") / "t.duckdb"
    return of_search(measured(store, runs, [chunks(name, grades) for name, grades in qrels.items()]))


def scored(runs: Run) -> dict[str, dict[str, float]]:
    """Ranks as scores: these programs sort."""
    return {name: {id: float(-rank) for rank, id in enumerate(ids)} for name, ids in runs.items()}


def test_as_trec_eval(drawn: tuple[Run, Qrels], ours: dict[tuple[str, int], dict[str, Any]]) -> None:
    import pytrec_eval

    runs, qrels = drawn
    cuts = ",".join(map(str, DEPTHS))
    measures = {f"{name}.{cuts}" for name in ("P", "recall", "ndcg_cut", "map_cut", "success")}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(scored(runs))
    names = {
        "P": "precision",
        "recall": "recall",
        "ndcg_cut": "ndcg_linear",
        "map_cut": "average_precision",
        "success": "hit",
    }
    n_compared = 0
    for name, ids in runs.items():
        for k in DEPTHS:
            for theirs_name, ours_name in names.items():
                expected = theirs[name][f"{theirs_name}_{k}"] if ids else 0
                assert ours[name, k][ours_name] == pytest.approx(expected, abs=1e-9), (name, k, ours_name)
                n_compared += 1
    assert n_compared == len(runs) * len(DEPTHS) * len(names)


def test_as_ir_measures(drawn: tuple[Run, Qrels], ours: dict[tuple[str, int], dict[str, Any]]) -> None:
    import ir_measures

    runs, qrels = drawn
    names = {"RR": "reciprocal_rank", "Success": "hit", "R": "recall", "nDCG": "ndcg_linear", "AP": "average_precision"}
    asked = {getattr(ir_measures, theirs) @ k: (ours_name, k) for theirs, ours_name in names.items() for k in DEPTHS}
    n_compared = 0
    for metric in ir_measures.iter_calc(list(asked), qrels, scored(runs)):
        ours_name, k = asked[metric.measure]
        assert ours[metric.query_id, k][ours_name] == pytest.approx(metric.value, abs=1e-9), metric
        n_compared += 1
    assert n_compared >= sum(bool(ids) for ids in runs.values()) * len(asked)


@pytest.mark.filterwarnings("ignore:unsafe cast")  # its own, of its compiler
def test_as_ranx(drawn: tuple[Run, Qrels], ours: dict[tuple[str, int], dict[str, Any]]) -> None:
    """It knows the exponential gain; its average precision is over the relevant of the corpus too."""
    ranx = pytest.importorskip("ranx", reason="ranx is not installed: pip install ranx")
    runs, qrels = drawn
    names = {
        "precision": "precision",
        "recall": "recall",
        "mrr": "reciprocal_rank",
        "hit_rate": "hit",
        "ndcg": "ndcg_linear",
        "ndcg_burges": "ndcg_exponential",
    }
    asked = [f"{name}@{k}" for name in names for k in DEPTHS]
    filled = {name: ids for name, ids in scored(runs).items() if ids}
    qrels = {name: dict(qrels[name]) for name in filled}
    theirs = ranx.Run(filled)
    ranx.evaluate(ranx.Qrels(qrels), theirs, asked)
    for name in filled:
        for theirs_name, ours_name in names.items():
            for k in DEPTHS:
                expected = theirs.scores[f"{theirs_name}@{k}"][name]
                assert ours[name, k][ours_name] == pytest.approx(expected, abs=1e-9), (name, k, ours_name)


def test_as_trec_eval_on_judgements_of_people(tmp_path: Path) -> None:
    """Titles as questions over real abstracts, ranked by shared words; documents are what is judged."""
    import json

    import pytrec_eval

    folder = data_folder("vaswani_npl")
    texts = [json.loads(line) for line in (folder / "corpus.jsonl").read_text("utf-8").split("\n") if line]
    questions = [json.loads(line) for line in (folder / "questions.jsonl").read_text("utf-8").split("\n") if line][:30]
    words = {row["doc_id"]: set(re.findall(r"\w+", row["text"].lower())) for row in texts}
    runs = {}
    for row in questions:
        asked = set(re.findall(r"\w+", row["question"].lower()))
        runs[row["question_id"]] = sorted(words, key=lambda id: (-len(asked & words[id]), id))[:40]
    qrels = {
        row["question_id"]: {item["doc_id"]: int(item.get("grade", 1)) for item in row["gold"]} for row in questions
    }
    ask = measured(tmp_path / "t.duckdb", runs, questions, lambda id: {"doc_id": id, "score": 1.0})
    ours = of_search(ask, "document")
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"recall.10", "map_cut.10", "ndcg_cut.10"}).evaluate(scored(runs))
    for name in runs:
        for theirs_name, ours_name in {
            "recall_10": "recall",
            "map_cut_10": "average_precision",
            "ndcg_cut_10": "ndcg_linear",
        }.items():
            assert ours[name, 10][ours_name] == pytest.approx(theirs[name][theirs_name], abs=1e-9)


# ------------------------------------------------------------------ the command and its page

PAGE = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("command") / "traces.duckdb"
    measured(store, {"q": ["a", "x", "b"], "r": []}, [chunks("q", dict.fromkeys("abcd", 1)), chunks("r", {"a": 1})])
    return store


@pytest.mark.parametrize("line", re.findall(r"^\$ ragtrace (.*)$", PAGE, re.M))
def test_every_command_of_the_page_runs(line: str, small: Path) -> None:
    words = shlex.split(line.replace("traces.duckdb", str(small)).replace("dense", "search"))
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0
    assert "by chunk, first" in done.stdout


@pytest.mark.parametrize("statement", re.findall(r"^```sql\n(.*?)^```$", PAGE, re.M | re.S))
def test_every_statement_of_the_page_runs(statement: str, small: Path) -> None:
    with connect(small, read_only=True) as connection:
        assert reports.select(connection, statement).rows


def test_the_page_names_every_measure() -> None:
    with connect(Path(":memory:")) as connection:
        described = connection.execute("describe rank_metrics").fetchall()
    measures = {name for name, kind, *_ in described if kind == "DOUBLE"}
    assert measures == set(re.findall(r"^\| `(\w+)`.*\|$", PAGE.split("## The measures")[1], re.M))


def test_the_command_shows_any_depth_and_what_came_to_nothing(small: Path) -> None:
    shown = CliRunner().invoke(app, ["metrics", str(small), "-k", "2", "-k", "7"])
    assert "first 2" in shown.stdout
    assert "first 7" in shown.stdout
    assert re.search(r"^ stage .* empty *$", shown.stdout, re.M)
    assert re.search(r"^ search +2 +0\.125 .* 1 *$", shown.stdout, re.M)
    none = CliRunner().invoke(app, ["metrics", str(small), "--stage", "nobody"])
    assert (none.exit_code, none.stdout) == (0, "")
    assert "nothing can be measured" in none.stderr
