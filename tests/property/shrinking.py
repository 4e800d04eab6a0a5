"""Makes a failing description small, and shows it as the code a service would have."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from tests.property.description import Context, Document, Handed, Item, Pipeline, Step
from tests.property.recorded_facts import is_clear

Steps = tuple[Step | Context, ...]


def shrink(pipeline: Pipeline, failing: Callable[[Sequence[Pipeline]], set[str]], seconds: float = 40.0) -> Pipeline:
    """Greedy: takes the smallest of all one step smaller descriptions that still fails, until none does or the time is up.

    `failing` gives the question ids of those that fail; all are tried in one store, each under a name of its own.
    """
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        smaller = [renamed(x, f"s{n}") for n, x in enumerate(_smaller(pipeline)) if _is_sound(x)][:200]
        failed = failing(smaller) if smaller else set()
        found = next((x for x in smaller if x.question_id in failed), None)
        if found is None:
            break
        pipeline = found
    return pipeline


def renamed(pipeline: Pipeline, name: str) -> Pipeline:
    """The same under another question id, with documents, chunks and run to match."""
    old = pipeline.question_id

    def visit(value: Any) -> Any:
        if isinstance(value, str):
            return value.replace(old, name, 1) if value.startswith(old) else value
        if isinstance(value, tuple):
            return tuple(map(visit, value))
        if is_dataclass(value) and not isinstance(value, type):
            return replace(value, **{f.name: visit(getattr(value, f.name)) for f in fields(value)})
        return value

    return replace(visit(pipeline), run=name)


def _is_sound(pipeline: Pipeline) -> bool:
    """Every set has a span, every variable that is handed on was put out before, and `is_clear` holds."""
    known: set[str] = set()
    blocks: set[str] = set()

    def visit(steps: Steps) -> bool:
        for step in steps:
            handed = [step.takes] if isinstance(step, Context) else step.takes
            if any((x.variable or x.source or "") not in known | {""} for x in handed):
                return False
            if any(x.source and x.source not in blocks for x in handed):
                return False
            if isinstance(step, Step):
                if not visit(step.inside):
                    return False
                known.add(step.variable)
                if step.style == "with":
                    blocks.add(step.variable)
        return True

    return bool(pipeline.sets) and all(pipeline.sets) and visit(pipeline.steps) and is_clear(pipeline)


def _smaller(pipeline: Pipeline) -> Iterator[Pipeline]:
    for steps in _smaller_steps(pipeline.steps):
        yield replace(pipeline, steps=steps)
    for number, golds in enumerate(pipeline.sets):
        yield replace(pipeline, sets=_without(pipeline.sets, number))
        for at in range(len(golds)):
            sets = (*pipeline.sets[:number], _without(golds, at), *pipeline.sets[number + 1 :])
            yield replace(pipeline, sets=sets)
    used = {gold.doc_id for golds in pipeline.sets for gold in golds}
    shown = {item.chunk_id for item in _items(pipeline.steps)}
    for number, document in enumerate(pipeline.documents):
        ids = {chunk.chunk_id for chunk in pipeline.chunks if chunk.doc_id == document.doc_id}
        if document.doc_id not in used and not ids & shown:
            yield replace(pipeline, documents=_without(pipeline.documents, number))
        for smaller in _smaller_documents(document):
            documents = (*pipeline.documents[:number], smaller, *pipeline.documents[number + 1 :])
            yield replace(pipeline, documents=documents)
    for number, chunk in enumerate(pipeline.chunks):
        in_documents = {c for d in pipeline.documents for c in (*d.chunked, *d.written, *d.inventoried)}
        if chunk.chunk_id not in shown | in_documents:
            yield replace(pipeline, chunks=_without(pipeline.chunks, number))


def _smaller_documents(document: Document) -> Iterator[Document]:
    for name in ("chunked", "written", "inventoried"):
        ids = getattr(document, name)
        for at in range(len(ids)):
            yield replace(document, **{name: _without(ids, at)})
    if document.index_name is not None:
        yield replace(document, index_name=None, written=(), inventoried=(), is_indexed_late=False)


def _smaller_steps(steps: Steps) -> Iterator[Steps]:
    for at in reversed(range(len(steps))):
        yield _without(steps, at)
    for at, step in enumerate(steps):
        for smaller in _smaller_step(step):
            yield (*steps[:at], smaller, *steps[at + 1 :])


def _smaller_step(step: Step | Context) -> Iterator[Step | Context]:
    if isinstance(step, Context):
        for handed in _smaller_handed(step.takes):
            yield replace(step, takes=handed)
        return
    for inside in _smaller_steps(step.inside):
        yield replace(step, inside=inside)
    for at in range(len(step.takes)):
        if step.gives_argument is None and step.style != "in_place":
            yield replace(step, takes=_without(step.takes, at))
        for handed in _smaller_handed(step.takes[at]):
            yield replace(step, takes=(*step.takes[:at], handed, *step.takes[at + 1 :]))
    for at in range(len(step.gives or ())):
        yield replace(step, gives=_without(step.gives or (), at))
    if step.style not in ("function", "in_place") and not any(handed.source for handed in step.takes):
        yield replace(step, style="function")
    for flag in ("is_aside", "fails", "is_unreadable"):
        if getattr(step, flag):
            yield replace(step, **{flag: False})


def _smaller_handed(handed: Handed) -> Iterator[Handed]:
    if handed.source:
        yield replace(handed, source=None)
    for at in range(len(handed.items or ())):
        yield replace(handed, items=_without(handed.items or (), at))


def _without(values: tuple[Any, ...], at: int) -> tuple[Any, ...]:
    return values[:at] + values[at + 1 :]


def _items(steps: Steps) -> Iterator[Item]:
    for step in steps:
        handed = [step.takes] if isinstance(step, Context) else step.takes
        for one in handed:
            yield from one.items or ()
        if isinstance(step, Step):
            yield from step.gives or ()
            yield from _items(step.inside)


# ---------------------------------------------------------------------- shown as code
def as_code(pipeline: Pipeline) -> str:
    """The description as a service would be written."""
    lines = [f"# {pipeline.mode}"]
    for document in pipeline.documents:
        lines.append(f"# document {document.doc_id}: {document.text!r}")
        about = [
            name
            for name in ("has_scope", "has_parse", "has_chunks", "chunks_by_text", "is_indexed_late")
            if getattr(document, name)
        ]
        lines.append(
            f"#   {' '.join(about)}; chunked {' '.join(document.chunked)}; index {document.index_name}: {' '.join(document.written)}"
        )
        if document.inventoried and pipeline.mode.inventoried_indexes:
            lines.append(f"#   inventory: {' '.join(document.inventoried)}")
    for chunk in pipeline.chunks:
        stands_for = f" for {chunk.stands_for}" if chunk.stands_for else ""
        lines.append(f"# chunk {chunk.chunk_id}: {chunk.doc_id} {chunk.ranges}{stands_for}")
    for number, golds in enumerate(pipeline.sets, start=1):
        for at, gold in enumerate(golds, start=1):
            lines.append(f"# gold #{number}.{at}: {gold}")
    lines.append(f"with rt.query({pipeline.question!r}, question_id={pipeline.question_id!r}):")
    lines += _code(pipeline.steps, "    ")
    return "\n".join(lines)


def _code(steps: Steps, indent: str) -> list[str]:
    lines = []
    for step in steps:
        if isinstance(step, Context):
            lines.append(f"{indent}rt.context({_handed(step.takes)})")
            continue
        flags = [step.style] + [
            f for f in ("is_aside", "is_final", "is_answer", "fails", "is_unreadable") if getattr(step, f)
        ]
        arguments = ", ".join(map(_handed, step.takes))
        gives = "nothing" if step.gives is None else _list(step.gives)
        if step.gives_argument is not None:
            gives = f"argument {step.gives_argument}"
        lines.append(
            f"{indent}{step.variable} = {step.name}({arguments})  # {step.kind} [{' '.join(flags)}] gives {gives}"
        )
        lines += _code(step.inside, indent + "    ")
    return lines


def _handed(handed: Handed) -> str:
    if handed.variable is None:
        shown = _list(handed.items or ())
    elif handed.items is None:
        shown = handed.variable
    else:
        shown = f"{handed.variable}[:] = {_list(handed.items)}"
    return f"{shown} source={handed.source}" if handed.source else shown


def _list(items: tuple[Item, ...]) -> str:
    return "[" + " ".join(f"{i.chunk_id}/{i.form}{i.part or ''}" for i in items) + "]"
