"""A query, round or document from what `rt.query` and `rt.document` were told, and from the call they decorate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ragtrace.recording.parameters import Parameters
from ragtrace.recording.rounds import Round
from ragtrace.recording.scopes import Document, Query
from ragtrace.recording.shapes_rows import is_prose
from ragtrace.recording.values import as_name

if TYPE_CHECKING:
    from ragtrace.recording.nodes import Node
    from ragtrace.recording.recorder import Recorder

__all__ = ["Call", "open_document", "open_query"]

Call = tuple[Parameters, tuple[Any, ...], Mapping[str, Any]]
"""A decorated function's parameters and arguments; None for a `with` block."""

_QUESTION_NAMES = ("question", "query", "q", "query_text", "text")
_DOC_ID_NAMES = ("doc_id", "document_id", "path", "file", "name", "url")


def open_query(
    recorder: Recorder, parent: Node | None, arguments: Mapping[str, Any], call: Call | None
) -> Query | Round:
    """A query of its own, or a round of the open one."""
    outer = parent.query if parent is not None else None
    if outer is not None and outer.is_ended:
        outer = None  # a worker that keeps an old request's context asks something new
    if arguments["round"] is not None and outer is not None and parent is not None:
        return Round(parent, arguments["round"])
    question, question_id, session = arguments["question"], arguments["question_id"], arguments["session"]
    if call is not None:
        parameters, args, kwargs = call
        question = question or parameters.first_text(parameters.find(*_QUESTION_NAMES), args, kwargs)
        for lookup in parameters.find("question_id"):
            question_id = question_id or as_name(lookup.value(args, kwargs))
        for lookup in parameters.find("session", "session_id"):
            session = session or as_name(lookup.value(args, kwargs))
    parent_query_id = arguments["parent"] or (outer.id if outer is not None else None)
    made = Query(
        recorder,
        parent if outer is not None else None,
        question,
        question_id,
        session if session is not None or outer is None else outer.session,
        parent_query_id,
        arguments["served_from"],
    )
    made.round = arguments["round"]
    return made


def open_document(recorder: Recorder, parent: Node | None, arguments: Mapping[str, Any], call: Call | None) -> Document:
    """A document in hand."""
    doc_id = arguments["doc_id"]
    if call is not None and doc_id is None:
        parameters, args, kwargs = call
        doc_id = parameters.first_text(parameters.find(*_DOC_ID_NAMES), args, kwargs)
        if doc_id is not None and is_prose(doc_id):
            doc_id = None  # the first string is the document itself, which may be one that must not be stored
    return Document(
        recorder,
        parent,
        doc_id,
        arguments["version"],
        arguments["modified_at"],
        arguments["deleted_at"],
    )
