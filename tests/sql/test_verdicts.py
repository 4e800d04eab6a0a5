"""The views that judge, given rows straight in the tables: every case of `cases.py`, and what holds over all of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sql.build import START, Store
from tests.sql.cases import CASES, Case, Expected, Made


@pytest.fixture(scope="module")
def judged() -> dict[str, Any]:
    """One store with every case; each view read once."""
    store = Store()
    for one in CASES:
        one.make(Made(store, one.name))
    names = ("run", *Expected._fields)
    losses = {row[0]: Expected(*row[1:]) for row in store.rows("stage_loss", *names, where="need is not null")}
    questions = {
        row[0]: row[1:] for row in store.rows("question_loss", "run", "verdict", "lost_kind", "lost_stage", "lost_at")
    }
    return {"store": store, "losses": losses, "questions": questions}


@pytest.mark.parametrize("one", CASES, ids=lambda one: one.name)
def test_stage_loss_names_the_place_and_the_reason(judged: dict[str, Any], one: Case) -> None:
    """The table of cases."""
    assert judged["losses"][one.name] == one.expected


def test_question_loss_says_the_same_where_a_question_has_one_span(judged: dict[str, Any]) -> None:
    """The best set's worst need is that span."""
    for one in CASES:
        if one.expected.verdict in ("stale", "misaligned"):
            assert one.name not in judged["questions"]
        else:
            assert judged["questions"][one.name] == one.expected[:4]


def test_shares_and_final_coverage_sum_to_one(judged: dict[str, Any]) -> None:
    """For every span, whatever its verdict."""
    shares: dict[str, float] = {}
    for run, share in judged["store"].rows("loss_share", "run", "share"):
        shares[run] = shares.get(run, 0.0) + share
    for one in CASES:
        if one.expected.final_coverage is not None:
            assert shares.get(one.name, 0.0) == pytest.approx(1 - one.expected.final_coverage)


def test_candidates_less_what_was_lost_plus_what_was_gained_is_the_final_context(judged: dict[str, Any]) -> None:
    """Exactly, in every run; and every share lies in 0..1."""
    rows = judged["store"].rows(
        "recall_summary", "run", "candidate_recall", "lost", "gained", "final_context_recall", where="n_judged > 0"
    )
    assert len(rows) > 30
    for _, candidate, lost, gained, final in rows:
        assert candidate - lost + gained == final
        assert all(0 <= share <= 1 for share in (candidate, lost, gained, final))


def test_a_case_that_is_kept_apart_is_counted_there(judged: dict[str, Any]) -> None:
    """Stale, later, deleted, misaligned: never in a mean."""
    rows = {
        (run, cause): n
        for run, cause, n in judged["store"].rows("queries_left_out", "run", "cause", "n_spans", where="n_spans > 0")
    }
    assert rows == {
        ("the_passage_changed_before_the_query", "stale"): 1,
        ("the_label_is_newer_than_the_query", "later"): 1,
        ("the_document_was_deleted", "deleted"): 1,
        ("the_quote_is_not_at_its_offsets", "misaligned"): 1,
    }
    scored = set(judged["store"].rows("recall_summary", "run"))
    assert not scored & {run for run, _ in rows}


def test_unobserved_queries_widen_the_bounds_and_leave_the_means(judged: dict[str, Any]) -> None:
    """Low counts what is surely there, high what may be."""
    rows = judged["store"].rows(
        "recall_summary",
        "n_judged",
        "n_unobserved",
        "final_context_recall",
        "final_context_recall_low",
        "final_context_recall_high",
        where="run = 'an_abstract_of_it'",
    )
    assert rows == [(0, 1, None, 0.0, 1.0)]


# ------------------------------------------------------------------ stores of their own
def halves(min_coverage: float) -> Store:
    """The chunker lost the left half; the reranker dropped the right one."""
    store = Store(min_coverage)
    made = Made(store, "halves")
    made.plain()
    made.chunked("right other", "right other")
    query = made.query()
    reranked = query.stage(
        "rerank", "rerank", [query.stage("retrieve", "dense", out=made.list("right other"))], made.list("other")
    )
    query.done(query.stage("generate", "llm", [reranked]))
    return store


def test_half_a_span_is_enough_when_the_setting_says_so() -> None:
    """min_coverage 0.5: the place is the reranker's, and the half was a candidate."""
    store = halves(0.5)
    assert store.rows("stage_loss", "lost_stage", "candidate_coverage") == [("rerank", 0.5)]
    assert store.rows("loss_share", "lost_stage", "share") == [("chunk", 0.5), ("rerank", 0.5)]
    assert store.rows("recall_summary", "candidate_recall", "final_context_recall") == [(1.0, 0.0)]


def test_three_filters_drop_a_quarter_each() -> None:
    """At 0.75 the second filter is the one too many."""
    store = Store(0.75)
    store.parsed("doc", "abcdefghijklmnopqrst" * 2)
    store.evidence("doc", 0, 20)
    for number in range(4):
        store.item(f"q{number}", "doc", number * 5, number * 5 + 5)
    query = store.query()
    last = query.stage("retrieve", "dense", out=["q0", "q1", "q2", "q3"])
    for number in range(3):
        last = query.stage("filter", f"f{number + 1}", [last], [f"q{kept}" for kept in range(number + 1, 4)])
    query.done(query.stage("generate", "llm", [last]))
    assert store.rows("stage_loss", "lost_stage", "candidate_coverage", "final_coverage") == [("f2", 1.0, 0.25)]
    assert store.rows("loss_share", "lost_stage", "share") == [("f1", 0.25), ("f2", 0.25), ("f3", 0.25)]


def test_a_question_takes_its_best_set_and_that_set_its_worst_need() -> None:
    """Set 1 keeps one need and truncates the other; set 2 was never retrieved: pack, and half of the final context."""
    store = Store()
    store.parsed("doc", "abcdefghij" * 8)
    for number, set_no in ((0, 1), (1, 1), (2, 2)):
        store.evidence("doc", number * 10, number * 10 + 10, set_no=set_no)
        store.item(f"c{number}", "doc", number * 10, number * 10 + 10)
    store.connection.execute(
        "update evidence_places set start_at = e.start_at, end_at = e.end_at from evidence e where e.evidence_id = evidence_places.evidence_id"
    )
    query = store.query()
    packed = query.stage("truncate", "pack", [query.stage("retrieve", "dense", out=["c0", "c1"])], ["c0"])
    query.done(query.stage("generate", "llm", [packed]))
    assert store.rows("question_loss", "verdict", "lost_stage", "set_no") == [("lost", "pack", 1)]
    assert store.rows(
        "recall_summary", "candidate_recall", "final_context_recall", "candidate_complete", "final_complete"
    ) == [(1.0, 0.5, 1.0, 0.0)]


def test_any_span_of_a_need_is_enough() -> None:
    """Need {whole or copy}: the copy is kept, the whole is not."""
    store = Store()
    made = Made(store, "either")
    made.text()
    made.gold(need="n")
    store.parsed("copy", "a copy in other words")
    store.evidence("copy", 0, 10, question_id="either", need="n")
    store.item("copied", "copy", 0, 12)
    made.has("whole", "other")
    query = made.query()
    reranked = query.stage(
        "rerank", "rerank", [query.stage("retrieve", "dense", out=[made("whole"), "copied"])], ["copied"]
    )
    query.done(query.stage("generate", "llm", [reranked]))
    assert store.rows("question_loss", "verdict") == ["kept"]
    assert store.rows("stage_loss", "verdict") == ["kept", "lost"]
    assert store.rows("recall_summary", "final_context_recall") == [1.0]


def test_ranks_scores_and_notes_stand_beside_the_reason() -> None:
    """9th of 8 by the reranker, in a tie with the last one that goes on; a twin of it arrived."""
    store = Store()
    store.parsed("doc", "abcdefghijklmnopqrst" * 3)
    store.evidence("doc", 0, 10)
    store.item("gold", "doc", 0, 10, item_text="the text")
    store.item("twin", "copy", 0, 10, item_text="the text")
    others = [store.item(f"x{number}", "doc", 20, 30, item_text=f"x{number}") for number in range(8)]
    query = store.query()
    retrieved = query.stage("retrieve", "dense", out=[*others[:3], "gold", "twin", *others[3:]])
    kept = [{"item": name, "score": 0.9 - number / 10} for number, name in enumerate(["twin", *others[:7]])]
    losers = [{"item": "gold", "score": kept[-1]["score"]}, {"item": others[7], "score": 0.01}]
    reranked = query.stage("rerank", "rerank", [retrieved], kept, considered=[*kept, *losers], k=8)
    query.done(query.stage("generate", "llm", [reranked]))
    assert store.rows("stage_loss", "reason", "rank_before", "rank_after", "k") == [("deduplicated", 4, 9, 8)]
    rows = store.rows("reasons", "stage", "notes", "rank_after", "k", "gap")
    assert rows == [("rerank", "cut_in_tie, same_text_kept", 9, 8, 0.0)]


def test_never_retrieved_and_no_ingest_side_recorded() -> None:
    """Lost for sure, at no named stage: between the ingest and the retriever."""
    store = Store()
    made = Made(store, "bare")
    made.gold()
    made.has("whole", "other")
    query = made.query()
    query.done(query.stage("generate", "llm", [query.stage("retrieve", "dense", out=made.list("other"))]))
    assert store.rows("stage_loss", "verdict", "lost_kind", "between_first", "between_last", "reason") == [
        ("lost", None, "ingest", "in dense", "unprobed")
    ]
    assert store.rows("recall_summary", "n_judged", "candidate_recall", "final_context_recall") == [(1, 0.0, 0.0)]


def test_a_query_that_searched_the_wrong_collection() -> None:
    """The evidence is in an index of another name than the one searched."""
    store = Store()
    made = Made(store, "wrong")
    made.plain()
    store.item(made("law"), made.doc, 10, 30, index_name="law")
    store.item(made("news"), made.doc, 40, 50, index_name="news")
    store.ingest("chunk", made.doc, made.list("law news"))
    for index_name in ("law", "news"):
        store.ingest("index", made.doc, made.list(index_name), index_name=index_name, is_index_complete=True)
    query = made.query()
    query.done(
        query.stage("generate", "llm", [query.stage("retrieve", "dense", out=made.list("news"), index_name="news")])
    )
    assert store.rows("stage_loss", "lost_kind", "lost_stage", "reason") == [("retrieve", "dense", "wrong_index")]


def test_an_item_twice_in_a_list_counts_once() -> None:
    """A duplicate adds nothing to the coverage, and its best rank is shown."""
    store = Store()
    made = Made(store, "twice")
    made.plain()
    query = made.query()
    retrieved = query.stage("retrieve", "dense", out=made.list("other left left"))
    query.done(query.stage("generate", "llm", [query.stage("rerank", "rerank", [retrieved], made.list("other"))]))
    assert store.rows("loss_share", "lost_stage", "share", where="lost_stage = 'rerank'") == [("rerank", 0.5)]
    assert store.rows("evidence_at_place", "rank", "coverage", where="name = 'dense'") == [(2, 0.5)]


def test_levels_and_stages_in_flow_order() -> None:
    """From the source to the final context, with what each stage took, put out and lost."""
    store = halves(1.0)
    assert store.rows("level_recall", "level_order", "level", "recall") == [
        (1, "source", 1.0),
        (2, "text", 1.0),
        (3, "dense", 0.0),
        (4, "candidates", 0.0),
        (5, "rerank", 0.0),
        (6, "final context", 0.0),
    ]
    assert store.rows("stage_recall", "stage", "recall_in", "recall_out", "n_lost_in", "n_lost_after") == [
        ("dense", None, 0.0, 0, 0),
        ("llm", 0.0, None, 0, 0),
        ("rerank", 0.0, 0.0, 0, 0),
    ]


def test_queries_that_cannot_be_scored_are_counted_by_cause() -> None:
    """Cache hits, failures before a final context, no gold, unanswerable, unknown evidence, a text of two questions."""
    store = Store()
    store.parsed("doc", "abcdefghij" * 3)
    store.evidence("doc", 0, 10)
    store.item("c", "doc", 0, 10)
    store.question("U", is_unanswerable=True)
    store.question("E", is_evidence_unknown=True)
    for question_id in ("T1", "T2", "never asked"):
        store.question(question_id, question_hash="one text")
    for question_id, values in (
        ("Q", {"served_from_query_id": 1}),
        ("Q", {"status": "error"}),
        (None, {"question_hash": "one text"}),
        ("nobody knows it", {}),
        ("U", {}),
        ("E", {}),
    ):
        query = store.query(question_id, **values)
        query.stage("retrieve", "dense", out=["c"])
        query.done()
    assert store.rows("queries_left_out", "cause", "n_queries") == [
        ("ambiguous_question", 1),
        ("cache_hit", 1),
        ("evidence_unknown", 1),
        ("no_final_context", 1),
        ("no_gold", 1),
        ("not_asked", 3),
        ("unanswerable", 1),
    ]
    assert store.rows("stage_loss", "query_id") == []


@pytest.mark.parametrize(
    "view",
    [
        "stage_loss",
        "loss_share",
        "question_loss",
        "stage_recall",
        "recall_summary",
        "query_recall",
        "reasons",
        "level_recall",
        "evidence_at_place",
        "losses_by_reason",
        "queries_left_out",
        "label_states",
        "candidate_list",
    ],
)
def test_an_empty_store_gives_no_rows(view: str, empty: Store) -> None:
    """No error either."""
    assert empty.rows(view, "*") == []


@pytest.fixture(scope="module")
def empty() -> Store:
    """Tables and views, no rows."""
    return Store()


def test_traces_without_gold_are_not_scored() -> None:
    """Only counted."""
    store = Store()
    store.parsed("doc", "abcdefghij" * 3)
    store.item("c", "doc", 0, 10)
    query = store.query(None, started_at_ns=START)
    query.done(query.stage("retrieve", "dense", out=["c"], is_final=True))
    assert store.rows("recall_summary", "run") == []
    assert store.rows("queries_left_out", "cause", "n_queries") == [("no_gold", 1)]
