"""The ``reshape`` codec: the elements of a chunk, in C order, under another shape.

Source: zarr-extensions, "reshape". v3 name ``reshape``; no v2 id.

>>> ReshapeCodec.from_json({"shape": [[0, 1], [2], 3]}).to_json()
{'name': 'reshape', 'configuration': {'shape': [[0, 1], [2], 3]}}

Each item of ``shape`` is a length, a list of axes of the input whose lengths are multiplied, or, once, −1 for the
remaining elements. Axes must be named in increasing order, and may be merged only where the elements keep their order.
The registered text lacks a colon in that rule (``prod(A_shape[input_dims[0]])``); it is read as ``[:input_dims[0]]``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Self, TypeAlias

import numpy as np

from tessarr.codecs.base import ArrayToArray, ChunkSpec
from tessarr.codecs.members import check_members, read_members
from tessarr.errors import CodecError
from tessarr.types import JSON, AnyArray, JSONObject, Shape

Item: TypeAlias = int | tuple[int, ...]


def _check_shape(value: object) -> str | None:
    if not isinstance(value, list | tuple):
        return f"must be a list, got {value!r}"
    axes: list[int] = []
    for item in value:
        if isinstance(item, list | tuple):
            if not all(type(axis) is int and axis >= 0 for axis in item):
                return f"axes must be non-negative integers, got {item!r}"
            axes += item
        elif type(item) is not int or (item < 1 and item != -1):
            return f"must hold positive integers, lists of axes, or -1; got {item!r}"
    if sum(item == -1 for item in value) > 1:
        return "may hold -1 only once"
    if any(left >= right for left, right in pairwise(axes)):
        return f"must name the axes of the input in increasing order, got {axes}"
    return None


_CHECKS = {"shape": _check_shape}


@dataclass(frozen=True, slots=True)
class ReshapeCodec(ArrayToArray):
    """Give the elements another shape; a view where the memory layout allows it."""

    name = "reshape"
    shape: tuple[Item, ...]
    """Length, axes of the input, or −1, for each axis of the output."""

    def __post_init__(self) -> None:
        check_members(self.name, {"shape": self.shape}, _CHECKS)
        items = (tuple(item) if isinstance(item, Sequence) else item for item in self.shape)
        object.__setattr__(self, "shape", tuple(items))

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        return cls(**read_members(cls.name, configuration, _CHECKS, required=("shape",)))

    def to_json(self) -> JSONObject:
        shape: JSON = [list(item) if isinstance(item, tuple) else item for item in self.shape]
        return {"name": self.name, "configuration": {"shape": shape}}

    def output_shape(self, shape: Shape) -> Shape:
        """Compute the shape of the output for an input of `shape`. Raises `CodecError` when the shapes do not fit."""
        sizes = [self._size(item, shape) for item in self.shape]
        if -1 in sizes:
            known = -prod(sizes)
            sizes[sizes.index(-1)] = prod(shape) // known if known else 0
        if prod(sizes) != prod(shape):
            raise self._error(shape, f"{prod(sizes)} elements")
        for axis, item in enumerate(self.shape):
            if isinstance(item, tuple) and item:
                before, after = prod(shape[: item[0]]), prod(shape[item[-1] + 1 :])
                if prod(sizes[:axis]) != before or prod(sizes[axis + 1 :]) != after:
                    raise self._error(shape, f"axes {list(item)} do not line up with axis {axis} of {tuple(sizes)}")
        return tuple(sizes)

    def _size(self, item: Item, shape: Shape) -> int:
        if isinstance(item, int):
            return item
        if item and item[-1] >= len(shape):
            raise self._error(shape, f"axis {item[-1]}")
        return prod(shape[axis] for axis in item)

    def _error(self, shape: Shape, got: str) -> CodecError:
        return CodecError(
            f"reshape to {list(self.shape)} does not fit the chunk",
            codec=self.name,
            expected=f"{prod(shape)} elements of shape {shape}",
            got=got,
        )

    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        return spec.with_(shape=self.output_shape(spec.shape))

    def encode(self, chunk: AnyArray, spec: ChunkSpec) -> AnyArray:
        return np.reshape(chunk, self.output_shape(spec.shape))

    def decode(self, chunk: AnyArray, spec: ChunkSpec) -> AnyArray:
        return np.reshape(chunk, spec.shape)
