"""The ``transpose`` codec: permute the axes of a chunk.

Source: Zarr v3.1, "Transpose codec". ``order`` is a permutation of the axes; axis i of the encoded chunk is axis
``order[i]`` of the decoded one. Before its acceptance the specification also had the constants ``"C"`` and ``"F"``;
they are read (with a warning; not with the setting ``strict``) and never written.

>>> TransposeCodec.from_json({"order": [1, 0]}).to_json()
{'name': 'transpose', 'configuration': {'order': [1, 0]}}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from tessarr.codecs.base import ArrayToArray, ChunkSpec
from tessarr.errors import CodecError, MetadataValidationError, Problem
from tessarr.settings import is_strict
from tessarr.types import JSON, AnyArray, JSONObject


@dataclass(frozen=True, slots=True)
class TransposeCodec(ArrayToArray):
    """Permute axes."""

    name = "transpose"
    order: tuple[int, ...] | str
    """The permutation, or a legacy constant "C" or "F" out of a stored document."""

    def __post_init__(self) -> None:
        axes = _axes(self.order)
        if isinstance(axes, Problem):
            raise MetadataValidationError("invalid transpose codec", [axes], codec="transpose")
        object.__setattr__(self, "order", axes)

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        problems = [
            Problem((name,), "unknown", "unknown member of the transpose codec")
            for name in configuration
            if name != "order"
        ]
        order = configuration.get("order")
        if "order" not in configuration:
            problems.append(Problem(("order",), "missing", "the order is required"))
        elif order in ("C", "F"):
            if is_strict():
                problems.append(Problem(("order",), "strict", _legacy_constant(order)))
        elif isinstance(axes := _axes(order), Problem):
            problems.append(axes)
        if problems:
            raise MetadataValidationError("invalid transpose codec", problems)
        if not isinstance(order, str):
            return cls(order)  # type: ignore[arg-type]
        legacy = cls(())
        object.__setattr__(legacy, "order", order)  # the constructor refuses what is read, but never written
        return legacy

    @property
    def diagnostics(self) -> tuple[str, ...]:
        return (f"transpose order {_legacy_constant(self.order)}",) if isinstance(self.order, str) else ()

    def to_json(self) -> JSONObject:
        order: JSON = self.order if isinstance(self.order, str) else list(self.order)
        return {"name": "transpose", "configuration": {"order": order}}

    def fit(self, spec: ChunkSpec) -> Self:
        """Replace a legacy constant by the permutation it means."""
        return type(self)(self.permutation(len(spec.shape)))

    def permutation(self, ndim: int) -> tuple[int, ...]:
        """Return the order as axis numbers. Raises `CodecError` when it does not fit `ndim` axes."""
        if isinstance(self.order, str):
            axes = range(ndim)
            return tuple(axes if self.order == "C" else reversed(axes))
        if len(self.order) != ndim:
            raise CodecError(
                "the transpose order does not fit the chunk",
                codec="transpose",
                expected=f"{ndim} axes",
                got=list(self.order),
            )
        return self.order

    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        order = self.permutation(len(spec.shape))
        return spec.with_(shape=tuple(spec.shape[axis] for axis in order))

    def encode(self, chunk: AnyArray, spec: ChunkSpec) -> AnyArray:
        """Return a transposed view of `chunk`."""
        return chunk.transpose(self.permutation(chunk.ndim))

    def decode(self, chunk: AnyArray, spec: ChunkSpec) -> AnyArray:
        """Return `chunk` with the permutation undone, as a view."""
        order = self.permutation(chunk.ndim)
        inverse = sorted(range(chunk.ndim), key=order.__getitem__)
        return chunk.transpose(inverse)


def _axes(order: object) -> tuple[int, ...] | Problem:
    """Return the permutation that `order` states, or what is wrong with it."""
    given = [*order] if isinstance(order, Iterable) and not isinstance(order, str) else [None]
    integers = [a for a in given if isinstance(a, int | np.integer) and not isinstance(a, bool)]
    if len(integers) < len(given):
        return Problem(("order",), "type", f"must be a list of integers, got {order!r}")
    if sorted(integers) != list(range(len(integers))):
        return Problem(("order",), "value", f"must be a permutation of 0..n-1, got {order!r}")
    return tuple(int(a) for a in integers)


def _legacy_constant(order: object) -> str:
    return f"{order!r} is a legacy constant from before Zarr v3 was accepted; an order is a list of axes"
