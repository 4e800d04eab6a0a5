"""TruLens' decorator around a small app, exported over OTLP."""

import os
import sys

os.environ["TRULENS_OTEL_TRACING"] = "1"
from trulens.apps.app import TruApp
from trulens.core import TruSession
from trulens.core.otel.instrument import instrument
from trulens.otel.semconv.trace import SpanAttributes
from zoo import PROMPT, QUESTION, RETRIEVED

Kind = SpanAttributes.SpanType
Retrieval = SpanAttributes.RETRIEVAL
session = TruSession(
    database_url="sqlite:///:memory:",
    otel_exporter="otlp",
    otlp_endpoint=f"{sys.argv[1]}/v1/traces",
    otlp_protocol="http/protobuf",
)


class Zoo:
    """The service."""

    @instrument(
        span_type=Kind.RETRIEVAL,
        attributes={Retrieval.QUERY_TEXT: "query", Retrieval.RETRIEVED_CONTEXTS: "return"},
    )
    def dense(self, query):
        return [row["content"] for row in RETRIEVED]

    @instrument(
        span_type=Kind.RERANKER,
        attributes=lambda ret, exception, *args, **kwargs: {
            "ai.observability.reranking.query_text": QUESTION,
            "ai.observability.reranking.input_context_texts": kwargs["texts"],
            "ai.observability.reranking.output_context_texts": ret,
            "ai.observability.reranking.top_n": 3,
        },
    )
    def rerank(self, texts):
        return texts[:3]

    @instrument(span_type=Kind.GENERATION)
    def model(self, prompt):
        return "six apples"

    @instrument(span_type=Kind.RECORD_ROOT)
    def answer(self, question):
        self.rerank(texts=self.dense(question))
        return self.model(PROMPT)


zoo = Zoo()
app = TruApp(zoo, app_name="zoo", app_version="1", main_method=zoo.answer)
with app:
    zoo.answer(QUESTION)
session.force_flush()
