"""Logfire's spans, which say what a team puts into them: here, documents as it would log them."""

import sys

import logfire
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from zoo import PROMPT, QUESTION, RETRIEVED

logfire.configure(
    send_to_logfire=False, console=False, inspect_arguments=False,
    additional_span_processors=[BatchSpanProcessor(OTLPSpanExporter(f"{sys.argv[1]}/v1/traces"))],
)  # fmt: skip
with logfire.span("answer {question}", question=QUESTION):
    with logfire.span("retrieve", query=QUESTION) as span:
        span.set_attribute("documents", RETRIEVED)
    with logfire.span("rerank", query=QUESTION, documents=RETRIEVED) as span:
        span.set_attribute("kept", RETRIEVED[:3])
    with logfire.span(
        "chat",
        **{
            "gen_ai.operation.name": "chat",
            "gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": PROMPT}]}],
        },
    ):
        pass
logfire.shutdown()
