"""Remove and replace nodes in a store where that takes several requests: documents first, then chunks.

Who reads chunks of an array, and looks afterwards whether its document is still there (a copy, a plan, a follower), takes so no
chunk that was removed meanwhile for one of fill value. While there is no document another client could create a node, whose
chunks would be removed with the old ones. Therefore a removal has a claim there until its end, with the key of the claims
of transactions (`tessarr.core.claims.intents.CLAIM`): who creates a node looks for one after that. A removal that was killed
leaves chunks without a document, and its claim: who deletes or replaces the node goes on with it, and so does a repair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tessarr.common import strict_json
from tessarr.core.asynchronous import clock
from tessarr.core.asynchronous.sans_io import store_call
from tessarr.core.claims.intents import CLAIM
from tessarr.errors import MetadataValidationError
from tessarr.metadata.formats import DOCUMENT_NAMES
from tessarr.stores.base import Store
from tessarr.stores.functions import STAGED
from tessarr.stores.path import prefix_of
from tessarr.types import Buffer

_MEMBER = "removed_since"


async def remove_steps(store: Store, path: str) -> None:
    """Remove the node at `path` and everything below it. May be repeated."""
    documents, others = await _keys_steps(store, path)
    if not others:
        await store_call(store, "delete_many", documents)
        return
    await _clear_steps(store, path, documents, others)
    await store_call(store, "delete", prefix_of(path) + CLAIM)


async def replace_steps(store: Store, path: str, new: Mapping[str, Buffer], *, was_group: bool) -> None:
    """Replace the node at `path`, and everything below it, by the documents `new` (key → value, in the order of writing).

    Nothing is removed before all of them are stored under other keys. A group (`was_group`) has no chunks of its own, so that
    its document stays until the new one is stored.
    """
    documents, others = await _keys_steps(store, path)
    if was_group:
        documents = [key for key in documents if key not in new or key.rpartition("/")[0] != path]
    staged = {f"{prefix_of(path)}{STAGED}/{number}": value for number, value in enumerate(new.values())}
    for key, value in staged.items():
        await store_call(store, "set", key, value)
    if others:
        await _clear_steps(store, path, documents, others)
    else:
        await store_call(store, "delete_many", [key for key in documents if key not in new])
    for key, value in new.items():
        await store_call(store, "set", key, value)
    await store_call(store, "delete_many", [*staged, *([prefix_of(path) + CLAIM] if others else [])])


async def _keys_steps(store: Store, path: str) -> tuple[list[str], list[str]]:
    """List the keys below `path`: those of documents, and all others."""
    documents: list[str] = []
    others: list[str] = []
    for key in await store_call(store, "list_prefix", prefix_of(path)):
        (documents if key.rpartition("/")[2] in DOCUMENT_NAMES else others).append(key)
    return documents, others


async def _clear_steps(store: Store, path: str, documents: Sequence[str], others: Sequence[str]) -> None:
    """Claim the place, and remove these keys, but not the claim."""
    claim = prefix_of(path) + CLAIM
    await store_call(store, "set", claim, strict_json.dumps({_MEMBER: clock.CLOCK.now()}))
    await store_call(store, "delete_many", documents)
    await store_call(store, "delete_many", [key for key in others if key != claim])


async def was_stopped_steps(store: Store, path: str) -> bool:
    """Whether a removal at `path` has not come to its end."""
    key = prefix_of(path) + CLAIM
    return removed_since(await store_call(store, "get", key), key) is not None


def removed_since(claim: Buffer | None, key: str) -> int | None:
    """Return when the removal began, in seconds since 1970, whose claim is stored at `key`; ``None`` for another claim."""
    try:
        found = None if claim is None else strict_json.loads(bytes(claim), key=key)
    except MetadataValidationError:
        return None
    since = found.get(_MEMBER) if isinstance(found, dict) else None
    return since if isinstance(since, int) else None
