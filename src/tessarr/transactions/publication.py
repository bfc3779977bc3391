"""Commit a transaction where only one value can be replaced conditionally: level *publish*.

It can change documents of nodes that are there, and chunks beyond the shape of their arrays (appends). The steps, of which
`tessarr.core.claims` has the rules:

1. The record is stored, pending.
2. Each document gets the intent and, for appended rows, the reservation of a region, if its content is what the transaction has
   read; and what it has only read is compared.
3. The record says that rows are stored from now on; they are stored, in the regions.
4. The record says "committed": the commit point.
5. The documents are replaced, and the record is removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from tessarr.core.array_parts.append_reserved import store_region_steps
from tessarr.core.asynchronous import clock
from tessarr.core.asynchronous.sans_io import run_steps
from tessarr.core.claims import intents, settle
from tessarr.core.claims.intents import NAME, Change, Record, Region
from tessarr.core.open import open_array
from tessarr.core.stored.consolidated import follow_changes
from tessarr.errors import ConflictError, PendingCommitError, StoreError, UnsupportedOperationError
from tessarr.metadata import formats, reservations
from tessarr.metadata.array import ArrayMetadata
from tessarr.stores.base import Store, Version
from tessarr.stores.functions import check_versions
from tessarr.stores.path import prefix_of
from tessarr.transactions.document_merge import is_document
from tessarr.transactions.overlay import OverlayStore
from tessarr.types import AnyArray, Buffer


@dataclass(frozen=True, slots=True)
class _Growth:
    """An array that the transaction appends to."""

    path: str
    old: ArrayMetadata
    new: ArrayMetadata
    axis: int
    chunks: tuple[str, ...]
    """The keys of the chunks that change."""

    @property
    def region(self) -> Region:
        return Region(self.axis, self.new.shape[self.axis] - self.old.shape[self.axis])


class Publication:
    """The changes of one transaction of level *publish*, in `store`, at and below `root`."""

    def __init__(self, store: Store, root: str, overlay: OverlayStore) -> None:
        self._store, self._root, self._overlay = store, root, overlay

    def commit(
        self, changes: Mapping[str, bytes | None], expected: Mapping[str, Version | None], before: Mapping[str, bytes]
    ) -> None:
        """Make `changes` if the values that were read are still as `expected`. `before`: the old documents.

        Raises `ConflictError`, having changed nothing, with the `keys` that differ; `UnsupportedOperationError` for changes
        that cannot be made at once; `PendingCommitError` if the store fails after the commit point.
        """
        growths = [*self._growths(changes, before, expected)]
        rows = [(growth, self._rows(growth)) for growth in growths]
        record, place = self._record(changes, before, growths)
        try:
            self._claim(record, place, changes, before, expected)
            if rows:
                self._store_rows(record, place, rows)
            self._decide(place)
        except BaseException as error:
            if self._is_void(record, place, error) or not isinstance(error, Exception):
                raise
        try:
            run_steps(settle.complete_steps(self._store, place, record, is_own=True))
            follow_changes(self._store, [key.rpartition("/")[0] for key in changes if is_document(key)])
        except StoreError as error:
            raise self._pending(error) from error

    # -- what it changes -----------------------------------------------------------------------------------------------

    def _record(
        self, changes: Mapping[str, bytes | None], before: Mapping[str, bytes], growths: Iterable[_Growth]
    ) -> tuple[Record, str]:
        keys = [key for key in changes if is_document(key)]
        prefix, regions = prefix_of(self._root), {growth.path: growth.region for growth in growths}
        if not all(key.startswith(prefix) for key in keys):
            prefix = ""  # consolidated metadata of a group above changes too
        documents: dict[str, Change] = {}
        for key in keys:
            new = changes[key]
            assert new is not None
            documents[key[len(prefix) :]] = Change(before[key], new, regions.get(key.rpartition("/")[0]))
        identifier, now = clock.CLOCK.owner(), clock.CLOCK.now()
        record = Record(id=identifier, state="pending", since=now, changes=dict(sorted(documents.items())))
        return record, f"{prefix}{intents.RECORD}{identifier}"

    def _growths(
        self, changes: Mapping[str, bytes | None], before: Mapping[str, bytes], expected: Mapping[str, Version | None]
    ) -> Iterable[_Growth]:
        """Find the arrays that are appended to. Raises `UnsupportedOperationError` for what cannot be published."""
        chunks: dict[str, list[str]] = {}
        nodes = {key.rpartition("/")[0]: key for key in changes if is_document(key)}
        for path, key in nodes.items():
            if key.rpartition("/")[2] != NAME:
                raise self._refused(
                    "documents of Zarr v1 and v2", key, "Describe the hierarchy in Zarr v3 first (tessarr migrate)"
                )
            if changes[key] is None:
                raise self._refused("the removal of a node", key, "Remove it outside the transaction")
            if key not in before:
                raise self._refused("a new node", key, "Create it before the transaction, and fill it inside")
            chunks[path] = []
        for key in changes:
            if is_document(key):
                continue
            path = key
            while path and path not in nodes:
                path = path.rpartition("/")[0]
            if path not in nodes:
                raise self._in_place(key)
            chunks[path].append(key)
        for path, keys in chunks.items():
            old, new = (_array(document, nodes[path]) for document in (before[nodes[path]], changes[nodes[path]]))
            if old is None and new is None:
                if keys:
                    raise self._in_place(keys[0])
                continue
            if old is None or new is None or not _is_alike(old, new):
                raise self._refused("the replacement of a node", nodes[path], "Replace it outside the transaction")
            if keys:
                yield self._growth(path, old, new, keys, expected)

    def _growth(
        self, path: str, old: ArrayMetadata, new: ArrayMetadata, keys: list[str], expected: Mapping[str, Version | None]
    ) -> _Growth:
        grown = [axis for axis, (n, m) in enumerate(zip(old.shape, new.shape, strict=True)) if n != m]
        if len(grown) != 1 or new.shape[grown[0]] < old.shape[grown[0]] or new.storage_transformers:
            raise self._in_place(keys[0])
        axis, prefix, inside = grown[0], prefix_of(path), old.chunk_grid.axes(old.shape)
        for key in keys:
            coords = new.chunk_key_encoding.decode(key.removeprefix(prefix), len(new.shape))
            if coords is None:
                raise self._in_place(key)
            if coords[axis] < inside[axis].nchunks and not self._has_same_old_rows(path, old, coords):
                check_versions(self._store.url, {key: expected[key]} if key in expected else {}, self._store.version)
                raise self._in_place(key)
        return _Growth(path, old, new, axis, tuple(keys))

    def _has_same_old_rows(self, path: str, old: ArrayMetadata, coords: tuple[int, ...]) -> bool:
        """Whether the rows of a chunk that are within the old shape have the values that are stored."""
        axes = old.chunk_grid.axes(old.shape)
        where = tuple(
            slice(at.start(index), min(at.start(index) + at.size(index), length))
            for at, index, length in zip(axes, coords, old.shape, strict=True)
        )
        own, stored = (_read(store, path, where) for store in (self._overlay, self._store))
        if own.dtype.hasobject:
            return bool((own == stored).all())
        return own.tobytes() == stored.tobytes()

    def _rows(self, growth: _Growth) -> AnyArray:
        start = growth.old.shape[growth.axis]
        where = tuple(
            slice(start if axis == growth.axis else 0, length) for axis, length in enumerate(growth.new.shape)
        )
        return _read(self._overlay, growth.path, where)

    def _in_place(self, key: str) -> UnsupportedOperationError:
        return self._refused(
            "a change of chunks that are there",
            key,
            "Append along one axis of an array, or write outside the transaction; "
            "for several changes in place at once use a local directory, Redis, SQLite or Icechunk",
        )

    def _refused(self, what: str, key: str, hint: str) -> UnsupportedOperationError:
        return UnsupportedOperationError(
            f"a transaction in this store cannot publish {what}", store=self._store.url, key=key, hint=hint
        )

    # -- the steps -----------------------------------------------------------------------------------------------------

    def _claim(
        self,
        record: Record,
        place: str,
        changes: Mapping[str, bytes | None],
        before: Mapping[str, bytes],
        expected: Mapping[str, Version | None],
    ) -> None:
        root = place.removesuffix(intents.RECORD + record.id)
        self._refuse_pending_appends(record, root)
        check_versions(self._store.url, _others(expected, changes), self._store.version)
        run_steps(settle.store_record_steps(self._store, place, record))
        for relative, change in record.changes.items():
            self._claim_one(record, root + relative, change.old, record.claimed(relative))
        check_versions(self._store.url, _others(expected, changes), self._store.version)

    def _refuse_pending_appends(self, record: Record, root: str) -> None:
        for key, change in record.changes.items():
            document = formats.loads(NAME, change.old, key=key)
            pending = reservations.parse(document)
            if pending is not None and (pending.reserved or pending.closed):
                raise ConflictError(
                    "an append or a resize of an array that the transaction changes has not ended",
                    store=self._store.url,
                    key=root + key,
                    hint="Run the transaction again when it has ended",
                )
            if pending is not None and change.region is not None and pending.axis != change.region.axis:
                hint = "Append along the axis along which others append"
                raise self._refused("an append along this axis", root + key, hint)

    def _claim_one(self, record: Record, key: str, old: bytes, claimed: bytes) -> None:
        """Add the intent to the document at `key`, if it is `old`. Waits for another transaction that claims it."""

        def claim(found: Buffer | None) -> bytes:
            if found is not None and bytes(found) in (old, claimed):  # the answer to an earlier request may be lost
                return claimed
            raise self._changed(key)

        run_steps(settle.update_settled_steps(self._store, key, claim, own=record.id))

    def _changed(self, key: str) -> ConflictError:
        error = ConflictError(
            "another writer changed a document that the transaction changes, and nothing of it was written",
            store=self._store.url,
            key=key,
            hint="Run the transaction again",
        )
        error.keys = (key,)
        return error

    def _store_rows(self, record: Record, place: str, rows: list[tuple[_Growth, AnyArray]]) -> None:
        found = run_steps(settle.change_record_steps(self._store, place, lambda record: replace(record, stores=True)))
        if found is None or found.state != "pending":
            raise self._made_void()
        for growth, values in rows:
            start = growth.old.shape[growth.axis]
            region = reservations.Region(start, start + growth.region.length, record.id, record.since)
            array = open_array(self._store, path=growth.path, mode="r+", use_consolidated=False)
            run_steps(store_region_steps(array, growth.new, growth.axis, region, values))

    def _decide(self, place: str) -> None:
        """Commit, unless another writer has made the transaction void."""
        found = run_steps(settle.change_record_steps(self._store, place, lambda record: record.with_state("committed")))
        if found is None or found.state != "committed":
            raise self._made_void()

    def _made_void(self) -> ConflictError:
        return ConflictError(
            "the transaction took longer than another writer waited, which has made it void",
            store=self._store.url,
            got=f"more than {settle.EXPIRE_S} s from its first change to its commit",
            hint="Run the transaction again; append less at a time",
        )

    def _is_void(self, record: Record, place: str, error: BaseException) -> bool:
        """Undo what was done after `error`; return ``False`` if it is committed after all, and only the response was lost."""
        try:
            return run_steps(settle.void_steps(self._store, place, record))
        except StoreError as second:
            error.add_note(f"the transaction could not be undone; the next writer of its documents does so: {second}")
            return True

    def _pending(self, error: BaseException) -> PendingCommitError:
        return PendingCommitError(
            "the transaction is committed, and the store failed while it was carried out",
            store=self._store.url,
            got=str(error),
            hint="Do not repeat it: readers see the new values, and the next writer of its documents completes it",
        )


def _others(expected: Mapping[str, Version | None], changes: Mapping[str, bytes | None]) -> dict[str, Version | None]:
    """Select what was read and is not changed: changed documents are compared by their content, chunks merge."""
    return {key: version for key, version in expected.items() if key not in changes}


def _array(document: bytes | None, key: str) -> ArrayMetadata | None:
    assert document is not None
    node = formats.parse_node(3, {NAME: formats.loads(NAME, document, key=key)}).node
    return node if isinstance(node, ArrayMetadata) else None


def _is_alike(old: ArrayMetadata, new: ArrayMetadata) -> bool:
    """Whether two descriptions are of one array, which may have grown."""
    if len(old.shape) != len(new.shape) or any(n > m for n, m in zip(old.shape, new.shape, strict=True)):
        return False
    same = all(
        getattr(old, name) == getattr(new, name)
        for name in ("data_type", "chunk_key_encoding", "fill_value", "codecs", "storage_transformers")
    )
    return same and (old.chunk_grid == new.chunk_grid or hasattr(old.chunk_grid, "covering"))


def _read(store: Store, path: str, where: tuple[slice, ...]) -> AnyArray:
    array = open_array(store, path=path, mode="r", use_consolidated=False)
    found: AnyArray = array[where]
    return found
