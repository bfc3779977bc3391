"""Read and write documents in which a transaction of level *publish* may have left an intent (`tessarr.core.claims.intents`).

Readers see a document with an intent as it is before the transaction, or, where its record says that it is committed, as it is
after it; where the record is decided, and they may write, they complete or undo the transaction. A writer that finds an
intent settles the transaction first: a committed one is completed, one that is pending is waited for, and after `EXPIRE_S`
seconds made void. That is safe at any time, because the transaction commits by replacing the record, which then is not the one
that it stored. So a writer never depends on the process that began a transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from tessarr.common.json_merge import merged
from tessarr.common.warn import warn
from tessarr.core.asynchronous import clock
from tessarr.core.asynchronous.sans_io import Call, store_call
from tessarr.core.claims import intents
from tessarr.core.claims.intents import Intent, Record
from tessarr.errors import ConflictError, StoreError, ZarrRuntimeWarning
from tessarr.stores.base import Fetch, Store
from tessarr.types import Buffer

EXPIRE_S = 600
"""After so many seconds a transaction that has not committed may be made void by another writer."""
_PAUSES_S = (0.005, 1.0)
"""Back-off of writers that wait for a transaction: the first and the longest pause."""

Documents = list[list[Buffer] | None]


class _IntentFoundError(Exception):
    """End an update of a document that a transaction claims."""

    def __init__(self, intent: Intent) -> None:
        self.intent = intent


class _UnchangedError(Exception):
    """End an update that has nothing to change."""


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
                    await _end_steps(store, place, record)
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
            raise _IntentFoundError(intent)
        return change(old)

    while True:
        update = store_call(store, "update", key, settled)
        try:
            await (update if sent is None else sent(update))
        except _IntentFoundError as found:
            await settle_steps(store, key, found.intent)
        else:
            return


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
            await _end_steps(store, place, record)
            return
        await clock.CLOCK.pause(pause_s)
        pause_s = min(1.5 * pause_s, _PAUSES_S[1])
        if not intents.intent_in(await store_call(store, "get", key), key):
            return


def is_fresh(record: Record) -> bool:
    """Whether the process of a transaction is given more time, to commit it, or to find out that it is committed."""
    return clock.CLOCK.now() - record.since < EXPIRE_S


async def end_left_steps(store: Store, place: str) -> bool:
    """End the transaction whose record is at `place` if its process did not: complete it, or undo it.

    Returns whether it did: not what has ended meanwhile, or is given more time (`is_fresh`).
    """
    data = await store_call(store, "get", place)
    record = None if data is None else Record.parse(data, place)
    if record is None or is_fresh(record):
        return False
    await _end_steps(store, place, record)
    return True


async def _end_steps(store: Store, place: str, record: Record) -> None:
    """Complete a transaction that is committed, make any other one void, and undo it."""
    if record.state == "committed":
        await complete_steps(store, place, record)
    else:
        await void_steps(store, place, record)


async def complete_steps(store: Store, place: str, record: Record, *, is_own: bool = False) -> None:
    """Replace the documents of a committed transaction, and remove its record, which is at `place`. May be repeated.

    `is_own`: by the process that has committed it.
    """
    root = place.removesuffix(intents.RECORD + record.id)
    both: set[str] = set()
    for relative in record.changes:
        with suppress(_UnchangedError):
            await store_call(store, "update", root + relative, partial(_carried_out, root, relative, record, both))
    for key in sorted(both):
        warn(f"a transaction and another program changed {key} at the same time", ZarrRuntimeWarning)
    if is_own or not is_fresh(record):  # before, its process may still look for it
        await store_call(store, "delete", place)


def _carried_out(root: str, relative: str, record: Record, both: set[str], old: Buffer | None) -> Buffer:
    """Return the new content of the document `old`. Raises `_UnchangedError` where the intent is not in it any more.

    The key is added to `both` if another program changed the same member: its document stays.
    """
    key, claimed, new = root + relative, record.claimed(relative), record.changes[relative].new
    intent = intents.intent_in(old, key)
    if old is None or intent is None or intent.id != record.id:
        raise _UnchangedError  # it was replaced, and may have been changed since
    if bytes(old) == claimed:
        return new
    joined = merged(claimed, new, old)
    if joined is None:
        both.add(key)
        return intents.released(bytes(old), key, record, intent)
    return joined


async def void_steps(store: Store, place: str, record: Record) -> bool:
    """Make a transaction void unless it is committed; then complete it. Returns whether it is void."""
    now = await change_record_steps(store, place, lambda found: found.with_state("void"))
    if now is not None and now.state == "committed":
        await complete_steps(store, place, now)
        return False
    root = place.removesuffix(intents.RECORD + record.id)
    record = now or record
    for relative in record.changes:
        await _release_steps(store, root + relative, record, Intent(record.id, relative.count("/")))
    await store_call(store, "delete", place)
    return True


async def _release_steps(store: Store, key: str, record: Record | None, intent: Intent) -> None:
    """Remove `intent` from the document at `key`, if it is there."""

    def release(old: Buffer | None) -> Buffer | None:
        found = intents.intent_in(old, key)
        if old is None or found is None or found.id != intent.id:
            raise _UnchangedError
        return intents.released(bytes(old), key, record, found)

    with suppress(_UnchangedError):
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
            raise _UnchangedError
        record = Record.parse(old, place)
        if record.state != "pending":
            found.append(record)
            raise _UnchangedError
        found.append(change(record))
        return found[0].dumps()

    with suppress(_UnchangedError):
        await store_call(store, "update", place, decide)
    return found[0] if found else None
