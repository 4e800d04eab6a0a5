"""Random pipelines, recorded through the public API: what the views say equals the model, number for number.

The default run takes a share of the pipelines; RAGTRACE_PIPELINES=10000 takes them all.
"""

from __future__ import annotations

import os

import pytest

from tests.property.comparing import differences, differing
from tests.property.shrinking import as_code, renamed, shrink
from tests.property.strategies import batch

BATCH = 150
N_PIPELINES = int(os.environ.get("RAGTRACE_PIPELINES", "1500"))


@pytest.mark.parametrize("seed", range(-(-N_PIPELINES // BATCH)))
def test_the_views_say_what_the_model_says(seed: int) -> None:
    """Every verdict, place, between, share and recall of a batch that shares one store."""
    pipelines = batch(seed, BATCH)
    found = differences(pipelines)
    if not found:
        return
    shown = [f"{len(found)} of {BATCH} differ in batch {seed}"]
    for question_id, lines in list(found.items())[:3]:
        shown += ["", question_id, *lines[:8]]
        for pipeline in (renamed(p, "alone") for p in pipelines if p.question_id == question_id):
            if differing([pipeline]):
                smaller = shrink(pipeline, differing, seconds=20)
                shown += [as_code(smaller), *differences([smaller]).get(smaller.question_id, ())]
            else:
                shown += ["only beside the others of the batch:", as_code(pipeline)]
    pytest.fail("\n".join(shown), pytrace=False)
