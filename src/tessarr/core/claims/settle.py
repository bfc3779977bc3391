"""Read and write documents in which a transaction of level *publish* may have left an intent (`tessarr.core.claims.intents`).

Readers see a document with an intent as it is before the transaction, or, where its record says that it is committed, as it is
after it; where the record is decided, and they may write, they complete or undo the transaction. A writer that finds an
intent settles the transaction first: a committed one is completed, one that is pending is waited for, and after `EXPIRE_S`
seconds made void. That is safe at any time, because the transaction commits by replacing the record, which then is not the one
that it stored. So a writer never depends on the process that began a transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import cast

from tessarr.common.json_merge import both_changed, lacks, merged
from tessarr.common.warn import warn
from tessarr.core.asynchronous import clock
from tessarr.core.asynchronous.sans_io import Call, store_call
from tessarr.core.claims import intents, new_nodes
from tessarr.core.claims.intents import Intent, Record
from tessarr.core.claims.new_nodes import UnchangedError
from tessarr.errors import ConflictError, StoreError, ZarrRuntimeWarning
from tessarr.stores.base import Fetch, Store
from tessarr.stores.path import prefix_of
from tessarr.types import Buffer

EXPIRE_S = 600
"""After so many seconds a transaction that has not committed may be made void by another writer."""
_PAUSES_S = (0.005, 1.0)
"""Back-off of writers that wait for a transaction: the first and the longest pause."""

Documents = list[list[Buffer] | None]


class _IntentFoundError(ConflictError):
    """End an update of a document that a transaction claims."""

    intent: Intent


# -- reading -----------------------------------------------------------------------------------------------------------


async def resolve_steps(store: Store, requests: Sequence[Fetch], answers: Documents) -> Documents:
    """Replace documents that have an intent, among the `answers` to `requests`, by what they are for readers."""
    found = list(answers)
    for number, (request, answer) in enumerate(zip(requests, answers, strict=True)):
        if answer is not None and request.ranges is None and intents.intent_in(answer[0], request.key):
            data = await _read_steps(store, request.key, answer[0])
            found[number] = None if data is None else [data]
    return found


async def _read_steps(store: Store, key: str, data: Buffer | None) -> Buffer | None:
    """Return the document at `key`, which was `data`, as it is for readers."""
    while (intent := intents.intent_in(data, key)) is not None:
        assert data is not None
        place = intent.record_key(key)
        stored = None if place is None else await store_call(store, "get", place)
        if place is not None and stored is not None:
            record = Record.parse(stored, place)
            if record.state != "pending" and not store.read_only:
                with suppress(StoreError):  # who may not write reads what the record says
                    await end_steps(store, place, record)
                    data = await store_call(store, "get", key)
                    continue
            change = record.changes.get(_relative(key, intent))
            if change is not None and record.state == "committed":
                return change.new
            return change.old if change is not None else data
        again = None if place is None else await store_call(store, "get", key)
        if place is None or (again is not None and bytes(again) == bytes(data)):
            return intents.released(bytes(data), key, None, intent)
        data = again  # the transaction has ended meanwhile
    return data


async def resolve_missing_steps(
    store: Store, requests: Sequence[Fetch], answers: Documents, claims: Mapping[str, list[Buffer] | None]
) -> Documents:
    """Look for documents that a transaction creates, at paths without documents, among the `answers` to `requests`.

    `claims`: what is there under the name of a claim, by path.
    """
    places = {prefix_of(path) + intents.NAME: claim for path, claim in claims.items()}
    found = list(answers)
    for number, request in enumerate(requests):
        claim = places.get(request.key)
        data = None if claim is None else await _read_new_steps(store, request.key, claim[0])
        if data is not None:
            found[number] = [data]
    return found


async def _read_new_steps(store: Store, key: str, claim: Buffer) -> Buffer | None:
    """Return the document at `key`, which was not there and has a `claim`, as it is for readers."""
    intent = intents.intent_in(claim, intents.claim_of(key))
    place = None if intent is None else intent.record_key(key)
    stored = None if place is None else await store_call(store, "get", place)
    if intent is None or place is None or stored is None:
        return cast(
            "Buffer | None", await store_call(store, "get", key)
        )  # the transaction has ended meanwhile, or long ago
    record = Record.parse(stored, place)
    change = record.changes.get(_relative(key, intent))
    if record.state != "committed" or change is None:
        return None
    if not store.read_only:
        with suppress(StoreError):
            await end_steps(store, place, record)
            return cast("Buffer | None", await store_call(store, "get", key))
    return change.new


def _relative(key: str, intent: Intent) -> str:
    """Return a key relative to the record of an intent in the document there."""
    return "/".join(key.split("/")[-1 - intent.up :])


# -- writing -----------------------------------------------------------------------------------------------------------


async def update_settled_steps(
    store: Store,
    key: str,
    change: Callable[[Buffer | None], Buffer | None],
    sent: Callable[[Call], Call] | None = None,
    own: str | None = None,
) -> None:
    """Replace the document at `key` by ``change(document)`` in one `update`, when no transaction but `own` claims it.

    `sent` may wrap the call of `update`.
    """

    def settled(old: Buffer | None) -> Buffer | None:
        intent = intents.intent_in(old, key)
        if intent is not None and intent.id != own:
            found = _IntentFoundError("a transaction claims the document", key=key)
            found.intent = intent
            raise found
        return change(old)

    in_doubt = False
    while True:
        update = store_call(store, "update", key, settled)
        try:
            await (update if sent is None else sent(update))
        except _IntentFoundError as found:
            in_doubt |= found.in_doubt
            await settle_steps(store, key, found.intent)
        except ConflictError as error:
            if in_doubt:
                error.leave_in_doubt()
            raise
        else:
            return


async def swap_settled_steps(store: Store, key: str, expected: Buffer | None, new: Buffer | None) -> None:
    """Replace the document at `key` if it is `expected`; ``None`` stands for no document."""

    def change(stored: Buffer | None) -> Buffer | None:
        if (stored is None) != (expected is None):
            return stored
        return new if stored is None or expected is None or bytes(stored) == bytes(expected) else stored

    await update_settled_steps(store, key, change)


async def settle_steps(store: Store, key: str, intent: Intent) -> None:
    """Complete the transaction whose `intent` is in the document at `key`, or wait until it has ended."""
    place = intent.record_key(key)
    if place is None:
        raise ConflictError(
            "a transaction of a group above the root of this store changes the document",
            store=store.url,
            key=key,
            hint="Open the node through that group",
        )
    pause_s = _PAUSES_S[0]
    while True:
        data = await store_call(store, "get", place)
        if data is None:  # it has ended; what is left of it was stored late
            await _release_steps(store, key, None, intent)
            return
        record = Record.parse(data, place)
        if record.state != "pending" or not is_fresh(record):
            await end_steps(store, place, record)
            return
        await clock.CLOCK.pause(pause_s)
        pause_s = min(1.5 * pause_s, _PAUSES_S[1])
        if not intents.intent_in(await store_call(store, "get", key), key):
            return


def is_fresh(record: Record) -> bool:
    """Whether the process of a transaction is given more time, to commit it, or to find out that it is committed.

    One that is void is kept as long. One that began in the future, by a clock that is wrong, is given no time: no process would
    end it.
    """
    return abs(clock.CLOCK.now() - (record.since if record.ended is None else record.ended)) < EXPIRE_S


async def await_end_steps(store: Store, claim: str, data: Buffer) -> bool:
    """Wait until the transaction has ended whose claim of a new document is `data`, at the key `claim`.

    Returns whether the claim is gone, so that the document can be created, or is there.
    """
    intent = intents.intent_in(data, claim)
    if intent is not None:
        await settle_steps(store, claim, intent)
    now = await store_call(store, "get", claim)
    return now is None or bytes(now) != bytes(data)


async def end_steps(store: Store, place: str, record: Record) -> None:
    """Complete a transaction that is committed, make any other one void, and undo it."""
    if record.state == "committed":
        await complete_steps(store, place, record)
    else:
        await void_steps(store, place, record)


async def complete_steps(store: Store, place: str, record: Record, *, is_own: bool = False) -> list[str]:
    """Replace and create the documents of a committed transaction, and remove its record, which is at `place`. May be repeated.

    `is_own`: by the process that has committed it. Returns the keys of the documents that lack the changes, because another
    program has replaced them, or what claimed them; where another process of the library may have completed them before, a
    warning names them.
    """
    root = place.removesuffix(intents.RECORD + record.id)
    both: set[str] = set()
    lacking: set[str] = set()
    new = {root + relative for relative, change in record.changes.items() if change.old is None}
    if not is_own and not await _mark_helped_steps(store, place):
        return []
    for relative in sorted(record.changes, key=lambda key: (-key.count("/"), key)):
        key, change = root + relative, record.changes[relative]
        if change.old is None and await new_nodes.create_claimed_steps(store, key, record.created(relative), record.id):
            warn(f"a transaction replaced {key}, which another program created at the same time", ZarrRuntimeWarning)
        with suppress(UnchangedError):
            await store_call(store, "update", key, partial(_carried_out, root, relative, record, both, lacking))
    lost: list[str] = []
    if (both or lacking) and is_own and not await _is_helped_steps(store, place):
        lost = sorted(both | lacking)
    else:
        for key in sorted(both):
            warn(f"a transaction and another program changed {key} at the same time", ZarrRuntimeWarning)
        lacking -= new  # created by another process, and removed since
        if lacking:
            warn(
                f"{sorted(lacking)} may lack what a transaction committed: another program replaced them",
                ZarrRuntimeWarning,
            )
    if is_own or not is_fresh(record):  # before, its process may still look for it
        await store_call(store, "delete", place)
    return lost


async def _mark_helped_steps(store: Store, place: str) -> bool:
    """Note in a record that another process than its own completes the transaction. Returns whether the record is there."""
    found: list[bool] = []

    def mark(old: Buffer | None) -> Buffer | None:
        record = None if old is None else Record.parse(old, place)
        found[:] = [record is not None]
        if record is None or record.helped:
            raise UnchangedError
        return replace(record, helped=True).dumps()

    with suppress(UnchangedError):
        await store_call(store, "update", place, mark)
    return found == [True]


async def _is_helped_steps(store: Store, place: str) -> bool:
    data = await store_call(store, "get", place)
    return data is None or Record.parse(data, place).helped


def _carried_out(
    root: str, relative: str, record: Record, both: set[str], lacking: set[str], old: Buffer | None
) -> Buffer:
    """Return the new content of the document `old`. Raises `UnchangedError` where the intent is not in it any more.

    The key is added to `both` if another program changed the same member, or made rows of its own: its document stays; to
    `lacking` if the intent is gone, and so are the changes.
    """
    key, change = root + relative, record.changes[relative]
    claimed = record.created(relative) if change.old is None else record.claimed(relative)
    new, intent = change.new, intents.intent_in(old, key)
    if old is None or intent is None or intent.id != record.id:
        if change.old is None:
            lacking |= {key} if old is None else set()
        elif old is not None and lacks(change.old, new, old):
            lacking.add(key)
        raise UnchangedError  # it was replaced, and may have been changed since
    if bytes(old) == claimed:
        return new
    joined = joined_with(claimed, new, old)
    if joined is None:
        both.add(key)
        return intents.released(bytes(old), key, record, intent)
    return joined


def joined_with(claimed: bytes, new: bytes, found: Buffer) -> bytes | None:
    """Merge the change of a claimed document with that of a program which kept the claim; ``None``: they exclude each other.

    Two changes of a shape do, be it to the same one: each has stored rows of its own.
    """
    return None if both_changed(claimed, new, found, "shape") else merged(claimed, new, found)


async def void_steps(store: Store, place: str, record: Record) -> bool:
    """Make a transaction void unless it is committed; then complete it. Returns whether it is void.

    The record stays for `EXPIRE_S` seconds where chunks of new arrays may have been stored, and so do the claims of these.
    """
    ended = clock.CLOCK.now()
    now = await change_record_steps(store, place, lambda found: replace(found, state="void", ended=ended))
    if now is not None and now.state == "committed":
        await complete_steps(store, place, now)
        return False
    root = place.removesuffix(intents.RECORD + record.id)
    record = now or record
    for relative, change in record.changes.items():
        if change.old is not None:
            await _release_steps(store, root + relative, record, Intent(record.id, relative.count("/")))
        elif not record.stores:
            await new_nodes.remove_claim_steps(store, root + relative, record.id)
    if not (record.may_have_stored_new and is_fresh(record)):
        await store_call(store, "delete", place)
    return True


async def _release_steps(store: Store, key: str, record: Record | None, intent: Intent) -> None:
    """Remove `intent` from the document at `key`, if it is there."""

    def release(old: Buffer | None) -> Buffer | None:
        found = intents.intent_in(old, key)
        if old is None or found is None or found.id != intent.id or key.endswith(intents.CLAIM):
            raise UnchangedError  # a claim without a record is ended by a repair
        return intents.released(bytes(old), key, record, found)

    with suppress(UnchangedError):
        await store_call(store, "update", key, release)


async def store_record_steps(store: Store, place: str, record: Record) -> None:
    """Store a new record at `place`."""
    await store_call(store, "set_if_not_exists", place, record.dumps())


async def change_record_steps(store: Store, place: str, change: Callable[[Record], Record]) -> Record | None:
    """Replace the pending record at `place` by ``change(record)``. Returns what is there then; ``None``: no record.

    A record that is not pending stays as it is.
    """
    found: list[Record] = []

    def decide(old: Buffer | None) -> Buffer | None:
        found.clear()
        if old is None:
            raise UnchangedError
        record = Record.parse(old, place)
        if record.state != "pending":
            found.append(record)
            raise UnchangedError
        found.append(change(record))
        return found[0].dumps()

    with suppress(UnchangedError):
        await store_call(store, "update", place, decide)
    return found[0] if found else None
