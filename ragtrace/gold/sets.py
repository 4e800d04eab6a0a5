"""One line of a gold file as rows of `questions` and `evidence`: the rules of docs/gold.md, without any database.

A question has sets (any complete one is enough); a set has needs (all are needed); a need has spans (any one is
enough). Distractors stand in set 0.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ragtrace import digest

__all__ = ["LEVELS", "MODES", "BadLabelError", "Labels", "read"]

LEVELS = ("span", "page", "section", "document", "chunk")
MODES = ("all", "any", "one_per_answer")

_QUESTION_KEYS = frozenset(
    "question_id question gold alternatives gold_mode answer statements kind tags group distractors source"
    " reviewed_by".split()
)
_ITEM_KEYS = frozenset("doc_id start end quote doc_version need level grade chunk_id".split())


class BadLabelError(ValueError):
    """A line that cannot be loaded; its text is the reason."""


class Labels(NamedTuple):
    """What one line holds."""

    question: dict[str, Any]
    """Columns of the table `questions`, but for gold_set and loaded_at_ns."""
    evidence: list[dict[str, Any]]
    """Label columns of the table `evidence`, in the order of the line."""
    n_sets: int
    """Sets of evidence, any of which is enough; 0 when nothing is labelled."""
    n_duplicates: int
    """Labels left out because the same label stands in the set already, or the same set before."""

    @property
    def content(self) -> tuple[Any, ...]:
        """Equal for two lines that label the same question in the same way."""
        question = self.question
        spans = tuple(
            tuple(row[name] for name in _SAME) for row in sorted(self.evidence, key=lambda row: str(row["evidence_id"]))
        )
        return (question["question"], question["is_unanswerable"], question["is_evidence_unknown"], spans)


_SAME: tuple[str, ...] = (
    "evidence_id",
    "need",
    "is_need",
    "level",
    "grade",
    "doc_id",
    "doc_version",
    "chunk_id",
    "start_at",
    "end_at",
    "quote",
)


def read(line: Mapping[str, Any]) -> Labels:
    """The rows of one line.

    Raises: BadLabelError with the reason.
    """
    if not isinstance(line, Mapping):
        raise BadLabelError("not a JSON object")
    question_id = _name(line, "question_id")
    if question_id is None:
        raise BadLabelError("no `question_id`")
    question = line.get("question")
    if question is not None and not isinstance(question, str):
        raise BadLabelError("`question` is not a text")
    mode = line.get("gold_mode") or "all"
    if mode not in MODES:
        raise BadLabelError(f"`gold_mode` is {_shown(mode)}: one of {', '.join(MODES)}")
    kind = _name(line, "kind")
    is_unknown = kind == "evidence_unknown"
    gold = line.get("gold")
    if gold is None and not is_unknown:
        raise BadLabelError("no `gold`; an empty list says that the documents do not answer the question")
    gold = _items([] if gold is None else gold, "gold")
    evidence, n_sets, n_duplicates = _evidence(question_id, gold, line.get("alternatives") or [], mode)
    is_ungraded = bool(evidence) and not any(row["is_need"] for row in evidence)
    distractors, _, n_repeated = _set(question_id, 0, _items(line.get("distractors") or [], "distractors"), "all")
    for row in distractors:
        row.update(need=None, is_need=False, is_distractor=True)
    tags = line.get("tags") or []
    tags = [tags] if isinstance(tags, str) else tags
    if not isinstance(tags, list):
        raise BadLabelError("`tags` is not a list")
    row = {
        "question_id": question_id,
        "question": question,
        "question_hash": None if question is None else digest.of_text(question),
        "gold_mode": mode,
        "kind": kind,
        "is_unanswerable": not gold and not is_unknown,
        "is_evidence_unknown": is_unknown or is_ungraded,
        "answer": _json(line.get("answer")),
        "statements": _json(line.get("statements")),
        "tags": [tag if isinstance(tag, str) else json.dumps(tag, ensure_ascii=False) for tag in tags],
        "group_id": _name(line, "group"),
        "source": _text(line.get("source")),
        "reviewed_by": _text(line.get("reviewed_by")),
        "extra": _json({key: value for key, value in line.items() if key not in _QUESTION_KEYS} or None),
    }
    labels = Labels(row, evidence + distractors, n_sets, n_duplicates + n_repeated)
    _check_unicode(labels)
    return labels


def _check_unicode(labels: Labels) -> None:
    for row in (labels.question, *labels.evidence):
        try:
            "".join(value for value in (*row.values(), *(row.get("tags") or ())) if isinstance(value, str)).encode()
        except UnicodeEncodeError as error:
            code = f"U+{ord(error.object[error.start]):04X}"
            raise BadLabelError(
                f"half a character ({code}, a lone surrogate) stands in it: no text can hold that"
            ) from None


def _evidence(question_id: str, gold: list[Any], alternatives: Any, mode: str) -> tuple[list[dict[str, Any]], int, int]:
    """The rows of all sets, how many sets there are, and how many labels say again what was said."""
    if not isinstance(alternatives, list) or not all(isinstance(items, list) for items in alternatives):
        raise BadLabelError("`alternatives` is not a list of lists of spans")
    if alternatives and not gold:
        raise BadLabelError("`gold` is empty, yet there are `alternatives`: move one of them to `gold`")
    evidence: list[dict[str, Any]] = []
    n_duplicates = 0
    seen: set[frozenset[tuple[Any, ...]]] = set()
    for set_no, items in enumerate([gold, *alternatives] if gold else [], 1):
        rows, key, n_repeated = _set(question_id, set_no, items, mode)
        if alternatives and not any(row["is_need"] for row in rows):
            name = "`gold`" if set_no == 1 else f"`alternatives` {set_no - 1}"
            raise BadLabelError(f"{name} needs nothing, so it would be complete without any evidence")
        n_duplicates += n_repeated
        if key in seen:
            n_duplicates += len(rows)
            continue
        seen.add(key)
        evidence.extend(rows)
    return evidence, len(seen), n_duplicates


def _set(
    question_id: str, set_no: int, items: Sequence[Any], mode: str
) -> tuple[list[dict[str, Any]], frozenset[tuple[Any, ...]], int]:
    """The rows of one set, what makes two sets equal, and how many labels it repeats."""
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    n_repeated = 0
    for number, item in enumerate(items, 1):
        where = f"item {number} of " + ("`distractors`" if not set_no else f"set {set_no}")
        if not isinstance(item, Mapping):
            raise BadLabelError(f"{where} is not a JSON object")
        try:
            row = _item(item)
            row["need"] = _need(item, mode if set_no else "all")
        except BadLabelError as error:
            raise BadLabelError(f"{where}: {error}") from None
        row["evidence_id"] = f"{question_id}#{set_no}.{number}"
        key = _label(row)
        first = rows.get(key)
        if first is not None and row["quote"] not in (None, first["quote"]) and first["quote"] is not None:
            key, first = (*key, row["quote"]), None  # one of the two quotes is wrong: both are checked
        if first is None:
            rows[key] = row
            continue
        n_repeated += 1
        first["quote"] = first["quote"] if first["quote"] is not None else row["quote"]
        first["grade"] = max(first["grade"], row["grade"])
    content = frozenset((*key, row["grade"]) for key, row in rows.items())
    taken = {row["need"] for row in rows.values()}
    for row in rows.values():
        if row["need"] is None:
            # An item without a need is one of its own; "#" keeps its name apart from a team's own 1, 2, 3.
            need = "#" + str(row["evidence_id"]).rpartition(".")[2]
            while need in taken:
                need = "#" + need
            row["need"] = need
        row.update(question_id=question_id, set_no=set_no, is_need=row["grade"] > 0, is_distractor=False)
    return list(rows.values()), content, n_repeated


def _need(item: Mapping[str, Any], mode: str) -> str | None:
    if mode == "any":
        return "any"
    if mode == "all":
        return _name(item, "need")
    answer = _text(item.get("answer"))
    if answer is None:
        raise BadLabelError("no `answer`, which `gold_mode` one_per_answer needs")
    return answer


def _label(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """What makes two labels the same: the need they serve and where they point."""
    quote = row["quote"] if row["start_at"] is None else None
    names = ("need", "level", "doc_id", "doc_version", "chunk_id", "start_at", "end_at")
    return (*(row[name] for name in names), quote)


def _item(item: Mapping[str, Any]) -> dict[str, Any]:
    doc_id, chunk_id = _name(item, "doc_id"), _name(item, "chunk_id")
    quote = item.get("quote")
    if quote is not None and not isinstance(quote, str):
        raise BadLabelError("`quote` is not a text")
    if quote is not None and not quote.strip():
        raise BadLabelError("`quote` is empty")
    start, end = _offsets(item, has_quote=quote is not None)
    level = item.get("level")
    if level is None:
        # A quote that is null on purpose marks relevance of the whole document; one that is merely not given does not.
        is_span = quote is not None or (start is not None and "quote" not in item)
        level = "span" if is_span else "chunk" if chunk_id is not None and doc_id is None else "document"
    if level not in LEVELS:
        raise BadLabelError(f"`level` is {_shown(level)}: one of {', '.join(LEVELS)}")
    if level == "chunk" and chunk_id is None:
        raise BadLabelError("`level` is chunk, but there is no `chunk_id`")
    if level != "chunk" and doc_id is None:
        raise BadLabelError("no `doc_id`")
    if level in ("span", "page", "section") and quote is None and start is None:
        raise BadLabelError(f"`level` is {level}, but there is neither a range (`start`, `end`) nor a `quote`")
    return {
        "level": level,
        "grade": _grade(item.get("grade")),
        "doc_id": doc_id,
        "doc_version": _name(item, "doc_version"),
        "chunk_id": chunk_id,
        "start_at": start,
        "end_at": end,
        "quote": quote,
        "extra": _json({key: value for key, value in item.items() if key not in _ITEM_KEYS} or None),
    }


def _offsets(item: Mapping[str, Any], *, has_quote: bool) -> tuple[int | None, int | None]:
    start, end = _offset(item, "start"), _offset(item, "end")
    if start is not None and start < 0 and has_quote:
        return None, None  # "-1" is how SQuAD-like sets say that they do not know the place
    if start is None and end is None:
        return None, None
    if start is None or end is None:
        raise BadLabelError("only one of `start` and `end` is given")
    if start < 0:
        raise BadLabelError(f"`start` is {start}: offsets count from 0")
    if end <= start:
        raise BadLabelError(f"the range {start} to {end} is empty: `end` is one past the last character")
    if end >= 2**31:
        raise BadLabelError(f"`end` is {end}, more characters than a text can have")
    return start, end


def _offset(item: Mapping[str, Any], key: str) -> int | None:
    value = item.get(key)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)  # tables with gaps turn whole numbers into 12.0
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadLabelError(f"`{key}` is {_shown(value)}, not a whole number")
    return value


def _grade(value: Any) -> float:
    if value is None:
        return 1.0
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise BadLabelError(f"`grade` is {_shown(value)}, not a number")
    return float(value)


def _items(value: Any, key: str) -> list[Any]:
    if not isinstance(value, list):
        raise BadLabelError(f"`{key}` is not a list of spans")
    return value


def _name(mapping: Mapping[str, Any], key: str) -> str | None:
    """An id or name as text. 7 and "7" are the same; the empty text is none."""
    value = mapping.get(key)
    if isinstance(value, bool) or not isinstance(value, (str, int, type(None))):
        raise BadLabelError(f"`{key}` is {_shown(value)}, not a text")
    return None if value is None or value == "" else str(value)


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else _json(value)


def _json(value: Any) -> str | None:
    if value is None:
        return None
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise BadLabelError(f"a value cannot be kept as JSON: {error}") from None


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
