"""What editors and type checkers know of async variants: arguments with their names and defaults, and results.

No test module: nothing here runs (see `public_surface.py`). `async_variant` passes the parameters of the function on as a
`ParamSpec`, so that a wrong name, a missing argument and a wrong type are refused as for the function itself.
"""

from __future__ import annotations

from typing import assert_type

import tessarr
from tessarr import Array, Group
from tessarr.storage import MemoryStore, Store


async def functions(place: Store) -> None:
    assert_type(await tessarr.open_array_async("data.zarr", mode="r"), Array)
    assert_type(await tessarr.open_async(place), Array | Group)
    assert_type(await tessarr.open_group_async(store=place, attributes={"title": "x"}), Group)
    assert_type(await tessarr.create_array_async({}, shape=(2, 3), dtype="f4", chunks=(1, 3)), Array)
    assert_type(await tessarr.zeros_async((3, 4), dtype="u1", store=MemoryStore()), Array)
    await tessarr.zeros_async((3,), chunk=(1,))  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await tessarr.open_array_async(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    _ = tessarr.open_async(place).attrs  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]


async def methods(group: Group, array: Array) -> None:
    assert_type(await group.create_array_async("c", shape=(1,), dtype="i1"), Array)
    assert_type(await group.require_group_async("a/b"), Group)
    assert_type(await group.getitem_async("a"), Array | Group)
    assert_type(await group.get_array_async("a/b"), Array)
    assert_type(await group.contains_async("a"), bool)
    await group.update_attributes_async({"units": "K"})
    await group.create_array_async()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await group.create_array_async("c", shapes=(1,))  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await group.require_group_async(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await array.attrs.update_async({"units": "K"})
    await array.attrs.put_async(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
