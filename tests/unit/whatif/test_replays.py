"""What each kind of change is said to gain, lose and cost, and when that is promised."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import ragtrace as rt

from .service import N_QUESTIONS, Runs, fact, found_for, pack, point, rerank


def _again(hits: list[rt.Candidate], *tokens: int) -> list[rt.Candidate]:
    """The first hits, with other tokens."""
    return [fact(int(str(h.id)[1:]), h.score, n) for h, n in zip(hits, tokens, strict=False)]


def _fused(ties: str, n: int, hits: list[rt.Candidate]) -> None:
    with rt.retrieve(name="words", mode="lexical", k=4, index="main") as stage:
        other = list(reversed(found_for(n, 4)))
        stage.output(other)
    points: dict[str, float] = {}
    for rows in (other, hits):
        for rank, row in enumerate(rows, 1):
            points[str(row.id)] = points.get(str(row.id), 0.0) + 1 / (60 + rank)
    names = sorted(points) if ties == "id" else list(points)
    names.sort(key=lambda name: -points[name])
    with rt.fuse(name="fuse", k=2, score_kind="rrf") as stage:
        stage.input(other)
        stage.input(hits)
        fused = [fact(int(name[1:]), points[name]) for name in names[:2]]
        stage.output(fused)
    pack(fused)


def _near(n: int, hits: list[rt.Candidate]) -> None:
    near = [fact(int(str(h.id)[1:]), 0.125 * rank) for rank, h in enumerate(hits, 1)]
    with rt.filter(name="near", threshold=0.25, higher_is_better=False) as stage:
        stage.input(near)
        stage.considered(near)
        passed = [h for h in near if (h.score or 0) <= 0.25]
        stage.output(passed)
    pack(passed)


def _beside(n: int, hits: list[rt.Candidate]) -> None:
    """In one question of four another search finds the very two that go on."""
    with rt.retrieve(name="words", mode="lexical", k=2, index="main") as stage:
        stage.output(found_for(n, 2) if n % 4 == 0 else [fact((n + 20) % 40)])
    pack([fact(int(str(h.id)[1:]), h.score) for h in hits[:2]])


def _broken_once(n: int, hits: list[rt.Candidate]) -> None:
    best = rerank(n, hits)
    try:
        with rt.filter(name="broken") as stage:
            stage.input(best)
            stage.output(best)
            if n == 31:
                raise RuntimeError
    except RuntimeError:
        pass
    pack(best)


def _cut(n: int, hits: list[rt.Candidate]) -> None:
    """Two whole and half of the third."""
    third = hits[2]
    with rt.truncate(name="pack", budget_tokens=25, final=True) as stage:
        stage.input(hits)
        part = rt.Candidate(third.id, third.score, third.doc_id, third.start, (third.start or 0) + 12, tokens=5)
        stage.output([*hits[:2], part])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """Every run that a test asks about. One store: merging and judging cost more than all the rest."""
    made = Runs(tmp_path_factory.mktemp("runs") / "traces.duckdb")
    made.record("reranked", lambda n, hits: pack(rerank(n, hits)))
    made.record("mixed", lambda n, hits: pack(rerank(n, hits, k=1)), at=lambda n: 1 if n % 2 else 3)
    made.record("few", lambda n, hits: pack(rerank(n, hits)), n_questions=12)
    made.record("skipping", lambda n, hits: pack(_again(hits, 50, 50, 10), 60, "skip"))
    made.record("undecided", lambda n, hits: pack(_again(hits, 10, 50, 10), 70))
    made.record("shallow", lambda n, hits: pack(hits), k=2)
    made.record("showing", lambda n, hits: pack(hits), k=2, considered=6)
    made.record("unscored", lambda n, hits: pack(rerank(n, hits, k=2)), k=2, considered=6)
    made.record("ann", lambda n, hits: pack(hits), mode="ann")
    made.record("listwise", lambda n, hits: pack(rerank(n, hits, k=2, listwise=True)))
    made.record("fused by id", lambda n, hits: _fused("id", n, hits), k=4)
    made.record("fused by first", lambda n, hits: _fused("first", n, hits), k=4)
    made.record("near", _near)
    made.record("twice lost", lambda n, hits: pack(rerank(n, hits, k=2), budget=20))
    made.record("sliced", lambda n, hits: pack(hits[:2]))
    made.record("beside", _beside)
    made.record("broken once", _broken_once)
    made.record("cut", _cut)
    made.judge()
    yield made
    made.traced.close()


def test_one_more_behind_the_reranker_brings_every_third_fact_and_costs_its_tokens(runs: Runs) -> None:
    found = runs.examined("reranked")

    assert (found.base.final_recall, found.base.tokens) == (0.0, 20.0)
    three = point(found, "rerank", "k", 3)
    assert (three.promise, three.final_recall, len(three.gained), len(three.lost)) == ("exact", 1.0, N_QUESTIONS, 0)
    assert three.tokens == 30.0
    assert found.advice[0].point.changes == three.changes


def test_what_a_change_loses_is_counted_beside_what_it_gains(runs: Runs) -> None:
    """Every second question has its fact first, the others third; a search for none but two reaches neither third."""
    found = runs.examined("mixed")

    assert found.base.final_recall == 0.5
    assert len(point(found, "rerank", "k", 3).gained) == N_QUESTIONS // 2
    nothing = point(found, "pack", "budget_tokens", 250)
    assert (len(nothing.gained), len(nothing.lost), nothing.promise) == (0, 0, "exact")


def test_fewer_than_thirty_queries_leave_every_replay_unchecked(runs: Runs) -> None:
    three = point(runs.examined("few"), "rerank", "k", 3)

    assert (three.promise, len(three.gained)) == ("unchecked", 12)
    assert "too few" in str(three.why)


def test_a_larger_budget_can_lose_where_what_does_not_fit_is_passed_over(runs: Runs) -> None:
    """Of 50, 50 and 10 tokens a budget of 60 holds the first and the third; one of 105 the two first."""
    found = runs.examined("skipping")

    assert found.base.final_recall == 1.0
    larger = point(found, "pack", "budget_tokens", 105)
    assert (larger.promise, len(larger.lost), larger.final_recall) == ("exact", N_QUESTIONS, 0.0)
    assert point(found, "pack", "budget_tokens", 110).final_recall == 1.0


def test_where_several_ways_of_choosing_fit_the_record_none_is_promised(runs: Runs) -> None:
    """All fitted: whether it stops at what does not fit or passes it over is not on record."""
    small = point(runs.examined("undecided"), "pack", "budget_tokens", 35)

    assert small.promise == "re-run"
    assert "several ways" in str(small.why)


def test_of_a_search_only_less_than_recorded_can_be_replayed(runs: Runs) -> None:
    found = runs.examined("shallow")
    (curve,) = [c for c in found.curves if c.axis.label[1] == "search"]

    assert curve.axis.values == (1.0, 2.0)
    assert point(found, "search", "k", 1).promise == "exact"


def test_a_search_that_shows_more_than_it_passes_on_is_replayed_as_deep_as_it_shows(runs: Runs) -> None:
    three = point(runs.examined("showing"), "search", "k", 3)

    assert (three.promise, three.candidate_recall, three.final_recall) == ("exact", 1.0, 1.0)


def test_what_a_reranker_never_scored_only_passes_as_far_as_it(runs: Runs) -> None:
    three = point(runs.examined("unscored"), "search", "k", 3)

    assert (three.promise, three.passes_to, three.final_recall) == ("passes", ("rerank", "rerank"), None)
    assert len(three.gained) == N_QUESTIONS
    assert three.candidate_recall == 1.0


def test_a_smaller_approximate_search_is_not_promised(runs: Runs) -> None:
    assert point(runs.examined("ann"), "search", "k", 4).promise == "unchecked"


def test_a_reranker_that_looks_at_the_list_as_a_whole_is_not_replayed_on_another_list(runs: Runs) -> None:
    found = runs.examined("listwise")

    assert point(found, "search", "k", 4).promise == "passes"
    assert point(found, "rerank", "k", 3).promise == "exact", "its own cut is still what it shows"


@pytest.mark.parametrize("ties", ["id", "first"])
def test_reciprocal_rank_fusion_is_told_by_its_scores_and_ties(runs: Runs, ties: str) -> None:
    found = runs.examined(f"fused by {ties}")
    (stage,) = [one for one in found.stages if one.label == ("fuse", "fuse")]

    assert {(model.constant, model.ties) for model in stage.models} == {(60.0, ties)}  # type: ignore[attr-defined]
    four = point(found, "fuse", "k", 4)
    assert (four.promise, four.final_recall) == ("exact", 1.0)


def test_a_threshold_on_a_distance_lets_more_through_when_it_rises(runs: Runs) -> None:
    found = runs.examined("near")
    wider = point(found, "near", "threshold", 0.375)

    assert found.base.final_recall == 0.0
    assert (wider.promise, wider.final_recall) == ("exact", 1.0)


def test_evidence_that_falls_at_two_places_gets_the_smallest_set_of_changes(runs: Runs) -> None:
    found = runs.examined("twice lost")

    assert not any(p.gained for c in found.curves if c.axis.label[1] != "search" for p in c.points)
    (both,) = found.sets
    assert {(c.parameter, c.value) for c in both.changes} == {("k", 3.0), ("budget_tokens", 30.0)}
    assert (both.promise, both.final_recall) == ("exact", 1.0)
    assert found.advice[0].point == both


def test_code_between_two_stages_that_cuts_a_list_is_a_setting_too(runs: Runs) -> None:
    three = point(runs.examined("sliced"), "after search, before pack", "k", 3)

    assert (three.promise, three.final_recall) == ("exact", 1.0)


def test_a_list_that_equals_another_by_chance_is_taken_from_where_it_mostly_comes_from(runs: Runs) -> None:
    three = point(runs.examined("beside"), "after search, before pack", "k", 3)

    assert (three.promise, three.final_recall, three.n_stuck) == ("exact", 1.0, 0)


def test_a_query_with_a_failed_stage_is_left_out_and_counted(runs: Runs) -> None:
    found = runs.examined("broken once")

    assert (found.n_replayed, sum(n for _, n in found.left_out)) == (31, 1)
    assert "broken failed" in found.left_out[0][0]


def test_what_another_budget_leaves_of_a_candidate_is_open_until_it_fits_whole(runs: Runs) -> None:
    found = runs.examined("cut")
    wider = point(found, "pack", "budget_tokens", 27)
    whole = point(found, "pack", "budget_tokens", 37)

    assert found.base.final_recall == 0.0
    assert (wider.promise, wider.passes_to, wider.final_recall) == ("passes", ("truncate", "pack"), None)
    assert (len(wider.gained), len(wider.lost), wider.n_stuck) == (0, 0, N_QUESTIONS)
    assert (whole.promise, whole.final_recall, len(whole.gained)) == ("exact", 1.0, N_QUESTIONS)
