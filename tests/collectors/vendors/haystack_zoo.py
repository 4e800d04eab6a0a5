"""The zoo as a Haystack pipeline."""

from haystack import Document, Pipeline, component
from haystack.components.builders import PromptBuilder
from zoo import QUESTION, RETRIEVED


def _documents(rows):
    return [Document(id=row["id"], content=row["content"], meta=row["metadata"], score=row["score"]) for row in rows]


@component
class ZooRetriever:
    """Finds the first five."""

    @component.output_types(documents=list[Document])
    def run(self, query: str, top_k: int = 5):
        """Five of them."""
        return {"documents": _documents(RETRIEVED)[:top_k]}


@component
class ZooRanker:
    """Keeps three."""

    @component.output_types(documents=list[Document])
    def run(self, query: str, documents: list[Document], top_k: int = 3):
        """Three of them."""
        return {"documents": documents[:top_k]}


@component
class ZooGenerator:
    """Says something."""

    @component.output_types(replies=list[str])
    def run(self, prompt: str):
        """The same for all."""
        return {"replies": ["six apples"]}


TEMPLATE = "Answer from this:\n{% for one in documents[:2] %}{{ one.content }}\n\n{% endfor %}Question: {{ question }}"


def ask():
    """One question."""
    pipeline = Pipeline()
    pipeline.add_component("dense", ZooRetriever())
    pipeline.add_component("ranker", ZooRanker())
    pipeline.add_component("prompt", PromptBuilder(TEMPLATE, required_variables=["documents", "question"]))
    pipeline.add_component("model", ZooGenerator())
    pipeline.connect("dense.documents", "ranker.documents")
    pipeline.connect("ranker.documents", "prompt.documents")
    pipeline.connect("prompt.prompt", "model.prompt")
    return pipeline.run({"dense": {"query": QUESTION}, "ranker": {"query": QUESTION}, "prompt": {"question": QUESTION}})
