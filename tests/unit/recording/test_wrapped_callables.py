"""Whatever can be called can be decorated, stays what it was, and is recorded for as long as it works."""

from __future__ import annotations

import asyncio
import functools
import inspect
import pickle
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ragtrace as rt
from ragtrace.errors import ConfigurationError

from .recorded import recorded

IDS = ["a", "b"]
SLEEP_S = 0.02


def work() -> None:
    """Takes a while, and runs an inner stage."""
    time.sleep(SLEEP_S)
    inner()


@rt.filter(name="inner")
def inner() -> list[str]:
    return ["x"]


def plain(query: str, k: int = 5) -> list[str]:
    """Finds."""
    work()
    return IDS


async def coroutine(query: str, k: int = 5) -> list[str]:
    """Finds."""
    work()
    return IDS


def generator(query: str, k: int = 5) -> Iterator[str]:
    """Finds."""
    work()
    yield from IDS


async def async_generator(query: str, k: int = 5) -> AsyncIterator[str]:
    """Finds."""
    work()
    for one in IDS:
        yield one


class Searcher:
    """Has every kind of method, decorated above and below, and can be called."""

    @rt.retrieve(name="stage")
    def method(self, query: str, k: int = 5) -> list[str]:
        work()
        return IDS

    @rt.retrieve(name="stage")
    @staticmethod
    def static_above(query: str, k: int = 5) -> list[str]:
        work()
        return IDS

    @staticmethod
    @rt.retrieve(name="stage")
    def static_below(query: str, k: int = 5) -> list[str]:
        work()
        return IDS

    @rt.retrieve(name="stage")
    @classmethod
    def class_above(cls, query: str, k: int = 5) -> list[str]:
        work()
        return IDS

    @classmethod
    @rt.retrieve(name="stage")
    def class_below(cls, query: str, k: int = 5) -> list[str]:
        work()
        return IDS

    def __call__(self, query: str, k: int = 5) -> list[str]:
        work()
        return IDS

    def bare(self, query: str, k: int = 5) -> list[str]:
        work()
        return IDS


class AsyncSearcher:
    async def __call__(self, query: str, k: int = 5) -> list[str]:
        work()
        return IDS


stage = rt.retrieve(name="stage")
decorated = stage(plain)
# Decorated under their own names: pickling finds them by name.
plain = decorated

EVERY: dict[str, Callable[..., Any]] = {
    "function": decorated,
    "coroutine": stage(coroutine),
    "generator": stage(generator),
    "async generator": stage(async_generator),
    "method": Searcher().method,
    "static above": Searcher().static_above,
    "static below": Searcher.static_below,
    "class above": Searcher().class_above,
    "class below": Searcher.class_below,
    "bound method": stage(Searcher().bare),
    "partial": stage(functools.partial(inspect.unwrap(plain), k=9)),
    "partial of a coroutine": stage(functools.partial(coroutine, k=9)),
    "callable object": stage(Searcher()),
    "async callable object": stage(AsyncSearcher()),
}


def run(target: Callable[..., Any], *args: Any, **kwargs: Any) -> list[str]:
    """Call it and take all it gives, whatever it is."""
    result = target(*args, **kwargs)
    if inspect.iscoroutine(result):
        return asyncio.run(_await(result))  # type: ignore[no-any-return]  # by the tests' own targets
    if inspect.isasyncgen(result):
        return asyncio.run(_all(result))
    return list(result)


async def _await(result: Any) -> Any:
    return await result


async def _all(result: Any) -> list[str]:
    return [one async for one in result]


@pytest.mark.parametrize("name", EVERY)
def test_it_is_recorded_with_its_output_its_inner_stage_and_its_whole_time(name: str, ragtrace_store: Path) -> None:
    """I-03, I-07"""
    with rt.query("where?"):
        assert run(EVERY[name], "where?") == IDS
    found = recorded(ragtrace_store)
    outer, within = found.stage("stage"), found.stage("inner")
    assert outer.ids() == IDS
    assert outer.row["k"] == (9 if "partial" in name else 5)
    assert outer.row["query_text"] == "where?"
    assert within.row["parent_stage_id"] == outer.row["stage_id"]
    assert within.row["query_id"] == outer.row["query_id"] == found.query()["query_id"]
    assert outer.row["duration_ns"] >= SLEEP_S * 1e9


@pytest.mark.parametrize("name", EVERY)
def test_it_works_the_same_when_nothing_is_recorded(name: str) -> None:
    assert run(EVERY[name], "where?") == IDS


@pytest.mark.parametrize("target", [coroutine, generator, async_generator, inspect.unwrap(plain)])
def test_its_kind_signature_name_and_docstring_stay(target: Callable[..., Any]) -> None:
    """I-30"""
    wrapped = rt.retrieve(target)
    for ask in (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction):
        assert ask(wrapped) == ask(target)
    assert inspect.signature(wrapped) == inspect.signature(target)
    assert (wrapped.__name__, wrapped.__doc__, wrapped.__module__) == (
        target.__name__,
        target.__doc__,
        target.__module__,
    )
    assert wrapped.__annotations__ == target.__annotations__


def test_a_partial_of_a_coroutine_is_still_told_as_one() -> None:
    assert inspect.iscoroutinefunction(EVERY["partial of a coroutine"])


def test_a_decorated_function_pickles_by_its_name() -> None:
    """I-30"""
    assert pickle.loads(pickle.dumps(plain)) is plain


@pytest.mark.parametrize("name", ["partial of a coroutine", "callable object"])
def test_partials_and_objects_pickle_with_their_stage(name: str, ragtrace_store: Path) -> None:
    copy = pickle.loads(pickle.dumps(EVERY[name]))
    with rt.query("where?"):
        assert run(copy, "where?") == IDS
    assert recorded(ragtrace_store).stage("stage").ids() == IDS


# Python 3.13 says that a later one will bind partials, decorated or not.
@pytest.mark.filterwarnings("ignore:functools.partial will be a method descriptor:FutureWarning")
def test_a_decorated_callable_in_a_class_binds_no_self() -> None:
    class Service:
        search = rt.retrieve(Searcher())
        ask = rt.retrieve(functools.partial(coroutine, k=2))

    assert run(Service().search, "q") == IDS
    assert run(Service().ask, "q") == IDS


def test_attributes_of_a_callable_object_show_through() -> None:
    searcher = Searcher()
    searcher.size = 7  # type: ignore[attr-defined]
    assert rt.retrieve(searcher).size == 7  # type: ignore[attr-defined]


@pytest.mark.parametrize("target", [int, Searcher, "text", 7])
def test_classes_and_what_cannot_be_called_are_refused_at_decoration(target: Any) -> None:
    with pytest.raises(ConfigurationError):
        rt.retrieve(target)


@pytest.mark.parametrize(
    "arguments",
    [
        {"k": "many"},
        {"mode": "fast"},
        {"score_kind": "good"},
        {"name": 7},
        {"threshold": "high"},
        {"aside": "yes"},
        {"extract": 3},
    ],
)
def test_wrong_arguments_are_refused_at_decoration(arguments: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        rt.retrieve(**arguments)


def test_a_builtin_can_be_decorated(ragtrace_store: Path) -> None:
    with rt.query("q"):
        assert rt.rerank(sorted)(["b", "a"]) == ["a", "b"]
    assert recorded(ragtrace_store).stage("sorted").ids() == ["a", "b"]


def test_a_user_s_exception_passes_untouched_and_is_named(ragtrace_store: Path) -> None:
    error = ValueError("secret")

    @rt.rerank
    def broken(hits: list[str]) -> list[str]:
        raise error

    with pytest.raises(ValueError, match="secret") as caught, rt.query("q"):
        broken(["a"])
    assert caught.value is error
    found = recorded(ragtrace_store)
    assert (found.stage("broken").row["status"], found.stage("broken").row["error_type"]) == ("error", "ValueError")
    assert found.query()["status"] == "error"


def test_the_name_is_the_function_s_unless_one_is_given(ragtrace_store: Path) -> None:
    with rt.query("q"):
        rt.rerank(k=3)(inner)
        rt.filter(lambda: ["x"])()
    assert [stage.row["name"] for stage in recorded(ragtrace_store).stages] == ["<lambda>"]
