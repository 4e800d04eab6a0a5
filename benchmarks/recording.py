"""What recording costs the service: each row a ratio to a bare OpenTelemetry span timed in the same rounds.

Lists are freshly parsed from JSON for every call, as after a real client call: hot lists flatter by 1.5 to 3 times. The
spans they are compared with are started after the same parsing, with the processor's caches as full of other things,
inside another span: a service's spans are inside that of its request, as the calls measured here are inside a query.
`python -m benchmarks.recording`.
"""

from __future__ import annotations

import gc
import json
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

import ragtrace as rt
from benchmarks.harness import Options, Row, lower_quartile, main, timed

__all__ = ["NullExporter", "candidate_json", "rows"]

QUESTION = "how long is a vacation?"
WORDS = ["".join(random.Random(number).choices("etaoinshrdlucm", k=2 + number % 8)) for number in range(3000)]


class NullExporter(SpanExporter):
    """Takes spans and forgets them."""

    def export(self, spans: Any) -> SpanExportResult:
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Nothing to close."""


def candidate_json(
    n: int, with_places: bool = False, first: int = 0, text_characters: int = 0, with_ids: bool = True
) -> str:
    """A client's answer with n candidates."""
    rng = random.Random(n + first)
    items = []
    for number in range(first, first + n):
        item: dict[str, Any] = {"id": f"chunk-{number:08d}"} if with_ids else {}
        item["score"] = rng.random()
        if with_places:
            item |= {"doc_id": f"doc-{number % 20:05d}", "start": number * 800, "end": number * 800 + 780}
        if text_characters:
            item["text"] = " ".join(rng.choices(WORDS, k=text_characters // 4))[:text_characters]
        items.append(item)
    return json.dumps(items)


answers: list[Any] = []
"""What the client answers next, last first: as arguments the lists would be recorded as inputs."""


def plain_retrieve(query: str) -> list[Any]:
    """Stands for a client call."""
    found: list[Any] = answers.pop()
    return found


def plain_fuse(lists: list[list[Any]]) -> list[Any]:
    """150 of 200."""
    return (lists[0] + lists[1])[:150]


def plain_rerank(query: str, found: list[Any]) -> list[Any]:
    """The first 50, the other way round."""
    return found[49::-1]


def plain_pack(found: list[Any]) -> list[Any]:
    """The first 8."""
    return found[:8]


def plain_prompt(found: list[Any]) -> str:
    """The texts of the first 8."""
    return "\n\n".join(item["text"] for item in found[:8])


retrieve = rt.retrieve(mode="ann", k=100, score_kind="similarity")(plain_retrieve)
fuse = rt.fuse(plain_fuse)
rerank = rt.rerank(k=50)(plain_rerank)
pack = rt.truncate(budget_tokens=3000)(plain_pack)
prompt = rt.truncate(budget_tokens=3000)(plain_prompt)


def plain_pipeline(question: str) -> list[Any]:
    """Five steps, nothing recorded."""
    dense, lexical = plain_retrieve(question), plain_retrieve(question)
    return plain_pack(plain_rerank(question, plain_fuse([dense, lexical])))


def traced_pipeline(question: str) -> list[Any]:
    """The same, recorded and on its way to the disk when it returns."""
    with rt.query(question):
        dense, lexical = retrieve(question), retrieve(question)
        return pack(rerank(question, fuse([dense, lexical])))


def search_and_prompt(question: str) -> None:
    """150 candidates with texts, of which a prompt is made that must be searched for them."""
    with rt.query(question):
        prompt(retrieve(question))


CALLS = {
    "100 candidates": (candidate_json(100), 0.8, 2.0),
    "1,000 candidates": (candidate_json(1000), 5.0, 6.0),
    "100 with document and range": (candidate_json(100, True), 1.5, 2.7),
    "1,000 with document and range": (candidate_json(1000, True), 14.0, 16.0),
}
TEXTS = {
    "a query of 100 with 800 characters and ids": candidate_json(100, text_characters=800),
    "a query of 100 with 800 characters, no ids": candidate_json(100, text_characters=800, with_ids=False),
    "the same with texts never seen before": candidate_json(100, text_characters=800, with_ids=False),
}
A, B = candidate_json(100), candidate_json(100, first=50)
PROMPT = candidate_json(150, text_characters=800)


def rounds_of(tracer: Any, n_rounds: int) -> dict[str, float]:
    """Nanoseconds of own cost, by row; the bare spans among them."""
    samples: dict[str, list[float]] = {}

    def add(name: str, value: float) -> None:
        samples.setdefault(name, []).append(value)

    def span() -> None:
        with tracer.start_as_current_span("bare"):
            pass

    def six_spans() -> None:
        with tracer.start_as_current_span("query"):
            for _ in range(5):
                span()

    def one_stage(question: str) -> None:
        with rt.query(question):
            retrieve(question)

    for number in range(n_rounds):
        for name, (text, _, _) in CALLS.items():
            answers[:] = [json.loads(text) for _ in range(8)]
            with rt.query(QUESTION):
                own = [timed(retrieve, QUESTION) for _ in range(4)]
            for with_us in own:
                add(name, with_us - timed(plain_retrieve, QUESTION))
            answers[:] = [json.loads(text) for _ in range(4)]
            with tracer.start_as_current_span("request"):
                for _ in range(4):
                    add("span", timed(span))
        # In turns: the first of them finds the processor's caches full of the long lists before.
        for name in ("five", "six spans") if number % 2 else ("six spans", "five"):
            answers[:] = json.loads(B), json.loads(A)
            if name == "six spans":
                add(name, timed(six_spans))
                continue
            traced = timed(traced_pipeline, QUESTION)
            answers[:] = json.loads(B), json.loads(A)
            add(name, traced - timed(plain_pipeline, QUESTION))
        for name, text in TEXTS.items():
            answers[:] = [
                json.loads(text.replace('"text": "', f'"text": "{perf_counter_ns()}. ') if "never" in name else text)
            ]
            add(name, timed(one_stage, QUESTION))
        if number % 10 == 0:
            answers[:] = [json.loads(PROMPT)]
            add("prompt", timed(search_and_prompt, QUESTION))
    return {name: lower_quartile(values) for name, values in samples.items()}


def rows(options: Options) -> Iterator[Row]:
    """Not configured, standalone, then within the user's SDK."""
    yield unconfigured()
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(NullExporter()))
    tracer = provider.get_tracer("bench")
    for where, given in (("standalone", None), ("in the SDK", provider)):
        with tempfile.TemporaryDirectory() as folder:
            rt.configure(Path(folder, "bench.duckdb"), merge="off", tracer_provider=given)
            rounds_of(tracer, 20)  # warm
            gc.collect()
            found = rounds_of(tracer, options.scaled(300, 30))
            rt.shutdown()
        yield Row(f"a bare span ({where} rounds)", found["span"] / 1000, "µs")
        for name, (_, alone, within) in CALLS.items():
            budget = alone if given is None else within
            yield Row(f"{name}, {where}", found[name] / found["span"], "× a bare span", budget)
        five = found["five"] / found["six spans"]
        yield Row(f"five stages, durable, {where}", five, "× six bare spans", 1.5 if given is None else 2.5)
        with_ids, seen, unseen = (found[name] for name in TEXTS)
        yield Row(f"without ids, texts seen before, {where}", seen / with_ids, "× the query with ids", 1.1)
        yield Row(f"without ids, new texts, {where}", unseen / with_ids, "× the query with ids", 1.1)
        yield Row(f"150 texts searched for in a prompt, {where}", found["prompt"] / 1e6, "ms a query")
    provider.shutdown()


def unconfigured() -> Row:
    """The decorator of a service that does not record."""

    def bare(query: str) -> None:
        return None

    decorated = rt.retrieve(bare)
    without: list[float] = []
    with_us: list[float] = []
    for _ in range(50):
        for call, times in ((decorated, with_us), (bare, without)):
            began = perf_counter_ns()
            for _ in range(1000):
                call("q")
            times.append((perf_counter_ns() - began) / 1e6)
    cost = lower_quartile(with_us) - lower_quartile(without)  # the least of the differences would be the luckiest
    return Row("a decorated call, not configured", cost, "µs", 0.2)


if __name__ == "__main__":
    sys.exit(main(rows))
