"""What LangChain's objects are called: stages, indexes, documents, and the question in what a run is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragtrace.recording import candidates

__all__ = ["doc_id_of", "index_of", "name_of", "question_of"]

_QUESTIONS = ("question", "query", "input", "q", "text", "topic")


def name_of(thing: Any, config: Any) -> str:
    """The name given to the run or to the object, else that of the store behind it, else of its class."""
    for name in (config.get("run_name") if isinstance(config, Mapping) else None, getattr(thing, "name", None)):
        if isinstance(name, str) and name:
            return name
    store = getattr(thing, "vectorstore", None)
    if store is not None and type(thing).__name__ == "VectorStoreRetriever":
        return index_of(store)
    return type(thing).__name__


def index_of(store: Any) -> str:
    """The collection's name, else the store's class: what its writes and its searches have in common."""
    for attribute in ("collection_name", "_collection_name", "index_name", "_index_name", "table_name", "_table_name"):
        try:
            name = getattr(store, attribute, None)
        except Exception:  # a property of the service's
            continue
        if isinstance(name, str) and name:
            return name
    return type(store).__name__


def doc_id_of(document: Any) -> str | None:
    """The source a document names in its metadata, as candidates are read."""
    read = candidates.read([document])
    return read.doc_id[0] if read is not None and read.doc_id else None


def question_of(value: Any) -> str | None:
    """The question in what a chain or a graph is given: the text, a field of that name, or the last message of a person."""
    if isinstance(value, str):
        return value
    if not isinstance(value, Mapping):
        return None
    for name in _QUESTIONS:
        if isinstance(value.get(name), str):
            return str(value[name])
    messages = value.get("messages")
    for message in reversed(messages if isinstance(messages, list) else [messages]):
        role = getattr(message, "type", None) or (message.get("role") if isinstance(message, dict) else None)
        content = getattr(message, "content", None) or (message.get("content") if isinstance(message, dict) else None)
        if isinstance(message, tuple) and len(message) == 2:
            role, content = message
        if isinstance(message, str):
            return message
        if role in ("human", "user") and isinstance(content, str):
            return content
    texts = [text for text in value.values() if isinstance(text, str)]
    return texts[0] if len(texts) == 1 else None
