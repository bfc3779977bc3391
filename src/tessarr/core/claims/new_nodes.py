"""Create documents in a transaction of level *publish*.

No document can have the intent before it exists, and readers must not see it before the transaction is committed. So its claim
is an object of its own (`intents.CLAIM`), which keeps other writers of the library from creating a node there: they look for it
after they have created theirs, and the transaction looks for a document after it has stored the claim. Readers look for the
claim where they find no document.

A claim without a record is what an undone transaction left that may have stored chunks there. It stays until a repair: a chunk
that arrives late would else become part of a new array.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

from tessarr.core.asynchronous.sans_io import store_call
from tessarr.core.claims.intents import CLAIM, claim_of, intent_in
from tessarr.metadata.formats import DOCUMENT_NAMES
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
        if not await _is_claimed_steps(store, key, identifier):  # it had been created, and was removed since
            await remove_value_steps(store, key, document)
            return False
    await remove_claim_steps(store, key, identifier)
    return there is not None and intent is None


def _instead_of(there: Buffer | None, document: bytes, old: Buffer | None) -> bytes:
    """Return `document` if the stored value is what was `there`, or `document` after an answer was lost."""
    now = None if old is None else bytes(old)
    if now not in (None if there is None else bytes(there), document):
        raise UnchangedError
    return document


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


async def remove_value_steps(store: Store, key: str, value: bytes) -> None:
    """Remove the value at `key` if it is `value`."""

    def remove(old: Buffer | None) -> None:
        if old is None or bytes(old) != value:
            raise UnchangedError

    with suppress(UnchangedError):
        await store_call(store, "update", key, remove)


def is_abandoned(store: Store, claim: str) -> bool:
    """Whether the value at the key `claim` is the claim of a transaction that has no record any more."""
    intent = intent_in(store.get(claim), claim)
    record = None if intent is None else intent.record_key(claim)
    return record is not None and not store.exists(record)


def remove_abandoned(store: Store, claim: str, save: Callable[[str, Buffer | None], None]) -> bool:
    """Remove the abandoned claim at the key `claim`, and what is stored below the node that it was for, if no node is there.

    `save` is called with each key and value before they are removed. Returns whether there was such a claim.
    """
    if not is_abandoned(store, claim):
        return False
    keys = sorted(store.list_prefix(claim.removesuffix(CLAIM)), key=lambda key: (key == claim, key))
    if any(key.rpartition("/")[2] in DOCUMENT_NAMES for key in keys):
        keys = [claim]  # of another program, and what is below is its own
    for key in keys:
        save(key, store.get(key))
        store.delete(key)
    return True
