"""A directory without the links that lead out of it: what a server shows is in the directory that its user named."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Sequence

from tessarr.errors import StoreError
from tessarr.stores.base import Fetch, Listing, Store
from tessarr.stores.fetch import Fetched
from tessarr.stores.local.file import ABSENT, FileValue, version_of
from tessarr.stores.local.store import LocalStore
from tessarr.types import Buffer, ByteRange

_List = list
_ATTEMPTS = 5
"""How often a file is read again that was changed in place while it was read."""
_WHOLE = (ByteRange(0),)


class ContainedStore(LocalStore):
    """A read-only `LocalStore` in which links out of the directory are missing, and links to directories are not listed.

    Links to files within the directory are followed. Where a file is, is asked of the opened file, so that no link that is made
    meanwhile leads out (on Windows before it is opened). A response of `fetch` has its version and the size of the value.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        super().__init__(root, read_only=True)
        self._inside = os.path.realpath(self._base).rstrip(os.sep) + os.sep

    def _open_value(self, path: str) -> int:
        descriptor = super()._open_value(path)
        if self._is_outside(_real_path(descriptor, path)):
            os.close(descriptor)
            raise FileNotFoundError(path)
        return descriptor

    def _stat_value(self, path: str) -> os.stat_result:
        descriptor = self._open_value(path)
        try:
            return os.fstat(descriptor)
        finally:
            os.close(descriptor)

    def _is_outside(self, real: str) -> bool:
        if real.startswith(self._inside):
            return False
        self._inside = os.path.realpath(self._base).rstrip(os.sep) + os.sep  # the directory may be a link that changes
        return not f"{real}{os.sep}".startswith(self._inside)

    def _leads_out(self, key: str) -> bool:
        return self._is_outside(os.path.realpath(self._path(key)))

    def fetch(self, requests: Sequence[Fetch]) -> _List[_List[Buffer] | None]:
        return [self._fetched(key, _WHOLE if ranges is None else ranges) for key, ranges in requests]

    def _fetched(self, key: str, ranges: Sequence[ByteRange]) -> Fetched | None:
        """Read ranges of a value; ``None``: it is missing. Raises `StoreError`."""
        try:
            for _ in range(_ATTEMPTS):
                descriptor = self._open_value(self._path(key))
                try:
                    status = os.fstat(descriptor)
                    if not stat.S_ISREG(status.st_mode):
                        return None
                    value = FileValue(descriptor, status)
                    parts = [value.read(one) for one in ranges]
                    if version_of(os.fstat(descriptor)) == value.version:
                        return Fetched(parts, value.version, value.nbytes)
                finally:
                    os.close(descriptor)
        except ABSENT:
            return None
        except OSError as error:
            raise self._trouble("read", key, error) from error
        raise StoreError("the value changed while it was read", store=self.url, key=key, got=f"{_ATTEMPTS} times")

    def list(self, prefix: str = "") -> Iterator[str]:
        return (key for key in super().list(prefix) if not self._leads_out(key))

    def list_dir(self, prefix: str) -> Listing:
        if prefix and self._leads_out(prefix[:-1]):
            return Listing([], [])
        found = super().list_dir(prefix)
        return Listing(
            [key for key in found.keys if not self._leads_out(key)],
            [name for name in found.prefixes if not os.path.islink(self._path(name[:-1]))],
        )


def contained(store: Store) -> Store:
    """Return a directory without links out of it; any other store as it is."""
    if type(store) is not LocalStore:
        return store
    made = ContainedStore(store.root)
    made.manifest_options = store.manifest_options
    return made


def _real_path(descriptor: int, path: str) -> str:
    """Return the path of an opened file without links."""
    try:
        if sys.platform == "linux":
            return os.readlink(f"/proc/self/fd/{descriptor}")
        if sys.platform == "darwin":
            import fcntl

            return os.fsdecode(fcntl.fcntl(descriptor, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))
    except OSError:  # there is no /proc
        pass
    return os.path.realpath(path)
