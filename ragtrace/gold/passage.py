"""One passage and no gold file: where it stands in the recorded documents, and evidence that lasts for one look.

For the complaint of one user: "the document has it, why was it missed?"
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import duckdb

from ragtrace import alignment
from ragtrace.errors import GoldError, QuestionNotFoundError
from ragtrace.gold import loading, rows
from ragtrace.gold.texts import Text, garbled_from
from ragtrace.progress import Progress
from ragtrace.store import kept

__all__ = ["Passage", "TemporaryEvidence", "locate", "with_temporary_evidence"]

_MOST_PASSAGES = 50
"""Places of one quote that are looked at over all documents."""

_MOST_LIKELY = 12
"""Texts in which the nearest passage is sought when no text has the quote."""

_LEAST_ALIKE = 0.3
"""Similarity below which the nearest passage has nothing to do with the quote."""

_FETCHED_ROWS = 200
"""Texts held in memory at a time."""


class Passage(NamedTuple):
    """One place where a quote stands, or the nearest one."""

    doc_id: str
    text_hash: str
    is_newest: bool
    """The text is the document's newest parsed one."""
    start_at: int
    """In code points of that text."""
    end_at: int
    quality: str
    """exact, normalized, or nearest: only like it."""
    similarity: float
    """1, or the share of the quote's counting characters that the nearest passage has in order."""
    text: str
    """The passage as it stands there."""


class TemporaryEvidence(NamedTuple):
    """What the views judge inside `with_temporary_evidence`."""

    question_id: str
    passages: dict[str, list[Passage]]
    """Per quote, where it was found: in newest texts, else in older ones, else the nearest passages."""


_NEWEST = """
with

newest as (
    select doc_id, arg_max(text_hash, parsed_at_ns) as text_hash
    from parses
    where doc_id is not null and text_hash is not null
    group by doc_id
),

known as (
    select distinct doc_id, text_hash from parses where doc_id is not null and text_hash is not null
),

captured as (
    select text_hash, any_value(text) as text
    from texts
    where coalesce(is_aligned, true)
    group by text_hash
)

select known.doc_id, known.text_hash, newest.doc_id is not null as is_newest, captured.text
from known
inner join captured on known.text_hash = captured.text_hash
left join newest on known.doc_id = newest.doc_id and known.text_hash = newest.text_hash
"""


def locate(
    connection: duckdb.DuckDBPyConnection, quote: str, doc_id: str | None = None, progress: Progress | None = None
) -> list[Passage]:
    """Where a passage stands in the captured texts: to the letter, else in normal form, else what is most like it.

    Newest texts first, then by document and place; the nearest passages by similarity. Empty when nothing is like it.
    `doc_id` looks in one document only. About 0.1 s per million characters unless the quote stands there to the letter.

    Raises: GoldError when the quote is empty or no parsed text was captured.
    """
    if not quote.strip():
        raise GoldError("the quote is empty: give the passage that has the answer")
    where = "where ($doc_id is null or known.doc_id = $doc_id)"
    exact = connection.execute(
        f"{_NEWEST} {where} and contains(captured.text, $quote)", {"doc_id": doc_id, "quote": quote}
    ).fetchall()
    found = [
        passage
        for doc, text_hash, is_newest, text in exact
        for passage in _standing(doc, text_hash, is_newest, text, quote)
    ]
    if found:
        return _ordered(found)
    n_texts = connection.execute(f"select count(*) from ({_NEWEST} {where})", {"doc_id": doc_id}).fetchall()[0][0]
    if not n_texts:
        if doc_id is not None:
            _must_be_known(connection, doc_id)
        raise GoldError(
            "no parsed text was captured to look for the quote: record the parse stage (@rt.parse inside"
            " rt.document(...)) with capture_text=documents, or label chunk ids in a gold file"
        )
    likely: list[tuple[float, int, str, str, bool, str]] = []
    grams = _grams(quote)
    result = connection.execute(f"{_NEWEST} {where} order by known.doc_id, known.text_hash", {"doc_id": doc_id})
    n_done = 0
    while batch := result.fetchmany(_FETCHED_ROWS):
        for row_doc_id, text_hash, is_newest, text in batch:
            found.extend(_standing(row_doc_id, text_hash, is_newest, text, quote))
            if not found:
                lower = text.lower()
                votes = sum(gram in lower for gram in grams) / max(1, len(grams))
                heapq.heappush(likely, (votes, -n_done, row_doc_id, text_hash, is_newest, text))
                if len(likely) > _MOST_LIKELY:
                    heapq.heappop(likely)
            n_done += 1
        if progress:
            progress("looking for the passage", n_done, n_texts)
    return _ordered(found) if found else _nearest(likely, quote)


def _must_be_known(connection: duckdb.DuckDBPyConnection, doc_id: str) -> None:
    """Raises: GoldError when documents are recorded, and none of that id; `fields["nearest"]` holds the nearest ids."""
    known = connection.execute(
        "select doc_id from (select doc_id from parses union select doc_id from documents) where doc_id is not null"
        " order by doc_id = $doc_id desc, jaro_winkler_similarity(lower(doc_id), lower($doc_id)) desc, doc_id limit 3",
        {"doc_id": doc_id},
    ).fetchall()
    nearest = [name for (name,) in known]
    if nearest and doc_id not in nearest:
        offered = ", ".join(map(repr, nearest))
        raise GoldError(
            f"no document {doc_id!r} is recorded in this store; nearest: {offered}", doc_id=doc_id, nearest=nearest
        )


def _standing(doc_id: str, text_hash: str, is_newest: bool, text: str, quote: str) -> list[Passage]:
    there = Text(text_hash, text)
    quality, places = "exact", there.exact(quote)
    if not places:
        quality, places = "normalized", there.loosely(quote)
    return [Passage(doc_id, text_hash, is_newest, start, end, quality, 1.0, text[start:end]) for start, end in places]


def _ordered(found: Sequence[Passage]) -> list[Passage]:
    def order(p: Passage) -> tuple[Any, ...]:
        return (not p.is_newest, p.quality != "exact", p.doc_id, p.text_hash, p.start_at)

    return sorted(found, key=order)[:_MOST_PASSAGES]


def _grams(quote: str) -> list[str]:
    """Pieces of the quote, in lower case, of which a text that is like it has many."""
    letters = quote.lower()
    size = min(6, max(1, len(letters) // 3))
    step = max(1, len(letters) // 40)
    return [letters[at : at + size] for at in range(0, max(1, len(letters) - size + 1), step)]


def _nearest(likely: Sequence[tuple[float, int, str, str, bool, str]], quote: str) -> list[Passage]:
    found: list[Passage] = []
    for _, _, doc_id, text_hash, is_newest, text in likely:
        start, end, similarity = alignment.nearest(text, quote)
        if similarity >= _LEAST_ALIKE:
            found.append(Passage(doc_id, text_hash, is_newest, start, end, "nearest", similarity, text[start:end]))
    return sorted(found, key=lambda p: (-p.similarity, not p.is_newest, p.doc_id, p.start_at))


@contextmanager
def with_temporary_evidence(
    connection: duckdb.DuckDBPyConnection, query_id: int, quotes: Sequence[str], doc_id: str | None = None
) -> Iterator[TemporaryEvidence]:
    """Inside the `with`, the views judge one query by these quotes instead of the loaded labels; nothing is stored.

    Each quote is one need; every newest text in which it stands can serve it. A quote that no newest text has is
    sought in the older texts, then laid on the document with the nearest passage (or on `doc_id`), so that the verdict
    says where it was lost before any search. Other queries that ask the same question are judged too. Works
    read-only.

    Raises: GoldError as `locate`; also when no document has the quote, not even damaged, and `doc_id` is not given.
    QuestionNotFoundError when there is no such query.
    """
    asked = connection.execute(
        "select question_id, question_hash from queries where query_id = ?", [query_id]
    ).fetchall()
    if not asked:
        raise QuestionNotFoundError(f"there is no query {query_id} in the store", query_id=query_id)
    question_id, question_hash = asked[0]
    if question_id is None:
        question_id = f"query {query_id}"
    passages = {quote: locate(connection, quote, doc_id) for quote in quotes}
    items = [item for number, quote in enumerate(quotes, 1) for item in _items(quote, number, passages[quote], doc_id)]
    with rows.shadows(connection, empty=("questions", "evidence", "evidence_places")):
        loading.load_rows(connection, [{"question_id": question_id, "gold": items}], gold_set="quote")
        connection.execute("update questions set question_hash = ?", [question_hash])
        with kept.stand_ins(connection):
            yield TemporaryEvidence(question_id, passages)


def _items(quote: str, number: int, passages: Sequence[Passage], doc_id: str | None) -> list[dict[str, Any]]:
    need = f"quote {number}"
    standing = [p for p in passages if p.quality != "nearest"]
    if standing:
        best = [p for p in standing if p.is_newest] or standing
        return [{"doc_id": p.doc_id, "start": p.start_at, "end": p.end_at, "quote": p.text, "need": need} for p in best]
    if doc_id is None and passages and passages[0].similarity >= garbled_from(alignment.count(quote)):
        doc_id = passages[0].doc_id
    if doc_id is None:
        nearest = (
            f" (nearest: {alignment.letters(passages[0].similarity)}, in {passages[0].doc_id!r})" if passages else ""
        )
        raise GoldError(
            f"no recorded document has this passage{nearest}: its document was not ingested, or the parser lost it;"
            " name the document (--doc) to see which"
        )
    return [{"doc_id": doc_id, "quote": quote, "need": need}]
