"""What simulated clients do, continued: rows over time, copies and conversions, plans, and what xarray and dask write.

Values say who wrote them, and where they come from: `expected` judges by them, without the library. See `operations`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import cache
from types import SimpleNamespace
from typing import Any, Self

import dask.array
import numpy as np
import xarray

import tessarr
import tessarr.dask
import tessarr.plan
import tessarr.xarray
from tessarr.core.stored.consolidated import follow_changes
from tessarr.core.stored.move import copy_key
from tessarr.core.streams import follow as following
from tessarr.errors import BaseZarrError, CopyError
from tessarr.plan import executors
from tessarr.tools.convert import convert
from tests.simulation.operations import CHUNK, Operation, _open
from tests.simulation.simulator import replaced

LOOKS = 4
"""How often a reader that follows an array looks for another block."""


def make_dataset(store: Any, zarr_format: Any) -> None:
    """Store the dataset that clients find where they use xarray: two variables along ``t`` with equal values."""
    tessarr.xarray.to_zarr(_rows(-1, -2, -3, -4), store, group="x", zarr_format=zarr_format, consolidated=False)


def _rows(*values: int) -> xarray.Dataset:
    column = ("t", np.array(values, "i4"))
    return xarray.Dataset({"v": column}, coords={"t": column})


# -- rows over time --------------------------------------------------------------------------------------------------------


def rows_of(number: int) -> list[int]:
    """The rows that `appender` appends."""
    return [100 * number + row for row in range(5)]


def appender(store: Any, number: int) -> Generator[None, None, Any]:
    """Append rows in three batches: one that is full, one that is flushed, and one at the end of the block."""
    array, rows = _open(store, "a"), np.array(rows_of(number), "i4")
    yield
    with tessarr.appender(array, batch=2) as out:
        out.append(rows[0:1])
        out.append(rows[1:3])
        yield
        out.append(rows[3:4])
        shape = out.flush()
        yield
        out.append(rows[4:5])
    return shape


def follow(store: Any, number: int) -> Generator[None, None, Any]:
    """Take a few blocks of an array, none of which is in two chunks."""
    rows = tessarr.open_array(store, path="a", mode="r").follow(timeout=0, max_rows=2)
    found = []
    for _ in range(LOOKS):
        yield
        block = next(rows, None)
        found += [] if block is None else [(block[0].start, block[0].stop, block[1].tolist())]
    return found


def follow_together(store: Any, number: int) -> Generator[None, None, Any]:
    """Take a few blocks of two arrays up to their common length."""
    rows = tessarr.open_group(store, path="x", mode="r").follow(["t", "v"], timeout=0, max_rows=2)
    found = []
    for _ in range(LOOKS):
        yield
        block = next(rows, None)
        found += (
            [] if block is None else [(block[0].start, block[0].stop, *(one.tolist() for one in block[1].values()))]
        )
    return found


# -- copies, conversions and plans -------------------------------------------------------------------------------------------


@cache
def _source(number: int, zarr_format: Any) -> Any:
    """A group of which all values are `number`, and say so in their attributes."""
    group = tessarr.group({}, zarr_format=zarr_format, attributes={"from": number})
    group.create_array("s", data=np.full(6, number, "i4"), chunks=(CHUNK,), fill_value=0, attributes={"from": number})
    return group


def _to_copy(store: Any, number: int) -> Any:
    return _source(number, tessarr.open_group(store, mode="r").metadata.zarr_format)


def copy_keys(store: Any, number: int) -> Generator[None, None, Any]:
    """Copy keys to a path that is free."""
    source = _to_copy(store, number)
    yield
    tessarr.copy_store(source.store, store, dest_path="n")


def copy_keys_over(store: Any, number: int) -> Generator[None, None, Any]:
    """Copy keys over those of an array."""
    source = _to_copy(store, number)
    yield
    tessarr.copy_store(source.store, store, source_path="s", dest_path="a", if_exists="replace")


def copy_new(store: Any, number: int) -> Generator[None, None, Any]:
    """Copy an array to a path that is free."""
    source, root = _to_copy(store, number), tessarr.open_group(store, mode="r+")
    yield
    tessarr.copy(source["s"], root, "n")


def copy_over(store: Any, number: int) -> Generator[None, None, Any]:
    """Replace an array by a copy."""
    source, root = _to_copy(store, number), tessarr.open_group(store, mode="r+")
    yield
    tessarr.copy(source["s"], root, "a", if_exists="replace")


def convert_new(store: Any, number: int) -> Generator[None, None, Any]:
    """Convert a hierarchy to a path that is free."""
    source = _to_copy(store, number)
    yield
    convert(source, store, path="n", zarr_format="keep")


def convert_over(store: Any, number: int) -> Generator[None, None, Any]:
    """Replace an array by the result of a conversion."""
    source = _to_copy(store, number)
    yield
    convert(source["s"], store, path="a", zarr_format="keep", overwrite=True)


def plan_new(store: Any, number: int) -> Generator[None, None, Any]:
    """Carry out a plan whose target is free."""
    source = _to_copy(store, number)
    yield
    tessarr.plan.copy(source, store, path="n").run()


def plan_over(store: Any, number: int) -> Generator[None, None, Any]:
    """Carry out a plan that replaces an array."""
    source = _to_copy(store, number)
    yield
    tessarr.plan.rechunk(source["s"], store, path="a", chunks=(2,), overwrite=True).run()


def plan_shared(store: Any, number: int) -> Generator[None, None, Any]:
    """Carry out a plan that other clients carry out too; the first one saves it."""
    place = os.path.join(os.path.dirname(store.root), "plan")
    yield
    with suppress(BaseZarrError):  # another client has saved its plan
        tessarr.plan.rechunk(tessarr.open_array(store, path="g/b", mode="r"), store, path="p", chunks=(2,)).save(place)
    yield
    tessarr.plan.load(place).run()


# -- xarray and dask ---------------------------------------------------------------------------------------------------------


def xarray_create(store: Any, number: int) -> Generator[None, None, Any]:
    """Write a dataset to a group that is not there."""
    zarr_format: Any = tessarr.open_group(store, mode="r").metadata.zarr_format
    yield
    tessarr.xarray.to_zarr(_rows(number, number), store, group="y", mode="w-", zarr_format=zarr_format)


def xarray_append(store: Any, number: int) -> Generator[None, None, Any]:
    """Append rows to a dataset."""
    yield
    tessarr.xarray.to_zarr(_rows(number, number + 1), store, group="x", append_dim="t")


def xarray_region(store: Any, number: int) -> Generator[None, None, Any]:
    """Write a region of a variable, within a chunk."""
    yield
    tessarr.xarray.to_zarr(_rows(number, number).drop_vars("t"), store, group="x", region={"t": slice(1, 3)})


def tx_xarray_append(store: Any, number: int) -> Generator[None, None, Any]:
    """Append rows to a dataset in a transaction."""
    yield
    with tessarr.transaction(store) as tx:
        tessarr.xarray.to_zarr(_rows(number, number + 1), tx.group.store, group="x", append_dim="t")


def tx_xarray_region(store: Any, number: int) -> Generator[None, None, Any]:
    """Write a region of both variables in a transaction."""
    yield
    with tessarr.transaction(store) as tx:
        tessarr.xarray.to_zarr(_rows(number, number), tx.group.store, group="x", region={"t": slice(1, 3)})


def dask_store(store: Any, number: int) -> Generator[None, None, Any]:
    """Store blocks that are not aligned to chunks; each call those of one chunk."""
    array = _open(store, "a")
    for region in (slice(1, CHUNK), slice(CHUNK, 6)):
        yield
        blocks = dask.array.full(region.stop - region.start, number, chunks=1, dtype="i4")
        tessarr.dask.store(blocks, array, region=region, scheduler="synchronous")


def dask_shard(store: Any, number: int) -> Generator[None, None, Any]:
    """Store blocks of a part of a shard."""
    array = _open(store, "g/b")
    yield
    blocks = dask.array.full(5, number, chunks=2, dtype="i4")
    tessarr.dask.store(blocks, array, region=slice(2, 7), scheduler="synchronous")


# -- nodes and attributes ----------------------------------------------------------------------------------------------------


def rename(store: Any, number: int) -> Generator[None, None, Any]:
    """Move a group with what is in it to where others create nodes."""
    root = tessarr.open_group(store, mode="r+")
    yield
    root.move("g", "n")


def put_attributes(store: Any, number: int) -> Generator[None, None, Any]:
    """Replace all attributes of an array."""
    array = _open(store, "a")
    yield
    array.attrs.put({"only": number})


def delete_attribute(store: Any, number: int) -> Generator[None, None, Any]:
    """Delete an attribute of the root, which others set."""
    root = tessarr.open_group(store, mode="r+")
    yield
    del root.attrs["title"]


# -- what of that is not done at once ------------------------------------------------------------------------------------------


def _copied_in_steps(path: str, *, overwrite: bool) -> Operation:
    def copied(store: Any, number: int) -> Generator[None, None, Any]:
        """Create an array, then write its chunks."""
        source, root = _to_copy(store, number)["s"], tessarr.open_group(store, mode="r+")
        yield
        if path in root and not overwrite:
            raise CopyError("an array exists at the destination")
        array = root.create_array(
            path, shape=source.shape, chunks=source.chunks, dtype="i4", overwrite=overwrite, fill_value=0,
            attributes=source.attrs.asdict(), dimension_names=None,
        )  # fmt: skip
        for chunk in (slice(0, CHUNK), slice(CHUNK, 6)):
            yield
            array[chunk] = number

    return copied


def _keys_in_steps(source_path: str, path: str, *, overwrite: bool) -> Operation:
    def copied(store: Any, number: int) -> Generator[None, None, Any]:
        """Copy one key after the other."""
        source = _to_copy(store, number).store
        yield
        keys = {key: f"{path}/{key.removeprefix(source_path)}" for key in sorted(source.list_prefix(source_path))}
        if not overwrite and any(store.exists(key) for key in keys.values()):
            raise CopyError("keys exist at the destination")
        for key, new_key in keys.items():
            copy_key(source, key, store, new_key, overwrite=overwrite, keys=keys)
            yield
        follow_changes(store, [path, f"{path}/s"])

    return copied


def _xarray_append_in_steps(store: Any, number: int) -> Generator[None, None, Any]:
    """Extend the two variables, then write their rows."""
    yield
    for name in ("v", "t"):
        array = _open(store, f"x/{name}")
        stop = len(array) + 2
        array.resize((stop,))
        yield
        array[stop - 2 : stop] = (number, number + 1)
        yield
    tessarr.consolidate_metadata(store)


IN_STEPS: dict[Operation, Operation] = {
    copy_new: _copied_in_steps("n", overwrite=False),
    copy_over: _copied_in_steps("a", overwrite=True),
    copy_keys: _keys_in_steps("", "n", overwrite=False),
    copy_keys_over: _keys_in_steps("s/", "a", overwrite=True),
    xarray_append: _xarray_append_in_steps,
}
"""Operations that are not promised to be there at once → the same in the steps between which others may come."""

DATASET = frozenset({"follow_together", "xarray_append", "xarray_region", "tx_xarray_append", "tx_xarray_region"})
"""Operations that need the dataset."""


# -- how the library runs them -----------------------------------------------------------------------------------------------


class _AtOnce:
    """In the place of the threads of a plan: carries out each task in the client's thread when it is submitted."""

    def __init__(self, count: int, name: str) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def submit(self, task: Callable[..., Any], *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(task(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future


@contextmanager
def repeatable() -> Generator[None]:
    """Make plans and followers independent of threads and of time, so that a schedule repeats a run."""
    stopped = SimpleNamespace(monotonic=lambda: 0.0)
    with replaced((executors, "_Threads", _AtOnce), (executors, "time", stopped), (following, "time", stopped)):
        yield
