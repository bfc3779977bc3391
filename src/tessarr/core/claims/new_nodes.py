"""Create documents in a transaction of level *publish*.

No document can have the intent before it exists, and readers must not see it before the transaction is committed. So its claim
is an object of its own (`intents.CLAIM`), which keeps other writers of the library from creating a node there: they look for it
after they have created theirs, and the transaction looks for a document after it has stored the claim. Readers look for the
claim where they find no document.

The claim of a transaction that is void and may have stored chunks stays, and its record, until a repair, for `EXPIRE_S` seconds
at least: a chunk that arrives late, or that a process stores which was stopped and has not looked at the record since, would
else become part of a new array.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from tessarr.core.asynchronous.sans_io import store_call
from tessarr.core.claims.intents import claim_of, intent_in
from tessarr.stores.base import Store
from tessarr.types import Buffer


class UnchangedError(Exception):
    """End an update that has nothing to change."""


async def create_claimed_steps(store: Store, key: str, document: bytes, identifier: str) -> bool:
    """Store `document`, which has the intent, at the `key` that a committed transaction has claimed, and remove the claim.

    May be repeated. A document without the intent is of another program, as long as the claim is there: tessarr removes the
    intent after the claim. It is replaced; returns whether there was one.
    """
    there = await store_call(store, "get", key)
    intent = intent_in(there, key)
    if intent is None or intent.id != identifier:
        if not await _is_claimed_steps(store, key, identifier):
            return False  # created, and perhaps removed since; or removed with the group around it
        try:
            await store_call(store, "update", key, partial(_instead_of, there, document))
        except UnchangedError:
            return await create_claimed_steps(store, key, document, identifier)
        if not await _is_claimed_steps(store, key, identifier):
            if not await _is_recorded_steps(store, key, document):  # it had been created, and was removed since
                await put_back_steps(store, key, document, there)
            return False  # another process found this document, and goes on with it
    await remove_claim_steps(store, key, identifier)
    return there is not None and intent is None


def _instead_of(there: Buffer | None, document: bytes, old: Buffer | None) -> bytes:
    """Return `document` if the stored value is what was `there`; it may be `document`, of another process, by now."""
    now = None if old is None else bytes(old)
    if now != (None if there is None else bytes(there)):
        raise UnchangedError
    return document


async def _is_recorded_steps(store: Store, key: str, document: bytes) -> bool:
    """Whether the record is there that the intent in `document` names: it is removed when all documents are stored."""
    intent = intent_in(document, key)
    place = None if intent is None else intent.record_key(key)
    return place is not None and await store_call(store, "get", place) is not None


async def _is_claimed_steps(store: Store, key: str, identifier: str) -> bool:
    claim = claim_of(key)
    intent = intent_in(await store_call(store, "get", claim), claim)
    return intent is not None and intent.id == identifier


async def remove_claim_steps(store: Store, key: str, identifier: str) -> None:
    """Remove the claim of the document at `key` if it is that of the transaction `identifier`."""

    def remove(old: Buffer | None) -> None:
        intent = intent_in(old, claim_of(key))
        if intent is None or intent.id != identifier:
            raise UnchangedError

    with suppress(UnchangedError):
        await store_call(store, "update", claim_of(key), remove)


async def put_back_steps(store: Store, key: str, value: bytes, before: Buffer | None = None) -> None:
    """Replace the value at `key`, if it is `value`, by what was there `before`; ``None``: remove it."""

    def put_back(old: Buffer | None) -> Buffer | None:
        if old is None or bytes(old) != value:
            raise UnchangedError
        return before

    with suppress(UnchangedError):
        await store_call(store, "update", key, put_back)
