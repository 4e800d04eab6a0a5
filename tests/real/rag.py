"""A hybrid RAG over a real corpus, traced through the public API, in which one fault at a time can be planted.

Every stage keeps what it was given and what it let through in `seen`, so that a plain oracle can say, without
ragtrace, where each character of an evidence span was last seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import bm25s
import faiss
import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

import ragtrace as rt

__all__ = ["FAULTS", "Piece", "Rag", "by_sentence", "by_size"]

FAULTS = (
    "none",
    "page_not_parsed",
    "chunk_cut",
    "chunk_not_written",
    "ann_crippled",
    "bad_rewrite",
    "filter_drops",
    "fusion_forgets_a_list",
    "reranker_cuts",
    "untraced_slice",
    "budget_too_small",
)

_SENTENCE = re.compile(r"[^.!?。！？\n\f]+[.!?。！？\n\f]*")


class Piece(NamedTuple):
    """A chunk: its document and range."""

    chunk_id: str
    doc_id: str
    start: int
    end: int
    text: str


def by_size(doc_id: str, text: str, size: int = 420, overlap: int = 60) -> list[Piece]:
    """Windows of `size` characters that overlap."""
    starts = range(0, max(1, len(text) - overlap), size - overlap)
    return [Piece(f"{doc_id}:s{a}", doc_id, a, min(len(text), a + size), text[a : a + size]) for a in starts]


def by_sentence(doc_id: str, text: str, size: int = 300) -> list[Piece]:
    """Whole sentences packed up to about `size` characters, no overlap; a long sentence stays whole."""
    pieces: list[Piece] = []
    start, end = 0, 0
    for match in _SENTENCE.finditer(text):
        if end > start and match.end() - start > size:
            pieces.append(Piece(f"{doc_id}:t{start}", doc_id, start, end, text[start:end]))
            start = match.start()
        end = match.end()
    if end > start:
        pieces.append(Piece(f"{doc_id}:t{start}", doc_id, start, end, text[start:end]))
    return pieces


def _terms(text: str) -> list[str]:
    # Characters in pairs for scripts without blanks, words for the rest.
    out: list[str] = []
    for word in re.findall(r"[一-鿿]+|[^\W_]+", text.lower()):
        out.extend([word[i : i + 2] for i in range(len(word) - 1)] or [word] if "一" <= word[0] <= "鿿" else [word])
    return out


class Rag:
    """The service. `hits(question_id, range)` style faults are given as sets of question ids that they touch."""

    def __init__(
        self, documents: dict[str, str | bytes], chunker: Callable[[str, str], list[Piece]], fault: str
    ) -> None:
        self.fault = fault
        self.chunker = chunker
        self.documents = documents
        self.lost_ranges: dict[str, list[tuple[int, int]]] = {}
        """Per document, the ranges an ingest-side fault takes away."""
        self.texts: dict[str, str] = {}
        self.chunked: dict[str, list[Piece]] = {}
        self.written: dict[str, Piece] = {}
        self.seen: dict[str, list[tuple[str, list[Piece]]]] = {}
        self.touched = False
        self._place = ""

    # ------------------------------------------------------------ ingest
    def ingest(self) -> None:
        for doc_id, raw in self.documents.items():
            with rt.document(doc_id, version="1"):
                pieces = self.split(doc_id, self.parse(doc_id, raw))
                # A document of which nothing is written never reaches the index; of the others the index forgets some.
                if self._writable(pieces):
                    self.store(pieces)
        self.pieces = list(self.written.values())
        texts = [p.text for p in self.pieces]
        self.bm25 = bm25s.BM25()
        self.bm25.index([_terms(t) or ["∅"] for t in texts], show_progress=False)
        self.tfidf = TfidfVectorizer(analyzer=_terms, sublinear_tf=True)
        matrix = self.tfidf.fit_transform(texts)
        self.svd = TruncatedSVD(min(96, matrix.shape[1] - 1, matrix.shape[0] - 1), random_state=7)
        vectors = np.ascontiguousarray(self.svd.fit_transform(matrix), dtype=np.float32)
        faiss.normalize_L2(vectors)
        self.ann = faiss.IndexHNSWFlat(vectors.shape[1], 16, faiss.METRIC_INNER_PRODUCT)
        self.ann.hnsw.efConstruction = 80
        faiss.omp_set_num_threads(1)
        self.ann.add(vectors)

    @rt.parse
    def parse(self, doc_id: str, raw: str | bytes) -> str:
        if isinstance(raw, bytes):
            import pypdfium2

            pdf = pypdfium2.PdfDocument(raw)
            text = "\f".join(page.get_textpage().get_text_range() for page in pdf)
        else:
            text = raw
        if self.fault == "page_not_parsed":
            for start, end in self.lost_ranges.get(doc_id, ()):
                text = text[:start] + "\u2591" * (end - start) + text[end:]
        self.texts[doc_id] = text
        return text

    @rt.chunk(index="main")
    def split(self, doc_id: str, text: str) -> list[Piece]:
        pieces = self.chunker(doc_id, text)
        if self.fault == "chunk_cut":
            cut = []
            for p in pieces:
                ends = [max(a, p.start) for a, b in self.lost_ranges.get(doc_id, ()) if a < p.end and b > p.start]
                end = min([p.end, *ends])
                if end > p.start:
                    cut.append(p._replace(end=end, text=text[p.start : end]))
            pieces = cut
        self.chunked[doc_id] = pieces
        return pieces

    @rt.index(index="main", complete=True)
    def store(self, pieces: list[Piece]) -> list[str]:
        pieces = self._writable(pieces)
        self.written.update((p.chunk_id, p) for p in pieces)
        return [p.chunk_id for p in pieces]

    def _writable(self, pieces: list[Piece]) -> list[Piece]:
        if self.fault != "chunk_not_written" or not pieces:
            return pieces
        doomed = self.lost_ranges.get(pieces[0].doc_id, ())
        return [p for p in pieces if not any(a < p.end and b > p.start for a, b in doomed)]

    # ------------------------------------------------------------ query
    def ask(self, question_id: str, question: str, touched: bool) -> list[Piece]:
        self.touched = touched
        self._place = question_id
        self.seen[question_id] = []
        with rt.query(question, question_id=question_id):
            q = self.rewrite(question)
            fused = self.fuse(self.dense(q), self.lexical(q))
            allowed = self.allow(fused)
            if self.fault == "untraced_slice" and touched:
                allowed = allowed[:2]
            return self.pack(self.rerank(question, allowed))

    def _note(self, name: str, pieces: list[Piece]) -> list[Piece]:
        self.seen[self._place].append((name, list(pieces)))
        return pieces

    def _is(self, fault: str) -> bool:
        return self.fault == fault and self.touched

    @rt.rewrite
    def rewrite(self, question: str) -> str:
        return " ".join(question.split()[-1:])[:2] if self._is("bad_rewrite") else question

    @rt.retrieve(mode="ann", k=24, index="main", score_kind="similarity")
    def dense(self, q: str) -> list[tuple[Piece, float]]:
        vector = np.ascontiguousarray(self.svd.transform(self.tfidf.transform([q])), dtype=np.float32)
        faiss.normalize_L2(vector)
        self.ann.hnsw.efSearch = 1 if self._is("ann_crippled") else 200
        scores, found = self.ann.search(vector, 1 if self._is("ann_crippled") else 24)
        hits = [(self.pieces[i], float(s)) for s, i in zip(scores[0], found[0], strict=True) if i >= 0]
        self._note("dense", [p for p, _ in hits])
        return hits

    @rt.retrieve(mode="lexical", k=12, index="main", score_kind="similarity")
    def lexical(self, q: str) -> list[tuple[Piece, float]]:
        if self._is("ann_crippled"):
            return []
        k = min(12, len(self.pieces))
        found, scores = self.bm25.retrieve([_terms(q) or ["∅"]], k=k, show_progress=False)
        hits = [(self.pieces[i], float(s)) for i, s in zip(found[0], scores[0], strict=True) if s > 0]
        self._note("lexical", [p for p, _ in hits])
        return hits

    @rt.fuse
    def fuse(self, a: list[tuple[Piece, float]], b: list[tuple[Piece, float]]) -> list[Piece]:
        if self._is("fusion_forgets_a_list"):
            a, b = [], b[:3]
        points: dict[str, float] = {}
        by_id: dict[str, Piece] = {}
        for hits in (a, b):
            for rank, (p, _) in enumerate(hits, 1):
                points[p.chunk_id] = points.get(p.chunk_id, 0.0) + 1 / (60 + rank)
                by_id[p.chunk_id] = p
        return self._note("fuse", [by_id[i] for i in sorted(points, key=lambda i: (-points[i], i))])

    @rt.filter(name="allow")
    def allow(self, pieces: list[Piece]) -> list[Piece]:
        # By document: a chunk that overlaps a dropped one would bring the evidence to a later stage.
        forbidden = {p.doc_id for p in pieces[:3]} if self._is("filter_drops") else set()
        return self._note("allow", [p for p in pieces if p.text.strip() and p.doc_id not in forbidden])

    @rt.rerank(k=12)
    def rerank(self, question: str, pieces: list[Piece]) -> list[Piece]:
        self._note("rerank.in", pieces)
        terms = set(_terms(question))
        ordered = sorted(pieces, key=lambda p: -len(terms.intersection(_terms(p.text))))
        return self._note("rerank", ordered[: 1 if self._is("reranker_cuts") else 12])

    @rt.truncate(budget_tokens=1800, final=True)
    def pack(self, pieces: list[Piece]) -> list[Piece]:
        left = 60 if self._is("budget_too_small") else 1800
        kept = []
        for p in pieces:
            left -= len(p.text) // 3
            if left < 0:
                break
            kept.append(p)
        return self._note("pack", kept)
