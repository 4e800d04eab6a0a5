"""From the store to graphs: the queries of one run with every list that a replay needs. Reads, judges nothing."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ragtrace.whatif.rows import Label, Node, Query, Row, chunks

if TYPE_CHECKING:
    import duckdb

__all__ = ["Recording", "read"]

_SKIPPED = ("ingest", "parse", "chunk", "index", "rewrite", "generate")
"""Kinds that put out no candidate list."""

_QUERIES = """
select
    query_scope.query_id,
    query_scope.scope,
    coalesce(queries.status, 'ok') as status,
    query_scope.is_whole,
    query_scope.final_how,
    coalesce(query_recall.is_judged, false) as is_judged
from query_scope
inner join queries on query_scope.query_id = queries.query_id
left join query_recall on query_scope.query_id = query_recall.query_id
where query_scope.run is not distinct from $run
order by is_judged desc, hash(query_scope.query_id), query_scope.query_id
limit $most
"""

_STAGES = """
select
    stages.query_id, stages.stage_id, stages.parent_stage_id, stages.kind, coalesce(stages.name, stages.kind) as name,
    stages.mode, coalesce(stages.round, 1) as round, stages.k, stages.threshold, stages.budget_tokens,
    coalesce(stages.is_higher_better, stages.score_kind is distinct from 'distance') as is_higher_better,
    stages.params, coalesce(stages.status, 'ok') as status, stages.probe
from stages
where stages.query_id in (select unnest($ids)) and not coalesce(stages.is_aside, false)
order by stages.query_id, stages.start_no
"""

_LISTS = """
select
    lists.query_id, lists.stage_id, lists.list_id, lists.role,
    coalesce(lists.same_as_list_id, lists.list_id) as rows_of,
    coalesce(lists.is_complete, true) and not coalesce(lists.is_partial, false) as is_complete
from lists
where lists.query_id in (select unnest($ids))
order by lists.query_id, lists.list_id
"""

_EDGES = """
select edges.query_id, edges.to_list_id, edges.from_list_id, edges.how
from edges
where edges.query_id in (select unnest($ids))
order by edges.query_id, edges.to_list_id, edges.from_list_id
"""

_FINALS = """
select places.query_id, place_lists.list_id
from places
inner join place_lists on places.query_id = place_lists.query_id and places.place_no = place_lists.place_no
where places.side = 'context' and places.stage_id is null and places.query_id in (select unnest($ids))
order by places.query_id, place_lists.list_id
"""

_ROWS = """
select
    candidates.list_id, coalesce(items.chunk_id, '#' || cast(candidates.item as varchar)) as chunk, candidates.item,
    candidates.score, candidates.tokens, candidates.is_kept is distinct from false as is_kept, candidates.drop_reason
from candidates
inner join items on candidates.item = items.item
where candidates.list_id in (
    select coalesce(lists.same_as_list_id, lists.list_id) from lists where lists.query_id in (select unnest($ids))
)
order by candidates.list_id, candidates.rank
"""


# The hash of a chunk's text stands where its text was seen, mostly on the ingest side.
_TEXTS = """
select items.chunk_id, min(items.item_text_hash) as text_hash
from items
where
    items.item_text_hash is not null
    and items.chunk_id in (
        select returned.chunk_id
        from candidates
        inner join items as returned on candidates.item = returned.item
        where candidates.list_id in (select lists.list_id from lists where lists.query_id in (select unnest($ids)))
    )
group by items.chunk_id
having min(items.item_text_hash) = max(items.item_text_hash)
"""


class Recording(NamedTuple):
    """What was read of one run."""

    queries: list[Query]
    n_queries: int
    """All queries of the run, read or not."""


class _Listed(NamedTuple):
    list_id: int
    stage_id: int | None
    role: str
    rows_of: int
    is_complete: bool


def read(connection: duckdb.DuckDBPyConnection, run: str | None, most: int) -> Recording:
    """The queries of a run, judged ones first, at most `most` of them: always the same ones.

    Empty when the run has none. Raises: duckdb.Error.
    """
    found = connection.execute(_QUERIES, {"run": run, "most": most}).fetchall()
    n_queries = connection.execute(
        "select count(*) from query_scope where run is not distinct from $run", {"run": run}
    ).fetchall()[0][0]
    ids = {"ids": [row[0] for row in found]}
    stages = _by_query(connection, _STAGES, ids)
    lists = _by_query(connection, _LISTS, ids)
    edges = _by_query(connection, _EDGES, ids)
    finals = _by_query(connection, _FINALS, ids)
    rows: dict[int, list[tuple[Row, bool, str | None]]] = defaultdict(list)
    for list_id, chunk, item, score, tokens, is_kept, drop_reason in connection.execute(_ROWS, ids).fetchall():
        rows[list_id].append((Row(chunk, item, score, tokens), is_kept, drop_reason))
    texts = dict(connection.execute(_TEXTS, ids).fetchall())
    graphs = [
        _Graph(query_id, stages[query_id], lists[query_id], edges[query_id], finals[query_id], rows)
        for query_id, *_ in found
    ]
    _settle(graphs)
    # What is a gap in one query is looked at in all: elsewhere the code between the two may have had nothing to do.
    gaps = {pair for graph in graphs for pair in graph.gaps()}
    queries = []
    for graph, (query_id, scope, status, is_whole, final_how, is_judged) in zip(graphs, found, strict=True):
        nodes, final, retrievals, why = graph.built(gaps)
        if status != "ok" or not is_whole or scope in ("interrupted", "cache_hit", "no_final_context"):
            why = "the query failed or is not recorded in full"
        elif final_how == "unknown":
            why = "its final context is not known"
        queries.append(Query(query_id, nodes, final, retrievals, is_judged and scope == "scored", why, texts))
    return Recording(queries, n_queries)


def _settle(graphs: Sequence[_Graph]) -> None:
    """Take each list from where it mostly comes from, where that fits too.

    Origins are told by value: what goes on of a fusion may by chance equal what one retriever found.
    """
    origins: dict[tuple[str, int], Counter[tuple[Label, ...]]] = defaultdict(Counter)
    for graph in graphs:
        for one, taker, place in graph.takers():
            origins[taker, place][tuple(graph.label(s) for s in graph.sources(one))] += 1
    usual = {key: counted.most_common(1)[0][0] for key, counted in origins.items()}
    for graph in graphs:
        for one, taker, place in graph.takers():
            graph.settle(one, usual[taker, place])


def _by_query(connection: duckdb.DuckDBPyConnection, sql: str, ids: dict[str, Any]) -> Mapping[int, list[Any]]:
    found: dict[int, list[Any]] = defaultdict(list)
    for row in connection.execute(sql, ids).fetchall():
        found[row[0]].append(row[1:])
    return found


def _params(text: str | None) -> Mapping[str, Any]:
    try:
        read = json.loads(text) if text else {}
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


class _Graph:
    """One query on its way from rows of the store to nodes."""

    def __init__(
        self,
        query_id: int,
        stages: Sequence[Any],
        lists: Sequence[Any],
        edges: Sequence[Any],
        finals: Sequence[Any],
        rows: Mapping[int, list[tuple[Row, bool, str | None]]],
    ) -> None:
        self.query_id = query_id
        self.stages = {row[0]: row for row in stages if row[2] not in _SKIPPED and row[-1] is None}
        self.rounds = {row[5] for row in stages if row[2] == "retrieve" and row[-1] is None}
        self.all_lists = {row[1]: _Listed(row[1], row[0], *row[2:]) for row in lists}
        self.edges: dict[int, list[tuple[int, str]]] = defaultdict(list)
        for to_id, from_id, how in edges:
            self.edges[to_id].append((from_id, how))
        self.finals = [list_id for (list_id,) in finals]
        self.rows = rows
        self.settled: dict[int, list[int]] = {}
        self.of_stage: dict[int, dict[str, list[_Listed]]] = defaultdict(lambda: defaultdict(list))
        for one in self.all_lists.values():
            if one.stage_id is not None:
                self.of_stage[one.stage_id][one.role].append(one)

    def kept(self, one: _Listed) -> list[Row]:
        return [row for row, is_kept, _ in self.rows.get(one.rows_of, ()) if is_kept]

    def label(self, stage_id: int) -> Label:
        return self.stages[stage_id][2], self.stages[stage_id][3]

    def sources(self, one: _Listed) -> list[int]:
        """Stage runs whose outputs went into a list, in the order of these outputs."""
        if one.list_id in self.settled:
            return self.settled[one.list_id]
        found: list[int] = []
        for from_id, _ in self.edges.get(one.list_id, ()):
            stage_id = self.all_lists[from_id].stage_id if from_id in self.all_lists else None
            if stage_id is not None and stage_id in self.stages and stage_id not in found:
                found.append(stage_id)
        return found

    def is_direct(self, one: _Listed, sources: Sequence[int]) -> bool:
        """It is one stage's output as it came."""
        if len(sources) != 1:
            return False
        outs = self.of_stage[sources[0]]["out"]
        return any(out.rows_of == one.rows_of or chunks(self.kept(out)) == chunks(self.kept(one)) for out in outs)

    def takers(self) -> list[tuple[_Listed, str, int]]:
        """Every list that was taken, with the name of who took it, and the how manieth of his it is."""
        found = [
            (one, row[3], place)
            for stage_id, row in self.stages.items()
            for place, one in enumerate(self.of_stage[stage_id]["in"])
        ]
        answers = [one for one in self.final_lists() if one.stage_id not in self.stages]
        return found + [(one, "the answer", place) for place, one in enumerate(answers)]

    def settle(self, one: _Listed, usual: Sequence[Label]) -> None:
        """Take a list from these stages, when each ran once before it and the list is theirs or begins it."""
        if not usual or [self.label(s) for s in self.sources(one)] == list(usual):
            return
        found = []
        for label in usual:
            runs = [s for s in self.stages if self.label(s) == label and self.of_stage[s]["out"]]
            if len(runs) != 1 or self.of_stage[runs[0]]["out"][0].list_id > one.list_id:
                return
            found += runs
        whole = [row.chunk for s in found for out in self.of_stage[s]["out"] for row in self.kept(out)]
        own = chunks(self.kept(one))
        if own and own == whole[: len(own)]:
            self.settled[one.list_id] = found

    def final_lists(self) -> list[_Listed]:
        return [self.all_lists[list_id] for list_id in self.finals if list_id in self.all_lists]

    def pair(self, sources: Sequence[int], taker: str) -> Label:
        names = sorted({self.stages[s][3] for s in sources})
        return "gap", f"after {' and '.join(names)}, before {taker}" if names else f"before {taker}"

    def gaps(self) -> list[Label]:
        found = []
        for one, taker, _ in self.takers():
            sources = self.sources(one)
            if not self.is_direct(one, sources):
                found.append(self.pair(sources, taker))
        return found

    def built(self, gaps: set[Label]) -> tuple[dict[int, Node], tuple[int, ...], tuple[int, ...], str | None]:
        """Nodes by key, the final context's keys, the retrieve runs' keys, and why it cannot be replayed."""
        nodes: dict[int, Node] = {}
        why: str | None = None
        if len(self.rounds) > 1:
            why = "it retrieved in several rounds: what the later ones asked hangs on the earlier ones"

        def enter(one: _Listed, taker: str) -> int:
            """The key of the node that puts out this list as it was taken."""
            nonlocal why
            sources = self.sources(one)
            if not one.is_complete:
                why = why or "a list is not recorded in full"
            pair = self.pair(sources, taker)
            if len(sources) == 1 and self.is_direct(one, sources) and pair not in gaps:
                return sources[0]
            key = -one.list_id
            taken = [[row for out in self.of_stage[s]["out"] for row in self.kept(out)] for s in sources]
            rows = self.kept(one)
            nodes[key] = Node(pair, tuple(sources), taken, rows, rows)
            return key

        for stage_id, row in self.stages.items():
            outs = self.of_stage[stage_id]["out"]
            if not outs:
                continue
            if row[11] != "ok" or not all(one.is_complete for one in outs):
                why = why or f"{row[3]} failed or is not recorded in full"
            ins = self.of_stage[stage_id]["in"]
            inputs = tuple(enter(one, row[3]) for one in ins)
            taken = [self.kept(one) for one in ins]
            if not ins:
                inputs = tuple(self._unconsumed_children(stage_id))
                taken = [[r for one in self.of_stage[c]["out"] for r in self.kept(one)] for c in inputs]
            nodes[stage_id] = Node(
                self.label(stage_id),
                inputs,
                taken,
                [r for one in outs for r in self.kept(one)],
                self._shown(stage_id),
                mode=row[4],
                k=row[6],
                threshold=row[7],
                budget_tokens=row[8],
                is_higher_better=row[9],
                params=_params(row[10]),
                is_deduplicated=any(
                    "dup" in (reason or "")
                    for one in self.of_stage[stage_id]["dropped"]
                    for _, _, reason in self.rows.get(one.rows_of, ())
                ),
            )
        final: list[int] = []
        by_rows = {out.rows_of: stage_id for stage_id in self.stages for out in self.of_stage[stage_id]["out"]}
        for one in self.final_lists():
            key = by_rows[one.rows_of] if one.rows_of in by_rows else enter(one, "the answer")
            if key not in final:
                final.append(key)
        if not final:
            why = why or "its final context is not known"
        if _has_circle(nodes):
            why = why or "its lists go in a circle"
        if why is None:
            _set_depths(nodes)
        retrievals = tuple(s for s, row in self.stages.items() if row[2] == "retrieve" and s in nodes)
        return nodes, tuple(final), retrievals, why

    def _unconsumed_children(self, stage_id: int) -> list[int]:
        """Runs inside this one whose output no other run inside it took: a hybrid retriever's last inner step."""
        children = [s for s, row in self.stages.items() if row[1] == stage_id and self.of_stage[s]["out"]]
        consumed = {source for child in children for one in self.of_stage[child]["in"] for source in self.sources(one)}
        return [child for child in children if child not in consumed]

    def _shown(self, stage_id: int) -> list[Row]:
        lists = self.of_stage[stage_id]
        first = [row for one in lists["considered"] for row, _, _ in self.rows.get(one.rows_of, ())]
        own = [row for one in lists["out"] for row, _, _ in self.rows.get(one.rows_of, ())]
        known = {row.chunk for row in first}
        return first + [row for row in own if row.chunk not in known]


def _has_circle(nodes: Mapping[int, Node]) -> bool:
    state: dict[int, int] = {}

    def visit(key: int) -> bool:
        if state.get(key) == 1:
            return True
        if key in state or key not in nodes:
            return False
        state[key] = 1
        if any(visit(i) for i in nodes[key].inputs):
            return True
        state[key] = 2
        return False

    return any(visit(key) for key in nodes)


def _set_depths(nodes: Mapping[int, Node]) -> None:
    def depth(key: int) -> int:
        node = nodes[key]
        if not node.depth:
            node.depth = 1 + max((depth(i) for i in node.inputs), default=0)
        return node.depth

    for key in nodes:
        depth(key)
