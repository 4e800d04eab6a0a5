"""Whether a value is a list that an earlier stage of the query put out: by its object, then by the ids in it.

Reads ids only; what is not recognised here is read in full.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import TYPE_CHECKING, Any, NamedTuple

from ragtrace.recording.lists import Listed
from ragtrace.recording.shapes import plan_of

if TYPE_CHECKING:
    from ragtrace.recording.scopes import Scope

__all__ = ["Known", "earlier", "equal_outputs"]


class Known(NamedTuple):
    """What a recognised value equals."""

    same_as: Sequence[int]
    ids: Sequence[Any]


def earlier(scope: Scope, value: Any) -> Known | None:
    """The earlier outputs a list equals; None when it is empty, unknown, or must be read in full to tell. Never raises."""
    if type(value) is not list or not value or not scope.outputs:
        return None
    output = scope.by_object.get(id(value))
    # Its items are alive, so nothing else can have taken their places: identity is proof, and a quarter of the cost.
    if (
        output is not None
        and output.items is not None
        and len(value) == len(output.items)
        and all(map(is_, value, output.items))
    ):
        return Known((output.list_id,), output.ids)
    try:
        ids = _bare_ids(value)
    except Exception:  # items that differ, or raise: they are read with more care
        return None
    if ids is None:
        return None
    same_as = equal_outputs(scope.outputs, ids, id(value))
    return Known(same_as, ids) if same_as else None


def equal_outputs(outputs: Sequence[Listed], ids: Sequence[Any], object_id: int) -> Sequence[int]:
    """The outputs with these ids: that one whose very object it is, else every one, latest first.

    The first one's rows stand for the list: of equal lists the latest is the likelier, and what it cut is cut.
    """
    equal = []
    for output in reversed(outputs):
        # A string's list is found when the query ends; what failed to be read equals nothing.
        if output.ids == ids and output.columns is not None and output.string is None:
            if output.object_id == object_id:
                return (output.list_id,)
            if ids and not output.is_off:  # that two lists are both empty tells nothing
                equal.append(output.list_id)
    return equal


def _bare_ids(items: list[Any]) -> Sequence[Any] | None:
    first = items[0]
    kind = type(first)
    if kind is str:
        ids = items
    elif kind is tuple:
        if type(first[0]) is not str:
            return None
        ids = [item[0] for item in items]
    elif kind is list:
        return None  # a list of lists
    else:
        plan = plan_of(first)
        if plan is None or plan.id is None:
            return None
        source, getter = plan.id
        ids = list(map(getter, plan.made(items)[source] if source else items))
        if type(ids[0]) is not str:
            return None
    # Refuses whatever is not a string: only strings are compared, never what the service made.
    "\0".join(ids)
    return ids
