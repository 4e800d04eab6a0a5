"""What a vocabulary says of a span, as data, and what a span says by it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from ragtrace.integrations.otel.listing import List, listed, number, whole
from ragtrace.integrations.otel.reading import Items, decoded, first, has_prefix, prompt_text, question_text, value_at
from ragtrace.integrations.otel.spans import Span

__all__ = ["List", "Rule", "Said", "Vocabulary", "said"]

Paths = tuple[str, ...]


@dataclass(frozen=True)
class Rule:
    """One kind of span of a vocabulary. Paths are those of `reading`; the first where there is something counts."""

    kind: str
    """The stage's kind; "" for a span that is none but says what was asked."""
    when: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Attribute -> its values, in lower case (`*er`: how they end); none: that it is there. One attribute is enough.

    A name that ends in a dot is that of any attribute that begins so.
    """
    name: str = ""
    """A pattern of the span's name, all of which must fit."""
    scope: str = ""
    """How the instrumentation's name begins."""
    also: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """As `when`, and needed with it."""
    mode: str | None = None
    score_kind: str | None = None
    is_higher_better: bool | None = None
    query: Paths = ()
    output: List | None = None
    input: List | None = None
    prompt: Paths = ()
    k: Paths = ()
    threshold: Paths = ()
    index: Paths = ()
    filter: Paths = ()
    model: Paths = ()
    question: Paths = ()
    label: Paths = ()
    """The stage's name, where it is not the span's."""


@dataclass(frozen=True)
class Vocabulary:
    """One way to write retrieval down. The first rule that fits a span counts."""

    name: str
    rules: tuple[Rule, ...]
    session: Paths = ()
    question_id: Paths = ()
    run: Paths = ()
    settles: bool = False
    """Whether it says of every span of its own what it is: those it calls no stage are none in later vocabularies."""

    @cached_property
    def _looked_at(self) -> tuple[frozenset[str], tuple[str, ...]] | None:
        """Attributes, and how attributes begin, without which it says nothing; None when it may without any."""
        names: set[str] = set()
        prefixes: set[str] = set()
        for rule in self.rules:
            if not rule.when:
                return None
            for name in rule.when:
                (prefixes if name.endswith(".") else names).add(name)
        for path in (*self.session, *self.question_id, *self.run):
            if path.startswith("event:"):
                return None
            before, is_list, _ = path.partition("{i}")
            name = path.partition("|")[0]
            if is_list or name.endswith(".*"):
                prefixes.add(before if is_list else name[:-1])
            names.add(name)
        return frozenset(names), tuple(prefixes)

    def may_read(self, span: Span) -> bool:
        """False when nothing that it looks at is in the span."""
        looked_at = self._looked_at
        if looked_at is None:
            return True
        names, prefixes = looked_at
        return not span.attributes.keys().isdisjoint(names) or any(has_prefix(span, prefix) for prefix in prefixes)


class Said(NamedTuple):
    """What a span says. None: nothing of it."""

    kind: str
    query: str | None = None
    output: Items | None = None
    input: Items | None = None
    n_output_declared: int | None = None
    n_input_declared: int | None = None
    prompt: str | None = None
    is_prompt_complete: bool = True
    question: str | None = None
    question_id: str | None = None
    session: str | None = None
    run: str | None = None
    mode: str | None = None
    score_kind: str | None = None
    is_higher_better: bool | None = None
    k: int | None = None
    threshold: float | None = None
    index_name: str | None = None
    filter: Any = None
    model: str | None = None
    label: str | None = None
    vocabularies: tuple[str, ...] = ()
    is_settled: bool = False


def said(span: Span, vocabularies: Sequence[Vocabulary]) -> Said | None:
    """What a span says, in all the vocabularies it was written in; None when in none of them. Never raises.

    The first that names a stage gives its kind. The others fill in what that one leaves open: a list, the ids in it.
    """
    found: Said | None = None
    for vocabulary in vocabularies:
        one = _said(span, vocabulary)
        if one is not None:
            found = one if found is None else _joined(found, one)
    return found


def _said(span: Span, vocabulary: Vocabulary) -> Said | None:
    if not vocabulary.may_read(span):
        return None
    question_id = _text(first(span, vocabulary.question_id))
    session = _text(first(span, vocabulary.session))
    run = _text(first(span, vocabulary.run))
    rule = next((rule for rule in vocabulary.rules if _fits(rule, span)), None)
    if rule is None:
        if question_id is None and session is None and run is None:
            return None
        return Said("", question_id=question_id, session=session, run=run)
    given = listed(span, rule.input, None)
    output = listed(span, rule.output, None if given is None else given[0].rows)
    prompt = next((text for path in rule.prompt if (text := _prompt(span, path)) is not None), None)
    query = first(span, rule.query)
    asked = first(span, rule.question)
    filters = first(span, rule.filter)
    return Said(
        rule.kind,
        query=None if query is None else question_text(query),
        output=None if output is None else output[0],
        input=None if given is None else given[0],
        n_output_declared=None if output is None else output[1],
        n_input_declared=None if given is None else given[1],
        prompt=prompt,
        is_prompt_complete=not span.n_dropped_attributes,
        question=None if asked is None else question_text(asked),
        question_id=question_id,
        session=session,
        run=run,
        mode=rule.mode,
        score_kind=rule.score_kind,
        is_higher_better=rule.is_higher_better,
        k=whole(first(span, rule.k)),
        threshold=number(first(span, rule.threshold)),
        index_name=_text(first(span, rule.index)),
        filter=decoded(filters),
        model=_text(first(span, rule.model)),
        label=_text(first(span, rule.label)),
        vocabularies=(vocabulary.name,) if rule.kind else (),
        is_settled=vocabulary.settles,
    )


def _fits(rule: Rule, span: Span) -> bool:
    if rule.scope and not span.scope.startswith(rule.scope):
        return False
    if rule.name and not re.fullmatch(rule.name, span.name, re.IGNORECASE):
        return False
    if rule.also and not _has_one(rule.also, span):
        return False
    return not rule.when or _has_one(rule.when, span)


def _has_one(wanted: Mapping[str, Sequence[str]], span: Span) -> bool:
    attributes = span.attributes
    for name, values in wanted.items():
        if name.endswith("."):
            if has_prefix(span, name):
                return True
        elif name in attributes:
            value = attributes[name]
            if not values or (isinstance(value, str) and _is_one(value.lower().strip('"'), values)):
                return True
    return False


def _is_one(value: str, values: Sequence[str]) -> bool:
    return value in values or any(known[0] == "*" and value.endswith(known[1:]) for known in values)


# ------------------------------------------------------------------ prompts


def _prompt(span: Span, path: str) -> str | None:
    """The text at a path; of several paths joined by `+`, those that are there, when the last one is."""
    *others, last = path.split("+")
    texts = [prompt_text(_unnamed(span, one)) for one in (*others, last)]
    return None if texts[-1] is None else "\n".join(text for text in texts if text is not None)


def _unnamed(span: Span, path: str) -> Any:
    """The value at a path; arguments of a call count whatever their names."""
    value = value_at(span, path)
    return list(value.values()) if path.endswith(".*") and isinstance(value, Mapping) else value


# ------------------------------------------------------------------ two vocabularies in one span


def _joined(one: Said, other: Said) -> Said:
    """What one vocabulary says, and what the other says besides. A stage goes before no stage."""
    if other.kind and not one.kind:
        if one.is_settled:
            other = other._replace(kind="")
        else:
            one, other = other, one
    filled = {
        name: value
        for name, value in other._asdict().items()
        if name not in _LISTS and value is not None and getattr(one, name) is None
    }
    if other.kind == one.kind:
        filled["output"] = _joined_items(one.output, other.output)
        filled["input"] = _joined_items(one.input, other.input)
        filled["vocabularies"] = one.vocabularies + other.vocabularies
        for name in ("n_output_declared", "n_input_declared"):
            numbers = [length for said in (one, other) if (length := getattr(said, name)) is not None]
            filled[name] = max(numbers, default=None)
    return one._replace(**filled)


_LISTS = frozenset(
    (
        "kind",
        "output",
        "input",
        "n_output_declared",
        "n_input_declared",
        "vocabularies",
        "is_prompt_complete",
        "is_settled",
    )
)


def _joined_items(one: Items | None, other: Items | None) -> Items | None:
    """The complete one of two forms of a list, with what only the other says of its items; else the longer one."""
    if one is None or other is None:
        return one or other
    if other.is_complete and not one.is_complete:
        one, other = other, one
    if len(one.rows) != len(other.rows):
        return one if one.is_complete or len(one.rows) > len(other.rows) else other
    return Items([{**second, **row} for row, second in zip(one.rows, other.rows, strict=True)], one.is_complete)


# ------------------------------------------------------------------ plain values


def _text(value: Any) -> str | None:
    if isinstance(value, str):
        return value or None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None
