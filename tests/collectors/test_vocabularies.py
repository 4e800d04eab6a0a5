"""Vocabularies of which no SDK could be run here, by their own names of attributes; and mapping files."""

from __future__ import annotations

import json

import pytest
from collectors.sent import send, span
from collectors.zoo import EXPECTED, GOLD, PROMPT, QUESTION, RETRIEVED
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as gen_ai

from ragtrace.errors import ConfigurationError
from ragtrace.integrations.otel import declared

OPERATION = gen_ai.GEN_AI_OPERATION_NAME


def lists(stages):
    """Kind, role, whether complete, and how many; None: equal to an earlier one, or nothing of it could be read."""
    return [
        (stage.row["kind"], one.role, one.is_complete, None if one.columns is None else len(one.columns.chunk_id))
        for stage in stages
        for one in stage.lists
    ]


def column(stages, name):
    return [stage.row.get(name) for stage in stages]


def scores(stages):
    (found,) = [list(one.columns.score) for stage in stages for one in stage.lists if one.role == "out"]
    return found


NEW_PROMPT = {"gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": PROMPT}]}])}
OLD_PROMPT = {"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": PROMPT}


def test_the_conventions_for_generative_ai(intake, rows):
    """Their rerank is not agreed on yet: by the names of those who went ahead, with the index into what was given.

    As JSON with the old names of a prompt, and as lists and mappings with the new ones.
    """
    for trace, form, prompt in ((1, json.dumps, OLD_PROMPT), (2, lambda plain: plain, NEW_PROMPT)):
        send(
            intake,
            span(1, "invoke_agent", {OPERATION: "invoke_agent", "gen_ai.input.messages": json.dumps(
                [{"role": "user", "parts": [{"type": "text", "content": QUESTION}]}])}, trace=trace),
            span(2, "retrieval zoo", {
                OPERATION: gen_ai.GenAiOperationNameValues.RETRIEVAL.value, gen_ai.GEN_AI_RETRIEVAL_QUERY_TEXT: QUESTION,
                gen_ai.GEN_AI_DATA_SOURCE_ID: "zoo", gen_ai.GEN_AI_RETRIEVAL_DOCUMENTS: form(RETRIEVED),
                "gen_ai.request.top_k": 5.0}, parent=1, at=(1, 10), trace=trace),
            span(3, "rerank", {
                OPERATION: "rerank", "gen_ai.rerank.query.text": QUESTION, "gen_ai.rerank.top_n": 3,
                "gen_ai.rerank.input_documents": form(RETRIEVED),
                "gen_ai.rerank.output_documents": form([{"index": n, "relevance_score": 0.9 - n / 10} for n in range(3)]),
            }, parent=1, at=(11, 20), trace=trace),
            span(4, "chat", {OPERATION: "chat", **prompt}, parent=1, at=(21, 90), trace=trace),
        )  # fmt: skip
    intake.write_all()

    assert (
        rows("select verdict, lost_kind, lost_at from stage_loss order by query_id, evidence_id", GOLD) == EXPECTED * 2
    )
    assert rows("select distinct kind, k, index_name from stages order by 1") == [
        ("generate", None, None), ("rerank", 3, None), ("retrieve", 5, "zoo")
    ]  # fmt: skip


def test_a_span_in_two_vocabularies_is_one_stage_with_the_ids_of_either(intake, told):
    """OpenInference has the texts, the conventions the ids: joined row by row."""
    texts = {f"retrieval.documents.{n}.document.content": row["content"] for n, row in enumerate(RETRIEVED)}
    ids = [{"id": row["id"], "score": row["score"]} for row in RETRIEVED]
    both = {
        "openinference.span.kind": "RETRIEVER", "input.value": QUESTION, **texts,
        OPERATION: "retrieval", gen_ai.GEN_AI_RETRIEVAL_DOCUMENTS: json.dumps(ids),
    }  # fmt: skip
    send(intake, span(1, "dense", both))
    intake.write_all()

    (stage,) = told()
    assert json.loads(stage.row["params"]) == {"written_by": "OpenInference, OpenTelemetry GenAI"}
    assert lists(told()) == [("retrieve", "out", True, 5)]
    assert list(stage.lists[0].columns.chunk_id) == [row["id"] for row in RETRIEVED]


def test_the_complete_one_of_two_forms_of_a_list_counts(intake, told):
    numbered = {f"retrieval.documents.{n}.document.id": f"c{n}" for n in (2, 3, 4)}
    both = {**numbered, OPERATION: "retrieval", gen_ai.GEN_AI_RETRIEVAL_DOCUMENTS: json.dumps(RETRIEVED)}
    send(intake, span(1, "dense", both, dropped=2))
    intake.write_all()

    assert lists(told()) == [("retrieve", "out", True, 5)]


def test_a_list_shorter_than_it_is_said_to_be_is_incomplete(intake, told):
    contexts = {
        "ai.observability.span_type": "retrieval",
        "ai.observability.retrieval.retrieved_contexts": [row["content"] for row in RETRIEVED],
        "ai.observability.retrieval.num_contexts": 8,
    }
    send(intake, span(1, "dense", contexts))
    intake.write_all()

    assert lists(told()) == [("retrieve", "out", False, 5)]
    assert told()[0].lists[0].n_declared == 8


def test_a_list_that_was_cut_at_a_length_limit_is_incomplete(intake, told):
    send(
        intake,
        span(1, "dense", {OPERATION: "retrieval", gen_ai.GEN_AI_RETRIEVAL_DOCUMENTS: json.dumps(RETRIEVED)[:200]}),
    )
    intake.write_all()

    assert lists(told()) == [("retrieve", "out", False, 0)]


def test_a_kind_key_wins_over_an_operation(intake, told):
    """LangSmith calls a retriever `embeddings` and a prompt template `chat`."""
    send(
        intake,
        span(1, "chain", {"langsmith.span.kind": "chain", "gen_ai.prompt": json.dumps({"input": QUESTION})}),
        span(2, "zoo", {"langsmith.span.kind": "retriever", OPERATION: "embeddings",
             "gen_ai.completion": json.dumps({"documents": RETRIEVED})}, parent=1, at=(1, 10)),
        span(3, "template", {"langsmith.span.kind": "prompt", OPERATION: "chat", "gen_ai.prompt": PROMPT}, parent=1, at=(11, 12)),
    )  # fmt: skip
    intake.write_all()

    assert column(told(), "kind") == ["retrieve"]


def test_milvus_distances_are_numbers_and_lost_events_are_missed(intake, told):
    """Traceloop writes them as texts, at most 128 events a span."""
    events = [
        ("db.search.result", {"db.search.result.id": f"c{n}", "db.search.result.distance": f"0.{n}5"}) for n in range(4)
    ]
    attributes = {"db.system": "milvus", "db.milvus.search.limit": 6}
    send(intake, span(1, "milvus.search", attributes, events=events, dropped_events=2))
    intake.write_all()

    assert lists(told()) == [("retrieve", "out", False, 4)]
    assert scores(told()) == [0.05, 0.15, 0.25, 0.35]
    row = told()[0].row
    assert (row["k"], row["score_kind"], row["mode"]) == (6, "distance", "ann")


def test_several_questions_in_one_search_leave_its_list_open(intake, told):
    events = [("db.query.result", {"db.query.result.id": f"c{n}", "db.query.result.distance": n / 4}) for n in range(4)]
    send(intake, span(1, "chroma.query", {"db.system": "chroma", "db.chroma.query.embeddings_count": 2}, events=events))
    intake.write_all()

    assert lists(told()) == [("retrieve", "out", False, 4)]


def test_coheres_reranker_by_traceloop_is_read_from_its_texts(intake, told):
    given = {f"gen_ai.prompt.{n}.{key}": text for n, row in enumerate(RETRIEVED)
             for key, text in (("role", "system"), ("content", row["content"]))}  # fmt: skip
    asked = {"gen_ai.prompt.5.role": "user", "gen_ai.prompt.5.content": QUESTION}
    kept = {f"gen_ai.completion.{n}.content": f"Doc {at}, Score: 0.{9 - n}" for n, at in enumerate((3, 1))}
    send(intake, span(1, "cohere.rerank", {"llm.request.type": "rerank", **given, **asked, **kept}))
    intake.write_all()

    assert lists(told()) == [("rerank", "in", True, 5), ("rerank", "out", True, 2)]
    assert column(told(), "query_text") == [QUESTION]
    assert scores(told()) == [0.9, 0.8]


def test_a_reranker_without_lists_is_a_stage_of_which_nothing_is_known(intake, told):
    """As Traceloop writes LlamaIndex's."""
    send(intake, span(1, "rerank", {"rerank.top_n": 3, OPERATION: "rerank"}))
    intake.write_all()

    assert (column(told(), "kind"), column(told(), "k")) == (["rerank"], [3])
    assert lists(told()) == [("rerank", "out", False, None)]


def test_haystacks_joiner_takes_several_lists(intake, told):
    given = [RETRIEVED[:3], RETRIEVED[2:]]
    attributes = {
        "haystack.component.type": "DocumentJoiner", "haystack.component.name": "joiner",
        "haystack.component.input": json.dumps({"documents": given}),
        "haystack.component.output": json.dumps({"documents": RETRIEVED}),
    }  # fmt: skip
    send(intake, span(1, "haystack.component.run", attributes))
    intake.write_all()

    assert lists(told()) == [("fuse", "in", True, 3), ("fuse", "in", True, 3), ("fuse", "out", True, 5)]
    assert column(told(), "name") == ["joiner"]


# ------------------------------------------------------------------ mapping files


@pytest.mark.parametrize("suffix", ["toml", "yaml"])
def test_a_mapping_file_names_what_follows_no_convention(tmp_path, suffix):
    text = {
        "toml": 'question_id = "app.q"\n[[span]]\nkind = "retrieve"\nwhen = { "app.step" = "search" }\nquery = "app.text"\n'
        'k = "app.k"\n[span.output]\npaths = ["app.hits|rows"]\nitem = { key = "id", "where.file" = "doc_id" }\n',
        "yaml": "question_id: app.q\nspan:\n- kind: retrieve\n  when: {app.step: search}\n  query: app.text\n  k: app.k\n"
        "  output:\n    paths: [app.hits|rows]\n    item: {key: id, where.file: doc_id}\n",
    }[suffix]
    path = tmp_path / f"mapping.{suffix}"
    path.write_text(text, encoding="utf-8")
    vocabulary = declared.read(path)

    from ragtrace.integrations.otel.rules import said
    from ragtrace.integrations.otel.spans import Span

    hits = json.dumps({"rows": [{"key": "a", "where": {"file": "d"}}]})
    attributes = {"app.step": "search", "app.text": "why?", "app.k": 4, "app.hits": hits, "app.q": "q-1"}
    found = said(Span(1, 2, 0, "x", "", 0, 1, attributes), [vocabulary])

    assert found is not None
    assert (found.kind, found.query, found.k, found.question_id) == ("retrieve", "why?", 4, "q-1")
    assert found.output is not None
    assert found.output.rows == [{"id": "a", "where": {"file": "d"}, "doc_id": "d"}]
    assert vocabulary.name == "mapping"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[[span]]\nkind = 'fetch'\nname = 'x'", "kind must be one of"),
        ("[[span]]\nkind = 'retrieve'", "needs `when`, `name` or `scope`"),
        ("[[span]]\nkind = 'retrieve'\nname = '('", "is no pattern"),
        ("[[span]]\nkind = 'retrieve'\nname = 'x'\nresult = 'y'", "span 1, result: unknown"),
        ("[[span]]\nkind = 'retrieve'\nname = 'x'\noutput = {}", "needs paths"),
        ("[[span]]\nkind = 'retrieve'\nname = 'x'\nk = 4", "must be a path"),
        ("spans = []", "spans: unknown"),
        ("kind =", "Invalid value"),
    ],
)
def test_a_mapping_file_with_a_mistake_says_where(tmp_path, text, why):
    path = tmp_path / "mapping.toml"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(ConfigurationError, match=why):
        declared.read(path)
