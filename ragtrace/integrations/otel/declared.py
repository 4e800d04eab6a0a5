"""A vocabulary from a mapping file, for spans that follow no convention: TOML, or YAML where PyYAML is installed.

    name = "our search"
    question_id = "app.question_id"

    [[span]]
    kind = "retrieve"
    when = { "app.step" = "search" }
    query = "app.query"
    output = "app.hits|results"

Keys of a span are those of `rules.Rule`; paths are those of `reading`. A list is a path, several, or a table with the
keys of `rules.List`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ragtrace.errors import ConfigurationError, NotInstalledError
from ragtrace.integrations.otel.rules import List, Rule, Vocabulary
from ragtrace.model import MODES, QUERY_KINDS, SCORE_KINDS

__all__ = ["read"]

_PATHS = frozenset(("query", "prompt", "k", "threshold", "index", "filter", "model", "question", "label"))
_LISTS = frozenset(("output", "input"))
_CHOICES = {"kind": ("", *QUERY_KINDS), "mode": MODES, "score_kind": SCORE_KINDS}
_VOCABULARY = frozenset(("session", "question_id", "run"))


def read(path: Path) -> Vocabulary:
    """The vocabulary a file describes. Raises: ConfigurationError with what is wrong where; NotInstalledError; OSError."""
    try:
        content = _loaded(path)
        if not isinstance(content, Mapping):
            raise ValueError("the file must be a table")
        unknown = set(content) - {"name", "span", *_VOCABULARY}
        if unknown:
            raise ValueError(
                f"{', '.join(sorted(unknown))}: unknown; known are name, span, {', '.join(sorted(_VOCABULARY))}"
            )
        spans = content.get("span", [])
        if not isinstance(spans, list):
            raise ValueError("span must be a list of tables: [[span]]")
        facts = {name: _paths(name, content[name]) for name in _VOCABULARY if name in content}
        return Vocabulary(
            _text("name", content.get("name", path.stem)),
            tuple(_rule(number, span) for number, span in enumerate(spans, 1)),
            settles=True,
            **facts,
        )
    except ValueError as error:
        raise ConfigurationError(f"{path}: {error}", path=str(path)) from error


def _loaded(path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
    if path.suffix in (".yaml", ".yml"):
        try:
            import yaml  # only for those who write YAML
        except ImportError as error:
            raise NotInstalledError(f"{path}: reading YAML needs PyYAML: pip install pyyaml, or write TOML") from error
        try:
            return yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ValueError(str(error)) from error
    try:
        import tomllib
    except ImportError:  # Python 3.10
        try:
            import tomli as tomllib
        except ImportError as error:
            raise NotInstalledError(f"{path}: reading TOML with Python 3.10 needs tomli: pip install tomli") from error
    return tomllib.loads(text)


def _rule(number: int, span: Any) -> Rule:
    where = f"span {number}"
    if not isinstance(span, Mapping):
        raise ValueError(f"{where} must be a table")
    known = {field.name for field in dataclasses.fields(Rule)}
    said: dict[str, Any] = {}
    for key, value in span.items():
        at = f"{where}, {key}"
        if key not in known:
            raise ValueError(f"{at}: unknown; known are {', '.join(sorted(known))}")
        if key in _LISTS:
            said[key] = _list(at, value)
        elif key in _PATHS:
            said[key] = _paths(at, value)
        elif key in ("when", "also"):
            said[key] = {name: _values(at, one) for name, one in _table(at, value).items()}
        elif key == "is_higher_better":
            said[key] = _flag(at, value)
        else:
            said[key] = _text(at, value)
            if key == "name":
                _pattern(at, value)
            if key in _CHOICES and value not in _CHOICES[key]:
                raise ValueError(f"{at} must be one of {', '.join(filter(None, _CHOICES[key]))}, not {value!r}")
    if "kind" not in said:
        raise ValueError(f"{where} needs a kind")
    if not {"when", "name", "scope", "also"} & set(said):
        raise ValueError(f"{where} needs `when`, `name` or `scope`: it would fit every span")
    return Rule(**said)


def _list(at: str, value: Any) -> List:
    if not isinstance(value, Mapping):
        return List(_paths(at, value), are_texts=True)
    known = {field.name for field in dataclasses.fields(List)}
    said: dict[str, Any] = {"are_texts": True}
    for key, one in value.items():
        inner = f"{at}.{key}"
        if key not in known:
            raise ValueError(f"{inner}: unknown; known are {', '.join(sorted(known))}")
        if key in ("item", "only"):
            said[key] = {name: _text(inner, word) for name, word in _table(inner, one).items()}
        elif key == "own":
            said[key] = frozenset(_paths(inner, one))
        elif key == "are_texts":
            said[key] = _flag(inner, one)
        elif key in ("number", "pattern"):
            said[key] = _text(inner, one)
            if key == "pattern":
                _pattern(inner, one)
        else:
            said[key] = _paths(inner, one)
    if not said.get("paths"):
        raise ValueError(f"{at} needs paths")
    return List(**said)


def _paths(at: str, value: Any) -> tuple[str, ...]:
    paths = [value] if isinstance(value, str) else value
    if not isinstance(paths, list) or not all(isinstance(path, str) and path for path in paths):
        raise ValueError(f"{at} must be a path or a list of paths")
    return tuple(paths)


def _values(at: str, value: Any) -> tuple[str, ...]:
    """The values that fit; `true` stands for any."""
    if value is True:
        return ()
    return tuple(text.lower() for text in _paths(at, value))


def _table(at: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{at} must be a table")
    return value


def _text(at: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{at} must be a text")
    return value


def _flag(at: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{at} must be true or false")
    return value


def _pattern(at: str, value: str) -> None:
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"{at} is no pattern ({error})") from error
