"""What a source of a foreign format describes: groups, and arrays that are read in boxes; and what readers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from io import RawIOBase
from math import prod
from typing import IO, Any, Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from tessarr.dtypes.base import VARIABLE_ITEMSIZE, DataType
from tessarr.dtypes.parse import from_numpy
from tessarr.errors import MissingDependencyError
from tessarr.types import AnyArray, AnyDType, JSONObject, Shape

Box: TypeAlias = tuple[slice, ...]
"""A slice with start and stop per axis."""


class Unset:
    """The type of `UNSET`."""

    def __repr__(self) -> str:
        return "UNSET"

    def __reduce__(self) -> str:
        return "UNSET"


UNSET: Final = Unset()
"""`SourceArray.fill_value` of a source without a fill value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredChunks:
    """Say where the encoded chunks of an array are in its file, and how Zarr decodes them."""

    chunks: Shape
    """The shape of a chunk. Every stored one is whole, also at the edge."""
    codecs: tuple[JSONObject, ...]
    """The chain of a v3 array."""
    offsets: npt.NDArray[np.int64]
    """Of each chunk, in the shape of the grid; -1: it is not stored, and holds `fill_value`."""
    nbytes: npt.NDArray[np.int64]
    fill_value: object = UNSET


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
    read_into: Callable[[Box, AnyArray], object] | None = None
    """Reads the values of a box into memory of that shape, if the source can."""
    chunks: Shape | None = None
    """Shape of the parts that the source reads as one; ``None`` when any part can be read alone."""
    requested: Shape | None = None
    """Shape of the parts that are read as one where there are no chunks: of files that are joined, or in stores elsewhere, or
    that the reference engine reads."""
    fill_value: object = UNSET
    attributes: Mapping[str, object] = field(default_factory=dict)
    """Attributes with JSON values only."""
    dimension_names: tuple[str | None, ...] | None = None
    cf_fill: np.generic | None = None
    """The CF attribute ``_FillValue``, whose spelling depends on the Zarr format; a NumPy scalar."""
    is_coordinate: bool = False
    """Whether it describes the axes of others; then it is written as one chunk."""
    stored: Callable[[], StoredChunks | str] = lambda: "its format does not say where its chunks are"
    """Returns where the chunks are; or, for values that only the format's package can read, why."""
    note: str = ""
    """What a plan says of how it is read."""
    packing: Mapping[str, np.generic] = field(default_factory=dict)
    """The CF attributes ``scale_factor`` and ``add_offset`` in their own types."""
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


_MOST_IN_ONE_CHUNK = 64 << 20


def is_axis(node: SourceArray) -> bool:
    """Return whether an array has the positions along the axis of its name, few enough for one chunk.

    >>> hours = {"path": "a/time", "shape": (3,), "dtype": np.dtype("i8"), "read": np.zeros}
    >>> is_axis(SourceArray(**hours)), is_axis(SourceArray(**hours, dimension_names=("time",)))
    (False, True)
    """
    return node.dimension_names == (node.path.rpartition("/")[2],) and node.nbytes <= _MOST_IN_ONE_CHUNK


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


def missing(package: str, what: str, extra: str = "convert") -> MissingDependencyError:
    """Make the error that names the extra for a format."""
    return MissingDependencyError(
        f"reading {what} needs the package {package}, which is not installed", hint=f"pip install 'tessarr[{extra}]'"
    )


_PART = 16 << 20


def bytes_codec(dtype: AnyDType) -> JSONObject:
    """Return the codec of plain elements in the byte order of `dtype`.

    >>> bytes_codec(np.dtype(">i2")), bytes_codec(np.dtype("u1"))
    ({'name': 'bytes', 'configuration': {'endian': 'big'}}, {'name': 'bytes'})
    """
    order = {"<": "little", ">": "big"}.get(dtype.str[0])
    return {"name": "bytes"} if order is None else {"name": "bytes", "configuration": {"endian": order}}


def contiguous(shape: Shape, dtype: AnyDType, offset: int, *, stride: int | None = None) -> StoredChunks:
    """Describe elements that lie one after another from `offset` on, in C order, as chunks of some rows each.

    Rows that are long are cut again along the next axis. `stride`: bytes from one row to the next, if there is something else
    between them; then a chunk has one row at most.

    >>> contiguous((6, 2), np.dtype("<i4"), 100).chunks, contiguous((3,), np.dtype("u1"), 8, stride=12).offsets.tolist()
    ((6, 2), [8, 20, 32])
    >>> contiguous((2, 4, 8 << 20), np.dtype("u1"), 0).chunks
    (1, 2, 8388608)
    """
    if not shape:
        return _parts((), dtype, (), np.array(offset), dtype.itemsize)
    steps = [prod(shape[axis + 1 :]) * dtype.itemsize for axis in range(len(shape))]
    first = 0 if stride is None else 1  # the axis that may be cut into parts of several rows
    cut = next((axis for axis in range(first, len(shape)) if steps[axis] <= _PART), len(shape) - 1)
    most = min(shape[cut], max(1, _PART // max(1, steps[cut]))) if cut >= first else 1
    rows = next((n for n in range(most, 0, -1) if shape[cut] % n == 0), 1)
    chunks = (*(1,) * cut, rows, *(max(1, n) for n in shape[cut + 1 :]))
    grid = tuple(-(-n // chunk) for n, chunk in zip(shape, chunks, strict=True))
    starts = np.full((), offset, np.int64)
    for axis, step in enumerate([steps[0] if stride is None else stride, *steps[1:]]):
        starts = starts[..., np.newaxis] + np.arange(grid[axis], dtype=np.int64) * (step * chunks[axis])
    return _parts(chunks, dtype, grid, starts, prod(chunks) * dtype.itemsize)


def reversed_axes(stored: StoredChunks) -> StoredChunks:
    """Describe the same chunks as those of the transposed array, whose first axis varies fastest.

    >>> reversed_axes(contiguous((6, 2), np.dtype("<i4"), 100)).chunks
    (2, 6)
    """
    order = [*range(len(stored.chunks))][::-1]
    return StoredChunks(
        chunks=stored.chunks[::-1],
        codecs=({"name": "transpose", "configuration": {"order": order}}, *stored.codecs),
        offsets=stored.offsets.transpose(),
        nbytes=stored.nbytes.transpose(),
    )


def read_rows(
    file: IO[bytes] | RawIOBase, shape: Shape, dtype: AnyDType, offset: int, box: Box, *, stride: int | None = None
) -> AnyArray:
    """Read a box of what `contiguous` describes from an open file: the rows that it touches, whole.

    >>> from io import BytesIO
    >>> read_rows(BytesIO(bytes(range(8))), (3, 2), np.dtype("u1"), 1, (slice(1, 3), slice(0, 1))).tolist()
    [[3], [5]]
    """
    nbytes = prod(shape[1:]) * dtype.itemsize
    step = nbytes if stride is None else stride
    start, stop = (box[0].start, box[0].stop) if box else (0, 1)
    count = max(0, stop - start)
    needed = (count - 1) * step + nbytes if count else 0
    file.seek(offset + start * step)
    data = file.read(needed) if needed else b""
    if data is None or len(data) != needed:
        raise EOFError(f"{needed} bytes are needed at {offset + start * step}, and the file has {len(data or b'')}")
    rows = np.ndarray((count, *shape[1:]), dtype, data, strides=(step, *_strides(shape[1:], dtype.itemsize)))
    plain = dtype.newbyteorder("=")
    return rows[(slice(None), *box[1:])].astype(plain) if box else rows.reshape(()).astype(plain)


def _strides(shape: Shape, itemsize: int) -> tuple[int, ...]:
    return tuple(prod(shape[axis + 1 :]) * itemsize for axis in range(len(shape)))


def _parts(chunks: Shape, dtype: AnyDType, grid: Shape, starts: npt.NDArray[np.int64], nbytes: int) -> StoredChunks:
    offsets = np.broadcast_to(starts, grid).astype(np.int64)
    return StoredChunks(
        chunks=chunks, codecs=(bytes_codec(dtype),), offsets=offsets, nbytes=np.full(grid, nbytes, np.int64)
    )
