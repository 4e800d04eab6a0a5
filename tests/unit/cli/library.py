"""A small service of a town library, traced: its documents, its questions, its losses. Known by heart by the tests.

Documents are cut into sentences; dense finds by word overlap, bm25 by rare words; both are words in a dictionary here,
so that every loss is where it was put.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import ragtrace as rt
from ragtrace.probes import Retriever

VISITORS = "Visitors may stay for 90 days. A visitor signs the book at the door."
HOURS = "The house opens at nine. It closes at six, on Sundays at four."
FEES = "A card costs ten francs. Children pay nothing."
DOCUMENTS = {"visitors.txt": VISITORS, "hours.txt": HOURS, "fees.txt": FEES}

STAY = "how long may a visitor stay?"
CLOSE = "when does the house close on Sundays?"
PAY = "what do children pay?"
DOGS = "are dogs allowed?"

GOLD = [
    {"question_id": "q-017", "question": STAY, "kind": "fact", "tags": ["visitors"],
     "gold": [{"doc_id": "visitors.txt", "quote": "Visitors may stay for 90 days"}]},
    {"question_id": "q-018", "question": CLOSE, "kind": "fact", "tags": ["hours", "time"],
     "gold": [{"doc_id": "hours.txt", "quote": "on Sundays at four"}]},
    {"question_id": "q-019", "question": PAY, "kind": "number",
     "gold": [{"doc_id": "fees.txt", "quote": "Children pay nothing"}]},
    {"question_id": "q-020", "question": DOGS, "gold": []},
]  # fmt: skip

FOUND = {
    STAY: (["visitors.txt#0", "hours.txt#0", "fees.txt#1"], ["visitors.txt#1", "visitors.txt#0"]),
    CLOSE: (["hours.txt#0", "visitors.txt#0"], ["fees.txt#0"]),
    PAY: (["fees.txt#1", "fees.txt#0"], ["fees.txt#0"]),
    DOGS: (["visitors.txt#1"], ["visitors.txt#0"]),
}
"""What dense and bm25 return for each question: q-018 is found by neither, q-019 by dense alone."""

RERANKED = {STAY: 1, CLOSE: 2, PAY: 2, DOGS: 2}
"""How many the reranker lets through: q-017 falls there, second of three."""


def trace(store: Path, run: str = "hybrid-k50", questions: Sequence[str] = tuple(FOUND)) -> None:
    """Ingest the documents and ask the questions, once each, in this process."""
    rt.configure(store, run=run, merge="off")
    try:
        _ingest()
        for question in questions:
            _answer(question)
    finally:
        rt.shutdown(10)


def write_gold(path: Path) -> Path:
    """The labels as a gold file."""
    path.write_text("".join(json.dumps(line) + "\n" for line in GOLD), encoding="utf-8")
    return path


def sentences(doc_id: str) -> list[rt.Chunk]:
    """The document's sentences with their offsets."""
    text, chunks, start = DOCUMENTS[doc_id], [], 0
    for number, sentence in enumerate(text.split(". ")):
        end = min(start + len(sentence) + 1, len(text))
        chunks.append(rt.Chunk(f"{doc_id}#{number}", text[start:end], doc_id, start, end))
        start = end + 1
    return chunks


@rt.parse(name="read")
def _read(doc_id: str) -> str:
    return DOCUMENTS[doc_id]


@rt.chunk(name="split")
def _split(text: str, doc_id: str) -> list[rt.Chunk]:
    return sentences(doc_id)


@rt.index(name="store", index="main", complete=True)
def _store(chunks: list[rt.Chunk]) -> list[str]:
    return [str(chunk.id) for chunk in chunks]


@rt.retrieve(name="dense", mode="ann", k=3, index="main", score_kind="similarity")
def _dense(question: str) -> list[tuple[str, float]]:
    return [(name, 0.9 - i / 10) for i, name in enumerate(FOUND[question][0])]


@rt.retrieve(name="bm25", mode="lexical", k=3, index="main")
def _bm25(question: str) -> list[tuple[str, float]]:
    return [(name, 7.0 - i) for i, name in enumerate(FOUND[question][1])]


def retrievers() -> list[Retriever]:
    """Both as they can be asked again: all that dense knows comes after what it returned, by the question as asked."""
    everything = [str(chunk.id) for doc_id in DOCUMENTS for chunk in sentences(doc_id)]

    def deeper(question: str, k: int, _filter: object, /) -> list[str]:
        return list(dict.fromkeys([*FOUND[question][0], *everything]))[:k]

    def dense(question: str, k: int, _filter: object, /) -> list[str]:
        return FOUND[question][0][:k] if k <= 3 else deeper(question, k, None)

    return [
        Retriever("dense", search=dense, exact=deeper),
        Retriever("bm25", search=lambda question, k, _filter: FOUND[question][1][:k]),
    ]


@rt.fuse(name="rrf")
def _fuse(dense: list[tuple[str, float]], bm25: list[tuple[str, float]]) -> list[tuple[str, float]]:
    names = dict.fromkeys(name for name, _ in [*bm25, *dense])
    return [(name, 1 / (60 + rank)) for rank, name in enumerate(names, 1)]


def _rerank(question: str, found: list[tuple[str, float]]) -> list[tuple[str, float]]:
    scored = [(name, 0.5 - i / 10) for i, (name, _) in enumerate(found)]
    with rt.rerank(name="cross encoder", k=RERANKED[question]) as stage:
        stage.input(found)
        stage.considered(scored)
        kept = scored[: RERANKED[question]]
        stage.output(kept)
    return kept


@rt.generate(name="llm")
def _generate(found: list[tuple[str, float]]) -> str:
    return "an answer"


def _ingest() -> None:
    for doc_id in DOCUMENTS:
        with rt.document(doc_id, version="1"):
            _store(_split(_read(doc_id), doc_id))


def _answer(question: str) -> None:
    with rt.query(question):
        _generate(_rerank(question, _fuse(_dense(question), _bm25(question))))
