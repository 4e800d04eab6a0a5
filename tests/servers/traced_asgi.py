"""A FastAPI service: plain answers, streamed ones, work after the answer, and a stage that hangs."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Annotated, Any

from fastapi import BackgroundTasks, Depends, FastAPI
from fastapi.responses import StreamingResponse

import ragtrace as rt

rt.configure()
app = FastAPI()

WORDS = [f"word {number}. " for number in range(20)]


@rt.retrieve
def dense(query: str) -> list[str]:
    return ["a", "b", "c"]


@rt.retrieve
def lazily(query: str) -> Iterator[tuple[str, float]]:
    for number in range(20):
        time.sleep(0.005)
        yield f"c{number}", 1 / (number + 1)


@rt.query
def answer(question: str) -> Iterator[str]:
    for number, _ in enumerate(lazily(question)):
        yield WORDS[number]


@rt.query
async def answer_later(question: str) -> AsyncIterator[str]:
    dense(question)
    async for word in generate(question):
        yield word


@rt.generate
async def generate(question: str) -> AsyncIterator[str]:
    for word in WORDS:
        await asyncio.sleep(0.005)
        yield word


@rt.query
async def retrieved(question: str) -> list[str]:
    """A dependency, decorated."""
    return dense(question)


@app.get("/ask")
async def ask(question: str, found: Annotated[list[str], Depends(retrieved)]) -> dict[str, Any]:
    return {"found": found, "pid": os.getpid()}


@app.get("/stream")
def stream(question: str) -> StreamingResponse:
    return StreamingResponse(answer(question))


@app.get("/stream_later")
async def stream_later(question: str) -> StreamingResponse:
    return StreamingResponse(answer_later(question))


@app.get("/background")
@rt.query
async def background(question: str, tasks: BackgroundTasks) -> dict[str, int]:
    tasks.add_task(rt.carry(dense), question)
    return {"pid": os.getpid()}


@app.get("/hang")
async def hang(question: str) -> None:
    with rt.query(question), rt.retrieve(name="hybrid") as hybrid:
        hybrid.output(dense(question))
        Path(os.environ["HANGING"]).touch()
        with rt.rerank(name="slow"):
            await asyncio.sleep(60)
