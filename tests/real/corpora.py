"""Real corpora with gold character ranges, read from the folder of shared data; nothing of them is kept here."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import pytest

__all__ = ["Corpus", "data_folder", "load_corpus"]


class Corpus(NamedTuple):
    """Documents by id (text, or the bytes of a PDF) and the questions of one set."""

    name: str
    documents: dict[str, str | bytes]
    questions: list[dict[str, Any]]


def data_folder(name: str) -> Path:
    """The folder of one set; skips the test with the reason when it is absent."""
    checkout = Path(__file__).resolve().parents[2]
    root = Path(os.environ.get("RAGTRACE_SHARED_DATA", checkout.parent / "shared" / "data"))
    folder = root / name
    if not folder.is_dir():
        pytest.skip(f"the data set {name} is not on this machine (RAGTRACE_SHARED_DATA names its folder)")
    return folder


def _lines(path: Path) -> list[dict[str, Any]]:
    # Not str.splitlines: texts may hold U+2028 and the like.
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


def load_corpus(name: str, n_questions: int, n_documents: int = 120) -> Corpus:
    """The first `n_questions` answerable questions with span labels, the documents they need, and others up to `n_documents`.

    A question about PDFs is asked with its evidence behind it: a plain retriever finds no page of an annual report by
    the question alone, and evidence that never arrives says nothing about a fault.
    """
    folder = data_folder(name)
    rows = [q for q in _lines(folder / "questions.jsonl") if q["gold"] and all(g.get("quote") for g in q["gold"])]
    # Spread over the file: neighbours often share a document.
    step = max(1, len(rows) // n_questions)
    questions = rows[::step][:n_questions]
    documents: dict[str, str | bytes] = {}
    needed = {g["doc_id"] for q in questions for s in [q["gold"], *q.get("alternatives", [])] for g in s}
    for row in _lines(folder / "corpus.jsonl"):
        if len(documents) >= n_documents and row["doc_id"] not in needed:
            continue
        file = row.get("file")
        documents[row["doc_id"]] = (folder / file).read_bytes() if file else row["text"]
    asked = [
        {**q, "question": " ".join([q["question"], *(g["quote"] for g in q["gold"])])}
        if isinstance(documents[q["gold"][0]["doc_id"]], bytes)
        else q
        for q in questions
    ]
    return Corpus(name, documents, asked)
