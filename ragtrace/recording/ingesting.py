"""What goes into and comes out of the stages before a query: parsed texts, chunks with their places, written ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ragtrace import clock, digest
from ragtrace.recording import candidates, texts
from ragtrace.recording.lists import Listed, identities, select
from ragtrace.recording.parameters import Argument
from ragtrace.recording.values import as_json
from ragtrace.spool.records import Columns, Record

if TYPE_CHECKING:
    from ragtrace.recording.runs import Run

__all__ = ["Parsed", "take_inputs", "take_output"]

PAGE_BREAK = "\f"


class Parsed(NamedTuple):
    """A parsed text of the document in hand."""

    text: str
    text_hash: str
    object_id: int
    """Identity of what the parser returned, when that was no string."""


def take_inputs(run: Run, arguments: Iterable[Argument]) -> None:
    """Remember what a chunk or index stage was given; `take_output` records it, when the result is known."""
    if run.stage.kind in ("chunk", "index"):
        run.given = [*run.given, *(argument for argument in arguments if not _is_plain(argument[1]))]


def take_output(run: Run, result: Any) -> None:
    """Record a parsed text, placed chunks, or the chunks that were written."""
    kind = run.stage.kind
    if kind == "parse":
        _take_parsed(run, result)
    elif kind == "chunk":
        _take_chunks(run, result)
    elif kind == "index":
        _take_index(run, result)
    run.given = ()


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (int, float, bytes, bool))


# ------------------------------------------------------------------------------------------------ parse


def _take_parsed(run: Run, result: Any) -> None:
    read = _text_of(result)
    if read is None:
        run.note(f"unreadable output: {type(result).__name__}")
        return
    _record_text(run, read[0], read[1], result)


def _record_text(run: Run, text: str, pages: list[list[int]] | None, value: Any) -> Parsed:
    """Write a parsed text; a chunk stage's text that no parse put out counts as parsed there."""
    document = run.document
    text_hash = digest.of_text(text)
    parse = Record(
        "parse",
        {
            "stage_id": run.id,
            "doc_id": run.recorder.capture.name(document.doc_id) if document is not None else None,
            "doc_version": run.recorder.capture.name(document.version) if document is not None else None,
            "text_hash": text_hash,
            "n_characters": len(text),
            "parsed_at_ns": clock.wall_ns(),
            "pages": as_json(pages) if pages else None,
            "process_id": run.recorder.process_id,
        },
    )
    captured = run.recorder.capture.document(text, text_hash)
    run.ingest_records = [*run.ingest_records, parse, *([] if captured is None else [captured])]
    parsed = Parsed(text, text_hash, 0 if isinstance(value, str) else id(value))
    if document is not None:
        document.parsed.append(parsed)
    return parsed


def _text_of(value: Any) -> tuple[str, list[list[int]] | None] | None:
    """A value as one parsed text, with the ranges of its pages when it is a list of them. None when it is neither."""
    if isinstance(value, str):
        return value, None
    pages = candidates.text_refs(value, strings_are_texts=True) if isinstance(value, (list, tuple)) else None
    if pages is None:
        text = candidates.text_of_item(value)
        return (text, None) if text is not None else None
    ranges = []
    at = 0
    for page in pages:
        ranges.append([at, at + len(page or "")])
        at += len(page or "") + len(PAGE_BREAK)
    return PAGE_BREAK.join(page or "" for page in pages), ranges


# ------------------------------------------------------------------------------------------------ chunk


def _take_chunks(run: Run, result: Any) -> None:
    pieces = candidates.pieces(result)
    if pieces is None:
        run.note(f"unreadable output: {type(result).__name__}")
        one = Listed(run.recorder.next_id(), "out", None)
        one.is_complete = False
        run.lists.append(one)
        return
    parsed = _given_text(run)
    columns = _chunk_columns(result, [piece.text for piece in pieces])
    if parsed is not None:
        columns = _place(columns, parsed, pieces)
    columns = _with_document(run, columns)
    one = Listed(run.recorder.next_id(), "out", columns)
    one.texts = [piece.text for piece in pieces]
    one.ids = one.texts
    one.object_id = id(result)
    run.lists.append(one)


def _given_text(run: Run) -> Parsed | None:
    """The parsed text that a chunk stage was given; recorded here when no parse stage put it out."""
    document = run.document
    known = document.parsed if document is not None else []
    for _, given in run.given:
        for parsed in reversed(known):
            if parsed.object_id and parsed.object_id == id(given):
                return parsed
    texts_given = [given for _, given in run.given if isinstance(given, str)]
    read: tuple[str, list[list[int]] | None] | None = None
    value: Any = None
    if texts_given:
        value = max(texts_given, key=len)
        read = value, None
    else:
        for _, given in run.given:
            read = _text_of(given)
            if read is not None:
                value = given
                break
    if read is None:
        return known[-1] if len(known) == 1 else None
    for parsed in reversed(known):
        if parsed.text == read[0]:
            return parsed
    return _record_text(run, read[0], read[1], value)


def _chunk_columns(value: Any, chunk_texts: Sequence[str | None]) -> Columns:
    """The columns of chunks; bare strings are texts, never ids."""
    columns = Columns([None] * len(chunk_texts))
    if not (isinstance(value, (list, tuple)) and value and isinstance(value[0], str)):
        read = candidates.read(value)
        if read is not None and len(read.chunk_id) == len(chunk_texts):
            columns = read
    if columns.id_source in ("range", "text"):
        columns = columns._replace(chunk_id=[None] * len(chunk_texts), id_source="native")
    return columns._replace(item_text_hash=[None if text is None else digest.of_text(text) for text in chunk_texts])


def _place(columns: Columns, parsed: Parsed, pieces: Sequence[candidates.Piece]) -> Columns:
    """Columns with the place of each chunk in the parsed text; declared ranges stay, hints are checked."""
    declared = columns.ranges or {}
    starts: list[int | None] = [None] * len(pieces)
    ends: list[int | None] = [None] * len(pieces)
    qualities: list[str | None] = ["none"] * len(pieces)
    ranges: dict[int, Any] = {}
    for row, (found, quality) in enumerate(texts.place_chunks(parsed.text, pieces)):
        if row in declared:
            ranges[row], qualities[row] = declared[row], "exact"
            continue
        qualities[row] = quality
        if len(found) == 1:
            starts[row], ends[row] = found[0]
        elif found:
            ranges[row] = found
    return columns._replace(
        start=starts, end=ends, ranges=ranges or None, offset_quality=qualities, text_hash=parsed.text_hash
    )


def _with_document(run: Run, columns: Columns) -> Columns:
    """Rows without a document are of the one in hand."""
    doc_id = run.document.doc_id if run.document is not None else None
    if doc_id is None:
        return columns
    n = len(columns.chunk_id)
    # The document in hand names the text that offsets refer to, whatever file name the metadata repeats.
    return columns._replace(doc_id=[doc_id] * n)


# ------------------------------------------------------------------------------------------------ index


def _take_index(run: Run, result: Any) -> None:
    """The chunks an index stage took, and as output the ids they got with the places they have."""
    outputs = run.scope.outputs
    written = None
    argument_name = None
    given: list[tuple[Argument, list[str | None]]] = []
    for argument in run.given:
        pieces = candidates.pieces(argument[1])
        if pieces is None:
            continue
        piece_texts = [piece.text for piece in pieces]
        source = _known_chunks(outputs, argument[1], piece_texts)
        if source is not None:
            written, argument_name, columns = source, argument[0], source.columns
            break
        given.append((argument, piece_texts))
    if written is not None:
        one = Listed(run.recorder.next_id(), "in", None, argument_name)
        one.same_as = (written.list_id,)
        one.ids = written.ids
        run.lists.append(one)
        columns = written.columns
    else:
        chosen = _chunks_among(given)
        if chosen is None:
            run.note("no chunks among the arguments")
            one = Listed(run.recorder.next_id(), "in", None)
            one.is_complete = False
            run.lists.append(one)
            return
        argument, piece_texts = chosen
        columns = _with_document(run, _chunk_columns(argument[1], piece_texts))
        if run.document is not None and len(run.document.parsed) == 1 and columns.start is None:
            pieces = candidates.pieces(argument[1]) or []
            columns = _place(columns, run.document.parsed[0], pieces)
        one = Listed(run.recorder.next_id(), "in", columns, argument[0])
        one.ids = piece_texts
        run.lists.append(one)
    assert columns is not None
    kept = _rows_written(result, columns)
    if kept is not None:
        columns = select(columns, kept)
        out = Listed(run.recorder.next_id(), "out", columns)
        out.ids = columns.chunk_id
        run.lists.append(out)
        return
    names = _ids_given(run, result, len(columns.chunk_id), columns)
    if names is not None:
        out = Listed(run.recorder.next_id(), "out", columns._replace(chunk_id=names, id_source="native"))
        out.ids = names
        run.lists.append(out)


def _known_chunks(outputs: Sequence[Listed], value: Any, piece_texts: Sequence[str | None]) -> Listed | None:
    """The earlier chunk list that this is, by object or by its texts."""
    for output in reversed(outputs):
        if output.columns is not None and output.object_id == id(value) and output.texts == piece_texts:
            return output
    for output in reversed(outputs):
        if output.columns is not None and output.texts and output.texts == piece_texts:
            return output
    return None


def _chunks_among(given: Sequence[tuple[Argument, list[str | None]]]) -> tuple[Argument, list[str | None]] | None:
    """The argument that holds the chunks: objects before bare strings, long strings before short ones (ids)."""
    best = None
    best_length = -1.0
    for argument, piece_texts in given:
        lengths = [len(text) for text in piece_texts if text is not None]
        length = sum(lengths) / len(lengths) if lengths else 0.0
        if not (isinstance(argument[1], (list, tuple)) and argument[1] and isinstance(argument[1][0], str)):
            length += 1_000_000
        if length > best_length:
            best, best_length = (argument, piece_texts), length
    return best


def _rows_written(result: Any, columns: Columns) -> list[int] | None:
    """The rows an index stage wrote, when it returns the ids of fewer chunks than it took; None when it does not say so."""
    returned = candidates.read(result) if isinstance(result, (list, tuple)) else None
    if returned is None or not 0 < len(returned.chunk_id) < len(columns.chunk_id):
        return None
    rows = {name: row for row, name in enumerate(columns.chunk_id) if name is not None}
    found = [rows.get(name) if name is not None else None for name in returned.chunk_id]
    return None if None in found else [row for row in found if row is not None]


def _ids_given(run: Run, result: Any, n: int, columns: Columns) -> Sequence[str | None] | None:
    """The ids under which n chunks were written: returned, passed beside them, or the chunks' own."""
    returned = candidates.read(result) if result is not None and not isinstance(result, str) else None
    if returned is not None and len(returned.chunk_id) == n and n:
        return returned.chunk_id
    if None not in columns.chunk_id:
        return None
    for argument in run.given:
        value = argument[1]
        if isinstance(value, str):
            continue
        read = candidates.read(value)
        if (
            read is not None
            and len(read.chunk_id) == n
            and None not in read.chunk_id
            and read.id_source not in ("range", "text")
            and candidates.text_refs(value) is None
            and identities(read, None) != columns.chunk_id
        ):
            return read.chunk_id
    return None
