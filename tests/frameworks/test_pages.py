"""The pages on frameworks: their lines run, and their tables of versions say what the code says."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ragtrace as rt
from ragtrace.integrations import door
from ragtrace.store import database, merge

DOCS = Path(__file__).resolve().parents[2] / "docs"


def blocks(name: str) -> list[str]:
    """The Python blocks of a framework's page."""
    page = (DOCS / "frameworks" / f"{name}.md").read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", page, re.S)


def langchain() -> dict[str, Any]:
    from langchain_core.language_models import FakeListChatModel
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_core.runnables import RunnablePassthrough
    from langchain_core.vectorstores import InMemoryVectorStore

    from tests.frameworks.langchain_service import Lines, Loader, Vectors

    store = InMemoryVectorStore(Vectors())
    return {
        "RunnablePassthrough": RunnablePassthrough,
        "splitter": Lines(separator="\n", chunk_size=50, chunk_overlap=0),
        "loader": Loader(),
        "store": store,
        "retriever": store.as_retriever(),
        "prompt": ChatPromptTemplate.from_template("{context} {question}"),
        "model": FakeListChatModel(responses=["So it is."]),
    }


def llama_index() -> dict[str, Any]:
    from llama_index.core import VectorStoreIndex
    from llama_index.core.llms import MockLLM

    from tests.frameworks.llama_service import Lines, Reader, Vectors

    return {
        "VectorStoreIndex": VectorStoreIndex,
        "model": MockLLM(max_tokens=3),
        "parser": Lines(),
        "reader": Reader(),
        "vectors": Vectors(model_name="words"),
    }


def haystack() -> dict[str, Any]:
    from haystack import Pipeline

    from tests.frameworks import haystack_service as service

    store = service.InMemoryDocumentStore()
    return {
        "Pipeline": Pipeline,
        "converter": service.TextConverter(),
        "embedder": service.WordEmbedder(),
        "splitter": service.LineSplitter(),
        "writer": service.DocumentWriter(store),
        "retriever": service.InMemoryEmbeddingRetriever(store),
        "builder": service.PromptBuilder(service.TEMPLATE, required_variables="*"),
        "model": service.EchoGenerator(),
    }


GIVEN: dict[str, Callable[[], dict[str, Any]]] = {
    "langchain": langchain,
    "llama_index": llama_index,
    "haystack": haystack,
}


def test_every_framework_has_a_page_and_a_row_in_the_table() -> None:
    index = (DOCS / "frameworks.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| \[`(\w+)`\]", index, re.M) == list(door.FRAMEWORKS) == list(GIVEN)
    for name in door.FRAMEWORKS:
        oldest = door._module_of(name).SUPPORTED[0][1]
        row = next(line for line in index.splitlines() if line.startswith(f"| [`{name}`]"))
        assert f" {oldest} to " in row
        assert f" {oldest} " in (DOCS / "frameworks" / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", door.FRAMEWORKS)
def test_the_lines_of_a_page_run_and_record_a_query(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = GIVEN[name]()
    monkeypatch.setenv("RAGTRACE_MERGE", "off")
    try:
        for block in blocks(name):
            exec(compile(block, f"{name}.md", "exec"), names)
    finally:
        rt.uninstrument(name)
        rt.shutdown(10)
    assert {"chunk", "index", "retrieve", "generate"} <= stages_in(tmp_path / "traces.duckdb")


def stages_in(store: Path) -> set[str]:
    merge.merge(store)
    with database.connect(store, read_only=True) as connection:
        return {kind for (kind,) in connection.execute("select distinct kind from stages").fetchall()}
