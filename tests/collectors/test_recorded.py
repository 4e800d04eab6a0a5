"""What the vendors' own SDKs sent (`vendors/record.py`), taken in as it came: the verdicts of the same small service."""

from __future__ import annotations

from pathlib import Path

import pytest
from collectors.conftest import settings_of
from collectors.zoo import GOLD, QUESTION

from ragtrace.cli.opening import bring_up_to_date
from ragtrace.gold import loading
from ragtrace.integrations.otel import declared
from ragtrace.integrations.otel.vocabularies import VOCABULARIES
from ragtrace.store import database
from ragtrace_collectors import otlp
from ragtrace_collectors.intake import Intake

RECORDED = Path(__file__).parent / "recorded"
NAMES = sorted(path.stem for path in RECORDED.glob("*.jsonl"))
MAPPING = """
[[span]]
kind = "retrieve"
name = "retrieve"
when = { "logfire.span_type" = "span" }
query = "query"
output = "documents"

[[span]]
kind = "rerank"
name = "rerank"
query = "query"
input = "documents"
output = "kept"

[[span]]
kind = ""
when = { question = true }
question = "question"
"""
"""Logfire's spans say what their author put into them."""

# Every one of them found five passages and gave two to the model. Not all have a reranker in between.
KEPT = ("kept", None, None)
NEVER = ("lost", None, None)
RERANKED = [KEPT, ("lost", "rerank", "after"), ("lost", "rerank", "in"), NEVER]
RETRIEVED = [KEPT, ("lost", "retrieve", "after"), ("lost", "retrieve", "after"), NEVER]
EXPECTED = {
    "haystack_tracing": RERANKED,
    "langfuse_sdk": RERANKED,
    "langsmith_langchain": RETRIEVED,
    "logfire_sdk": RERANKED,
    "mlflow_tracing": RERANKED,
    "openinference_haystack": RERANKED,
    "openinference_langchain": RETRIEVED,
    "traceloop_langchain": RETRIEVED,
}


@pytest.fixture(scope="module")
def connection(tmp_path_factory):
    """All recordings in one store, each as a run of its name."""
    folder = tmp_path_factory.mktemp("recorded")
    store = folder / "traces.duckdb"
    (folder / "logfire.toml").write_text(MAPPING, encoding="utf-8")
    vocabularies = [declared.read(folder / "logfire.toml"), *VOCABULARIES]
    for name in NAMES:
        intake = Intake(settings_of(store)._replace(run=name), vocabularies if name == "logfire_sdk" else VOCABULARIES)
        for line in (RECORDED / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            request = otlp.request_of_json(line)
            intake.take(request, request.SerializeToString())
        intake.close()
    bring_up_to_date(store)
    with database.connect(store) as opened:
        loading.load_rows(opened, GOLD)
        yield opened


@pytest.fixture
def ask(connection):
    return lambda sql, name: connection.execute(sql, {"run": name}).fetchall()


LOSSES = "select verdict, lost_kind, lost_at from stage_loss where run = $run order by evidence_id"
STAGES = "from stages s join queries q using (query_id) where run = $run order by s.start_no"


@pytest.mark.parametrize("name", EXPECTED)
def test_a_vendors_spans_give_the_verdicts_of_the_service(name, ask):
    assert ask(LOSSES, name) == EXPECTED[name]
    assert ask("select question, status from queries where run = $run", name) == [(QUESTION, "ok")]


def test_a_vector_stores_events_are_a_list_with_distances(ask):
    """Chroma by Traceloop: no model, so the final context is what the search put out."""
    name = "traceloop_chroma"

    assert ask(f"select kind, name, mode, k, score_kind, is_higher_better {STAGES}", name) == [
        ("retrieve", "chroma.query", "ann", 4, "distance", False)
    ]
    found = "select c.rank, i.chunk_id, c.score from candidates c join items i using (item) join lists l using (list_id) join queries q on q.query_id = l.query_id"
    assert ask(f"{found} where run = $run order by 1", name) == [
        (1, "c0", 0.0), (2, "c1", 1.0), (3, "c2", 4.0), (4, "c3", 9.0)
    ]  # fmt: skip
    assert ask("select question from queries where run = $run", name) == [(QUESTION,)]


def test_texts_without_ids_are_known_by_what_they_say(ask):
    """TruLens writes bare texts, and the retrieval a second time in the conventions' names: it counts once."""
    name = "trulens_sdk"

    assert ask(f"select kind, params->>'written_by' {STAGES}", name) == [
        ("retrieve", "TruLens, OpenTelemetry GenAI"),
        ("rerank", "TruLens"),
        ("generate", "TruLens"),
    ]
    sizes = """
    select s.kind, l.role, coalesce(r.n_candidates, l.n_candidates)
    from stages s join queries q using (query_id) join lists l using (stage_id)
    left join lists r on r.list_id = l.same_as_list_id
    where run = $run order by s.start_no, l.role
    """
    assert ask(sizes, name) == [
        ("retrieve", "out", 5),
        ("rerank", "in", 5),
        ("rerank", "out", 3),
        ("generate", "in", 2),
    ]
    assert set(ask(LOSSES, name)) == {("unobserved", None, None)}
