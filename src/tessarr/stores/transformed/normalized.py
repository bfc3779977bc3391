"""A store in which names that differ only in their Unicode normalization are one name."""

from __future__ import annotations

import unicodedata

from tessarr.errors import StoreError
from tessarr.stores import functions
from tessarr.stores.protocols import List
from tessarr.stores.wrappers.base import ForwardingStore


class NormalizingStore(ForwardingStore):
    """A store around `store` whose keys are in normalization form C: "é" is one character, however a user types it.

    A key is found under any spelling that the wrapped store has, and new keys are written in form C. Raises `StoreError` where
    several stored keys have one form C, and none of them is in it. A key of ASCII costs nothing; another one that is not there
    in form C costs a listing per segment.

    Source: Zarr v3.1 core, "Node names", and zarr-specs issue 201.

    >>> from tessarr.stores.memory.store import MemoryStore
    >>> store = NormalizingStore(MemoryStore({"cafe\u0301/x": b"1"}))
    >>> store.get("caf\u00e9/x"), [*store.list()] == ["caf\u00e9/x"]
    (b'1', True)
    """

    def _inner_key(self, key: str) -> str:
        if key.isascii():
            return key
        normal = _normal(key)
        if not isinstance(self.store, List) or (normal[-1] != "/" and self.store.exists(normal)):
            return normal
        found = ""
        segments = normal.split("/")
        for number, segment in enumerate(segments):
            last = number == len(segments) - 1
            found += (segment if segment.isascii() else self._spelling(found, segment, last)) + ("" if last else "/")
        return found

    def _spelling(self, above: str, name: str, is_key: bool) -> str:
        """Return the spelling of `name` in the wrapped store, directly below the prefix `above`; `name` if it is new."""
        listing = functions.list_dir(self.store, above)
        names = {place[len(above) :].rstrip("/") for place in (listing.keys if is_key else listing.prefixes)}
        found = sorted(one for one in names if _normal(one) == name)
        if name in found or not found:
            return name
        if len(found) > 1:
            raise StoreError(
                "several keys are the same text in other Unicode forms",
                store=self.url,
                key=above + name,
                got=", ".join(map(ascii, found)),
                hint="Rename all but one of them",
            )
        return found[0]

    def _outer_key(self, key: str) -> str:
        return _normal(key)


def _normal(key: str) -> str:
    return unicodedata.normalize("NFC", key)
