"""What a call says about its stage: k, threshold, query and the like, read from arguments of the same name.

All that the signature can tell is worked out at decoration, so that a call costs look-ups only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import Parameter, signature
from typing import Any, NamedTuple

__all__ = ["Argument", "Lookup", "Parameters"]

Argument = tuple[str | None, Any]
"""Name and value."""


class Lookup(NamedTuple):
    """Where a parameter's value stands in a call."""

    name: str
    position: int
    """Past every call's arguments for what can only be given by keyword."""
    default: Any

    def value(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """The value in this call, the default included; None when there is none."""
        if self.position < len(args):
            return args[self.position]
        return kwargs.get(self.name, self.default)


_KEYWORD_ONLY = 1 << 30


class Parameters:
    """The parameters of a wrapped function."""

    __slots__ = ("_first", "_lookups", "_names")

    def __init__(self, target: Callable[..., Any]) -> None:
        names: list[str | None] = []
        self._lookups: dict[str, Lookup] = {}
        try:
            found: Iterable[Parameter] = signature(target).parameters.values()
        except (ValueError, TypeError):
            found = ()  # a builtin without a signature: its arguments then have no names
        for parameter in found:
            if parameter.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD):
                position = len(names)
                names.append(parameter.name)
            elif parameter.kind is Parameter.KEYWORD_ONLY:
                position = _KEYWORD_ONLY
            else:
                continue
            default = None if parameter.default is Parameter.empty else parameter.default
            self._lookups[parameter.name] = Lookup(parameter.name, position, default)
        self._names = names
        # The object a method belongs to is no argument of the search.
        self._first = 1 if names and names[0] in ("self", "cls") else 0

    @property
    def is_method(self) -> bool:
        """Whether the first argument is the object or class it belongs to."""
        return bool(self._first)

    def find(self, *names: str) -> list[Lookup]:
        """The parameters of these names that there are, in this order."""
        return [self._lookups[name] for name in names if name in self._lookups]

    def arguments(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Sequence[Argument]:
        """The arguments given, in order, without `self` and `cls`."""
        names = self._names
        given: list[Argument] = list(zip(names, args))  # noqa: B905  # there may be fewer of either
        if len(args) > len(names):
            given.extend((None, value) for value in args[len(names) :])
        if self._first:
            del given[0]
        if kwargs:
            given.extend(kwargs.items())
        return given

    def first_text(self, lookups: Sequence[Lookup], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str | None:
        """The text among the arguments: that of the first of these parameters that has one, else the first string."""
        for lookup in lookups:
            value = lookup.value(args, kwargs)
            if isinstance(value, str):
                return value
        for _, value in self.arguments(args, kwargs):
            if isinstance(value, str):
                return value
        return None
