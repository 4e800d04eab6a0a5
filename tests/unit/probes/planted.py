"""One loss of every reason that a probe can prove, planted in a real index and asked through the recording API."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

import ragtrace as rt
from ragtrace.probes import Retriever

__all__ = ["CHUNKS", "DIMENSIONS", "Index", "K", "Planted", "plant", "vector"]

DIMENSIONS = 24
K = 5
N_CHUNKS = 400
Hits = list[tuple[str, float]]
Filter = dict[str, str] | None

_SUBJECTS = ("harbour", "bakery", "orchard", "library", "tannery", "quarry", "mill", "forge")
_MEASURES = ("rainfall", "tonnage", "visitors", "wages", "repairs", "deliveries", "yield", "complaints")


@dataclass(frozen=True)
class Chunk:
    """One passage of the corpus."""

    id: str
    text: str
    lang: str


def _chunk(i: int) -> Chunk:
    subject, measure, year = _SUBJECTS[i % 8], _MEASURES[i // 8 % 8], 1990 + i // 8 % 50
    noise = " ".join(hashlib.md5(f"{i}.{n}".encode()).hexdigest()[:5] for n in range(3))
    return Chunk(f"c{i}", f"{subject} {measure} {year} {noise}", "de" if i % 4 == 3 else "en")


CHUNKS = [_chunk(i) for i in range(N_CHUNKS)]


def vector(text: str) -> np.ndarray:
    """A unit vector: the sum of one random direction per word."""
    total = np.zeros(DIMENSIONS)
    for word in text.split():
        seed = int.from_bytes(hashlib.md5(word.encode()).digest()[:4], "little")
        total += np.random.default_rng(seed).normal(size=DIMENSIONS)
    return (total / max(np.linalg.norm(total), 1e-9)).astype(np.float32)


class Index(Protocol):
    """A real index over `CHUNKS`, deliberately bad where `is_approximate`; higher scores are better."""

    mode: str
    is_approximate: bool
    """Its search is crippled enough to miss what it should find."""

    def search(self, query: str, k: int, filter: Filter, /) -> Hits: ...

    def exact(self, query: str, k: int, filter: Filter, /) -> Hits: ...

    def get(self, ids: Sequence[str], /) -> list[str]: ...

    def delete(self, chunk_id: str, /) -> None: ...


@dataclass
class Planted:
    """What was planted and how it can be asked again."""

    name: str
    expected: dict[str, dict[str, Any]] = field(default_factory=dict)
    """reason -> what the row of its question must say."""
    gold: list[dict[str, Any]] = field(default_factory=list)
    retrievers: list[Retriever] = field(default_factory=list)


def ingest(name: str) -> None:
    """The corpus as one document, its chunks, and a full record of what was written to the index; all under one name."""
    text = "\n".join(chunk.text for chunk in CHUNKS)
    pieces = []
    at = 0
    for chunk in CHUNKS:
        pieces.append(rt.Chunk(chunk.id, chunk.text, name, at, at + len(chunk.text)))
        at += len(chunk.text) + 1
    with rt.document(name):
        rt.parse(lambda: text)()
        rt.chunk(lambda _: pieces)(text)
        rt.index(index=name, complete=True)(lambda _: None)(pieces)


def plant(name: str, index: Index) -> Planted:
    """Ask one question per reason of this index, recorded under its name."""
    planted = Planted(name)
    ingest(name)
    lost = CHUNKS[17]
    index.delete(lost.id)

    ask = _asking(planted, name, index.search, index.mode)
    for query, target in _missed(index):
        ask("ann_miss", query, target, rank_after=_rank(index.exact(query, N_CHUNKS, None), target), k=K)
        break
    query, target, rank = _deep(index)
    ask("below_k", query, target, rank_after=rank, k=K)
    ask("not_indexed", lost.text, lost.id)
    german = CHUNKS[43]
    assert german.lang == "de"
    ask("filtered", german.text, german.id, filter={"lang": "en"}, rank_after=1)
    question, rewritten, target = _drifting(index)
    ask("query_drift", question, target, rewritten=rewritten, cause_stage="shorten",
        rank_original=_rank(index.exact(question, N_CHUNKS, None), target))  # fmt: skip

    query, target, score, threshold = _weak(index)

    def strict(query: str, k: int, filter: Filter, /) -> Hits:
        return [hit for hit in index.search(query, k, filter) if hit[1] >= threshold]

    below = _asking(planted, f"strict {name}", strict, index.mode, threshold=threshold)
    below("below_threshold", query, target, threshold=threshold, score=score)

    exact = index.exact if index.mode == "ann" else None
    planted.retrievers += [
        Retriever(name, search=index.search, exact=exact, get=index.get, without_filter=True),
        Retriever(f"strict {name}", search=strict, exact=index.exact, get=index.get),
    ]
    return planted


def _asking(
    planted: Planted, name: str, search: Callable[[str, int, Filter], Hits], mode: str, threshold: float | None = None
) -> Callable[..., None]:
    def ask(
        reason: str, question: str, target: str, *, rewritten: str | None = None, filter: Filter = None, **numbers: Any
    ) -> None:
        question_id = f"{planted.name}: {reason}"
        with rt.query(question, question_id=question_id):
            asked = question if rewritten is None else rt.rewrite(name="shorten")(lambda _: rewritten)(question)
            with rt.retrieve(
                name=name,
                mode=mode,
                index=planted.name,
                k=K,
                query=asked,
                filter=filter,
                threshold=threshold,
                score_kind="similarity",
            ) as stage:
                found = search(asked, K, filter)
                stage.output(found)
            rt.context(found)
        assert target not in [name for name, _ in found], f"{reason}: the search was to miss {target}"
        text = next(chunk.text for chunk in CHUNKS if chunk.id == target)
        planted.gold.append(
            {"question_id": question_id, "question": question, "gold": [{"doc_id": planted.name, "quote": text}]}
        )
        planted.expected[reason] = {"reason": reason, "proof": "probe", **numbers}

    return ask


def _rank(hits: Hits, target: str) -> int:
    return [name for name, _ in hits].index(target) + 1


def _missed(index: Index) -> list[tuple[str, str]]:
    """Questions whose own passage, or one beside it, the search misses within k."""
    if not index.is_approximate:
        return []
    for chunk in CHUNKS[100:]:
        found = {name for name, _ in index.search(chunk.text, K, None)}
        for name, _ in index.exact(chunk.text, K, None):
            if name not in found:
                return [(chunk.text, name)]
    raise AssertionError("the search was crippled to miss something, and misses nothing")


def _deep(index: Index) -> tuple[str, str, int]:
    query = CHUNKS[60].text
    found = {name for name, _ in index.search(query, K, None)}
    hits = index.exact(query, N_CHUNKS, None)
    rank, name = next((rank, name) for rank, (name, _) in enumerate(hits, 1) if rank > K + 3 and name not in found)
    return query, name, rank


def _drifting(index: Index) -> tuple[str, str, str]:
    """A question that finds its passage, and a rewrite without its year that does not."""
    for chunk in CHUNKS[70:]:
        words = chunk.text.split()
        question = " ".join(words[:4])
        rewritten = " ".join(words[:2])
        asked = {name for name, _ in index.exact(question, K, None)}
        used = {name for name, _ in [*index.exact(rewritten, K, None), *index.search(rewritten, K, None)]}
        if chunk.id in asked and chunk.id not in used:
            return question, rewritten, chunk.id
    raise AssertionError("no rewrite drifts")


def _weak(index: Index) -> tuple[str, str, float, float]:
    """A question, a passage it finds, and a threshold between that one and the passage before it."""
    for chunk in CHUNKS[120:]:
        hits = index.exact(chunk.text, K, None)
        for (_, better), (name, score) in itertools.pairwise(hits):
            if better > score + 1e-3:
                return chunk.text, name, score, (better + score) / 2
    raise AssertionError("no scores apart")
