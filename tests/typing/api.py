"""The public names as a type checker sees them: run through mypy strict and pyright, never executed by the tests."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, Generic, TypeVar

from typing_extensions import assert_type

import ragtrace as rt

T = TypeVar("T")


@rt.retrieve
def bare(query: str, k: int = 5) -> list[str]:
    return [query] * k


@rt.retrieve(mode="ann", k=50, score_kind="distance", ef=128)
def with_arguments(query: str) -> list[str]:
    return [query]


@rt.rerank
async def coroutine(query: str) -> list[int]:
    return [1]


@rt.generate
def generator(prompt: str) -> Iterator[str]:
    yield prompt


@rt.generate
async def async_generator(prompt: str) -> AsyncIterator[str]:
    yield prompt


@rt.filter
def generic(items: list[T]) -> list[T]:
    return items


class Service(Generic[T]):
    """Methods of every kind."""

    @rt.retrieve
    def method(self, query: str) -> list[str]:
        return [query]

    @staticmethod
    @rt.retrieve
    def static(query: str) -> int:
        return 1

    @classmethod
    @rt.retrieve
    def of_class(cls, query: str) -> int:
        return 1


assert_type(bare("q", k=3), list[str])
assert_type(with_arguments("q"), list[str])
assert_type(generator("p"), Iterator[str])
assert_type(async_generator("p"), AsyncIterator[str])
assert_type(generic([1]), list[int])
assert_type(Service[int]().method("q"), list[str])
assert_type(Service.static("q"), int)
assert_type(Service.of_class("q"), int)

found: Coroutine[Any, Any, list[int]] = coroutine("q")
bare(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
bare("q", unknown=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]

part: Callable[..., list[str]] = rt.retrieve(functools.partial(bare, k=2))


@rt.query
def ask(question: str) -> str:
    return question


@rt.query(session="s", round=2)
async def ask_later(question: str) -> str:
    return question


@rt.document(version="1")
def ingest(doc_id: str) -> None:
    return None


assert_type(ask("q"), str)
ingest("d")

with rt.query("q", question_id=7) as query:
    query.context([], carried=None)
    with rt.retrieve(name="dense", mode="ann", k=5, query="q") as stage:
        stage.input([])
        stage.output([])
        stage.considered([])
        stage.dropped("a", "acl", by="tenant")
    with rt.rerank as bare_block:
        bare_block.input([], source=stage)
with rt.query("q", parent=query, served_from=query):
    pass
with rt.document("d") as document:
    del document

assert_type(rt.carry(bare)("q", k=1), list[str])
assert_type(rt.flush(1.0), bool)
assert_type(rt.shutdown(), bool)
rt.configure("t.duckdb", run="r", capture_text="none", redact=str.upper, max_queue_bytes=1, merge="off")
rt.current_stage().dropped(7)
rt.inventory(index="main", chunk_ids=["a", 1])
rt.context([rt.Candidate("a", 0.5, ranges=[(0, 1)]), rt.Candidate(7)])
rt.Chunk(id="a", stands_for=[(0, 9)])


def again(query: str, k: int, filter: object) -> list[str]:
    return []


rt.probe.register("dense", search=again, exact=again, get=list, index_version=lambda: 1, max_k=10)
assert_type(rt.probe("t.duckdb", n_calls=1, seconds=0.5).n_proved, int)
rt.probe.sample(0.01, calls_per_minute=6)
assert_type(rt.probe.stop(), bool)
