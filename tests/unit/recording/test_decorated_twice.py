"""A step that is decorated at two places is one step."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import ragtrace as rt

from .recorded import recorded


class Base:
    @rt.retrieve(mode="ann")
    def search(self, query: str) -> list[str]:
        return ["a", "b", "c"]

    @rt.retrieve
    def stream(self, query: str) -> Iterator[str]:
        yield from ("a", "b")

    @rt.retrieve
    async def later(self, query: str) -> list[str]:
        return ["a"]

    @classmethod
    @rt.retrieve
    def of_class(cls, query: str) -> list[str]:
        return ["a"]


class Child(Base):
    @rt.retrieve(mode="lexical", name="dense")
    def search(self, query: str) -> list[str]:
        return super().search(query + "!")[:2]

    @rt.retrieve
    def stream(self, query: str) -> Iterator[str]:
        yield from super().stream(query)

    @rt.retrieve
    async def later(self, query: str) -> list[str]:
        return await super().later(query)

    @classmethod
    @rt.retrieve
    def of_class(cls, query: str) -> list[str]:
        return super().of_class(query)


def test_a_method_decorated_again_where_a_class_overrides_it_counts_once(ragtrace_store: Path) -> None:
    with rt.query("q"):
        assert Child().search("q") == ["a", "b"]
        assert list(Child().stream("q")) == ["a", "b"]
        assert Child.of_class("q") == ["a"]
        Base().search("q")
    names = [stage.row["name"] for stage in recorded(ragtrace_store).stages]
    assert names == ["dense", "stream", "of_class", "search"]
    assert recorded(ragtrace_store).stage("dense").ids() == ["a", "b"]


def test_so_does_an_overridden_coroutine(ragtrace_store: Path) -> None:
    import asyncio

    async def ask() -> list[str]:
        with rt.query("q"):
            return await Child().later("q")

    assert asyncio.run(ask()) == ["a"]
    assert recorded(ragtrace_store).stage("later").ids() == ["a"]


def test_two_decorators_above_one_function_count_once(ragtrace_store: Path) -> None:
    @rt.rerank
    @rt.rerank(k=2)
    def rerank(query: str, found: list[str]) -> list[str]:
        return found[::-1]

    with rt.query("q"):
        rerank("q", ["a", "b"])
    assert recorded(ragtrace_store).stage("rerank").ids() == ["b", "a"]


def test_another_object_s_method_and_a_recursion_are_steps_of_their_own(ragtrace_store: Path) -> None:
    class Fallback:
        def __init__(self, other: Base) -> None:
            self.other = other

        @rt.retrieve
        def search(self, query: str) -> list[str]:
            return self.other.search(query)

    @rt.retrieve
    def deeper(query: str, depth: int) -> list[str]:
        return deeper(query, depth - 1) if depth else ["a"]

    with rt.query("q"):
        Fallback(Base()).search("q")
        deeper("q", 2)
    found = recorded(ragtrace_store)
    assert len(found.all("search")) == 2 and len(found.all("deeper")) == 3
