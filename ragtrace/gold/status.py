"""What each loaded gold set holds: questions, needs, levels, modes, how much is placed, who answers for it."""

from __future__ import annotations

from typing import Any

import duckdb

from ragtrace.gold import rows

__all__ = ["status"]


def status(connection: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """One mapping per gold set, by name, with the columns of `queries/reports/gold_status.sql`; empty without gold."""
    found = connection.execute(rows.query("reports", "gold_status"))
    names = [column[0] for column in found.description or ()]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]
