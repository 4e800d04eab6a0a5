"""Reports come in one order only: what they are ordered by tells their rows apart."""

import json

import pytest

from ragtrace.reports import catalogue, run
from ragtrace.store import database
from ragtrace.store.merge import merge
from tests.unit.cli import library

GIVEN = {"asked": library.STAY, "a": "hybrid-k50", "b": "second"}


@pytest.fixture(scope="module")
def connection(library_store, tmp_path_factory):
    """The library, traced twice under two names."""
    store = tmp_path_factory.mktemp("order") / "traces.duckdb"
    store.write_bytes(library_store.read_bytes())
    library.trace(store, run="second")
    merge(store)
    with database.connect(store, read_only=True) as opened:
        yield opened


@pytest.mark.parametrize("name", catalogue.load("report"))
def test_no_two_rows_of_a_report_have_the_same_place_in_its_order(connection, name):
    query = catalogue.find(name)
    (query_id,) = connection.execute("select max(query_id) from stage_loss").fetchone()
    (text_hash,) = connection.execute("select max(text_hash) from texts where is_aligned").fetchone()
    given = GIVEN | {"query_id": query_id, "text_hash": text_hash}
    needed = {p.name: given[p.name] for p in query.parameters if p.is_required}
    (tree,) = connection.execute("select json_serialize_sql($sql)", {"sql": query.sql}).fetchone()
    modifiers = json.loads(tree)["statements"][0]["node"]["modifiers"]
    orders = next(modifier["orders"] for modifier in modifiers if modifier["type"] == "ORDER_MODIFIER")
    names = [order["expression"].get("column_names", [None])[-1] for order in orders]

    rows = run.run(connection, name, **needed).records()
    places = [tuple(str(row[column]) for column in names if column in row) for row in rows]

    assert len(set(places)) == len(places)
