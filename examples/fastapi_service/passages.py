"""The service's index: passages of the handbook, searched by words and by letter triples. Knows nothing of tracing."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Hit", "Store", "split"]

STOP_WORDS = frozenset(
    "a an and are at be do does for from how i in is it my of on or the to what when who with".split()
)


@dataclass(frozen=True)
class Hit:
    """A passage that was found."""

    id: str
    doc_id: str
    text: str
    start: int
    end: int
    score: float = 0.0


def split(doc_id: str, text: str) -> list[Hit]:
    """The paragraphs of a page, without its heading."""
    found = [match for match in re.finditer(r"[^\n]+", text) if not match[0].startswith("#")]
    return [Hit(f"{doc_id}/{n}", doc_id, match[0], match.start(), match.end()) for n, match in enumerate(found)]


def _words(text: str) -> list[str]:
    return [word for word in re.findall(r"\w+", text.lower()) if word not in STOP_WORDS]


def _triples(text: str) -> list[str]:
    return [word[i : i + 3] for word in _words(text) for i in range(max(1, len(word) - 2))]


class Store:
    """Passages and two ways to search them; both block, as the client of a real store does."""

    def __init__(self) -> None:
        self._passages: dict[str, Hit] = {}

    def add(self, passages: list[Hit]) -> None:
        """Put passages in; a passage with the same id is replaced."""
        self._passages.update((passage.id, passage) for passage in passages)

    def by_words(self, question: str, k: int) -> list[Hit]:
        """The `k` best by shared words, rarer ones counting more."""
        return self._best(question, k, _words)

    def by_triples(self, question: str, k: int) -> list[Hit]:
        """The `k` best by shared letter triples: forgives word endings and spelling."""
        return self._best(question, k, _triples)

    def _best(self, question: str, k: int, terms: Callable[[str], list[str]]) -> list[Hit]:
        bags = {name: Counter(terms(hit.text)) for name, hit in self._passages.items()}
        n_with = Counter(term for bag in bags.values() for term in bag)
        asked = set(terms(question))
        scored = [
            (sum(math.log1p(len(bags) / n_with[term]) for term in asked if term in bag) / math.sqrt(len(bag)), name)
            for name, bag in bags.items()
            if bag
        ]
        best = sorted((-score, name) for score, name in scored if score > 0)[:k]
        return [Hit(**{**vars(self._passages[name]), "score": -score}) for score, name in best]


def read_handbook() -> dict[str, str]:
    """The pages beside this file by name."""
    folder = Path(__file__).with_name("handbook")
    return {path.name: path.read_text("utf-8") for path in sorted(folder.glob("*.md"))}
