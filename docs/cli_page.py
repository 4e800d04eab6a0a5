"""docs/cli.md, made from the commands themselves: `python -m docs` writes it, a test fails when it is stale.

Read from the functions' annotations, not from what `--help` prints: that changes with every release of Typer.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

import typer
from typer.models import ArgumentInfo, OptionInfo

from ragtrace.cli.examples import EXAMPLES
from ragtrace.cli.main import app

__all__ = ["commands", "page"]

_INTRODUCTION = """\
# The command line

Made from the commands themselves by `make docs`; `ragtrace COMMAND --help` says the same.

`STORE` is the path of the `.duckdb` file that the service was configured with. Every command that reads it merges the
logs of running and ended processes first, so it sees a service that is still writing.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | a check failed |
| 2 | a mistake in what was asked: one sentence on stderr says what to do |
| 3 | the data is incomplete or damaged: what is printed is what is there |

With `--format json` an error is also an object on stdout: `{"error": {"kind", "message", ...}}`. Results go to stdout,
notes and progress to stderr. Column names are the same in every format, and those of the queries: `ragtrace queries NAME`
says what each means.
"""


def commands() -> dict[str, Callable[..., Any]]:
    """Every command by its words, `report`, `gold load` ..., in the order of the help."""
    return dict(_leaves(app, ()))


def page() -> str:
    """The whole page."""
    return "\n".join([_INTRODUCTION, *(_section(words, run) for words, run in commands().items())])


def _section(words: str, run: Callable[..., Any]) -> str:
    hints = typing.get_type_hints(run, include_extras=True)
    rows, arguments = [], []
    for name, parameter in inspect.signature(run).parameters.items():
        kind, info = typing.get_args(hints[name])[:2]
        said = _named(name, info, parameter.default)
        if isinstance(info, ArgumentInfo):
            arguments.append(said)
        rows.append(f"| `{said}` | {_meaning(kind, info, parameter.default)} |")
    lines = [f"## ragtrace {words}", "", f"`{' '.join(['ragtrace', words, *arguments, '[OPTIONS]'])}`", ""]
    lines += [_unwrapped(run.__doc__ or ""), "", "| | |", "|---|---|", *rows, ""]
    lines += ["```console", *(f"$ {example}" for example in EXAMPLES[words]), "```", ""]
    return "\n".join(lines)


def _named(name: str, info: ArgumentInfo | OptionInfo, default: Any) -> str:
    """`STORE`, `[NAME]`, `--limit`."""
    if isinstance(info, ArgumentInfo):
        shown = info.metavar or name.upper()
        return shown if default is inspect.Parameter.empty else f"[{shown}]"
    # Inside Annotated, Typer keeps the first of the given names where a default would stand.
    given = [decl for decl in (info.default, *(info.param_decls or ())) if isinstance(decl, str)]
    return ", ".join(given or [f"--{name.replace('_', '-')}"])


def _meaning(kind: Any, info: ArgumentInfo | OptionInfo, default: Any) -> str:
    said = [str(info.help)]
    choices = next((k for k in (kind, *typing.get_args(kind)) if inspect.isclass(k) and issubclass(k, Enum)), None)
    if choices is not None:
        said.append(f"One of {', '.join(f'`{choice.value}`' for choice in choices)}.")
    if isinstance(info, OptionInfo) and default not in (None, False, inspect.Parameter.empty):
        said.append(f"Default: {getattr(default, 'value', default)}.")
    return " ".join(said)


def _unwrapped(text: str) -> str:
    """Paragraphs, a line each."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in inspect.cleandoc(text).split("\n\n"))


def _leaves(group: typer.Typer, words: tuple[str, ...]) -> Iterator[tuple[str, Callable[..., Any]]]:
    for command in group.registered_commands:
        if command.callback is not None:
            yield " ".join((*words, command.name or command.callback.__name__)), command.callback
    for inner in group.registered_groups:
        if inner.typer_instance is not None:
            yield from _leaves(inner.typer_instance, (*words, inner.name or ""))
