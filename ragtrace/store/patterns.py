"""Flows by pattern: queries whose stages and lists hang together in the same way are derived once and written by the column.

A service asks thousands of questions through the same few ways. Deriving each anew costs 30 µs a stage; a look-up in the
pattern costs 3. Only a query with a list that has to be compared by its candidates is derived by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain, repeat
from typing import Any

import duckdb
import pyarrow as pa

from ragtrace.spool.records import CandidateList
from ragtrace.store.edges import FlowList, FlowStage
from ragtrace.store.flow import Flow, derive
from ragtrace.store.staging import Scope
from ragtrace.store.tables import arrow_schema

__all__ = ["FlowRows", "Pattern", "Patterns"]

_Signature = tuple[Any, ...]

MAX_PATTERNS = 10_000
"""A service that makes new ways without end must not grow the merge."""


class Pattern:
    """The flow of all queries of one shape, in numbers: stages and lists are numbered in the order of their ids, from 0."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.query_ids: list[int] = []
        self.are_whole: list[bool] = []
        self.stage_ids: list[Sequence[int]] = []
        self.list_ids: list[Sequence[int]] = []


class Patterns:
    """The patterns of one piece of a merge."""

    def __init__(self) -> None:
        self._flows: dict[_Signature, Flow] = {}

    def flow_of(
        self, scope: Scope, ids_of: Callable[[CandidateList], Sequence[str | None]]
    ) -> tuple[Flow, list[int], list[int]]:
        """The flow of a query in numbers, with the stage ids and list ids that the numbers stand for."""
        stage_ids = [stage.row["stage_id"] for stage in scope.stages]
        list_ids = [one.list_id for stage in scope.stages for one in stage.lists]
        list_ids += [one.list_id for one in scope.contexts]
        stage_ids.sort()
        list_ids.sort()
        stage_no = dict(zip(stage_ids, range(len(stage_ids)), strict=True))
        list_no = dict(zip(list_ids, range(len(list_ids)), strict=True))
        signature = _signature(scope, stage_no, list_no)
        if signature is None:
            return derive(*_parts(scope, stage_no, list_no, ids_of)), stage_ids, list_ids
        flow = self._flows.get(signature)
        if flow is None:
            if len(self._flows) >= MAX_PATTERNS:
                self._flows.clear()
            flow = self._flows[signature] = derive(*_parts(scope, stage_no, list_no, ids_of))
        return flow, stage_ids, list_ids


def _signature(scope: Scope, stage_no: Mapping[int, int], list_no: Mapping[int, int]) -> _Signature | None:
    """All that the flow depends on; None when it depends on the candidates."""
    parts: list[Any] = []
    for stage in scope.stages:
        row = stage.row
        get = row.get
        parts.append((
            stage_no[row["stage_id"]], get("kind"), get("start_no"), get("end_no"), stage_no.get(get("parent_stage_id") or 0),
            get("is_aside"), get("probe"), get("is_final"), get("is_answer"),
        ))  # fmt: skip
        for list_id, role, columns, same_as, sources, _, _, is_complete, _ in stage.lists:
            if role == "in":
                if columns is not None and not sources:
                    return None
            elif role != "out":
                continue
            parts.append((
                list_no[list_id], role, columns is None, is_complete, _numbers(same_as, list_no) if same_as else (),
                _numbers(sources, stage_no) if sources else (),
            ))  # fmt: skip
    for list_id, _, columns, same_as, sources, _, _, is_complete, _ in scope.contexts:
        if columns is not None and not sources:
            return None
        parts.append((
            list_no[list_id], "context", False, is_complete, _numbers(same_as, list_no), _numbers(sources, stage_no),
        ))  # fmt: skip
    return tuple(parts)


def _numbers(ids: Sequence[int], number_of: Mapping[int, int]) -> tuple[int, ...]:
    # What is not at hand is -1: no list or stage has it.
    return tuple(number_of.get(one, -1) for one in ids) if ids else ()


def _parts(
    scope: Scope,
    stage_no: Mapping[int, int],
    list_no: Mapping[int, int],
    ids_of: Callable[[CandidateList], Sequence[str | None]],
) -> tuple[list[FlowStage], list[FlowList]]:
    """A scope as the flow wants it, in numbers."""

    def flow_list(one: CandidateList) -> FlowList:
        ids = ids_of(one) if one.columns is not None else ()
        same_as, sources = _numbers(one.same_as, list_no), _numbers(one.declared_sources, stage_no)
        return FlowList(list_no[one.list_id], one.role, ids, same_as, sources, one.is_complete, one.columns is not None)

    stages = []
    for stage in scope.stages:
        row = stage.row
        parent_id = row.get("parent_stage_id")
        stages.append(
            FlowStage(
                stage_no[row["stage_id"]],
                row.get("kind") or "",
                row.get("start_no"),
                row.get("end_no"),
                stage_no.get(parent_id) if parent_id is not None else None,
                is_off=bool(row.get("is_aside")) or row.get("probe") is not None,
                is_final=bool(row.get("is_final")),
                is_answer=bool(row.get("is_answer")),
                lists=[flow_list(one) for one in stage.lists],
            )
        )
    return stages, [flow_list(one) for one in scope.contexts]


class FlowRows:
    """Rows of query_flows, edges, places and place_lists, collected by pattern and written at once."""

    def __init__(self) -> None:
        self._patterns: dict[int, Pattern] = {}

    def add(
        self, query_id: int, flow: Flow, is_whole: bool, stage_ids: Sequence[int] | None, list_ids: Sequence[int] | None
    ) -> None:
        """Enter what was derived for one query; without ids the flow's own numbers are the ids."""
        pattern = self._patterns.get(id(flow))
        if pattern is None:
            pattern = self._patterns[id(flow)] = Pattern(flow)
        pattern.query_ids.append(query_id)
        pattern.are_whole.append(is_whole)
        if stage_ids is not None and list_ids is not None:
            pattern.stage_ids.append(stage_ids)
            pattern.list_ids.append(list_ids)

    def insert(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Write them."""
        patterns = list(self._patterns.values())
        if not patterns:
            return
        for name, rows_of in (
            ("query_flows", _flow_rows),
            ("edges", _edge_rows),
            ("places", _place_rows),
            ("place_lists", _place_list_rows),
        ):
            columns = [rows_of(pattern) for pattern in patterns]
            fields = arrow_schema(name)
            arrays = [
                pa.array(list(chain.from_iterable(column)), field.type)
                for column, field in zip(zip(*columns, strict=True), fields, strict=True)
            ]
            if len(arrays[0]):
                connection.register("staging_rows", pa.Table.from_arrays(arrays, schema=fields))
                connection.execute(f"insert into {name} by name select * from staging_rows")
                connection.unregister("staging_rows")


_Column = Sequence[Any]


def _flow_rows(pattern: Pattern) -> tuple[_Column, ...]:
    n = len(pattern.query_ids)
    return pattern.query_ids, [pattern.flow.final_how] * n, pattern.are_whole, [len(pattern.flow.places)] * n


def _edge_rows(pattern: Pattern) -> tuple[_Column, ...]:
    edges = pattern.flow.edges
    n = len(pattern.query_ids)
    return (
        _each(pattern.query_ids, len(edges)),
        _ids(pattern.list_ids, [edge.from_list_id for edge in edges]),
        _ids(pattern.list_ids, [edge.to_list_id for edge in edges]),
        [edge.how for edge in edges] * n,
    )


def _place_rows(pattern: Pattern) -> tuple[_Column, ...]:
    places = pattern.flow.places
    n = len(pattern.query_ids)
    same = [
        [getattr(place, name) for place in places] * n
        for name in ("side", "step", "is_on_path", "place_order", "counts_stands_for", "later_nos")
    ]
    return (
        _each(pattern.query_ids, len(places)),
        [place.place_no for place in places] * n,
        _ids(pattern.stage_ids, [place.stage_id for place in places]),
        *same,
    )


def _place_list_rows(pattern: Pattern) -> tuple[_Column, ...]:
    rows = pattern.flow.place_lists
    return (
        _each(pattern.query_ids, len(rows)),
        [place_no for place_no, _ in rows] * len(pattern.query_ids),
        _ids(pattern.list_ids, [list_id for _, list_id in rows]),
    )


def _each(query_ids: Sequence[int], n_rows: int) -> list[int]:
    return list(chain.from_iterable(repeat(query_id, n_rows) for query_id in query_ids))


def _ids(ids_of_queries: Sequence[Sequence[int]], numbers: Sequence[int | None]) -> list[int | None]:
    """Per query the ids its numbers stand for; where no ids are given, the numbers are the ids."""
    if not ids_of_queries:
        return list(numbers)
    return [None if number is None else ids[number] for ids in ids_of_queries for number in numbers]
