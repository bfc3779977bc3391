"""Claim a place where there is no node yet, for a plan: its tasks store chunks there, and its documents come last.

The claim has the key of the claims of transactions (`tessarr.core.claims.intents.CLAIM`) and the id of the plan. So a client
that creates a node there is refused, where the store has such claims, and so is another plan. No time ends it: a plan may rest
for days. Who may replace what is there may take the place over; the plan that had claimed it can then not be finished.
"""

from __future__ import annotations

from collections.abc import Sequence

from tessarr.common import strict_json
from tessarr.core.claims.intents import CLAIM
from tessarr.core.stored.walk import read_entries
from tessarr.errors import ConflictError, MetadataValidationError
from tessarr.stores.base import Store
from tessarr.stores.path import prefix_of
from tessarr.types import Buffer

_HINT = "Finish or discard the plan that has claimed it, or take the place over with overwrite=True"


def claim_place(store: Store, path: str, plan: str, *, overwrite: bool) -> None:
    """Claim `path` for the plan with that id. May be repeated.

    Raises `ConflictError` for a node, for the claim of a transaction, and for that of another plan, which goes over to this one
    only with `overwrite`, and only once.
    """
    refuse_node(store, path)
    key = prefix_of(path) + CLAIM

    def claimed(old: Buffer | None) -> Buffer:
        plans = [] if old is None else _plans_of(old, key)
        if plans[:1] == [plan]:
            assert old is not None
            return old
        if old is not None and (not plans or not overwrite or plan in plans):
            raise ConflictError("another client has claimed this place", store=store.url, key=key, hint=_HINT)
        return strict_json.dumps({"plans": [plan, *plans]})

    found = store.get(key)
    store.update(key, claimed)
    try:
        refuse_node(store, path)  # a client that creates one looks for the claim after that
    except ConflictError:
        if found is None:
            release_place(store, path, plan)
        raise


def mark_place(store: Store, path: str, plan: str) -> None:
    """Claim a place of work, whose name no other client has, for the plan with that id: so that its removal is noticed."""
    store.set(prefix_of(path) + CLAIM, strict_json.dumps({"plans": [plan]}))


def refuse_node(store: Store, path: str) -> None:
    """Raise `ConflictError` where a node is at `path`."""
    if read_entries(store, [path])[0].kind is not None:
        raise ConflictError(
            "another client has created a node at the target",
            store=store.url,
            path=f"/{path}",
            hint="Plan to another place, or with overwrite=True",
        )


def has_claim(store: Store, path: str) -> bool:
    """Whether any client has claimed `path`."""
    return store.exists(prefix_of(path) + CLAIM)


def is_claimed(store: Store, path: str, plan: str) -> bool:
    """Whether the plan with that id has claimed `path`."""
    key = prefix_of(path) + CLAIM
    data = store.get(key)
    return data is not None and _plans_of(data, key)[:1] == [plan]


def release_place(store: Store, path: str, plan: str) -> None:
    """Remove the claim of the plan with that id at `path`, if it is there."""
    if is_claimed(store, path, plan):
        store.delete(prefix_of(path) + CLAIM)


def _plans_of(data: Buffer, key: str) -> Sequence[object]:
    """Return the id of the plan that has a place, and of those that had it; nothing for a claim of a transaction."""
    try:
        found = strict_json.loads(bytes(data), key=key)
    except MetadataValidationError:
        return []
    plans = found.get("plans") if isinstance(found, dict) else None
    return plans if isinstance(plans, list) else []
