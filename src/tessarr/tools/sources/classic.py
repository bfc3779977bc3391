"""Compute where the values of a NetCDF-3 file are, and how long it must be: its library silently reads a truncated part as
zeros.

Source: the NetCDF classic format specification (``CDF\\1``, ``CDF\\2`` with 64-bit offsets, ``CDF\\5`` with 64-bit data).

>>> import io
>>> header = b"CDF\\x01" + bytes(4) + bytes(8) * 3
>>> needed_size(io.BytesIO(header)), needed_size(io.BytesIO(b"no header")) is None
(0, True)
"""

from __future__ import annotations

from math import prod
from typing import IO, NamedTuple

import numpy as np

from tessarr.tools.sources.base import StoredChunks, contiguous
from tessarr.types import AnyDType, Shape

_DTYPES = {1: "i1", 2: "S1", 3: ">i2", 4: ">i4", 5: ">f4", 6: ">f8", 7: "u1", 8: ">u2", 9: ">u4", 10: ">i8", 11: ">u8"}
"""Types of elements by NetCDF type number."""
_LISTS = (0, 10, 11, 12)


class _Header:
    def __init__(self, file: IO[bytes], version: int) -> None:
        self._file = file
        self._count = 8 if version == 5 else 4
        self._offset = 4 if version == 1 else 8

    def number(self, size: int = 0) -> int:
        """Read a big-endian number, by default of the width of counts."""
        data = self._file.read(size or self._count)
        if len(data) != (size or self._count):
            raise EOFError("the header ends early")
        return int.from_bytes(data, "big")

    def offset(self) -> int:
        return self.number(self._offset)

    def skip(self, nbytes: int) -> None:
        self._file.seek(-(-nbytes // 4) * 4, 1)

    def name(self) -> str:
        size = self.number()
        data = self._file.read(size)
        self._file.seek(-size % 4, 1)
        return data.decode(errors="replace")

    def list(self) -> range:
        if self.number(4) not in _LISTS:
            raise ValueError("not a list of a NetCDF header")
        return range(self.number())

    def attributes(self) -> None:
        for _ in self.list():
            self.name()
            kind = self.number(4)
            self.skip(np.dtype(_DTYPES[kind]).itemsize * self.number())


class _Variable(NamedTuple):
    name: str
    dtype: AnyDType
    shape: Shape
    """With 0 for the dimension of records."""
    begin: int

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

    @property
    def record_nbytes(self) -> int:
        """Bytes from one record to the next: records hold a part of every variable, padded to four bytes unless there is one
        variable.
        """
        sizes = [variable.nbytes for variable in self.variables if variable.grows]
        return sizes[0] if len(sizes) == 1 else sum(-(-size // 4) * 4 for size in sizes)


def _contents(file: IO[bytes]) -> _Contents | None:
    """Read the header; ``None``: another format. Raises `EOFError` when it is truncated, `ValueError` when it is damaged."""
    magic = file.read(4)
    if magic[:3] != b"CDF" or magic[3:] not in (b"\x01", b"\x02", b"\x05"):
        return None
    header = _Header(file, magic[3])
    records = header.number()
    lengths = []
    for _ in header.list():
        header.name()
        lengths.append(header.number())
    header.attributes()
    variables: list[_Variable] = []
    for _ in header.list():
        name = header.name()
        shape = tuple([lengths[header.number()] for _ in range(header.number())])
        header.attributes()
        dtype = np.dtype(_DTYPES[header.number(4)])
        header.number()  # the size of the variable, which may overflow its field
        variables.append(_Variable(name, dtype, shape, header.offset()))
    return _Contents(None if records == (1 << 8 * header._count) - 1 else records, variables)


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
