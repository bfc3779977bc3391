"""A store around a store that reads values only as they were when it was made: for places that keep nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tessarr.errors import SnapshotChangedError, UnsupportedOperationError
from tessarr.stores.base import Fetch, Listing, Store, Version
from tessarr.stores.fetch import Fetched, version_of
from tessarr.stores.functions import children, settle_below
from tessarr.stores.path import check_key, check_prefix
from tessarr.stores.protocols import ConditionalSet, List, ListVersions, Settle
from tessarr.stores.virtual.branches import is_session
from tessarr.stores.wrappers.base import WrapperStore
from tessarr.types import Buffer, ByteRange

_List = list
_TRIES = 10
"""How often versions are listed while other writers change them."""


class RecordedSnapshot(WrapperStore):
    """The values under `prefix` in `store`, if they still have the versions that they had when this object was made.

    Reading any other raises `SnapshotChangedError`: nothing is kept. The versions are listed until two lists in succession are
    equal, so that they are of one moment. This takes two requests per 1,000 keys from object stores, and reads every value
    of a store that computes versions from values.

    `owned`: `close` closes `store`. Raises `UnsupportedOperationError` for a store without versions or listings.
    """

    def __init__(self, store: Store, prefix: str = "", *, owned: bool = False) -> None:
        super().__init__(store)
        self.owned = owned
        if not (isinstance(store, ConditionalSet) and isinstance(store, List)):
            raise UnsupportedOperationError(
                "this store has no snapshots: it lists no keys, or its values have no versions",
                store=store.url,
                hint="Open a read-only session of the repository: it reads one snapshot"
                if is_session(store)
                else "Copy what is to be read to a LocalStore or MemoryStore",
            )
        self.read_only = True
        self.prefix = prefix
        known: Mapping[str, Version] | None = None
        for _ in range(_TRIES):
            self.versions = _versions(store, prefix)
            if self.versions == known:
                return
            known = self.versions
        raise SnapshotChangedError(
            "other writers kept changing values while their versions were listed",
            store=self.url,
            key=prefix or None,
            hint="Try again when they pause",
        )

    def has_ability(self, ability: type) -> bool:
        return ability is not Settle and super().has_ability(ability)

    def __reduce__(self) -> tuple[object, ...]:
        raise UnsupportedOperationError("a snapshot cannot be pickled", store=self.url)

    def close(self) -> None:
        """Close the wrapped store, if it was opened for this snapshot."""
        if self.owned:
            self.store.close()

    async def close_async(self) -> None:
        if self.owned:
            await self.store.close_async()

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        found = self.fetch([Fetch(key, None if byte_range is None else (byte_range,))])[0]
        return None if found is None else found[0]

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> _List[Buffer] | None:
        return self.fetch([Fetch(key, tuple(ranges))])[0]

    def fetch(self, requests: Sequence[Fetch]) -> _List[_List[Buffer] | None]:
        """See `Store.fetch`. A key that was missing is not requested."""
        for request in requests:
            check_key(request.key)
        there = [request for request in requests if self.version(request.key) is not None]
        found = dict(zip(there, self.store.fetch(there), strict=True)) if there else {}
        for request, answer in found.items():
            self._check(request.key, answer)
        return [found.get(request) for request in requests]

    def _check(self, key: str, answer: _List[Buffer] | None) -> None:
        got = None if answer is None else version_of(answer)
        if answer is not None and not (isinstance(answer, Fetched) and got is not None):
            got = self.store.version(key)  # after the value was read: versions do not come back
        if got != self.versions[key]:
            raise SnapshotChangedError(
                "the value was changed after the snapshot was taken",
                store=self.url,
                key=key,
                expected=f"version {self.versions[key]}",
                got=got,
                hint="Take another snapshot. This store keeps no values that were replaced",
            )

    def version(self, key: str) -> Version | None:
        if not key.startswith(self.prefix):
            raise SnapshotChangedError("the key is outside the snapshot", store=self.url, key=key)
        return self.versions.get(key)

    def list(self, prefix: str = "") -> Iterator[str]:
        check_prefix(prefix)
        return (key for key in self.versions if key.startswith(prefix))

    def list_dir(self, prefix: str) -> Listing:
        return children(self.list(prefix), prefix)


def _versions(store: Store, prefix: str) -> Mapping[str, Version]:
    settle_below(store, prefix)
    if isinstance(store, ListVersions):
        return store.list_versions(prefix)
    found = ((key, store.version(key)) for key in store.list_prefix(prefix))
    return {key: version for key, version in found if version is not None}
