"""Which texts leave the process, and how: `capture_text` and `redact` in one place. Knows nothing of logs or scopes.

A text that is not captured is left out. What is captured, and every name, goes through the redactor first; one that
fails costs that text only. Cutting comes after redacting: the half of a secret at a cut is not what a redactor looks for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ragtrace import digest
from ragtrace.recording.values import as_json
from ragtrace.spool.records import Record

if TYPE_CHECKING:
    from ragtrace.losses import Losses
    from ragtrace.recording.stages import Stage
    from ragtrace.settings import Settings

__all__ = ["NOT_CAPTURED", "REDACTION_FAILED", "Capture"]

REDACTION_FAILED = "[redaction failed]"
NOT_CAPTURED = "[not captured]"
_MAX_ERROR_CHARACTERS = 2000
# A hundred bytes each.
_MAX_NAMES = 200_000


class Capture:
    """Texts and names as one configuration lets them out. Thread-safe; nothing here raises."""

    def __init__(self, settings: Settings, lost: Losses) -> None:
        self._settings = settings
        self._captures_questions = settings.captures_questions
        self._losses = lost
        self._names: dict[str, str] = {}
        """Names as the redactor leaves them."""
        self._written_hashes: set[str] = set()

    def after_fork(self) -> None:
        """Write texts anew in a forked child: the parent's may be waiting in its memory."""
        self._written_hashes = set()

    @property
    def has_redactor(self) -> bool:
        """Whether names may have to be changed."""
        return self._settings.redact is not None

    # ---------------------------------------------------------------- redacting

    def words(self, text: str) -> str:
        """A text that is stored at every level, redacted."""
        redacted = self._redacted(text)
        return REDACTION_FAILED if redacted is None else storable(redacted)

    def _redacted(self, text: str) -> str | None:
        """None when the redactor failed."""
        redact = self._settings.redact
        if redact is None:
            return text
        try:
            redacted = redact(text)
        except Exception:  # the user's own function: it fails closed, whatever it raised
            redacted = None
        if isinstance(redacted, str):
            return str.__str__(redacted)
        self._losses.add("redactor_error")
        return None

    def name(self, name: str | None) -> str | None:
        """A name (an id, a document, a session), redacted.

        One that the redactor changes gets a hash of the original at its end: two documents must not become one. Each
        is shown to the redactor once, as names come back with every query.
        """
        if name is None or self._settings.redact is None:
            return name
        known = self._names.get(name)
        if known is None:
            redacted = self._redacted(name)
            if redacted == name:
                known = name
            else:
                known = f"{REDACTION_FAILED if redacted is None else redacted}#{_short_hash(name)}"
            if len(self._names) >= _MAX_NAMES:
                self._names.clear()
            self._names[name] = known
        return known

    def json(self, text: str) -> str:
        """JSON with every word and every name in it redacted."""
        if self._settings.redact is None:
            return text
        return as_json(_mapped(json.loads(text), self.words, self.words))

    # ---------------------------------------------------------------- per level

    def question(self, text: str | None) -> str | None:
        """A question or search text as it is stored; None when it is not."""
        if text is None or not self._captures_questions:
            return None
        return storable(text) if self._settings.redact is None else self.words(text)

    def error(self, message: str | None) -> str | None:
        """An exception's message as it is stored; None when it is not."""
        captured = self.question(message)
        return None if captured is None else captured[:_MAX_ERROR_CHARACTERS]

    def label(self, label: str) -> str:
        """A sub-query's label, which may be the sub-query itself: where questions are not stored, a hash."""
        return self.words(label) if self._captures_questions else f"#{_short_hash(label)}"

    def filter(self, text: str) -> str:
        """A filter's JSON; where questions are not stored its words are left out, names and numbers stay."""
        if self._captures_questions:
            return self.json(text)
        return as_json(_mapped(json.loads(text), lambda word: NOT_CAPTURED, self.words))

    def document(self, text: str, text_hash: str) -> Record | None:
        """The record of a parsed text, the first time this process stores it."""
        if not self._settings.captures_documents or text_hash in self._written_hashes:
            return None
        if len(self._written_hashes) > 100_000:
            self._written_hashes.clear()  # the merge stores a text once anyway
        self._written_hashes.add(text_hash)
        redacted = self._redacted(text)
        stored = REDACTION_FAILED if redacted is None else storable(redacted)
        # A failed one may have the marker's length by chance.
        is_aligned = redacted is not None and len(stored) == len(text)
        return Record("text", {"text_hash": text_hash, "text": stored, "is_aligned": is_aligned})

    def span(self, stage: Stage) -> tuple[str, Mapping[str, Any]]:
        """A stage's span: name and attributes."""
        if self._settings.redact is None:
            return stage.name, stage.attributes
        words = {key: self.name(value) if isinstance(value, str) else value for key, value in stage.attributes.items()}
        return self.name(stage.name) or "", words


def storable(text: str) -> str:
    """A text as UTF-8 can say it: a lone surrogate becomes a question mark, of the same length."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode("utf-8")
    return text


def _short_hash(text: str) -> str:
    return digest.of_text(text)[:12]


def _mapped(value: Any, change: Callable[[str], str], rename: Callable[[str], str]) -> Any:
    """JSON with every word and every name in it changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_mapped(inner, change, rename) for inner in value]
    if isinstance(value, dict):
        return {rename(name): _mapped(inner, change, rename) for name, inner in value.items()}
    return value
