"""The model says of hand-made facts what the verdict cases of the design say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import pytest

from tests.model import facts
from tests.model.flow import Flow
from tests.model.verdict import Judge, Loss, QuestionResult

WHOLE = frozenset(range(8))
LEFT, RIGHT = frozenset(range(4)), frozenset(range(4, 8))


class Story:
    """Facts of one query, told in the order in which things happen. Chunk names say what they hold of the span `e`."""

    def __init__(self, **holds: frozenset[int]) -> None:
        self.holds = {"W": WHOLE, "L": LEFT, "R": RIGHT, "x": frozenset(), "y": frozenset(), "z": frozenset()} | holds
        self.now = 0
        self.stages: list[facts.Stage] = []
        self.lists: list[facts.CandidateList] = []
        self.spans = [facts.Span("e", 1, "n", "doc", WHOLE)]
        self.ingest = facts.Ingest()
        self.min_coverage = 1.0
        self.stands_for: dict[str, frozenset[int]] = {}

    def tick(self) -> int:
        """The next moment."""
        self.now += 1
        return self.now

    def entry(self, chunk: str) -> facts.Entry:
        """`?x` is a candidate without a place, `~x` an altered one."""
        name = chunk.lstrip("?~")
        held = frozenset(("e", at) for at in self.holds.get(name, ()))
        if chunk.startswith("?"):
            return facts.Entry(name, is_unplaced=True)
        if chunk.startswith("~"):
            return facts.Entry(name, possible=held)
        return facts.Entry(name, held, stands_for=frozenset(("e", at) for at in self.stands_for.get(name, ())))

    def shown(self, role: str, stage_id: int | None, at: int, chunks: str | int) -> int:
        """A list of chunks, or the very list of that number."""
        object_of = chunks if isinstance(chunks, int) else None
        if isinstance(chunks, int):
            entries = next(x.entries for x in self.lists if x.list_id == chunks)
        else:
            entries = tuple(map(self.entry, chunks.split()))
        self.lists.append(facts.CandidateList(len(self.lists) + 1, role, stage_id, at, entries, object_of))
        return len(self.lists)

    def run(
        self,
        kind: str,
        name: str,
        takes: Sequence[str | int] = (),
        gives: str | None = None,
        inside: Callable[[int], object] | None = None,
        parent: int | None = None,
        **flags: bool,
    ) -> int:
        """One stage run; the number of its output list, 0 without one."""
        start = self.tick()
        for chunks in takes:
            self.shown("in", start, start, chunks)
        if inside is not None:
            inside(start)
        end = self.tick()
        self.stages.append(facts.Stage(start, kind, name, start, end, parent, **flags))
        return 0 if gives is None else self.shown("out", start, end, gives)

    def context(self, chunks: str | int) -> None:
        """rt.context."""
        self.shown("context", None, self.tick(), chunks)

    def judge(self) -> QuestionResult:
        """The model's result."""
        query = facts.Query(1, "run", 10, tuple(self.stages), tuple(self.lists), tuple(self.spans))
        store = facts.Store(self.ingest, (query,), self.min_coverage)
        return Judge(store, query).question()

    def flow(self) -> Flow:
        """Its flow alone."""
        return Flow(facts.Query(1, "run", 10, tuple(self.stages), tuple(self.lists), tuple(self.spans)))


def losses(*names: str) -> frozenset[Loss]:
    """`rerank:rerank` was lost in it, `retrieve:dense+` after it, `index` in that layer."""
    found = set()
    for name in names:
        kind, _, stage = name.partition(":")
        found.add((kind, stage.rstrip("+") or None, "after" if stage.endswith("+") else "in"))
    return frozenset(found)


def assert_lost(result: QuestionResult, *names: str) -> None:
    """The span was lost there for sure."""
    verdict = result.spans["e"].verdict
    assert (verdict.verdict, verdict.at) == ("lost", losses(*names))


def assert_recall(result: QuestionResult, candidate: int | str, final: int | str) -> None:
    """Candidate and final-context recall of the question."""
    assert (result.candidate.share, result.final.share) == (Fraction(candidate), Fraction(final))


def test_fusion_that_leaves_out_what_both_lists_had_is_named() -> None:
    """Hybrid RRF, in both lists, fused top 2 lacks it."""
    story = Story()
    a, b = story.run("retrieve", "dense", gives="x W"), story.run("retrieve", "bm25", gives="y W")
    fused = story.run("fuse", "fuse", [a, b], "x y")
    story.run("generate", "llm", [fused])
    assert_lost(story.judge(), "fuse:fuse")
    assert_recall(story.judge(), 1, 0)


def test_a_filter_on_one_branch_that_drops_that_branch_half_is_named() -> None:
    """Half from dense, half from bm25; the filter drops dense's half."""
    story = Story()
    a, b = story.run("retrieve", "dense", gives="L x"), story.run("retrieve", "bm25", gives="R y")
    c = story.run("filter", "acl", [a], "x")
    story.context(story.run("fuse", "fuse", [c, b], "x R y"))
    assert_lost(story.judge(), "filter:acl")
    assert_recall(story.judge(), 1, 0)


def test_of_two_halves_lost_apart_the_earlier_loss_decides_and_both_have_shares() -> None:
    """One half reranked out, the other truncated."""
    story = Story()
    a = story.run("retrieve", "dense", gives="L R x")
    b = story.run("rerank", "rerank", [a], "R x")
    story.context(story.run("truncate", "pack", [b], "x"))
    assert_lost(story.judge(), "rerank:rerank")
    assert story.judge().spans["e"].shares == {
        losses("rerank:rerank"): Fraction(1, 2),
        losses("truncate:pack"): Fraction(1, 2),
    }


def test_a_half_that_was_never_retrieved_is_lost_at_the_retriever() -> None:
    """The index has all, complete; the other half was truncated."""
    story = Story()
    story.ingest = facts.Ingest(writes=(facts.IndexWrite("main", 1, (story.entry("W"),), is_complete=True),))
    a = story.run("retrieve", "dense", gives="L x")
    story.context(story.run("truncate", "pack", [a], "x"))
    assert_lost(story.judge(), "retrieve:dense")
    assert story.judge().spans["e"].shares == {
        losses("retrieve:dense"): Fraction(1, 2),
        losses("truncate:pack"): Fraction(1, 2),
    }
    assert_recall(story.judge(), 0, 0)


def test_two_branches_that_drop_it_each_are_named_with_or() -> None:
    """A filter on both branches."""
    story = Story()
    a, b = story.run("retrieve", "dense", gives="x W"), story.run("retrieve", "bm25", gives="y W")
    c, d = story.run("filter", "thrA", [a], "x"), story.run("filter", "thrB", [b], "y")
    story.context(story.run("fuse", "fuse", [c, d], "x y"))
    assert_lost(story.judge(), "filter:thrA", "filter:thrB")


def test_what_comes_back_later_is_lost_where_it_is_dropped_last() -> None:
    """Reranked out, re-added by expand, truncated."""
    story = Story()
    a = story.run("retrieve", "dense", gives="W x")
    b = story.run("rerank", "rerank", [a], "x")
    c = story.run("expand", "expand", [b], "x W")
    story.context(story.run("truncate", "pack", [c], "x"))
    assert_lost(story.judge(), "truncate:pack")
    assert_recall(story.judge(), 1, 0)


@pytest.mark.parametrize(("packed", "verdict", "final"), [("x", "lost", 0), ("P x", "kept", 1)])
def test_a_parent_counts_where_it_is_delivered_and_its_child_only_finds_the_place(
    packed: str, verdict: str, final: int
) -> None:
    """Child lacks it, parent has it; then the parent is cut, or kept."""
    story = Story(P=WHOLE, c=frozenset())
    story.stands_for["c"] = WHOLE
    a = story.run("retrieve", "dense", gives="c x")
    b = story.run("expand", "expand", [a], "P x")
    story.context(story.run("truncate", "pack", [b], packed))
    result = story.judge()
    assert result.spans["e"].verdict.verdict == verdict
    assert_recall(result, 0, final)


def test_a_plain_slice_between_stages_is_a_gap_after_the_stage_before() -> None:
    """Dense, slice, rerank."""
    story = Story()
    story.run("retrieve", "dense", gives="x y W")
    story.context(story.run("rerank", "rerank", ["x y"], "y x"))
    assert_lost(story.judge(), "retrieve:dense+")


def test_without_a_final_context_and_several_loose_outputs_nothing_is_sure() -> None:
    """One of them had it: between the last places seen and the end. The side panel's stage had it too, before it dropped it."""
    story = Story()
    a = story.run("retrieve", "dense", gives="x W")
    story.run("filter", "prompt", [a], "W")
    story.run("filter", "side", [a], "x")
    verdict = story.judge().spans["e"].verdict
    assert verdict.verdict == "unobserved"
    assert verdict.between is not None
    assert verdict.between[0] == losses("filter:prompt+", "filter:side")
    assert_recall(story.judge(), 1, 0)


def test_the_only_loose_output_is_taken_for_the_final_context() -> None:
    """Inferred."""
    story = Story()
    a = story.run("retrieve", "dense", gives="x W")
    story.run("rerank", "rerank", [a], "x")
    assert story.flow().final_how == "inferred"
    assert_lost(story.judge(), "rerank:rerank")


def test_a_second_round_that_misses_leaves_the_loss_in_the_first() -> None:
    """Two-round agent."""
    story = Story()
    a = story.run("retrieve", "dense", gives="x W")
    b = story.run("rerank", "rerank1", [a], "x")
    c = story.run("retrieve", "dense", gives="y z")
    d = story.run("rerank", "rerank2", [c], "y")
    story.run("generate", "llm", [b, d])
    assert_lost(story.judge(), "rerank:rerank1")


def test_one_path_that_keeps_it_is_enough() -> None:
    """Retriever twice, overlapping."""
    story = Story()
    a, b = story.run("retrieve", "dense", gives="x W"), story.run("retrieve", "dense", gives="W y")
    c, d = story.run("filter", "one", [a], "x"), story.run("filter", "two", [b], "W")
    story.run("generate", "llm", [story.run("fuse", "fuse", [c, d], "x W")])
    assert story.judge().verdict.verdict == "kept"
    assert_recall(story.judge(), 1, 1)


def test_rewritten_text_is_unobserved() -> None:
    """Abstractive compression."""
    story = Story()
    a = story.run("retrieve", "dense", gives="x W")
    story.context(story.run("compress", "compress", [a], "x ~W"))
    assert story.judge().verdict.verdict == "unobserved"


def test_a_candidate_without_a_place_before_the_loss_changes_nothing() -> None:
    """An unplaced candidate in the list that rerank takes."""
    story = Story()
    a = story.run("retrieve", "dense", gives="?u W")
    story.context(story.run("rerank", "rerank", [a], "x"))
    assert_lost(story.judge(), "rerank:rerank")


def test_an_unrecorded_ingest_side_names_no_stage() -> None:
    """Between ingest and dense; recall 0."""
    story = Story()
    story.context(story.run("retrieve", "dense", gives="x y"))
    verdict = story.judge().spans["e"].verdict
    assert (verdict.verdict, verdict.at) == ("lost", frozenset())
    assert verdict.between == (losses("ingest"), losses("retrieve:dense"))


def test_a_complete_inventory_that_lacks_recorded_chunks_names_the_index() -> None:
    """Chunks recorded, index declared."""
    story = Story()
    story.ingest = facts.Ingest(
        texts=(facts.ParsedText("doc", 1, frozenset("e"), frozenset("e")),),
        chunk_runs=(facts.ChunkRun("doc", 1, (story.entry("W"),)),),
        index_inventories=(facts.IndexInventory("main", 2, (story.entry("x"),)),),
    )
    story.context(story.run("retrieve", "dense", gives="x y"))
    assert_lost(story.judge(), "index")


@pytest.mark.parametrize(("min_coverage", "place"), [(1.0, "chunk"), (0.5, "rerank:rerank")])
def test_half_lost_by_the_chunker_decides_unless_half_is_enough(min_coverage: float, place: str) -> None:
    """The other half was reranked out."""
    story = Story()
    story.min_coverage = min_coverage
    story.ingest = facts.Ingest(
        texts=(facts.ParsedText("doc", 1, frozenset("e"), frozenset("e")),),
        chunk_runs=(facts.ChunkRun("doc", 1, (story.entry("L"),)),),
    )
    a = story.run("retrieve", "dense", gives="L x")
    story.context(story.run("rerank", "rerank", [a], "x"))
    assert_lost(story.judge(), place)
    assert story.judge().spans["e"].shares == {losses("chunk"): Fraction(1, 2), losses("rerank:rerank"): Fraction(1, 2)}


def test_a_text_without_the_passage_and_nothing_of_it_later_names_the_parser() -> None:
    """Parser never produced it."""
    story = Story()
    story.ingest = facts.Ingest(
        documents=(facts.DocumentRow("doc", 1),),
        texts=(facts.ParsedText("doc", 1, frozenset(), frozenset("e")),),
    )
    story.context(story.run("retrieve", "dense", gives="x y"))
    assert_lost(story.judge(), "parse")


def test_a_list_from_elsewhere_that_holds_it_makes_the_taker_responsible() -> None:
    """Rerank takes a list of unknown origin."""
    story = Story()
    story.run("retrieve", "dense", gives="x y")
    story.context(story.run("rerank", "rerank", ["z W"], "z"))
    assert_lost(story.judge(), "rerank:rerank")
    assert_recall(story.judge(), 0, 0)


def test_a_list_from_elsewhere_that_lacks_it_leaves_a_gap_after_what_had_it() -> None:
    """The unknown list shares nothing with what dense put out."""
    story = Story()
    story.run("retrieve", "dense", gives="x W")
    story.context(story.run("rerank", "rerank", ["y z"], "y z"))
    assert_lost(story.judge(), "retrieve:dense+")


def test_a_failed_reranker_and_a_slice_of_what_it_took_is_a_gap_after_the_retriever() -> None:
    """Plain fallback."""
    story = Story()
    a = story.run("retrieve", "dense", gives="x y W")
    story.run("rerank", "rerank", [a])
    story.run("generate", "llm", ["x y"])
    assert_lost(story.judge(), "retrieve:dense+")


def test_a_grader_beside_the_way_does_not_draw_the_loss_to_itself() -> None:
    """On the path first, however late the grader runs."""
    story = Story()
    a = story.run("retrieve", "dense", gives="x W")
    b = story.run("rerank", "rerank", [a], "x")
    c = story.run("filter", "grader", [a], "x W")
    story.run("filter", "logger", [c], "x W")
    story.run("generate", "llm", [b])
    assert_lost(story.judge(), "rerank:rerank")


def test_a_wrapper_that_slices_what_its_inner_run_kept_is_a_gap_after_the_inner_run() -> None:
    """Composite."""
    story = Story()

    def inner(parent: int) -> None:
        story.run("retrieve", "dense", gives="x y W", parent=parent)

    a = story.run("retrieve", "hybrid", gives="x y", inside=inner)
    story.run("generate", "llm", [a])
    assert_lost(story.judge(), "retrieve:dense+")
    assert_recall(story.judge(), 1, 0)


def test_three_filters_that_drop_a_quarter_each_are_judged_by_the_share_that_is_enough() -> None:
    """0.75: the second filter is where too little is left."""
    quarters = {f"q{n}": frozenset({2 * n, 2 * n + 1}) for n in range(4)}
    story = Story(**quarters)
    story.min_coverage = 0.75
    a = story.run("retrieve", "dense", gives="q0 q1 q2 q3")
    b = story.run("filter", "f1", [a], "q1 q2 q3")
    c = story.run("filter", "f2", [b], "q2 q3")
    story.context(story.run("filter", "f3", [c], "q3"))
    assert_lost(story.judge(), "filter:f2")


def test_a_question_takes_its_best_set_a_set_its_worst_need_a_need_its_best_span() -> None:
    """Set 1: L kept, R truncated. Set 2: never retrieved."""
    story = Story()
    story.spans = [
        facts.Span("e", 1, "left", "doc", LEFT),
        facts.Span("f", 1, "right", "doc", RIGHT),
        facts.Span("g", 2, "other", "doc", WHOLE),
    ]
    held = {"L": frozenset(("e", at) for at in LEFT), "R": frozenset(("f", at) for at in RIGHT)}
    story.entry = lambda chunk: facts.Entry(chunk, held.get(chunk, frozenset()))  # type: ignore[method-assign]
    a = story.run("retrieve", "dense", gives="L R x")
    story.context(story.run("truncate", "pack", [a], "L x"))
    result = story.judge()
    assert (result.verdict.verdict, result.verdict.at) == ("lost", losses("truncate:pack"))
    assert_recall(result, 1, "1/2")
