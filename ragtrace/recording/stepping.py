"""Wrappers for generators, driven step by step, so that their node is current only while their own body runs.

A node held open over a `yield` would become the consumer's surroundings, and stay when the generator is left early.
The wrappers are native generator functions: `inspect` reads that from their code.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, Callable, Generator
from typing import TYPE_CHECKING, Any

from ragtrace.recording import context

if TYPE_CHECKING:
    from ragtrace.recording.wrapping import Door

__all__ = ["async_generator", "generator"]


def generator(
    door: Door, target: Callable[..., Generator[Any, Any, Any]], plan: Any
) -> Callable[..., Generator[Any, Any, Any]]:
    """A generator function that yields, takes, raises and returns what the target does; its node ends exactly once."""

    @functools.wraps(target)
    def stage(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        node = None if context.recorder is None else door.open(plan, args, kwargs, True)
        if node is None:
            return (yield from target(*args, **kwargs))
        inner = target(*args, **kwargs)
        step: Callable[[Any], Any] = inner.send
        argument: Any = None
        while True:
            node.resume()
            try:
                item = step(argument)
            except StopIteration as stop:
                node.pause()
                node.finish_parts()
                return stop.value
            except BaseException as error:  # noted as the run's end, then the service's again
                node.pause()
                node.fail(error)
                raise
            node.pause()
            node.collect(item)
            try:
                argument = yield item
                step = inner.send
            except GeneratorExit as left:
                node.resume()
                try:
                    inner.close()
                except BaseException as error:  # the body's own answer to being closed: noted, then the service's again
                    node.pause()
                    node.fail(error)
                    raise
                node.pause()
                node.fail(left)
                raise
            except BaseException as error:  # thrown in by the consumer: it goes on into the body
                step, argument = inner.throw, error

    return stage


def async_generator(
    door: Door, target: Callable[..., AsyncGenerator[Any, Any]], plan: Any
) -> Callable[..., AsyncGenerator[Any, Any]]:
    """The same for an async generator function; it may be closed by another task than the one that began it."""

    @functools.wraps(target)
    async def stage(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        node = None if context.recorder is None else door.open(plan, args, kwargs, True)
        if node is None:
            node = _NOTHING  # there is no `yield from` here: it is driven all the same
        inner = target(*args, **kwargs)
        step: Callable[[Any], Any] = inner.asend
        argument: Any = None
        while True:
            node.resume()
            try:
                item = await step(argument)
            except StopAsyncIteration:
                node.pause()
                node.finish_parts()
                return
            except BaseException as error:  # noted as the run's end, then the service's again
                node.pause()
                node.fail(error)
                raise
            node.pause()
            node.collect(item)
            try:
                argument = yield item
                step = inner.asend
            except GeneratorExit as left:
                node.resume()
                try:
                    await inner.aclose()
                except BaseException as error:  # the body's own answer to being closed: noted, then the service's again
                    node.pause()
                    node.fail(error)
                    raise
                node.pause()
                node.fail(left)
                raise
            except BaseException as error:  # thrown in by the consumer: it goes on into the body
                step, argument = inner.athrow, error

    return stage


class _Nothing:
    """A node that records nothing."""

    def resume(self) -> None:
        pass

    def pause(self) -> None:
        pass

    def collect(self, item: Any) -> None:
        pass

    def finish_parts(self) -> None:
        pass

    def fail(self, error: BaseException) -> None:
        pass


_NOTHING = _Nothing()
