"""Methods of foreign classes replaced in place, in subclasses that come later too, and put back exactly."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from threading import RLock
from typing import Any
from weakref import WeakKeyDictionary

from ragtrace import guard
from ragtrace.recording import wrapping

__all__ = ["Doors", "Patches", "family"]

Doors = Callable[[type, str], "wrapping.Door | None"]
"""The door for a method that a class defines, by class and name; None: the method is left alone."""


class Patches:
    """What was replaced. Thread-safe."""

    def __init__(self) -> None:
        self.is_on = False
        """Whether wrappers that somebody still holds (a bound method in a chain) record."""
        self._lock = RLock()
        self._found: WeakKeyDictionary[type, dict[str, tuple[Any, Any]]] = WeakKeyDictionary()
        """By class and name: what stood there, and what stands there now; `_NOTHING` where it was inherited."""

    def follow(self, base: type, doors: Doors) -> None:
        """Wrap the methods of a class and of its subclasses, those still to be defined included."""
        for kind in family(base):
            self.wrap(kind, doors)
        inherited = vars(base).get("__init_subclass__")

        def __init_subclass__(cls: type, /, **arguments: Any) -> None:  # it takes that one's place
            if inherited is not None:
                inherited.__get__(None, cls)(**arguments)
            else:
                super(base, cls).__init_subclass__(**arguments)  # type: ignore[arg-type]  # any class
            if self.is_on:
                try:
                    self.wrap(cls, doors)
                except Exception as error:  # a class that cannot be patched is still the service's class
                    guard.swallow(error, "instrument")

        self.replace(base, "__init_subclass__", classmethod(__init_subclass__))

    def wrap(self, kind: type, doors: Doors) -> None:
        """Wrap those methods that the class itself defines and for which there is a door."""
        for name, method in list(vars(kind).items()):
            if getattr(method, "__isabstractmethod__", False) or not callable(getattr(method, "__func__", method)):
                continue
            door = doors(kind, name)
            if door is not None:
                self.replace(kind, name, wrapping.wrap(door, _function(method)))

    def restore(self) -> None:
        """Put everything back, but what somebody else has replaced in the meantime: there only our recording ends."""
        with self._lock:
            self.is_on = False
            for kind, names in list(self._found.items()):
                for name, (before, now) in names.items():
                    if vars(kind).get(name) is not now:
                        continue
                    if before is _NOTHING:
                        delattr(kind, name)
                    else:
                        setattr(kind, name, before)
            self._found.clear()

    def replace(self, kind: type, name: str, now: Any) -> None:
        """Put something in the place of a class's own attribute, once."""
        with self._lock:
            names = self._found.setdefault(kind, {})
            if name in names:
                return
            before = vars(kind).get(name, _NOTHING)
            setattr(kind, name, now)
            names[name] = before, vars(kind)[name]


def _function(method: Any) -> Any:
    """A method as a plain function of its kind, where some other library has put an object of its own around it."""
    if isinstance(method, (types.FunctionType, staticmethod, classmethod)):
        return method
    inner = inspect.unwrap(method)
    if inspect.iscoroutinefunction(inner):

        @functools.wraps(inner)
        async def called(self: Any, *args: Any, **kwargs: Any) -> Any:
            return await method.__get__(self, type(self))(*args, **kwargs)

        return called

    @functools.wraps(inner)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return method.__get__(self, type(self))(*args, **kwargs)

    return call


def family(base: type) -> list[type]:
    """A class and all its subclasses there are, each once, the class first."""
    found = [base]
    for kind in found:  # it grows while it is read
        known: list[type] = type.__subclasses__(kind)
        found.extend(one for one in known if one not in found)
    return found


_NOTHING = object()
