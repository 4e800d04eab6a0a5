"""The two indexes of the demo and what they count with: words, vectors without a model, tokens. Knows nothing of tracing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import bm25s
import faiss
import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from ragtrace.cli.demo.chunking import Hit, Passage

__all__ = ["LexicalIndex", "VectorIndex", "count_tokens", "words"]

_WORD = re.compile(r"__\w+__|[^\W_]+(?:_[^\W_]+)*")
_TOKEN = re.compile(r"\w{1,5}|[^\w\s]")


def words(text: str) -> list[str]:
    """Lower-case words in text order, plural endings off; names like `__init__` stay whole."""
    return [
        word[:-1] if word.endswith("s") and len(word) > 4 and not word.endswith(("ss", "__")) else word
        for word in _WORD.findall(text.lower())
    ]


def count_tokens(text: str) -> int:
    """About as many tokens as a subword tokenizer makes of English: word pieces of five letters, every other mark."""
    return len(_TOKEN.findall(text))


def _hit(passage: Passage, score: Any) -> Hit:
    return Hit(
        id=passage["id"],
        doc_id=passage["doc_id"],
        edition=passage["edition"],
        start=passage["start"],
        end=passage["end"],
        text=passage["text"],
        score=float(score),
    )


class LexicalIndex:
    """BM25 over the words of the passages."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._passages = passages
        self._bm25 = bm25s.BM25(k1=1.2, b=0.75)
        self._bm25.index([words(passage["text"]) for passage in passages], show_progress=False)

    def search(self, query: str, k: int) -> list[Hit]:
        """The `k` best by BM25, higher is better; fewer when fewer share a word with the query."""
        terms = [word for word in words(query) if word in self._bm25.vocab_dict]
        if not terms:
            return []
        rows, scores = self._bm25.retrieve([terms], k=min(k, len(self._passages)), show_progress=False)
        return [_hit(self._passages[row], score) for row, score in zip(rows[0], scores[0], strict=True) if score > 0]


class VectorIndex:
    """Latent semantic vectors of the passages in a graph index, and in a flat one that looks at every vector."""

    def __init__(self, passages: Sequence[Passage], *, dimensions: int, links: int, ef_search: int) -> None:
        self._passages = passages
        self._tfidf = TfidfVectorizer(analyzer=words, sublinear_tf=True, min_df=2)
        weights = self._tfidf.fit_transform([passage["text"] for passage in passages])
        self._svd = TruncatedSVD(min(dimensions, weights.shape[1] - 1, weights.shape[0] - 1), random_state=0)
        vectors = self._unit(self._svd.fit_transform(weights))
        # One thread: HNSW links depend on the order of insertion, and a second run must find the same neighbours.
        faiss.omp_set_num_threads(1)
        self._graph = faiss.IndexHNSWFlat(vectors.shape[1], links, faiss.METRIC_INNER_PRODUCT)
        self._graph.hnsw.efConstruction = 2 * links
        self._graph.hnsw.efSearch = ef_search
        self._graph.add(vectors)
        self._flat = faiss.IndexFlatIP(vectors.shape[1])
        self._flat.add(vectors)

    def search(self, query: str, k: int) -> list[Hit]:
        """The `k` nearest that the graph search meets, cosine similarity, higher is better."""
        return self._found(self._graph, query, k)

    def search_exactly(self, query: str, k: int) -> list[Hit]:
        """The `k` nearest of all, cosine similarity, higher is better."""
        return self._found(self._flat, query, k)

    def similarities(self, query: str, passages: Sequence[Passage]) -> list[float]:
        """Cosine similarity of the query to each passage's text, in the order given."""
        if not passages:
            return []
        vectors = self._vectors([passage["text"] for passage in passages])
        return [float(value) for value in vectors @ self._vectors([query])[0]]

    def _found(self, index: Any, query: str, k: int) -> list[Hit]:
        scores, rows = index.search(self._vectors([query]), k)
        return [
            _hit(self._passages[row], score)
            for row, score in zip(rows[0], scores[0], strict=True)
            if row >= 0  # FAISS pads with -1 when it meets fewer than k
        ]

    def _vectors(self, texts: Sequence[str]) -> Any:
        return self._unit(self._svd.transform(self._tfidf.transform(texts)))

    @staticmethod
    def _unit(vectors: Any) -> Any:
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.ascontiguousarray(vectors / np.maximum(lengths, 1e-12), dtype=np.float32)
