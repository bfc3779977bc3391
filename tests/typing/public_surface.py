"""The public surface as its users write it, for pyright and mypy: what is accepted, what is known of results.

No test module: nothing here runs. A line that must be refused has an ignore comment for each, and both report one without need.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import assert_type

import numpy as np

import tessarr
from tessarr import Array, Group
from tessarr.storage import LocalStore, MemoryStore
from tessarr.types import AnyDType, Shape


def created_arrays() -> None:
    assert_type(tessarr.create_array({}, shape=(2, 3), dtype="f4", chunks=(1, 3), compressors="gzip"), Array)
    assert_type(
        tessarr.create_array("data.zarr", name="a", data=np.arange(6), shards=(6,), attributes={"units": "K"}), Array
    )
    assert_type(
        tessarr.create_array(Path("data.zarr"), shape=10, dtype=np.dtype("i2"), filters=[{"name": "delta"}]), Array
    )
    assert_type(tessarr.zeros((3, 4), dtype="u1", chunks=(3, 2), store=MemoryStore()), Array)
    assert_type(tessarr.full(5, 1.5, dtype="f8", zarr_format=2, compressor={"id": "zlib", "level": 1}), Array)
    assert_type(tessarr.array([[1, 2], [3, 4]], chunks=(1, 2)), Array)
    tessarr.create_array({}, shape="wide", dtype="f4")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    tessarr.zeros((3,), chunk=(1,))  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    tessarr.open(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def opened() -> None:
    assert_type(tessarr.open("data.zarr", mode="r"), Array | Group)
    assert_type(tessarr.open_array(LocalStore("data.zarr")), Array)
    group = tessarr.open_group("data.zarr", attributes={"title": "x"}, storage_options={"anon": True})
    assert_type(group, Group)
    assert_type(group["a"], Array | Group)
    assert_type(group.get_array("a/b"), Array)
    assert_type(group.create_array("c", shape=(1,), dtype="i1"), Array)
    assert_type(group.zeros("d", shape=(1,), dtype="i1", chunks=(1,)), Array)
    assert_type(group.keys(), Iterator[str])


def read_and_written(array: Array) -> None:
    assert_type(array.shape, Shape)
    assert_type(array.dtype, AnyDType)
    for selection in (0, slice(None), ..., (0, ...), [1, 2], np.array([True, False]), "field"):
        array[selection] = array[selection]
    array[1:5, ::2].mean(axis=0)
    array.oindex[[0, 1], :].reshape(-1)
    array.write((0, slice(3)), [1, 2, 3])
    assert_type(array.append([1, 2]), Shape)
    array[{"x": 1}]  # type: ignore[index]  # pyright: ignore[reportArgumentType]


async def awaited(array: Array) -> None:
    (await array.read_async((0, ...))).sum()
    await array.write_async(..., 0)
