"""Runs descriptions through the public recording API, as services of all styles would, and merges what was recorded."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import ragtrace as rt
from tests.property.description import Chunk, Context, Document, Gold, Handed, Item, Pipeline, Step
from tests.property.recorded_facts import altered_text


def record(pipelines: Sequence[Pipeline], store: Path) -> None:
    """Everything of these pipelines into the spool of one store: documents, inventories, queries, late writes."""
    rt.configure(store, run=pipelines[0].run, merge="off")
    _ingest_all(pipelines)
    _answer_all(pipelines, store)
    for pipeline in pipelines:
        for document in pipeline.documents:
            if document.is_indexed_late:
                _index(pipeline, document)
    assert rt.shutdown(10)


def record_documents(pipelines: Sequence[Pipeline], store: Path) -> None:
    """Only what is there before the queries."""
    rt.configure(store, run=pipelines[0].run, merge="off")
    _ingest_all(pipelines)
    assert rt.shutdown(10)


def record_queries(pipelines: Sequence[Pipeline], store: Path) -> None:
    """Only the queries."""
    _answer_all(pipelines, store)
    assert rt.shutdown(10)


def _ingest_all(pipelines: Sequence[Pipeline]) -> None:
    mode = pipelines[0].mode
    for pipeline in pipelines:
        for document in pipeline.documents:
            _ingest(pipeline, document)
    for name in mode.inventoried_indexes:
        ids = [c for p in pipelines for d in p.documents if d.index_name == name for c in d.inventoried]
        rt.inventory(index=name, chunk_ids=ids)
    if mode.is_source_inventoried:
        rt.inventory(doc_ids=[d.doc_id for p in pipelines for d in p.documents if d.has_scope])


def _answer_all(pipelines: Sequence[Pipeline], store: Path) -> None:
    run = None
    for pipeline in pipelines:
        if pipeline.run != run:
            run = pipeline.run
            rt.configure(store, run=run, merge="off")
        _Service(pipeline).answer()


def gold_lines(pipelines: Sequence[Pipeline]) -> list[dict[str, Any]]:
    """The gold file of these pipelines."""
    lines = []
    for pipeline in pipelines:
        first, *others = [[_gold(pipeline, gold) for gold in golds] for golds in pipeline.sets]
        line: dict[str, Any] = {"question_id": pipeline.question_id, "question": pipeline.question, "gold": first}
        if others:
            line["alternatives"] = others
        lines.append(line)
    return lines


def write_gold(pipelines: Sequence[Pipeline], path: Path) -> None:
    """The gold file on disk."""
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in gold_lines(pipelines)), "utf-8")


def _gold(pipeline: Pipeline, gold: Gold) -> dict[str, Any]:
    item: dict[str, Any] = {"doc_id": gold.doc_id, "need": gold.need}
    if gold.level != "span":
        item["level"] = gold.level
    if gold.has_offsets:
        item |= {"start": gold.start, "end": gold.end}
    if gold.has_quote:
        text = pipeline.document(gold.doc_id).text
        item["quote"] = gold.lost_quote or text[gold.start : gold.end]
    return item


# ---------------------------------------------------------------------- before the query
def _ingest(pipeline: Pipeline, document: Document) -> None:
    if not document.has_scope:
        _write(pipeline, document, None)
        return
    with rt.document(document.doc_id):
        text = document.text
        if document.has_parse:
            text = rt.parse(name="parse")(lambda raw: text)(b"raw")
        pieces = None
        if document.has_chunks:
            pieces = [_piece(pipeline, c, has_offsets=not document.chunks_by_text) for c in document.chunked]
            pieces = rt.chunk(name="split")(lambda text: pieces)(text)
        _write(pipeline, document, pieces)


def _write(pipeline: Pipeline, document: Document, pieces: list[rt.Chunk] | None) -> None:
    if document.index_name is not None and not document.is_indexed_late:
        known = {str(piece.id): piece for piece in pieces or ()}
        _index(pipeline, document, known)


def _index(pipeline: Pipeline, document: Document, known: dict[str, rt.Chunk] | None = None) -> None:
    assert document.index_name is not None
    pieces = [(known or {}).get(c) or _piece(pipeline, c) for c in document.written]
    is_complete = document.index_name in pipeline.mode.complete_indexes
    rt.index(name="write", index=document.index_name, complete=is_complete)(_swallow)(pieces)


def _swallow(pieces: list[rt.Chunk]) -> None:
    """A vector store that returns nothing."""


def _piece(pipeline: Pipeline, chunk_id: str, has_offsets: bool = True) -> rt.Chunk:
    chunk = pipeline.chunk(chunk_id)
    assert chunk is not None
    given: dict[str, Any] = {"id": chunk_id, "text": pipeline.text(chunk), "doc_id": chunk.doc_id}
    if has_offsets:
        given |= _where(chunk.ranges)
    return rt.Chunk(**given, stands_for=chunk.stands_for)


def _where(ranges: Sequence[tuple[int, int]]) -> dict[str, Any]:
    if len(ranges) == 1:
        return {"start": ranges[0][0], "end": ranges[0][1]}
    return {"ranges": tuple(ranges)}


# ---------------------------------------------------------------------- the query
class _Failed(Exception):
    """The service's own error."""


class _Service:
    """One service answering one question."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.lists: dict[str, Any] = {}
        self.stages: dict[str, Any] = {}

    def answer(self) -> None:
        """The query, recorded."""
        with rt.query(self.pipeline.question, question_id=self.pipeline.question_id):
            for step in self.pipeline.steps:
                self._run(step)

    def _run(self, step: Step | Context) -> None:
        if isinstance(step, Context):
            rt.context(self._handed(step.takes))
            return
        arguments = [self._handed(handed) for handed in step.takes]
        try:
            self.lists[step.variable] = self._call(step, arguments)
        except _Failed:
            pass

    def _handed(self, handed: Handed) -> Any:
        if handed.variable is None:
            return self._list(handed.items or ())
        known = self.lists.get(handed.variable)
        if handed.items is not None and isinstance(known, list):
            known[:] = self._list(handed.items)
        return known

    def _list(self, items: Sequence[Item]) -> list[Any]:
        if all(item.form == "id" for item in items):
            return [item.chunk_id for item in items]
        if all(item.form == "pair" for item in items):
            return [(item.chunk_id, 1.0 - number / 100) for number, item in enumerate(items)]
        return [self._candidate(item) for item in items]

    def _candidate(self, item: Item) -> rt.Candidate:
        chunk = self.pipeline.chunk(item.chunk_id)
        if chunk is None or item.form in ("id", "pair"):
            return rt.Candidate(item.chunk_id)
        if item.form == "document":
            return rt.Candidate(item.chunk_id, doc_id=chunk.doc_id)
        if item.form == "placed":
            return rt.Candidate(item.chunk_id, doc_id=chunk.doc_id, **_where(self._left(chunk, item)))
        if item.form == "altered":
            return rt.Candidate(item.chunk_id, text=altered_text(chunk))
        text = self.pipeline.text(chunk)
        return rt.Candidate(item.chunk_id, text=text if item.part is None else text[slice(*item.part)])

    @staticmethod
    def _left(chunk: Chunk, item: Item) -> tuple[tuple[int, int], ...]:
        if item.part is None:
            return chunk.ranges
        ((start, _),) = chunk.ranges
        return ((start + item.part[0], start + item.part[1]),)

    # ------------------------------------------------------------------ styles
    def _work(self, step: Step, arguments: list[Any]) -> Any:
        """The body of the stage."""
        for inner in step.inside:
            self._run(inner)
        if step.fails:
            raise _Failed
        if step.gives_argument is not None:
            return arguments[step.gives_argument]
        if step.is_unreadable:
            return object()
        if step.style == "in_place":
            arguments[0][:] = self._list(step.gives or ())
            return None
        if step.kind in ("rewrite", "generate"):
            return "some words of a model"
        return self._list(step.gives or ())

    def _call(self, step: Step, arguments: list[Any]) -> Any:
        stage = getattr(rt, step.kind)(**_parameters(step))
        if step.style == "with":
            with stage as running:
                self.stages[step.variable] = running
                for handed, argument in zip(step.takes, arguments, strict=True):
                    source = self.stages[handed.source] if handed.source else None
                    running.input(argument, source=source)
                result = self._work(step, arguments)
                running.output(result)
            return result

        def named(work: Any) -> Any:
            # Two decorated functions of one name, one inside the other, would be taken for one step decorated twice.
            work.__name__ = work.__qualname__ = f"{step.name}_{step.variable}"
            return stage(work)

        return _STYLES[step.style](named, lambda: self._work(step, arguments), arguments)


def _parameters(step: Step) -> dict[str, Any]:
    parameters: dict[str, Any] = {"name": step.name}
    for flag in ("aside", "final", "answer"):
        if getattr(step, f"is_{flag}"):
            parameters[flag] = True
    return parameters


Body = Callable[[], Any]


def _function(stage: Any, body: Body, arguments: list[Any]) -> Any:
    @stage
    def work(first: Any = None, second: Any = None, third: Any = None, *others: Any) -> Any:
        return body()

    return work(*arguments)


def _method(stage: Any, body: Body, arguments: list[Any]) -> Any:
    class Worker:
        @stage
        def work(self, first: Any = None, second: Any = None, third: Any = None, *others: Any) -> Any:
            return body()

    return Worker().work(*arguments)


def _coroutine(stage: Any, body: Body, arguments: list[Any]) -> Any:
    @stage
    async def work(first: Any = None, second: Any = None, third: Any = None, *others: Any) -> Any:
        return body()

    running = work(*arguments)
    try:
        running.send(None)  # it never waits, so no event loop is needed
    except StopIteration as ended:
        return ended.value
    raise AssertionError("the coroutine waited")


def _generator(stage: Any, body: Body, arguments: list[Any]) -> Any:
    @stage
    def work(first: Any = None, second: Any = None, third: Any = None, *others: Any) -> Iterator[Any]:
        yield from body()

    return list(work(*arguments))


def _in_place(stage: Any, body: Body, arguments: list[Any]) -> Any:
    _function(stage, body, arguments)
    return arguments[0]


def _nested(stage: Any, body: Body, arguments: list[Any]) -> Any:
    if len(arguments) < 2:
        return _function(stage, body, arguments)

    @stage
    def work(lists: Any) -> Any:
        return body()

    return work(arguments)


_STYLES: dict[str, Callable[[Any, Body, list[Any]], Any]] = {
    "function": _function,
    "method": _method,
    "coroutine": _coroutine,
    "generator": _generator,
    "in_place": _in_place,
    "nested": _nested,
}
