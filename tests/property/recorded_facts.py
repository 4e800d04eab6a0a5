"""What the record must hold of a description: the facts the model judges. Written from docs/internals.md sections 1 and 2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.model import facts
from tests.property.description import Chunk, Context, Document, Handed, Item, Pipeline, Range, Step, part_ranges
from tests.property.gold_spots import Golds

TAKES_UNRELATED_LISTS = ("filter", "fuse", "rerank", "expand", "compress", "truncate", "generate")
"""Kinds whose argument counts as a list even if it shares no id with what came before."""

INGEST_AT, INVENTORY_AT, QUERY_AT, LATE_AT = 1, 2, 3, 4
"""Moments of a batch: all documents, then the inventories, then all queries, then the late writes."""


def store_facts(pipelines: Sequence[Pipeline]) -> facts.Store:
    """The facts of pipelines that share one store."""
    mode = pipelines[0].mode
    golds = [Golds(pipeline) for pipeline in pipelines]
    ingest = facts.Ingest(
        documents=tuple(facts.DocumentRow(d.doc_id, INGEST_AT) for p in pipelines for d in p.documents if d.has_scope),
        texts=tuple(
            facts.ParsedText(d.doc_id, INGEST_AT, gold.found(d), gold.of_document(d))
            for p, gold in zip(pipelines, golds, strict=True)
            for d in p.documents
            if d.has_recorded_text
        ),
        chunk_runs=tuple(
            facts.ChunkRun(d.doc_id, INGEST_AT, tuple(gold.chunk_entry(c) for c in d.chunked))
            for p, gold in zip(pipelines, golds, strict=True)
            for d in p.documents
            if d.has_chunks
        ),
        writes=tuple(
            facts.IndexWrite(
                d.index_name,
                LATE_AT if d.is_indexed_late else INGEST_AT,
                tuple(gold.chunk_entry(c) for c in d.written),
                d.index_name in mode.complete_indexes,
            )
            for p, gold in zip(pipelines, golds, strict=True)
            for d in p.documents
            if d.index_name is not None
        ),
        index_inventories=tuple(
            facts.IndexInventory(
                name,
                INVENTORY_AT,
                tuple(
                    gold.chunk_entry(c)
                    for p, gold in zip(pipelines, golds, strict=True)
                    for d in p.documents
                    if d.index_name == name
                    for c in d.inventoried
                ),
            )
            for name in mode.inventoried_indexes
        ),
        source_inventories=(
            (
                facts.SourceInventory(
                    INVENTORY_AT, frozenset(d.doc_id for p in pipelines for d in p.documents if d.has_scope)
                ),
            )
            if mode.is_source_inventoried
            else ()
        ),
        stage_names=_stage_names([d for p in pipelines for d in p.documents]),
    )
    queries = tuple(
        _Recorded(pipeline, gold, number).query()
        for number, (pipeline, gold) in enumerate(zip(pipelines, golds, strict=True), start=1)
    )
    return facts.Store(ingest, queries, mode.min_coverage)


def is_clear(pipeline: Pipeline) -> bool:
    """Whether every text that was cut or rewritten can be told from what the query showed before.

    Not so when its whole text never came up before, or when what is left stands in it twice. Nor when the only place a
    candidate ever shows is that of what was left of it.
    """
    placeless: set[str] = set()
    placed: set[str] = set()
    whole: set[str] = set()
    changed: set[str] = set()
    for shown in _Recorded(pipeline, Golds(pipeline), 1).shown:
        if shown.rows_of is not None:
            continue
        for item in shown.items:
            chunk = pipeline.chunk(item.chunk_id)
            if chunk is None:
                continue
            is_changed = item.form == "altered" or item.part is not None
            if is_changed and item.form != "placed":
                text = pipeline.text(chunk)
                if item.chunk_id not in whole:
                    return False
                if item.part is not None and text.count(text[slice(*item.part)].strip()) != 1:
                    return False
                if item.form == "altered" and text in altered_text(chunk):
                    return False
            if item.form == "placed" and is_changed and item.chunk_id in placeless - placed:
                return False
            if item.form == "placed":
                placed.add(item.chunk_id)
            elif not _is_on_record(pipeline, chunk):
                placeless.add(item.chunk_id)
            if not is_changed and item.form == "text" and item.chunk_id in changed - whole:
                return False
        whole |= {item.chunk_id for item in shown.items if item.form == "text" and item.part is None}
        changed |= {item.chunk_id for item in shown.items if item.form == "altered" or item.part is not None}
    return True


def _is_on_record(pipeline: Pipeline, chunk: Chunk) -> bool:
    """Whether the chunk's place is known before the query."""
    document = pipeline.document(chunk.doc_id)
    is_written = chunk.chunk_id in document.written and document.index_name and not document.is_indexed_late
    return bool(is_written) or (document.has_chunks and chunk.chunk_id in document.chunked)


def altered_text(chunk: Chunk) -> str:
    """What a model makes of a chunk."""
    return f"In short: {chunk.chunk_id} matters."


def _stage_names(documents: Sequence[Document]) -> dict[str, str]:
    """What `recording` calls them."""
    names = {
        "parse": any(d.has_parse for d in documents) and "parse",
        "chunk": any(d.has_chunks for d in documents) and "split",
        "index": any(d.index_name is not None for d in documents) and "write",
    }
    return {kind: name for kind, name in names.items() if name}


@dataclass
class _Object:
    """A list object of the service."""

    items: tuple[Item, ...] | None
    output_list: int | None = None
    """The last output list that was this object; an aside run that hands on what it was given changes nothing."""
    is_touched: bool = False
    """Changed since."""


@dataclass
class _Shown:
    """A list as recorded, before its items are placed."""

    fact: facts.CandidateList
    items: tuple[Item, ...]
    rows_of: int | None = None
    """Equal to this list: its rows count."""


class _Recorded:
    """Plays one pipeline and writes down what the recorder sees."""

    def __init__(self, pipeline: Pipeline, golds: Golds, number: int) -> None:
        self.pipeline = pipeline
        self.golds = golds
        self.query_id = number
        self.now = 0
        self.objects: dict[str, _Object] = {}
        self.stages: list[facts.Stage] = []
        self.stage_ids: dict[str, int] = {}
        self.shown: list[_Shown] = []
        for step in pipeline.steps:
            self._play(step, parent=None, is_aside=False)

    def query(self) -> facts.Query:
        """The whole query as facts."""
        entries: dict[int, tuple[facts.Entry, ...]] = {}
        for position, shown in enumerate(self.shown):
            if shown.rows_of is not None:
                entries[shown.fact.list_id] = entries[shown.rows_of]
            else:
                entries[shown.fact.list_id] = tuple(self._entry(item, position) for item in shown.items)
        lists = tuple(replace(shown.fact, entries=entries[shown.fact.list_id]) for shown in self.shown)
        return facts.Query(
            self.query_id, self.pipeline.run, QUERY_AT, tuple(self.stages), lists, tuple(self.golds.spans)
        )

    # ------------------------------------------------------------------ playing
    def _tick(self) -> int:
        self.now += 1
        return self.now

    def _play(self, step: Step | Context, parent: int | None, is_aside: bool) -> None:
        if isinstance(step, Context):
            self._take(step.takes, None, "context", self._tick())
            return
        start = self._tick()
        stage_id = self.query_id * 1000 + start
        self.stage_ids[step.variable] = stage_id
        is_aside = is_aside or step.is_aside
        objects = [self._object(handed) for handed in step.takes]
        for handed, one in zip(step.takes, objects, strict=True):
            if self._counts_as_list(step, one):
                self._take(handed, stage_id, "in", start)
        for inner in step.inside:
            self._play(inner, stage_id, is_aside)
        end = self._tick()
        self.stages.append(
            facts.Stage(
                stage_id,
                step.kind,
                step.name,
                start,
                end,
                parent,
                is_aside,
                step.is_final,
                step.is_answer,
                "error" if step.fails else "ok",
            )
        )
        if not step.fails:
            self._put_out(step, stage_id, end, objects, is_aside)

    def _object(self, handed: Handed) -> _Object:
        if handed.variable is None:
            return _Object(handed.items)
        one = self.objects[handed.variable]
        if handed.items is not None and handed.items != one.items:
            one.items = handed.items
            one.is_touched = True
        return one

    def _outputs(self) -> list[_Shown]:
        return [x for x in self.shown if x.fact.role == "out"]

    def _counts_as_list(self, step: Step, one: _Object) -> bool:
        if step.style == "with" or (one.output_list is not None and not one.is_touched):
            return True
        if one.items is None:
            return False
        if not one.items:
            return len(step.takes) == 1 and step.kind in TAKES_UNRELATED_LISTS
        known = {item.chunk_id for shown in self._outputs() for item in shown.items}
        if any(item.chunk_id in known for item in one.items):
            return True
        return step.kind in TAKES_UNRELATED_LISTS and any(item.form != "id" for item in one.items)

    def _take(self, handed: Handed, stage_id: int | None, role: str, at: int) -> None:
        one = self._object(handed)
        list_id = 100_000 * self.query_id + len(self.shown) + 1
        items = one.items or ()
        sources = (self.stage_ids[handed.source],) if handed.source else ()
        is_object = one.output_list is not None and not one.is_touched
        rows_of = one.output_list if is_object else None
        if not is_object and one.items:
            equal = [
                x
                for x in self._outputs()
                if self._is_on_the_way(x) and x.fact.is_complete and _ids(x) == [i.chunk_id for i in items]
            ]
            rows_of = max(equal, key=lambda x: x.fact.at).fact.list_id if equal else None
        is_complete = one.items is not None
        fact = facts.CandidateList(
            list_id,
            role,
            stage_id,
            at,
            tuple(facts.Entry(i.chunk_id) for i in items),
            one.output_list if is_object else None,
            sources,
            is_complete,
        )
        self.shown.append(_Shown(fact, items, rows_of))

    def _is_on_the_way(self, shown: _Shown) -> bool:
        return any(s.stage_id == shown.fact.stage_id and not s.is_aside for s in self.stages)

    def _put_out(self, step: Step, stage_id: int, end: int, objects: list[_Object], is_aside: bool) -> None:
        list_id = 100_000 * self.query_id + len(self.shown) + 1
        if step.gives_argument is not None:
            one = objects[step.gives_argument]
        elif step.style == "in_place":
            one = objects[0]
            one.items, one.is_touched = step.gives, True
        elif step.gives is not None:
            one = _Object(step.gives)
        elif step.is_unreadable:
            one = _Object(None)
        else:
            return
        fact = facts.CandidateList(
            list_id,
            "out",
            stage_id,
            end,
            tuple(facts.Entry(i.chunk_id) for i in one.items or ()),
            is_complete=one.items is not None,
        )
        self.shown.append(_Shown(fact, one.items or ()))
        if step.style == "generator":
            one = _Object(one.items)  # the caller keeps a list of its own; the stage never saw that object
        elif not is_aside or one.output_list is None:
            one.output_list, one.is_touched = list_id, False
        self.objects[step.variable] = one

    # ------------------------------------------------------------------ placing
    def _entry(self, item: Item, position: int) -> facts.Entry:
        chunk = self.pipeline.chunk(item.chunk_id)
        if chunk is None:
            return facts.Entry(item.chunk_id, is_unplaced=True)
        own = self._own(item, position)
        if own is not None:
            return facts.Entry(item.chunk_id, sure=self.golds.spots(chunk.doc_id, own))
        if self._follows_altered(item, position):
            item = replace(item, form="altered")
        ranges, stands_for = self._through_others(item, chunk, position)
        if ranges is None or item.part is not None:
            if item.form == "document":
                return self._somewhere(item, chunk)
            return facts.Entry(item.chunk_id, is_unplaced=True)
        held = self.golds.spots(chunk.doc_id, ranges)
        if item.form == "altered":
            return facts.Entry(item.chunk_id, possible=held)
        return facts.Entry(item.chunk_id, sure=held, stands_for=self.golds.spots(chunk.doc_id, stands_for))

    def _is_changed_before(self, item: Item, position: int) -> bool:
        """Whether an earlier list shows the item rewritten or cut."""
        return any(
            x.chunk_id == item.chunk_id and (x.form == "altered" or x.part is not None)
            for one in self.shown[:position]
            for x in one.items
        )

    def _follows_altered(self, item: Item, position: int) -> bool:
        """Whether the latest that was shown of an item, which now shows neither text nor place, is rewritten."""
        if item.form not in ("id", "pair", "document"):
            return False
        for at in reversed(range(position)):
            forms = {
                x.form
                for x in self.shown[at].items
                if x.chunk_id == item.chunk_id and self.shown[at].rows_of is None and self._says(x, at)
            }
            if forms:
                return "altered" in forms
        return False

    def _says(self, item: Item, position: int) -> bool:
        """Whether it shows what is left of it: a place of its own, or another text."""
        return item.form == "altered" or self._own(item, position) is not None

    def _somewhere(self, item: Item, chunk: Chunk) -> facts.Entry:
        """Only the document is known: gold that only asks for the document is surely there, all else may be."""
        possible = self.golds.possibly(chunk.doc_id)
        sure = frozenset(s for s in possible if self.golds.by_id[s[0]].level == "document")
        return facts.Entry(item.chunk_id, sure=sure, possible=possible)

    def _own(self, item: Item, position: int) -> tuple[Range, ...] | None:
        """The place an item brings along, as does a text that was cut, or is whole again after it was."""
        chunk = self.pipeline.chunk(item.chunk_id)
        if chunk is None:
            return None
        if item.form == "text" and (item.part is not None or self._is_changed_before(item, position)):
            whole, _ = self._through_others(replace(item, part=None), chunk, position)
            return None if whole is None else part_ranges(whole, item.part)
        return part_ranges(chunk.ranges, item.part) if item.form == "placed" else None

    def _through_others(
        self, item: Item, chunk: Chunk, position: int
    ) -> tuple[tuple[Range, ...] | None, tuple[Range, ...]]:
        """The nearest earlier place of the same id in the query, else its chunk on record, else a later place."""
        shown = [(x, at) for at, one in enumerate(self.shown) if one.rows_of is None for x in one.items]
        same = [(x, at) for x, at in shown if x.chunk_id == item.chunk_id]
        if item.form in ("text", "altered"):  # the whole text is there to compare with
            same = [(x, at) for x, at in same if x.part is None]
        earlier = [own for x, at in reversed(same) if at < position and (own := self._own(x, at)) is not None]
        if earlier:
            return earlier[0], ()
        if _is_on_record(self.pipeline, chunk):
            return chunk.ranges, chunk.stands_for
        later = [part_ranges(chunk.ranges, x.part) for x, at in same if at >= position and x.form == "placed"]
        return (later[0] if later else None), ()


def _ids(shown: _Shown) -> list[str]:
    return [item.chunk_id for item in shown.items]
