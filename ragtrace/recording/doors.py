"""The public doors that are no stage: query, document, context, inventory, current_stage."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from ragtrace import guard
from ragtrace.errors import ConfigurationError
from ragtrace.recording import blocks, context, wrapping
from ragtrace.recording.parameters import Parameters
from ragtrace.recording.unrecorded import NOT_RECORDED
from ragtrace.recording.values import as_float, as_int, as_name

if TYPE_CHECKING:
    from datetime import datetime

    from ragtrace.recording.runs import Run
    from ragtrace.recording.scopes import Document, Query

__all__ = ["current_stage", "declare_context", "document", "inventory", "query"]

P = ParamSpec("P")
R = TypeVar("R")
N = TypeVar("N")


class Block(Generic[N]):
    """A query or document to be: a decorator, and a context manager that makes a new one at each entry."""

    def __init__(self, word: str, arguments: dict[str, Any]) -> None:
        self.word = word
        self._arguments = arguments

    def __call__(self, target: Callable[P, R], /) -> Callable[P, R]:
        """The target, each call of it recorded. Raises: ConfigurationError for what cannot be decorated."""
        return wrapping.wrap(self, target)  # type: ignore[no-any-return]  # of the target's own kind

    def __reduce__(self) -> Any:
        return Block, (self.word, self._arguments)

    def plan(self, target: Callable[..., Any]) -> Parameters:
        """The parameters of the function decorated."""
        return Parameters(target)

    def open(self, plan: Parameters, args: tuple[Any, ...], kwargs: dict[str, Any], is_generator: bool) -> Any:
        """The node of one call, not current yet; None when it cannot be recorded. Never raises."""
        recorder = context.recorder
        if recorder is None:
            return None
        try:
            node = recorder.begin_block(self.word, self._arguments, (plan, args, kwargs))
            node.prepare()
            return node
        except Exception as error:  # recording never raises into the service
            guard.swallow(error, f"{self.word} start", recorder.losses)
            return None

    def __enter__(self) -> N:
        recorder = context.recorder
        if recorder is None:
            return NOT_RECORDED  # type: ignore[no-any-return]  # takes the same calls
        try:
            node = recorder.begin_block(self.word, self._arguments, None)
            node.enter()
        except Exception as error:  # recording never raises into the service
            guard.swallow(error, f"{self.word} start", recorder.losses)
            return NOT_RECORDED  # type: ignore[no-any-return]  # takes the same calls
        blocks.entered(self, node)
        return node  # type: ignore[return-value]  # the node of this word

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        node = blocks.left(self)
        if node is not None:
            node.leave()
            if error is None:
                node.finish()
            else:
                node.fail(error)


# ------------------------------------------------------------------------------------------------ query


@overload
def query(question: Callable[P, R], /) -> Callable[P, R]: ...


@overload
def query(
    question: str | None = ...,
    *,
    question_id: str | int | None = ...,
    session: str | int | None = ...,
    parent: Query | int | None = ...,
    round: int | None = ...,
    served_from: Query | int | None = ...,
) -> Block[Query]: ...


def query(
    question: Any = None,
    *,
    question_id: str | int | None = None,
    session: str | int | None = None,
    parent: Query | int | None = None,
    round: int | None = None,
    served_from: Query | int | None = None,
) -> Any:
    """One question put to the service: `with rt.query(question):`, or a decorator of the function that answers it.

    As a decorator the question is the argument called `question` (or `query`), else the first string; `question_id`
    and `session` are read from arguments of these names. With `round=` inside an open query: the n-th retrieval round
    of that query. Without it, inside an open query: a query of its own, with that one as its parent.
    `served_from` is the query whose answer a cache gave.

    Raises: ConfigurationError for a wrong type.
    """
    if round is not None and as_int(round) is None:
        raise ConfigurationError("round must be a whole number, 1 or more", argument="round")
    is_target = question is not None and not isinstance(question, str)
    if is_target and not _is_target(question):
        raise ConfigurationError(f"the question must be a string, not {type(question).__name__}", argument="question")
    # Nothing is called for what is not given: after a pause each function that is run costs some 5 µs of cache misses.
    arguments = {
        "question": None if is_target else question,
        "question_id": None if question_id is None else as_name(question_id),
        "session": None if session is None else as_name(session),
        "parent": None if parent is None else _query_id("parent", parent),
        "round": None if round is None else as_int(round),
        "served_from": None if served_from is None else _query_id("served_from", served_from),
    }
    block: Block[Query] = Block("query", arguments)
    return block(question) if is_target else block


def _query_id(name: str, value: Any) -> int | None:
    if value is None or value is NOT_RECORDED:
        return None
    number = value if isinstance(value, int) and not isinstance(value, bool) else getattr(value, "id", None)
    if not isinstance(number, int):
        raise ConfigurationError(f"{name} must be a query or its id, not {type(value).__name__}", argument=name)
    return number


# ------------------------------------------------------------------------------------------------ document


@overload
def document(doc_id: Callable[P, R], /) -> Callable[P, R]: ...


@overload
def document(
    doc_id: str | int | None = ...,
    *,
    version: str | int | None = ...,
    modified_at: datetime | float | None = ...,
    deleted_at: datetime | float | None = ...,
) -> Block[Document]: ...


def document(
    doc_id: Any = None,
    *,
    version: str | int | None = None,
    modified_at: datetime | float | None = None,
    deleted_at: datetime | float | None = None,
) -> Any:
    """One document on its way into an index: `with rt.document("handbook.pdf", version="3"):`, or a decorator.

    As a decorator the id is the argument called `doc_id` (or `path`), else the first string. `modified_at` and
    `deleted_at` are when the source changed: an aware datetime, or seconds since 1970.

    Raises: ConfigurationError for a wrong type.
    """
    if doc_id is not None and not _is_target(doc_id) and as_name(doc_id) is None:
        raise ConfigurationError(f"doc_id must be a string, not {type(doc_id).__name__}", argument="doc_id")
    arguments = {
        "doc_id": None if _is_target(doc_id) else as_name(doc_id),
        "version": as_name(version),
        "modified_at": _instant("modified_at", modified_at),
        "deleted_at": _instant("deleted_at", deleted_at),
    }
    block: Block[Document] = Block("document", arguments)
    return block(doc_id) if _is_target(doc_id) else block


def _instant(name: str, value: Any) -> int | None:
    """Nanoseconds since 1970 UTC."""
    if value is None:
        return None
    from datetime import datetime, timezone  # not at import: most services never declare an instant

    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ConfigurationError(f"{name} needs a time zone: datetime.now(timezone.utc)", argument=name)
        since = value - datetime(1970, 1, 1, tzinfo=timezone.utc)
        return (since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1000
    seconds = as_float(value)
    if seconds is None:
        raise ConfigurationError(f"{name} must be an aware datetime or seconds since 1970", argument=name)
    return int(seconds * 1e9)


# ------------------------------------------------------------------------------------------------ the rest


def declare_context(value: Any, *, carried: Any = None, extract: Callable[[Any], Any] | None = None) -> None:
    """Declare the final context of the current query: what went into the answering prompt.

    A list of candidates, or the prompt itself. `carried` is what came along from earlier turns. Several calls add up.
    Outside a query it is counted and does nothing. Never raises.
    """
    recorder = context.recorder
    if recorder is not None:
        recorder.declare_context(value, carried, extract)


def inventory(
    *,
    index: str | None = None,
    chunk_ids: Iterable[str | int] | None = None,
    doc_ids: Iterable[str | int] | None = None,
) -> None:
    """Declare a layer complete: all chunks that are in an index now, or all documents of the source.

    Only then can absence be proved. An empty list says that the layer is empty. Never raises for what the ids hold.

    Raises: ConfigurationError unless exactly one of `chunk_ids` and `doc_ids` is given.
    """
    if (chunk_ids is None) == (doc_ids is None):
        raise ConfigurationError("inventory takes either chunk_ids (with index) or doc_ids")
    recorder = context.recorder
    if recorder is not None:
        recorder.declare_inventory(index, chunk_ids, doc_ids)


def current_stage() -> Run:
    """The stage run whose body runs here, to tell it `considered`, `dropped` and lists from inside a function.

    Outside every stage, and when nothing is recorded, an object that takes the same calls and does nothing.
    """
    node = context.current.get()
    return node if hasattr(node, "stage") else NOT_RECORDED  # type: ignore[return-value]  # only runs have one


def _is_target(value: Any) -> bool:
    return callable(value) or isinstance(value, (staticmethod, classmethod))
