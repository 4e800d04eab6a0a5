"""Labels into places: where every labelled passage stands in every captured text of its document.

Works document by document. A document is looked at again when a label of it is new or a text of it has become known;
what it then says depends on its texts alone, never on the order in which they came.
"""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import duckdb

from ragtrace import alignment
from ragtrace.gold import rows
from ragtrace.gold.binding import Bound, KnownText, bind, bind_document
from ragtrace.gold.texts import Text
from ragtrace.progress import Progress
from ragtrace.store import kept

__all__ = ["Placed", "place"]

_BATCH_CHARACTERS = 20_000_000
"""Parsed text held in memory at a time, in code points."""

_BATCH_DOCUMENTS = 1_000
_MOST_SUGGESTED = 50
"""Unknown documents for which a recorded one with a similar name is looked for: each costs a pass over all names."""


class Placed(NamedTuple):
    """What was done."""

    n_documents: int
    """Documents whose labels were looked at."""
    n_labels: int
    """Labels that were held against the texts of their document."""
    n_searches: int
    """Pairs of a label and a text."""


def place(connection: duckdb.DuckDBPyConnection, progress: Progress | None = None) -> Placed:
    """Fill `evidence_places` and the derived columns of `evidence` for all that is new, in one transaction.

    Cheap when nothing is new. To be called after every merge and every load. Raises: duckdb.Error when the store
    cannot be written.
    """
    with kept.transaction(connection):
        _place_chunks(connection)
        documents = connection.execute(_STALE_DOCUMENTS).fetchall()
        if not documents:
            return Placed(0, 0, 0)
        kept.forget(connection)
        names = _Names(connection)
        n_done = n_labels = n_searches = 0
        for batch in _batches(documents):
            labels = _labels(connection, batch)
            known = _known_texts(connection, batch)
            found = [
                (label, known_texts, _bound(label, known_texts, names))
                for doc_id, of_document in labels.items()
                for known_texts in [known.get(doc_id, [])]
                for label in of_document
            ]
            _write(connection, found)
            n_labels += len(found)
            n_searches += sum(len(bound.places) for _, _, bound in found)
            n_done += len(batch)
            if progress:
                progress("placing labels", n_done, len(documents))
    return Placed(len(documents), n_labels, n_searches)


# Documents with a label that was never placed, a text that was never searched, or a reason to doubt what was said.
_STALE_DOCUMENTS = """
with

known as (
    select
        parses.doc_id,
        parses.text_hash,
        min(parses.parsed_at_ns) as first_parsed_at_ns,
        bool_or(coalesce(texts.is_aligned, texts.text_hash is not null)) as is_searchable,
        max(parses.n_characters) as n_characters
    from parses
    left join texts on parses.text_hash = texts.text_hash
    where parses.doc_id is not null and parses.text_hash is not null
    group by parses.doc_id, parses.text_hash
),

wanted as (
    select evidence_id, doc_id, level, label_status
    from evidence
    where level <> 'chunk' and doc_id is not null
),

recorded as (
    select doc_id from documents where doc_id is not null
    union
    select doc_id from known
),

unsearched as (
    select wanted.doc_id
    from wanted
    inner join known on wanted.doc_id = known.doc_id and (known.is_searchable or wanted.level = 'document')
    left join evidence_places
        on wanted.evidence_id = evidence_places.evidence_id and known.text_hash = evidence_places.text_hash
    where evidence_places.evidence_id is null and wanted.label_status is not null
),

unchecked as (
    select evidence_places.doc_id
    from evidence_places
    inner join known on evidence_places.doc_id = known.doc_id
    where
        evidence_places.quality = 'unchecked'
        and (evidence_places.text_hash is distinct from known.text_hash or known.is_searchable)
),

-- An earlier parse of a text that is known already came late: other labels may have been made on it.
rebound as (
    select evidence.doc_id
    from evidence
    inner join known
        on evidence.doc_id = known.doc_id and evidence.made_on_text_hash = known.text_hash
    where evidence.made_on_ns is distinct from known.first_parsed_at_ns
    union
    select evidence.doc_id
    from evidence
    inner join evidence_places on evidence.evidence_id = evidence_places.evidence_id
    inner join known
        on evidence_places.doc_id = known.doc_id and evidence_places.text_hash = known.text_hash
    where
        evidence.doc_version is null
        and evidence_places.is_found
        and known.first_parsed_at_ns < evidence.made_on_ns
        and case
            when evidence.quote is null then known.n_characters >= evidence.end_at
            else evidence.start_at is null or evidence.start_at = evidence_places.start_at
        end
    union
    select evidence.doc_id
    from evidence
    inner join parses on evidence.doc_id = parses.doc_id and evidence.doc_version = parses.doc_version
    where evidence.made_on_text_hash is null and evidence.label_status not in ('text_missing', 'text_garbled')
),

stale as (
    select doc_id from rebound
    union
    select doc_id from wanted where label_status is null
    union
    select doc_id from unsearched
    union
    select doc_id from unchecked
    union
    select doc_id from wanted
    where label_status = 'document_unknown' and doc_id in (select doc_id from recorded)
    union
    select doc_id from wanted
    where
        label_status = 'unplaced'
        and doc_id not in (select doc_id from recorded)
        and exists (select doc_id from recorded)
),

sizes as (
    select doc_id, sum(n_characters) as n_characters from known group by doc_id
)

select stale.doc_id, coalesce(sizes.n_characters, 0) as n_characters
from stale
left join sizes on stale.doc_id = sizes.doc_id
order by stale.doc_id
"""

_LABELS = """
select evidence_id, doc_id, level, doc_version, start_at, end_at, quote
from evidence
where level <> 'chunk' and doc_id in (select unnest(?::varchar[]))
order by evidence_id
"""

_KNOWN_TEXTS = """
with

known as (
    select
        doc_id,
        text_hash,
        min(parsed_at_ns) as first_parsed_at_ns,
        list(distinct doc_version) filter (where doc_version is not null) as versions,
        max(n_characters) as n_characters
    from parses
    where text_hash is not null and doc_id in (select unnest(?::varchar[]))
    group by doc_id, text_hash
),

captured as (
    select text_hash, any_value(text) as text
    from texts
    where coalesce(is_aligned, true)
    group by text_hash
)

select known.doc_id, known.text_hash, known.first_parsed_at_ns, known.versions, known.n_characters, captured.text
from known
left join captured on known.text_hash = captured.text_hash
order by known.doc_id, known.first_parsed_at_ns, known.text_hash
"""

_PLACE_CHUNKS = """
update evidence set
    n_characters = 1,
    label_status = case when known.chunk_id is null then 'unplaced' else 'placed' end,
    label_note = case
        when known.chunk_id is null
            then 'no recorded list, index or inventory holds this chunk id: compare it with the ids the index gives'
    end
from (select distinct evidence.chunk_id as wanted_id from evidence where evidence.level = 'chunk') as wanted
left join (
    select chunk_id from items where chunk_id is not null
    union
    select chunk_id from inventories where chunk_id is not null
) as known on wanted.wanted_id = known.chunk_id
where
    evidence.level = 'chunk'
    and evidence.chunk_id = wanted.wanted_id
    and evidence.label_status is distinct from case when known.chunk_id is null then 'unplaced' else 'placed' end
"""


def _place_chunks(connection: duckdb.DuckDBPyConnection) -> None:
    has_any = bool(connection.execute("select 1 from evidence where level = 'chunk' limit 1").fetchall())
    if has_any and connection.execute(_PLACE_CHUNKS).fetchall()[0][0]:
        kept.forget(connection)


def _batches(documents: Sequence[tuple[str, int]]) -> Iterator[list[str]]:
    batch: list[str] = []
    n_characters = 0
    for doc_id, size in documents:
        if batch and (n_characters + size > _BATCH_CHARACTERS or len(batch) >= _BATCH_DOCUMENTS):
            yield batch
            batch, n_characters = [], 0
        batch.append(doc_id)
        n_characters += size
    if batch:
        yield batch


def _labels(connection: duckdb.DuckDBPyConnection, doc_ids: list[str]) -> dict[str, list[dict[str, Any]]]:
    names = ("evidence_id", "doc_id", "level", "doc_version", "start_at", "end_at", "quote")
    labels: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in connection.execute(_LABELS, [doc_ids]).fetchall():
        label = dict(zip(names, row, strict=True))
        labels[label["doc_id"]].append(label)
    return labels


def _known_texts(connection: duckdb.DuckDBPyConnection, doc_ids: list[str]) -> dict[str, list[KnownText]]:
    known: dict[str, list[KnownText]] = defaultdict(list)
    for doc_id, text_hash, at, versions, n_characters, text in connection.execute(_KNOWN_TEXTS, [doc_ids]).fetchall():
        captured = None if text is None else Text(text_hash, text)
        known[doc_id].append(KnownText(text_hash, at, frozenset(versions or ()), n_characters, captured))
    return known


class _Names:
    """Which documents are recorded; worked out when first asked for."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        found = connection.execute(
            "select doc_id from documents where doc_id is not null union select doc_id from parses where doc_id is not null"
        ).fetchall()
        self._recorded = {row[0] for row in found}
        self._n_suggested = 0

    def is_recorded(self, doc_id: str) -> bool:
        """True as well when no document is recorded at all: then nothing is known to be missing."""
        return not self._recorded or doc_id in self._recorded

    def unknown(self, doc_id: str) -> str:
        """What to do about a document that is not recorded, with a recorded one of a similar name."""
        note = "the document is not among the recorded ones: check doc_id, or record its parse"
        self._n_suggested += 1
        if self._n_suggested > _MOST_SUGGESTED:
            return note
        base = doc_id.replace("\\", "/").rpartition("/")[2]
        same_base = [name for name in self._recorded if name.replace("\\", "/").rpartition("/")[2] == base]
        similar = sorted(same_base)[:1] or difflib.get_close_matches(doc_id, sorted(self._recorded), 1, 0.75)
        return f"{note}; did you mean {similar[0]!r}?" if similar else note


def _bound(label: dict[str, Any], known: Sequence[KnownText], names: _Names) -> Bound:
    is_recorded = names.is_recorded(label["doc_id"])
    binding = bind_document if label["level"] == "document" else bind
    bound = binding(label, known, is_document_recorded=is_recorded)
    if bound.status == "document_unknown":
        return bound._replace(note=names.unknown(label["doc_id"]))
    return bound


def _write(
    connection: duckdb.DuckDBPyConnection, found: Sequence[tuple[dict[str, Any], Sequence[KnownText], Bound]]
) -> None:
    evidence: list[dict[str, Any]] = []
    places: list[dict[str, Any]] = []
    for label, known, bound in found:
        texts = {t.text_hash: t.text for t in known}
        for text_hash, place in bound.places.items():
            text = texts.get(text_hash) if text_hash is not None else None
            offsets = None
            is_stretched = label["level"] == "span" and place.is_found and bound.span_text is not None
            if is_stretched and text is not None and place.start_at is not None and place.end_at is not None:
                offsets = alignment.offsets_between(bound.span_text or "", text.text, place.start_at, place.end_at)
            places.append(
                {
                    "evidence_id": label["evidence_id"],
                    "doc_id": label["doc_id"],
                    "text_hash": text_hash,
                    "is_found": place.is_found,
                    "start_at": place.start_at,
                    "end_at": place.end_at,
                    "quality": place.quality,
                    "similarity": place.similarity,
                    "offsets": offsets,
                }
            )
        made_on = bound.made_on
        evidence.append(
            {
                "evidence_id": label["evidence_id"],
                "span_text": bound.span_text,
                "n_characters": bound.n_characters,
                "made_on_text_hash": made_on.text_hash if made_on else None,
                "made_on_ns": made_on.first_parsed_at_ns if made_on else None,
                "label_status": bound.status,
                "label_note": bound.note,
            }
        )
    with rows.frame(connection, "evidence", evidence) as name:
        connection.execute(f"delete from evidence_places where evidence_id in (select evidence_id from {name})")
        connection.execute(
            "update evidence set span_text = found.span_text, n_characters = found.n_characters,"
            " made_on_text_hash = found.made_on_text_hash, made_on_ns = found.made_on_ns,"
            f" label_status = found.label_status, label_note = found.label_note from {name} as found"
            " where evidence.evidence_id = found.evidence_id"
        )
    rows.insert(connection, "evidence_places", places)
