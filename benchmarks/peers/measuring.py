"""What every peer is measured by, in its own environment: one retrieve call with freshly parsed candidates beside a bare span.

A peer's script calls `measure(record, ...)`, and prints one JSON object: microseconds by number of candidates, of the
bare span, and the peer's version.
"""

import json
import random
import statistics
import sys
from importlib.metadata import version
from time import perf_counter_ns

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult


class NullExporter(SpanExporter):
    """Takes spans and forgets them: nothing leaves the machine."""

    def export(self, spans):
        return SpanExportResult.SUCCESS

    def shutdown(self):
        """Nothing to close."""


def candidate_json(n):
    """A client's answer with n candidates of id and score."""
    rng = random.Random(n)
    return json.dumps([{"id": f"chunk-{number:08d}", "score": rng.random()} for number in range(n)])


def quartile(values):
    """The lower quartile, in microseconds."""
    return statistics.quantiles(values, n=4)[0] / 1000


def measure(record, package):
    """Time `record(candidates)`, which is one retrieve call as this product records it, and bare spans in turns with it."""
    n_rounds = int(sys.argv[1])
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(NullExporter()))
    tracer = provider.get_tracer("bench")
    answers = {100: candidate_json(100), 1000: candidate_json(1000)}
    times = {"span": [], 100: [], 1000: []}
    for number in range(n_rounds + 10):
        if number == 10:
            for found in times.values():
                found.clear()  # the first rounds were to warm up
        for n, text in answers.items():
            candidates = json.loads(text)
            began = perf_counter_ns()
            record(candidates)
            times[n].append(perf_counter_ns() - began)
            json.loads(text)
            with tracer.start_as_current_span("request"):
                began = perf_counter_ns()
                with tracer.start_as_current_span("bare"):
                    pass
                times["span"].append(perf_counter_ns() - began)
    print(
        json.dumps({"version": version(package), **{str(name): quartile(found) for name, found in times.items()}}),
        flush=True,
    )
