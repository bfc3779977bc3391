"""Compare the structure, and on request the values, of two hierarchies."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tessarr import model
from tessarr.core.locate import locate
from tessarr.core.notebook.bar import shows_progress
from tessarr.errors import TessarrError
from tessarr.model.comparison import Difference
from tessarr.model.node import GroupSpec
from tessarr.stores.url import StoreLike
from tessarr.tools.digest import blocks
from tessarr.tools.transfer import same_value, values_in
from tessarr.types import AnyArray, JSONObject, Progress


@dataclass(frozen=True, slots=True)
class ValueDifference:
    """Describe an array whose values differ between two hierarchies."""

    path: str
    count: int
    """Number of elements that differ."""
    size: int
    """Number of elements of the array."""
    first: tuple[int, ...] | None
    """Index of the first different element in C order; ``None`` when the arrays could not be compared."""
    message: str

    def to_json(self) -> JSONObject:
        """Return the difference as a JSON object."""
        first = None if self.first is None else list(self.first)
        return {"path": self.path, "count": self.count, "size": self.size, "first": first, "message": self.message}

    def __str__(self) -> str:
        return f"/{self.path}: {self.message}"


@dataclass(slots=True)
class Diff:
    """List the differences between two hierarchies."""

    a: str
    b: str
    structure: list[Difference] = field(default_factory=list)
    values: list[ValueDifference] = field(default_factory=list)
    compared_values: bool = False

    @property
    def equal(self) -> bool:
        """Whether there is no difference."""
        return not self.structure and not self.values

    def to_json(self) -> JSONObject:
        """Return the differences as a JSON object."""
        return {
            "a": self.a,
            "b": self.b,
            "equal": self.equal,
            "compared_values": self.compared_values,
            "structure": [item.to_json() for item in self.structure],
            "values": [item.to_json() for item in self.values],
        }

    def __str__(self) -> str:
        if self.equal:
            return f"{self.a} and {self.b} are equal" + ("" if self.compared_values else " in structure")
        return "\n".join([f"{self.a} → {self.b}", *(f"  {item}" for item in [*self.structure, *self.values])])


@shows_progress()
def diff(
    a: StoreLike,
    b: StoreLike,
    *,
    data: bool = False,
    ignore: Collection[str] = (),
    path_a: str = "",
    path_b: str = "",
    progress: Progress | None = None,
) -> Diff:
    """List every difference between two hierarchies (stores, paths, URLs, or opened arrays and groups).

    Hierarchies of different formats are compared after conversion to v3. `ignore` names document members to ignore, as in
    `tessarr.model.equal` ("codecs", "chunks", "attributes", …). With `data` the values of every array that both have are
    compared bit for bit, block by block.

    Raises `NodeNotFoundError`, and `MetadataValidationError` when v3 cannot express a v2 hierarchy.
    """
    place_a, path_a, _ = locate(a, path_a, "r")
    place_b, path_b, _ = locate(b, path_b, "r")
    spec_a = model.from_store(place_a, path_a, use_consolidated=False)
    spec_b = model.from_store(place_b, path_b, use_consolidated=False)
    if spec_a.zarr_format != spec_b.zarr_format:
        spec_a, spec_b = model.to_v3(spec_a).spec, model.to_v3(spec_b).spec
    result = Diff(place_a.url, place_b.url, model.diff(spec_a, spec_b, ignore=ignore), compared_values=data)
    if data:
        both = [path for path, node in model.flatten(spec_a).items() if not isinstance(node, GroupSpec)]
        both = [path for path in both if path == "" or (isinstance(spec_b, GroupSpec) and path in spec_b)]
        for number, path in enumerate(both):
            if progress:
                progress(number, len(both), f"/{path}")
            found = _values(_open(place_a, path_a, path), _open(place_b, path_b, path), path)
            if found is not None:
                result.values.append(found)
    return result


def _open(store: StoreLike, base: str, path: str) -> Any:
    from tessarr.core.open import open as open_node

    return open_node(store, path="/".join(filter(None, (base, path))), mode="r")


def _values(a: object, b: object, path: str) -> ValueDifference | None:
    from tessarr.core.array import Array

    if not (isinstance(a, Array) and isinstance(b, Array)):
        return None  # reported as a difference of structure
    if a.shape != b.shape:
        return ValueDifference(path, 0, a.size, None, f"shapes {a.shape} and {b.shape} cannot be compared")
    count, first = 0, None
    try:
        for box in blocks(a.shape):
            differing = np.argwhere(~equal_elements(values_in(a, box), values_in(b, box)))
            if len(differing) and first is None:
                start = tuple(part.start for part in box)
                first = tuple(int(i) + s for i, s in zip(differing[0], start, strict=True))
            count += len(differing)
    except TessarrError as error:
        return ValueDifference(path, 0, a.size, None, f"cannot be compared: {error}")
    if first is None:
        return None
    message = f"{count} of {a.size} elements differ, the first at {first}: {a[first]!r} → {b[first]!r}"
    return ValueDifference(path, count, a.size, first, message)


def equal_elements(a: AnyArray, b: AnyArray) -> npt.NDArray[np.bool_]:
    """Compare two arrays of one shape element by element, bit for bit (text: the same text); returns booleans.

    >>> equal_elements(np.array([0.0, np.nan, 1]), np.array([-0.0, np.nan, 1]))
    array([False,  True,  True])
    """
    if a.dtype.kind in "OTU" or b.dtype.kind in "OTU" or a.dtype.kind != b.dtype.kind:
        pairs = zip(a.reshape(-1).tolist(), b.reshape(-1).tolist(), strict=True)
        return np.array([same_value(one, other) for one, other in pairs], bool).reshape(a.shape)
    if a.dtype.itemsize == 0 or a.dtype.newbyteorder("=") != b.dtype.newbyteorder("="):
        return np.asarray(a == b)
    raw = np.dtype((np.void, a.dtype.itemsize))
    native = np.ascontiguousarray(a, a.dtype.newbyteorder("=")).reshape(a.shape)
    other_native = np.ascontiguousarray(b, b.dtype.newbyteorder("=")).reshape(b.shape)
    return np.asarray(native.view(raw).reshape(a.shape) == other_native.view(raw).reshape(a.shape))
