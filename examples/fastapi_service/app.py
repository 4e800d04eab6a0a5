"""The same service, traced: what differs from before.py is all it takes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

import ragtrace as rt
from passages import Hit, Store, read_handbook, split

K = 4
K_FINAL = 2
Search = Callable[[str, int], list[Hit]]
pool = ThreadPoolExecutor(max_workers=4)
store = Store()


def index_page(doc_id: str, text: str) -> None:
    with rt.document(doc_id):
        add(split_page(doc_id, text))


@rt.index(complete=True)
def add(passages: list[Hit]) -> None:
    store.add(passages)


@rt.chunk
def split_page(doc_id: str, text: str) -> list[Hit]:
    return split(doc_id, text)


@rt.retrieve(mode="lexical")
def by_words(question: str, k: int) -> list[Hit]:
    return store.by_words(question, k)


@rt.retrieve(mode="lexical")
def by_triples(question: str, k: int) -> list[Hit]:
    return store.by_triples(question, k)


async def in_pool(search: Search, question: str, k: int) -> list[Hit]:
    return await asyncio.get_running_loop().run_in_executor(pool, rt.carry(search), question, k)


@rt.fuse(k=K_FINAL)
def merge(*lists: list[Hit]) -> list[Hit]:
    """Reciprocal rank fusion."""
    scores: dict[str, float] = {}
    hits = {hit.id: hit for found in lists for hit in found}
    for found in lists:
        for rank, hit in enumerate(found, 1):
            scores[hit.id] = scores.get(hit.id, 0.0) + 1 / (60 + rank)
    return [hits[name] for name in sorted(scores, key=lambda name: (-scores[name], name))][:K_FINAL]


def prompt_of(question: str, hits: list[Hit]) -> str:
    passages = "\n\n".join(f"[{n}] {hit.text}" for n, hit in enumerate(hits, 1))
    return f"Answer from these passages only.\n\n{passages}\n\nQuestion: {question}"


@rt.generate
async def write_answer(prompt: str) -> AsyncIterator[str]:
    """Stands for the model: streams the first passage, word by word."""
    for word in prompt.partition("[1] ")[2].partition("\n")[0].split(" "):
        yield word + " "
        await asyncio.sleep(0)


@rt.query
async def answer(question: str) -> AsyncIterator[str]:
    found = await asyncio.gather(in_pool(by_words, question, K), in_pool(by_triples, question, K))
    prompt = prompt_of(question, merge(*found))
    async for token in write_answer(prompt):
        yield token


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    rt.configure("traces.duckdb", run="handbook-k4", service="handbook")
    for doc_id, text in read_handbook().items():
        index_page(doc_id, text)
    yield


app = FastAPI(lifespan=lifespan)


class Question(BaseModel):
    question: str


@app.post("/ask")
async def ask(body: Question) -> StreamingResponse:
    return StreamingResponse(answer(body.question), media_type="text/plain")
