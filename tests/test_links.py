"""The pages hang together: every link to a file or a heading leads there, and from the README to every page."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def pages() -> list[Path]:
    """Every Markdown file of the repository; where there is no git, those in the folders that hold some."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "*.md"], cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        found = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]
        return sorted(found)
    return sorted(ROOT / line for line in listed.splitlines() if (ROOT / line).exists())


PAGES = pages()


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """Where a page's links into the repository lead: a file or folder, and a heading's anchor or nothing."""
    for target in _LINK.findall(_FENCED.sub("", page.read_text(encoding="utf-8"))):
        if "://" not in target and not target.startswith("mailto:"):
            path, _, anchor = target.partition("#")
            yield ((page.parent / path).resolve() if path else page), anchor


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as they are made on the web: lowercase, blanks to hyphens, signs dropped."""
    headings = re.findall(r"^#+ +(.+?) *$", _FENCED.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_link_leads_to_what_is_there(page: Path) -> None:
    for path, anchor in links(page):
        assert path.exists(), path
        assert path.is_relative_to(ROOT)
        if anchor:
            assert anchor in anchors(path)


def test_every_page_can_be_reached_from_the_readme() -> None:
    """A link to a folder reaches the pages in it."""
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page.is_dir():
            waiting += page.glob("*.md")
        elif page not in reached:
            reached.add(page)
            if page.suffix == ".md":
                waiting += [path for path, _ in links(page)]

    missing = [page.relative_to(ROOT).as_posix() for page in PAGES if page not in reached]
    assert missing == []
