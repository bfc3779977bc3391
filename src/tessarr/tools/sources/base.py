"""What a source of a foreign format describes: groups, and arrays that are read in boxes; and what readers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from tessarr.dtypes.base import VARIABLE_ITEMSIZE, DataType
from tessarr.dtypes.parse import from_numpy
from tessarr.errors import MissingDependencyError
from tessarr.types import AnyArray, AnyDType, Shape

Box: TypeAlias = tuple[slice, ...]
"""A slice with start and stop per axis."""


class Unset:
    """The type of `UNSET`."""

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset()
"""`SourceArray.fill_value` of a source without a fill value."""


@dataclass(slots=True, kw_only=True)
class SourceArray:
    """Describe one array of a source."""

    path: str
    """Path below the root of the source; "" when the source is one array."""
    shape: Shape
    dtype: type[str | bytes] | AnyDType | DataType
    """A dtype for `tessarr.create_array`: a NumPy dtype, `str`, `bytes`, or a tessarr `DataType`."""
    read: Callable[[Box], AnyArray]
    """Returns the values of a box."""
    chunks: Shape | None = None
    """Shape of the parts that the source reads as one; ``None`` when any part can be read alone."""
    fill_value: object = UNSET
    attributes: Mapping[str, object] = field(default_factory=dict)
    """Attributes with JSON values only."""
    dimension_names: tuple[str | None, ...] | None = None
    cf_fill: np.generic | None = None
    """The CF attribute ``_FillValue``, whose spelling depends on the Zarr format; a NumPy scalar."""
    keep: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of `new_array_metadata` from a Zarr source, such as codecs."""

    @property
    def itemsize(self) -> int:
        """Bytes per element, estimated for elements of varying size."""
        dtype = self.dtype.dtype if isinstance(self.dtype, DataType) else self.dtype
        return VARIABLE_ITEMSIZE if dtype in (str, bytes) else max(1, np.dtype(dtype).itemsize)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements, estimated for elements of varying size."""
        size = self.itemsize
        for length in self.shape:
            size *= length
        return size


@dataclass(slots=True, kw_only=True)
class SourceGroup:
    """Describe one group of a source."""

    path: str
    attributes: Mapping[str, object] = field(default_factory=dict)


class Source(Protocol):
    """Describe an opened source."""

    kind: str
    parallel: bool
    """Whether boxes may be read concurrently."""
    nodes: list[SourceArray | SourceGroup]
    """All nodes, parents before children; the first is the root."""
    notices: list[str]
    """Messages about parts that are left out or changed."""
    unsupported: list[tuple[str, str]]
    """Path and reason of every array that Zarr cannot hold."""

    def close(self) -> None:
        """Close the file."""


def ragged(dtype: AnyDType) -> DataType | None:
    """Return the type of rows of numbers of different lengths, which Zarr v2 can hold; ``None`` for other rows."""
    row = np.dtype(dtype)
    return from_numpy(object, object_codec=f"vlen-array:{row.newbyteorder('=').str}") if row.kind in "biufc" else None


def rows(values: AnyArray, dtype: npt.DTypeLike) -> AnyArray:
    """Make an array of such rows, of one dtype."""
    made = np.empty(values.shape, object)
    for at in np.ndindex(*values.shape):
        made[at] = np.asarray(values[at], np.dtype(dtype).newbyteorder("="))
    return made


def missing(package: str, what: str) -> MissingDependencyError:
    """Make the error that names the extra for a format."""
    return MissingDependencyError(
        f"reading {what} needs the package {package}, which is not installed", hint="pip install 'tessarr[convert]'"
    )
