"""OpenTelemetry's conventions for generative AI, by their new and their old names. Logfire writes these too."""

from __future__ import annotations

from ragtrace.integrations.otel.rules import List, Rule, Vocabulary

__all__ = ["PROMPT", "VOCABULARY"]

_OPERATION = "gen_ai.operation.name"

PROMPT = (
    "gen_ai.system_instructions+gen_ai.input.messages",
    "event:gen_ai.client.inference.operation.details|gen_ai.input.",
    # Until 1.36: one event a message, or all in one; before that, numbered attributes.
    "event:gen_ai.system.message+event:gen_ai.user.message",
    "event:gen_ai.content.prompt|gen_ai.",
    "gen_ai.prompt.{i}.",
    "gen_ai.prompt",
)
_RETRIEVE = Rule(
    "retrieve",
    {_OPERATION: ("retrieval", "retrieve"), "gen_ai.retrieval.documents": (), "gen_ai.retriever.results": ()},
    query=("gen_ai.retrieval.query.text", "gen_ai.retrieval.query"),
    # The last one is of Azure's tracer for LangChain.
    output=List(
        (
            "gen_ai.retrieval.documents",
            "event:gen_ai.retrieval.documents|gen_ai.retrieval.",
            "gen_ai.retriever.results",
        ),
        are_texts=True,
    ),
    # Between 1.40 and 1.41 the k of a retrieval stood where the sampler's stands.
    k=("gen_ai.retrieval.top_k", "gen_ai.request.top_k"),
    index=("gen_ai.data_source.id", "db.collection.name", "db.namespace"),
    model=("gen_ai.request.model",),
)
# No convention yet; these are the names of those who went ahead.
_RERANK = Rule(
    "rerank",
    {_OPERATION: ("rerank", "reranking"), "gen_ai.rerank.": ()},
    query=("gen_ai.rerank.query.text", "gen_ai.rerank.query", "gen_ai.input.messages"),
    input=List(
        ("gen_ai.rerank.input_documents", "gen_ai.rerank.documents", "gen_ai.rerank.candidates"),
        declared=("gen_ai.rerank.candidate.count",),
        are_texts=True,
    ),
    output=List(
        ("gen_ai.rerank.output_documents", "gen_ai.rerank.results"), scores=("gen_ai.rerank.scores",), number="index"
    ),
    k=("gen_ai.rerank.top_n", "rerank.top_n"),
    model=("gen_ai.request.model",),
)

VOCABULARY = Vocabulary(
    "OpenTelemetry GenAI",
    (
        _RETRIEVE,
        _RERANK,
        Rule(
            "generate",
            {_OPERATION: ("chat", "text_completion", "generate_content", "completion")},
            prompt=PROMPT,
            model=("gen_ai.request.model", "gen_ai.response.model"),
        ),
        Rule(
            "", {_OPERATION: ("invoke_agent", "invoke_workflow", "create_agent")}, question=("gen_ai.input.messages",)
        ),
    ),
    session=("gen_ai.conversation.id",),
)
