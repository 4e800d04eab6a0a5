"""Evaluate a retrieval pipeline over a gold file, offline: every question asked, every stage recorded, one report.

    python evaluate.py --store traces.duckdb --corpus corpus.jsonl --questions questions.jsonl --run chunks-400

`corpus.jsonl` holds one document a line with `doc_id` and `text`; `questions.jsonl` is a gold file as `ragtrace gold load`
takes it. Without the two, the documents and questions of `ragtrace demo` are used. Run it again with other options and
another --run, then compare the two runs in one report.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import bm25s
import faiss
import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

import ragtrace as rt


class Hit(NamedTuple):
    """A chunk as a search returns it."""

    id: str
    doc_id: str
    start: int
    end: int
    text: str
    score: float = 0.0


def words(text: str) -> list[str]:
    """Lower-case words; Chinese in pairs of characters, for it has no blanks."""
    found: list[str] = []
    for word in re.findall(r"[\u3400-\u9fff]+|[^\W_\u3400-\u9fff]+", text.lower()):
        is_chinese = "\u3400" <= word[0] <= "\u9fff"
        found.extend([word[i : i + 2] for i in range(len(word) - 1)] or [word] if is_chinese else [word])
    return found


class Pipeline:
    """Fixed-size chunks, BM25 beside latent semantic vectors, rank fusion, the best few as context."""

    def __init__(self, *, chunk_chars: int, overlap_chars: int, k: int, k_final: int) -> None:
        self.chunk_chars = chunk_chars
        self.overlap_chars = overlap_chars
        self.k = k
        self.k_final = k_final
        self.chunks: list[Hit] = []

    def add(self, doc_id: str, text: str) -> None:
        with rt.document(doc_id):
            self.store(self.split(doc_id, text))

    @rt.chunk
    def split(self, doc_id: str, text: str) -> list[Hit]:
        starts = range(0, max(1, len(text) - self.overlap_chars), self.chunk_chars - self.overlap_chars)
        ends = [min(len(text), start + self.chunk_chars) for start in starts]
        return [Hit(f"{doc_id}/{a}", doc_id, a, z, text[a:z]) for a, z in zip(starts, ends, strict=True)]

    @rt.index(complete=True)
    def store(self, chunks: list[Hit]) -> None:
        self.chunks.extend(chunks)

    def build(self) -> None:
        texts = [chunk.text for chunk in self.chunks]
        self.bm25 = bm25s.BM25()
        self.bm25.index([words(text) or ["-"] for text in texts], show_progress=False)
        self.tfidf = TfidfVectorizer(analyzer=words, sublinear_tf=True)
        weights = self.tfidf.fit_transform(texts)
        self.svd = TruncatedSVD(min(96, min(weights.shape) - 1), random_state=0)
        self.flat = faiss.IndexFlatIP(self.svd.n_components)
        self.flat.add(self.unit(self.svd.fit_transform(weights)))

    def ask(self, question: str, question_id: str) -> list[Hit]:
        """The chunks that would go into the prompt."""
        with rt.query(question, question_id=question_id):
            return self.fuse([self.by_words(question, self.k), self.by_vectors(question, self.k)], k=self.k_final)

    @rt.retrieve(name="bm25", mode="lexical")
    def by_words(self, question: str, k: int) -> list[Hit]:
        terms = [word for word in words(question) if word in self.bm25.vocab_dict]
        if not terms:
            return []
        rows, scores = self.bm25.retrieve([terms], k=min(k, len(self.chunks)), show_progress=False)
        return self.hits(rows[0], scores[0])

    @rt.retrieve(name="vectors", mode="exact", score_kind="similarity")
    def by_vectors(self, question: str, k: int) -> list[Hit]:
        vector = self.unit(self.svd.transform(self.tfidf.transform([question])))
        scores, rows = self.flat.search(vector, min(k, len(self.chunks)))
        return self.hits(rows[0], scores[0])

    @rt.fuse(name="rrf", score_kind="rrf", final=True)
    def fuse(self, lists: list[list[Hit]], k: int) -> list[Hit]:
        scores: dict[str, float] = {}
        by_id = {hit.id: hit for found in lists for hit in found}
        for found in lists:
            for rank, hit in enumerate(found, 1):
                scores[hit.id] = scores.get(hit.id, 0.0) + 1 / (60 + rank)
        best = sorted(scores, key=lambda name: (-scores[name], name))[:k]
        return [by_id[name]._replace(score=scores[name]) for name in best]

    def hits(self, rows: Iterable[Any], scores: Iterable[Any]) -> list[Hit]:
        found = zip(rows, scores, strict=True)
        return [self.chunks[row]._replace(score=float(score)) for row, score in found if score > 0]

    @staticmethod
    def unit(vectors: Any) -> Any:
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.ascontiguousarray(vectors / np.maximum(lengths, 1e-12), dtype=np.float32)


def documents(corpus: Path | None) -> dict[str, str]:
    if corpus is not None:
        rows = (json.loads(line) for line in corpus.read_text("utf-8").splitlines())
        return {row["doc_id"]: row["text"] for row in rows}
    from ragtrace.cli.demo.corpus import pages
    from ragtrace.cli.demo.parse import parse_page

    return {page.doc_id: parse_page(page.raw) for page in pages()}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--store", type=Path, default=Path("traces.duckdb"))
    parser.add_argument("--corpus", type=Path, help="JSON lines with doc_id and text [default: the demo's documents]")
    parser.add_argument("--questions", type=Path, help="gold file [default: the demo's questions]")
    parser.add_argument("--run", default="baseline", help="label of this configuration")
    parser.add_argument("--chunk-chars", type=int, default=600)
    parser.add_argument("--overlap-chars", type=int, default=100)
    parser.add_argument("--k", type=int, default=20, help="chunks from each retriever")
    parser.add_argument("--k-final", type=int, default=5, help="chunks into the prompt")
    parser.add_argument("--limit", type=int, help="only the first questions")
    options = parser.parse_args(arguments)
    if not 0 <= options.overlap_chars < options.chunk_chars:
        parser.error("--overlap-chars must be smaller than --chunk-chars")
    if options.questions is None:
        from ragtrace.cli.demo.main import QUESTIONS

        options.questions = QUESTIONS

    rt.configure(options.store, run=options.run, service="offline evaluation")
    pipeline = Pipeline(
        chunk_chars=options.chunk_chars, overlap_chars=options.overlap_chars, k=options.k, k_final=options.k_final
    )
    for doc_id, text in documents(options.corpus).items():
        pipeline.add(doc_id, text)
    pipeline.build()
    lines = options.questions.read_text("utf-8").splitlines()[: options.limit]
    for row in map(json.loads, lines):
        pipeline.ask(row["question"], row["question_id"])
    rt.shutdown()

    ragtrace = [sys.executable, "-m", "ragtrace"]
    subprocess.run([*ragtrace, "gold", "load", str(options.store), str(options.questions)], check=True)
    return subprocess.run([*ragtrace, "report", str(options.store), "--run", options.run], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
