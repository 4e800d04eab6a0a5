"""The door for notebooks: `from ragtrace.notebook import Store`. Recording services never import it."""

from ragtrace.reports.notebook import Chart, Report, Store, Table, WhatIf, Why

__all__ = ["Chart", "Report", "Store", "Table", "WhatIf", "Why"]
