"""From runs and scopes to records: here strings are searched, texts compared, and nothing of the user's is left alive."""

from __future__ import annotations

from collections.abc import Sequence
from json.encoder import encode_basestring as quoted
from typing import TYPE_CHECKING, Any

from ragtrace import clock, digest
from ragtrace.recording import matching
from ragtrace.recording.lists import Listed
from ragtrace.recording.values import as_json
from ragtrace.spool import frames
from ragtrace.spool.columns import text_bytes
from ragtrace.spool.records import CandidateList, Record

if TYPE_CHECKING:
    from ragtrace.recording.runs import Run
    from ragtrace.recording.scopes import Document, Query, Scope

__all__ = ["pack_context", "pack_document", "pack_query", "pack_run"]


def pack_run(scope: Scope, run: Run, records: list[Record | bytes]) -> tuple[int, int]:
    """Append the records of one ended run; the lists and the candidate rows among them are returned as counts."""
    lists: list[CandidateList | Listed] = []
    n_candidates = 0
    is_looked_at = scope.recorder.settings.redact is not None or bool(scope.first_texts)
    for one in run.lists:
        packed: CandidateList | Listed | None = one
        if is_looked_at or one.string is not None or one.texts is not None:
            packed = _pack_list(scope, run.stage.kind, run.start_no if one.role == "in" else run.end_no, one)
        if packed is not None:
            lists.append(packed)
            if packed.columns is not None:
                n_candidates += len(packed.columns.chunk_id)
    if run.ingest_records:
        records.extend(run.ingest_records)
    trace_id, span_id, parent_span_id = run.ids()
    is_of_document = scope.is_document
    records.append(
        frames.stage_frame(
            (
                run.id,
                0 if is_of_document or scope.is_orphan else scope.id,
                scope.id if is_of_document else 0,
                run.parent_stage_id,
                run.start_no,
                run.end_no,
                run.started_at_ns,
                run.duration_ns,
                run.recorder.process_id,
                trace_id >> 64,
                trace_id & _LOW_64,
                span_id,
                parent_span_id,
            ),
            _repeated_bytes(run),
            _extra_bytes(scope, run),
            lists,
        )
    )
    return len(lists), n_candidates


_LOW_64 = (1 << 64) - 1
_MAX_KEPT = 256


def _repeated_bytes(run: Run) -> bytes:
    """The columns that are the same in most runs of the stage, as they are written."""
    process_id = run.recorder.process_id
    key = (
        process_id, run.status, run.is_aside, run.probe, run.is_orphan, run.is_detached, run.round, *run.values.items()
    )  # fmt: skip
    kept = run.stage.repeated
    repeated = kept.get(key)
    if repeated is None:
        capture = run.recorder.capture
        row = {
            **run.stage.row,
            **run.values,
            "status": run.status,
            "is_aside": run.is_aside,
            "probe": run.probe,
            "is_orphan": run.is_orphan,
            "is_detached": run.is_detached,
        }
        if run.round is not None:
            row.setdefault("round", run.round)
        if "params" in row:
            row["params"] = capture.json(row["params"])
        for name in ("name", "index_name", "mode"):
            if name in row:
                row[name] = capture.name(row[name])
        if len(kept) >= _MAX_KEPT:
            kept.clear()
        repeated = kept[key] = frames.repeated_bytes(row)
    return repeated


def _extra_bytes(scope: Scope, run: Run) -> bytes:
    """The columns that differ from run to run, as they are written."""
    text = run.query_text
    if not run.extra and not run.stage.extra and run.error_type is None and not run.errors:
        if text is None:
            return b""
        if not isinstance(text, list):
            return _asked_bytes(scope, text)
    recorder = run.recorder
    capture = recorder.capture
    extra: dict[str, Any] = {}
    if run.extra or run.stage.extra:
        extra = {**run.stage.extra, **run.extra}
        if "filter" in extra:
            extra["filter"] = capture.filter(extra["filter"])
        if "index_version" in extra:
            extra["index_version"] = capture.name(extra["index_version"])
        if "sub_query" in extra:
            extra["sub_query"] = capture.label(extra["sub_query"])
    if run.error_type is not None:
        extra["error_type"] = run.error_type
    if run.errors:
        extra["capture_error"] = "; ".join(run.errors)
    if run.error_message is not None:
        extra["error_message"] = capture.error(run.error_message)
    if isinstance(text, list):
        extra["query_hash"] = digest.of_text("\0".join(text))
        if recorder.settings.captures_questions:
            extra["query_text"] = as_json([capture.question(part) for part in text])
    elif text is not None:
        captured, extra["query_hash"] = scope.captured(text)
        if captured is not None:
            extra["query_text"] = captured
    return frames.extra_bytes(extra)


def _asked_bytes(scope: Scope, text: str) -> bytes:
    """What most runs have and no more: what they were asked, which is the same for most of a query's."""
    asked = scope.asked.get(text)
    if asked is None:
        captured, text_hash = scope.captured(text)
        shown = "" if captured is None else f'"query_text":{quoted(captured)},'
        asked = scope.asked[text] = text_bytes(f'{{{shown}"query_hash":"{text_hash}"}}')
    return asked


def pack_context(query: Query, one: Listed) -> Record:
    """A declared context."""
    packed = _pack_list(query, "context", one.end_no, one)
    if packed is None:
        # A string in which no candidate could be looked for: what is in it is not known.
        packed = CandidateList(one.list_id, "context", None, argument=one.argument, is_complete=False)
    return Record("context", (query.id, packed))


def pack_query(query: Query) -> bytes:
    """The row of a query that has ended, with the counts of what was written for it.

    Written as JSON here: the general encoder takes three times as long for the same text.
    """
    recorder = query.recorder
    settings, capture = recorder.settings, recorder.capture
    trace_id, span_id, _ = query.ids()
    question, question_hash = None, None
    if query.question is not None:
        question, question_hash = query.captured(query.question)
    return frames.text_frame(
        "query",
        f'{{"query_id":{query.id},"run":{_word(settings.run)},"run_kind":{_word(settings.run_kind)},'
        f'"question_id":{_word(query.question_id and capture.name(query.question_id))},"question":{_word(question)},'
        f'"question_hash":{_word(question_hash)},"session_id":{_word(query.session and capture.name(query.session))},'
        f'"parent_query_id":{query.parent_query_id or "null"},"served_from_query_id":{query.served_from or "null"},'
        f'"status":"{query.status}","error_type":{_word(query.error_type)},'
        f'"error_message":{_word(query.error_message and capture.error(query.error_message))},'
        f'"started_at_ns":{query.started_at_ns},'
        f'"duration_ns":{query.ended_ns - query.started_ns},"process_id":{recorder.process_id},'
        f'"trace_id":"{trace_id:032x}","span_id":"{span_id:016x}","n_stages":{query.n_stages},'
        f'"n_lists":{query.n_lists},"n_candidates":{query.n_candidates}}}',
    )


def _word(text: str | None) -> str:
    return "null" if text is None else quoted(text)


def pack_document(document: Document) -> Record:
    """The row of a document that has ended."""
    return Record(
        "document",
        {
            "ingest_id": document.id,
            "doc_id": document.recorder.capture.name(document.doc_id),
            "doc_version": document.recorder.capture.name(document.version),
            "recorded_at_ns": document.started_at_ns,
            "ended_at_ns": max(clock.wall_ns(), document.started_at_ns),
            "modified_at_ns": document.modified_at_ns,
            "deleted_at_ns": document.deleted_at_ns,
            "status": document.status,
            "process_id": document.recorder.process_id,
        },
    )


def _pack_list(scope: Scope, kind: str, before_no: int, one: Listed) -> CandidateList | Listed | None:
    packed = _compared_list(scope, kind, before_no, one)
    if packed is None or packed.columns is None or not scope.recorder.capture.has_redactor:
        return packed
    name = scope.recorder.capture.name
    columns = packed.columns
    return CandidateList(
        packed.list_id,
        packed.role,
        columns._replace(
            chunk_id=list(map(name, columns.chunk_id)),
            doc_id=None if columns.doc_id is None else list(map(name, columns.doc_id)),
        ),
        packed.same_as,
        packed.declared_sources,
        packed.argument,
        packed.n_declared,
        packed.is_complete,
        packed.is_partial,
    )


def _compared_list(scope: Scope, kind: str, before_no: int, one: Listed) -> CandidateList | Listed | None:
    if one.string is None and (one.texts is None or one.columns is None or scope.is_document):
        if one.columns is not None and scope.first_texts:
            matching.note_places(scope, one, one.columns)
        return one
    columns = one.columns
    same_as: Sequence[int] = one.same_as
    is_complete = one.is_complete
    if one.string is not None:
        found = matching.list_in_string(scope, kind, before_no, one)
        if found is None:
            return None
        columns, same_as, is_found_complete = found
        is_complete = is_complete and is_found_complete
    elif columns is not None:
        columns, is_grown = matching.compare_texts(scope, one, columns)
        # A string searched later takes over what is known of a candidate here: that it is cut, or rewritten.
        one.columns = columns
        is_complete = is_complete and not is_grown
    return CandidateList(
        one.list_id,
        one.role,
        columns,
        same_as,
        one.declared_sources,
        one.argument,
        one.n_declared,
        is_complete,
        one.is_partial,
    )
