"""The two clocks and the ids made from them. Patched by tests, nowhere else."""

from __future__ import annotations

from time import perf_counter_ns as monotonic_ns
from time import time_ns as wall_ns

__all__ = ["monotonic_ns", "wall_ns"]
