"""Headers of .sql files: what is read, what is refused, what is held against DuckDB."""

import re
from pathlib import Path

import duckdb
import pytest

from ragtrace.errors import HeaderError, ParameterError, ReportNotFoundError
from ragtrace.reports import catalogue

GOOD = """\
-- report:  crowd
-- answers: how many are there,
--          and who?
-- grain:   one row per name
-- param:   least  integer = 2     at least so many
-- param:   name   varchar         whose
-- column:  name   varchar         who
-- column:  n      bigint          how many
-- reads:   people

-- param: this is a comment below the header, not a parameter
select people.name as name, count(*) as n
from people
where people.name = $name
group by people.name
having count(*) >= $least
order by people.name
"""
PATH = Path("crowd.sql")


@pytest.fixture
def connection():
    with duckdb.connect() as connection:
        connection.execute("create table people (name varchar)")
        yield connection


def test_a_header_gives_name_answers_parameters_and_columns():
    query = catalogue.parse(GOOD, PATH)

    assert (query.kind, query.name, query.answers) == ("report", "crowd", "how many are there, and who?")
    assert query.parameters == (
        catalogue.Parameter("least", "integer", "at least so many", False, 2),
        catalogue.Parameter("name", "varchar", "whose", True, None),
    )
    assert query.columns == (
        catalogue.Field("name", "varchar", "who"),
        catalogue.Field("n", "bigint", "how many"),
    )
    assert query.reads == ("people",)


def test_a_true_header_differs_in_nothing(connection):
    assert catalogue.differences(connection, catalogue.parse(GOOD, PATH)) == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("-- param:   least  integer = 2     at least so many\n", "", "least is used and not declared"),
        (">= $least", ">= 2", "least is declared and not used"),
        ("n      bigint", "n      integer", "columns are name varchar, n bigint"),
        ("-- column:  n      bigint          how many\n", "", "columns are name varchar, n bigint"),
        ("-- reads:   people", "-- reads:   others", "reads people; the header says others"),
        ("order by people.name", "", "has no order by"),
        ("order by people.name", "order by people.name; select 1", "holds 2 statements"),
        (
            "select people.name as name, count(*) as n\nfrom",
            "create table x as select name, count(*) as n from",
            "must be one select",
        ),
    ],
)
def test_what_a_header_says_wrongly_is_named(connection, old, new, said):
    assert old in GOOD
    query = catalogue.parse(GOOD.replace(old, new), PATH)

    found = catalogue.differences(connection, query)

    assert any(said in sentence for sentence in found), found


def test_a_common_table_expression_is_not_read_from_the_store(connection):
    text = GOOD.replace("select people.name", "with few as (select name from people) select people.name").replace(
        "from people\nwhere", "from few as people\nwhere"
    )

    assert catalogue.differences(connection, catalogue.parse(text, PATH)) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GOOD.replace("crowd", "other"), "must agree"),
        (GOOD.replace("-- report:", "-- reprot:"), "no header key"),
        (GOOD.replace("-- grain:   one row per name\n", ""), "lacks `-- grain:`"),
        ("select 1", "must have one of"),
        ("-- only a comment\nselect 1", "opens with its header"),
        (GOOD.replace("-- param:   name   varchar         whose", "-- param: name"), "a name, a type and a meaning"),
        (GOOD.replace("integer = 2", "integer = two"), "must be integer"),
    ],
)
def test_a_header_that_cannot_be_read_is_refused(text, said):
    with pytest.raises((HeaderError, ParameterError), match=said):
        catalogue.parse(text, PATH)


def test_an_unknown_name_offers_the_nearest():
    name = next(iter(catalogue.load("report")))

    with pytest.raises(ReportNotFoundError) as caught:
        catalogue.find(name + "x")

    assert name in caught.value.fields["nearest"]
    assert name in caught.value.message


def test_parameters_from_a_command_line_get_their_type_and_defaults():
    query = catalogue.parse(GOOD, PATH)

    assert catalogue.bind(query, {"least": "3", "name": "7"}) == {"least": 3, "name": "7"}
    assert catalogue.bind(query, {"name": "7"}) == {"least": 2, "name": "7"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "needs name"),
        ({"name": "a", "k": 1}, "no parameter 'k'"),
        ({"name": "a", "least": "many"}, "must be integer, not 'many'"),
    ],
)
def test_a_wrong_parameter_is_named(given, said):
    with pytest.raises(ParameterError, match=said):
        catalogue.bind(catalogue.parse(GOOD, PATH), given)


def test_the_page_of_reports_names_every_one():
    page = (Path(__file__).parents[3] / "docs/reports.md").read_text(encoding="utf-8")

    assert sorted(set(catalogue.load("report")) - set(re.findall(r"[a-z_]+", page))) == []
