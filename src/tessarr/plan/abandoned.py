"""Remove what the tasks of a saved plan wrote that nobody finished: for `tessarr.tools.gc`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from tessarr.core.stored.walk import read_entries
from tessarr.metadata.array import ArrayMetadata
from tessarr.plan.kinds import KINDS
from tessarr.plan.manifest import DOCUMENT, Manifest
from tessarr.plan.markers import FOLDER
from tessarr.stores.base import Store
from tessarr.stores.path import join, prefix_of
from tessarr.stores.url import store_from


class _Idle(Protocol):
    """See `tessarr.tools.gc.idle.Idle`."""

    def __call__(self, store: Store, prefix: str) -> bool: ...

    def forget(self, store: Store, prefix: str) -> None: ...


def collect(
    store: Store, path: str, idle: _Idle, dry_run: bool, options: Mapping[str, object] | None
) -> tuple[int, int]:
    """Collect what the plan saved at `path` left. Returns how many values there are, and how many were removed.

    A plan that has begun to finish has no garbage: finishing it is a matter of documents. Markers go first, so that a plan
    that is run again repeats every task.
    """
    prefix = prefix_of(path)
    manifest = Manifest.loads(bytes(store.get(prefix + DOCUMENT) or b""), where=prefix + DOCUMENT)
    markers = [key for key in store.list_prefix(prefix) if key.startswith(prefix + FOLDER)]
    milestones = set(store.list_prefix(prefix)) - {*markers, prefix + DOCUMENT}
    if milestones or manifest.target is None or manifest.work is None or not manifest.work.url:
        return 0, 0
    place, at = store_from(manifest.work.url, mode="r" if dry_run else "r+", storage_options=options)
    work = join(at, manifest.work.path)
    written = _written(manifest, place, work)
    count = len(markers) + len(written)
    places = ((store, prefix), (place, prefix_of(work)))
    over = [idle(*one) for one in places]
    if dry_run or not count or not all(over):
        return count, 0
    store.delete_many(markers)
    KINDS[manifest.operation].discard(manifest, options)
    place.delete_many(written)
    for one in places:
        idle.forget(*one)
    return count, count


def _written(manifest: Manifest, store: Store, work: str) -> list[str]:
    """List the chunks of the nodes that have no documents yet, and those of intermediate arrays."""
    found = list(store.list_prefix(prefix_of(join(work, manifest.intermediates))))
    nodes = {join(work, node.path): node.metadata for node in manifest.nodes}
    for entry in read_entries(store, list(nodes)):
        metadata = nodes[entry.path]
        if isinstance(metadata, ArrayMetadata) and entry.kind is None:
            decode, ndim = metadata.chunk_key_encoding.decode, len(metadata.shape)
            keys = store.list_prefix(entry.prefix)
            found += [key for key in keys if decode(key[len(entry.prefix) :], ndim) is not None]
    return found
