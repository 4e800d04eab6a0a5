"""The documents of the demo: the Python language reference as the standard library brings it along.

Every topic of `pydoc_data.topics` is a page. One page also has an earlier edition, as a team that indexes its manual
again and again would still have it in its index. Texts differ between Python versions; the edition says which it is.
"""

from __future__ import annotations

import re
import sys
from typing import NamedTuple

__all__ = ["CURRENT_EDITION", "EARLIER_EDITION", "Page", "earlier_pages", "pages"]

CURRENT_EDITION = f"{sys.version_info.major}.{sys.version_info.minor}"
EARLIER_EDITION = "3.8"


class Page(NamedTuple):
    """One page of the manual as it comes, before parsing."""

    doc_id: str
    """The topic's name."""
    edition: str
    """Python version whose reference it belongs to."""
    raw: str
    """The page as laid out for a terminal."""


def pages() -> list[Page]:
    """The current edition, in alphabetical order; never empty where the standard library is whole."""
    from pydoc_data.topics import topics

    return [Page(name, CURRENT_EDITION, topics[name]) for name in sorted(topics)]


def earlier_pages() -> list[Page]:
    """The pages of which an earlier edition was indexed once, in alphabetical order."""
    return [
        Page(page.doc_id, EARLIER_EDITION, _before_parentheses(page.raw)) for page in pages() if page.doc_id == "with"
    ]


def _before_parentheses(raw: str) -> str:
    """The page on `with` as it was before Python 3.10 let parentheses group the context managers."""
    multi_line = re.compile(
        r"You can also write multi-item context managers in multiple lines.*?(?=(?:Changed|See) )", re.S
    )
    version_note = re.compile(r"Changed in version 3\.10:.*?\n\n", re.S)
    advice = (
        'Parentheses around the context managers of a "with" statement are a\n'
        "syntax error. A list of context managers that does not fit on one line\n"
        "is continued with a backslash at the end of the line.\n\n"
    )
    return version_note.sub("", multi_line.sub(lambda _: advice, raw, count=1), count=1)
