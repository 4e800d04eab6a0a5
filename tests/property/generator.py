"""Invents pipelines: from a seed to a description, the same one for ever. Small worlds, all ways to lose evidence."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.property.description import (
    Chunk,
    Context,
    Document,
    Gold,
    Handed,
    Item,
    Pipeline,
    Range,
    Step,
    StoreMode,
)
from tests.property.recorded_facts import is_clear

LETTERS = "abcdefghijklmnopqrstuvwxyz"
ODD_WORDS = ("naïve", "Straße", "第三章", "данные", "x²", "=>", "😀", "7", "§")
BLANKS = (" ", " ", " ", " ", ", ", ". ", "\n", " -- ", "; ")
INDEXES = ("main", "graph")


def store_mode(rng: random.Random) -> StoreMode:
    """What a whole store declares."""
    kind = rng.choice(("none", "none", "complete", "complete", "one", "inventory"))
    return StoreMode(
        min_coverage=rng.choice((1.0, 1.0, 0.75, 0.5)),
        complete_indexes={"complete": INDEXES, "one": INDEXES[:1]}.get(kind, ()),
        inventoried_indexes=INDEXES if kind == "inventory" else (),
        is_source_inventoried=rng.random() < 0.3,
    )


def pipeline(rng: random.Random, question_id: str, run: str, mode: StoreMode) -> Pipeline:
    """One random pipeline, such that what it shows can be read in one way only."""
    while True:
        invented = _Inventor(rng, question_id, run, mode).pipeline()
        if is_clear(invented):
            return invented


class _Inventor:
    """Builds one world and lets a service run in it."""

    def __init__(self, rng: random.Random, question_id: str, run: str, mode: StoreMode) -> None:
        self.rng = rng
        self.name = question_id
        self.run = run
        self.mode = mode
        self.documents: list[Document] = []
        self.chunks: dict[str, Chunk] = {}
        self.n_variables = 0
        self.outputs: dict[str, tuple[Item, ...]] = {}
        """What each variable holds, oldest first."""
        self.texts_shown: dict[str, bool] = {}
        """Chunk ids whose text was shown in the query, True while it was whole."""
        self.cut: set[str] = set()
        """Chunk ids that were shown in part: lists made afterwards show their place too."""
        self.with_blocks: set[str] = set()
        """Variables of stages that can be named by source=."""

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def pipeline(self) -> Pipeline:
        for number in range(self.rng.choice((1, 1, 2))):
            self.documents.append(self._document(f"{self.name}-d{number}"))
        self.pool = [c for d in self.documents for c in (d.written if d.index_name else d.chunked)]
        self.pool += [c for c in self.chunks if self.chance(0.05)]
        steps = self._steps()
        return Pipeline(
            self.name,
            self.run,
            tuple(self.documents),
            tuple(self.chunks.values()),
            self._sets(),
            tuple(steps),
            self.mode,
        )

    # ------------------------------------------------------------------ documents
    def _word(self) -> str:
        if self.chance(0.06):
            return self.rng.choice(ODD_WORDS)
        return "".join(self.rng.choice(LETTERS) for _ in range(self.rng.randint(2, 8)))

    def _document(self, doc_id: str) -> Document:
        text = "".join(self._word() + self.rng.choice(BLANKS) for _ in range(self.rng.randint(8, 22))).strip()
        base = self._split(doc_id, text)
        recorded = self.rng.choice(
            ("all", "all", "all", "no_index", "no_chunks", "index", "parse", "scope", "none", "none")
        )
        chunked = tuple(c for c in base if not self.chance(0.12))
        by_text = self.chance(0.3) and all(self._is_findable(text, self.chunks[c]) for c in chunked)
        has_index = recorded in ("all", "no_chunks", "index")
        written = tuple(c for c in (chunked if recorded == "all" else base) if not self.chance(0.12))
        return Document(
            doc_id,
            text,
            has_scope=recorded not in ("none", "index") or self.chance(0.5),
            has_parse=recorded in ("all", "no_index", "no_chunks", "parse")
            and not (recorded == "all" and self.chance(0.1)),
            has_chunks=recorded in ("all", "no_index"),
            chunked=chunked,
            chunks_by_text=by_text and recorded in ("all", "no_index"),
            index_name=self.rng.choice((*INDEXES, INDEXES[0])) if has_index else None,
            written=written if has_index else (),
            is_indexed_late=has_index and self.chance(0.04),
            inventoried=tuple(c for c in written if not self.chance(0.1)) if has_index else (),
        )

    @staticmethod
    def _is_findable(text: str, chunk: Chunk) -> bool:
        (start, end), *more = chunk.ranges
        return not more and text.count(text[start:end]) == 1

    def _split(self, doc_id: str, text: str) -> list[str]:
        size, overlap = self.rng.randint(12, 45), self.rng.choice((0, 0, 0, 4, 10))
        starts = range(0, len(text), max(1, size - overlap))
        pieces: list[tuple[Range, ...]] = [((s, min(s + size, len(text))),) for s in starts]
        if self.chance(0.2) and len(pieces) > 2:
            pieces[0] = (*pieces[0], *pieces.pop())
        if self.chance(0.2):
            pieces.append(self.rng.choice(pieces))  # the same passage under a second id
        parents = [pieces[at : at + 3] for at in range(0, len(pieces), 3)]
        has_parents = self.chance(0.3)
        ids = []
        for number, ranges in enumerate(pieces):
            whole = self._hull(parents[number // 3])
            ids.append(self._chunk(f"{doc_id}-c{number}", doc_id, ranges, (whole,) if has_parents else ()))
        for number, members in enumerate(parents):
            self._chunk(f"{doc_id}-p{number}", doc_id, (self._hull(members),), ())
        return ids

    @staticmethod
    def _hull(members: list[tuple[Range, ...]]) -> Range:
        return min(s for m in members for s, _ in m), max(e for m in members for _, e in m)

    def _chunk(self, chunk_id: str, doc_id: str, ranges: tuple[Range, ...], stands_for: tuple[Range, ...]) -> str:
        self.chunks[chunk_id] = Chunk(chunk_id, doc_id, ranges, stands_for)
        return chunk_id

    # ------------------------------------------------------------------ gold
    def _sets(self) -> tuple[tuple[Gold, ...], ...]:
        sets: list[tuple[Gold, ...]] = []
        for _ in range(self.rng.choice((1, 1, 1, 2))):
            golds: dict[tuple[str, int, int, str], Gold] = {}
            n_needs = self.rng.choice((1, 1, 2, 3))
            for _ in range(n_needs + self.rng.choice((0, 0, 1, 2))):
                gold = self._gold(f"n{self.rng.randrange(n_needs)}")
                golds.setdefault((gold.doc_id, gold.start, gold.end, gold.level), gold)
            if all(set(golds) != {(g.doc_id, g.start, g.end, g.level) for g in other} for other in sets):
                sets.append(tuple(golds.values()))  # a set said twice counts once
        return tuple(sets)

    def _gold(self, need: str) -> Gold:
        document = self.rng.choice(self.documents)
        level = self.rng.choice(("span",) * 12 + ("page", "document"))
        if level == "document":
            return Gold(document.doc_id, 0, len(document.text), need, level, has_quote=False, has_offsets=False)
        if self.chance(0.04) and document.has_recorded_text:
            lost = " ".join(self._word() for _ in range(6))
            return Gold(document.doc_id, -1, -1, need, has_offsets=False, lost_quote=lost)
        start = self.rng.randrange(len(document.text) - 1)
        length = self.rng.choice((1, 2, 5, 12, 20, 40))
        end = min(len(document.text), start + self.rng.randint(1, length))
        is_blank = not document.text[start:end].strip()
        has_quote = level == "span" and not is_blank and not self.chance(0.15)
        is_unique = document.text.count(document.text[start:end]) == 1
        has_offsets = not (has_quote and document.has_recorded_text and is_unique and self.chance(0.15))
        return Gold(document.doc_id, start, end, need, level, has_quote, has_offsets)

    # ------------------------------------------------------------------ items
    def _known(self, chunk_id: str) -> bool:
        """Whether the record knows the chunk's place without being shown it."""
        chunk = self.chunks.get(chunk_id)
        if chunk is None:
            return False
        document = next(d for d in self.documents if d.doc_id == chunk.doc_id)
        written = document.index_name and not document.is_indexed_late and chunk_id in document.written
        return bool(written) or (document.has_chunks and chunk_id in document.chunked)

    def _show(self, chunk_ids: list[str]) -> tuple[Item, ...]:
        """A list of these chunks, mostly in one form."""
        usual = self.rng.choice(("id", "pair", "placed", "placed", "text"))
        return tuple(self._item(chunk_id, usual) for chunk_id in chunk_ids)

    def _item(self, chunk_id: str, form: str) -> Item:
        chunk = self.chunks.get(chunk_id)
        if chunk is None:
            return Item(chunk_id, "pair")
        if chunk_id in self.cut and self.chance(0.7):
            for item in (i for items in reversed(self.outputs.values()) for i in items if i.chunk_id == chunk_id):
                return item
        if chunk.stands_for and form == "placed" and self._known(chunk_id):
            form = "pair"  # a candidate with a range of its own is no key to a parent
        if not self._known(chunk_id) and form != "placed" and not self.chance(0.04):
            form = "placed"
        if form == "pair" and not self._known(chunk_id) and self.chance(0.5):
            form = "document"
        return Item(chunk_id, form)

    def _variable(self) -> str:
        self.n_variables += 1
        return f"v{self.n_variables}"

    # ------------------------------------------------------------------ the service
    def _steps(self) -> list[Step | Context]:
        steps: list[Step | Context] = []
        if self.chance(0.15):
            steps.append(Step("rewrite", "rewrite", self._variable()))
        for _ in range(self.rng.choice((1, 1, 1, 1, 2))):  # rounds
            for number in range(self.rng.choice((0, 1, 1, 2, 2, 3))):
                steps.append(self._retrieve(f"retrieve{number}"))
            for _ in range(self.rng.choice((0, 1, 2, 2, 3, 4))):
                steps.append(self._middle())
        return [*steps, *self._end()]

    def _retrieve(self, name: str, depth: int = 0) -> Step:
        inside: list[Step] = []
        if depth == 0 and self.chance(0.12):
            inside = [self._retrieve(f"{name}_inner{n}", depth + 1) for n in range(self.rng.choice((1, 2)))]
            if self.chance(0.4):
                inside.append(self._middle("fuse", depth + 1))
        chosen = self._sample(0, 6)
        if inside and self.chance(0.7):
            chosen = [i.chunk_id for i in self.outputs.get(inside[-1].variable, ())][: self.rng.randint(1, 6)]
        if chosen and self.chance(0.04):
            chosen.append(self.rng.choice(chosen))
        if self.chance(0.03):
            chosen.append(f"{self.name}-x{self.n_variables}")
        fails, is_unreadable = self.chance(0.02), self.chance(0.01)
        step = self._put_out(
            Step(
                "retrieve",
                name,
                self._variable(),
                inside=tuple(inside),
                style=self.rng.choice(("with", "function")) if fails or is_unreadable else self._style(),
                fails=fails,
                is_aside=depth == 0 and self.chance(0.03),
                is_unreadable=is_unreadable,
            ),
            chosen,
        )
        return self._note(step)

    def _style(self) -> str:
        return self.rng.choice(("with", "function", "function", "method", "coroutine", "generator"))

    def _sample(self, least: int, most: int) -> list[str]:
        return self.rng.sample(self.pool, min(len(self.pool), self.rng.randint(least, most)))

    def _put_out(self, step: Step, chosen: list[str], items: tuple[Item, ...] | None = None) -> Step:
        if step.fails:
            return step
        if step.is_unreadable:
            return step
        items = self._show(chosen) if items is None else items
        self.outputs[step.variable] = items
        return replace(step, gives=items)

    def _taken(self) -> Handed:
        """A list to hand on: an earlier object, what someone made of one on the way, or a list from elsewhere."""
        handed = self._some_list()
        if handed.items is not None and handed.variable is not None:
            self.outputs[handed.variable] = handed.items
        return handed

    def _some_list(self) -> Handed:
        how = self.rng.random()
        if not self.outputs or how < 0.05:
            return Handed(items=self._show(self._elsewhere()))
        names = list(self.outputs)
        variable = names[-1] if self.chance(0.6) else self.rng.choice(names)
        items = self.outputs[variable]
        source = variable if variable in self.with_blocks and self.chance(0.2) else None
        if how < 0.65:
            return Handed(variable, source=source)
        if how < 0.72:
            return Handed(items=items, source=source)
        if how < 0.84:
            return Handed(items=items[: self.rng.randint(0, max(0, len(items) - 1))], source=source)
        if how < 0.90:
            return Handed(items=tuple(i for i in items if not self.chance(0.3)), source=source)
        if how < 0.95:
            both = items + self.outputs[self.rng.choice(names)]
            return Handed(items=tuple({i.chunk_id: i for i in both}.values()))
        return Handed(variable, items=items[: self.rng.randint(0, len(items))])

    def _elsewhere(self) -> list[str]:
        shown = {i.chunk_id for items in self.outputs.values() for i in items}
        fresh = [c for c in self.pool if c not in shown or self.chance(0.2)]
        return self.rng.sample(fresh, min(len(fresh), self.rng.randint(0, 4)))

    def _items_of(self, handed: Handed) -> tuple[Item, ...]:
        if handed.items is not None:
            return handed.items
        return self.outputs[handed.variable] if handed.variable else ()

    def _middle(self, kind: str | None = None, depth: int = 0) -> Step:
        kind = kind or self.rng.choice(("filter", "fuse", "rerank", "rerank", "expand", "compress", "truncate"))
        n_taken = self.rng.choice((2, 2, 3)) if kind == "fuse" else self.rng.choice((1, 1, 1, 1, 1, 1, 0, 2))
        takes = tuple(self._taken() for _ in range(n_taken))
        taken = list({i.chunk_id: i for handed in takes for i in self._items_of(handed)}.values())
        inside: tuple[Step, ...] = ()
        if depth == 0 and self.chance(0.06):
            inside = (self._middle(depth=1),)
            if self.chance(0.5):
                taken = list(self.outputs.get(inside[-1].variable, ()))
        step = Step(
            kind,
            f"{kind}{self.rng.randrange(3)}",
            self._variable(),
            takes,
            inside=inside,
            style=self.rng.choice(("with", "function", "function", "method", "coroutine", "nested")),
            fails=self.chance(0.03),
            is_aside=depth == 0 and self.chance(0.05),
            is_unreadable=self.chance(0.01),
        )
        if step.fails or step.is_unreadable:
            return self._note(step)
        if takes and self.chance(0.04):
            self.outputs[step.variable] = self._items_of(takes[0])
            return self._note(replace(step, gives_argument=0))
        step = self._put_out(step, [], self._worked_on(kind, taken))
        return self._note(self._in_place(step) if self.chance(0.08) else step)

    def _note(self, step: Step) -> Step:
        """Only a with block has an object for source=, and only a with block can name one."""
        if step.style == "with":
            self.with_blocks.add(step.variable)
            return step
        return replace(step, takes=tuple(replace(handed, source=None) for handed in step.takes))

    def _in_place(self, step: Step) -> Step:
        """The stage changes the list it is given and returns nothing."""
        if len(step.takes) != 1 or step.takes[0].variable is None or step.gives is None or step.inside:
            return step
        variable = step.takes[0].variable
        before = [i.chunk_id for i in self._items_of(step.takes[0])]
        if before == [i.chunk_id for i in step.gives]:
            return step
        self.outputs[variable] = step.gives
        return replace(step, style="in_place")

    def _worked_on(self, kind: str, taken: list[Item]) -> tuple[Item, ...]:
        keep = self.rng.choice((1.0, 0.8, 0.6, 0.4))
        items = [i for i in taken if self.chance(keep)]
        if self.chance(0.2):
            form = self.rng.choice(("id", "pair", "placed", "text"))
            items = [self._shown_as(form, i) for i in items]
        if kind in ("rerank", "fuse"):
            self.rng.shuffle(items)
        if kind == "expand":
            items = self._expanded(items)
        if self.chance(0.06):
            items += self._show([c for c in self._elsewhere() if c not in {i.chunk_id for i in items}])
        if kind in ("truncate", "compress") and items:
            items = self._shortened(kind, items)
        return tuple(items)

    def _shown_as(self, form: str, item: Item) -> Item:
        """The same candidate in another form; of what was cut, an id alone tells nothing."""
        if item.chunk_id not in self.chunks or item.form == "altered":
            return item
        return (
            replace(item, form=form) if item.part is None or form in ("placed", "text") else Item(item.chunk_id, form)
        )

    def _expanded(self, items: list[Item]) -> list[Item]:
        result: list[Item] = []
        for item in items:
            chunk = self.chunks.get(item.chunk_id)
            parents = [c for c in self.chunks.values() if "-p" in c.chunk_id and chunk and c.doc_id == chunk.doc_id]
            covering = [p for p in parents if chunk and p.ranges[0][0] <= chunk.ranges[0][0] < p.ranges[0][1]]
            if covering and self.chance(0.6):
                result.append(self._item(covering[0].chunk_id, "placed"))
                if self.chance(0.5):
                    continue
            result.append(item)
        return list({i.chunk_id: i for i in result}.values())

    def _shortened(self, kind: str, items: list[Item]) -> list[Item]:
        at = len(items) - 1 if kind == "truncate" else self.rng.randrange(len(items))
        item = items[at]
        chunk = self.chunks.get(item.chunk_id)
        if chunk is None or item.part is not None or item.form not in ("placed", "text") or len(chunk.ranges) > 1:
            return items
        length = chunk.ranges[0][1] - chunk.ranges[0][0]
        if item.form == "text" and kind == "compress" and self.chance(0.4):
            items[at] = replace(item, form="altered")
        elif length > 3:
            start = 0 if kind == "truncate" else self.rng.randrange(length - 2)
            items[at] = replace(item, part=(start, self.rng.randint(start + 1, length - 1)))
        self.cut.add(item.chunk_id)
        return items

    # ------------------------------------------------------------------ the end
    def _end(self) -> list[Step | Context]:
        if not self.outputs:
            return []
        how = self.rng.choice(
            ("context", "context", "final", "answer", "generate", "generate", "generate", "loose", "two")
        )
        if how == "context":
            declared = [self._taken() for _ in range(2 if self.chance(0.1) else 1)]
            return [Context(replace(handed, source=None)) for handed in declared]
        if how == "final":
            return [replace(self._middle("truncate"), is_final=True, is_aside=False)]
        generate = self._note(Step("generate", "generate", self._variable(), (self._taken(),), style=self._end_style()))
        if how == "generate":
            return [generate]
        if how == "answer":
            other = self._note(Step("generate", "judge", self._variable(), (self._taken(),), style=self._end_style()))
            both: list[Step | Context] = [replace(generate, is_answer=True), other]
            self.rng.shuffle(both)
            return both
        if how == "two":
            second = Step("generate", "second", self._variable(), (self._taken(),), style=self._end_style())
            return [generate, self._note(second)]
        return []

    def _end_style(self) -> str:
        return self.rng.choice(("with", "function", "coroutine"))
