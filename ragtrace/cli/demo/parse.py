"""From the laid-out pages of `pydoc_data.topics` to running text: what a parser does for a manual.

A page is text as Sphinx lays it out for a terminal: underlined headings, paragraphs wrapped at 70 columns, indented
code and grammar, grid tables, `*emphasis*`. The parsed text is the coordinate system of everything that follows, so
it is the same for the same page: one line a paragraph or list item, one blank line between blocks.
Knows nothing of chunks, indexes or tracing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["parse_page"]

_UNDERLINE = re.compile(r"^([*=\-~^])\1{2,}$")
_TABLE_RULE = re.compile(r"^ *[+|][-=+|]+[+|]$")
_ITEM = re.compile(r"^(?:[*+-]|\d+\.|[a-z]\.) +")
_EMPHASIS = re.compile(r"(?<![\w*\"'])(\*{1,2})(?=[^\s*])([^*\n]*?[^\s*])\1(?![\w*])")
# Sphinx breaks a line after a hyphen inside a word ("re-" / "raises"); there is no blank to give back.
_BROKEN_WORD = re.compile(r"\w-$")
_DIRECTIVES = ("Note:", "See also:", "Warning:", "Important:", "Hint:", "Tip:", "Caution:")


@dataclass(frozen=True)
class _Block:
    """Consecutive lines without a blank one, indentation taken off."""

    lines: list[str]
    indent: int

    @property
    def is_heading(self) -> bool:
        return len(self.lines) == 2 and bool(_UNDERLINE.match(self.lines[1]))

    @property
    def is_table(self) -> bool:
        return bool(_TABLE_RULE.match(self.lines[0]))


def parse_page(page: str, *, keep_tables: bool = True) -> str:
    """Running text of one page.

    Headings (`#` to `#####`), paragraphs, list items and code blocks are separated by one blank line. Code keeps its
    line breaks, a table becomes one line a row with ` | ` between cells; `keep_tables=False` leaves tables out, as
    many parsers do. An empty page gives an empty text. Never raises.
    """
    parts: list[str] = []
    previous: _Block | None = None
    was_code = False
    for block in _blocks(page):
        is_code = _is_code(block, previous, was_code)
        if block.is_heading:
            parts.append("#" * (1 + "*=-~^".index(block.lines[1][0])) + " " + _inline(block.lines[0]))
        elif block.is_table:
            if keep_tables:
                parts.append("\n".join(_rows(block.lines)))
        elif is_code:
            parts.append("\n".join(block.lines))
        else:
            parts.extend(_inline(paragraph) for paragraph in _paragraphs(block.lines))
        previous, was_code = block, is_code
    return "\n\n".join(part for part in parts if part)


def _blocks(page: str) -> list[_Block]:
    blocks: list[_Block] = []
    lines: list[str] = []
    for line in [*page.expandtabs().splitlines(), ""]:
        if line.strip():
            lines.append(line.rstrip())
        elif lines:
            indent = min(len(one) - len(one.lstrip()) for one in lines)
            blocks.append(_Block([one[indent:] for one in lines], indent))
            lines = []
    return blocks


def _is_code(block: _Block, previous: _Block | None, was_code: bool) -> bool:
    """Code follows a sentence that ends in a colon and stands deeper; grammar and sessions tell by their marks."""
    if block.is_heading or block.is_table:
        return False
    if any("::=" in line or line.startswith(">>>") for line in block.lines):
        return True
    if previous is None or previous.is_heading or previous.is_table:
        return False
    if was_code:
        return block.indent >= previous.indent and block.indent > 0
    last_line = previous.lines[-1]
    introduces = last_line.endswith(":") and last_line not in _DIRECTIVES
    return introduces and block.indent >= previous.indent + 3 and not _ITEM.match(block.lines[0])


def _paragraphs(lines: list[str]) -> list[str]:
    """Wrapped lines joined; a list item begins a paragraph of its own."""
    paragraphs: list[str] = []
    for line in lines:
        text = line.strip()
        if not paragraphs or _ITEM.match(text):
            paragraphs.append(text)
        elif _BROKEN_WORD.search(paragraphs[-1]):
            paragraphs[-1] += text
        else:
            paragraphs[-1] += " " + text
    return paragraphs


def _rows(lines: list[str]) -> list[str]:
    """The rows of a grid table, each cell's wrapped lines joined."""
    rows: list[str] = []
    cells: list[list[str]] = []
    for line in lines:
        if _TABLE_RULE.match(line):
            row = " | ".join(_inline(" ".join(cell)) for cell in cells if cell)
            if row:
                rows.append(row)
            cells = []
            continue
        columns = [column.strip() for column in line.strip().strip("|").split(" | ")]
        cells.extend([] for _ in range(len(columns) - len(cells)))
        for cell, column in zip(cells, columns, strict=False):
            if column:
                cell.append(column)
    return rows


def _inline(text: str) -> str:
    """Emphasis marks and the second blank after a sentence taken out."""
    return _EMPHASIS.sub(r"\2", re.sub(" {2,}", " ", text))
