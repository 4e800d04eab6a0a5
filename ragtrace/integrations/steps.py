"""A framework's call as a stage run: what a door that is not a decorator of ours does. Never raises into the service."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ragtrace import guard
from ragtrace.recording import context
from ragtrace.recording.nodes import Node
from ragtrace.recording.parameters import Parameters
from ragtrace.recording.recorder import living
from ragtrace.recording.runs import Run
from ragtrace.recording.stages import CallPlan, Stage

__all__ = ["Call", "Door", "Step", "Surroundings", "begin", "own_query", "prompt_text", "surroundings", "tell"]


class Plan(NamedTuple):
    """What is known of a wrapped method."""

    parameters: Parameters
    name: str


class Call(NamedTuple):
    """One call of a wrapped method."""

    plan: Plan
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    @property
    def object(self) -> Any:
        """What the method belongs to."""
        return self.args[0] if self.args else None

    @property
    def name(self) -> str:
        """The method's name."""
        return self.plan.name

    def value(self, *names: str) -> Any:
        """The argument of the first of these names that is there and not None, the default included."""
        for name in names:
            found = self.kwargs.get(name)
            if found is None:
                for lookup in self.plan.parameters.find(name):
                    found = lookup.value(self.args, self.kwargs)
            if found is not None:
                return found
        return None


Begin = Callable[[Call], Any]
"""The node of a call, or None for one that is no stage."""


class Door:
    """A door of a framework: what `begin` makes of a call is entered, and told how the call ends."""

    word = "instrument"

    def __init__(self, patches: Any, begin: Begin) -> None:
        self._patches = patches
        self._begin = begin

    def plan(self, target: Callable[..., Any]) -> Plan:
        """The parameters of the method."""
        return Plan(Parameters(target), getattr(target, "__name__", ""))

    def open(self, plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any], is_generator: bool) -> Any:
        """The node of one call, not current yet; None when it is none of ours. Never raises."""
        recorder = context.recorder
        if recorder is None or not self._patches.is_on:
            return None
        try:
            node = self._begin(Call(plan, args, kwargs))
            if node is not None and is_generator:
                node.prepare()
            return node
        except Exception as error:  # recording never raises into the service
            guard.swallow(error, f"{plan.name} start", recorder.losses)
            return None


Tell = Callable[[Run, Any], None]
"""Tells a run what its call returned."""


class Step:
    """A stage run around a framework's call, told what the call's result means when it comes."""

    def __init__(self, run: Run, told: Tell | None = None) -> None:
        self.run = run
        self._told = told
        self._items: list[Any] | None = None
        self.enter, self.leave = run.enter, run.leave
        self.pause, self.resume = run.pause, run.resume

    def prepare(self) -> None:
        """For a generator: what it yields is kept, and told as one list at its end."""
        self._items = []
        self.run.prepare()

    def collect(self, item: Any) -> None:
        """Keep one yielded item."""
        if self._items is not None:
            self._items.append(item)

    def finish(self, result: Any) -> None:
        """End well. Never raises."""
        try:
            if self._told is not None:
                self._told(self.run, result)
        except Exception as error:  # recording never raises into the service
            self.run.note(f"{type(error).__name__} while recording")
            guard.swallow(error, f"{self.run.stage.kind} stage", self.run.recorder.losses)
        self.run.exit(None)

    def finish_parts(self) -> None:
        """End well after the last yield. Never raises."""
        self.finish(self._items)

    def fail(self, error: BaseException) -> None:
        """End with the exception that left the call. Never raises."""
        self.run.exit(error)


class Surroundings:
    """Something of ours around a call that is no stage run: a value in a context variable while the call's body runs."""

    def __init__(self, variable: Any, value: Any, done: Callable[[Any], None] | None = None) -> None:
        self._variable = variable
        self._value = value
        self._done = done
        self._token: Any = None

    def enter(self) -> None:
        """Set the value here."""
        self._token = self._variable.set(self._value)

    def leave(self) -> None:
        """Take it away; harmless in another context."""
        token, self._token = self._token, None
        if token is not None:
            try:
                self._variable.reset(token)
            except (ValueError, RuntimeError):
                pass  # entered in another context, which nobody sees any more

    resume, pause = enter, leave

    def prepare(self) -> None:
        """Nothing to prepare."""

    def collect(self, item: Any) -> None:
        """Nothing is kept of what is yielded."""

    def finish(self, result: Any) -> None:
        """The call ended well. Never raises."""
        if self._done is None:
            return
        try:
            self._done(result)
        except Exception as error:  # recording never raises into the service
            recorder = context.recorder
            guard.swallow(error, "instrument", None if recorder is None else recorder.losses)

    def finish_parts(self) -> None:
        """Nothing: see `collect`."""

    def fail(self, error: BaseException) -> None:
        """Nothing is told of a call that failed."""


class Both:
    """A node with surroundings of ours in which it runs."""

    def __init__(self, outer: Surroundings, inner: Any) -> None:
        self._outer = outer
        self._inner = inner
        self.collect, self.fail = inner.collect, inner.fail
        self.finish, self.finish_parts, self.prepare = inner.finish, inner.finish_parts, inner.prepare

    def enter(self) -> None:
        """Both."""
        self._outer.enter()
        self._inner.enter()

    def leave(self) -> None:
        """Both, the inner one first."""
        self._inner.leave()
        self._outer.leave()

    def resume(self) -> None:
        """Both."""
        self._outer.resume()
        self._inner.resume()

    def pause(self) -> None:
        """Both, the inner one first."""
        self._inner.pause()
        self._outer.pause()


def surroundings(variable: Any, value: Any, inner: Any) -> Any:
    """A node that also sets a context variable while its body runs."""
    return Both(Surroundings(variable, value), inner)


@lru_cache(maxsize=1024)
def _stage(kind: str, name: str, arguments: tuple[tuple[str, Any], ...]) -> Stage:
    return Stage(kind, {"name": name, **dict(arguments)})


def begin(
    kind: str,
    name: str,
    call: Call | None,
    *,
    query: Any = None,
    inputs: Iterable[Any] = (),
    filter: Any = None,
    **values: Any,
) -> Run | None:
    """A run of a stage, not current yet; None when the step around is this very one, decorated a second time.

    `values` are the stage's arguments; what is None, or has no plain form, is left out. `inputs` are lists it takes.
    Raises what the recorder raises.
    """
    recorder = context.recorder
    if recorder is None:
        return None
    around = context.current.get()
    if call is not None:
        # One word for all methods of a step (sync, async, an override): the object tells them apart.
        plan = CallPlan(call.plan.parameters, [], [], False, 0, kind)
        if around is not None and not around.is_scope and around.is_same_step(kind, plan, call.args):
            return None
    said = {key: value for key, value in values.items() if type(value) in _PLAIN or _is_plain_tuple(value)}
    run = recorder.begin_run(_stage(kind, name, tuple(said.items())), around)
    if call is not None:
        run.call = plan, call.args
    if isinstance(query, str):
        run.query_text = query
    if filter is not None:
        run.set_value("filter", filter)
    for value in inputs:
        run.input(value)
    return run


_PLAIN = frozenset((str, int, float, bool))


def _is_plain_tuple(value: Any) -> bool:
    return type(value) is tuple and all(type(element) in _PLAIN for element in value)


def tell(run: Run, value: Any, rows: Sequence[Any] | None = None) -> None:
    """Tell a run its output: `value` as it was returned, or `rows` that say more of it, one for each of its items."""
    if rows is None:
        run.output(value)
        return
    run.output(rows)
    listed = run.lists[-1]
    # It goes on as the object that was returned, which is what the next stage is given.
    listed.object_id = id(value)
    listed.items = value[:] if type(value) is list else None


def own_query(question: str | None, question_id: Any = None, session: Any = None) -> Any:
    """A query to be entered, when none is open here and no document is in hand; else None."""
    recorder = context.recorder
    if recorder is None:
        return None
    around: Node | None = living(context.current.get())
    if around is not None and (around.document is not None or (around.query is not None and not around.query.is_ended)):
        return None
    arguments = {
        "question": question,
        "question_id": question_id if isinstance(question_id, str) else None,
        "session": session if isinstance(session, str) else None,
        "parent": None,
        "round": None,
        "served_from": None,
    }
    return OwnQuery(recorder.begin_block("query", arguments, None))


class OwnQuery:
    """A query around a framework's run; not written when the run was none, because no stage began in it."""

    def __init__(self, query: Any) -> None:
        self._query = query
        self.enter, self.leave, self.prepare = query.enter, query.leave, query.prepare
        self.pause, self.resume, self.collect = query.pause, query.resume, query.collect

    def finish(self, result: Any) -> None:
        """End well. Never raises."""
        if not self._query.leave_unwritten():
            self._query.finish(result)

    def finish_parts(self) -> None:
        """End well after the last yield. Never raises."""
        self.finish(None)

    def fail(self, error: BaseException) -> None:
        """End with the exception that left the run. Never raises."""
        if not self._query.leave_unwritten():
            self._query.fail(error)


def prompt_text(value: Any) -> str:
    """All that a model is given to read, as one text."""
    if isinstance(value, str):
        return value
    messages = value.to_messages() if hasattr(value, "to_messages") else value
    found = []
    for message in messages if isinstance(messages, (list, tuple)) else ():
        content = getattr(message, "content", None)
        if isinstance(message, (tuple, list)) and len(message) == 2:
            content = message[1]
        elif isinstance(message, dict):
            content = message.get("content")
        elif isinstance(message, str):
            content = message
        if isinstance(content, str):
            found.append(content)
        elif isinstance(content, list):
            found.extend(
                part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)
            )
    return "\n".join(found)
