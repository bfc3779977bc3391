"""Commit a transaction where only one value can be replaced conditionally: level *publish*.

It can change documents of nodes that are there, and chunks beyond the shape of their arrays (appends), and create nodes with
chunks. The steps, of which `tessarr.core.claims` has the rules:

1. The record is stored, pending.
2. Each document gets the intent and, for appended rows, the reservation of a region, if its content is what the transaction has
   read; beside each new one its claim is created; and what it has only read is compared.
3. The record says that rows and chunks are stored from now on; they are stored, in the regions and below the claims.
4. The claims are looked for, which another program may have dropped. The record says "committed": the commit point.
5. The documents are replaced and created, and the record is removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tessarr.core.array import Array
from tessarr.core.array_parts.append_reserved import release_steps, store_region_steps
from tessarr.core.array_parts.region_io import fill_late_steps
from tessarr.core.asynchronous import clock
from tessarr.core.asynchronous.sans_io import gather_calls, run_steps, store_call
from tessarr.core.claims import intents, settle
from tessarr.core.claims.intents import NAME, Change, Record
from tessarr.core.claims.new_nodes import put_back_steps, remove_claim_steps
from tessarr.core.open import open_array
from tessarr.core.stored.consolidated import follow_changes
from tessarr.errors import (
    ConflictError,
    IncompatibleNodeError,
    NodeNotFoundError,
    PendingCommitError,
    StoreError,
    TessarrError,
    UnsupportedOperationError,
)
from tessarr.metadata import formats, reservations
from tessarr.stores.base import Fetch, Store, Version
from tessarr.stores.functions import check_listed, check_versions
from tessarr.stores.local.transactions.stage import StagedValue
from tessarr.stores.path import prefix_of
from tessarr.stores.wrappers.creating import CreatingStore, Tenure
from tessarr.transactions.document_merge import is_consolidated, is_document
from tessarr.transactions.growth import Growth, SortedChanges
from tessarr.transactions.overlay import OverlayStore
from tessarr.types import AnyArray, Buffer

_COMMITTED = "the transaction is committed: the next writer of its documents completes it"


class Publication:
    """The changes of one transaction of level *publish*, in `store`, at and below `root`."""

    def __init__(self, store: Store, root: str, overlay: OverlayStore) -> None:
        self._store, self._root, self._overlay = store, root, overlay
        self._new: Mapping[str, bytes] = {}
        self._made: dict[str, bytes] = {}
        """What was stored of `_new`."""
        self._begun: list[tuple[Growth, reservations.Region, AnyArray]] = []
        """The regions that others leave to this transaction, because it may have stored rows there, and the rows."""
        self._in_doubt = False
        self._decides = False
        """Whether the request that commits may have been sent."""

    def commit(
        self, changes: Mapping[str, bytes | None], expected: Mapping[str, Version | None], before: Mapping[str, bytes]
    ) -> None:
        """Make `changes` if the values that were read are still as `expected`. `before`: the old documents.

        Raises `ConflictError`, having changed nothing, with the `keys` that differ; `UnsupportedOperationError` for changes
        that cannot be made at once; `PendingCommitError` if the store fails after the commit point.
        """
        found = SortedChanges(self._store, self._overlay, changes, before, expected)
        growths = [*found.growths()]
        rows = [(growth, found.rows(growth)) for growth in growths]
        self._new = {key: value for key, value in found.new_chunks().items() if isinstance(value, bytes)}
        record, place = self._record(changes, before, growths)
        try:
            self._claim(record, place, changes, before, expected)
            if rows or self._new:
                self._store_values(record, place, rows)
            self._compare_claims(record, place)
            self._decides = True
            self._decide(place)
        except BaseException as error:
            if self._is_void(record, place, error):
                raise
            if not isinstance(error, Exception):
                error.add_note(_COMMITTED)
                raise
        try:
            lacking = run_steps(settle.complete_steps(self._store, place, record, is_own=True))
            follow_changes(self._store, [key.rpartition("/")[0] for key in changes if is_document(key)])
        except StoreError as error:
            raise self._pending(error) from error
        except BaseException as error:
            error.add_note(_COMMITTED)
            raise
        if lacking:
            raise self._replaced(lacking)

    # -- what it changes -----------------------------------------------------------------------------------------------

    def _record(
        self, changes: Mapping[str, bytes | None], before: Mapping[str, bytes], growths: Iterable[Growth]
    ) -> tuple[Record, str]:
        keys = [key for key in changes if is_document(key)]
        prefix, regions = prefix_of(self._root), {growth.path: growth.region for growth in growths}
        if not all(key.startswith(prefix) for key in keys):
            prefix = ""  # consolidated metadata of a group above changes too
        documents: dict[str, Change] = {}
        for key in keys:
            new = changes[key]
            assert new is not None
            documents[key[len(prefix) :]] = Change(before.get(key), new, regions.get(key.rpartition("/")[0]))
        identifier, now = clock.CLOCK.owner(), clock.CLOCK.now()
        record = Record(id=identifier, state="pending", since=now, changes=dict(sorted(documents.items())))
        return record, f"{prefix}{intents.RECORD}{identifier}"

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
            if change.old is None:
                self._claim_new(root + relative, record.claimed(relative))
            else:
                self._claim_one(record, root + relative, change.old, record.claimed(relative))
        check_versions(self._store.url, _others(expected, changes), self._store.version)
        check_listed(self._store.url, self._overlay.listed, self._list_below, changes, expected)

    def _list_below(self, prefix: str) -> list[str]:
        """List keys but those of claims and records."""
        hidden = (intents.CLAIM, intents.RECORD)
        return [key for key in self._store.list_prefix(prefix) if not key.rpartition("/")[2].startswith(hidden)]

    def _refuse_pending_appends(self, record: Record, root: str) -> None:
        for key, change in record.changes.items():
            pending = None if change.old is None else reservations.parse(formats.loads(NAME, change.old, key=key))
            if pending is not None and (pending.reserved or pending.closed):
                raise ConflictError(
                    "an append or a resize of an array that the transaction changes has not ended",
                    store=self._store.url,
                    key=root + key,
                    hint="Run the transaction again when it has ended",
                )
            if pending is not None and change.region is not None and pending.axis != change.region.axis:
                raise UnsupportedOperationError(
                    "a transaction cannot publish an append along this axis here",
                    store=self._store.url,
                    key=root + key,
                    hint="Append along the axis along which others append",
                )

    def _claim_one(self, record: Record, key: str, old: bytes, claimed: bytes) -> None:
        """Add the intent to the document at `key`, if it is `old`. Waits for another transaction that claims it."""

        def claim(found: Buffer | None) -> bytes:
            if found is not None and bytes(found) in (old, claimed):  # the answer to an earlier request may be lost
                return claimed
            raise self._changed(key)

        run_steps(settle.update_settled_steps(self._store, key, claim, own=record.id))

    def _claim_new(self, key: str, claimed: bytes) -> None:
        """Store the claim of the document at `key`, if nothing is there. Waits for another transaction that claims it."""
        claim = intents.claim_of(key)
        while not self._store.set_if_not_exists(claim, claimed):
            found = self._store.get(claim)
            if found is None:
                continue
            if bytes(found) == claimed:  # the answer to an earlier request was lost
                break
            if not run_steps(settle.await_end_steps(self._store, claim, found)):
                raise ConflictError(
                    "a transaction that did not end has left chunks of a node that it was creating",
                    store=self._store.url,
                    key=claim,
                    hint="Remove them by `tessarr repair`",
                )
        if self._store.exists(key):
            raise self._changed(key)

    def _compare_claims(self, record: Record, place: str) -> None:
        """Raise `ConflictError` if another program has replaced a document that the transaction claims, or created one."""
        root = place.removesuffix(intents.RECORD + record.id)
        new = [root + relative for relative, change in record.changes.items() if change.old is None]
        claims = [root + record.claim_key(relative) for relative in record.changes]
        answers = self._store.fetch([Fetch(key) for key in (*claims, *new)])
        for relative, key, answer in zip(record.changes, claims, answers, strict=False):
            intent = intents.intent_in(answer[0], key) if answer else None
            change, claimed = record.changes[relative], record.claimed(relative)
            if (
                answer is None
                or intent is None
                or intent.id != record.id
                or (bytes(answer[0]) != claimed and settle.joined_with(claimed, change.new, answer[0]) is None)
            ):
                raise self._changed(root + relative)
        for key, answer in zip(new, answers[len(claims) :], strict=True):
            if answer is not None:
                raise self._changed(key)

    def _changed(self, key: str, what: str = "changed a document that the transaction changes") -> ConflictError:
        error = ConflictError(
            f"another writer {what}, and nothing of it was committed",
            store=self._store.url,
            key=key,
            hint="Run the transaction again",
        )
        error.keys = (key,)
        return error

    def _store_values(self, record: Record, place: str, rows: list[tuple[Growth, AnyArray]]) -> None:
        found = run_steps(settle.change_record_steps(self._store, place, lambda record: replace(record, stores=True)))
        if found is None or found.state != "pending":
            raise self._made_void()
        for growth, values in rows:
            start = growth.old.shape[growth.axis]
            region = reservations.Region(start, start + growth.region.length, record.id, record.since)
            self._begun.append((growth, region, values))
        for growth, region, values in self._begun:
            array = self._open(growth)
            if array is None:
                raise self._changed(prefix_of(growth.path) + NAME)
            self._in_doubt = True
            run_steps(store_region_steps(array, growth.new, growth.axis, region, values))
            self._in_doubt = False
        self._in_doubt = True
        run_steps(self._store_new_steps(record, place))

    def _open(self, growth: Growth) -> Array | None:
        """Open an array that grows; ``None``: others have removed or replaced it."""
        try:
            return open_array(self._store, path=growth.path, mode="r+", use_consolidated=False)
        except (NodeNotFoundError, IncompatibleNodeError):
            return None

    async def _store_new_steps(self, record: Record, place: str) -> None:
        """Store the chunks of new arrays, where nothing is.

        Raises `ConflictError` where another value is: of another program, or of who came after this process, which was stopped.
        """

        def look() -> None:
            data = self._store.get(place)
            if data is None or intents.Record.parse(data, place).state != "pending":
                raise self._made_void()

        store = CreatingStore(self._store, Tenure(look, clock.CLOCK.now, record.since))
        made = await gather_calls([store_call(store, "set_if_not_exists", *item) for item in self._new.items()])
        self._made = {key: self._new[key] for key, is_made in zip(self._new, made, strict=True) if is_made}
        others = [key for key in self._new if key not in self._made]
        answers = await store_call(self._store, "fetch", [Fetch(key) for key in others]) if others else []
        values = {key: answer and bytes(answer[0]) for key, answer in zip(others, answers, strict=True)}
        foreign = [key for key, value in values.items() if value != self._new[key]]
        self._in_doubt = len(foreign) < len(others)  # the answer to an earlier request may be lost
        if foreign:
            raise self._changed(foreign[0], "stored a chunk of an array that the transaction creates")

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
            is_void = run_steps(settle.void_steps(self._store, place, record))
            if is_void:
                self._release_regions()
                if not self._in_doubt:
                    run_steps(self._remove_new_steps(record, place))
        except TessarrError as second:
            what = "the transaction could not be undone; the next writer of its documents does so"
            if self._decides:
                what = "whether it is committed is unknown: look before you repeat it; the next writer completes or undoes it"
            error.add_note(f"{what}: {second}")
            return True
        return is_void

    def _release_regions(self) -> None:
        """Give back the rows, so that other appends do not wait; fill them where there are rows of others behind them.

        While a request for them may be in flight, undo only those that were stored after another writer had filled them.
        """
        for growth, region, values in self._begun:
            array = self._open(growth)
            if array is None:
                continue  # its rows are gone with it
            if self._in_doubt:
                run_steps(fill_late_steps(array, growth.axis, region, values))
            else:
                run_steps(release_steps(array, growth.axis, region.owner, region, clock.Attempt(), values))

    async def _remove_new_steps(self, record: Record, place: str) -> None:
        """Remove the chunks of new arrays, the claims, and the record, when no request for them is in flight.

        Not if the record is gone, and so the claims may be: what is there then is of others.
        """
        if not await store_call(self._store, "exists", place):
            return
        root = place.removesuffix(intents.RECORD + record.id)
        for key, value in self._made.items():
            await put_back_steps(self._store, key, value)
        for relative, change in record.changes.items():
            if change.old is None:
                await remove_claim_steps(self._store, root + relative, record.id)
        await store_call(self._store, "delete", place)

    def _pending(self, error: BaseException) -> PendingCommitError:
        return PendingCommitError(
            "the transaction is committed, and the store failed while it was carried out",
            store=self._store.url,
            got=str(error),
            hint="Do not repeat it: readers see the new values, and the next writer of its documents completes it",
        )

    def _replaced(self, keys: list[str]) -> PendingCommitError:
        return PendingCommitError(
            "the transaction is committed, and another program replaced documents at that moment, which lack its changes",
            store=self._store.url,
            key=keys[0],
            got=", ".join(keys),
            hint="Do not repeat all of it: look at these documents, and change them again. "
            "Let only programs that use tessarr write while a transaction commits",
        )


def _others(expected: Mapping[str, Version | None], changes: Mapping[str, bytes | None]) -> dict[str, Version | None]:
    """Select what was read and is not changed: changed documents are compared by their content, chunks merge."""
    return {key: version for key, version in expected.items() if key not in changes}


def count_requests(changes: Mapping[str, bytes | StagedValue | None], before: Mapping[str, bytes]) -> int:
    """Count the requests that write to commit `changes`, without those for rows and chunks. `before`: the old documents."""
    documents = [key for key in changes if is_document(key)]
    new = sum(key not in before for key in documents)
    consolidated = sum(is_consolidated(key, value) for key in documents if isinstance(value := changes[key], bytes))
    record = 3 if len(documents) == len(changes) else 4
    # Intent and document, or claim, document twice, and the end of the claim; and consolidated metadata once more.
    return record + 2 * (len(documents) - new) + 4 * new + consolidated
