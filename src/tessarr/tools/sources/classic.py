"""Compute how long a NetCDF-3 file must be: its library silently reads a truncated part as zeros.

Source: the NetCDF classic format specification (``CDF\\1``, ``CDF\\2`` with 64-bit offsets, ``CDF\\5`` with 64-bit data).

>>> import io
>>> header = b"CDF\\x01" + bytes(4) + bytes(8) * 3
>>> needed_size(io.BytesIO(header)), needed_size(io.BytesIO(b"no header")) is None
(0, True)
"""

from __future__ import annotations

from math import prod
from typing import IO

_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 4, 6: 8, 7: 1, 8: 2, 9: 4, 10: 8, 11: 8}
"""Bytes per element by NetCDF type number."""
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

    def name(self) -> None:
        self.skip(self.number())

    def list(self) -> range:
        if self.number(4) not in _LISTS:
            raise ValueError("not a list of a NetCDF header")
        return range(self.number())

    def attributes(self) -> None:
        for _ in self.list():
            self.name()
            kind = self.number(4)
            self.skip(_SIZES[kind] * self.number())


def needed_size(file: IO[bytes]) -> int | None:
    """Return the offset of the end of the last value, according to the header of an open file.

    ``None`` for other files, or when the number of records is not stated. Raises `EOFError` when the header is truncated.
    """
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
    fixed: list[tuple[int, int]] = []
    recorded: list[tuple[int, int]] = []
    for _ in header.list():
        header.name()
        shape = [lengths[header.number()] for _ in range(header.number())]
        header.attributes()
        item = _SIZES[header.number(4)]
        header.number()  # the size of the variable, which may overflow its field
        begin = header.offset()
        grows = bool(shape) and shape[0] == 0
        (recorded if grows else fixed).append((begin, item * prod(shape[1:] if grows else shape)))
    if recorded and records == (1 << 8 * header._count) - 1:
        return None
    return _end(fixed, recorded, records)


def _end(fixed: list[tuple[int, int]], recorded: list[tuple[int, int]], records: int) -> int:
    """Compute the end of the last record: records hold a part of every variable, padded to four bytes unless there is
    one variable.
    """
    padded = [size if len(recorded) == 1 else -(-size // 4) * 4 for _, size in recorded]
    ends = [begin + size for begin, size in fixed]
    ends += [begin + (records - 1) * sum(padded) + size for begin, size in recorded if records]
    return max(ends, default=0)
