"""What a rewrite dropped of a question, in the words a person would name first: years and numbers, names, then other words."""

from __future__ import annotations

import re

__all__ = ["dropped"]

_WORD = re.compile(r"\d+(?:[.,:/-]\d+)*|[^\W\d_]+(?:['’-][^\W\d_]+)*", re.UNICODE)
_YEAR = re.compile(r"(1[5-9]|20)\d\d\Z")
_MOST = 3


def dropped(question: str, query: str) -> str:
    """`the year 2021`, `the number 17`, `the name Kepler`, `the words …`; the weightiest kind, three at most.

    Empty when every word of the question is left. Compared without case; the first word is no name for its capital.
    """
    left = {word.casefold() for word in _WORD.findall(query)}
    words = _WORD.findall(question)
    gone = [(at, word) for at, word in enumerate(words) if word.casefold() not in left]
    years = [word for _, word in gone if _YEAR.match(word)]
    numbers = [word for _, word in gone if word[0].isdigit() and word not in years]
    names = [word for at, word in gone if at > 0 and word[0].isupper()]
    others = [word for _, word in gone if not word[0].isdigit() and word not in names and len(word) > 3]
    for kind, found in (("year", years), ("number", numbers), ("name", names), ("word", others)):
        distinct = list(dict.fromkeys(found))[:_MOST]
        if distinct:
            return f"the {kind}{'s' if len(distinct) > 1 else ''} {_listed(distinct)}"
    return ""


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
