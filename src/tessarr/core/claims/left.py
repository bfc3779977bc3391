"""End transactions of level *publish* whose processes did not, and remove what they have left: what `tessarr repair` does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tessarr.core.asynchronous.sans_io import run_steps, store_call
from tessarr.core.claims.intents import CLAIM, Record, intent_in
from tessarr.core.claims.removals import Claim, Removal
from tessarr.core.claims.settle import end_steps, is_fresh
from tessarr.errors import ConflictError
from tessarr.metadata.formats import DOCUMENT_NAMES
from tessarr.stores.base import Store
from tessarr.types import Buffer


async def end_left_steps(store: Store, place: str) -> bool:
    """End the transaction whose record is at `place` if its process did not: complete it, or undo it.

    Returns whether it did: not what has ended meanwhile, or is given more time (`is_fresh`).
    """
    data = await store_call(store, "get", place)
    record = None if data is None else Record.parse(data, place)
    if record is None or is_fresh(record):
        return False
    await end_steps(store, place, record)
    return True


def is_abandoned(store: Store, claim: str) -> bool:
    """Whether the value at the key `claim` is the claim of a transaction whose record is not there, or says that it was made
    void `EXPIRE_S` seconds ago or earlier: its process stores nothing there any more, and no request is in flight. Or that of a
    removal that has ended by an error, or not renewed it for so long."""
    data = store.get(claim)
    if (removal := Claim.parse(data, claim)) is not None:
        return removal.is_abandoned
    intent = intent_in(data, claim)
    place = None if intent is None else intent.record_key(claim)
    if place is None:
        return False
    data = store.get(place)
    if data is None:
        return True
    record = Record.parse(data, place)
    return record.state == "void" and not is_fresh(record)


def remove_abandoned(store: Store, claim: str, save: Callable[[str, Buffer | None], None]) -> bool:
    """Remove the abandoned claim at the key `claim`, and what is stored below the node that it was for, if no node is there.

    `save` is called with each key and value before they are removed. Returns whether there was such a claim.
    """
    if not is_abandoned(store, claim):
        return False
    keys = sorted(store.list_prefix(claim.removesuffix(CLAIM)), key=lambda key: (key == claim, key))
    if any(key.rpartition("/")[2] in DOCUMENT_NAMES for key in keys):
        keys = [claim]  # of another program, and what is below is its own
    if Claim.parse(store.get(claim), claim) is not None:
        try:
            run_steps(_go_on_steps(store, claim, keys, save))
        except ConflictError:
            return False
        return True
    for key in keys:
        save(key, store.get(key))
        store.delete(key)
    return True


async def _go_on_steps(
    store: Store, claim: str, keys: Sequence[str], save: Callable[[str, Buffer | None], None]
) -> None:
    """Go on with the removal whose claim is the last of `keys`. Raises `ConflictError` where another client has done so."""
    async with Removal(store, claim.removesuffix(CLAIM).rstrip("/")) as removal:
        for key in keys:
            save(key, await store_call(store, "get", key))
        await removal.keep_steps(always=True)  # to save them may have taken long
        await removal.delete_steps(keys[:-1])
        await removal.end_steps()
