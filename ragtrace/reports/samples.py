"""Queries as samples for evaluation packages: the question, and the final context exactly as it was sent.

A context's text is cut from the captured parsed text at the places recorded, and held against the hash of the text as
delivered where that was seen. A query of which a text can not be had so is left out and counted, never approximated.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ragtrace import digest
from ragtrace.errors import ParameterError, StoreError
from ragtrace.reports.run import run as run_query

if TYPE_CHECKING:
    import duckdb

__all__ = ["Written", "answers_of", "write"]

_Row = dict[str, Any]
# How splitters and packers put ranges together; the hash tells which.
_JOINTS = ("", "\n", "\n\n", " ")


class Written(NamedTuple):
    """How many queries were written, and why others were left out."""

    n_written: int
    n_no_question: int
    """The question's text was not captured, and no label has it."""
    n_context_unknown: int
    """The final context is unknown, or some of it could not be recorded."""
    n_text_unknown: int
    """A text of it was not captured, was altered on the way, or is not that of its place."""


def write(
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    package: str,
    run: str | None = None,
    answers: Mapping[str, str] | None = None,
) -> Written:
    """Write one JSON object a line: for Ragas' `EvaluationDataset.from_jsonl`, for DeepEval's `add_goldens_from_jsonl_file`.

    `package` is "ragas" or "deepeval". `answers`: question id (else the question's text) → what the service answered,
    which ragtrace does not record.

    Raises: StoreError when the file cannot be written.
    """
    passages: dict[str, list[str]] = {}
    for row in run_query(connection, "evidence_texts").records():
        passages.setdefault(row["question_id"], []).append(row["text"])
    form = _for_ragas if package == "ragas" else _for_deepeval
    left = {"question": 0, "context": 0, "text": 0}
    n_written = 0
    try:
        with path.open("w", encoding="utf-8") as file:
            for rows in _by_query(run_query(connection, "context_texts", run=run).records()):
                texts = _texts(rows)
                first = rows[0]
                if first["question"] is None:
                    left["question"] += 1
                elif not first["is_complete"]:
                    left["context"] += 1
                elif texts is None:
                    left["text"] += 1
                else:
                    known = answers or {}
                    answer = known.get(first["question_id"], known.get(first["question"]))
                    sample = form(rows, texts, answer, passages.get(first["question_id"]))
                    file.write(json.dumps(sample, ensure_ascii=False) + "\n")
                    n_written += 1
    except OSError as error:
        raise StoreError(f"{path} cannot be written ({error.strerror}): give another path.", path=str(path)) from error
    return Written(n_written, left["question"], left["context"], left["text"])


def answers_of(path: Path) -> dict[str, str]:
    """What a service answered, from JSON lines of `answer` and `question_id` or `question`.

    Raises: ParameterError when the file cannot be read or a line is not of that form.
    """
    found: dict[str, str] = {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError(f"{path} cannot be read: give a file of JSON lines", given=str(path)) from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            key = row["question_id"] if row.get("question_id") is not None else row["question"]
            found[str(key)] = str(row["answer"])
        except (ValueError, LookupError, AttributeError, TypeError):
            raise ParameterError(
                f'{path}, line {number}: write {{"question_id": "…", "answer": "…"}}', given=str(path)
            ) from None
    return found


def _by_query(rows: list[_Row]) -> Iterator[list[_Row]]:
    for _, of_one in groupby(rows, key=lambda row: row["query_id"]):
        yield list(of_one)


def _texts(rows: list[_Row]) -> list[str] | None:
    """The texts of a final context in the prompt's order; None when one of them is not known for sure."""
    texts = []
    for row in rows:
        if row["place"] is None:
            continue
        text = _text(row["pieces"], row["item_text_hash"])
        if text is None:
            return None
        texts.append(text)
    return texts


def _text(pieces: list[str | None] | None, text_hash: str | None) -> str | None:
    if not pieces or None in pieces:
        return None
    parts = [piece for piece in pieces if piece is not None]
    if text_hash is None:
        return parts[0] if len(parts) == 1 else None
    return next((text for joint in _JOINTS if digest.of_text(text := joint.join(parts)) == text_hash), None)


def _for_ragas(rows: list[_Row], texts: list[str], answer: str | None, passages: list[str] | None) -> _Row:
    first = rows[0]
    sample = {
        "user_input": first["question"],
        "retrieved_contexts": texts,
        "retrieved_context_ids": _ids(rows),
        "reference_contexts": passages,
        "response": answer,
        "reference": _expected(first["answer"]),
    }
    return {name: value for name, value in sample.items() if value is not None}


def _for_deepeval(rows: list[_Row], texts: list[str], answer: str | None, passages: list[str] | None) -> _Row:
    first = rows[0]
    # Only of what was told: DeepEval takes an empty output for an answer.
    sample = {
        "name": first["question_id"],
        "input": first["question"],
        "actual_output": answer,
        "expected_output": _expected(first["answer"]),
        "context": passages,
        "retrieval_context": texts,
        "additional_metadata": {"query_id": str(first["query_id"]), "run": first["run"], "context_ids": _ids(rows)},
    }
    return {name: value for name, value in sample.items() if value is not None}


def _ids(rows: list[_Row]) -> list[str] | None:
    ids = [row["chunk_id"] for row in rows if row["place"] is not None]
    return None if None in ids else ids


def _expected(answer: str | None) -> str | None:
    """The labelled answer as one text: the first, where any of several will do."""
    value = None if answer is None else json.loads(answer)
    if isinstance(value, list):
        value = value[0] if value else None
    return value if isinstance(value, str) else None
