"""What is random in the property tests, as hypothesis strategies: batches of pipelines that share a store."""

from __future__ import annotations

import random

from hypothesis import strategies as st

from tests.property import generator
from tests.property.description import Pipeline


def batch(seed: int, n_pipelines: int) -> list[Pipeline]:
    """The pipelines of this seed: they share a store, what it declares, and three runs."""
    rng = random.Random(f"ragtrace {seed}")
    mode = generator.store_mode(rng)
    return [
        generator.pipeline(rng, f"q{seed}-{number}", f"run{number * 3 // n_pipelines}", mode)
        for number in range(n_pipelines)
    ]


def batches(n_pipelines: int) -> st.SearchStrategy[list[Pipeline]]:
    """Batches by seed; hypothesis chooses the seed, the shrinking is done on the description."""
    return st.integers(0, 2**32).map(lambda seed: batch(seed, n_pipelines))
