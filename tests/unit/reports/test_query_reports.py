"""The reports on rewriting, retrievers, rounds, duplicates, ties, distractors and the prompt, on small recorded services."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import ragtrace as rt
from ragtrace.reports import run
from tests.traced import Row, Traced

PAID = "In 2021 Amcor paid 412 million."
LATER = "In 2022 it paid 399 million."
REST = "Nobody knows what comes next year, or why."
TEXT = f"{PAID} {LATER} {REST}"
PLACES = {
    "paid": (0, len(PAID)),
    "later": (len(PAID) + 1, len(PAID) + 1 + len(LATER)),
    "rest": (len(TEXT) - len(REST), len(TEXT)),
    "wide": (0, len(PAID) + 2),
}
QUESTION = "How much did Amcor pay in 2021?"

SCENARIOS: list[Callable[[], list[Row]]] = []


def scenario(record: Callable[[], list[Row]]) -> Callable[[], list[Row]]:
    """Registers what records queries and gives their labels; its name is the label of the run."""
    SCENARIOS.append(record)
    return record


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traced]:
    """All scenarios in one store: a store for each test costs half a second."""
    trace = Traced(tmp_path_factory.mktemp("reports") / "traces.duckdb")
    with rt.document("doc"), rt.parse(name="reader") as stage:
        stage.output(TEXT)
    labels: list[Row] = []
    for record in SCENARIOS:
        rt.configure(trace.store, run=record.__name__, merge="off")
        labels += record()
    trace.judge(labels)
    yield trace
    trace.close()


def ask(traced: Traced, name: str, of: str, **parameters: Any) -> list[Row]:
    """The rows a report has of one scenario."""
    assert traced.connection is not None
    return run.run(traced.connection, name, run=of, **parameters).records()


def hit(name: str, score: float | None = None, **more: Any) -> rt.Candidate:
    start, end = PLACES[name.rstrip("'")]
    return rt.Candidate(name, score=score, doc_id="doc", start=start, end=end, **more)


def hits(names: str) -> list[rt.Candidate]:
    return [hit(name) for name in names.split()]


def retrieve(names: str, name: str = "dense", query: str = QUESTION, **more: Any) -> list[rt.Candidate]:
    found = hits(names)
    with rt.retrieve(name=name, query=query, **more) as stage:
        stage.output(found)
    return found


def gold(question_id: str, *quotes: str, **more: Any) -> list[Row]:
    items = [{"doc_id": "doc", "quote": quote} for quote in quotes]
    return [{"question_id": question_id, "question": f"{question_id}?", "gold": items, **more}]


def rewritten(question_id: str, *texts: str, question: str = QUESTION) -> list[Row]:
    with rt.query(question, question_id=question_id):
        for text in texts:
            rt.context(retrieve("later", query=text))
    return gold(question_id, PAID)


@scenario
def drops_year() -> list[Row]:
    return rewritten("drops year", "how much was paid in 2022")


@scenario
def splits() -> list[Row]:
    return rewritten("splits", "Amcor payments", "how much in 2021")


@scenario
def not_rewritten() -> list[Row]:
    with rt.query("What else?", question_id="blind"), rt.retrieve(name="blind") as stage:
        stage.output(hits("paid"))
    return rewritten("as asked", QUESTION, "anything else")


@scenario
def chinese() -> list[Row]:
    return rewritten("chinese", "大学在哪里", question="北京大学在哪里")


class TestRewriting:
    def test_a_year_and_a_name_that_nobody_searched_for_are_dropped(self, traced: Traced) -> None:
        rows = ask(traced, "rewrite_terms", "drops_year")
        found = {(row["change"], row["class"], row["term"], row["is_in_evidence"]) for row in rows}
        assert {
            ("dropped", "date", "2021", True),
            ("dropped", "name", "amcor", True),
            ("dropped", "word", "pay", False),
            ("added", "date", "2022", False),
            ("added", "word", "paid", True),
        } <= found
        assert not {"how", "much", "in"} & {row["term"] for row in rows}

    def test_a_term_that_one_sub_query_has_is_not_dropped(self, traced: Traced) -> None:
        rows = ask(traced, "rewrite_terms", "splits")
        assert {row["term"] for row in rows if row["change"] == "dropped"} == {"did", "pay"}

    def test_a_question_that_was_itself_searched_has_no_rows(self, traced: Traced) -> None:
        assert ask(traced, "rewrite_terms", "not_rewritten") == []

    def test_the_summary_sets_dropped_years_beside_lost_evidence(self, traced: Traced) -> None:
        rows = ask(traced, "rewrites", "drops_year")
        (row,) = [row for row in rows if (row["change"], row["class"]) == ("dropped", "date")]
        assert row == {
            "run": "drops_year", "change": "dropped", "class": "date", "n_queries": 1, "n_terms": 1, "n_in_evidence": 1,
            "n_judged": 1, "n_lost": 1, "n_not_retrieved": 1, "n_rewritten": 1, "n_as_asked": 0, "n_left_out": 0,
        }  # fmt: skip

    def test_queries_that_were_not_rewritten_or_not_captured_are_counted(self, traced: Traced) -> None:
        (row,) = ask(traced, "rewrites", "not_rewritten")
        assert (row["change"], row["n_as_asked"], row["n_left_out"], row["n_rewritten"]) == (None, 1, 1, 0)

    def test_chinese_is_compared_by_pairs_of_characters(self, traced: Traced) -> None:
        assert {row["term"] for row in ask(traced, "rewrite_terms", "chinese")} == {"北京", "京大"}


@scenario
def two_retrievers() -> list[Row]:
    """Span 1 by both, span 2 by dense only, span 3 by bm25 only, span 4 by none."""
    with rt.query(QUESTION, question_id="two"):
        rt.context(retrieve("paid later") + retrieve("paid rest", "bm25"))
    return gold("two", PAID, LATER, REST, "What nobody wrote in any document")


@scenario
def unplaced() -> list[Row]:
    with rt.query(QUESTION, question_id="unplaced"):
        with rt.retrieve(name="blind", query=QUESTION) as stage:
            stage.output(["id without a place"])
        rt.context(["id without a place"])
    return gold("unplaced", PAID)


class TestRetrievers:
    def test_spans_are_told_apart_by_who_found_them(self, traced: Traced) -> None:
        rows = ask(traced, "retriever_overlap", "two_retrievers")
        expected = {"bm25 and dense": 1, "dense": 1, "bm25": 1, None: 1}
        assert {row["found_by"]: row["n_spans"] for row in rows} == expected
        assert {(row["n_counted"], row["n_left_out"]) for row in rows} == {(4, 0)}

    def test_each_is_told_what_it_alone_found(self, traced: Traced) -> None:
        rows = ask(traced, "retriever_alone", "two_retrievers")
        assert {row["retriever"] for row in rows} == {"dense", "bm25"}
        for row in rows:
            assert (row["n_spans"], row["n_found"], row["n_only_here"], row["n_found_by_others"]) == (4, 2, 1, 1)
            assert row["share_found"] == 0.5

    def test_a_list_with_a_candidate_nobody_can_place_leaves_spans_out(self, traced: Traced) -> None:
        (row,) = ask(traced, "retriever_overlap", "unplaced")
        assert (row["n_spans"], row["n_counted"], row["n_left_out"]) == (0, 0, 1)


@scenario
def three_rounds() -> list[Row]:
    with rt.query(QUESTION, question_id="rounds"):
        rt.context(retrieve("paid", round=1) + retrieve("paid later", round=2) + retrieve("rest", round=3))
    return gold("rounds", PAID, LATER)


@scenario
def halves() -> list[Row]:
    with rt.query(QUESTION, question_id="halves"):
        rt.context(retrieve("paid", round=1) + retrieve("later", round=2))
    return gold("halves", f"{PAID} {LATER}")


@scenario
def sub_queries() -> list[Row]:
    with rt.query(QUESTION, question_id="sub"):
        rt.context(retrieve("paid", sub_query="2021") + retrieve("paid later", sub_query="2022"))
    return gold("sub", PAID, LATER)


class TestRoundsAndSubQueries:
    def test_a_round_adds_to_those_before_it(self, traced: Traced) -> None:
        rows = ask(traced, "recall_by_round", "three_rounds")
        assert [(row["round"], row["recall_alone"], row["recall_so_far"], row["n_new"]) for row in rows] == [
            (1, 0.5, 0.5, 1),
            (2, 1.0, 1.0, 1),
            (3, 0.0, 1.0, 0),
        ]

    def test_halves_found_in_two_rounds_make_a_whole(self, traced: Traced) -> None:
        """Recall is over the union of rounds, by characters."""
        assert [row["recall_so_far"] for row in ask(traced, "recall_by_round", "halves")] == [0.0, 1.0]

    def test_a_sub_query_is_held_against_all_of_them(self, traced: Traced) -> None:
        rows = {row["sub_query"]: row for row in ask(traced, "recall_by_sub_query", "sub_queries")}
        assert (rows["2021"]["recall_alone"], rows["2021"]["recall_all"], rows["2021"]["n_only_here"]) == (0.5, 1.0, 0)
        assert (rows["2022"]["recall_alone"], rows["2022"]["n_found"], rows["2022"]["n_only_here"]) == (1.0, 2, 1)


@scenario
def repeats() -> list[Row]:
    with rt.query(QUESTION, question_id="repeats"):
        rt.context(retrieve("paid paid' wide rest"))
    return gold("repeats", PAID)


def reranked(question_id: str, paid_score: float | None) -> list[Row]:
    with rt.query(QUESTION, question_id=question_id):
        found = retrieve("paid later rest")
        with rt.rerank(name="scorer", k=2) as stage:
            stage.input(found)
            if paid_score is not None:
                stage.considered([hit("rest", 0.9), hit("later", 0.5), hit("paid", paid_score)])
            stage.output([hit("rest", 0.9), hit("later", 0.5)])
        rt.context([hit("rest", 0.9), hit("later", 0.5)])
    return gold(question_id, PAID, distractors=[{"doc_id": "doc", "quote": REST}])


@scenario
def tied() -> list[Row]:
    return reranked("tied", 0.5)


@scenario
def not_tied() -> list[Row]:
    return reranked("not tied", 0.4)


@scenario
def no_scores() -> list[Row]:
    return [*reranked("no scores", None), *rewritten("without distractor", QUESTION)]


class TestLists:
    def test_repeats_are_counted_by_place_and_by_overlap(self, traced: Traced) -> None:
        (row,) = [row for row in ask(traced, "near_duplicates", "repeats") if row["stage"] == "dense"]
        assert (row["n_candidates"], row["n_same_text"], row["n_near_same"], row["n_unknown"]) == (4, 1, 1, 0)
        assert (row["share_crowded"], row["n_crowded_lists"]) == (0.5, 1)

    def test_only_the_first_candidates_are_looked_at(self, traced: Traced) -> None:
        (row,) = [row for row in ask(traced, "near_duplicates", "repeats", n_first=2) if row["stage"] == "dense"]
        assert (row["n_candidates"], row["n_same_text"], row["n_near_same"]) == (2, 1, 0)

    @pytest.mark.parametrize(("of", "n_tied"), [("tied", 1), ("not_tied", 0)])
    def test_a_loser_with_the_last_winners_score_is_a_tie(self, traced: Traced, of: str, n_tied: int) -> None:
        (row,) = ask(traced, "cut_ties", of)
        assert (row["stage"], row["n_cuts"], row["n_compared"], row["n_tied"]) == ("scorer", 1, 1, n_tied)
        assert (row["n_spans_in_tie"], row["n_left_out"]) == (n_tied, 0)

    def test_a_cut_whose_losers_have_no_score_is_left_out(self, traced: Traced) -> None:
        (row,) = ask(traced, "cut_ties", "no_scores")
        assert (row["n_cuts"], row["n_compared"], row["n_left_out"], row["share_tied"]) == (1, 0, 1, None)


class TestDistractors:
    def test_the_first_distractor_stands_beside_the_first_gold(self, traced: Traced) -> None:
        assert traced.connection is not None
        rows = run.run(traced.connection, "distractor_ranks").records()
        ranks = {row["stage"]: row for row in rows if row["question_id"] == "tied"}
        assert (ranks["dense"]["distractor_rank"], ranks["dense"]["gold_rank"]) == (3, 1)
        assert (ranks["scorer"]["distractor_rank"], ranks["scorer"]["gold_rank"]) == (1, None)
        assert (ranks["dense"]["first"], ranks[None]["first"]) == ("gold", "distractor")

    def test_questions_without_a_distractor_are_left_out(self, traced: Traced) -> None:
        rows = {row["stage"]: row for row in ask(traced, "distractors", "no_scores")}
        row = rows["scorer"]
        assert (row["n_queries"], row["n_distractor_first"], row["n_gold_first"], row["n_left_out"]) == (1, 1, 0, 1)
        assert (row["median_distractor_rank"], row["median_gold_rank"]) == (1, None)


def prompted(question_id: str, context: list[rt.Candidate]) -> list[Row]:
    with rt.query(QUESTION, question_id=question_id):
        retrieve("paid later rest")
        rt.context(context)
    return gold(question_id, PAID)


@scenario
def by_number() -> list[Row]:
    return prompted("by number", hits("rest paid later"))


@scenario
def by_tokens() -> list[Row]:
    return prompted("by tokens", [hit("rest", tokens=800), hit("paid", tokens=100), hit("later", tokens=100)])


class TestPrompt:
    @pytest.mark.parametrize(("of", "tenth", "n_by_tokens"), [("by_number", 6, 0), ("by_tokens", 9, 1)])
    def test_kept_evidence_stands_in_its_tenth(self, traced: Traced, of: str, tenth: int, n_by_tokens: int) -> None:
        """The second of three candidates: behind the middle by number, behind eight tenths by tokens."""
        rows = ask(traced, "prompt_tenths", of)
        assert [row["n_spans"] for row in rows] == [int(number == tenth) for number in range(1, 11)]
        assert {(row["n_kept"], row["n_by_tokens"], row["n_left_out"]) for row in rows} == {(1, n_by_tokens, 0)}
