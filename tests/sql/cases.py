"""The verdict cases in table form: given rows, expected verdicts. Each case is a question of its own in one shared store.

The gold span is twenty letters, `left` and `right` hold ten each. A case writes its query into the store and says what
stage_loss must say: verdict, kind, stage, in or after (or between), reason, candidate and final coverage.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.sql.build import SECOND, START, Query, Run, Store

__all__ = ["CASES", "Case", "Expected", "Made"]

LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Expected(NamedTuple):
    """What stage_loss says of the (first) span of a case; a None is null."""

    verdict: str
    lost_kind: str | None = None
    lost_stage: str | None = None
    lost_at: str | None = None
    between_first: str | None = None
    between_last: str | None = None
    reason: str | None = None
    candidate_coverage: float | None = 0.0
    final_coverage: float | None = 0.0


class Made:
    """A case's corner of the store: its document, its items and its question."""

    def __init__(self, store: Store, name: str) -> None:
        self.store, self.name, self.doc = store, name, f"doc {name}"
        self.hash = ""

    def text(self, text: str | None = None, at: int = START - 900 * SECOND, **more: Any) -> None:
        """Parse the document: a sentence of its own in which the span stands at 10 to 30."""
        body = "".join(LETTERS[(i * 7 + len(self.name)) % 26] for i in range(60)) if text is None else text
        self.hash = self.store.parsed(self.doc, body, at, **more)

    def gold(self, start: int = 10, end: int = 30, **more: Any) -> str:
        """The span, or another one."""
        return self.store.evidence(more.pop("doc", self.doc), start, end, question_id=self.name, **more)

    def has(self, *names: str, **more: Any) -> None:
        """Items by the words of the file: whole, left, right, parent, other."""
        places = {
            "whole": (10, 30),
            "left": (10, 20),
            "right": (20, 30),
            "parent": (0, 50),
            "other": (40, 50),
            "other2": (50, 60),
        }
        for name in names:
            self.store.item(self(name), self.doc, *places[name], text_hash=self.hash or None, **more)

    def __call__(self, names: str) -> Any:
        """Names of this case's items; one name is a text, several are a list."""
        made = [f"{self.name}/{name}" for name in names.split()]
        return made[0] if len(made) == 1 else made

    def list(self, names: str) -> list[str]:
        """A list of this case's items."""
        return [f"{self.name}/{name}" for name in names.split()]

    def query(self, **values: Any) -> Query:
        """The query of this case, in a run of its own so that nothing is shared."""
        return self.store.query(self.name, **{"run": self.name, **values})

    def plain(self) -> None:
        """Text, label and the usual items; only the query side is recorded beyond the parse."""
        self.text()
        self.gold()
        self.has("whole", "left", "right", "parent", "other", "other2")

    def chunked(self, names: str = "whole other", indexed: str | None = None, is_complete: bool = True) -> None:
        """Chunks and what of them was written to the index, recorded in full."""
        self.store.ingest("chunk", self.doc, self.list(names))
        if indexed is not None:
            self.store.ingest("index", self.doc, self.list(indexed), is_index_complete=is_complete)


class Case(NamedTuple):
    """One line of the table."""

    name: str
    make: Callable[[Made], None]
    expected: Expected


CASES: list[Case] = []


def case(*expected: Any, **more: Any) -> Callable[[Callable[[Made], None]], Callable[[Made], None]]:
    """Register a case under its function's name."""

    def register(make: Callable[[Made], None]) -> Callable[[Made], None]:
        CASES.append(Case(make.__name__, make, Expected(*expected, **more)))
        return make

    return register


def dense(q: Query, m: Made, names: str, **more: Any) -> Run:
    """A retrieve run named dense."""
    return q.stage("retrieve", more.pop("name", "dense"), out=m.list(names), **more)


def answer(q: Query, *takes: Run) -> None:
    """The model call whose input is the final context."""
    q.done(q.stage("generate", "llm", takes=takes))


# ------------------------------------------------------------------ where
@case("lost", "fuse", "rrf", "in", reason="fused_out", candidate_coverage=1.0)
def fused_out_of_two_lists(m: Made) -> None:
    m.plain()
    q = m.query()
    a, b = dense(q, m, "whole other"), dense(q, m, "other whole", name="bm25")
    answer(q, q.stage("fuse", "rrf", [a, b], m.list("other"), k=1))


@case("lost", "filter", "acl", "in", reason="filtered", candidate_coverage=1.0, final_coverage=0.5)
def one_half_filtered_in_its_branch(m: Made) -> None:
    m.plain()
    q = m.query()
    a, b = dense(q, m, "left other"), dense(q, m, "right other", name="bm25")
    f = q.stage("filter", "acl", [a], m.list("other"))
    answer(q, q.stage("fuse", "rrf", [f, b], m.list("other right")))


@case("lost", "rerank", "rerank", "in", reason="reranked_out", candidate_coverage=1.0)
def halves_lost_at_two_stages_fall_at_the_earlier(m: Made) -> None:
    m.plain()
    q = m.query()
    r = q.stage("rerank", "rerank", [dense(q, m, "left right other")], m.list("right other"), k=2)
    answer(q, q.stage("truncate", "pack", [r], m.list("other"), budget_tokens=10))


@case("lost", "retrieve", "dense", "in", reason="unprobed", candidate_coverage=0.5)
def one_half_never_retrieved(m: Made) -> None:
    m.plain()
    m.chunked("left right other", "left right other")
    q = m.query()
    answer(q, q.stage("truncate", "pack", [dense(q, m, "left other")], m.list("other"), budget_tokens=10))


@case("lost", "filter", "thrA or thrB", "in", reason="below_threshold", candidate_coverage=1.0)
def either_of_two_filters_would_have_been_enough(m: Made) -> None:
    m.plain()
    q = m.query()
    scored = [{"item": m("whole"), "score": 0.2}, {"item": m("other"), "score": 0.9}]
    a, b = q.stage("retrieve", "dense", out=scored), q.stage("retrieve", "bm25", out=scored)
    fa = q.stage("filter", "thrA", [a], m.list("other"), threshold=0.5)
    fb = q.stage("filter", "thrB", [b], m.list("other"), threshold=0.5)
    answer(q, q.stage("fuse", "rrf", [fa, fb], m.list("other")))


@case("lost", "truncate", "pack", "in", reason="over_budget", candidate_coverage=1.0)
def reranked_out_then_brought_back_then_cut(m: Made) -> None:
    m.plain()
    q = m.query()
    r = q.stage("rerank", "rerank", [dense(q, m, "whole other")], m.list("other"))
    e = q.stage("expand", "parents", [r], m.list("other whole"))
    answer(q, q.stage("truncate", "pack", [e], m.list("other"), budget_tokens=10))


@case("lost", "truncate", "pack", "in", reason="over_budget", candidate_coverage=0.0)
def the_parent_has_it_and_is_cut(m: Made) -> None:
    m.plain()
    q = m.query()
    e = q.stage("expand", "parents", [dense(q, m, "other")], m.list("parent"))
    answer(q, q.stage("truncate", "pack", [e], m.list("other"), budget_tokens=10))


@case("kept", candidate_coverage=0.0, final_coverage=1.0)
def the_parent_has_it_and_is_kept(m: Made) -> None:
    m.plain()
    q = m.query()
    answer(q, q.stage("expand", "parents", [dense(q, m, "other")], m.list("parent")))


@case("lost", "rerank", "rerank", "in", reason="reranked_out", candidate_coverage=0.0)
def what_stands_for_it_finds_the_place_but_counts_in_no_recall(m: Made) -> None:
    m.plain()
    m.store.item(m("summary"), m.doc, text_hash=m.hash, stands_for=[(0, 50)])
    q = m.query()
    r = q.stage("rerank", "rerank", [dense(q, m, "summary other")], m.list("other"))
    answer(q, q.stage("expand", "parents", [r], m.list("other2")))


@case("lost", "retrieve", "dense", "after", reason="untraced_gap", candidate_coverage=1.0)
def a_plain_slice_before_the_reranker(m: Made) -> None:
    m.plain()
    q = m.query()
    a = dense(q, m, "other whole")
    answer(q, q.stage("rerank", "rerank", [a], m.list("other"), given=m.list("other")))


@case("unobserved", between_first="after dense", candidate_coverage=1.0)
def an_unknown_final_context_and_several_outputs(m: Made) -> None:
    m.plain()
    q = m.query()
    dense(q, m, "whole other")
    dense(q, m, "other", name="bm25")
    q.done()


@case("lost", "retrieve", "dense", "after", reason="not_consumed", candidate_coverage=1.0)
def an_output_that_nobody_consumed(m: Made) -> None:
    m.plain()
    q = m.query()
    dense(q, m, "whole other")
    answer(q, dense(q, m, "other", name="bm25"))


@case("lost", "rerank", "rerank1", "in", reason="reranked_out", candidate_coverage=1.0)
def the_first_round_drops_it_and_the_second_misses(m: Made) -> None:
    m.plain()
    q = m.query()
    r1 = q.stage("rerank", "rerank1", [dense(q, m, "whole other", round=1)], m.list("other"))
    r2 = q.stage("rerank", "rerank2", [dense(q, m, "other other2", name="dense2", round=2)], m.list("other2"))
    answer(q, r1, r2)


@case("kept", candidate_coverage=1.0, final_coverage=1.0)
def one_way_drops_it_and_the_other_keeps_it(m: Made) -> None:
    m.plain()
    q = m.query()
    f = q.stage("filter", "acl", [dense(q, m, "whole other")], m.list("other"))
    answer(q, f, dense(q, m, "whole", name="bm25"))


@case("unobserved", between_first="in summarise", candidate_coverage=1.0)
def an_abstract_of_it(m: Made) -> None:
    m.plain()
    m.store.item(m("abstract"), m.doc, 10, 30, text_hash=m.hash, role="possible", is_altered=True)
    q = m.query()
    answer(q, q.stage("compress", "summarise", [dense(q, m, "whole other")], m.list("abstract")))


@case("lost", "rerank", "rerank", "in", reason="reranked_out", candidate_coverage=1.0)
def an_item_without_a_place_before_the_loss_changes_nothing(m: Made) -> None:
    m.plain()
    m.store.item(m("nowhere"))
    q = m.query()
    a = dense(q, m, "nowhere whole other")
    answer(q, q.stage("rerank", "rerank", [a], m.list("other")))


@case("unobserved", between_first="in rerank", candidate_coverage=1.0)
def an_item_without_a_place_in_the_context_may_be_it(m: Made) -> None:
    m.plain()
    m.store.item(m("nowhere"))
    q = m.query()
    answer(q, q.stage("rerank", "rerank", [dense(q, m, "nowhere whole other")], m.list("other nowhere")))


@case("lost", "index", "index", "in", reason="not_indexed")
def chunks_recorded_and_a_complete_index_lacks_it(m: Made) -> None:
    m.plain()
    m.chunked("whole other", "other")
    q = m.query()
    answer(q, dense(q, m, "other"))


@case("lost", "chunk", "chunk", "in", reason="not_covered", candidate_coverage=0.5)
def the_chunker_lost_half_and_the_reranker_the_other(m: Made) -> None:
    m.plain()
    m.chunked("right other", "right other")
    q = m.query()
    answer(q, q.stage("rerank", "rerank", [dense(q, m, "right other")], m.list("other")))


@case("lost", "parse", "parse", "in", reason="text_missing")
def the_parser_never_produced_it(m: Made) -> None:
    m.text()
    m.store.evidence(
        m.doc, quote="a passage that no text has", question_id=m.name, made_on_ns=0, label_status="text_missing"
    )
    m.store.connection.execute(
        "update evidence set made_on_text_hash = null, made_on_ns = null where question_id = ?", [m.name]
    )
    m.has("other")
    q = m.query()
    answer(q, dense(q, m, "other"))


@case("lost", "retrieve", "dense", "in", reason="not_run")
def a_router_that_skips_retrieval(m: Made) -> None:
    m.plain()
    m.chunked("whole other", "whole other")
    other = m.store.query(None, run=m.name)
    answer(other, dense(other, m, "other"))
    q = m.query()
    q.done(context=m.list("other"))


@case("lost", "truncate", "pack", "in", reason="over_budget", candidate_coverage=0.0)
def a_reranker_that_fetches_by_itself(m: Made) -> None:
    m.plain()
    q = m.query()
    r = q.stage("rerank", "rerank", [dense(q, m, "other")], m.list("whole other"))
    answer(q, q.stage("truncate", "pack", [r], m.list("other"), budget_tokens=10))


@case("lost", "rerank", "rerank", "in", reason="reranked_out", candidate_coverage=1.0)
def the_way_to_the_answer_comes_before_a_logger_beside_it(m: Made) -> None:
    m.plain()
    q = m.query()
    a = dense(q, m, "whole other")
    r = q.stage("rerank", "rerank", [a], m.list("other"))
    q.stage("filter", "logger", [q.stage("filter", "grader", [a], m.list("whole"))], m.list("whole"))
    answer(q, r)


@case("kept", candidate_coverage=1.0, final_coverage=1.0)
def a_document_is_touched_by_one_chunk(m: Made) -> None:
    m.text()
    m.store.evidence(m.doc, question_id=m.name, level="document")
    m.has("other")
    q = m.query()
    answer(q, dense(q, m, "other"))


@case("lost", "fuse", "rrf", "in", reason="fused_out", candidate_coverage=1.0)
def a_chunk_is_found_by_its_id(m: Made) -> None:
    m.text()
    m.has("whole", "other")
    m.store.evidence(m.doc, question_id=m.name, level="chunk", chunk_id=m("whole"))
    q = m.query()
    answer(q, q.stage("fuse", "rrf", [dense(q, m, "whole other")], m.list("other")))


@case("kept", candidate_coverage=0.0, final_coverage=1.0)
def only_in_what_was_carried_over(m: Made) -> None:
    m.plain()
    q = m.query()
    a = dense(q, m, "other")
    q.done(context=m.list("other"), takes=[a], carried=m.list("whole"))


@case("lost", "retrieve", "dense", "after", reason="untraced_gap", candidate_coverage=1.0)
def an_inner_retriever_kept_it_and_its_wrapper_cut_it(m: Made) -> None:
    m.plain()
    q = m.query()
    hybrid = q.stage("retrieve", "hybrid", out=m.list("other"))
    dense(q, m, "other whole", parent=hybrid)
    answer(q, hybrid)


@case("lost", "rerank", "rerank", "in", reason="reranked_out", candidate_coverage=0.0)
def a_list_of_unknown_origin_that_holds_it(m: Made) -> None:
    m.plain()
    q = m.query()
    dense(q, m, "other")
    answer(q, q.stage("rerank", "rerank", out=m.list("other"), given=m.list("whole other2"), is_unknown=True))


@case("lost", "retrieve", "dense", "after", reason="untraced_gap", candidate_coverage=1.0)
def a_list_of_unknown_origin_that_lacks_it(m: Made) -> None:
    m.plain()
    q = m.query()
    dense(q, m, "whole other")
    answer(q, q.stage("rerank", "rerank", out=m.list("other2"), given=m.list("other2"), is_unknown=True))


@case("lost", "retrieve", "dense", "after", reason="stage_failed", candidate_coverage=1.0)
def the_reranker_raised_and_a_plain_slice_went_on(m: Made) -> None:
    m.plain()
    q = m.query()
    a = dense(q, m, "other whole")
    q.stage("rerank", "rerank", [a], status="error", error_type="TimeoutError")
    q.done(context=m.list("other"), takes=[a])


@case("lost", "retrieve", "dense", "in", reason="stage_failed")
def a_retriever_that_was_cut_off(m: Made) -> None:
    m.plain()
    m.chunked("whole other", "whole other")
    q = m.query()
    answer(q, dense(q, m, "other", status="cancelled"))


@case("unobserved", between_first="after dense", candidate_coverage=1.0)
def a_list_that_could_not_be_read(m: Made) -> None:
    m.plain()
    q = m.query()
    a = dense(q, m, "whole other")
    q.done(q.stage("rerank", "rerank", [a], m.list("other"), is_final=True, is_incomplete=True, given=m.list("other")))


@case("unobserved", between_first="in rerank", candidate_coverage=1.0)
def rows_of_the_query_are_missing(m: Made) -> None:
    m.plain()
    q = m.query()
    r = q.stage("rerank", "rerank", [dense(q, m, "whole other")], m.list("other"))
    q.done(q.stage("generate", "llm", [r]), is_whole=False)


# ------------------------------------------------------------------ labels, versions, time
@case("kept", candidate_coverage=1.0, final_coverage=1.0)
def ingested_again_and_only_shifted(m: Made) -> None:
    m.text()
    m.gold()
    old = m.store.texts[m.doc, m.hash]
    m.text("### " + old, START - 500 * SECOND)
    m.store.item(m("new"), m.doc, 14, 34)
    q = m.query()
    answer(q, dense(q, m, "new"))


@case("kept", candidate_coverage=1.0, final_coverage=1.0)
def an_item_placed_in_an_older_text_whose_passage_still_stands(m: Made) -> None:
    m.text()
    m.gold()
    m.has("whole")
    m.text("### " + m.store.texts[m.doc, m.hash], START - 500 * SECOND)
    q = m.query()
    answer(q, dense(q, m, "whole"))


@case("stale", candidate_coverage=None, final_coverage=None)
def the_passage_changed_before_the_query(m: Made) -> None:
    m.text()
    m.gold()
    m.has("whole")
    m.text("nothing of the old text", START - 500 * SECOND)
    q = m.query()
    answer(q, dense(q, m, "whole"))


@case("stale", candidate_coverage=None, final_coverage=None)
def the_label_is_newer_than_the_query(m: Made) -> None:
    m.text("an older edition")
    m.text(None, START + 500 * SECOND)
    m.gold()
    m.has("whole")
    q = m.query()
    answer(q, dense(q, m, "whole"))


@case("lost", "ingest", "ingest", "in", reason="stale_version")
def the_source_had_changed_before_the_query(m: Made) -> None:
    m.text("an older edition")
    m.text(None, START + 500 * SECOND, modified_at_ns=START - 100 * SECOND)
    m.gold()
    m.has("other")
    q = m.query()
    answer(q, dense(q, m, "other"))


@case("lost", "chunk", "chunk", "in", reason="not_covered")
def a_newer_text_is_parsed_but_not_chunked(m: Made) -> None:
    m.text("an older edition, without the passage that matters")
    m.store.item(m("old"), m.doc, 0, 20)
    m.store.ingest("chunk", m.doc, m.list("old"))
    m.text(None, START - 500 * SECOND)
    m.gold()
    q = m.query()
    answer(q, dense(q, m, "old"))


@case("lost", "index", "index", "in", reason="not_visible_yet")
def written_to_the_index_after_the_query_started(m: Made) -> None:
    m.plain()
    m.chunked("whole other", "other")
    m.store.ingest("index", m.doc, m.list("whole"), START + 10 * SECOND, is_index_complete=True)
    q = m.query()
    answer(q, dense(q, m, "other"))


@case("unobserved", between_first="index")
def written_half_a_second_after_by_another_clock(m: Made) -> None:
    m.plain()
    m.chunked("whole other", "other")
    m.store.ingest("index", m.doc, m.list("whole"), START + SECOND // 2, process_id=2, is_index_complete=True)
    q = m.query()
    answer(q, dense(q, m, "other"))


@case("lost", "index", "index", "in", reason="not_visible_yet")
def written_half_a_second_after_by_the_same_clock(m: Made) -> None:
    m.plain()
    m.chunked("whole other", "other")
    m.store.ingest("index", m.doc, m.list("whole"), START + SECOND // 2, is_index_complete=True)
    q = m.query()
    answer(q, dense(q, m, "other"))


@case("lost", "index", "index", "in", reason="duplicate_id")
def another_chunk_took_its_id(m: Made) -> None:
    m.text()
    m.gold()
    m.store.item(m("whole"), m.doc, 10, 30, chunk_id=m("id"))
    m.store.item(m("rival"), m.doc, 40, 50, chunk_id=m("id"), version=1)
    m.has("other")
    m.chunked("whole rival other", "whole other rival")
    q = m.query()
    answer(q, dense(q, m, "other"))


@case("stale", candidate_coverage=None, final_coverage=None)
def the_document_was_deleted(m: Made) -> None:
    m.plain()
    m.store.insert(
        "documents",
        ingest_id=m.store.next_id(),
        doc_id=m.doc,
        recorded_at_ns=START - 100 * SECOND,
        deleted_at_ns=START - 200 * SECOND,
        status="ok",
        process_id=1,
    )
    q = m.query()
    answer(q, dense(q, m, "whole"))


@case("misaligned", candidate_coverage=None, final_coverage=None)
def the_quote_is_not_at_its_offsets(m: Made) -> None:
    m.text()
    m.gold(label_status="misaligned")
    m.has("whole")
    q = m.query()
    answer(q, dense(q, m, "whole"))


@case("kept", candidate_coverage=1.0, final_coverage=1.0)
def a_splitter_that_drops_blanks_and_points(m: Made) -> None:
    m.text("Of all that is left. Some words. The rest of it.")
    m.gold(0, 32)
    m.store.item(m("one"), m.doc, 0, 19)
    m.store.item(m("two"), m.doc, 21, 31)
    q = m.query()
    answer(q, dense(q, m, "one two"))


@case("kept", candidate_coverage=1.0, final_coverage=1.0)
def a_span_without_any_letter_counts_all_its_characters(m: Made) -> None:
    m.text("before ... !!! after")
    m.gold(7, 14)
    m.store.item(m("one"), m.doc, 7, 10)
    m.store.item(m("two"), m.doc, 10, 14)
    q = m.query()
    answer(q, dense(q, m, "one two"))


# ------------------------------------------------------------------ reasons
@case("lost", "truncate", "pack", "in", reason="cut_inside", candidate_coverage=1.0, final_coverage=0.5)
def a_budget_that_cuts_inside(m: Made) -> None:
    m.plain()
    m.store.item(m("cut"), m.doc, 10, 20, chunk_id=m("whole"))
    q = m.query()
    answer(q, q.stage("truncate", "pack", [dense(q, m, "whole other")], m.list("cut other"), budget_tokens=10))


@case("lost", "fuse", "rrf", "in", reason="deduplicated", candidate_coverage=1.0)
def a_twin_was_kept_in_its_place(m: Made) -> None:
    m.text()
    m.gold()
    m.store.item(m("whole"), m.doc, 10, 30, item_text="same text")
    m.store.item(m("twin"), f"copy of {m.doc}", 0, 20, item_text="same text")
    q = m.query()
    answer(q, q.stage("fuse", "rrf", [dense(q, m, "whole twin")], m.list("twin")))


@case("lost", "compress", "llmlingua", "in", reason="compressed_away", candidate_coverage=1.0, final_coverage=0.5)
def a_compressor_that_keeps_half(m: Made) -> None:
    m.plain()
    m.store.item(m("short"), m.doc, 10, 20, chunk_id=m("whole"))
    q = m.query()
    answer(q, q.stage("compress", "llmlingua", [dense(q, m, "whole")], m.list("short")))


@case("lost", "retrieve", "dense", "in", reason="below_k")
def considered_below_k(m: Made) -> None:
    m.plain()
    m.chunked("whole other", "whole other")
    q = m.query()
    answer(q, dense(q, m, "other", k=1, considered=m.list("other whole")))


@case("lost", "retrieve", "dense", "in", reason="dropped")
def dropped_by_a_declared_rule(m: Made) -> None:
    m.plain()
    m.chunked("whole other", "whole other")
    q = m.query()
    answer(q, dense(q, m, "other", dropped=[{"item": m("whole"), "drop_reason": "acl", "dropped_by": "tenant"}]))


@case("lost", "retrieve", "dense", "in", reason="stale_cache")
def the_old_version_of_the_chunk_came_from_a_cache(m: Made) -> None:
    m.text()
    m.gold()
    m.store.item(m("before"), m.doc, 30, 40, chunk_id=m("id"))
    m.store.item(m("now"), m.doc, 10, 30, chunk_id=m("id"), version=1)
    m.store.ingest("chunk", m.doc, m.list("now"))
    m.store.ingest("index", m.doc, m.list("before"), START - 800 * SECOND, is_index_complete=True)
    m.store.ingest("index", m.doc, m.list("now"), START - 700 * SECOND, is_index_complete=True)
    q = m.query()
    answer(q, dense(q, m, "before"))
