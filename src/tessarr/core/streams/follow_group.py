"""Follow several arrays of a group together, up to their common length."""

from __future__ import annotations

from collections.abc import Sequence

from tessarr.core.array import Array
from tessarr.core.array_parts.read_many import read_many, read_many_async
from tessarr.core.asynchronous.sans_io import steps_of
from tessarr.core.group_parts.members import Members
from tessarr.core.streams.follow import Follower
from tessarr.types import AnyArray


class GroupFollower(Follower[dict[str, AnyArray]]):
    """The follower of several arrays: blocks are dictionaries from names to NumPy arrays."""

    def _read(self, rows: slice) -> dict[str, AnyArray]:
        return dict(zip(self._sources, read_many(self._selections(rows)), strict=True))

    async def _read_async(self, rows: slice) -> dict[str, AnyArray]:
        return dict(zip(self._sources, await read_many_async(self._selections(rows)), strict=True))


async def members_steps(group: Members, names: Sequence[str]) -> dict[str, Array]:
    """Open the arrays `names` of `group`. Raises `KeyError` for a missing member, `ValueError` for a group or no name."""
    if isinstance(names, str) or not names:
        raise ValueError(f"follow takes a list of at least one array's name, got {names!r}")
    arrays: dict[str, Array] = {}
    for name in names:
        node = await steps_of(Members.__getitem__)(group, name)
        if not isinstance(node, Array):
            raise ValueError(f"only arrays can be followed, and {name!r} is a group")
        arrays[name] = node
    return arrays
