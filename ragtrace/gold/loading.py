"""Gold labels into the store: a file of JSON lines, or mappings at hand. The format is docs/gold.md."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

from ragtrace import clock
from ragtrace.errors import GoldError
from ragtrace.gold import placing, rows
from ragtrace.gold.sets import BadLabelError, Labels, read
from ragtrace.progress import Progress
from ragtrace.store import kept

__all__ = ["Loaded", "load", "load_rows", "set_name"]

_PROGRESS_EVERY = 2_000
"""Lines between two calls of progress."""


class Loaded(NamedTuple):
    """What was loaded."""

    n_questions: int
    n_spans: int
    """Rows of evidence, distractors included."""
    n_sets: int
    """Sets of evidence over all questions."""
    n_duplicates: int
    """Labels, sets and lines that said again what was said before: counted once."""
    bad: list[tuple[int, str]]
    """Line number (1-based) and reason of each line that was left out; only with skip_bad."""
    gold_set: str
    """The set's name."""
    n_unanswerable: int
    """Questions that the documents do not answer."""
    n_evidence_unknown: int
    """Questions whose evidence nobody knows."""
    n_replaced: int
    """Questions of this set that were in the store before: they are gone or loaded anew."""


def set_name(path: str | Path) -> str:
    """The name of a gold file's set: the file's without its ending; `questions` and `gold` say less than the folder's."""
    path = Path(path).resolve()
    return path.parent.name if path.stem in ("questions", "gold") and path.parent.name else path.stem


def load(
    connection: duckdb.DuckDBPyConnection,
    path: str | Path,
    *,
    skip_bad: bool = False,
    gold_set: str | None = None,
    replace: bool = False,
    min_coverage: float | None = None,
    clock_skew_ms: float | None = None,
    progress: Progress | None = None,
) -> Loaded:
    """Load a gold file, place its labels in the texts at hand, and set the settings that are given.

    The set that had this name before is replaced as a whole, in one transaction. `gold_set` is by default
    `set_name(path)`. `replace` takes a question over that another set labels differently; else such a line is bad.
    `min_coverage` is above 0 and at most 1; `clock_skew_ms` is 0 or more.

    Raises: GoldError when the file cannot be read, when a line is bad and `skip_bad` is not set (nothing is loaded
    then), when no line is left, and for settings out of range.
    """
    path = Path(path)
    return _load(
        connection,
        _lines(path),
        str(path),
        gold_set or set_name(path),
        skip_bad=skip_bad,
        replace=replace,
        settings=_settings(min_coverage, clock_skew_ms),
        progress=progress,
    )


def load_rows(
    connection: duckdb.DuckDBPyConnection,
    items: Iterable[Mapping[str, Any]],
    *,
    gold_set: str = "rows",
    skip_bad: bool = False,
    replace: bool = False,
    min_coverage: float | None = None,
    clock_skew_ms: float | None = None,
    progress: Progress | None = None,
) -> Loaded:
    """The same from mappings with the keys of a gold file's lines; the first is line 1.

    Raises: as `load`.
    """
    return _load(
        connection,
        enumerate(items, 1),
        gold_set,
        gold_set,
        skip_bad=skip_bad,
        replace=replace,
        settings=_settings(min_coverage, clock_skew_ms),
        progress=progress,
    )


def _lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Each line that is not blank, decoded, or the BadLabelError that says why not."""
    try:
        file = path.open("rb")
    except OSError as error:
        reason = "there is no such file" if isinstance(error, FileNotFoundError) else (error.strerror or "").lower()
        raise GoldError(f"{path}: {reason}; a gold file is JSON, one question a line", path=str(path)) from error
    with file:
        for number, raw in enumerate(file, 1):  # bytes: only a line feed ends a line, not U+2028 and the like
            try:
                text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
                if text.strip():
                    yield number, json.loads(text)
            except UnicodeDecodeError as error:
                yield number, BadLabelError(f"not UTF-8 (byte {error.start + 1} of the line)")
            except json.JSONDecodeError as error:
                yield number, BadLabelError(f"not JSON: {error.msg} at character {error.pos + 1}")
            except RecursionError:
                yield number, BadLabelError("nested too deeply")


def _load(
    connection: duckdb.DuckDBPyConnection,
    lines: Iterable[tuple[int, Any]],
    source: str,
    gold_set: str,
    *,
    skip_bad: bool,
    replace: bool,
    settings: Mapping[str, float],
    progress: Progress | None,
) -> Loaded:
    labelled, bad, n_duplicates = _read(lines, progress)
    others = _others(connection, gold_set, list(labelled))
    if not replace:
        for question_id, (other_set, content) in others.items():
            number, labels = labelled.pop(question_id)
            if content == labels.content:
                n_duplicates += 1
                continue
            reason = (
                f"question_id {question_id!r} is labelled differently in the set {other_set!r}:"
                " rename it, or load with --replace to take it over"
            )
            bad.append((number, reason))
        others = {}
    bad.sort()
    if bad and not skip_bad:
        _refuse(source, bad)
    if not labelled and not n_duplicates:
        tail = f"; the first bad one is line {bad[0][0]}: {bad[0][1]}" if bad else ""
        raise GoldError(f"{source}: no question in it{tail}", path=source, bad=bad)
    with kept.transaction(connection):
        kept.forget(connection)
        n_replaced = _clear(connection, gold_set, list(others))
        now = clock.wall_ns()
        for _, labels in labelled.values():
            labels.question.update(gold_set=gold_set, loaded_at_ns=now)
        evidence = [row for _, labels in labelled.values() for row in labels.evidence]
        rows.insert(connection, "questions", [labels.question for _, labels in labelled.values()])
        rows.insert(connection, "evidence", evidence)
        for name, value in settings.items():
            connection.execute("delete from settings where name = ?", [name])
            rows.insert(connection, "settings", [{"name": name, "value": value}])
        placing.place(connection, progress)
        kept.forget(connection)  # again, where these labels are the first
    return Loaded(
        n_questions=len(labelled),
        n_spans=len(evidence),
        n_sets=sum(labels.n_sets for _, labels in labelled.values()),
        n_duplicates=n_duplicates + sum(labels.n_duplicates for _, labels in labelled.values()),
        bad=bad,
        gold_set=gold_set,
        n_unanswerable=sum(labels.question["is_unanswerable"] for _, labels in labelled.values()),
        n_evidence_unknown=sum(labels.question["is_evidence_unknown"] for _, labels in labelled.values()),
        n_replaced=n_replaced,
    )


def _read(
    lines: Iterable[tuple[int, Any]], progress: Progress | None
) -> tuple[dict[str, tuple[int, Labels]], list[tuple[int, str]], int]:
    """The labels of each question with the line they stand in, the bad lines, and how many say again what was said."""
    labelled: dict[str, tuple[int, Labels]] = {}
    bad: list[tuple[int, str]] = []
    n_duplicates = 0
    for number, line in lines:
        if progress and number % _PROGRESS_EVERY == 0:
            progress("reading labels", number, number)
        try:
            if isinstance(line, BadLabelError):
                raise line
            labels = read(line)
            question_id = labels.question["question_id"]
            first_number, first = labelled.setdefault(question_id, (number, labels))
            if first is labels:
                continue
            if first.content != labels.content:
                raise BadLabelError(f"question_id {question_id!r} stands in line {first_number} with other labels")
            n_duplicates += 1
        except BadLabelError as error:
            bad.append((number, str(error)))
    return labelled, bad, n_duplicates


def _refuse(source: str, bad: list[tuple[int, str]]) -> None:
    number, reason = bad[0]
    more = f" ({len(bad) - 1} more bad lines)" if len(bad) > 2 else " (1 more bad line)" if len(bad) == 2 else ""
    raise GoldError(
        f"{source}, line {number}: {reason}{more}; nothing was loaded, --skip-bad loads the rest",
        path=source,
        line=number,
        reason=reason,
        bad=bad,
    )


def _settings(min_coverage: float | None, clock_skew_ms: float | None) -> dict[str, float]:
    settings: dict[str, float] = {}
    if min_coverage is not None:
        if not 0 < min_coverage <= 1:
            raise GoldError(f"min_coverage is {min_coverage}: it is a share above 0 and at most 1")
        settings["min_coverage"] = float(min_coverage)
    if clock_skew_ms is not None:
        if not 0 <= clock_skew_ms < float("inf"):
            raise GoldError(f"clock_skew_ms is {clock_skew_ms}: it is 0 or more milliseconds")
        settings["clock_skew_ms"] = float(clock_skew_ms)
    return settings


def _others(
    connection: duckdb.DuckDBPyConnection, gold_set: str, question_ids: list[str]
) -> dict[str, tuple[str, tuple[Any, ...]]]:
    """Of these questions, those that another set holds: its name and what it says."""
    found = connection.execute(
        "select * from questions where gold_set <> ? and question_id in (select unnest(?::varchar[]))",
        [gold_set, question_ids],
    )
    names = [column[0] for column in found.description or ()]
    questions = {row["question_id"]: row for row in (dict(zip(names, r, strict=True)) for r in found.fetchall())}
    if not questions:
        return {}
    found = connection.execute(
        "select * from evidence where question_id in (select unnest(?::varchar[]))", [list(questions)]
    )
    names = [column[0] for column in found.description or ()]
    spans: dict[str, list[dict[str, Any]]] = {question_id: [] for question_id in questions}
    for row in (dict(zip(names, r, strict=True)) for r in found.fetchall()):
        spans[row["question_id"]].append(row)
    return {
        question_id: (row["gold_set"], Labels(row, spans[question_id], 0, 0).content)
        for question_id, row in questions.items()
    }


def _clear(connection: duckdb.DuckDBPyConnection, gold_set: str, question_ids: list[str]) -> int:
    """Take out a set and single questions of others; how many questions of the set there were."""
    connection.execute(
        "create or replace temp table _gold_old as"
        " select question_id, gold_set from questions where gold_set = ? or question_id in (select unnest(?::varchar[]))",
        [gold_set, question_ids],
    )
    connection.execute(
        "delete from evidence_places where evidence_id in"
        " (select evidence_id from evidence where question_id in (select question_id from _gold_old))"
    )
    connection.execute("delete from evidence where question_id in (select question_id from _gold_old)")
    connection.execute("delete from questions where question_id in (select question_id from _gold_old)")
    counted = connection.execute("select count(*) from _gold_old where gold_set = ?", [gold_set]).fetchall()
    connection.execute("drop table _gold_old")
    return int(counted[0][0])
