"""What a label was made on, and what is wrong with it, from where its passage stands in the texts of its document.

Pure: works on values, knows nothing of databases. Its results are the derived columns of `evidence`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ragtrace import alignment
from ragtrace.gold.texts import Hint, Place, Text

__all__ = ["TOUCHED_LEVELS", "Bound", "KnownText", "bind", "bind_document"]

Range = tuple[int, int]

TOUCHED_LEVELS = ("page", "section", "document", "chunk")
"""Levels that are found when touched: one piece of weight 1."""


class KnownText(NamedTuple):
    """One parsed text of a document, captured or not; given oldest first."""

    text_hash: str
    first_parsed_at_ns: int
    versions: frozenset[str]
    n_characters: int | None
    text: Text | None
    """None: not captured, or redacted to another length."""


class Bound(NamedTuple):
    """A label held against the texts of its document."""

    places: dict[str | None, Place]
    """By text hash. The key None: no parse of the document is known and the labelled offsets stand as they are."""
    span_text: str | None
    n_characters: int
    made_on: KnownText | None
    status: str
    note: str | None


def bind(label: Mapping[str, Any], known: Sequence[KnownText], *, is_document_recorded: bool) -> Bound:
    """Place one label of level span, page or section. `known` is oldest first. Never raises."""
    offsets = None if label["start_at"] is None else (label["start_at"], label["end_at"])
    quote: str | None = label["quote"]
    version: str | None = label["doc_version"]
    of_version = [t for t in known if version is None or version in t.versions]
    if all(t.text is None for t in known):
        return _unchecked(label, known, of_version, offsets, is_document_recorded=is_document_recorded)
    if quote is None and offsets is not None:
        return _bind_range(label, offsets, known, of_version)
    quote = quote or ""
    made_on = _made_on(quote, offsets, version, of_version)
    places = _places(quote, offsets, known, made_on)
    if made_on is None:
        made_on = _holding(places, known, version, offsets)
    status, note = _status(label, quote, offsets, known=known, places=places, made_on=made_on)
    return Bound(places, quote, _size(label, quote, offsets), made_on, status, note)


def _bind_range(
    label: Mapping[str, Any], offsets: Range, known: Sequence[KnownText], of_version: Sequence[KnownText]
) -> Bound:
    """A label without a quote: what stands at its offsets in its version's text, else in the oldest long enough."""
    size = _size(label, None, offsets)
    if not of_version:
        version = label["doc_version"]
        unknown = f"no parsed text of version {version!r} is recorded, nor a quote to look for: add the quote"
        return Bound({}, None, size, None, "unplaced", unknown)
    for made_on in of_version:
        if made_on.text is not None and offsets[1] <= len(made_on.text.text):
            quote = made_on.text.text[slice(*offsets)]
            places = _places(quote, offsets, known, made_on)
            note: str | None = None
            if len(of_version) > 1:
                note = (
                    f"there is no quote: the passage is taken from the oldest of {len(of_version)} parsed texts;"
                    " add the quote or the doc_version"
                )
            return Bound(places, quote, _size(label, quote, offsets), made_on, "placed", note)
    if any(t.text is None for t in of_version):
        note = "the text it was made on was not captured, and there is no quote to look for: add the quote"
        return Bound({}, None, size, None, "unplaced", note)
    longest = max(len(t.text.text) for t in of_version if t.text is not None)
    note = _out_of_range(offsets, longest)
    nowhere = Place(False, None, None, "text_missing", 0.0)
    return Bound({t.text_hash: nowhere for t in known if t.text is not None}, None, size, None, "misaligned", note)


def _out_of_range(offsets: Range, n_characters: int) -> str:
    return (
        f"the range ends at {offsets[1]}, the parsed text has {n_characters} code points:"
        " correct the range, or name the doc_version it was made on"
    )


def bind_document(label: Mapping[str, Any], known: Sequence[KnownText], *, is_document_recorded: bool) -> Bound:
    """Place one label of level document: every text of the document that is not empty holds it. Never raises."""
    version = label["doc_version"]
    made_on = next((t for t in known if version is not None and version in t.versions), None)
    places: dict[str | None, Place] = {}
    for text in known:
        if text.n_characters == 0:
            places[text.text_hash] = Place(False, None, None, "text_missing", 0.0)
        else:
            places[text.text_hash] = Place(True, 0, text.n_characters, "exact", None)
    if not known:
        places[None] = Place(True, None, None, "unchecked", None)
        status = "unplaced" if is_document_recorded else "document_unknown"
        return Bound(places, None, 1, None, status, "no parsed text of the document is recorded")
    if not any(place.is_found for place in places.values()):
        return Bound(places, None, 1, made_on, "text_missing", "the parsed text is empty: check the parser")
    note = None
    if version is not None and made_on is None:
        note = f"no parsed text of version {version!r} is recorded"
    return Bound(places, None, 1, made_on, "placed", note)


def _size(label: Mapping[str, Any], span_text: str | None, offsets: Range | None) -> int:
    if label["level"] in TOUCHED_LEVELS:
        return 1
    if span_text is not None:
        return len(span_text)
    return offsets[1] - offsets[0] if offsets else 1


def _unchecked(
    label: Mapping[str, Any],
    known: Sequence[KnownText],
    of_version: Sequence[KnownText],
    offsets: Range | None,
    *,
    is_document_recorded: bool,
) -> Bound:
    """No text to hold the label against: its own offsets stand where it is clear which text they mean."""
    quote = label["quote"]
    # Offsets in one of several texts that nobody kept mean nothing in the others.
    made_on = of_version[0] if len(of_version) == 1 else None
    places: dict[str | None, Place] = {}
    if offsets is not None and (made_on is not None or not known):
        places[made_on.text_hash if made_on else None] = Place(True, *offsets, "unchecked", None)
    if offsets is None:
        note = (
            "no text of the document was captured to look for the quote: give start and end, or record"
            " its parse stage with capture_text=documents"
        )
    elif quote is not None and len(quote) != offsets[1] - offsets[0]:
        note = (
            f"the quote has {len(quote)} code points, the range {offsets[1] - offsets[0]}:"
            " make sure that the offsets count code points of the parsed text"
        )
        quote = None
    else:
        note = "no text of the document was captured: the offsets are taken as they are"
    sizes = [t.n_characters for t in of_version]
    if offsets is not None and sizes and all(size is not None and size < offsets[1] for size in sizes):
        note = _out_of_range(offsets, max(size or 0 for size in sizes))
        return Bound({}, None, _size(label, None, offsets), made_on, "misaligned", note)
    status = "unplaced" if known or is_document_recorded else "document_unknown"
    return Bound(places, quote, _size(label, quote, offsets), made_on, status, note)


def _made_on(
    quote: str, offsets: Range | None, version: str | None, of_version: Sequence[KnownText]
) -> KnownText | None:
    """The text that the offsets fit, the oldest first; of a named version, else its oldest text."""
    if offsets is not None:
        for fits in (_holds, _has_near):
            for text in of_version:
                if text.text is not None and fits(text.text, quote, offsets):
                    return text
    # A quote alone that its version's text lacks was lost by the parser: it was made on what no text holds.
    return of_version[0] if version is not None and of_version and offsets is not None else None


def _holds(text: Text, quote: str, offsets: Range) -> bool:
    return text.holds(quote, offsets) or text.is_masked_at(quote, offsets)


def _has_near(text: Text, quote: str, offsets: Range) -> bool:
    place = text.search(quote, offsets)
    return place is not None and text.is_near(place, offsets)


def _places(
    quote: str, offsets: Range | None, known: Sequence[KnownText], made_on: KnownText | None
) -> dict[str | None, Place]:
    """Where the passage stands in every captured text; first in the one it was made on, which guides the others."""
    places: dict[str | None, Place] = {}
    hint: Hint | None = None
    ordered = sorted(known, key=lambda t: t is not made_on)
    for text in ordered:
        if text.text is None:
            continue
        place = text.text.search(quote, offsets, hint)
        if place is None:
            continue
        places[text.text_hash] = place
        if text is made_on and place.quality == "exact" and len(ordered) > 1:
            hint = text.text.hint(quote, place)
    return places


def _holding(
    places: Mapping[str | None, Place], known: Sequence[KnownText], version: str | None, offsets: Range | None
) -> KnownText | None:
    """For a label that no text's offsets tell: the oldest text that holds the passage."""
    holding = [t for t in known if t.text_hash in places and places[t.text_hash].is_found]
    if version is not None:
        return next((t for t in holding if version in t.versions), None)
    if offsets is not None and len(known) > 1:
        # Offsets that fit none of several texts: it may have been made on any of them, or on none.
        return None
    return holding[0] if holding else None


def _status(
    label: Mapping[str, Any],
    quote: str,
    offsets: Range | None,
    *,
    known: Sequence[KnownText],
    places: Mapping[str | None, Place],
    made_on: KnownText | None,
) -> tuple[str, str | None]:
    version = label["doc_version"]
    is_version_unknown = version is not None and not any(version in t.versions for t in known)
    note = None
    if is_version_unknown:
        note = f"no parsed text of version {version!r} is recorded; looked for by the quote alone"
    elif offsets is not None and label["quote"] is not None:
        at = made_on if made_on is not None and made_on.text is not None else None
        candidates = [at] if at else [t for t in known if t.text is not None]
        checked = [(t, places.get(t.text_hash)) for t in candidates]
        is_aligned = any(t.text and p and (t.text.is_near(p, offsets)) for t, p in checked)
        # A text that nobody kept may be the one the offsets fit.
        is_certain = at is not None or all(t.text is not None for t in known)
        if not is_aligned and is_certain and all(p is not None for _, p in checked):
            return "misaligned", _shift(quote, offsets, [(t.text, p) for t, p in checked if t.text and p])
        if is_aligned and len(quote) != offsets[1] - offsets[0]:
            note = (
                f"the range has {offsets[1] - offsets[0]} code points, the quote {len(quote)}: the quote counts;"
                " correct end if it is inclusive or the quote is shortened"
            )
    return _found(places, made_on, note, n_captured=sum(t.text is not None for t in known))


def _found(
    places: Mapping[str | None, Place], made_on: KnownText | None, note: str | None, n_captured: int
) -> tuple[str, str | None]:
    order = {"exact": "placed", "normalized": "normalized", "ambiguous": "ambiguous"}
    found = [p for p in places.values() if p.is_found]
    own = places.get(made_on.text_hash) if made_on is not None else None
    best = own if own is not None and own.is_found else None
    if best is None and found:
        best = min(found, key=lambda p: list(order).index(p.quality))
    if best is not None:
        if best.quality == "ambiguous":
            note = f"the quote stands {best.n_places} times in the parsed text: give start and end, or a longer quote"
        return order[best.quality], note
    if len(places) < n_captured or not places:
        return "unplaced", "the captured text is redacted where the quote may stand: give start and end"
    nearest = max(places.values(), key=lambda p: p.similarity or 0.0)
    alike = f"the nearest passage has {alignment.letters(nearest.similarity or 0)}"
    if nearest.quality == "text_garbled":
        return "text_garbled", f"the quote is not in the parsed text as it stands, {alike}: compare the parser's output"
    return (
        "text_missing",
        f"the quote is nowhere in the parsed text, {alike}: check the parser, the doc_id or the quote",
    )


def _shift(quote: str, offsets: Range, checked: Sequence[tuple[Text, Place]]) -> str:
    """What the offsets seem to count, or how far off they are, and what to do."""
    for text, _ in checked:
        reading = text.reading(quote, offsets[0])
        if reading is not None:
            return f"the offsets seem to count {reading[0]}: convert them to code points of the parsed text"
    standing = [(text, place) for text, place in checked if place.is_found and place.start_at is not None]
    if not standing:
        similarity = max((place.similarity or 0.0) for _, place in checked)
        return (
            f"the quote stands nowhere in the parsed text (nearest passage: {alignment.letters(similarity)}),"
            " and not at the offsets: correct the label, or name the doc_version it was made on"
        )
    text, place = min(standing, key=lambda pair: abs(int(pair[1].start_at or 0) - offsets[0]))
    if place.quality == "ambiguous":
        return (
            f"the quote stands {place.n_places} times in the parsed text, never at or near the offsets:"
            " correct start and end, or name the doc_version they were made on"
        )
    shift = int(place.start_at or 0) - offsets[0]
    where = f"{abs(shift)} code points {'after' if shift > 0 else 'before'} its labelled start"
    return (
        f"the quote stands {where}, at {place.start_at}: correct the offsets, or name the doc_version they were made on"
    )
