"""A hybrid RAG whose every setting can be changed, and which shows its losers: what what-if replays, run for real.

Four designs that choose in different ways. Searches, fusion and reranking are real; nothing here knows how a replay works.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import bm25s
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

import ragtrace as rt

from .rag import Piece, Rag, _terms

__all__ = ["DESIGNS", "Design", "Tuned"]


class Design(NamedTuple):
    """Settings of one service."""

    k_dense: int = 16
    k_lexical: int = 10
    shows_deeper: bool = False
    """Retrievers show twice as many as they pass on."""
    fusion: str = "rrf"
    """rrf, or scores: weighted sums of scores brought to 0..1."""
    constant: float = 60.0
    weights: tuple[float, float] = (1.0, 1.0)
    k_fused: int | None = None
    ties: str = "id"
    threshold: float | None = None
    """Of a filter on the fused score."""
    k_reranked: int | None = 6
    """None: no reranker."""
    rerank_threshold: float | None = None
    budget_tokens: int = 600
    policy: str = "stop"
    """stop, skip or part."""
    slice_after_fusion: int | None = None
    """Code outside of every stage that lets only so many go on."""


DESIGNS = {
    # Reranks all it finds, takes the best, packs until one does not fit.
    "reranked": Design(),
    # No reranker: the fused order decides, retrievers show deeper, and a forgotten slice stands behind the fusion.
    "fused": Design(
        shows_deeper=True,
        k_fused=14,
        ties="first",
        k_reranked=None,
        slice_after_fusion=10,
        budget_tokens=500,
        policy="skip",
    ),
    # Weighted shares, a filter on the fused score, a reranker with a threshold of its own.
    "thresholds": Design(
        weights=(1.0, 0.6), constant=20.0, threshold=0.018, k_reranked=8, rerank_threshold=0.05, budget_tokens=800
    ),
    # Weighted sums of scores instead of ranks.
    "scores": Design(
        shows_deeper=True,
        fusion="scores",
        weights=(0.7, 0.3),
        k_fused=12,
        k_reranked=None,
        budget_tokens=450,
        policy="skip",
    ),
    # The last candidate is cut to fit: what is left of it at another budget is not on record.
    "parts": Design(k_reranked=8, policy="part", budget_tokens=500),
}


class Hit(NamedTuple):
    """A piece with the score of the step that put it out."""

    piece: Piece
    score: float

    @property
    def tokens(self) -> int:
        """A third of its characters, at least one."""
        return max(1, len(self.piece.text) // 3)

    def candidate(self) -> rt.Candidate:
        p = self.piece
        return rt.Candidate(p.chunk_id, self.score, p.doc_id, p.start, p.end, text=p.text, tokens=self.tokens)


class Tuned(Rag):
    """The service: `ingest`, `build`, then `answer` with any design. Searches are exact, so that a smaller k is a shorter list."""

    is_recorded = True
    """False: the service runs as it would without ragtrace, and makes no candidates."""

    def _shown(self, hits: list[Hit]) -> list[rt.Candidate]:
        return [hit.candidate() for hit in hits] if self.is_recorded else []

    def build(self) -> None:
        """Make both indexes over what was stored."""
        self.pieces = list(self.written.values())
        texts = [p.text for p in self.pieces]
        self.bm25 = bm25s.BM25()
        self.bm25.index([_terms(t) or ["∅"] for t in texts], show_progress=False)
        self.tfidf = TfidfVectorizer(analyzer=_terms, sublinear_tf=True)
        self.matrix = self.tfidf.fit_transform(texts)
        # Searched once a question, for all that match: every k takes its first ones.
        self._vectors: dict[str, Any] = {}
        self._matches: dict[str, list[tuple[int, float]]] = {}
        self._words = [set(_terms(t)) for t in texts]
        self._at = {p.chunk_id: i for i, p in enumerate(self.pieces)}

    def ingest(self) -> None:
        for doc_id, raw in self.documents.items():
            with rt.document(doc_id, version="1"):
                self.store(self.split(doc_id, self.parse(doc_id, raw)))
        self.build()

    def answer(self, question_id: str, question: str, design: Design) -> list[Piece]:
        """What goes into the prompt."""
        with rt.query(question, question_id=question_id):
            dense = self._search("dense", question, design.k_dense, design)
            lexical = self._search("lexical", question, design.k_lexical, design)
            hits, taken = self._fuse(dense, lexical, design)
            if design.slice_after_fusion is not None:
                hits, taken = hits[: design.slice_after_fusion], taken[: design.slice_after_fusion]
            if design.threshold is not None:
                hits, taken = self._filter(hits, taken, design)
            if design.k_reranked is not None:
                hits, taken = self._rerank(question, hits, taken, design)
            return self._pack(hits, taken, design)

    def _search(self, name: str, question: str, k: int, design: Design) -> tuple[list[Hit], list[rt.Candidate]]:
        mode = "exact" if name == "dense" else "lexical"
        with rt.retrieve(name=name, mode=mode, k=k, index="main", score_kind="similarity", query=question) as stage:
            deep = min(2 * k if design.shows_deeper else k, len(self.pieces))
            found = self._nearest(question, deep) if name == "dense" else self._by_words(question, deep)
            if design.shows_deeper:
                stage.considered(self._shown(found))
            shown = self._shown(found[:k])
            stage.output(shown)
        return found[:k], shown

    def _nearest(self, question: str, k: int) -> list[Hit]:
        if question not in self._vectors:
            self._vectors[question] = np.asarray((self.matrix @ self.tfidf.transform([question]).T).todense()).ravel()
        scores = self._vectors[question]
        order = np.argsort(-scores, kind="stable")[:k]
        return [Hit(self.pieces[i], float(scores[i])) for i in order]

    def _by_words(self, question: str, k: int) -> list[Hit]:
        if question not in self._matches:
            terms = [_terms(question) or ["∅"]]
            found, scores = self.bm25.retrieve(terms, k=len(self.pieces), show_progress=False)
            self._matches[question] = [(int(i), float(s)) for i, s in zip(found[0], scores[0], strict=True) if s > 0]
        return [Hit(self.pieces[i], score) for i, score in self._matches[question][:k]]

    def _fuse(
        self, dense: tuple[list[Hit], Any], lexical: tuple[list[Hit], Any], design: Design
    ) -> tuple[list[Hit], list[rt.Candidate]]:
        said: dict[str, Any] = (
            {"constant": design.constant} if design.fusion == "rrf" else {"method": "weighted_scores"}
        )
        with rt.fuse(name="fuse", k=design.k_fused, weights=list(design.weights), score_kind="rrf", **said) as stage:
            stage.input(dense[1])
            stage.input(lexical[1])
            points: dict[str, float] = {}
            by_id: dict[str, Piece] = {}
            for weight, hits in zip(design.weights, (dense[0], lexical[0]), strict=True):
                low, high = (min(h.score for h in hits), max(h.score for h in hits)) if hits else (0.0, 0.0)
                for rank, (p, score) in enumerate(hits, 1):
                    if design.fusion == "rrf":
                        share = 1 / (design.constant + rank)
                    else:
                        share = (score - low) / (high - low) if high > low else 1.0
                    if weight:
                        points[p.chunk_id] = points.get(p.chunk_id, 0.0) + weight * share
                        by_id[p.chunk_id] = p
            order = sorted(points) if design.ties == "id" else list(points)
            order.sort(key=lambda i: -points[i])
            fused = [Hit(by_id[i], points[i]) for i in order[: design.k_fused]]
            shown = self._shown(fused)
            stage.output(shown)
        return fused, shown

    def _filter(self, hits: list[Hit], taken: Any, design: Design) -> tuple[list[Hit], list[rt.Candidate]]:
        with rt.filter(name="enough", threshold=design.threshold, higher_is_better=True) as stage:
            stage.input(taken)
            passed = [hit for hit in hits if hit.score >= (design.threshold or 0.0)]
            shown = self._shown(passed)
            stage.output(shown)
        return passed, shown

    def _rerank(
        self, question: str, hits: list[Hit], taken: Any, design: Design
    ) -> tuple[list[Hit], list[rt.Candidate]]:
        with rt.rerank(
            name="rerank", k=design.k_reranked, threshold=design.rerank_threshold, score_kind="other", query=question
        ) as stage:
            stage.input(taken)
            asked = set(_terms(question))
            scored = []
            for hit in hits:
                words = self._words[self._at[hit.piece.chunk_id]]
                scored.append(Hit(hit.piece, len(asked & words) / (len(asked) + len(words)) ** 0.5))
            scored.sort(key=lambda hit: -hit.score)
            stage.considered(self._shown(scored))
            least = design.rerank_threshold
            best = [hit for hit in scored if least is None or hit.score >= least][: design.k_reranked]
            shown = self._shown(best)
            stage.output(shown)
        return best, shown

    def _pack(self, hits: list[Hit], taken: Any, design: Design) -> list[Piece]:
        with rt.truncate(name="pack", budget_tokens=design.budget_tokens, final=True) as stage:
            stage.input(taken)
            left = design.budget_tokens
            packed: list[Hit] = []
            for hit in hits:
                if hit.tokens <= left:
                    packed.append(hit)
                    left -= hit.tokens
                    continue
                if design.policy == "part" and left > 0:
                    p = hit.piece
                    text = p.text[: 3 * left]
                    packed.append(Hit(p._replace(end=p.start + len(text), text=text), hit.score))
                if design.policy != "skip":
                    break
            stage.output(self._shown(packed))
        return [hit.piece for hit in packed]
