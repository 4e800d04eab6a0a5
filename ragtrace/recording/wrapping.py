"""One wrapper per kind of callable. Works out at decoration what can be known there; a call not recorded is a plain call.

Each wrapper is of the same kind as what it wraps (the kind is read from code flags), keeps its signature, name and
docstring, and pickles by name.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from ragtrace.errors import ConfigurationError
from ragtrace.recording import context, stepping

__all__ = ["Door", "wrap"]


class Door(Protocol):
    """What decorates: makes the node of a call."""

    @property
    def word(self) -> str:
        """The decorator's name, for messages."""

    def plan(self, target: Callable[..., Any]) -> Any:
        """What can be known of the target's calls at decoration."""

    def open(self, plan: Any, args: tuple[Any, ...], kwargs: dict[str, Any], is_generator: bool) -> Any:
        """The node of one call, not current yet; None when it cannot be recorded. Never raises."""


def wrap(door: Door, target: Any) -> Any:
    """The target with a recording wrapper around it, of the same kind.

    Raises: ConfigurationError for a class and for what cannot be called.
    """
    if isinstance(target, (staticmethod, classmethod)):
        return type(target)(wrap(door, target.__func__))
    if isinstance(target, type):
        raise ConfigurationError(
            f"@rt.{door.word} cannot decorate the class {target.__name__}: decorate the method that does the work"
        )
    if not callable(target):
        raise ConfigurationError(f"@rt.{door.word} decorates functions, not {type(target).__name__}")
    if isinstance(target, types.FunctionType):
        return _wrap_function(door, target, door.plan(target), target)
    if isinstance(target, types.MethodType):
        # Stays a bound method, which a class does not bind again.
        return types.MethodType(wrap(door, target.__func__), target.__self__)
    if isinstance(target, functools.partial):
        return _Partial._around(door, target)
    return _Callable(door, target)


def _wrap_function(door: Door, target: Callable[..., Any], plan: Any, kind_of: Any) -> Any:
    if inspect.isasyncgenfunction(kind_of):
        return stepping.async_generator(door, target, plan)
    if inspect.isgeneratorfunction(kind_of):
        return stepping.generator(door, target, plan)
    if inspect.iscoroutinefunction(kind_of):
        return _coroutine(door, target, plan)
    return _function(door, target, plan)


def _function(door: Door, target: Callable[..., Any], plan: Any) -> Callable[..., Any]:
    @functools.wraps(target)
    def stage(*args: Any, **kwargs: Any) -> Any:
        if context.recorder is None:
            return target(*args, **kwargs)
        node = door.open(plan, args, kwargs, False)
        if node is None:
            return target(*args, **kwargs)
        node.enter()
        try:
            result = target(*args, **kwargs)
        except BaseException as error:  # noted as the run's end, then the service's again
            node.leave()
            node.fail(error)
            raise
        node.leave()
        node.finish(result)
        return result

    return stage


def _coroutine(
    door: Door, target: Callable[..., Coroutine[Any, Any, Any]], plan: Any
) -> Callable[..., Coroutine[Any, Any, Any]]:
    @functools.wraps(target)
    async def stage(*args: Any, **kwargs: Any) -> Any:
        if context.recorder is None:
            return await target(*args, **kwargs)
        node = door.open(plan, args, kwargs, False)
        if node is None:
            return await target(*args, **kwargs)
        node.enter()
        try:
            result = await target(*args, **kwargs)
        except BaseException as error:  # noted as the run's end, then the service's again
            node.leave()
            node.fail(error)
            raise
        node.leave()
        node.finish(result)
        return result

    return stage


class _Partial(functools.partial):  # type: ignore[type-arg]  # holds any function
    """A partial of a wrapped function: still a partial, so it is looked through as one and binds no self."""

    _door: Any
    _target: Any

    @classmethod
    def _around(cls, door: Door, target: functools.partial[Any]) -> _Partial:
        made = cls(wrap(door, target.func), *target.args, **target.keywords)
        made._door, made._target = door, target
        return made

    def __reduce__(self) -> Any:
        return wrap, (self._door, self._target)


class _Callable:
    """A callable object, or a builtin, with a wrapper around its call; everything else of it shows through."""

    def __init__(self, door: Door, target: Any) -> None:
        self._door = door
        self._target = target
        self.__wrapped__ = target
        self.__doc__ = getattr(target, "__doc__", None)
        method = getattr(type(target), "__call__", None)  # noqa: B004  # the function itself is looked at
        self._call = _wrap_function(door, _Calling(target), door.plan(target), method)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name in ("_target", "_door", "_call"):
            raise AttributeError(name)  # not set yet: while it is unpickled or copied
        return getattr(self._target, name)

    def __reduce__(self) -> Any:
        return wrap, (self._door, self._target)


class _Calling:
    """A name for `target(...)` that functools.wraps may write to."""

    def __init__(self, target: Any) -> None:
        self._target = target

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._target(*args, **kwargs)
