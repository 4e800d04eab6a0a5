"""What a verdict means: held against the flow itself, played once more without the drops.

RAGTRACE_PIPELINES=10000 takes as many; the default run takes 400.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, given, settings

from tests.model.meaning import span_would_be_kept, would_be_kept
from tests.model.verdict import Judge
from tests.property.description import Pipeline
from tests.property.recorded_facts import store_facts
from tests.property.strategies import batches

N_BATCHES = int(os.environ.get("RAGTRACE_PIPELINES", "400")) // 10


@settings(max_examples=N_BATCHES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(batches(10))
def test_had_the_named_place_and_all_after_it_dropped_nothing_the_evidence_would_have_been_kept(
    pipelines: list[Pipeline],
) -> None:
    """And had only all after it dropped nothing, not."""
    store = store_facts(pipelines)
    for query in store.queries:
        judge = Judge(store, query)
        result = judge.question()
        for row in result.spans.values():
            if row.verdict.verdict == "lost" and row.verdict.at:
                order = row.verdict.sure.order
                assert span_would_be_kept(judge, row.span, order, is_inclusive=True)
                assert not span_would_be_kept(judge, row.span, order, is_inclusive=False)
        if result.verdict.verdict == "lost" and result.verdict.at:
            assert would_be_kept(judge, result.verdict.sure.order, is_inclusive=True)
            assert not would_be_kept(judge, result.verdict.sure.order, is_inclusive=False)


@settings(max_examples=N_BATCHES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(batches(10))
def test_shares_sum_to_what_is_missing_and_each_sure_statement_is_a_possible_one(pipelines: list[Pipeline]) -> None:
    """The shares of a span's lost pieces sum to 1 - final coverage; the possible reading never loses earlier."""
    store = store_facts(pipelines)
    for query in store.queries:
        for row in Judge(store, query).question().spans.values():
            assert sum(row.shares.values()) == 1 - row.final_coverage
            assert row.verdict.possible.order >= row.verdict.sure.order
            assert row.possible_final_coverage >= row.final_coverage
            assert row.possible_candidate_coverage >= row.candidate_coverage
