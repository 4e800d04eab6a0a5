"""A document with one sentence for each kind of stage that loses it, and what the two ways of recording must agree on."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

import ragtrace as rt
from tests.traced import Row, Traced

SLOW = [
    pytest.mark.full,
    pytest.mark.skipif(
        not os.environ.get("RAGTRACE_TEST_ALL"), reason="the same in another way: set RAGTRACE_TEST_ALL=1"
    ),
]
DOC_ID = "handbook.md"
WORDS = (
    "arrival",
    "parsing",
    "cutting",
    "writing",
    "finding",
    "fusing",
    "sieving",
    "ranking",
    "pruning",
    "packing",
    "filling",
)
"""What each sentence is about: kept, lost at parse, chunk, index, retrieve, fuse, filter, rerank, compress, after it; kept."""
SENTENCES = {word: f"The {word} passage says that rule {n} holds here." for n, word in enumerate(WORDS)}
SOURCE = "\n".join(SENTENCES.values())
"""The document as it is."""
TEXT = "\n".join(line for word, line in SENTENCES.items() if word != "parsing")
"""As the loader reads it."""
QUESTIONS = {word: f"What about {word} ?" for word in WORDS}

_AGREED = """
    select
        s.question_id, s.verdict, s.lost_kind, s.lost_stage, s.lost_at, s.reason, s.candidate_coverage, s.final_coverage,
        s.rank_before, s.rank_after, s.k
    from stage_loss as s
    order by s.question_id
"""


def vector(text: str) -> list[float]:
    """Counts of the words above; of a passage on finding nothing is seen."""
    words = text.lower().split()
    is_unseen = "what" not in words and "finding" in words
    counts = [-1.0 if is_unseen else float(words.count(word)) for word in WORDS]
    return [*counts, float(not any(counts))]


def gold() -> list[dict[str, Any]]:
    """One question a word, with its sentence as the evidence."""
    return [
        {"question_id": word, "question": QUESTIONS[word], "gold": [{"doc_id": DOC_ID, "quote": SENTENCES[word]}]}
        for word in WORDS
    ]


def verdicts(folder: Path, service: Callable[[], None], **settings: Any) -> dict[str, Row]:
    """What was judged of a service's run, by question."""
    trace = Traced(folder / "traces.duckdb", **settings)
    try:
        rt.inventory(doc_ids=[DOC_ID])
        service()
        trace.judge(gold())
        assert trace.rows("select * from losses") == []
        assert trace.rows("select * from stages where is_orphan or capture_error is not null") == []
        return {row["question_id"]: row for row in trace.rows(_AGREED)}
    finally:
        trace.close()


class Parts:
    """What a way of recording is put around: nothing, for one call of `instrument`."""

    def document(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def query(self, question: str) -> AbstractContextManager[Any]:
        return nullcontext()

    def wrap(self, kind: str, name: str, function: Any, **values: Any) -> Any:
        return function


class ByHand(Parts):
    """Decorators, with the names that the classes have."""

    def document(self) -> AbstractContextManager[Any]:
        return rt.document(DOC_ID)

    def query(self, question: str) -> AbstractContextManager[Any]:
        return rt.query(question)

    def wrap(self, kind: str, name: str, function: Any, **values: Any) -> Any:
        return getattr(rt, kind)(name=name, **values)(function)


LOST = {
    "arrival": ("kept", None, None),
    "parsing": ("lost", "parse", "in"),
    "cutting": ("lost", "chunk", "in"),
    "writing": ("lost", "index", "in"),
    "finding": ("lost", "retrieve", "in"),
    "fusing": ("lost", "fuse", "in"),
    "sieving": ("lost", "filter", "in"),
    "ranking": ("lost", "rerank", "in"),
    "pruning": ("lost", "compress", "in"),
    "packing": ("lost", "compress", "after"),
    "filling": ("kept", None, None),
}
"""Where each sentence is to be lost: verdict, kind and side."""


def places(found: dict[str, Row]) -> dict[str, tuple[str, str | None, str | None]]:
    """Verdict, kind and side, by question."""
    return {word: (row["verdict"], row["lost_kind"], row["lost_at"]) for word, row in found.items()}
