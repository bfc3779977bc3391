"""Compute where the values of a NetCDF-3 file are, and how long it must be: its library silently reads a truncated part as
zeros.

Source: the NetCDF classic format specification (``CDF\\1``, ``CDF\\2`` with 64-bit offsets, ``CDF\\5`` with 64-bit data).

>>> import io
>>> header = b"CDF\\x01" + bytes(4) + bytes(8) * 3
>>> needed_size(io.BytesIO(header)), needed_size(io.BytesIO(b"no header")) is None
(0, True)
"""

from __future__ import annotations

from functools import partial
from math import prod
from typing import IO, NamedTuple, cast

import numpy as np

from tessarr.errors import StoreError
from tessarr.tools.sources.attributes import collect, packing_of
from tessarr.tools.sources.base import UNSET, SourceArray, SourceGroup, StoredChunks, contiguous, read_rows
from tessarr.tools.sources.remote_file import RemoteFile
from tessarr.types import AnyDType, Shape

_DTYPES = {1: "i1", 2: "S1", 3: ">i2", 4: ">i4", 5: ">f4", 6: ">f8", 7: "u1", 8: ">u2", 9: ">u4", 10: ">i8", 11: ">u8"}
"""Types of elements by NetCDF type number."""
_LISTS = (0, 10, 11, 12)
_TEXT = 2
_MOST_NBYTES = 256 << 20
"""Of an attribute; a larger number is damage."""


class _Header:
    def __init__(self, file: IO[bytes] | RemoteFile, version: int) -> None:
        self._file = file
        self._count = 8 if version == 5 else 4
        self._offset = 4 if version == 1 else 8

    def number(self, size: int = 0) -> int:
        """Read a big-endian number, by default of the width of counts."""
        return int.from_bytes(self._take(size or self._count), "big")

    def _take(self, nbytes: int) -> bytes:
        if nbytes > _MOST_NBYTES:
            raise ValueError(f"a part of the header has {nbytes} bytes")
        data = self._file.read(nbytes)
        if data is None or len(data) != nbytes:
            raise EOFError("the header ends early")
        return data

    def offset(self) -> int:
        return self.number(self._offset)

    def name(self) -> str:
        data = self._take(self.number())
        self._file.seek(-len(data) % 4, 1)
        return data.decode(errors="replace")

    def list(self) -> range:
        if self.number(4) not in _LISTS:
            raise ValueError("not a list of a NetCDF header")
        return range(self.number())

    def attributes(self) -> dict[str, object]:
        """Read attributes: text, a number, or an array of numbers."""
        found: dict[str, object] = {}
        for _ in self.list():
            name, kind = self.name(), self.number(4)
            dtype, count = np.dtype(_DTYPES[kind]), self.number()
            data = self._take(dtype.itemsize * count)
            self._file.seek(-len(data) % 4, 1)
            values = np.frombuffer(data, dtype).astype(dtype.newbyteorder("="))
            if kind == _TEXT:
                found[name] = data.decode(errors="replace").rstrip("\0")
            else:
                found[name] = values[0] if count == 1 else values
        return found


class _Variable(NamedTuple):
    name: str
    dtype: AnyDType
    shape: Shape
    """With 0 for the dimension of records."""
    begin: int
    dimensions: tuple[str, ...]
    attributes: dict[str, object]

    @property
    def grows(self) -> bool:
        return bool(self.shape) and self.shape[0] == 0

    @property
    def nbytes(self) -> int:
        """Bytes of the values, or of those in one record."""
        return self.dtype.itemsize * prod(self.shape[1:] if self.grows else self.shape)


class _Contents(NamedTuple):
    records: int | None
    """``None``: the writer did not say."""
    variables: list[_Variable]
    dimensions: list[str]
    attributes: dict[str, object]

    @property
    def record_nbytes(self) -> int:
        """Bytes from one record to the next: records hold a part of every variable, padded to four bytes unless there is one
        variable.
        """
        sizes = [variable.nbytes for variable in self.variables if variable.grows]
        return sizes[0] if len(sizes) == 1 else sum(-(-size // 4) * 4 for size in sizes)


def _contents(file: IO[bytes] | RemoteFile) -> _Contents | None:
    """Read the header; ``None``: another format. Raises `EOFError` when it is truncated, `ValueError` when it is damaged."""
    magic = file.read(4)
    if magic[:3] != b"CDF" or magic[3:] not in (b"\x01", b"\x02", b"\x05"):
        return None
    header = _Header(file, magic[3])
    records = header.number()
    names, lengths = [], []
    for _ in header.list():
        names.append(header.name())
        lengths.append(header.number())
    attributes = header.attributes()
    variables: list[_Variable] = []
    for _ in header.list():
        name = header.name()
        axes = [header.number() for _ in range(header.number())]
        own = header.attributes()
        dtype = np.dtype(_DTYPES[header.number(4)])
        header.number()  # the size of the variable, which may overflow its field
        shape, dimensions = tuple(lengths[axis] for axis in axes), tuple(names[axis] for axis in axes)
        variables.append(_Variable(name, dtype, shape, header.offset(), dimensions, own))
    return _Contents(None if records == (1 << 8 * header._count) - 1 else records, variables, names, attributes)


def needed_size(file: IO[bytes]) -> int | None:
    """Return the offset of the end of the last value, according to the header of an open file.

    ``None`` for other files, or when the number of records is not stated. Raises `EOFError` when the header is truncated.
    """
    found = _contents(file)
    if found is None or (found.records is None and any(variable.grows for variable in found.variables)):
        return None
    ends = [variable.begin + variable.nbytes for variable in found.variables if not variable.grows]
    for variable in found.variables:
        if variable.grows and found.records:
            ends.append(variable.begin + (found.records - 1) * found.record_nbytes + variable.nbytes)
    return max(ends, default=0)


def stored_chunks(place: str, name: str, shape: Shape) -> StoredChunks | str:
    """Return where the values of a variable of a file are; `shape`: with the number of records."""
    with open(place, "rb") as file:
        found = _contents(file)
    if found is None:
        return "the file is not of the classic format"
    variable = next(variable for variable in found.variables if variable.name == name)
    stride = found.record_nbytes if variable.grows else None
    return contiguous(shape, variable.dtype, variable.begin, stride=stride)


class ClassicSource:
    """Read a NetCDF-3 file in a store, as the netCDF4 package reads one that has a path."""

    kind = "netcdf"
    parallel = False  # one file

    def __init__(self, file: RemoteFile) -> None:
        found = _contents(file)
        if found is None or (found.records is None and any(one.grows for one in found.variables)):
            raise StoreError(
                "the header of the file is not that of NetCDF-3, or states no number of records", store=file.name
            )
        self.notices: list[str] = []
        self.unsupported: list[tuple[str, str]] = []
        self.nodes: list[SourceArray | SourceGroup] = [
            SourceGroup(path="", attributes=collect(found.attributes.items(), "/", self.notices))
        ]
        for one in found.variables:
            shape = ((found.records or 0), *one.shape[1:]) if one.grows else one.shape
            stride = found.record_nbytes if one.grows else None
            self.nodes.append(self._variable(one, shape, stride, file))
        used = {name for one in found.variables for name in (one.name, *one.dimensions)}
        if unused := [name for name in found.dimensions if name not in used]:
            self.notices.append(f"/: dimensions without variables are left out: {', '.join(unused)}")

    def _variable(self, one: _Variable, shape: Shape, stride: int | None, file: RemoteFile) -> SourceArray:
        attributes = dict(one.attributes)
        fill = cast("np.generic | None", attributes.pop("_FillValue", None))  # text, of an array of characters
        return SourceArray(
            path=one.name,
            shape=shape,
            dtype=one.dtype.newbyteorder("="),
            read=partial(read_rows, file, shape, one.dtype, one.begin, stride=stride),
            fill_value=UNSET if fill is None else fill,
            attributes=collect(attributes.items(), f"/{one.name}", self.notices),
            dimension_names=one.dimensions,
            cf_fill=fill,
            packing=packing_of(attributes),
            stored=lambda: contiguous(shape, one.dtype, one.begin, stride=stride),
        )

    def close(self) -> None:
        """Do nothing: the file belongs to the caller."""
