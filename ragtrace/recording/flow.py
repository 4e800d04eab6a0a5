"""What goes into a query-side stage and what comes out of it: which values are lists, and which lists are the same.

Only snapshots and references to texts are kept. Searching strings and comparing texts wait until the query ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ragtrace.recording import candidates, recognising
from ragtrace.recording.lists import Listed, identities, join
from ragtrace.recording.parameters import Argument
from ragtrace.recording.shapes import ABSENT, peek
from ragtrace.spool.records import Columns, Ids

if TYPE_CHECKING:
    from ragtrace.recording.runs import Run

__all__ = [
    "are_texts",
    "context_list",
    "dropped_list",
    "given_list",
    "joined_list",
    "messages_text",
    "stated_list",
    "take_inputs",
    "take_output",
    "unread",
]

# Kinds that work on candidates: what reads as candidates among their arguments is their input, known or not.
_WORK_ON_LISTS = frozenset(("filter", "fuse", "rerank", "expand", "compress", "truncate", "generate"))
_PUT_OUT_STRINGS = frozenset(("fuse", "rerank", "expand", "compress", "truncate"))
# A list of more than this is no list of lists: nobody fuses that many retrievers.
_MOST_INNER = 64
_PLAIN = frozenset((bytes, bytearray, int, float, bool, complex, type(None)))


def are_texts(values: Iterable[Any]) -> bool:
    """Whether there is nothing but strings: questions and names, where none of them can be a prompt."""
    for value in values:  # noqa: SIM110  # a generator would cost every request more than the loop
        if type(value) is not str:
            return False
    return True


def take_inputs(run: Run, arguments: Iterable[Argument]) -> None:
    """Snapshot the lists among a call's arguments into `run.lists`."""
    kind = run.stage.kind
    strings: list[tuple[str | None, str]] = []
    empty: list[tuple[Listed, Any]] = []
    n_lists = 0
    for name, value in arguments:
        if isinstance(value, str):
            strings.append((name, value))
            continue
        if type(value) in _PLAIN:
            continue
        if run.stage.searches_strings:
            text = messages_text(value)
            if text is not None:
                strings.append((name, text))
                continue
        if _take_known(run, name, value):
            run.list_arguments.append((value, run.lists[-1].ids))
            n_lists += 1
            continue
        for one, original in _lists_in(run, name, value):
            n_lists += 1
            if one is None:
                continue
            if one.ids:
                _match(run, one, original)
            else:
                empty.append((one, original))
    for one, original in empty:
        _match_empty(run, one, original, is_only=n_lists == 1 and kind in _WORK_ON_LISTS)
    if strings and run.stage.searches_strings and not any(one.role == "in" for one in run.lists):
        for name, text in strings:
            run.lists.append(_string_list(run, "in", text, name))


def take_output(run: Run, result: Any) -> None:
    """Snapshot what a stage returned into `run.lists`; says in `run.capture_error` what could not be read."""
    kind = run.stage.kind
    if kind == "generate":
        return
    if kind == "rewrite":
        run.note_rewrite(result)
        return
    if result is None and run.list_arguments:
        result = _changed_argument(run)
        if result is None:
            run.note("no output")
            run.lists.append(unread(run))
            return
    if kind in _PUT_OUT_STRINGS:
        text = result if isinstance(result, str) else messages_text(result)
        if text is not None:
            run.lists.append(_string_list(run, "out", text, None))
            return
    run.lists.append(_output_list(run, result))


def _output_list(run: Run, value: Any) -> Listed:
    """An output list; incomplete and without rows when the value cannot be read."""
    rows = _picked_rows(run, value) if run.stage.kind == "rerank" else None
    rows = rows or candidates.read_with_texts(value, extract=run.stage.extract)
    if rows is None:
        run.note("no output" if value is None else f"unreadable output: {type(value).__name__}")
        return unread(run)
    one = Listed(run.recorder.next_id(), "out", rows[0])
    if rows[0].score_kind is not None:
        _tell_score_kind(run, rows[0].score_kind)
    one.texts = rows[1]
    ids = rows[0][0]
    one.ids = ids if type(ids) is Ids else identities(*rows)
    one.object_id = id(value)
    if type(value) is list:
        one.items = value[:]
    return one


def _tell_score_kind(run: Run, kind: str) -> None:
    """What the scores show of themselves, unless the service says what they are."""
    said = run.stage.row
    if "score_kind" not in said and "is_higher_better" not in said and "score_kind" not in run.values:
        run.values = {**run.values, "score_kind": kind}


def _picked_rows(run: Run, value: Any) -> candidates.Rows | None:
    """A reranker's answer that names the rows of its only input by number."""
    if run.stage.extract is not None or len(run.list_arguments) != 1:
        return None
    if type(value) is list and value and peek(value[0], "index") is ABSENT and peek(value[0], "corpus_id") is ABSENT:
        return None  # by far the most: candidates as they came
    given = candidates.read_with_texts(run.list_arguments[0][0])
    columns = candidates.picked(given[0], value) if given is not None else None
    return None if columns is None else (columns, None)


def given_list(run: Run, value: Any, role: str) -> Listed:
    """A list that a `with` block hands over by name, whatever it looks like; incomplete when it cannot be read."""
    rows = candidates.read_with_texts(value, extract=run.stage.extract)
    argument = "input" if role == "in" else None
    if rows is not None:
        return _listed(run.recorder.next_id(), role, rows, argument)
    run.note(f"unreadable {role} list: {type(value).__name__}")
    one = Listed(run.recorder.next_id(), role, None, argument)
    one.is_complete = False
    return one


def stated_list(run: Run, value: Any) -> Listed | None:
    """A list that `stage.input` named and no rule recognised: an input all the same, if it holds candidates."""
    rows = None if isinstance(value, str) else candidates.read_with_texts(value, extract=run.stage.extract)
    return _listed(run.recorder.next_id(), "in", rows, "input") if rows is not None and rows[0].chunk_id else None


def joined_list(run: Run, parts: Sequence[tuple[Columns, Sequence[str | None] | None]]) -> Listed:
    """The output of a generator, from what each step gave; empty when it gave nothing."""
    if not parts:
        return Listed(run.recorder.next_id(), "out", Columns([]))
    columns = join([part for part, _ in parts])
    one = Listed(run.recorder.next_id(), "out", columns)
    if columns.score_kind is not None:
        _tell_score_kind(run, columns.score_kind)
    if any(texts is not None for _, texts in parts):
        one.texts = [text for part, texts in parts for text in (texts or [None] * len(part.chunk_id))]
    one.ids = identities(columns, one.texts)
    return one


def dropped_list(run: Run, losers: Sequence[tuple[str, str | None, str | None]]) -> Listed:
    """What `stage.dropped` named, in that order."""
    columns = Columns(
        [name for name, _, _ in losers],
        dropped=list(range(len(losers))),
        drop_reason={row: reason for row, (_, reason, _) in enumerate(losers) if reason is not None} or None,
        dropped_by={row: by for row, (_, _, by) in enumerate(losers) if by is not None} or None,
    )
    one = Listed(run.recorder.next_id(), "dropped", columns)
    one.ids = columns.chunk_id
    return one


def context_list(run_or_query: Any, value: Any, argument: str | None, extract: Any) -> Listed | None:
    """A declared context: a list of candidates, or a string to be searched. None when it is neither."""
    if isinstance(value, str):
        one = Listed(run_or_query.recorder.next_id(), "context", None, argument)
        one.string = value
        return one
    text = messages_text(value)
    if text is not None:
        one = Listed(run_or_query.recorder.next_id(), "context", None, argument)
        one.string = text
        return one
    rows = candidates.read_with_texts(value, extract=extract)
    return None if rows is None else _listed(run_or_query.recorder.next_id(), "context", rows, argument)


def messages_text(value: Any) -> str | None:
    """The contents of chat messages as one text; None when the value is no list of them."""
    if type(value) not in (list, tuple) or not value:
        return None
    contents = []
    for message in value:
        content = peek(message, "content")
        if content is ABSENT or type(message) in (str, tuple, list):
            return None
        if peek(message, "role") is ABSENT and type(message).__name__[-7:] != "Message":
            return None
        if isinstance(content, str):
            contents.append(content)
        elif type(content) is list:
            contents.extend(text for part in content if isinstance(text := peek(part, "text"), str))
    return "\n".join(contents)


def _take_known(run: Run, name: str | None, value: Any) -> bool:
    """Take a list that an earlier stage put out as input, without reading more of it than its ids."""
    known = recognising.earlier(run.scope, value)
    if known is None:
        return False
    one = Listed(run.recorder.next_id(), "in", None, name)
    one.same_as, one.ids = known
    run.lists.append(one)
    return True


def _lists_in(run: Run, name: str | None, value: Any) -> list[tuple[Listed | None, Any]]:
    """The lists an argument is, or holds one level down, with the object each was read from; None for a known one."""
    inner: list[Any] = []
    if type(value) in (list, tuple):
        inner = list(value) if len(value) <= _MOST_INNER else []
    elif isinstance(value, Mapping):
        inner = list(value.values()) if len(value) <= _MOST_INNER else []
    # A list of lists that earlier stages put out is read as such, whatever it may look like as one list.
    if run.scope.by_object.keys().isdisjoint(map(id, inner)) and not _are_lists(inner):
        one = _read(run, name, value)
        if one is not None:
            run.list_arguments.append((value, one.ids))
            return [(one, value)]
    found: list[tuple[Listed | None, Any]] = []
    for element in inner:
        if isinstance(element, str) or type(element) in _PLAIN:
            continue
        if _take_known(run, name, element):
            found.append((None, element))
            continue
        one = _read(run, name, element)
        if one is not None:
            found.append((one, element))
    return found


def _are_lists(inner: Sequence[Any]) -> bool:
    """Whether these are lists of candidates, each of one kind; rows of a database, as lists, begin with plain values."""
    if not inner or any(type(element) is not list for element in inner):
        return False
    filled = [element for element in inner if element]
    return bool(filled) and all(
        type(element[0]) not in _PLAIN
        and len(set(map(type, element))) == 1
        and not (type(element[0]) is str and any(" " in text or "\n" in text for text in element))
        for element in filled
    )


def _read(run: Run, name: str | None, value: Any) -> Listed | None:
    rows = candidates.read_with_texts(value, extract=run.stage.extract)
    return None if rows is None else _listed(0, "in", rows, name)


def _listed(list_id: int, role: str, rows: candidates.Rows, argument: str | None = None) -> Listed:
    columns, texts = rows
    one = Listed(list_id, role, columns, argument)
    one.texts = texts
    one.ids = identities(columns, texts)
    return one


def _match(run: Run, one: Listed, value: Any) -> None:
    """Take a list as input when it equals or shares with an earlier output, or is more than bare ids."""
    outputs = run.scope.outputs
    one.same_as = recognising.equal_outputs(outputs, one.ids, id(value))
    if one.same_as:
        one.columns = None
        one.texts = None
    elif run.stage.kind not in _WORK_ON_LISTS or _is_bare(value):
        known = set(one.ids)
        if all(known.isdisjoint(output.ids) for output in outputs):
            return
    one.list_id = run.recorder.next_id()
    run.lists.append(one)


def _match_empty(run: Run, one: Listed, value: Any, is_only: bool) -> None:
    output = run.scope.by_object.get(id(value))
    if output is not None and not output.ids and output.columns is not None:
        one.same_as = (output.list_id,)
        one.columns = None
    elif not is_only:
        return
    one.list_id = run.recorder.next_id()
    run.lists.append(one)


def _is_bare(value: Any) -> bool:
    """Whether a list holds plain ids only: any list of strings or numbers looks like that."""
    if type(value) in (list, tuple):
        return isinstance(value[0], (str, int, float))
    return not isinstance(value, Mapping) and hasattr(value, "dtype")


def _changed_argument(run: Run) -> Any:
    """The list argument that a stage that returned nothing changed; the only one when it is alone."""
    for value, ids in run.list_arguments:
        rows = candidates.read_with_texts(value, extract=run.stage.extract)
        if rows is not None and identities(*rows) != ids:
            return value
    if len(run.list_arguments) == 1:
        return run.list_arguments[0][0]
    return None


def _string_list(run: Run, role: str, text: str, argument: str | None) -> Listed:
    one = Listed(run.recorder.next_id(), role, None, argument)
    one.string = text
    return one


def unread(run: Run) -> Listed:
    """An output of which nothing could be read: it may hold anything."""
    one = Listed(run.recorder.next_id(), "out", None)
    one.is_complete = False
    return one
