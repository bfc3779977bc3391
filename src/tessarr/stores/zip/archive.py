"""The archive of a `ZipStore` and its views: the published file, its directory, and the staged file.

Writes go to a staged file, beside the archive under a hidden name (for a file object: a temporary file). It begins as a
copy of the archive's values; new values are appended. Publishing appends the directory and renames the file.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO

from tessarr.common.segments import flat
from tessarr.errors import ConflictError, StoreError, TessarrError
from tessarr.stores.base import ANY, Any_, Version
from tessarr.stores.buffers import byte_view
from tessarr.stores.fetch import Extent, Located
from tessarr.stores.functions import check_versions
from tessarr.stores.local import lock as filelock
from tessarr.stores.local.file import version_of as file_version
from tessarr.stores.local.store import LocalStore
from tessarr.stores.local.sync import sync_names
from tessarr.stores.path import file_url
from tessarr.stores.zip import format as zipformat
from tessarr.types import Buffer, ByteRange

_BINARY = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


class Archive:
    """One open archive. Safe to use from several threads."""

    is_dirty: bool
    """Whether there are unpublished writes."""

    def __init__(self, path: str | os.PathLike[str] | BinaryIO, mode: str, compression: int, zip64: bool) -> None:
        self.path = os.path.abspath(os.fspath(path)) if isinstance(path, str | os.PathLike) else None
        self.url = f"zip://{id(path):x}" if self.path is None else file_url(self.path, windows=os.name == "nt")
        self._object: Any = None if isinstance(path, str | os.PathLike) else zipformat.binary_file(path, mode)
        self._compression, self._zip64 = compression, zip64
        self._exclusive = mode == "x"
        self._mutex = threading.RLock()
        self._process = os.getpid()
        self._token = os.urandom(8).hex()
        self._closed = False
        self._file: zipformat.File | None = None
        self._writing = False
        self._staged = ""
        self._lock: tuple[str, int] | None = None
        self._identity: os.stat_result | None = None
        self._comment = b""
        self._entries: dict[str, zipfile.ZipInfo] = {}
        self._offsets: dict[str, tuple[zipfile.ZipInfo, int]] = {}
        self._sorted: list[str] | None = []
        self._folder: LocalStore | None = None
        self._end = 0
        if mode == "x" and self.path is not None and os.path.lexists(self.path):
            raise FileExistsError(f"{self.path!r} exists")
        if mode == "r" or (mode == "a" and self._exists()):
            self._load()
        self.is_dirty = mode in ("w", "x")

    # -- the present file ---------------------------------------------------------------------------------------

    def _exists(self) -> bool:
        if self.path is not None:
            return os.path.exists(self.path)
        return bool(self._object.seek(0, os.SEEK_END))

    def _load(self) -> None:
        """Open the published archive and read its directory."""
        try:
            if self.path is None:
                self._object.seek(0)
                self._entries, self._end, self._comment = zipformat.parse(self._object)
                self._file = zipformat.ObjectFile(self._object)
            else:
                with open(self.path, "rb") as file:
                    self._entries, self._end, self._comment = zipformat.parse(file)
                    # A duplicate descriptor of the same file: the path may already name another.
                    self._file = zipformat.DescriptorFile(os.dup(file.fileno()))
                    self._identity = os.fstat(file.fileno())
        except FileNotFoundError:
            raise
        except OSError as error:
            raise StoreError("could not open the archive", store=self.url, got=str(error)) from error
        except (zipfile.BadZipFile, NotImplementedError, ValueError, OverflowError) as error:
            raise StoreError("not a readable zip archive", store=self.url, got=str(error)) from error
        self._sorted = None

    def entries(self) -> dict[str, zipfile.ZipInfo]:
        """Return the directory. Raises `StoreError` when the store is closed."""
        if self._closed:
            raise StoreError("the zip store is closed", store=self.url, hint="Open it again")
        return self._entries

    def keys(self) -> list[str]:
        """List every key, sorted."""
        with self._mutex:
            entries = self.entries()
            if self._sorted is None:
                self._sorted = sorted(entries)
            return self._sorted

    def version(self, key: str) -> str | None:
        """Return the version of the entry of `key`; it is unique to this archive object."""
        info = self.entries().get(key)
        return None if info is None else f"{self._token}:{info.header_offset:x}:{info.CRC:x}:{info.file_size:x}"

    def _locate(self, key: str) -> tuple[zipformat.File, zipfile.ZipInfo, int] | None:
        """Return the file, entry and data offset of `key`, all of one moment."""
        with self._mutex:
            info = self._entries.get(key)
            if info is None:
                self.entries()  # raises for a closed store, whose directory is empty
                return None
            assert self._file is not None
            known = self._offsets.get(key)
            if known is None or known[0] is not info:
                known = self._offsets[key] = (info, zipformat.data_offset(self._file, info))
            return self._file, info, known[1]

    def locate(self, keys: Sequence[str]) -> list[Located | None] | None:
        """See `tessarr.stores.protocols.Locate`: values that are stored in a published file without compression.

        The extents name the version of the open file. As long as it is open, no other file at the path has its inode.
        """
        found: list[Located | None] = []
        with self._mutex:
            file = self._file
            if self.path is None or self._writing or not isinstance(file, zipformat.DescriptorFile):
                return None
            if self._folder is None:
                self._folder = LocalStore(os.path.dirname(self.path), read_only=True)
            folder, name = self._folder, os.path.basename(self.path)
            try:
                version = file_version(os.fstat(file.descriptor))
                for key in keys:
                    located = self._locate(key)
                    if located is None:
                        found.append(None)
                        continue
                    _, info, offset = located
                    if info.compress_type != zipfile.ZIP_STORED:
                        return None
                    found.append(Located((Extent(folder, name, offset, info.file_size, version),), info.CRC))
            except (TessarrError, OSError):
                return None  # `read` raises the error
        return found

    def read(self, key: str) -> bytes | None:
        """Read the value of `key`."""
        try:
            located = self._locate(key)
            if located is None:
                return None
            file, info, offset = located
            raw = file.read_at(offset, info.compress_size)
            if (info.compress_type, info.file_size, info.CRC) == (zipfile.ZIP_STORED, len(raw), zlib.crc32(raw)):
                return raw
            return zipformat.expand(raw, info)
        except TessarrError as error:
            error.at(store=self.url, key=key)
            raise
        except OSError as error:
            raise StoreError("could not read the archive", store=self.url, key=key, got=str(error)) from error

    def read_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        """Read parts of the value of `key`."""
        try:
            located = self._locate(key)
            if located is None:
                return None
            file, info, offset = located
            parts: list[Buffer] = []
            if info.compress_type != zipfile.ZIP_STORED:
                value = flat(zipformat.expand(file.read_at(offset, info.compress_size), info))
                for byte_range in ranges:
                    start, stop = byte_range.bounds(value.nbytes)
                    parts.append(value[start:stop].data)
                return parts
            for byte_range in ranges:
                start, stop = byte_range.bounds(info.file_size)
                part = file.read_at(offset + start, stop - start)
                if len(part) != stop - start:
                    raise StoreError("the archive is truncated", expected=f"{stop - start} bytes", got=len(part))
                parts.append(part)
            return parts
        except TessarrError as error:
            error.at(store=self.url, key=key)
            raise
        except OSError as error:
            raise StoreError("could not read the archive", store=self.url, key=key, got=str(error)) from error

    # -- the staged file ----------------------------------------------------------------------------------------

    def write(
        self, items: Mapping[str, Buffer], *, if_match: Version | None | Any_ = ANY, replaced_prefix: str | None = None
    ) -> str | None:
        """Set `items`; with `replaced_prefix`, they replace all keys under that prefix.

        Returns the new version if `if_match` is passed.
        """
        with self._mutex:
            self.entries()
            for key in items if if_match is not ANY else ():
                if self.version(key) != if_match:
                    raise ConflictError(
                        "the value has changed", store=self.url, key=key, expected=f"version {if_match}"
                    )
            new: dict[str, zipfile.ZipInfo] = {}
            last = None
            try:
                file = self._open_staged()
                end = self._end
                for last, value in items.items():
                    new[last], end = zipformat.append(file, end, last, byte_view(value), self._compression)
            except (OSError, zipfile.LargeZipFile) as error:
                # The appended bytes are beyond the end of the data and in no directory: the next write overwrites them.
                if isinstance(error, StoreError):
                    raise
                raise StoreError("could not write to the archive", store=self.url, key=last, got=str(error)) from error
            if not self._zip64 and (end > zipfile.ZIP64_LIMIT or len(self._entries) + len(new) > 0xFFFF):
                raise StoreError(
                    "the archive becomes too large", store=self.url, key=last, hint="Open it with allowZip64=True"
                )
            if replaced_prefix is not None:
                self._entries = {
                    key: info for key, info in self._entries.items() if not key.startswith(replaced_prefix)
                }
                self._sorted = None
            if not new.keys() <= self._entries.keys():
                self._sorted = None
            self._entries.update(new)
            self._end, self.is_dirty = end, True
            return None if last is None or if_match is ANY else self.version(last)

    def commit(
        self, items: Mapping[str, Buffer], expected: Mapping[str, Version | None], check: Callable[[], None]
    ) -> None:
        """Set `items` and publish them, or neither. Writes that were not published yet are published as well.

        `check` is called after the versions were compared.
        """
        with self._mutex:
            self.entries()
            check_versions(self.url, expected, self.version)
            check()
            before = dict(self._entries), self._end, self.is_dirty
            try:
                self.write(items)
                self.flush()
            except BaseException:
                self._entries, self._end, self.is_dirty = before
                self._sorted = None
                raise

    def _open_staged(self) -> zipformat.File:
        """Return the staged file; if there is none, make one as a copy of the archive."""
        if self._writing:
            assert self._file is not None
            return self._file
        if os.getpid() != self._process:
            raise StoreError("a zip store cannot be written in a forked process", store=self.url)
        self._acquire_lock()
        try:
            if self.path is None:
                staged: zipformat.File = zipformat.ObjectFile(tempfile.TemporaryFile(), owned=True)  # noqa: SIM115 - it lives on
            else:
                folder, name = os.path.split(self.path)
                os.makedirs(folder, exist_ok=True)
                self._staged = os.path.join(folder, filelock.temporary_name(name))
                flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | _BINARY
                staged = zipformat.DescriptorFile(os.open(self._staged, flags, 0o666))
            if self._file is not None:
                zipformat.copy(self._file, staged, self._end)
        except BaseException:
            self._discard()
            raise
        self._file, self._writing = staged, True
        return staged

    def _acquire_lock(self) -> None:
        """Acquire the lock of the archive, and load changes that an earlier writer published."""
        if self.path is None:
            return
        folder, name = os.path.split(self.path)
        os.makedirs(folder, exist_ok=True)
        lock = os.path.join(folder, filelock.lock_name(name))
        try:
            self._lock = (lock, filelock.acquire(lock, wait=False))
        except BlockingIOError as error:
            raise StoreError(
                "another store is writing this archive", store=self.url, hint="Close it first, or write to a LocalStore"
            ) from error
        known = self._identity
        if known is not None or (not self.is_dirty and os.path.exists(self.path)):
            now = os.stat(self.path)
            if known is None or (now.st_ino, now.st_mtime_ns, now.st_size) != (
                known.st_ino, known.st_mtime_ns, known.st_size,
            ):  # fmt: skip
                self._load()

    def flush(self) -> None:
        """Publish the new file: rename it to the archive."""
        with self._mutex:
            if self._closed or not self.is_dirty or os.getpid() != self._process:
                return
            try:
                file = self._open_staged()
                tail = zipformat.directory(self._entries.values(), self._end, self._comment)
                file.write_at(self._end, tail)
                file.truncate(self._end + len(tail))
                file.sync()
                self._publish(file, self._end + len(tail))
            except OSError as error:
                if isinstance(error, StoreError):
                    raise
                raise StoreError(
                    "could not publish the archive; the old one is unchanged",
                    store=self.url,
                    got=str(error),
                    hint="Remove the cause and call flush or close again",
                ) from error
            self._writing = self.is_dirty = self._exclusive = False
            self._discard()
            if self.path is not None:
                sync_names(self.path, os.path.dirname(self.path), "the archive is published")

    def _publish(self, file: zipformat.File, nbytes: int) -> None:
        if self.path is None:
            target = zipformat.ObjectFile(self._object)
            zipformat.copy(file, target, nbytes)
            target.truncate(nbytes)
            target.sync()
            self._file = target
            return
        if not (isinstance(file, zipformat.DescriptorFile) and filelock.is_same_file(self.path, file.descriptor)):
            # Else an earlier call, which was interrupted, has renamed it.
            if self._exclusive and os.path.lexists(self.path):
                raise StoreError("another program created the archive meanwhile", store=self.url)
            if os.path.exists(self.path):
                shutil.copymode(self.path, self._staged)
            if os.name == "nt":  # Windows cannot rename an open file
                self._file = None
                del file
            filelock.retry_denied(self._staged, self.path)
        self._identity = os.stat(self.path)
        if self._file is None:
            self._file = zipformat.DescriptorFile(os.open(self.path, os.O_RDONLY | _BINARY))

    def _discard(self) -> None:
        """Release the lock, and remove the staged file unless it was published."""
        if self._staged:
            with contextlib.suppress(OSError):  # one that cannot be removed is a hidden leftover
                os.unlink(self._staged)
        self._staged = ""
        if self._lock is not None:
            filelock.release(*self._lock)
            self._lock = None

    def close(self) -> None:
        """Publish and close. When publishing fails the store stays open, so that the caller can retry."""
        with self._mutex:
            self.flush()
            if os.getpid() == self._process:
                self._discard()  # of a first write that failed
            self._closed = True
            self._file = None
            self._entries, self._offsets, self._sorted = {}, {}, []
