"""Fuzz what the library writes: arrays through both engines, and the manifests of plans. Members of `fuzz_targets.TARGETS`."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from itertools import islice
from math import prod
from typing import Any

import numpy as np
from fuzz_members import Member, Target, damage_json, most_nbytes

import tessarr
from tessarr.plan.manifest import Manifest

_LARGEST_NBYTES = 1 << 18
"""Bytes of an array that is written."""


def written() -> Target:
    """Fuzz round trips from engine to engine, and manifests of plans."""
    engines = ("native", "reference")
    trips = {f"{one}-to-{other}": _round_trips(one, other) for one, other in (engines, engines[::-1])}
    return Target({**trips, "plans": _plans()}, {})


def _layouts() -> Iterator[dict[str, Any]]:
    """Yield arrays as JSON: arguments of `create_array`, a seed of the values, and boxes to write after the whole."""
    common: dict[str, Any] = {"shape": [7, 9], "chunks": [3, 4], "dtype": "<i4", "fill_value": 0, "zarr_format": 3}
    boxes = [[[0, 3], [0, 4]], [[2, 5], [3, 9]]]
    for compressors in ("auto", None, [{"name": "gzip", "configuration": {"level": 1}}], [{"name": "crc32c"}]):
        yield {"create": {**common, "compressors": compressors}, "values": 1, "boxes": boxes}
    for dtype in ("<f8", ">u2", "bool", "<c8", "<M8[s]"):
        yield {"create": {**common, "dtype": dtype, "fill_value": None}, "values": 2, "boxes": boxes}
    sharded = {"shape": [8, 8], "chunks": [2, 2], "shards": [4, 8]}
    for extra in ({}, {"order": "F"}, {"serializer": {"name": "bytes", "configuration": {"endian": "big"}}}):
        yield {"create": {**common, **sharded, **extra}, "values": 3, "boxes": boxes}
    version_2 = {"zarr_format": 2, "order": "F", "filters": [{"id": "delta", "dtype": "<i4"}]}
    yield {"create": {**common, **version_2}, "values": 4, "boxes": boxes}
    yield {"create": {**common, "shape": [], "chunks": []}, "values": 5, "boxes": [[]]}


def _round_trips(writes: str, reads: str) -> Member:
    """Write by one engine what the input describes, and read it by the other one: values must be equal.

    What `create_array` refuses, by whatever error, is no array.
    """

    def run(data: bytes) -> None:
        try:
            layout = json.loads(data)
            create, seed, boxes = dict(layout["create"]), int(layout["values"]) % 2**32, list(layout["boxes"])
            if prod(int(n) for n in create["shape"]) > _LARGEST_NBYTES // 16:
                return
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            return
        with tempfile.TemporaryDirectory(prefix="tessarr-fuzz-") as folder:
            try:
                array: Any = tessarr.create_array(folder, **create)
            except Exception:
                return
            if most_nbytes(array) > _LARGEST_NBYTES or array.nchunks > 10_000 or array.dtype.hasobject:
                return
            _compare(folder, array, writes, reads, np.random.default_rng(seed), boxes)

    seeds = [json.dumps(layout).encode() for layout in _layouts()]
    return Member(seeds, run, damage_json)


def _compare(folder: str, array: Any, writes: str, reads: str, rng: np.random.Generator, boxes: list[Any]) -> None:
    def values(shape: tuple[int, ...]) -> Any:
        if array.dtype == bool:
            return rng.random(shape) < 0.5
        found = np.frombuffer(rng.bytes(prod(shape) * array.dtype.itemsize), array.dtype).reshape(shape)
        return np.where(rng.random(shape) < 0.5, found, np.zeros((), array.dtype))

    expected = np.array(array[...])
    with tessarr.config.set({"engine": writes}):
        array = tessarr.open_array(folder, mode="r+")
        for box in ([slice(None)] * array.ndim, *_boxes(boxes, array.shape)):
            new = values(expected[tuple(box)].shape)
            array[tuple(box)] = new
            expected[tuple(box)] = new
    for engine in (reads, writes):
        with tessarr.config.set({"engine": engine}):
            found = np.asarray(tessarr.open_array(folder, mode="r")[...])
        if found.tobytes() != expected.tobytes():
            raise AssertionError(f"written by the engine {writes}, read by {engine}: other values")


def _boxes(boxes: list[Any], shape: tuple[int, ...]) -> Iterator[list[slice]]:
    for box in islice(boxes, 4):
        try:
            yield [slice(int(a) % (n + 1), int(b) % (n + 1)) for (a, b), n in zip(box, shape, strict=True)]
        except (ValueError, TypeError, OverflowError):
            return


def _plans() -> Member:
    """Fuzz manifests: parsed, and asked where tasks write."""
    seeds = []
    with tempfile.TemporaryDirectory(prefix="tessarr-fuzz-") as folder:
        for name, shards in (("a", None), ("b", (4, 4))):
            tessarr.create_array(folder, name=f"g/{name}", data=np.zeros((8, 8), "u2"), chunks=(2, 2), shards=shards)
            plan = tessarr.plan.rechunk(f"{folder}/g/{name}", f"{folder}/{name}-new", chunks=(8, 1), memory="1MB")
            seeds.append(plan._manifest.dumps())
        pyramid = tessarr.plan.pyramid(f"{folder}/g", "a", levels=2)
        seeds.append(pyramid._manifest.dumps())

    def run(data: bytes) -> None:
        manifest = Manifest.loads(data, where="plan.json")
        for task in islice(range(manifest.tasks), 20):
            manifest.locate(task)
        for block in islice(range(manifest.blocks), 20):
            manifest.locate_block(block)

    return Member(seeds, run, damage_json)
