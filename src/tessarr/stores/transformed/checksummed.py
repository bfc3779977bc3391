"""A store that keeps a checksum beside each value, and verifies it."""

from __future__ import annotations

from collections.abc import Sequence

from tessarr.errors import ChecksumError
from tessarr.stores.base import ANY, Any_, Store, Version
from tessarr.stores.buffers import byte_view
from tessarr.stores.protocols import Locate
from tessarr.stores.transformed.parts import Part, PartsStore
from tessarr.types import Buffer, ByteRange

_List = list
_SUFFIX = ".crc32c"


class ChecksummingStore(PartsStore):
    """A store around `store` that keeps the CRC-32C of each value, four bytes, little-endian, under its key and ``.crc32c``.

    Value and checksum are written in one step, so that writing needs a store that can `Commit`. Every read, of a range too,
    reads the whole value and verifies it. Raises `ChecksumError` for a value that was changed, and `StoreError` for one
    without checksum. Other programs read the values as they are, and make them unreadable here by writing.

    >>> from tessarr.stores.memory.store import MemoryStore
    >>> values = {}
    >>> store = ChecksummingStore(MemoryStore(values))
    >>> store.set("a", b"123456789")
    >>> values["a.crc32c"].hex(), bytes(store.get("a"))
    ('839206e3', b'123456789')
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store, [Part(""), Part(_SUFFIX, 4)])

    def has_ability(self, ability: type) -> bool:
        """See `PartsStore`; values that others read from their files would not be verified."""
        return ability is not Locate and super().has_ability(ability)

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        parts = self._get_parts(key)
        if parts is None:
            return None
        value, stored = parts
        found = _checksum(value)
        if found != stored:
            raise ChecksumError(
                "the value differs from its checksum",
                store=self.url,
                key=key,
                expected=stored.hex(),
                got=found.hex(),
                hint="Restore the value from a copy",
            )
        return value if byte_range is None else value[slice(*byte_range.bounds(value.nbytes))]

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> _List[Buffer] | None:
        """See `Store.get_ranges`: of the whole value, which is verified."""
        value = self.get(key)
        if value is None:
            return None
        view = byte_view(value)
        return [view[slice(*byte_range.bounds(view.nbytes))] for byte_range in ranges]

    def getsize(self, key: str) -> int | None:
        nbytes = super().getsize(key)
        return None if nbytes is None else nbytes - 4

    def set(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        self._commit(key, [value, _checksum(byte_view(value))], if_match)
        return None


def _checksum(value: memoryview) -> bytes:
    import google_crc32c

    return int(google_crc32c.value(bytes(value))).to_bytes(4, "little")
