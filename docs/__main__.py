"""`python -m docs`: writes the pages that are made from code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from docs import cli_page

PAGES: dict[str, Callable[[], str]] = {"cli.md": cli_page.page}
"""File name inside docs/, and what makes its text."""

if __name__ == "__main__":
    for name, page in PAGES.items():
        (Path(__file__).parent / name).write_text(page(), encoding="utf-8")
