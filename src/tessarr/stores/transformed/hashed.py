"""The storage transformer ``tessarr.hashed``: chunks in directories that are named by a hash of their keys.

    {"name": "tessarr.hashed", "configuration": {"hash": "crc32c", "digits": 2}}

The chunk ``c/3/4`` of the array ``a`` is stored under ``a/<digits>/c/3/4``: the first hexadecimal digits of the CRC-32C of
its key below the array (UTF-8). So the chunks of one array are spread evenly over 16ⁿ directories, or prefixes of a bucket.
The key encoding `fanout` bounds directories, too, and other implementations may know it.

Source: ZEP 1 and zarr-specs issue 115 ("chunks across hashed sub-directories"); the form is tessarr's own.

>>> HashedTransformer.from_json({"digits": 3}).wrap(Store(), "a", None)._inner_key("a/c/3/4")
'a/0d9/c/3/4'
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from tessarr.codecs.members import choice, integer, read_members
from tessarr.stores.base import Store
from tessarr.stores.path import check_key
from tessarr.stores.transformed.relocated import RelocatedStore
from tessarr.types import JSON

_MEMBERS = {"hash": choice("crc32c"), "digits": integer(1, 8)}


class HashedTransformer:
    """Make stores that spread chunks over directories."""

    changes_layout = True

    def __init__(self, digits: int = 2) -> None:
        self.digits = digits

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        found = read_members("tessarr.hashed", configuration, _MEMBERS, kind="storage transformer")
        return cls(found.get("digits", 2))

    def wrap(self, store: Store, path: str, metadata: object) -> Store:
        return HashedStore(store, path, self.digits)


class HashedStore(RelocatedStore):
    """A store that puts `digits` hexadecimal digits of a hash before each key below `path`."""

    def __init__(self, store: Store, path: str, digits: int) -> None:
        super().__init__(store, path)
        self.digits = digits

    def _inner_key(self, key: str) -> str:
        check_key(key)
        name = key.removeprefix(self.prefix)
        return f"{self.prefix}{self._hash(name)}/{name}"

    def _own_key(self, inner: str) -> str | None:
        directory, _, name = inner.removeprefix(self.prefix).partition("/")
        return self.prefix + name if name and directory == self._hash(name) else None

    def _hash(self, name: str) -> str:
        import google_crc32c

        return f"{google_crc32c.value(name.encode()):08x}"[: self.digits]
