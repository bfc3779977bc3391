"""A store in one zip archive.

- Reads any zip file: stored, deflated and bzip2 entries, Zip64, directory entries, UTF-8 names with or without the flag.
  A range of a stored entry is read alone; a compressed entry is decompressed whole. CRC-32 is checked whenever a whole
  value is read.
- Writes go to a staged file beside the archive, which replaces it on `flush` and `close`: a crash leaves the archive
  unchanged. With mode ``a``, the first write copies the archive. Only one store at a time may write an archive: opening a
  second one for writing raises `StoreError`.
- A value that is set again replaces the old one in the directory; the old bytes remain in the file, unused.
- An archive cannot delete: `delete` of an existing key raises `UnsupportedOperationError`. `replace_prefix` can
  replace nodes, as `set` can replace values.
- Writes are published at the latest when the store is garbage-collected or the interpreter exits; better:
  ``with ZipStore(…) as store``.

Differences: zarr-python appends entries of duplicate names, changes the archive in place, and pickles writable stores, which
then overwrite each other; here a writable store cannot be pickled.

Source: OGC 21-050r1, "Zip Store" (a zipped directory store).

>>> import io
>>> file = io.BytesIO()
>>> with ZipStore(file, mode="w") as store:
...     store.set("a/b", b"1")
>>> ZipStore(file).get("a/b")
b'1'
"""

from __future__ import annotations

import os
import weakref
import zipfile
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import BinaryIO, Literal

from tessarr.errors import KeyValidationError, UnsupportedOperationError
from tessarr.stores.base import ANY, Any_, ConditionalStore, Listing, LockContext, Version, shared_copy
from tessarr.stores.fetch import Located
from tessarr.stores.functions import check_listed
from tessarr.stores.locks import KEYED_LOCKS
from tessarr.stores.path import check_key, check_prefix, is_plain_key
from tessarr.stores.protocols import fallback
from tessarr.stores.zip.archive import Archive
from tessarr.stores.zip.format import METHODS
from tessarr.types import Buffer, ByteRange

_List = list


class ZipStore(ConditionalStore):
    """A zip archive at a path, or in an open binary file, which must be seekable, and stays open.

    `mode`: ``r`` reads, ``a`` reads and writes, ``w`` truncates, ``x`` creates a new file. The default of `read_only` follows
    from `mode`. `compression` (``zipfile.ZIP_STORED``, ``ZIP_DEFLATED`` or ``ZIP_BZIP2``) is for new values, which codecs
    have usually compressed already. ``allowZip64=False`` refuses archives that need Zip64.

    Raises `FileNotFoundError`, `FileExistsError`, `StoreError` for a file that is not a zip file, `TypeError` for an object
    that is not a binary file, and `io.UnsupportedOperation` for one that cannot do what `mode` needs.
    """

    adapter = "zip"
    """In URL pipelines: ``place|zip:path``."""

    def __init__(
        self,
        path: str | os.PathLike[str] | BinaryIO,
        *,
        mode: Literal["r", "w", "a", "x"] = "r",
        read_only: bool | None = None,
        compression: int = zipfile.ZIP_STORED,
        allowZip64: bool = True,  # noqa: N803 - the name in zarr-python and zipfile
    ) -> None:
        if mode not in ("r", "w", "a", "x"):
            raise ValueError(f"mode must be 'r', 'w', 'a' or 'x'; got {mode!r}")
        if compression not in METHODS:
            raise ValueError(f"compression must be ZIP_STORED, ZIP_DEFLATED or ZIP_BZIP2; got {compression!r}")
        self.read_only = mode == "r" if read_only is None else read_only or mode == "r"
        self._archive = Archive(path, mode, compression, allowZip64)
        # Views (`with_read_only`) share the token; deleting the last reference publishes the writes.
        self._token = _Token()
        weakref.finalize(self._token, self._archive.close)

    @property
    def url(self) -> str:
        """The ``file:`` URL of the archive; for a file object, a name for messages."""
        return self._archive.url

    @property
    def path(self) -> str | None:
        """The absolute path of the archive; ``None`` for a file object."""
        return self._archive.path

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ZipStore):
            return False
        one, two = self._archive, other._archive
        same = one is two or (one.path is not None and one.path == two.path and self.read_only)
        return same and self.read_only == other.read_only

    def __hash__(self) -> int:
        return hash(self.url)

    __copy__ = shared_copy

    def __reduce__(self) -> tuple[object, ...]:
        if not self.read_only or self._archive.is_dirty or self.path is None:
            raise UnsupportedOperationError(
                "this zip store cannot be pickled",
                store=self.url,
                expected="a read-only archive at a path",
                hint="Two writers would overwrite each other; write from one process, or to a LocalStore",
            )
        return ZipStore, (self.path,)

    def flush(self) -> None:
        """Publish written values to the archive. The next write copies the archive again."""
        self._archive.flush()

    def close(self) -> None:
        """Publish written values and close the archive, for all its views. A closed store cannot be used."""
        self._archive.close()

    # -- reading -----------------------------------------------------------------------------------------------

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        if byte_range is not None:
            parts = self.get_ranges(key, (byte_range,))
            return None if parts is None else parts[0]
        if not is_plain_key(key):
            check_key(key)
        return self._archive.read(key)

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> _List[Buffer] | None:
        if not is_plain_key(key):
            check_key(key)
        return self._archive.read_ranges(key, ranges)

    def locate(self, keys: Sequence[str]) -> Sequence[Located | None] | None:
        """See `tessarr.stores.protocols.Locate`: extents of the archive, for values stored in a file without compression."""
        for key in keys:
            if not is_plain_key(key):
                check_key(key)
        return self._archive.locate(keys)

    def exists(self, key: str) -> bool:
        return self.getsize(key) is not None

    def getsize(self, key: str) -> int | None:
        """See `Store.getsize`: reads the directory."""
        check_key(key)
        info = self._archive.entries().get(key)
        return None if info is None else info.file_size

    def version(self, key: str) -> Version | None:
        check_key(key)
        return self._archive.version(key)

    # -- writing -----------------------------------------------------------------------------------------------

    def set(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        """See `Store.set`. `flush` and `close` publish the value."""
        self._check_writable(key)
        check_key(key)
        return self._archive.write({key: value}, if_match=if_match)

    def replace_prefix(self, prefix: str, items: Mapping[str, Buffer]) -> None:
        """See `Store.replace_prefix`: one change of the directory."""
        self._check_writable(prefix)
        check_prefix(prefix)
        for key in items:
            check_key(key)
            if not key.startswith(prefix):
                raise KeyValidationError("the key is outside the prefix", key=key, expected=f"a key under {prefix!r}")
        self._archive.write(items, replaced_prefix=prefix)

    def commit(
        self,
        changes: Mapping[str, Buffer | None],
        expected: Mapping[str, Version | None],
        *,
        listed: Collection[str] = (),
        durable: bool | None = None,
    ) -> None:
        """See `tessarr.stores.protocols.Commit`: the archive is published, with what was written before. It is synced."""
        self._check_writable("")
        for key, value in changes.items():
            check_key(key)
            if value is None:
                self.delete(key)  # raises if there is such a value
        new = {key: value for key, value in changes.items() if value is not None}
        self._archive.commit(new, expected, lambda: check_listed(self.url, listed, self.list, changes, expected))

    def lock(self, key: str) -> LockContext:
        """See `Store.lock`: excludes threads of this process; no other process writes the archive."""
        self._check_writable(key)
        check_key(key)
        return KEYED_LOCKS.hold((id(self._archive), key))

    @fallback
    def delete(self, key: str) -> None:
        """Do nothing for a missing key; raise `UnsupportedOperationError` for an existing one."""
        self._check_writable(key)
        if self.exists(key):
            raise UnsupportedOperationError(
                "a zip archive cannot delete", store=self.url, key=key, hint="Copy what you want to keep to a new one"
            )

    def delete_prefix(self, prefix: str) -> None:
        self._check_writable(prefix)
        for key in self.list_prefix(prefix):
            self.delete(key)

    # -- listing -----------------------------------------------------------------------------------------------

    def list(self, prefix: str = "") -> Iterator[str]:
        """See `Store.list`; sorted."""
        check_prefix(prefix)
        keys = self._archive.keys()
        # The successor of "/" in Unicode is "0": all keys with the prefix sort between the two.
        return iter(keys[bisect_left(keys, prefix) : bisect_left(keys, prefix[:-1] + "0")] if prefix else keys)

    def stamp(self, prefix: str, counts: Callable[[str], bool]) -> str:
        """See `tessarr.stores.protocols.Stamp`: sizes and CRC-32 of the directory."""
        from tessarr.common.stamps import StampSum

        total, entries = StampSum(), self._archive.entries()
        for key in filter(counts, self.list(prefix)):
            total.add(key, (entries[key].file_size, entries[key].CRC))
        return total.hexdigest()

    def list_dir(self, prefix: str) -> Listing:
        """See `Store.list_dir`: skips the keys below each child."""
        check_prefix(prefix)
        keys = self._archive.keys()
        found = Listing([], [])
        at = bisect_left(keys, prefix)
        while at < len(keys) and keys[at].startswith(prefix):
            name, slash, _ = keys[at][len(prefix) :].partition("/")
            if slash:
                found.prefixes.append(f"{prefix}{name}/")
                at = bisect_left(keys, f"{prefix}{name}0", at)
            else:
                found.keys.append(prefix + name)
                at += 1
        return found


class _Token:
    """A reference that all views of one archive share."""

    __slots__ = ("__weakref__",)
