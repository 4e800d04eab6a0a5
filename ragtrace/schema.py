"""Every stored table, said once: name, grain, columns with type, unit and meaning.

Frames, Arrow schemas, DDL, column comments and the reference page are made from here. Types are DuckDB's.
A column whose meaning starts with "derived:" is written by the merge, all others come from a log or a gold file.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["SCHEMA_VERSION", "TABLES", "Column", "Table", "table"]

SCHEMA_VERSION = 2
"""Grows with every change of TABLES that an older reader would misread."""


class Column(NamedTuple):
    """One stored column."""

    name: str
    type: str
    meaning: str
    unit: str = ""


class Table(NamedTuple):
    """One stored table. No keys or indexes: they make DuckDB's log replay fail after a kill."""

    name: str
    grain: str
    columns: tuple[Column, ...]


C = Column

TABLES: tuple[Table, ...] = (
    # ---------------------------------------------------------------- housekeeping
    Table("store_facts", "one row per fact about the store", (
        C("name", "VARCHAR", "schema_version, created_by, created_at_ns, store_id"),
        C("value", "VARCHAR", "its value as text"),
    )),
    Table("settings", "one row per setting", (
        C("name", "VARCHAR", "min_coverage or clock_skew_ms"),
        C("value", "DOUBLE", "its value"),
    )),
    Table("ledger", "one row per log file merged so far", (
        C("log", "VARCHAR", "file name inside the spool"),
        C("offset_bytes", "BIGINT", "everything before this offset is in the store", "bytes"),
        C("process_id", "BIGINT", "the process that wrote it"),
        C("status", "VARCHAR", "open, done (writer ended, all read), damaged, unreadable (no permission; tried again) or missing (removed by somebody else)"),
        C("n_damaged_bytes", "BIGINT", "bytes skipped because length or checksum did not hold", "bytes"),
        C("merged_at_ns", "BIGINT", "last time something was read from it", "ns UTC"),
    )),
    Table("processes", "one row per recording process", (
        C("process_id", "BIGINT", "ours, unique"),
        C("host", "VARCHAR", "host name"),
        C("pid", "BIGINT", "process id on that host"),
        C("service", "VARCHAR", "configure(service=)"),
        C("started_at_ns", "BIGINT", "first record", "ns UTC"),
        C("python", "VARCHAR", "interpreter version"),
        C("ragtrace", "VARCHAR", "ragtrace version"),
        C("capture_text", "VARCHAR", "none, documents, questions or all"),
        C("log", "VARCHAR", "its first log file"),
    )),
    Table("losses", "one row per process and reason, summed: what could not be recorded", (
        C("process_id", "BIGINT", "the process that lost it"),
        C("reason", "VARCHAR", "why: queue_full, unreadable_candidate, capture_error, write_error, redactor_error ..."),
        C("n", "BIGINT", "how many records or values"),
        C("first_at_ns", "BIGINT", "first time", "ns UTC"),
        C("last_at_ns", "BIGINT", "last time", "ns UTC"),
        C("detail", "VARCHAR", "exception type or stage name; never a user's text"),
    )),
    # ---------------------------------------------------------------- the query side
    Table("queries", "one row per question put to the service", (
        C("query_id", "BIGINT", "ours, unique; rising within a process"),
        C("run", "VARCHAR", "label of the service's configuration"),
        C("run_kind", "VARCHAR", "actual, closed_book or oracle"),
        C("question_id", "VARCHAR", "the evaluation set's id, when given"),
        C("question", "VARCHAR", "as asked; null when capture_text leaves it out"),
        C("question_hash", "VARCHAR", "blake2b-128 hex of the question as asked (before redaction): joins gold by exact text"),
        C("session_id", "VARCHAR", "conversation"),
        C("parent_query_id", "BIGINT", "the query that asked this one"),
        C("served_from_query_id", "BIGINT", "whole-answer cache hit: the query that filled the cache"),
        C("status", "VARCHAR", "ok, error, cancelled or interrupted"),
        C("error_type", "VARCHAR", "exception class"),
        C("error_message", "VARCHAR", "after redaction"),
        C("started_at_ns", "BIGINT", "wall clock of the recording host", "ns UTC"),
        C("duration_ns", "BIGINT", "monotonic", "ns"),
        C("process_id", "BIGINT", "processes.process_id"),
        C("trace_id", "VARCHAR", "32 hex digits; never a key"),
        C("span_id", "VARCHAR", "16 hex digits"),
        C("n_stages", "INTEGER", "stage runs the recorder ended before it wrote this row"),
        C("n_lists", "INTEGER", "lists it wrote for them"),
        C("n_candidates", "BIGINT", "candidate rows it wrote for them"),
    )),
    Table("stages", "one row per run of a wrapped step", (
        C("stage_id", "BIGINT", "ours, unique; rising within a process in order of start"),
        C("query_id", "BIGINT", "null on the ingest side and for orphans"),
        C("ingest_id", "BIGINT", "documents.ingest_id; null on the query side"),
        C("parent_stage_id", "BIGINT", "the stage it ran inside"),
        C("start_no", "INTEGER", "1-based order of start within the query or document; orders stages, timestamps do not"),
        C("end_no", "INTEGER", "order of end, same counter as start_no"),
        C("kind", "VARCHAR", "one of the stage kinds"),
        C("name", "VARCHAR", "the user's name; the function's when none is given"),
        C("mode", "VARCHAR", "retrieve: ann, exact, lexical, hybrid, graph, sql, other"),
        C("round", "INTEGER", "1-based retrieval round of an agent loop"),
        C("sub_query", "VARCHAR", "label of the sub-query it served"),
        C("query_text", "VARCHAR", "what was asked of it (retrieve, rerank) or came out of it (rewrite: JSON list); per capture_text"),
        C("query_hash", "VARCHAR", "blake2b-128 hex of that text; also set when the text is not captured"),
        C("is_aside", "BOOLEAN", "not on the way to the answer"),
        C("probe", "VARCHAR", "null, or how it was asked again: again (unchanged), exact, deeper, unfiltered, original_question, by_id"),
        C("probed_stage_id", "BIGINT", "probe: the retrieve run that was asked again"),
        C("is_final", "BOOLEAN", "its output is the final context"),
        C("is_answer", "BOOLEAN", "generate(answer=True)"),
        C("status", "VARCHAR", "ok, error or cancelled"),
        C("error_type", "VARCHAR", "exception class"),
        C("error_message", "VARCHAR", "after redaction"),
        C("started_at_ns", "BIGINT", "wall clock of the recording host", "ns UTC"),
        C("duration_ns", "BIGINT", "monotonic, the body's own running time span", "ns"),
        C("process_id", "BIGINT", "processes.process_id"),
        C("trace_id", "VARCHAR", "32 hex digits"),
        C("span_id", "VARCHAR", "16 hex digits"),
        C("parent_span_id", "VARCHAR", "16 hex digits"),
        C("is_orphan", "BOOLEAN", "ran outside every query and document"),
        C("is_detached", "BOOLEAN", "ended after its query had ended"),
        C("index_name", "VARCHAR", "chunk, index and retrieve stages: where; null = the only recorded index"),
        C("is_index_complete", "BOOLEAN", "index: every write to this index goes through this function"),
        C("index_version", "VARCHAR", "retrieve: state of the index that was searched, as declared; equal = the same"),
        C("k", "INTEGER", "how many were asked for"),
        C("threshold", "DOUBLE", "score a candidate must reach"),
        C("budget_tokens", "INTEGER", "token budget", "tokens"),
        C("score_kind", "VARCHAR", "distance, similarity, rrf, logit, probability, other, none"),
        C("is_higher_better", "BOOLEAN", "direction of the score"),
        C("filter", "VARCHAR", "JSON of the filter as given"),
        C("params", "VARCHAR", "JSON of further parameters (weights, ef, nprobe, model ...)"),
        C("capture_error", "VARCHAR", "what of this run could not be recorded"),
    )),
    Table("lists", "one row per candidate list that a stage took, put out or looked at, or that is a declared context", (
        C("list_id", "BIGINT", "ours, unique"),
        C("query_id", "BIGINT", "null on the ingest side"),
        C("stage_id", "BIGINT", "null for a declared context"),
        C("role", "VARCHAR", "in, out, considered, dropped or context"),
        C("argument", "VARCHAR", "in: the parameter's name; context: null or carried"),
        C("same_as_list_id", "BIGINT", "equal to that earlier list: the candidates are stored there only"),
        C("also_same_as", "BIGINT[]", "further earlier lists it equals, latest first"),
        C("declared_sources", "BIGINT[]", "in and context: stage_ids of the runs named by source="),
        C("n_candidates", "INTEGER", "rows this list holds, here or in same_as_list_id"),
        C("n_declared", "INTEGER", "how many there really were, when more than could be recorded"),
        C("is_complete", "BOOLEAN", "false: something of it could not be recorded or located; it may hold anything"),
        C("is_partial", "BOOLEAN", "the stage was cancelled or failed while it put the list out; what is here is all it gave"),
        C("origin", "VARCHAR", "derived: in and context lists: same, changed, declared or unknown"),
    )),
    Table("candidates", "one row per item of a list; the big one", (
        C("list_id", "BIGINT", "lists.list_id"),
        C("rank", "INTEGER", "1-based, the order returned; never a sort of scores"),
        C("item", "INTEGER", "items.item"),
        C("score", "DOUBLE", "finite, as returned; null when none or not finite"),
        C("score_flag", "VARCHAR", "nan, inf, -inf or unreadable when score is null for that reason"),
        C("tokens", "INTEGER", "tokens it takes", "tokens"),
        C("position", "INTEGER", "1-based place in the prompt where it differs from the rank"),
        C("is_kept", "BOOLEAN", "null or true: let through; false: looked at and not let through"),
        C("drop_reason", "VARCHAR", "dropped lists: the declared reason"),
        C("dropped_by", "VARCHAR", "dropped lists: the field, rule or rival that did it"),
    )),
    Table("items", "one row per distinct (chunk id, index, place as delivered): what candidates refer to", (
        C("item", "INTEGER", "small integer, unique in this store"),
        C("chunk_id", "VARCHAR", "as the service names it"),
        C("id_source", "VARCHAR", "extract, metadata, native, range (hash of document and range) or text (hash)"),
        C("index_name", "VARCHAR", "null = the only recorded index"),
        C("version", "INTEGER", "0, or counts the places this id has had in its index when it was given new text"),
        C("doc_id", "VARCHAR", "source document; null = unknown"),
        C("text_hash", "VARCHAR", "parsed text that the ranges refer to; null = the document's text at that time"),
        C("item_text_hash", "VARCHAR", "blake2b-128 hex of its own text, when it was seen"),
        C("offset_quality", "VARCHAR", "exact, normalized, ambiguous, none; null = resolved through its chunk or not at all"),
        C("is_altered", "BOOLEAN", "its text was rewritten: nothing of it is surely evidence"),
        C("place", "VARCHAR", "derived: its place as delivered, in short form; null when it came with none and no chunk of its id is known"),
    )),
    Table("index_writes", "derived: one row per chunk written by an index run, or put out by a chunk run", (
        C("chunk_id", "VARCHAR", "the chunk"),
        C("index_name", "VARCHAR", "where it was written; null = the only recorded index"),
        C("item", "INTEGER", "items.item: the chunk with its place"),
        C("stage_id", "BIGINT", "the run"),
        C("written_at_ns", "BIGINT", "end of the run", "ns UTC"),
        C("is_index", "BOOLEAN", "false: put out by a chunk run"),
    )),
    Table("item_ranges", "one row per item and range", (
        C("item", "INTEGER", "items.item"),
        C("doc_id", "VARCHAR", "source document"),
        C("text_hash", "VARCHAR", "parsed text the offsets refer to; null = whatever text the document has"),
        C("start_at", "INTEGER", "first code point; null = the whole document", "code points"),
        C("end_at", "INTEGER", "one past the last", "code points"),
        C("role", "VARCHAR", "own (surely there), possible (may be there: altered text, only the document known), stands_for"),
    )),
    # ---------------------------------------------------------------- the ingest side
    Table("documents", "one row per rt.document scope or ingest-side stage without one", (
        C("ingest_id", "BIGINT", "ours, unique"),
        C("doc_id", "VARCHAR", "the user's id"),
        C("doc_version", "VARCHAR", "a name, never a key"),
        C("recorded_at_ns", "BIGINT", "wall clock at start", "ns UTC"),
        C("ended_at_ns", "BIGINT", "wall clock at end", "ns UTC"),
        C("modified_at_ns", "BIGINT", "as declared", "ns UTC"),
        C("deleted_at_ns", "BIGINT", "as declared", "ns UTC"),
        C("status", "VARCHAR", "ok, error or cancelled"),
        C("process_id", "BIGINT", "processes.process_id"),
    )),
    Table("parses", "one row per parsed text a parse stage put out", (
        C("stage_id", "BIGINT", "stages.stage_id"),
        C("doc_id", "VARCHAR", "the document"),
        C("doc_version", "VARCHAR", "its version's name"),
        C("text_hash", "VARCHAR", "blake2b-128 hex of the text before redaction"),
        C("n_characters", "INTEGER", "its length", "code points"),
        C("parsed_at_ns", "BIGINT", "end of the parse", "ns UTC"),
        C("pages", "VARCHAR", "JSON list of [start, end) per page where the parser tells"),
        C("process_id", "BIGINT", "processes.process_id"),
    )),
    Table("texts", "one row per captured parsed text", (
        C("text_hash", "VARCHAR", "blake2b-128 hex of the text before redaction"),
        C("text", "VARCHAR", "after redaction"),
        C("is_aligned", "BOOLEAN", "false: redaction changed its length, offsets do not hold"),
    )),
    Table("inventories", "one row per declared complete layer and id; id null = the empty layer", (
        C("inventory_id", "BIGINT", "one declaration"),
        C("index_name", "VARCHAR", "the index; null with doc_id = the documents"),
        C("chunk_id", "VARCHAR", "a chunk in the index"),
        C("doc_id", "VARCHAR", "a document in the source"),
        C("declared_at_ns", "BIGINT", "when", "ns UTC"),
        C("process_id", "BIGINT", "processes.process_id"),
    )),
    # ---------------------------------------------------------------- derived data flow
    Table("query_flows", "derived: one row per query", (
        C("query_id", "BIGINT", "queries.query_id"),
        C("final_how", "VARCHAR", "derived: declared, final_stage, answer_generate, only_generate, inferred or unknown"),
        C("is_whole", "BOOLEAN", "derived: every row the recorder counted has arrived and nothing of it was dropped"),
        C("n_places", "INTEGER", "derived: rows in places"),
    )),
    Table("edges", "derived: one row per pair of lists where the second took the first", (
        C("query_id", "BIGINT", "queries.query_id"),
        C("from_list_id", "BIGINT", "an output"),
        C("to_list_id", "BIGINT", "an input or context"),
        C("how", "VARCHAR", "same (equal), changed (shares candidates), declared (source=), unknown (origin not told: every output ended before)"),
    )),
    Table("places", "derived: one row per input, output or final context of a query where a piece can be seen", (
        C("query_id", "BIGINT", "queries.query_id"),
        C("place_no", "INTEGER", "1-based within the query, rising with place_order"),
        C("stage_id", "BIGINT", "null for the final context"),
        C("side", "VARCHAR", "in, out or context"),
        C("step", "INTEGER", "step_in or step_out of the stage run"),
        C("is_on_path", "BOOLEAN", "on a recorded way to the final context"),
        C("place_order", "BIGINT", "comparable across a query: layers below 10, off the path step + 10, on the path step + 1000000, final 1000000000"),
        C("counts_stands_for", "BOOLEAN", "lies before the first expand: stands_for ranges find the place here"),
        C("later_nos", "INTEGER[]", "place_no of the later places (by place_order) reachable from here by the flow"),
    )),
    Table("place_lists", "derived: one row per place and list with rows that make it up", (
        C("query_id", "BIGINT", "queries.query_id"),
        C("place_no", "INTEGER", "places.place_no"),
        C("list_id", "BIGINT", "the list that holds the candidate rows (same_as_list_id already followed)"),
    )),
    # ---------------------------------------------------------------- gold
    Table("questions", "one row per labelled question", (
        C("question_id", "VARCHAR", "unique over the loaded sets"),
        C("question", "VARCHAR", "its text"),
        C("question_hash", "VARCHAR", "blake2b-128 hex of the text"),
        C("gold_set", "VARCHAR", "name of the file it came from"),
        C("gold_mode", "VARCHAR", "all, any or one_per_answer"),
        C("kind", "VARCHAR", "the set's own kind of question"),
        C("is_unanswerable", "BOOLEAN", "empty gold and not evidence_unknown"),
        C("is_evidence_unknown", "BOOLEAN", "kind = evidence_unknown, or only items of grade <= 0"),
        C("answer", "VARCHAR", "JSON"),
        C("statements", "VARCHAR", "JSON"),
        C("tags", "VARCHAR[]", "free labels"),
        C("group_id", "VARCHAR", "paraphrases and sources that belong together"),
        C("source", "VARCHAR", "provenance"),
        C("reviewed_by", "VARCHAR", "who checked it"),
        C("extra", "VARCHAR", "JSON of all other keys"),
        C("loaded_at_ns", "BIGINT", "when", "ns UTC"),
    )),
    Table("evidence", "one row per gold span, per set", (
        C("evidence_id", "VARCHAR", "question_id#set_no.number"),
        C("question_id", "VARCHAR", "questions.question_id"),
        C("set_no", "INTEGER", "1-based: any complete set is enough; 0 for distractors"),
        C("need", "VARCHAR", "within a set all needs must be found; any span of a need is enough"),
        C("is_need", "BOOLEAN", "false: grade <= 0 or a distractor, never counted in recall"),
        C("is_distractor", "BOOLEAN", "from the distractors key"),
        C("level", "VARCHAR", "span, page, section, document or chunk"),
        C("grade", "DOUBLE", "for rank metrics; 1 when not given"),
        C("doc_id", "VARCHAR", "the document"),
        C("doc_version", "VARCHAR", "version name the label was made on"),
        C("chunk_id", "VARCHAR", "level chunk"),
        C("start_at", "INTEGER", "as labelled", "code points"),
        C("end_at", "INTEGER", "as labelled", "code points"),
        C("quote", "VARCHAR", "as labelled"),
        C("extra", "VARCHAR", "JSON of the item's other keys"),
        C("span_text", "VARCHAR", "derived: the span's own text (quote, else cut from the text it was made on); gives the weights of its pieces"),
        C("n_characters", "INTEGER", "derived: length in the evidence's own coordinates; 1 for levels that are only touched", "code points"),
        C("made_on_text_hash", "VARCHAR", "derived: the parsed text the label was made on, null when none fits"),
        C("made_on_ns", "BIGINT", "derived: first parse of that text", "ns UTC"),
        C("label_status", "VARCHAR", "derived: placed, normalized, ambiguous, misaligned, text_missing, text_garbled, document_unknown, unplaced"),
        C("label_note", "VARCHAR", "derived: what to do: the likely shift, unit, similarity"),
    )),
    Table("evidence_places", "derived: one row per evidence and parsed text of its document that was searched, or one without text_hash where no parse of it is known", (
        C("evidence_id", "VARCHAR", "evidence.evidence_id"),
        C("doc_id", "VARCHAR", "the document"),
        C("text_hash", "VARCHAR", "parsed text"),
        C("is_found", "BOOLEAN", "the passage stands in this text"),
        C("start_at", "INTEGER", "where", "code points"),
        C("end_at", "INTEGER", "one past", "code points"),
        C("quality", "VARCHAR", "exact, normalized or ambiguous; text_missing or text_garbled when not found; unchecked: the label's own offsets, no text to hold them against"),
        C("similarity", "DOUBLE", "0..1, share of the quote's counting characters in the nearest passage"),
        C("offsets", "INTEGER[]", "null: same length, one to one; else for every code point from start_at to end_at inclusive its place in the evidence's coordinates"),
    )),
)


def table(name: str) -> Table:
    """The description of one table. Raises KeyError for an unknown name."""
    return _BY_NAME[name]


_BY_NAME = {t.name: t for t in TABLES}
