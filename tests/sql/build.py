"""Stores made from a compact description: rows go straight into the tables, so that the views are tested by themselves.

One document is a text; an item is `(doc, start, end)` under a name; a query is a list of stage runs, each with the runs
whose outputs it takes and the names of the items it puts out. Places, steps and ways are worked out here as
docs/internals.md section 2 says.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb

from ragtrace import schema
from ragtrace.store import kept, tables, views

__all__ = ["Query", "Run", "Store"]

SECOND = 1_000_000_000
START = 1_000 * SECOND
"""When queries start unless told otherwise."""

_COLUMNS = {table.name: tuple(column.name for column in table.columns) for table in schema.TABLES}


@dataclass
class Run:
    """One stage run of a query under construction."""

    stage_id: int
    kind: str
    name: str
    takes: list[Run]
    parent: Run | None
    is_off: bool
    in_lists: list[int] = field(default_factory=list)
    in_rows: list[int] = field(default_factory=list)
    out_list: int | None = None
    is_unknown: bool = False
    step_in: int = 0
    step_out: int = 0


class Store:
    """An in-memory store with all tables and views; the kept ones are computed anew when a row was added since."""

    def __init__(self, min_coverage: float = 1.0, clock_skew_ms: float = 1000.0) -> None:
        self.connection = duckdb.connect(config={"python_enable_replacements": "false"})
        for statement in tables.create_statements():
            self.connection.execute(statement)
        views.create(self.connection, [view._replace(kept=None) for view in views.load()])
        self.insert("settings", name="min_coverage", value=min_coverage)
        self.insert("settings", name="clock_skew_ms", value=clock_skew_ms)
        self._last_id = 100
        self._is_judged = False
        self.items: dict[str, int] = {}
        self.texts: dict[tuple[str, str], str] = {}
        self.evidences: list[dict[str, Any]] = []
        for process_id, host in ((1, "one"), (2, "two")):
            self.insert("processes", process_id=process_id, host=host)

    # ------------------------------------------------------------------ rows
    def next_id(self) -> int:
        """A fresh id."""
        self._last_id += 1
        return self._last_id

    def insert(self, table: str, **values: Any) -> None:
        """One row; absent columns are null. Raises KeyError for an unknown column."""
        unknown = values.keys() - set(_COLUMNS[table])
        if unknown:
            raise KeyError(f"{table} has no columns {unknown}")
        names = ", ".join(f'"{name}"' for name in values)
        marks = ", ".join("?" for _ in values)
        stored = tables.stored_in(table)[-1]
        self._is_judged = False
        self.connection.execute(f"insert into {stored} ({names}) values ({marks})", list(values.values()))

    def rows(self, view: str, *columns: str, where: str = "true") -> list[Any]:
        """Rows of a view in order of the columns; bare values when one column is asked for."""
        if not self._is_judged:
            kept.stand_in(self.connection)
            self._is_judged = True
        names = ", ".join(columns)
        found = self.connection.execute(f"select {names} from {view} where {where} order by all").fetchall()
        return [row[0] for row in found] if len(columns) == 1 else found

    # ------------------------------------------------------------------ before the query
    def parsed(self, doc: str, text: str, at: int = START - 900 * SECOND, process_id: int = 1, **document: Any) -> str:
        """A recorded parse of a document; gives back the text's hash."""
        ingest_id, stage_id = self.next_id(), self.next_id()
        text_hash = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        self.insert(
            "documents",
            ingest_id=ingest_id,
            doc_id=doc,
            recorded_at_ns=at,
            status="ok",
            process_id=process_id,
            **document,
        )
        self.insert(
            "stages",
            stage_id=stage_id,
            ingest_id=ingest_id,
            kind="parse",
            name="parse",
            status="ok",
            started_at_ns=at,
            duration_ns=0,
            process_id=process_id,
        )
        self.insert(
            "parses",
            stage_id=stage_id,
            doc_id=doc,
            text_hash=text_hash,
            n_characters=len(text),
            parsed_at_ns=at,
            process_id=process_id,
        )
        self.texts[doc, text_hash] = text
        for evidence in self.evidences:
            self._place(evidence, doc, text_hash)
        return text_hash

    def item(
        self,
        name: str,
        doc: str | None = None,
        start: int | None = None,
        end: int | None = None,
        *,
        text_hash: str | None = None,
        role: str = "own",
        chunk_id: str | None = None,
        index_name: str | None = None,
        version: int = 0,
        item_text: str | None = None,
        ranges: Iterable[tuple[int, int]] = (),
        stands_for: Iterable[tuple[int, int]] = (),
        is_altered: bool = False,
    ) -> str:
        """An item of that name; without start and ranges it has no place. Ranges refer to the document's last text."""
        item = self.next_id()
        self.items[name] = item
        hashes = [known for owner, known in self.texts if owner == doc]
        text_hash = text_hash or (hashes[-1] if hashes else None)
        self.insert(
            "items",
            item=item,
            chunk_id=chunk_id or name,
            id_source="native",
            index_name=index_name,
            version=version,
            doc_id=doc,
            text_hash=text_hash,
            item_text_hash=item_text,
            is_altered=is_altered,
        )
        spans = [*([(start, end)] if start is not None else []), *ranges]
        for first, last in spans:
            self.insert(
                "item_ranges", item=item, doc_id=doc, text_hash=text_hash, start_at=first, end_at=last, role=role
            )
        for first, last in stands_for:
            self.insert(
                "item_ranges",
                item=item,
                doc_id=doc,
                text_hash=text_hash,
                start_at=first,
                end_at=last,
                role="stands_for",
            )
        if doc is not None and not spans and not stands_for:
            self.insert("item_ranges", item=item, doc_id=doc, role="possible")
        return name

    def ingest(
        self,
        kind: str,
        doc: str | None,
        names: Sequence[str] | None,
        at: int = START - 800 * SECOND,
        process_id: int = 1,
        status: str = "ok",
        is_complete: bool = True,
        **stage: Any,
    ) -> int:
        """A chunk or index run over items; gives back its stage id."""
        ingest_id, stage_id = self.next_id(), self.next_id()
        self.insert(
            "documents", ingest_id=ingest_id, doc_id=doc, recorded_at_ns=at, status=status, process_id=process_id
        )
        self.insert(
            "stages",
            stage_id=stage_id,
            ingest_id=ingest_id,
            kind=kind,
            name=kind,
            status=status,
            started_at_ns=at,
            duration_ns=0,
            process_id=process_id,
            **stage,
        )
        if names is not None:
            self.list(None, stage_id, "out" if kind == "chunk" else "in", names, is_complete=is_complete)
        return stage_id

    def inventory(
        self,
        chunk_ids: Sequence[str] = (),
        doc_ids: Sequence[str] = (),
        at: int = START - 700 * SECOND,
        index_name: str | None = None,
    ) -> None:
        """A declared complete layer."""
        inventory_id = self.next_id()
        for chunk_id in chunk_ids:
            self.insert(
                "inventories",
                inventory_id=inventory_id,
                index_name=index_name,
                chunk_id=chunk_id,
                declared_at_ns=at,
                process_id=1,
            )
        for doc_id in doc_ids:
            self.insert("inventories", inventory_id=inventory_id, doc_id=doc_id, declared_at_ns=at, process_id=1)
        if not chunk_ids and not doc_ids:
            self.insert(
                "inventories", inventory_id=inventory_id, index_name=index_name, declared_at_ns=at, process_id=1
            )

    def list(
        self,
        query_id: int | None,
        stage_id: int | None,
        role: str,
        names: Sequence[str | Mapping[str, Any]],
        **values: Any,
    ) -> int:
        """A list with its candidate rows; an item is a name, or a mapping with `item` and columns of candidates."""
        list_id = self.next_id()
        self.insert(
            "lists",
            **{
                "list_id": list_id,
                "query_id": query_id,
                "stage_id": stage_id,
                "role": role,
                "n_candidates": len(names),
                "is_complete": True,
                **values,
            },
        )
        for rank, name in enumerate(names, 1):
            row = {"item": name} if isinstance(name, str) else dict(name)
            row["item"] = self.items[row["item"]]
            self.insert("candidates", **{"list_id": list_id, "rank": rank, **row})
        return list_id

    # ------------------------------------------------------------------ gold
    def question(self, question_id: str = "Q", **values: Any) -> None:
        """A labelled question."""
        self.insert(
            "questions",
            **{
                "question_id": question_id,
                "question": question_id,
                "question_hash": f"hash of {question_id}",
                "is_unanswerable": False,
                "is_evidence_unknown": False,
                **values,
            },
        )

    def evidence(
        self,
        doc: str | None = "doc",
        start: int | None = None,
        end: int | None = None,
        *,
        question_id: str = "Q",
        need: str | None = None,
        set_no: int = 1,
        level: str = "span",
        quote: str | None = None,
        is_need: bool = True,
        made_on: str | None = None,
        made_on_ns: int | None = None,
        label_status: str = "placed",
        chunk_id: str | None = None,
    ) -> str:
        """A gold span by offsets in the text it was made on (default: the document's last), or by quote."""
        if not self.connection.execute("select 1 from questions where question_id = ?", [question_id]).fetchone():
            self.question(question_id)
        number = 1 + len(self.evidences)
        evidence_id = f"{question_id}#{set_no}.{number}"
        hashes = [known for owner, known in self.texts if owner == doc]
        made_on = made_on or (hashes[-1] if hashes and level not in ("document", "chunk") else None)
        if quote is None and made_on is not None and start is not None:
            quote = self.texts[str(doc), made_on][start:end]
        if made_on_ns is None and made_on is not None:
            found = self.connection.execute(
                "select min(parsed_at_ns) from parses where text_hash = ? and doc_id = ?", [made_on, doc]
            ).fetchone()
            made_on_ns = found[0] if found else None
        n_characters = (len(quote) if quote is not None else (end or 1) - (start or 0)) if level == "span" else 1
        self.insert(
            "evidence",
            evidence_id=evidence_id,
            question_id=question_id,
            set_no=set_no,
            need=need or str(number),
            is_need=is_need,
            is_distractor=not is_need,
            level=level,
            grade=1.0,
            doc_id=doc,
            chunk_id=chunk_id,
            start_at=start,
            end_at=end,
            quote=quote,
            span_text=quote,
            n_characters=n_characters,
            made_on_text_hash=made_on,
            made_on_ns=made_on_ns,
            label_status=label_status,
        )
        evidence = {"evidence_id": evidence_id, "doc": doc, "quote": quote, "start": start, "end": end, "level": level}
        self.evidences.append(evidence)
        for owner, text_hash in self.texts:
            self._place(evidence, owner, text_hash)
        if not hashes and start is not None:
            self.insert(
                "evidence_places",
                evidence_id=evidence_id,
                doc_id=doc,
                is_found=True,
                start_at=start,
                end_at=end,
                quality="unchecked",
            )
        return evidence_id

    def _place(self, evidence: Mapping[str, Any], doc: str, text_hash: str) -> None:
        if evidence["doc"] != doc or evidence["quote"] is None or evidence["level"] in ("document", "chunk"):
            return
        at = self.texts[doc, text_hash].find(evidence["quote"])
        place = (
            {"is_found": False, "quality": "text_missing"}
            if at < 0
            else {
                "is_found": True,
                "quality": "exact",
                "start_at": at,
                "end_at": at + len(evidence["quote"]),
            }
        )
        self.insert("evidence_places", evidence_id=evidence["evidence_id"], doc_id=doc, text_hash=text_hash, **place)

    # ------------------------------------------------------------------ queries
    def query(self, question_id: str | None = "Q", **values: Any) -> Query:
        """A query under construction; call `.done(...)` at the end."""
        return Query(self, question_id, values)


class Query:
    """One query: stage runs in the order they are added."""

    def __init__(self, store: Store, question_id: str | None, values: Mapping[str, Any]) -> None:
        self.store = store
        self.query_id = store.next_id()
        self.runs: list[Run] = []
        store.insert(
            "queries",
            **{
                "query_id": self.query_id,
                "run": "base",
                "run_kind": "actual",
                "question_id": question_id,
                "status": "ok",
                "started_at_ns": START,
                "process_id": 1,
                **values,
            },
        )

    def stage(
        self,
        kind: str,
        name: str | None = None,
        takes: Sequence[Run] = (),
        out: Sequence[Any] | None = None,
        *,
        given: Sequence[Any] | None = None,
        is_unknown: bool = False,
        parent: Run | None = None,
        considered: Sequence[Any] | None = None,
        dropped: Sequence[Any] | None = None,
        is_incomplete: bool = False,
        is_incomplete_input: bool = False,
        **columns: Any,
    ) -> Run:
        """A stage run. `given`: the list that went in when it is not what came out; `is_unknown`: of unknown origin."""
        store = self.store
        run = Run(
            store.next_id(),
            kind,
            name or kind,
            list(takes),
            parent,
            bool(columns.get("is_aside") or columns.get("probe")),
        )
        store.insert(
            "stages",
            **{
                "stage_id": run.stage_id,
                "query_id": self.query_id,
                "kind": kind,
                "name": run.name,
                "status": "ok",
                "parent_stage_id": parent.stage_id if parent else None,
                **columns,
            },
        )
        if is_unknown:
            run.is_unknown = True
            run.takes = [other for other in self.runs if other.out_list is not None and not other.is_off]
        if given is not None:
            list_id = store.list(
                self.query_id,
                run.stage_id,
                "in",
                given,
                origin="unknown" if is_unknown else "changed",
                is_complete=not is_incomplete_input,
            )
            run.in_lists, run.in_rows = [list_id], [list_id]
        else:
            for other in run.takes:
                assert other.out_list is not None
                list_id = store.next_id()
                store.insert(
                    "lists",
                    list_id=list_id,
                    query_id=self.query_id,
                    stage_id=run.stage_id,
                    role="in",
                    same_as_list_id=other.out_list,
                    is_complete=True,
                    origin="same",
                )
                run.in_lists.append(list_id)
                run.in_rows.append(other.out_list)
        if not is_unknown:
            for index, other in enumerate(run.takes):
                to_list = run.in_lists[index] if given is None else run.in_lists[0]
                store.insert(
                    "edges",
                    query_id=self.query_id,
                    from_list_id=other.out_list,
                    to_list_id=to_list,
                    how="changed" if given is not None else "same",
                )
        if out is not None:
            run.out_list = store.list(self.query_id, run.stage_id, "out", out, is_complete=not is_incomplete)
        for role, names in (("considered", considered), ("dropped", dropped)):
            if names is not None:
                store.list(self.query_id, run.stage_id, role, names)
        self.runs.append(run)
        return run

    def done(
        self,
        final: Run | None = None,
        *,
        how: str | None = None,
        context: Sequence[Any] | None = None,
        takes: Sequence[Run] = (),
        carried: Sequence[Any] | None = None,
        is_whole: bool = True,
    ) -> int:
        """Close the query. `final`: the run whose input (generate) or output is the final context; `context`: declared."""
        store, context_lists, sources = self.store, [], list(takes)
        context_rows: list[int] = []
        if context is not None:
            context_lists = [store.list(self.query_id, None, "context", context, origin="changed")]
            context_rows = list(context_lists)
            for other in takes:
                store.insert(
                    "edges",
                    query_id=self.query_id,
                    from_list_id=other.out_list,
                    to_list_id=context_lists[0],
                    how="changed",
                )
        if carried is not None:
            context_rows.append(store.list(self.query_id, None, "context", carried, argument="carried"))
        if final is not None:
            context_rows += final.in_rows if final.kind == "generate" else [final.out_list or 0]
        if how is None:
            how = (
                "declared"
                if context_rows and final is None
                else "only_generate"
                if final is not None and final.kind == "generate"
                else "final_stage"
                if final
                else "unknown"
            )
        places = self._places(final, sources, bool(context_rows))
        store.insert("query_flows", query_id=self.query_id, final_how=how, is_whole=is_whole, n_places=len(places))
        for number, (key, order, step, on_path, later, counts) in enumerate(places, 1):
            run, side = key
            store.insert(
                "places",
                query_id=self.query_id,
                place_no=number,
                stage_id=run.stage_id if run else None,
                side=side,
                step=step,
                is_on_path=on_path,
                place_order=order,
                counts_stands_for=counts,
                later_nos=later,
            )
            rows = context_rows if run is None else run.in_rows if side == "in" else [run.out_list]
            for list_id in rows:
                store.insert("place_lists", query_id=self.query_id, place_no=number, list_id=list_id)
        return self.query_id

    def _places(self, final: Run | None, sources: Sequence[Run], has_final: bool) -> list[Any]:
        for run in self.runs:
            run.step_in = 1 + max(
                [other.step_out for other in run.takes] + [run.parent.step_in if run.parent else 0], default=0
            )
            run.step_out = 1 + run.step_in
            above = run.parent
            below = run
            while above is not None:
                above.step_out = max(above.step_out, below.step_out + 1)
                above, below = above.parent, above
        arcs: dict[Any, set[Any]] = {}

        def arc(start: Any, end: Any) -> None:
            arcs.setdefault(start, set()).add(end)

        for run in self.runs:
            arc((run.stage_id, "in"), (run.stage_id, "out"))
            for other in run.takes:
                arc((other.stage_id, "out"), (run.stage_id, "in"))
            if run.parent:
                arc((run.parent.stage_id, "in"), (run.stage_id, "in"))
                arc((run.stage_id, "out"), (run.parent.stage_id, "out"))
        for other in sources:
            arc((other.stage_id, "out"), "final")
        if final is not None:
            arc((final.stage_id, "in" if final.kind == "generate" else "out"), "final")

        def reachable(start: Any) -> set[Any]:
            seen: set[Any] = set()
            todo = [start]
            while todo:
                for following in arcs.get(todo.pop(), ()):
                    if following not in seen:
                        seen.add(following)
                        todo.append(following)
            return seen

        first_expand = min([run.step_out for run in self.runs if run.kind == "expand"], default=0)
        rows = []
        for run in self.runs:
            if run.is_off:
                continue
            for side, exists in (("in", bool(run.in_rows)), ("out", run.out_list is not None)):
                if not exists:
                    continue
                later = reachable((run.stage_id, side))
                step = run.step_in if side == "in" else run.step_out
                on_path = has_final and "final" in later
                rows.append(
                    ((run, side), step + (1_000_000 if on_path else 10), step, on_path, later, step < first_expand)
                )
        rows.sort(key=lambda row: row[1])
        if has_final:
            rows.append(((None, "context"), 1_000_000_000, None, True, set(), False))
        numbers = {
            (row[0][0].stage_id, row[0][1]) if row[0][0] else "final": number for number, row in enumerate(rows, 1)
        }
        return [
            (key, order, step, on_path, sorted(numbers[one] for one in later if numbers.get(one, 0) > number), counts)
            for number, (key, order, step, on_path, later, counts) in enumerate(rows, 1)
        ]
