"""`import ragtrace` beside `import opentelemetry.trace`, each in new interpreters, turn about. `python -m benchmarks.imports`."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator

from benchmarks.harness import Options, Row, main, run_child

__all__ = ["rows"]

CODE = "import sys, time; t = time.perf_counter(); __import__(sys.argv[1]); print(time.perf_counter() - t)"


def rows(options: Options) -> Iterator[Row]:
    """The median of each."""
    seconds: dict[str, list[float]] = {"opentelemetry.trace": [], "ragtrace": []}
    for _ in range(options.scaled(15, 5)):
        for module, found in seconds.items():
            found.append(float(run_child(CODE, module)))
    theirs, ours = map(statistics.median, seconds.values())
    yield Row("import ragtrace", ours / theirs, "× import opentelemetry.trace", 1.3)


if __name__ == "__main__":
    sys.exit(main(rows))
