"""The service that the demo traces: hybrid retrieval over a manual, each step a decorated method.

This is the one module of the demo that knows ragtrace. Without the lines that begin with `@rt.` or `with rt.` it is
the same service.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import ragtrace as rt
from ragtrace.cli.demo.chunking import Hit, Passage, split_text
from ragtrace.cli.demo.corpus import Page
from ragtrace.cli.demo.parse import parse_page
from ragtrace.cli.demo.search import LexicalIndex, VectorIndex, count_tokens, words

__all__ = ["Manual"]

INDEX = "manual"
# The settings of the service, as a team would have them after its first good week: every one of them loses something.
MAX_CHARS = 700
MIN_CHARS = 60
K_LEXICAL = 10
K_VECTOR = 10
DIMENSIONS = 96
LINKS = 6
EF_SEARCH = 12
RRF_CONSTANT = 60
K_FUSED = 12
K_RERANKED = 4
BUDGET_TOKENS = 800

# Words that carry no meaning in an English search box. That some are Python's keywords is the team's surprise.
_STOP_WORDS = frozenset(
    words(
        "a about after all also am an and any are as at be been before but by can could did do does doing each for from had"
        " has have having how i if in into is it its just let like make many may me mean most my no nor not of off on once"
        " only or other our out over own python same should so some such than that the their them then there these they"
        " this those to too under until up use used uses using very was way we were what when where which while who why"
        " will with without would you your"
    )
)


class Manual:
    """A question answering service over the pages of a manual: `add` them, `build`, then `ask`."""

    def __init__(self) -> None:
        self.passages: list[Passage] = []
        self._texts: dict[tuple[str, str], str] = {}
        self._beside: dict[str, tuple[Passage | None, Passage | None]] = {}
        self._edition = ""

    # ------------------------------------------------------------ before the query

    def add(self, page: Page) -> None:
        """Parse, chunk and store one page. An earlier edition of it stays where it is."""
        with rt.document(page.doc_id, version=page.edition):
            text = self.parse(page.raw)
            self.store(self.split(page, text))
        self._texts[page.doc_id, page.edition] = text
        self._edition = page.edition

    @rt.parse
    def parse(self, raw: str) -> str:
        """The page's running text, without its tables."""
        return parse_page(raw, keep_tables=False)

    @rt.chunk(index=INDEX)
    def split(self, page: Page, text: str) -> list[Passage]:
        """The page's passages, each with its place in the text."""
        return split_text(page.doc_id, page.edition, text, max_chars=MAX_CHARS, min_chars=MIN_CHARS)

    @rt.index(index=INDEX, complete=True)
    def store(self, passages: list[Passage]) -> None:
        """Put the passages into the index; every write goes through here, so what is not recorded is not there."""
        self.passages.extend(passages)

    def build(self) -> None:
        """Make both indexes over what was stored."""
        self.lexical = LexicalIndex(self.passages)
        self.vectors = VectorIndex(self.passages, dimensions=DIMENSIONS, links=LINKS, ef_search=EF_SEARCH)
        for passage, before, after in zip(
            self.passages, [None, *self.passages], [*self.passages[1:], None], strict=False
        ):
            self._beside[passage["id"]] = (_if_same_page(passage, before), _if_same_page(passage, after))

    # ------------------------------------------------------------ the query

    def ask(self, question: str, question_id: str | None = None) -> str:
        """The sentences of the manual that answer the question best; empty when it finds nothing."""
        with rt.query(question, question_id=question_id):
            terms = self.rewrite(question)
            by_words = self.search_words(terms)
            by_vectors = self.search_vectors(terms)
            self.search_exactly(terms)
            fused = self.fuse(by_words, by_vectors)
            usable = self.keep_usable(fused)
            best = self.rerank(question, usable)
            return self.answer(question, self.pack(self.add_neighbours(best)))

    @rt.rewrite
    def rewrite(self, question: str) -> str:
        """Search terms: no stop words, no version numbers; the question itself when nothing would be left."""
        terms = [word for word in words(question) if word not in _STOP_WORDS and not word.isdecimal()]
        return " ".join(terms) or question

    @rt.retrieve(name="bm25", mode="lexical", index=INDEX, k=K_LEXICAL, score_kind="other")
    def search_words(self, query: str) -> list[Hit]:
        """The best by BM25."""
        return self.lexical.search(query, K_LEXICAL)

    @rt.retrieve(name="hnsw", mode="ann", index=INDEX, k=K_VECTOR, score_kind="similarity")
    def search_vectors(self, query: str) -> list[Hit]:
        """The nearest that the graph search meets."""
        return self.vectors.search(query, K_VECTOR)

    @rt.retrieve(name="flat", mode="exact", index=INDEX, k=K_VECTOR, score_kind="similarity", aside=True)
    def search_exactly(self, query: str) -> list[Hit]:
        """Not on the way to the answer: it shows what the graph search missed."""
        return self.vectors.search_exactly(query, K_VECTOR)

    @rt.fuse(name="rrf", k=K_FUSED, score_kind="rrf")
    def fuse(self, *ranked: Sequence[Hit]) -> list[Hit]:
        """Reciprocal rank fusion; of passages with the same text the best ranked one stays."""
        scores: dict[str, float] = {}
        passages: dict[str, Hit] = {}
        for hits in ranked:
            for rank, hit in enumerate(hits, 1):
                scores[hit["id"]] = scores.get(hit["id"], 0.0) + 1 / (RRF_CONSTANT + rank)
                passages[hit["id"]] = hit
        best: dict[str, Hit] = {}
        for name in sorted(scores, key=lambda name: (-scores[name], name)):
            best.setdefault(passages[name]["text"], {**passages[name], "score": scores[name]})
        return list(best.values())[:K_FUSED]

    def keep_usable(self, hits: Sequence[Hit]) -> list[Hit]:
        """Prose of the current edition: no earlier editions, no grammar productions."""
        with rt.filter(name="usable") as stage:
            stage.input(hits)
            usable = []
            for hit in hits:
                if hit["edition"] != self._edition:
                    stage.dropped(hit["id"], "filtered", by="edition")
                elif _is_grammar(hit["text"]):
                    stage.dropped(hit["id"], "filtered", by="grammar")
                else:
                    usable.append(hit)
            stage.output(usable)
        return usable

    def rerank(self, question: str, hits: Sequence[Hit]) -> list[Hit]:
        """The best by shared words and similarity to the question as asked."""
        with rt.rerank(name="cross scorer", k=K_RERANKED, query=question, score_kind="similarity") as stage:
            stage.input(hits)
            asked = set(words(question))
            similarities = self.vectors.similarities(question, hits)
            scored: list[Hit] = [
                {**hit, "score": similarity + len(asked & set(words(hit["text"]))) / len(asked)}
                for hit, similarity in zip(hits, similarities, strict=True)
            ]
            scored.sort(key=lambda hit: (-hit["score"], hit["id"]))
            stage.considered(scored)
            best = scored[:K_RERANKED]
            stage.output(best)
        return best

    @rt.expand(name="neighbours")
    def add_neighbours(self, hits: Sequence[Hit]) -> list[Hit]:
        """Each passage with the ones before and after it on the page: answers often stand just beside."""
        return [self._with_neighbours(hit) for hit in hits]

    def _with_neighbours(self, hit: Hit) -> Hit:
        before, after = self._beside[hit["id"]]
        start = hit["start"] if before is None else before["start"]
        end = hit["end"] if after is None else after["end"]
        text = self._texts[hit["doc_id"], hit["edition"]][start:end]
        return {**hit, "start": start, "end": end, "text": text, "tokens": count_tokens(text)}

    @rt.truncate(name="pack", budget_tokens=BUDGET_TOKENS)
    def pack(self, hits: Sequence[Hit]) -> list[Hit]:
        """Passages in order while they fit; the first that does not is cut after its last whole sentence that does."""
        packed: list[Hit] = []
        left = BUDGET_TOKENS
        for hit in hits:
            n_tokens = count_tokens(hit["text"])
            if n_tokens > left:
                text = _fitting(hit["text"], left)
                if text:
                    packed.append({**hit, "text": text, "end": hit["start"] + len(text), "tokens": count_tokens(text)})
                break
            packed.append({**hit, "tokens": n_tokens})
            left -= n_tokens
        return packed

    @rt.generate(name="extract", answer=True)
    def answer(self, question: str, context: Sequence[Hit]) -> str:
        """The two sentences of the context that share most with the question, in its order."""
        asked = set(words(question)) - _STOP_WORDS
        sentences = [sentence for passage in context for sentence in _sentences(passage["text"])]
        by_overlap = sorted(range(len(sentences)), key=lambda i: (-len(asked & set(words(sentences[i]))), i))
        return " ".join(sentences[i].strip() for i in sorted(by_overlap[:2]))


def _if_same_page(passage: Passage, other: Passage | None) -> Passage | None:
    same = other is not None and (other["doc_id"], other["edition"]) == (passage["doc_id"], passage["edition"])
    return other if same else None


def _is_grammar(text: str) -> bool:
    """At least every third line is a production."""
    return 3 * text.count("::=") >= len(text.splitlines())


_SENTENCE = re.compile(r".+?(?:[.!?](?=\s)|\n\n|\Z)", re.S)


def _sentences(text: str) -> list[str]:
    return _SENTENCE.findall(text)


def _fitting(text: str, n_tokens: int) -> str:
    """The longest beginning of whole sentences that takes at most `n_tokens`; empty when the first is too long."""
    end = 0
    for sentence in _SENTENCE.finditer(text):
        if count_tokens(text[: sentence.end()]) > n_tokens:
            break
        end = sentence.end()
    return text[:end]
