"""The stage names: one object each, which works bare, with arguments, and in `with`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar, overload

from ragtrace import attributes, guard
from ragtrace.errors import ConfigurationError
from ragtrace.recording import blocks, context, wrapping
from ragtrace.recording.parameters import Lookup, Parameters
from ragtrace.recording.unrecorded import NOT_RECORDED
from ragtrace.recording.values import as_float, as_int, as_json, as_name

if TYPE_CHECKING:
    from ragtrace.recording.runs import Run

__all__ = ["Stage"]

P = ParamSpec("P")
R = TypeVar("R")

# Said here too: `model`, where all the words are, is loaded when a word is looked up.
_INGEST_KINDS = ("ingest", "parse", "chunk", "index")

# Read from the call when the decorator does not say them.
_FROM_CALL = ("mode", "k", "threshold", "budget_tokens", "index", "index_version", "filter", "sub_query", "round")

# Written with each run: they differ from run to run, or change while the service runs.
_EXTRA = ("filter", "sub_query", "index_version")

_SEARCH_STRINGS = ("generate", "compress", "truncate")
_ASKED_KINDS = ("retrieve", "rerank")
_QUERY_NAMES = ("query", "question", "q", "query_text", "text")


class CallPlan(NamedTuple):
    """What was worked out at decoration for the calls of one function."""

    parameters: Parameters
    values: list[Lookup]
    """Parameters of the stage that the call may say."""
    texts: list[Lookup]
    """Parameters that may hold what is asked."""
    is_asked: bool
    """Whether the stage is asked something."""
    asked_at: int
    """The position of the first of these."""
    function: str | None
    """Its name, to tell a step that is decorated again where a class overrides it."""


class Stage:
    """A kind of step of a RAG service, as a decorator and as a context manager.

    Bare: `@rt.rerank`. With arguments: `@rt.retrieve(mode="ann", k=50)`. As a block: `with rt.retrieve(k=50) as stage:`,
    which gives a `Run` to tell lists to. Works on functions, coroutines, generators, methods, partials and callables.
    """

    def __init__(self, kind: str, arguments: dict[str, Any] | None = None) -> None:
        self.kind = kind
        self.is_ingest = kind in _INGEST_KINDS
        self.searches_strings = kind in _SEARCH_STRINGS
        """Whether a string that goes in may be a prompt, to be searched for candidates."""
        self._arguments = arguments or {}
        given = dict(self._arguments)
        self._is_named = given.get("name") is not None
        self.name: str = _checked("name", given.pop("name", None), str) or kind
        self.extract = given.pop("extract", None)
        if self.extract is not None and not callable(self.extract):
            raise ConfigurationError(f"{kind}: extract must be a function of one item", argument="extract")
        self.query = _checked("query", given.pop("query", None), str)
        self.is_aside = bool(_checked("aside", given.pop("aside", False), bool))
        row: dict[str, Any] = {
            "kind": kind,
            "name": self.name,
            "mode": _choice("mode", given.pop("mode", None), "MODES"),
            "k": _number("k", given.pop("k", None), as_int),
            "threshold": _number("threshold", given.pop("threshold", None), as_float),
            "budget_tokens": _number("budget_tokens", given.pop("budget_tokens", None), as_int),
            "score_kind": _choice("score_kind", given.pop("score_kind", None), "SCORE_KINDS"),
            "is_higher_better": _checked("higher_is_better", given.pop("higher_is_better", None), bool),
            "index_name": _number("index", given.pop("index", None), as_name),
            "is_index_complete": _checked("complete", given.pop("complete", None), bool),
            "index_version": _number("index_version", given.pop("index_version", None), as_name),
            "sub_query": _number("sub_query", given.pop("sub_query", None), as_name),
            "round": _number("round", given.pop("round", None), as_int),
            "is_final": _checked("final", given.pop("final", None), bool),
            "is_answer": _checked("answer", given.pop("answer", None), bool),
        }
        filters = given.pop("filter", None)
        if filters is not None:
            row["filter"] = as_json(filters)
        if given:
            row["params"] = as_json(given)
        said = {"index" if name == "index_name" else name for name, value in row.items() if value is not None}
        self.extra = {name: row[name] for name in _EXTRA if row.get(name) is not None}
        self.row = {name: value for name, value in row.items() if value is not None and name not in self.extra}
        self.repeated: dict[Any, bytes] = {}
        """Rows of this stage's runs as they are written, kept by what may differ; filled and bounded by the runs."""
        self.from_call = tuple(name for name in _FROM_CALL if name not in said)
        self.attributes = _span_attributes(self.row)

    # ---------------------------------------------------------------- decorator

    @overload
    def __call__(self, target: Callable[P, R], /) -> Callable[P, R]: ...

    @overload
    def __call__(
        self,
        /,
        *,
        name: str | None = ...,
        mode: str | None = ...,
        k: int | None = ...,
        threshold: float | None = ...,
        budget_tokens: int | None = ...,
        score_kind: str | None = ...,
        higher_is_better: bool | None = ...,
        index: str | None = ...,
        index_version: str | int | None = ...,
        complete: bool | None = ...,
        filter: Any = ...,
        query: str | None = ...,
        sub_query: str | int | None = ...,
        round: int | None = ...,
        aside: bool = ...,
        final: bool | None = ...,
        answer: bool | None = ...,
        extract: Callable[[Any], Any] | None = ...,
        **params: Any,
    ) -> Stage: ...

    def __call__(self, target: Any = None, /, **arguments: Any) -> Any:
        """The target, recorded; without one, this stage with arguments.

        Raises: ConfigurationError for a wrong type of argument, a class, or what cannot be called.
        """
        if target is None:
            return Stage(self.kind, {**self._arguments, **arguments})
        if arguments:
            raise ConfigurationError(f"@rt.{self.kind} takes a function or arguments, not both")
        return wrapping.wrap(self if self._is_named else self._named_after(target), target)

    def __repr__(self) -> str:
        return f"<ragtrace stage {self.kind}>"

    def __reduce__(self) -> Any:
        return Stage, (self.kind, self._arguments)

    @property
    def word(self) -> str:
        """The decorator's name, for messages."""
        return self.kind

    def _named_after(self, target: Any) -> Stage:
        inner = target
        while True:
            found = getattr(inner, "__func__", None) or getattr(inner, "func", None)
            if found is None:
                break
            inner = found
        name = getattr(inner, "__name__", None)
        if not isinstance(name, str):
            name = type(inner).__name__
        return Stage(self.kind, {**self._arguments, "name": name})

    def plan(self, target: Callable[..., Any]) -> CallPlan:
        """Where the calls of a function say what the decorator did not."""
        parameters = Parameters(target)
        asked = _QUERY_NAMES if self.kind in _ASKED_KINDS and self.query is None else ()
        texts = parameters.find(*asked)
        return CallPlan(
            parameters,
            parameters.find(*self.from_call),
            texts,
            bool(asked),
            texts[0].position if texts else 0,
            getattr(target, "__name__", None),
        )

    def open(self, plan: CallPlan, args: tuple[Any, ...], kwargs: dict[str, Any], is_generator: bool) -> Any:
        """The run of one call, not current yet; None when it cannot be recorded. Never raises."""
        recorder = context.recorder
        if recorder is None:
            return None
        around = context.current.get()
        if around is not None and not around.is_scope and around.is_same_step(self.kind, plan, args):
            return None
        try:
            run = recorder.begin_run(self, around)
            run.call = plan, args
            if is_generator:
                run.is_generator = True
                run.prepare()
        except Exception as error:  # recording never raises into the service
            guard.swallow(error, f"{self.kind} start", recorder.losses)
            return None
        run.take_call(plan, args, kwargs)
        return run

    # ---------------------------------------------------------------- with

    def __enter__(self) -> Run:
        recorder = context.recorder
        if recorder is None:
            return NOT_RECORDED  # type: ignore[no-any-return]  # takes the same calls
        try:
            run = recorder.begin_run(self, context.current.get())
            run.query_text = self.query
            run.enter()
        except Exception as error:  # recording never raises into the service
            guard.swallow(error, f"{self.kind} start", recorder.losses)
            return NOT_RECORDED  # type: ignore[no-any-return]  # takes the same calls
        blocks.entered(self, run)
        return run

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        run = blocks.left(self)
        if run is not None:
            run.leave()
            run.exit(error)


def _span_attributes(row: dict[str, Any]) -> dict[str, Any]:
    """What a span says from its start, conventions' names first: a small limit keeps these."""
    found = {
        attributes.OPERATION_NAME: attributes.OPERATIONS.get(row["kind"]),
        attributes.STAGE_KIND: row["kind"],
        attributes.TOP_K: row.get("k") if row["kind"] == "retrieve" else None,
        attributes.DATA_SOURCE_ID: row.get("index_name"),
        attributes.MODE: row.get("mode"),
    }
    return {
        name: value[: attributes.MAX_CHARACTERS] if isinstance(value, str) else value
        for name, value in found.items()
        if value is not None
    }


def _checked(name: str, value: Any, kind: type) -> Any:
    if value is not None and not isinstance(value, kind):
        raise ConfigurationError(f"{name} must be a {kind.__name__}, not {type(value).__name__}", argument=name)
    return value


def _choice(name: str, value: Any, choices_name: str) -> str | None:
    if value is None:
        return None
    from ragtrace import model  # not at import: its dataclasses cost as much as all the rest here

    choices: tuple[str, ...] = getattr(model, choices_name)
    if value not in choices:
        raise ConfigurationError(f"{name} must be one of {', '.join(choices)}, not {value!r}", argument=name)
    return value  # type: ignore[no-any-return]  # one of the choices


def _number(name: str, value: Any, reader: Callable[[Any], Any]) -> Any:
    if value is None:
        return None
    read = reader(value)
    if read is None:
        raise ConfigurationError(f"{name} cannot be {value!r}", argument=name)
    return read
