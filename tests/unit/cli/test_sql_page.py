"""docs/sql.md: every statement runs, and gives rows where the page promises some."""

import re
from pathlib import Path

import pytest

from ragtrace.reports import catalogue, run
from ragtrace.store import database

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "sql.md").read_text(encoding="utf-8")
SECTIONS = re.findall(r"^## (.+?)\n(?:(?!^## ).)*?```sql\n(.+?)```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("title", "statement"), SECTIONS, ids=[title for title, _ in SECTIONS])
def test_a_statement_of_the_page_runs(library_store, title, statement):
    with database.connect(library_store, read_only=True) as connection:
        result = run.select(connection, statement)

    assert result.columns
    if "before any search" not in title:  # the library loses nothing there
        assert result.rows


def test_the_page_has_statements_and_names_only_views_there_are():
    named = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)

    assert len(SECTIONS) == PAGE.count("```sql")
    assert set(named) <= set(catalogue.load("view"))
