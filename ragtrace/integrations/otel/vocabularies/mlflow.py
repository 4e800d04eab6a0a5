"""MLflow: `mlflow.spanType`, inputs and outputs as JSON. Its values are JSON too, so a type stands in quotes."""

from __future__ import annotations

from ragtrace.integrations.otel.rules import List, Rule, Vocabulary

__all__ = ["VOCABULARY"]

_TYPE = "mlflow.spanType"
_INPUT = ("mlflow.spanInputs",)
_ITEM = {"metadata.doc_uri": "doc_id"}
_OUTPUT = List(("mlflow.spanOutputs", "mlflow.spanOutputs|documents", "mlflow.spanOutputs|*"), item=_ITEM)

VOCABULARY = Vocabulary(
    "MLflow",
    (
        Rule("retrieve", {_TYPE: ("retriever",)}, query=_INPUT, output=_OUTPUT, k=("mlflow.spanInputs|k",)),
        Rule(
            "rerank",
            {_TYPE: ("reranker",)},
            query=_INPUT,
            # Its conventions name no argument for the list that goes in.
            input=List(("mlflow.spanInputs|documents", "mlflow.spanInputs|*"), item=_ITEM),
            output=_OUTPUT,
            k=("mlflow.spanInputs|top_n", "mlflow.spanInputs|k"),
        ),
        Rule("generate", {_TYPE: ("chat_model", "llm")}, prompt=_INPUT),
        Rule("", {_TYPE: ("chain", "agent", "workflow", "task", "unknown")}, question=_INPUT),
    ),
    session=("mlflow.trace.session",),
    question_id=("mlflow.traceTag.question_id",),
    settles=True,
)
