"""How much is replayed unless more is asked for. Loads nothing: the command's help names a number."""

from __future__ import annotations

__all__ = ["MOST_QUERIES", "MOST_VALUES", "REPORT_QUERIES", "REPORT_VALUES"]

MOST_QUERIES = 200
"""Queries, for the command, the page and a notebook alike: 0.35 ms a query and change with lists of 100, so 20 s for
300 changes."""

MOST_VALUES = 60
"""Values per setting. A threshold's breakpoints are as many as the evidence has scores: of more, every n-th is tried."""

REPORT_QUERIES = 100
"""Queries for the few lines of advice at the end of a report, which must not wait: with REPORT_VALUES, about a second."""

REPORT_VALUES = 12
"""Values per setting there."""
