"""The gold spans of a description, and which of their spots any ranges of its documents hold."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from tests.model import facts
from tests.property.description import Document, Gold, Pipeline, Range


def counts(character: str) -> bool:
    """Letters, digits, marks and symbols count; punctuation and blanks do not."""
    return unicodedata.category(character)[0] in "LNMS"


class Golds:
    """The gold spans of a pipeline and what ranges of its documents hold of them."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.by_id: dict[str, Gold] = {}
        self.spans: list[facts.Span] = []
        for set_no, golds in enumerate(pipeline.sets, start=1):
            for number, gold in enumerate(golds, start=1):
                evidence_id = f"{pipeline.question_id}#{set_no}.{number}"
                self.by_id[evidence_id] = gold
                self.spans.append(
                    facts.Span(evidence_id, set_no, gold.need, gold.doc_id, frozenset(self._counting(gold)))
                )

    def _counting(self, gold: Gold) -> set[int]:
        if gold.level != "span":
            return {0}
        document = self.pipeline.document(gold.doc_id)
        passage = gold.lost_quote or document.text[gold.start : gold.end]
        everything = set(range(len(passage)))
        if not gold.has_quote and not document.has_recorded_text:
            return everything
        return {at for at in everything if counts(passage[at])} or everything

    def spots(self, doc_id: str, ranges: Sequence[Range]) -> frozenset[facts.Spot]:
        """What the ranges hold."""
        found: set[facts.Spot] = set()
        for span in self.spans:
            gold = self.by_id[span.evidence_id]
            if gold.doc_id != doc_id or gold.lost_quote:
                continue
            if gold.level == "document":
                found |= span.spots
                continue
            held = {
                at - gold.start for start, end in ranges for at in range(max(start, gold.start), min(end, gold.end))
            }
            found |= span.spots if held and gold.level == "page" else {s for s in span.spots if s[1] in held}
        return frozenset(found)

    def possibly(self, doc_id: str) -> frozenset[facts.Spot]:
        """What anything of this document may hold."""
        return frozenset(s for span in self.spans if span.doc_id == doc_id for s in span.spots)

    def chunk_entry(self, chunk_id: str) -> facts.Entry:
        """A chunk as the chunker or the index stage showed it."""
        chunk = self.pipeline.chunk(chunk_id)
        assert chunk is not None
        return facts.Entry(chunk_id, sure=self.spots(chunk.doc_id, chunk.ranges))

    def of_document(self, document: Document) -> frozenset[str]:
        """Evidence ids of a document."""
        return frozenset(span.evidence_id for span in self.spans if span.doc_id == document.doc_id)

    def found(self, document: Document) -> frozenset[str]:
        """Those that stand in its parsed text."""
        return frozenset(x for x in self.of_document(document) if not self.by_id[x].lost_quote)
