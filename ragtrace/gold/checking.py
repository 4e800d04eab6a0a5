"""What is wrong with the labels, before any report is believed: against the store's texts, or a corpus given by path."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

from ragtrace import digest
from ragtrace.errors import GoldError
from ragtrace.gold import placing, rows
from ragtrace.progress import Progress

__all__ = ["Finding", "check"]

_CORPUS_BATCH = 1_000
"""Documents written to the temporary tables at a time."""


class Finding(NamedTuple):
    """One label that is wrong, or that is used on trust."""

    problem: str
    """misaligned, out_of_range, ambiguous, stale, deleted, text_missing, text_garbled, document_unknown,
    version_unknown, chunk_unknown; on trust: unchecked, inexact_range, question_repeated."""
    is_wrong: bool
    """False: the label is used as it is, but nothing proves it."""
    gold_set: str
    question_id: str
    evidence_id: str | None
    doc_id: str | None
    level: str | None
    start_at: int | None
    """As labelled, in code points."""
    end_at: int | None
    quote: str | None
    what_to_do: str
    """One sentence."""


def check(
    connection: duckdb.DuckDBPyConnection, corpus: str | Path | None = None, progress: Progress | None = None
) -> list[Finding]:
    """Every label that is wrong, then those used on trust; each by set, question and label. Empty when all is well.

    With `corpus` (JSON lines with `doc_id` and `text`) the labels are held against that file's texts alone, as if
    each had been parsed once; nothing is stored. Needs no recorded query, and works read-only on a store whose labels
    are placed.

    Raises: GoldError when no labels are loaded, or the corpus cannot be read.
    """
    if not connection.execute("select 1 from questions limit 1").fetchall():
        raise GoldError("no labels are loaded: load a gold file first (ragtrace gold load)")
    if corpus is None:
        return _findings(connection)
    with _corpus_instead(connection, Path(corpus)):
        placing.place(connection, progress)
        return _findings(connection)


def _findings(connection: duckdb.DuckDBPyConnection) -> list[Finding]:
    findings: list[Finding] = []
    for name, is_wrong in (("labels", True), ("label_doubts", False)):
        found = connection.execute(rows.query("checks", name)).fetchall()
        findings.extend(Finding(row[0], is_wrong, *row[1:]) for row in found)
    return findings


@contextmanager
def _corpus_instead(connection: duckdb.DuckDBPyConnection, path: Path) -> Iterator[None]:
    """In front of the store's texts, those of a corpus; the labels as if they had never been placed."""
    with rows.shadows(connection, empty=("documents", "parses", "texts", "evidence_places"), copied=("evidence",)):
        connection.execute("update evidence set label_status = null, label_note = null where level <> 'chunk'")
        batch: dict[str, tuple[int, str]] = {}
        seen: set[str] = set()
        for number, document in _documents(path):
            if document["doc_id"] in seen:
                raise GoldError(f"{path}, line {number}: doc_id {document['doc_id']!r} stands in it twice")
            seen.add(document["doc_id"])
            batch[document["doc_id"]] = (number, document["text"])
            if len(batch) == _CORPUS_BATCH:
                _write(connection, batch)
                batch = {}
        _write(connection, batch)
        yield


def _documents(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        file = path.open("rb")
    except OSError as error:
        raise GoldError(f"{path}: {(error.strerror or 'cannot be read').lower()}", path=str(path)) from error
    with file:
        for number, raw in enumerate(file, 1):
            try:
                text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
                if not text.strip():
                    continue
                document = json.loads(text)
                if not isinstance(document["doc_id"], (str, int)) or not isinstance(document["text"], str):
                    raise TypeError
                document["text"].encode()
            except (ValueError, KeyError, TypeError) as error:
                raise GoldError(
                    f"{path}, line {number}: not a JSON object with a `doc_id` and a `text`",
                    path=str(path),
                    line=number,
                ) from error
            yield number, {"doc_id": str(document["doc_id"]), "text": document["text"]}


def _write(connection: duckdb.DuckDBPyConnection, batch: dict[str, tuple[int, str]]) -> None:
    documents: list[dict[str, Any]] = []
    parses: list[dict[str, Any]] = []
    texts: dict[str, dict[str, Any]] = {}
    for doc_id, (number, text) in batch.items():
        text_hash = digest.of_text(text)
        documents.append({"ingest_id": number, "doc_id": doc_id, "recorded_at_ns": 0, "status": "ok"})
        parse = {"stage_id": number, "doc_id": doc_id, "text_hash": text_hash, "n_characters": len(text)}
        parses.append({**parse, "parsed_at_ns": 0})
        texts[text_hash] = {"text_hash": text_hash, "text": text, "is_aligned": True}
    rows.insert(connection, "documents", documents)
    rows.insert(connection, "parses", parses)
    rows.insert(connection, "texts", list(texts.values()))
