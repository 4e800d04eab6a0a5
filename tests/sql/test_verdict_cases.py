"""Pipelines recorded through the public API, and what the views say of them: the cases the verdicts were designed by.

Cases that need a probe are tested where probes are. The document is one line; the gold span is its middle, cut by some
chunkings into a left and a right half.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import ragtrace as rt
from tests.traced import Row, Traced

LEFT_TEXT, RIGHT_TEXT = "the bridge was opened ", "in the spring of 1893"
BEFORE, AFTER = "Of all that was built then, ", " by the mayor and her sister. Nobody remembers the rest of that day."
TEXT = BEFORE + LEFT_TEXT + RIGHT_TEXT + AFTER
QUOTE = LEFT_TEXT + RIGHT_TEXT
START, MIDDLE, END = len(BEFORE), len(BEFORE + LEFT_TEXT), len(BEFORE + QUOTE)
PLACES = {
    "whole": (START, END),
    "left": (START, MIDDLE),
    "right": (MIDDLE, END),
    "copy": (START, END),
    "parent": (0, END + 10),
    "x": (0, 10),
    "y": (END, END + 12),
    "z": (END + 12, END + 24),
}
GOLD: list[dict[str, Any]] = [{"doc_id": "doc", "start": START, "end": END, "quote": QUOTE}]


def found(names: str) -> list[rt.Candidate]:
    """Candidates by name, with their ranges."""
    return [rt.Candidate(name, doc_id="doc", start=PLACES[name][0], end=PLACES[name][1]) for name in names.split()]


def stage(kind: str, name: str, takes: Sequence[Any] = (), gives: Any = "", **parameters: Any) -> Any:
    """One decorated function, called."""
    result = found(gives) if isinstance(gives, str) and kind not in ("generate", "rewrite") else gives

    @getattr(rt, kind)(name=name, **parameters)
    def work(*lists: Any) -> Any:
        if isinstance(result, Exception):
            raise result
        return result

    return work(*takes)


def answer(*lists: Any) -> None:
    """The model call."""
    stage("generate", "llm", lists, "an answer")


def question(question_id: str | None = "q") -> Any:
    """A query that has gold."""
    return rt.query("When was the bridge opened?", question_id=question_id)


def gold(*items: dict[str, Any], alternatives: Sequence[Sequence[dict[str, Any]]] = ()) -> list[dict[str, Any]]:
    """A gold file of one question."""
    line: dict[str, Any] = {
        "question_id": "q",
        "question": "When was the bridge opened?",
        "gold": list(items) or GOLD,
    }
    if alternatives:
        line["alternatives"] = alternatives
    return [line]


def only(rows: Sequence[Row]) -> Row:
    """The single row."""
    assert len(rows) == 1
    return rows[0]


def loss(traced: Traced) -> Row:
    """The only row of stage_loss of the question."""
    return only(traced.rows("select * from stage_loss where question_id = 'q'"))


def assert_lost(row: Row, kind: str, name: str | None, at: str = "in") -> None:
    """It was lost there."""
    assert (row["verdict"], row["lost_kind"], row["lost_stage"], row["lost_at"]) == ("lost", kind, name, at)


def assert_recall(traced: Traced, candidate: float | None, final: float | None) -> None:
    """Candidate and final-context recall of the run."""
    row = only(traced.rows("select candidate_recall, final_context_recall from recall_summary where run = 'run'"))
    assert (row["candidate_recall"], row["final_context_recall"]) == (candidate, final)


def shares(traced: Traced) -> dict[str, float]:
    """Share of the span by the stage where it was lost; the layer's name where there is no stage."""
    rows = traced.rows("select lost_kind, lost_stage, share from loss_share where question_id = 'q'")
    return {row["lost_stage"] or row["lost_kind"]: row["share"] for row in rows}


# ------------------------------------------------------------------------------------------------ the ingest side
def ingest(
    chunks: str | None = "whole", indexed: str | None = "whole", text: str | None = TEXT, complete: bool = True
) -> None:
    """The document and what of it was recorded: None leaves a layer out."""
    with rt.document("doc"):
        parsed = text if text is not None else TEXT
        if text is not None:
            parsed = rt.parse(lambda raw: text)(b"raw")
        if chunks is not None:
            rt.chunk(lambda text: pieces(chunks))(parsed)
        if indexed is not None:
            rt.index(index="main", complete=complete)(lambda chunks: None)(pieces(indexed))


def pieces(names: str) -> list[rt.Chunk]:
    """Chunks by name."""
    return [
        rt.Chunk(name, text=TEXT[slice(*PLACES[name])], doc_id="doc", start=PLACES[name][0], end=PLACES[name][1])
        for name in names.split()
    ]


# ------------------------------------------------------------------------------------------------ where
def test_fusion_that_leaves_out_what_both_lists_had(traced: Traced) -> None:
    """Hybrid RRF, in both lists, fused top 2 lacks it: fuse."""
    with question():
        a, b = stage("retrieve", "dense", gives="x whole"), stage("retrieve", "bm25", gives="y whole")
        answer(stage("fuse", "rrf", [a, b], "x y"))
    traced.judge(gold())
    assert_lost(loss(traced), "fuse", "rrf")
    assert_recall(traced, 1, 0)


def test_a_filter_on_one_branch_drops_that_branch_s_half(traced: Traced) -> None:
    """Half from dense, half from bm25: the filter on the dense branch."""
    with question():
        a, b = stage("retrieve", "dense", gives="left x"), stage("retrieve", "bm25", gives="right y")
        allowed = stage("filter", "acl", [a], "x")
        answer(stage("fuse", "rrf", [allowed, b], "x right y"))
    traced.judge(gold())
    assert_lost(loss(traced), "filter", "acl")
    assert_recall(traced, 1, 0)


def test_one_half_reranked_out_and_the_other_truncated(traced: Traced) -> None:
    """Rerank decides; both have their share."""
    with question():
        a = stage("retrieve", "dense", gives="left right x")
        b = stage("rerank", "rerank", [a], "right x")
        answer(stage("truncate", "pack", [b], "x"))
    traced.judge(gold())
    assert_lost(loss(traced), "rerank", "rerank")
    assert_recall(traced, 1, 0)
    n = sum(not c.isspace() for c in QUOTE)
    assert shares(traced) == pytest.approx(
        {"rerank": sum(not c.isspace() for c in LEFT_TEXT) / n, "pack": sum(not c.isspace() for c in RIGHT_TEXT) / n}
    )


def test_one_half_never_retrieved_and_the_other_truncated(traced: Traced) -> None:
    """Dense decides, when the index is known to hold it."""
    ingest("left right x", "left right x")
    with question():
        a = stage("retrieve", "dense", gives="left x")
        answer(stage("truncate", "pack", [a], "x"))
    traced.judge(gold())
    assert_lost(loss(traced), "retrieve", "dense")
    assert set(shares(traced)) == {"dense", "pack"}
    assert_recall(traced, 0, 0)


def test_both_branches_drop_it_in_a_filter_each(traced: Traced) -> None:
    """Keeping either would have been enough: thrA or thrB."""
    with question():
        a, b = stage("retrieve", "dense", gives="x whole"), stage("retrieve", "bm25", gives="y whole")
        c, d = stage("filter", "thrB", [a], "x"), stage("filter", "thrA", [b], "y")
        answer(stage("fuse", "rrf", [c, d], "x y"))
    traced.judge(gold())
    assert_lost(loss(traced), "filter", "thrA or thrB")
    assert_recall(traced, 1, 0)


def test_reranked_out_then_added_again_by_expand_then_truncated(traced: Traced) -> None:
    """Truncate: the last place it was in."""
    with question():
        a = stage("retrieve", "dense", gives="whole x")
        b = stage("rerank", "rerank", [a], "x")
        c = stage("expand", "neighbours", [b], "x whole")
        answer(stage("truncate", "pack", [c], "x"))
    traced.judge(gold())
    assert_lost(loss(traced), "truncate", "pack")
    assert_recall(traced, 1, 0)


@pytest.mark.parametrize(("packed", "verdict", "final"), [("x", "lost", 0), ("parent x", "kept", 1)])
def test_a_child_that_stands_for_its_parent(traced: Traced, packed: str, verdict: str, final: int) -> None:
    """The child lacks it, the parent has it: never a candidate, lost at truncate or kept."""
    with rt.document("doc"):
        text = rt.parse(lambda raw: TEXT)(b"raw")
        child = rt.Chunk("child", text=TEXT[:10], start=0, end=10, stands_for=[PLACES["parent"]])
        rt.chunk(lambda text: [child])(text)
        rt.index(index="main", complete=True)(lambda chunks: None)([child])
    with question():
        a = stage("retrieve", "dense", gives=["child"])
        b = stage("expand", "parents", [a], "parent x")
        answer(stage("truncate", "pack", [b], packed))
    traced.judge(gold())
    row = loss(traced)
    assert row["verdict"] == verdict
    if verdict == "lost":
        assert_lost(row, "truncate", "pack")
    assert_recall(traced, 0, final)


def test_a_plain_slice_before_rerank(traced: Traced) -> None:
    """The gap after dense."""
    with question():
        a = stage("retrieve", "dense", gives="x y whole")
        answer(stage("rerank", "rerank", [a[:2]], "y x"))
    traced.judge(gold())
    assert_lost(loss(traced), "retrieve", "dense", "after")
    assert loss(traced)["reason"] == "untraced_gap"
    assert_recall(traced, 1, 0)


def test_no_final_context_and_several_loose_outputs_one_of_which_had_it(traced: Traced) -> None:
    """Unobserved, from the last place on where it was seen."""
    with question():
        a = stage("retrieve", "dense", gives="x whole")
        stage("filter", "prompt", [a], "whole")
        stage("filter", "side_panel", [a[:1]], "x")
    traced.judge(gold())
    row = loss(traced)
    assert row["verdict"] == "unobserved"
    assert "prompt" in row["between_first"]


def test_no_final_context_but_one_loose_output(traced: Traced) -> None:
    """Judged with it, and said to be inferred."""
    with question():
        a = stage("retrieve", "dense", gives="x whole")
        stage("rerank", "rerank", [a], "x")
    traced.judge(gold())
    assert_lost(loss(traced), "rerank", "rerank")
    assert only(traced.rows("select final_how from query_flows"))["final_how"] == "inferred"


def test_no_final_context_several_loose_outputs_and_the_retriever_missed(traced: Traced) -> None:
    """Still unobserved; candidate recall is 0 all the same."""
    with question():
        a = stage("retrieve", "dense", gives="x y")
        stage("filter", "prompt", [a], "y")
        stage("filter", "side_panel", [a], "x")
    traced.judge(gold())
    assert loss(traced)["verdict"] == "unobserved"
    assert loss(traced)["candidate_coverage"] == 0


def test_an_agent_whose_first_round_drops_it_and_whose_second_misses(traced: Traced) -> None:
    """The rerank of round 1."""
    with question():
        a = stage("retrieve", "dense", gives="x whole")
        b = stage("rerank", "rerank1", [a], "x")
        c = stage("retrieve", "dense", gives="y z")
        d = stage("rerank", "rerank2", [c], "y")
        answer(b, d)
    traced.judge(gold())
    assert_lost(loss(traced), "rerank", "rerank1")
    assert_recall(traced, 1, 0)


def test_the_same_retriever_twice_one_path_drops_the_other_keeps(traced: Traced) -> None:
    """Kept."""
    with question():
        a, b = stage("retrieve", "dense", gives="x whole"), stage("retrieve", "dense", gives="whole y")
        c, d = stage("filter", "one", [a], "x"), stage("filter", "two", [b], "whole")
        answer(stage("fuse", "rrf", [c, d], "x whole"))
    traced.judge(gold())
    assert loss(traced)["verdict"] == "kept"
    assert_recall(traced, 1, 1)


def test_text_rewritten_by_a_compressor(traced: Traced) -> None:
    """Unobserved: altered text may or may not hold it."""
    ingest()
    with question():
        a = stage("retrieve", "dense", gives=[rt.Candidate("whole", text=QUOTE)])
        answer(stage("compress", "summarise", [a], [rt.Candidate("whole", text="It opened in 1893, says the town.")]))
    traced.judge(gold())
    assert loss(traced)["verdict"] == "unobserved"
    assert loss(traced)["candidate_coverage"] == 1


def test_a_candidate_without_a_place_before_the_loss(traced: Traced) -> None:
    """Rerank: what could have been in the list before changes nothing."""
    with question():
        a = stage("retrieve", "dense", gives=[rt.Candidate("nobody-knows"), *found("whole x")])
        answer(stage("rerank", "rerank", [a], "x"))
    traced.judge(gold())
    assert_lost(loss(traced), "rerank", "rerank")
    assert_recall(traced, 1, 0)


def test_never_retrieved_and_no_ingest_side_on_record(traced: Traced) -> None:
    """Lost, no stage named, between ingest and dense; never "lost at ingest"."""
    with question():
        answer(stage("retrieve", "dense", gives="x y"))
    traced.judge(gold())
    row = loss(traced)
    assert (row["verdict"], row["lost_kind"], row["lost_stage"]) == ("lost", None, None)
    assert "ingest" in row["between_first"]
    assert "dense" in row["between_last"]
    assert_recall(traced, 0, 0)


def test_recorded_chunks_that_a_complete_inventory_lacks(traced: Traced) -> None:
    """Index."""
    ingest("whole x y", None)
    rt.inventory(index="main", chunk_ids=["x", "y"])
    with question():
        answer(stage("retrieve", "dense", gives="x y"))
    traced.judge(gold())
    assert_lost(loss(traced), "index", "index")
    assert_recall(traced, 0, 0)


@pytest.mark.parametrize(("min_coverage", "kind", "name"), [(1.0, "chunk", None), (0.5, "rerank", "rerank")])
def test_the_chunker_lost_half_and_the_other_half_was_reranked_out(
    traced: Traced, min_coverage: float, kind: str, name: str | None
) -> None:
    """Chunk; with half being enough, rerank."""
    ingest("left x", "left x")
    with question():
        a = stage("retrieve", "dense", gives="left x")
        answer(stage("rerank", "rerank", [a], "x"))
    traced.judge(gold(), min_coverage=min_coverage)
    row = loss(traced)
    assert (row["verdict"], row["lost_kind"]) == ("lost", kind)
    assert name is None or row["lost_stage"] == name
    assert len(shares(traced)) == 2


def test_a_passage_the_parser_never_put_out(traced: Traced) -> None:
    """Parse: the label is a quote that stands nowhere in the parsed text."""
    ingest("x y", "x y", text=BEFORE + AFTER + " " * 40)
    with question():
        answer(stage("retrieve", "dense", gives=["x", "y"]))
    traced.judge(gold({"doc_id": "doc", "quote": QUOTE}))
    row = loss(traced)
    assert (row["verdict"], row["lost_kind"]) == ("lost", "parse")
    assert row["reason"] in ("text_missing", "text_garbled")
    assert_recall(traced, 0, 0)


def test_a_router_that_skips_retrieval(traced: Traced) -> None:
    """Retrieve, not run: other queries of the run have that stage."""
    ingest("whole x", "whole x")
    with rt.query("Who built it?"):
        answer(stage("retrieve", "dense", gives="x"))
    with question():
        answer(stage("filter", "canned", [], "z"))
    traced.judge(gold())
    row = loss(traced)
    assert (row["verdict"], row["lost_kind"], row["reason"]) == ("lost", "retrieve", "not_run")


def test_a_reranker_that_fetches_by_itself(traced: Traced) -> None:
    """What came in there is lost at pack; it never was a candidate."""
    with question():
        a = stage("retrieve", "dense", gives="x y")
        b = stage("rerank", "rerank", [a], "whole x")
        answer(stage("truncate", "pack", [b], "x"))
    traced.judge(gold())
    assert_lost(loss(traced), "truncate", "pack")
    assert_recall(traced, 0, 0)


def test_the_best_set_s_worst_need(traced: Traced) -> None:
    """Set 1: left kept, right truncated; set 2 never retrieved: pack, 1/2 in the final context."""
    with question():
        a = stage("retrieve", "dense", gives="left right x")
        answer(stage("truncate", "pack", [a], "left x"))
    left = {"doc_id": "doc", "start": START, "end": MIDDLE - 1}
    right = {"doc_id": "doc", "start": MIDDLE, "end": END}
    other = {"doc_id": "doc", "start": END + 30, "end": END + 40}
    traced.judge(gold(left, right, alternatives=[[other]]))
    row = only(traced.rows("select * from question_loss where question_id = 'q'"))
    assert_lost(row, "truncate", "pack")
    assert_recall(traced, 1, 0.5)


def test_a_need_is_met_by_any_of_its_spans(traced: Traced) -> None:
    """{left or y}, y kept."""
    with question():
        a = stage("retrieve", "dense", gives="left y x")
        answer(stage("truncate", "pack", [a], "y x"))
    left = {"doc_id": "doc", "start": START, "end": MIDDLE - 1, "need": "n"}
    y = {"doc_id": "doc", "start": PLACES["y"][0], "end": PLACES["y"][1], "need": "n"}
    traced.judge(gold(left, y))
    assert only(traced.rows("select * from question_loss"))["verdict"] == "kept"
    assert_recall(traced, 1, 1)


def test_a_copy_of_the_passage_goes_further_than_the_chunk(traced: Traced) -> None:
    """Reranked 9th of 8; the knowledge-graph copy over budget in pack: pack."""
    with question():
        a, b = stage("retrieve", "dense", gives="whole x"), stage("retrieve", "graph", gives="copy", mode="graph")
        c = stage("rerank", "rerank", [a], "x")
        answer(stage("truncate", "pack", [c, b], "x"))
    traced.judge(gold())
    assert_lost(loss(traced), "truncate", "pack")
    assert_recall(traced, 1, 0)


def test_graders_and_loggers_beside_the_way_take_no_blame(traced: Traced) -> None:
    """Rerank, however late they take the candidates."""
    with question():
        a = stage("retrieve", "dense", gives="x whole")
        b = stage("rerank", "rerank", [a], "x")
        graded = stage("filter", "grader", [a], "whole x")
        stage("filter", "logger", [graded], "whole x", aside=True)
        answer(b)
    traced.judge(gold())
    assert_lost(loss(traced), "rerank", "rerank")
    assert_recall(traced, 1, 0)


def test_document_level_gold_is_met_by_any_chunk_of_the_document(traced: Traced) -> None:
    """One chunk kept: kept."""
    with question():
        answer(stage("retrieve", "dense", gives="x"))
    traced.judge(gold({"doc_id": "doc", "level": "document"}))
    assert loss(traced)["verdict"] == "kept"


def test_a_filter_inside_the_store_that_was_not_probed(traced: Traced) -> None:
    """Dense, unprobed."""
    ingest("whole x", "whole x")
    with question():
        answer(stage("retrieve", "dense", gives="x", filter={"lang": "fr"}))
    traced.judge(gold())
    assert_lost(loss(traced), "retrieve", "dense")
    assert loss(traced)["reason"] == "unprobed"
    assert_recall(traced, 0, 0)


def test_three_filters_that_drop_a_part_each(traced: Traced) -> None:
    """0.75: the filter after which too little is left."""
    with question():
        size = (END - START) // 4
        PLACES.update({f"q{n}": (START + n * size, END if n == 3 else START + (n + 1) * size) for n in range(4)})
        a = stage("retrieve", "dense", gives="q0 q1 q2 q3")
        b = stage("filter", "f1", [a], "q1 q2 q3")
        c = stage("filter", "f2", [b], "q2 q3")
        answer(stage("filter", "f3", [c], "q3"))
    traced.judge(gold(), min_coverage=0.7)
    assert_lost(loss(traced), "filter", "f2")
    assert_recall(traced, 1, 0)


def test_only_in_the_history_that_was_carried_over(traced: Traced) -> None:
    """Kept, and shown as gained."""
    with question():
        a = stage("retrieve", "dense", gives="x y")
        rt.context(a, carried=found("whole"))
    traced.judge(gold())
    assert loss(traced)["verdict"] == "kept"
    assert_recall(traced, 0, 1)
    assert only(traced.rows("select gained from recall_summary"))["gained"] == 1


def test_a_wrapper_that_slices_what_its_inner_retriever_kept(traced: Traced) -> None:
    """The gap after dense, inside hybrid."""
    with question():

        @rt.retrieve(name="hybrid", mode="hybrid")
        def hybrid() -> list[rt.Candidate]:
            return stage("retrieve", "dense", gives="x y whole")[:2]  # type: ignore[no-any-return]

        answer(hybrid())
    traced.judge(gold())
    assert_lost(loss(traced), "retrieve", "dense", "after")
    assert_recall(traced, 1, 0)


@pytest.mark.parametrize(("retrieved", "candidate"), [("x y", 0), ("whole y", 1)])
def test_rerank_takes_a_list_from_elsewhere_that_holds_it(traced: Traced, retrieved: str, candidate: int) -> None:
    """Rerank, whatever was a candidate."""
    with question():
        stage("retrieve", "dense", gives=retrieved)
        answer(stage("rerank", "rerank", [found("z copy")], "z"))
    traced.judge(gold())
    assert_lost(loss(traced), "rerank", "rerank")
    assert_recall(traced, candidate, 0)


def test_a_list_from_elsewhere_that_lacks_it(traced: Traced) -> None:
    """The gap after dense."""
    with question():
        stage("retrieve", "dense", gives="x whole")
        answer(stage("rerank", "rerank", [found("y z")], "z y"))
    traced.judge(gold())
    assert_lost(loss(traced), "retrieve", "dense", "after")
    assert_recall(traced, 1, 0)


def test_a_reranker_that_raised_and_a_fallback_that_slices(traced: Traced) -> None:
    """The gap after dense, with the failure as the reason."""
    with question():
        a = stage("retrieve", "dense", gives="x y whole")
        with pytest.raises(RuntimeError):
            stage("rerank", "rerank", [a], RuntimeError("no model"))
        answer(a[:2])
    traced.judge(gold())
    assert_lost(loss(traced), "retrieve", "dense", "after")
    assert loss(traced)["reason"] == "stage_failed"
    assert_recall(traced, 1, 0)


def test_a_prompt_and_a_side_panel_and_no_model_call(traced: Traced) -> None:
    """Unobserved."""
    with question():
        a = stage("retrieve", "dense", gives="x whole")
        stage("truncate", "prompt", [a], "x")
        stage("truncate", "panel", [a], "whole")
    traced.judge(gold())
    assert loss(traced)["verdict"] == "unobserved"


def test_only_one_of_several_sub_queries_found_it(traced: Traced) -> None:
    """Found by the union."""
    with question():
        lists = [
            stage("retrieve", "dense", gives=gives, sub_query=label)
            for label, gives in (("one", "x"), ("two", "y"), ("three", "whole"))
        ]
        answer(stage("fuse", "union", lists, "x y whole"))
    traced.judge(gold())
    assert loss(traced)["verdict"] == "kept"
    assert_recall(traced, 1, 1)


def test_a_threshold_filter_before_rerank(traced: Traced) -> None:
    """Filter."""
    with question():
        a = stage("retrieve", "dense", gives="x whole")
        b = stage("filter", "threshold", [a], "x", threshold=0.5)
        answer(stage("rerank", "rerank", [b], "x"))
    traced.judge(gold())
    assert_lost(loss(traced), "filter", "threshold")


def test_a_streaming_retriever_that_was_cut_off(traced: Traced) -> None:
    """The list is partial but complete as data: what it gave is all there was."""
    ingest("whole", "whole")
    with question():

        @rt.retrieve(name="dense")
        def dense() -> Any:
            yield from found("x y z whole")

        stream = dense()
        first = [next(stream), next(stream)]
        stream.close()
        answer(first)
    traced.judge(gold())
    row = loss(traced)
    assert row["verdict"] == "lost"
    assert "dense" in (row["between_last"] or row["lost_stage"])
    assert row["candidate_coverage"] == 0


def test_a_reranker_that_sorts_in_place_and_returns_nothing(traced: Traced) -> None:
    """The changed argument is its output."""
    with question():
        a = stage("retrieve", "dense", gives="whole x y")

        @rt.rerank(name="rerank")
        def rerank(candidates: list[rt.Candidate]) -> None:
            candidates.reverse()
            del candidates[2:]

        rerank(a)
        answer(a)
    traced.judge(gold())
    assert_lost(loss(traced), "rerank", "rerank")
    assert_recall(traced, 1, 0)


def test_the_wrong_collection(traced: Traced) -> None:
    """Retrieve, wrong index."""
    ingest("whole x", "whole x")
    with rt.document("other"):
        pieces_of_other = [rt.Chunk("o", text="Something else.", start=0, end=15)]
        text = rt.parse(lambda raw: "Something else.")(b"raw")
        rt.chunk(lambda text: pieces_of_other)(text)
        rt.index(index="elsewhere", complete=True)(lambda chunks: None)(pieces_of_other)
    with question():
        answer(stage("retrieve", "dense", gives=["o"], index="elsewhere"))
    traced.judge(gold())
    assert_lost(loss(traced), "retrieve", "dense")
    assert loss(traced)["reason"] == "wrong_index"


# ------------------------------------------------------------------------------------------------ labels, versions, time
NEW_TEXT = "A new first line was put in front. " + TEXT
SHIFT = len(NEW_TEXT) - len(TEXT)
CHANGED_TEXT = BEFORE + "the bridge was moved in the autumn of 1921" + AFTER


def version(text: str, names: str = "whole x y", shift: int = 0, indexed: bool = True, **about: Any) -> None:
    """A document that is parsed, chunked and indexed anew."""
    with rt.document("doc", **about):
        parsed = rt.parse(lambda raw: text)(b"raw")
        if indexed:
            made = [
                rt.Chunk(f"{name}@{shift}", text=text[PLACES[name][0] + shift : PLACES[name][1] + shift])
                for name in names.split()
            ]
            rt.chunk(lambda text: made)(parsed)
            rt.index(index="main", complete=True)(lambda chunks: None)(made)


def test_a_passage_that_moved_is_judged_at_its_new_place(traced: Traced) -> None:
    """Re-ingested before the query, unchanged but shifted."""
    version(TEXT)
    version(NEW_TEXT, shift=SHIFT)
    with question():
        a = stage("retrieve", "dense", gives=[f"whole@{SHIFT}", f"x@{SHIFT}"])
        answer(stage("rerank", "rerank", [a], [f"x@{SHIFT}"]))
    traced.judge(gold())
    assert_lost(loss(traced), "rerank", "rerank")
    assert_recall(traced, 1, 0)


def counted(traced: Traced) -> str:
    """The verdict of a question that is not scored."""
    assert traced.rows("select * from recall_summary where n_judged > 0") == []
    return str(loss(traced)["verdict"])


@pytest.mark.parametrize("retrieved", ["x@0", "whole@0"])
def test_a_passage_that_changed_before_the_query_is_stale(traced: Traced, retrieved: str) -> None:
    """Also when the old text still stands in the index and is retrieved: an outdated passage never counts as kept."""
    version(TEXT)
    version(CHANGED_TEXT, names="x", shift=0)
    with question():
        answer(stage("retrieve", "dense", gives=[retrieved]))
    traced.judge(gold())
    assert counted(traced) == "stale"


def test_a_label_made_on_a_text_newer_than_the_query(traced: Traced) -> None:
    """Stale."""
    version(CHANGED_TEXT, names="x")
    with question():
        answer(stage("retrieve", "dense", gives=["x@0"]))
    version(TEXT)
    traced.judge(gold())
    assert counted(traced) == "stale"


def test_a_source_that_had_changed_before_the_query_but_was_ingested_after(traced: Traced) -> None:
    """Lost at ingest, stale version."""
    version(CHANGED_TEXT, names="x")
    with question():
        answer(stage("retrieve", "dense", gives=["x@0"]))
    version(TEXT, modified_at=1.0)
    traced.judge(gold())
    row = loss(traced)
    assert (row["verdict"], row["lost_kind"], row["reason"]) == ("lost", "ingest", "stale_version")


def test_a_newer_text_that_was_not_chunked_yet(traced: Traced) -> None:
    """Lost at chunk."""
    version(CHANGED_TEXT, names="x")
    version(TEXT, indexed=False)
    with question():
        answer(stage("retrieve", "dense", gives=["x@0"]))
    traced.judge(gold())
    row = loss(traced)
    assert (row["verdict"], row["lost_kind"]) == ("lost", "chunk")


def test_a_chunk_written_after_the_query_began(traced: Traced) -> None:
    """Lost at index, not visible yet."""
    ingest("whole x", "x")
    with question():
        answer(stage("retrieve", "dense", gives="x"))
    with rt.document("doc"):
        rt.index(index="main", complete=True)(lambda chunks: None)(pieces("whole"))
    traced.judge(gold())
    row = loss(traced)
    assert (row["verdict"], row["lost_kind"], row["reason"]) == ("lost", "index", "not_visible_yet")


def test_a_document_that_was_deleted_before_the_query(traced: Traced) -> None:
    """Stale."""
    version(TEXT)
    with rt.document("doc", deleted_at=1.0):
        pass
    with question():
        answer(stage("retrieve", "dense", gives=["x@0"]))
    traced.judge(gold())
    assert counted(traced) == "stale"


def test_a_label_whose_quote_stands_nowhere_in_the_text_it_was_made_on(traced: Traced) -> None:
    """Misaligned."""
    ingest("whole x", "whole x")
    with question():
        answer(stage("retrieve", "dense", gives="x"))
    traced.judge(
        gold({"doc_id": "doc", "start": START, "end": END, "quote": "quarterly earnings rose by nine percent"})
    )
    assert counted(traced) == "misaligned"


def test_a_splitter_that_drops_its_separator(traced: Traced) -> None:
    """Every letter and digit of the span is in some chunk: covered."""
    text = "First part here. Second part there, and more."

    def cut(text: str) -> list[rt.Chunk]:
        return [
            rt.Chunk("a", text="First part here", start=0, end=15),
            rt.Chunk("b", text="Second part there", start=17, end=34),
        ]

    with rt.document("doc"):
        parsed = rt.parse(lambda raw: text)(b"raw")
        chunks = rt.chunk(cut)(parsed)
        rt.index(index="main", complete=True)(lambda chunks: None)(chunks)
    with question():
        answer(stage("retrieve", "dense", gives=["a", "b"]))
    traced.judge(gold({"doc_id": "doc", "start": 0, "end": 35, "quote": text[:35]}))
    assert loss(traced)["verdict"] == "kept"
    assert loss(traced)["final_coverage"] == 1
