"""Draw a hierarchy as text.

/
├── air (2920, 25, 53) int16
└── coords
    └── lat (25,) float32
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tessarr.core.array import Array

if TYPE_CHECKING:
    from tessarr.core.group_parts.members import Members


class TreeView:
    """Draw the hierarchy below a group, as text or HTML."""

    def __init__(self, group: Members, *, level: int | None = None, max_nodes: int = 500, plain: bool = False) -> None:
        self._group = group
        self._level = level
        self._max_nodes = max_nodes
        self._left = max_nodes

    def lines(self) -> Iterator[str]:
        """Iterate over the lines of the drawing."""
        self._left = self._max_nodes
        yield self._group.name
        yield from self._below(self._group, "", self._level)
        if self._left < 0:
            yield f"… (Truncated at max_nodes={self._max_nodes}: there are more than {self._max_nodes} nodes)"

    def _below(self, group: Members, indent: str, level: int | None) -> Iterator[str]:
        if level is not None and level <= 0:
            return
        members = group.members()
        for position, (name, node) in enumerate(members):
            self._left -= 1
            if self._left < 0:
                return
            last = position == len(members) - 1
            branch, deeper = ("└── ", "    ") if last else ("├── ", "│   ")
            if isinstance(node, Array):
                yield f"{indent}{branch}{name} {node.shape} {node.dtype}"
            else:
                yield f"{indent}{branch}{name}"
                yield from self._below(node, indent + deeper, None if level is None else level - 1)

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(repr(self))}</pre>"
