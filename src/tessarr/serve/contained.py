"""A directory without the links that lead out of it: what a server shows is in the directory that its user named."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from tessarr.stores.base import Fetch, Listing, Store
from tessarr.stores.local.store import LocalStore
from tessarr.types import Buffer, ByteRange

_List = list


class ContainedStore(LocalStore):
    """A read-only `LocalStore` in which links out of the directory are missing, and links to directories are not listed.

    Links to files within the directory are followed. A link that is made between the check and the read is not noticed:
    who can write to the directory decides what is served.
    """

    def _leads_out(self, key: str) -> bool:
        root = os.path.realpath(self._base)
        file = os.path.realpath(self._path(key)) if key else root
        return file != root and not file.startswith(root.rstrip(os.sep) + os.sep)

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        return None if self._leads_out(key) else super().get(key, byte_range)

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> _List[Buffer] | None:
        return None if self._leads_out(key) else super().get_ranges(key, ranges)

    def fetch(self, requests: Sequence[Fetch]) -> _List[_List[Buffer] | None]:
        inside = [request for request in requests if not self._leads_out(request.key)]
        found = iter(super().fetch(inside))
        kept = {id(request) for request in inside}
        return [next(found) if id(request) in kept else None for request in requests]

    def _status(self, key: str) -> os.stat_result | None:
        return None if self._leads_out(key) else super()._status(key)

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
    return ContainedStore(store.root, read_only=True) if type(store) is LocalStore else store
