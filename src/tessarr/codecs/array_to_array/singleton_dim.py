"""The ``singleton_dim`` codec: insert or remove axes of length 1.

Source: zarr-extensions pull request 58 (proposed). v3 name ``singleton_dim``; no v2 id. zarrs has ``zarrs.squeeze``, which
removes all axes of length 1.

>>> codec = SingletonDimCodec.from_json({"operations": [{"insert": 0}, {"remove": 3}]})
>>> codec.output_shape((4, 5, 1))
(1, 4, 5)

Operations are applied from left to right, each to the shape that the previous one gave.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Self, TypeAlias

import numpy as np

from tessarr.codecs.base import ArrayToArray, ChunkSpec
from tessarr.codecs.members import check_members, read_members
from tessarr.errors import CodecError
from tessarr.types import JSON, AnyArray, JSONObject, Shape

Operation: TypeAlias = tuple[Literal["insert", "remove"], int]
_MOST = 64
"""NumPy's limit on the number of axes."""


def _check_operations(value: object) -> str | None:
    if not isinstance(value, list | tuple) or len(value) > 2 * _MOST:
        return f"must be a list of at most {2 * _MOST} operations, got {value!r}"
    for item in value:
        pairs = list(item.items()) if isinstance(item, Mapping) else []
        if len(pairs) != 1 or pairs[0][0] not in ("insert", "remove"):
            return f"must hold objects with one member, insert or remove; got {item!r}"
        if type(pairs[0][1]) is not int or not 0 <= pairs[0][1] < _MOST:
            return f"axes must be integers, not negative and below {_MOST}; got {item!r}"
    return None


_CHECKS = {"operations": _check_operations}


@dataclass(frozen=True, slots=True)
class SingletonDimCodec(ArrayToArray):
    """Insert and remove axes of length 1; a view where the memory layout allows it."""

    name = "singleton_dim"
    operations: tuple[Operation, ...] = ()
    """``("insert", axis)`` and ``("remove", axis)``."""

    def __post_init__(self) -> None:
        pairs = tuple((kind, axis) for kind, axis in self.operations)
        check_members(self.name, {"operations": [{kind: axis} for kind, axis in pairs]}, _CHECKS)
        object.__setattr__(self, "operations", pairs)

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        members = read_members(cls.name, configuration, _CHECKS, required=("operations",))
        return cls(tuple(pair for item in members["operations"] for pair in item.items()))

    def to_json(self) -> JSONObject:
        return {"name": self.name, "configuration": {"operations": [{kind: axis} for kind, axis in self.operations]}}

    def output_shape(self, shape: Shape) -> Shape:
        """Compute the shape of the output for an input of `shape`. Raises `CodecError` when an operation does not
        fit.
        """
        sizes = list(shape)
        for kind, axis in self.operations:
            if kind == "insert" and axis <= len(sizes):
                sizes.insert(axis, 1)
            elif kind == "remove" and axis < len(sizes) and sizes[axis] == 1:
                del sizes[axis]
            else:
                expected = "an axis of length 1" if kind == "remove" else f"at most {len(sizes)}"
                got = f"{kind} {axis} of shape {tuple(sizes)}"
                raise CodecError("singleton_dim does not fit the chunk", codec=self.name, expected=expected, got=got)
        return tuple(sizes)

    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        return spec.with_(shape=self.output_shape(spec.shape))

    def encode(self, chunk: AnyArray, spec: ChunkSpec) -> AnyArray:
        return np.reshape(chunk, self.output_shape(spec.shape))

    def decode(self, chunk: AnyArray, spec: ChunkSpec) -> AnyArray:
        return np.reshape(chunk, spec.shape)


@dataclass(frozen=True, slots=True)
class SqueezeCodec(ArrayToArray):
    """``zarrs.squeeze``: remove all axes of length 1, but keep one where there are no others."""

    name = "zarrs.squeeze"

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        read_members(cls.name, configuration, {})
        return cls()

    def to_json(self) -> JSONObject:
        return {"name": self.name, "configuration": {}}

    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        return spec.with_(shape=tuple(n for n in spec.shape if n != 1) or (1,))

    def encode(self, chunk: AnyArray, spec: ChunkSpec) -> AnyArray:
        return np.reshape(chunk, self.encoded_spec(spec).shape)

    def decode(self, chunk: AnyArray, spec: ChunkSpec) -> AnyArray:
        return np.reshape(chunk, spec.shape)
