"""The hash by which a text is known: the same in the recorder, the merge and the labels, or nothing joins.

With RAGTRACE_HASH_KEY it is keyed: a hash of a guessable text (a name, a number) else tells who guesses right.
"""

from __future__ import annotations

import os
from functools import cache
from hashlib import blake2b

__all__ = ["of_text"]


def of_text(text: str) -> str:
    """The blake2b-128 of a text's UTF-8 bytes as 32 hex digits. Lone surrogates are hashed too. Never raises."""
    one = _blank().copy()  # a quarter cheaper than a new one with its arguments
    one.update(text.encode("utf-8", "surrogatepass"))
    return one.hexdigest()


# The key is read once a process, at the first text: one that changed in between would part texts from their labels.
@cache
def _blank() -> blake2b:
    given = os.environ.get("RAGTRACE_HASH_KEY", "").encode("utf-8", "surrogateescape")
    # blake2b takes 64 bytes; all of a longer one are to count.
    return blake2b(digest_size=16, key=given if len(given) <= 64 else blake2b(given).digest())
