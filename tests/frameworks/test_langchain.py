"""LangChain and LangGraph, instrumented."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_classic.retrievers import EnsembleRetriever, MultiQueryRetriever, ParentDocumentRetriever
from langchain_classic.storage import InMemoryStore
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import BaseDocumentCompressor, BaseDocumentTransformer, Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_text_splitters import CharacterTextSplitter
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

import ragtrace as rt
from ragtrace.integrations.patching import family
from tests.frameworks import planted
from tests.frameworks.langchain_service import Vectors, chain
from tests.frameworks.planted import SLOW, ByHand, Parts
from tests.traced import Traced


@pytest.fixture
def _instrumented() -> Iterator[None]:
    rt.instrument("langchain")
    yield
    rt.uninstrument("langchain")


def by_hand() -> None:
    parts = ByHand()
    answer = chain(parts)
    for question in planted.QUESTIONS.values():
        with parts.query(question):
            assert answer.invoke(question) == "So it is."


def asked(ask: Callable[[Any, str], str]) -> Callable[[], None]:
    def service() -> None:
        answer = chain(Parts())
        for question in planted.QUESTIONS.values():
            assert ask(answer, question) == "So it is."

    return service


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, planted.Row]:
    """The verdicts of the decorated pipeline."""
    return planted.verdicts(tmp_path_factory.mktemp("hand"), by_hand)


def test_each_planted_loss_is_where_it_was_planted(expected: dict[str, planted.Row]) -> None:
    assert planted.places(expected) == planted.LOST


WAYS = {
    "invoke": lambda answer, question: answer.invoke(question),
    "stream": lambda answer, question: "".join(answer.stream(question)),
    "ainvoke": lambda answer, question: asyncio.run(answer.ainvoke(question)),
}


@pytest.mark.parametrize("way", ["ainvoke", pytest.param("invoke", marks=SLOW), pytest.param("stream", marks=SLOW)])
@pytest.mark.usefixtures("_instrumented")
def test_one_call_gives_the_verdicts_of_decorators(way: str, expected: dict[str, planted.Row], tmp_path: Path) -> None:
    assert planted.verdicts(tmp_path, asked(WAYS[way])) == expected


# ------------------------------------------------------------------------------------------------ what is hidden


class Fixed(BaseRetriever):
    """Returns what it was given."""

    found: list[Document]

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return list(self.found)


def a_store() -> InMemoryVectorStore:
    store = InMemoryVectorStore(Vectors())
    store.add_documents([Document(id=word, page_content=line) for word, line in planted.SENTENCES.items()])
    return store


def lists_of(trace: Traced, role: str) -> list[tuple[Any, ...]]:
    """Kind, name, id and score of the candidates in all lists of a role."""
    trace.merge()
    rows = trace.rows(
        "select s.kind, s.name, i.chunk_id, c.score from candidates as c join items as i using (item) join lists as l using (list_id) "
        "join stages as s on s.stage_id = l.stage_id where l.role = $1 order by s.start_no, l.list_id, c.rank",
        role,
    )
    return [(row["kind"], row["name"], row["chunk_id"], round(row["score"] or 0, 3)) for row in rows]


@pytest.mark.usefixtures("_instrumented")
def test_scores_that_a_retriever_drops_are_recorded(traced: Traced) -> None:
    with rt.query("q"):
        a_store().as_retriever(search_kwargs={"k": 1}).invoke("What about packing ?")
    assert ("retrieve", "InMemoryVectorStore", "packing", 1.0) in lists_of(traced, "out")


@pytest.mark.usefixtures("_instrumented")
def test_what_a_diverse_search_looked_at_and_left_is_considered(traced: Traced) -> None:
    with rt.query("q"):
        retriever = a_store().as_retriever(search_type="mmr", search_kwargs={"k": 2, "fetch_k": 5})
        retriever.invoke("What about packing ?")
    assert len(lists_of(traced, "considered")) == 5


@pytest.mark.usefixtures("_instrumented")
def test_fused_scores_are_those_of_the_fusion(traced: Traced) -> None:
    documents = [Document(id=word, page_content=word) for word in ("one", "two")]
    ensemble = EnsembleRetriever(retrievers=[Fixed(found=documents), Fixed(found=documents[1:])], weights=[0.5, 0.5])
    with rt.query("q"):
        ensemble.invoke("q")
    fused = [row[2:] for row in lists_of(traced, "out") if row[0] == "fuse"]
    assert fused == [("two", round(0.5 / 62 + 0.5 / 61, 3)), ("one", round(0.5 / 61, 3))]


@pytest.mark.usefixtures("_instrumented")
def test_a_cut_inside_a_retriever_of_ones_own_is_a_gap(traced: Traced) -> None:
    class Cutting(BaseRetriever):
        store: Any

        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return self.store.similarity_search(query, k=4)[2:]  # type: ignore[no-any-return]

    store = a_store()
    with rt.query("What about packing ?"):
        Cutting(store=store).invoke("What about packing ?")
    kinds = [row[:2] for row in lists_of(traced, "out")]
    assert kinds.count(("retrieve", "InMemoryVectorStore")) == 4
    assert kinds.count(("retrieve", "Cutting")) == 2


@pytest.mark.usefixtures("_instrumented")
def test_parents_are_an_expansion_of_the_children_that_were_found(traced: Traced) -> None:
    lines = CharacterTextSplitter(separator="\n", chunk_size=50, chunk_overlap=0)
    retriever = ParentDocumentRetriever(
        vectorstore=InMemoryVectorStore(Vectors()),
        docstore=InMemoryStore(),
        child_splitter=lines,
        parent_splitter=CharacterTextSplitter(separator="\n", chunk_size=150, chunk_overlap=0),
        search_kwargs={"k": 1},
    )
    retriever.add_documents([Document(page_content=planted.SOURCE, metadata={"source": planted.DOC_ID})])
    with rt.query("What about fusing ?", question_id="writing"):
        assert "writing" in retriever.invoke("What about fusing ?")[0].page_content
    traced.judge([one for one in planted.gold() if one["question_id"] == "writing"])
    (row,) = traced.rows("select verdict, candidate_coverage, final_coverage from stage_loss")
    assert row == {"verdict": "kept", "candidate_coverage": 0.0, "final_coverage": 1.0}
    assert [
        row["kind"] for row in traced.rows("select kind from stages where query_id is not null order by start_no")
    ] == [
        "retrieve",
        "expand",
    ]


@pytest.mark.usefixtures("_instrumented")
def test_queries_that_a_model_wrote_are_a_rewrite_and_their_union_a_fusion(traced: Traced) -> None:
    model = FakeListChatModel(responses=["What about packing ?\nWhat about fusing ?"])
    retriever = MultiQueryRetriever.from_llm(a_store().as_retriever(search_kwargs={"k": 1}), model)
    with rt.query("q"):
        assert len(retriever.invoke("q")) == 2
    traced.merge()
    rows = traced.rows("select kind, query_text from stages where query_id is not null order by start_no")
    assert [(row["kind"], row["query_text"]) for row in rows] == [
        ("rewrite", '["What about packing ?","What about fusing ?"]'),
        ("retrieve", "What about packing ?"),
        ("retrieve", "What about fusing ?"),
        ("fuse", None),
    ]


@pytest.mark.usefixtures("_instrumented")
def test_pages_that_a_loader_gives_are_one_text_and_its_chunks_lie_in_it(traced: Traced) -> None:
    class Pages(BaseLoader):
        def lazy_load(self) -> Iterator[Document]:
            for number, page in enumerate(("one two. same words.", "three four. same words.")):
                yield Document(page_content=page, metadata={"source": "a.pdf", "page": number})

    splitter = CharacterTextSplitter(separator=" ", chunk_size=11, chunk_overlap=0)
    splitter.split_documents(Pages().load())
    traced.merge()
    (page_of,) = {row["pages"] for row in traced.rows("select pages from parses")}
    assert page_of == "[[0,20],[21,44]]"
    rows = traced.rows("select distinct start_at, end_at from item_ranges where role = 'own' order by start_at")
    text = "one two. same words.\fthree four. same words."
    assert [text[row["start_at"] : row["end_at"]] for row in rows] == [
        "one two.", "same words.", "three four.", "same words.",
    ]  # fmt: skip


@pytest.mark.usefixtures("_instrumented")
@pytest.mark.parametrize("is_paired", [True, False])
def test_texts_written_with_their_vectors_are_in_the_index(is_paired: bool, traced: Traced) -> None:
    class Embedded(InMemoryVectorStore):
        """FAISS takes pairs, PGVector two lists."""

        def add_embeddings(self, texts: Any = None, text_embeddings: Any = None, **_: Any) -> list[str]:
            return ["a", "b"]

    texts, vectors = ["one two", "three four"], [[1.0], [0.5]]
    how = {"text_embeddings": list(zip(texts, vectors, strict=True))} if is_paired else {"texts": texts}
    assert Embedded(Vectors()).add_embeddings(**how, metadatas=[{"source": "a.txt"}] * 2) == ["a", "b"]
    traced.merge()
    rows = traced.rows("select chunk_id from index_writes where is_index order by chunk_id")
    assert [row["chunk_id"] for row in rows] == ["a", "b"]


# ------------------------------------------------------------------------------------------------ graphs and models


class State(TypedDict):
    question: str
    found: list[Document]
    answer: str


def a_graph(retriever: BaseRetriever) -> Any:
    graph = StateGraph(State)
    model = FakeListChatModel(responses=["yes", "So it is."])
    graph.add_node("route", lambda state: {"answer": str(model.invoke(state["question"]).content)})
    graph.add_node("find", lambda state: {"found": retriever.invoke(state["question"])})
    graph.add_node("say", lambda state: {"answer": model.invoke(str(state["found"][0].page_content)).content})
    for one, other in ((START, "route"), ("route", "find"), ("find", "say"), ("say", END)):
        graph.add_edge(one, other)
    return graph.compile()


@pytest.mark.parametrize("way", ["stream", pytest.param("invoke", marks=SLOW), pytest.param("ainvoke", marks=SLOW)])
@pytest.mark.usefixtures("_instrumented")
def test_a_graph_is_a_query_and_its_last_prompt_the_context(way: str, traced: Traced) -> None:
    graph = a_graph(a_store().as_retriever(search_kwargs={"k": 2}))
    given: Any = {"question": "What about packing ?"}
    config: Any = {"metadata": {"question_id": "q-7"}, "configurable": {"thread_id": "t-1"}}
    if way == "stream":
        last = list(graph.stream(given, config))[-1]["say"]
    else:
        last = graph.invoke(given, config) if way == "invoke" else asyncio.run(graph.ainvoke(given, config))
    assert last["answer"] == "So it is."
    traced.merge()
    (query,) = traced.rows("select question, question_id, session_id, n_stages from queries")
    assert query == {"question": given["question"], "question_id": "q-7", "session_id": "t-1", "n_stages": 3}
    rows = traced.rows("select kind, is_aside from stages where query_id is not null order by start_no")
    # The router's model is asked before anything was found: no answer can rest on it.
    assert [tuple(row.values()) for row in rows] == [("generate", True), ("retrieve", False), ("generate", False)]
    assert traced.rows("select final_how from query_flows") == [{"final_how": "only_generate"}]


@pytest.mark.usefixtures("_instrumented")
def test_a_chain_that_finds_nothing_and_asks_nobody_is_no_query(traced: Traced) -> None:
    assert (RunnableLambda(lambda text: text + "!") | StrOutputParser()).invoke("hm") == "hm!"
    traced.merge()
    assert traced.rows("select * from queries") == []


# ------------------------------------------------------------------------------------------------ the service comes first


@pytest.mark.usefixtures("_instrumented")
def test_what_a_retriever_raises_reaches_its_caller(traced: Traced) -> None:
    error = ValueError("no such index")

    class Broken(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            raise error

    for ask in (lambda: Broken().invoke("q"), lambda: asyncio.run(Broken().ainvoke("q"))):
        with pytest.raises(ValueError, match="no such index") as raised, rt.query("q"):
            ask()
        assert raised.value is error
    traced.merge()
    assert traced.rows("select status, error_type from stages") == [{"status": "error", "error_type": "ValueError"}] * 2


@pytest.mark.usefixtures("_instrumented")
def test_a_cancelled_retriever_is_cancelled(traced: Traced) -> None:
    class Slow(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return []

        async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            await asyncio.sleep(60)
            return []

    async def cancel() -> None:
        with rt.query("q"):
            task = asyncio.create_task(Slow().ainvoke("q"))
            await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(cancel())
    traced.merge()
    assert traced.rows("select status from stages") == [{"status": "cancelled"}]


def test_results_are_the_same_objects_with_and_without(traced: Traced) -> None:
    documents = [Document(page_content="one"), Document(page_content="two")]
    retriever = Fixed(found=documents)
    plain = retriever.invoke("q")
    rt.instrument("langchain")
    try:
        with rt.query("q"):
            found = retriever.invoke("q")
    finally:
        rt.uninstrument("langchain")
    assert all(one is other for one, other in zip(found, plain, strict=True))
    assert [one.model_dump() for one in found] == [one.model_dump() for one in documents]


def test_uninstrument_leaves_the_classes_as_they_were() -> None:
    def seen() -> dict[type, dict[str, Any]]:
        roots = (Runnable, BaseRetriever, VectorStore, BaseDocumentCompressor, BaseDocumentTransformer, BaseLoader)
        return {kind: dict(vars(kind)) for root in (*roots, BaseCrossEncoder) for kind in family(root)}

    before = seen()
    rt.instrument("langchain")
    rt.instrument("langchain")
    changed = [kind for kind, names in seen().items() if dict(vars(kind)) != before.get(kind, names)]
    assert BaseRetriever in changed
    rt.uninstrument("langchain")
    after = seen()
    for kind, names in before.items():
        assert {n: v for n, v in names.items() if not n.startswith("_abc")} == {
            n: v for n, v in after[kind].items() if not n.startswith("_abc")
        }


def test_a_class_made_meanwhile_is_recorded_then_and_plain_afterwards(traced: Traced) -> None:
    rt.instrument("langchain")

    class Late(BaseRetriever):
        def invoke(self, input: str, config: Any = None, **kwargs: Any) -> list[Document]:
            return [*super().invoke(input, config), Document(page_content="more")]

        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return [Document(page_content="one")]

    held = Late().invoke
    with rt.query("q"):
        assert len(held("q")) == 2
    rt.uninstrument("langchain")
    with rt.query("q"):
        assert len(held("q")) == len(Late().invoke("q")) == 2
    traced.merge()
    rows = traced.rows(
        "select s.name, count(*) as n from stages as s join lists using (stage_id) join candidates using (list_id) group by all"
    )
    assert rows == [{"name": "Late", "n": 2}]
