"""Which `with` blocks are open: one stage or query object serves nested and parallel blocks, so it keeps none itself."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

__all__ = ["entered", "left"]

# The blocks entered here, innermost first: (owner, node, the block around it).
_blocks: ContextVar[tuple[Any, ...] | None] = ContextVar("ragtrace_blocks", default=None)

# The same by owner, for blocks left in another context than they were entered in (a fixture, a finaliser).
_by_owner: dict[int, list[Any]] = {}


def entered(owner: object, node: Any) -> None:
    """Remember the node of a block that begins."""
    _blocks.set((owner, node, _blocks.get()))
    _by_owner.setdefault(id(owner), []).append(node)


def left(owner: object) -> Any:
    """The node of the owner's block that ends here; None when none was recorded."""
    nodes = _by_owner.get(id(owner))
    if not nodes:
        return None
    top = _blocks.get()
    if top is not None and top[0] is owner:
        _blocks.set(top[2])
        node = top[1]
    else:
        node = nodes[-1]
    if node in nodes:
        nodes.remove(node)
    if not nodes:
        _by_owner.pop(id(owner), None)
    return node
