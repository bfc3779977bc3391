"""Every top-level function as a coroutine that returns `AsyncArray` and `AsyncGroup`, as in zarr-python's module."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from functools import wraps
from typing import Any, ParamSpec

from tessarr.core import copy as _copy
from tessarr.core import open as _open
from tessarr.core.array import Array as Array
from tessarr.core.asynchronous.async_array import AsyncArray as AsyncArray
from tessarr.core.asynchronous.async_group import AsyncGroup as AsyncGroup
from tessarr.core.asynchronous.async_node import wrapped
from tessarr.core.creation import arrays as _arrays
from tessarr.core.creation import shorthands as _shorthands
from tessarr.core.group import Group as Group
from tessarr.stores.url import StoreLike

P = ParamSpec("P")


def _array(
    variant: Callable[P, Coroutine[object, object, Array]],
) -> Callable[P, Coroutine[object, object, AsyncArray]]:
    return _wrapping(variant)


def _group(
    variant: Callable[P, Coroutine[object, object, Group]],
) -> Callable[P, Coroutine[object, object, AsyncGroup]]:
    return _wrapping(variant)


def _wrapping(variant: Callable[P, Coroutine[object, object, object]]) -> Callable[P, Coroutine[object, object, Any]]:
    """Make a coroutine function that wraps the node that `variant` returns."""
    name = variant.__name__.removesuffix("_async")

    @wraps(variant)
    async def call(*args: P.args, **kwargs: P.kwargs) -> object:
        return wrapped(await variant(*args, **kwargs))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Call `tessarr.{name}` asynchronously; returns `AsyncArray` and `AsyncGroup`."
    return call


async def create_hierarchy(
    *, store: StoreLike, nodes: Mapping[str, object], overwrite: bool = False
) -> AsyncIterator[tuple[str, AsyncArray | AsyncGroup]]:
    """Create nodes as `tessarr.create_hierarchy` does; yields ``(path, AsyncArray | AsyncGroup)``."""
    for path, node in await _shorthands.create_hierarchy_async(store=store, nodes=nodes, overwrite=overwrite):
        yield path, wrapped(node)


array = _array(_shorthands.array_async)
consolidate_metadata = _group(_shorthands.consolidate_metadata_async)
copy = _copy.copy_async
copy_all = _copy.copy_all_async
copy_store = _copy.copy_store_async
create = _array(_arrays.create_async)
create_array = _array(_arrays.create_array_async)
create_group = _group(_open.create_group_async)
empty = _array(_shorthands.empty_async)
empty_like = _array(_shorthands.empty_like_async)
from_array = _array(_shorthands.from_array_async)
full = _array(_shorthands.full_async)
full_like = _array(_shorthands.full_like_async)
group = _group(_open.group_async)
load = _shorthands.load_async
ones = _array(_shorthands.ones_async)
ones_like = _array(_shorthands.ones_like_async)
open = _wrapping(_open.open_async)  # noqa: A001 - its name in zarr-python
open_array = _array(_open.open_array_async)
open_consolidated = _group(_open.open_consolidated_async)
open_group = _group(_open.open_group_async)
open_like = _array(_shorthands.open_like_async)
save = _shorthands.save_async
save_array = _shorthands.save_array_async
save_group = _shorthands.save_group_async
tree = _shorthands.tree_async
zeros = _array(_shorthands.zeros_async)
zeros_like = _array(_shorthands.zeros_like_async)

__all__ = [
    "Array",
    "Group",
    "array",
    "consolidate_metadata",
    "copy",
    "copy_all",
    "copy_store",
    "create",
    "create_array",
    "create_group",
    "create_hierarchy",
    "empty",
    "empty_like",
    "from_array",
    "full",
    "full_like",
    "group",
    "load",
    "ones",
    "ones_like",
    "open",
    "open_array",
    "open_consolidated",
    "open_group",
    "open_like",
    "save",
    "save_array",
    "save_group",
    "tree",
    "zeros",
    "zeros_like",
]
