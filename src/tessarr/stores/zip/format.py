"""Read and write the zip format: the directory of entries, and the entries at their offsets.

The directory is parsed by `zipfile`; entries are read and written here, because a store reads ranges from several
threads, and a write that fails half-way must leave the archive as it was.

Source: PKWARE APPNOTE 6.3.10, sections 4.3 (layout), 4.5.3 (Zip64), 4.6.9 (Unicode names).
"""

from __future__ import annotations

import contextlib
import io
import os
import struct
import threading
import zipfile
import zlib
from collections.abc import Iterable
from typing import BinaryIO, Protocol, cast

from tessarr.errors import StoreError, UnsupportedOperationError
from tessarr.stores.local.sync import sync
from tessarr.stores.path import is_plain_key, is_unicode

_LOCAL = struct.Struct("<4s5H3L2H")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_END = struct.Struct("<4s4H2LH")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR64 = struct.Struct("<4sLQL")
_MANY = 0xFFFF
_BIG = 0xFFFFFFFF
_UTF8, _ENCRYPTED = 0x800, 0x1
_DATE_1980_01_01 = 0x21
"""The time of every entry, so that equal values give equal archives."""
_DEFLATE_RATIO = 1032
"""The largest expansion of a deflate stream (zlib's documentation)."""
_COPY_NBYTES = 8 << 20
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)


class File(Protocol):
    """Bytes at offsets. Safe to use from several threads."""

    def read_at(self, offset: int, nbytes: int) -> bytes:
        """Read `nbytes` bytes from `offset`, fewer at the end of the file."""
        ...

    def write_at(self, offset: int, data: bytes | memoryview) -> None:
        """Write all of `data` at `offset`."""

    def size(self) -> int:
        """Return the size of the file in bytes."""
        ...

    def truncate(self, nbytes: int) -> None:
        """Set the size of the file to `nbytes`."""

    def sync(self) -> None:
        """Make written data durable."""


def copy(source: File, target: File, nbytes: int) -> None:
    """Copy the first `nbytes` bytes of `source` to `target`."""
    for start in range(0, nbytes, _COPY_NBYTES):
        target.write_at(start, source.read_at(start, min(_COPY_NBYTES, nbytes - start)))


class DescriptorFile:
    """A `File` on a descriptor of the operating system, closed with the last reference to this object.

    Not earlier, because another thread may be reading, and the number of a closed descriptor is reused for another file.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._lock = threading.Lock()

    def __del__(self) -> None:
        os.close(self.descriptor)

    def read_at(self, offset: int, nbytes: int) -> bytes:
        if hasattr(os, "pread"):
            data = os.pread(self.descriptor, nbytes, offset)
            while len(data) < nbytes and (more := os.pread(self.descriptor, nbytes - len(data), offset + len(data))):
                data += more
            return data
        with self._lock:
            os.lseek(self.descriptor, offset, os.SEEK_SET)
            return os.read(self.descriptor, nbytes)

    def write_at(self, offset: int, data: bytes | memoryview) -> None:
        view = memoryview(data)
        with self._lock:
            os.lseek(self.descriptor, offset, os.SEEK_SET)
            while view:
                view = view[os.write(self.descriptor, view) :]

    def size(self) -> int:
        return os.fstat(self.descriptor).st_size

    def truncate(self, nbytes: int) -> None:
        os.ftruncate(self.descriptor, nbytes)

    def sync(self) -> None:
        sync(self.descriptor)


class ObjectFile:
    """A `File` on a Python file object, which stays open unless it is `owned`."""

    def __init__(self, file: BinaryIO, *, owned: bool = False) -> None:
        self.file = file
        self.owned = owned
        self._lock = threading.Lock()

    def __del__(self) -> None:
        if self.owned:
            self.file.close()

    def read_at(self, offset: int, nbytes: int) -> bytes:
        with self._lock:
            self.file.seek(offset)
            data = self.file.read(nbytes)
            while len(data) < nbytes and (more := self.file.read(nbytes - len(data))):  # an unbuffered file gives parts
                data += more
            return data

    def write_at(self, offset: int, data: bytes | memoryview) -> None:
        with self._lock:
            self.file.seek(offset)
            self.file.write(data)

    def size(self) -> int:
        with self._lock:
            return self.file.seek(0, os.SEEK_END)

    def truncate(self, nbytes: int) -> None:
        with self._lock:
            self.file.truncate(nbytes)

    def sync(self) -> None:
        """See `File.sync`: flushes the object."""
        with self._lock:
            self.file.flush()


class Readable(Protocol):
    """An object that bytes are read from, more simply than from a file of Python."""

    def read(self, nbytes: int, /) -> bytes | memoryview:
        """Read `nbytes` bytes from the position."""
        ...

    def seek(self, offset: int, whence: int = ..., /) -> int:
        """Set the position."""
        ...

    def tell(self) -> int:
        """Return the position."""
        ...


class _Reader(io.RawIOBase):
    """A Python file around an object that has no more than ``read``, ``seek`` and ``tell``, such as a reader of obstore."""

    def __init__(self, inner: Readable) -> None:
        self._inner = inner
        self._nbytes = inner.seek(0, os.SEEK_END)
        inner.seek(0)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._inner.tell()

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self.tell(), os.SEEK_END: self._nbytes}[whence]
        self._inner.seek(start + offset)
        return start + offset

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override] # `Buffer` of Python 3.12
        target = memoryview(buffer).cast("B")
        wanted = min(len(target), max(0, self._nbytes - self.tell()))  # some readers fail beyond the end
        data = memoryview(self._inner.read(wanted)) if wanted else memoryview(b"")
        target[: len(data)] = data
        return len(data)


def binary_file(given: BinaryIO | Readable, mode: str) -> BinaryIO:
    """Return `given`, an open binary file, or a file around it, if it can serve an archive in `mode`.

    Raises `TypeError` for an object that is no such file, and for one that can only be read, in another mode than ``r``.
    """
    if not all(hasattr(given, name) for name in ("read", "seek", "tell")) or isinstance(given, io.TextIOBase):
        raise TypeError(f"an archive is a path, or a binary file with read/seek/tell; got {type(given).__name__}")
    if not isinstance(given, io.IOBase) and not hasattr(given, "write"):
        if mode != "r":
            raise TypeError(f"a {type(given).__name__} can only be opened for reading; got mode={mode!r}")
        return io.BufferedReader(_Reader(given))
    needs = [
        name for name, needed in (("readable", mode in "ra"), ("seekable", True), ("writable", mode != "r")) if needed
    ]
    lacks = [name for name in needs if hasattr(given, name) and not getattr(given, name)()]
    if lacks:
        raise io.UnsupportedOperation(f"mode {mode!r} needs a file that is {' and '.join(needs)}; it is not {lacks[0]}")
    return cast("BinaryIO", given)


# -- reading -------------------------------------------------------------------------------------------------------


def parse(file: BinaryIO) -> tuple[dict[str, zipfile.ZipInfo], int, bytes]:
    """Parse the directory; return the entries by store key, the offset of the directory, and the archive's comment.

    Of several entries of one name the last is valid, as in all readers. Directories, and names that are not keys (absolute
    ones, ``..``), are left out.
    """
    with zipfile.ZipFile(file) as archive:
        entries = {}
        for info in archive.infolist():
            name = _name(info)
            if is_plain_key(name) or _is_unusual_key(name):
                entries[name] = info
        return entries, archive.start_dir, archive.comment


def _is_unusual_key(name: str) -> bool:
    segments = name.split("/")
    return not {"", ".", ".."}.intersection(segments) and "\0" not in name and is_unicode(name)


def _name(info: zipfile.ZipInfo) -> str:
    """Decode the name: Info-ZIP's Unicode field if its checksum matches, else UTF-8 if it is valid, else as flagged."""
    raw = _raw_name(info)
    extra = info.extra
    while len(extra) >= 4:
        kind, nbytes = struct.unpack_from("<2H", extra)
        if kind == 0x7075 and nbytes > 5 and struct.unpack_from("<BL", extra, 4) == (1, zlib.crc32(raw)):
            return extra[9 : 4 + nbytes].decode("utf-8", "replace")
        extra = extra[4 + nbytes :]
    if not info.flag_bits & _UTF8:
        with contextlib.suppress(UnicodeDecodeError):
            return raw.decode("utf-8")
    return info.filename


def _raw_name(info: zipfile.ZipInfo) -> bytes:
    return info.orig_filename.encode("utf-8" if info.flag_bits & _UTF8 else "cp437")


def data_offset(file: File, info: zipfile.ZipInfo) -> int:
    """Return the offset of the entry's data. Raises `StoreError` for an entry that is not where the directory says."""
    # A misplaced directory makes the offset negative.
    header = file.read_at(info.header_offset, _LOCAL.size) if info.header_offset >= 0 else b""
    if len(header) < _LOCAL.size or header[:4] != b"PK\x03\x04":
        raise StoreError("a zip entry is not where the directory says", got=f"offset {info.header_offset}")
    if info.flag_bits & _ENCRYPTED:
        raise UnsupportedOperationError("the zip entry is encrypted")
    name_nbytes, extra_nbytes = _LOCAL.unpack(header)[9:]
    offset: int = info.header_offset + _LOCAL.size + name_nbytes + extra_nbytes
    if info.compress_type == zipfile.ZIP_STORED and info.compress_size != info.file_size:
        raise StoreError("a stored zip entry has two sizes", got=f"{info.compress_size} and {info.file_size}")
    if offset + info.compress_size > file.size():
        raise StoreError("a zip entry reaches past the end of the file", expected=f"{info.compress_size} bytes")
    return offset


def expand(raw: bytes, info: zipfile.ZipInfo) -> bytes:
    """Decompress an entry, and check the value's size and CRC-32. Allocates no more than that size."""
    if info.compress_type == zipfile.ZIP_STORED:
        value = raw
    elif info.compress_type == zipfile.ZIP_DEFLATED:
        if info.file_size > _DEFLATE_RATIO * len(raw) + 64:
            raise StoreError("a zip entry claims an impossible size", got=info.file_size)
        try:
            value = zlib.decompressobj(-15).decompress(raw, info.file_size + 1)
        except zlib.error as error:
            raise StoreError("a zip entry cannot be decompressed", got=str(error)) from error
    elif info.compress_type == zipfile.ZIP_BZIP2:
        import bz2

        try:
            value = bz2.BZ2Decompressor().decompress(raw, info.file_size + 1)
        except (OSError, ValueError) as error:
            raise StoreError("a zip entry cannot be decompressed", got=str(error)) from error
    else:
        raise UnsupportedOperationError(
            "the zip entry's compression is not supported", expected="stored, deflated or bzip2", got=info.compress_type
        )
    if len(value) != info.file_size:
        raise StoreError("a zip entry differs in size from the directory", expected=info.file_size, got=len(value))
    if zlib.crc32(value) != info.CRC:
        raise StoreError("a zip entry is damaged: its CRC-32 does not match")
    return value


# -- writing -------------------------------------------------------------------------------------------------------


def compress(value: bytes | memoryview, method: int) -> bytes | memoryview:
    """Compress `value` to the bytes of an entry."""
    if method == zipfile.ZIP_DEFLATED:
        compressor = zlib.compressobj(zlib.Z_DEFAULT_COMPRESSION, zlib.DEFLATED, -15)
        return compressor.compress(value) + compressor.flush()
    if method == zipfile.ZIP_BZIP2:
        import bz2

        return bz2.compress(value)
    return value


def append(file: File, end: int, key: str, value: bytes | memoryview, method: int) -> tuple[zipfile.ZipInfo, int]:
    """Write an entry at `end`; return it and its end. The entry is visible only when a directory contains it."""
    raw = compress(value, method)
    name = key.encode()
    info = zipfile.ZipInfo(key)
    info.create_system, info.create_version, info.external_attr = 3, 20, 0o644 << 16
    info.flag_bits = 0 if name.isascii() else _UTF8
    info.compress_type, info.CRC = method, zlib.crc32(value)
    info.compress_size, info.file_size, info.header_offset = len(raw), len(value), end
    big = max(len(raw), len(value)) >= _BIG
    info.extract_version = 45 if big else 20
    extra = struct.pack("<2H2Q", 1, 16, len(value), len(raw)) if big else b""
    sizes = (_BIG, _BIG) if big else (len(raw), len(value))
    header = _LOCAL.pack(
        b"PK\x03\x04", info.extract_version, info.flag_bits, method, 0, _DATE_1980_01_01,
        info.CRC, *sizes, len(name), len(extra),
    )  # fmt: skip
    start = header + name + extra
    file.write_at(end, start)
    file.write_at(end + len(start), raw)
    return info, end + len(start) + len(raw)


def directory(infos: Iterable[zipfile.ZipInfo], start: int, comment: bytes = b"") -> bytes:
    """Format the directory of `infos` and the records after it, for a file in which it begins at `start`."""
    records = []
    for info in infos:
        name = _raw_name(info)
        big = [size for size in (info.file_size, info.compress_size, info.header_offset) if size >= _BIG]
        extra = _remove_zip64(info.extra)
        if big:
            extra = struct.pack(f"<2H{len(big)}Q", 1, 8 * len(big), *big) + extra
        year, month, day, hour, minute, second = info.date_time
        records.append(
            _CENTRAL.pack(
                b"PK\x01\x02", info.create_system << 8 | info.create_version, max(info.extract_version, 45 if big else 0),
                info.flag_bits, info.compress_type, hour << 11 | minute << 5 | second // 2,
                (year - 1980) << 9 | month << 5 | day, info.CRC, min(info.compress_size, _BIG),
                min(info.file_size, _BIG), len(name), len(extra), len(info.comment), 0, info.internal_attr,
                info.external_attr, min(info.header_offset, _BIG),
            ) + name + extra + info.comment
        )  # fmt: skip
    count, body = len(records), b"".join(records)
    end = b""
    if count >= _MANY or start >= _BIG or len(body) >= _BIG:
        end = _END64.pack(b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, len(body), start)
        end += _LOCATOR64.pack(b"PK\x06\x07", 0, start + len(body), 1)
    few = min(count, _MANY)
    end += _END.pack(b"PK\x05\x06", 0, 0, few, few, min(len(body), _BIG), min(start, _BIG), len(comment))
    return body + end + comment


def _remove_zip64(extra: bytes) -> bytes:
    result = b""
    while len(extra) >= 4:
        kind, nbytes = struct.unpack_from("<2H", extra)
        if kind != 1:
            result += extra[: 4 + nbytes]
        extra = extra[4 + nbytes :]
    return result
