"""Where the tasks of a plan write: at the place of the result, or beside it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from tessarr.core.array import Array
from tessarr.core.group import Group
from tessarr.core.locate import locate
from tessarr.core.stored.walk import read_entries
from tessarr.core.stored.write_new import refuse_mixing
from tessarr.errors import UnsupportedOperationError
from tessarr.plan.manifest import Place
from tessarr.plan.publish import reopenable_url
from tessarr.stores.base import Store
from tessarr.stores.local.store import LocalStore
from tessarr.stores.path import ancestors, join, normalize_path
from tessarr.stores.protocols import Delete
from tessarr.stores.url import StoreLike, overlaps
from tessarr.tools.staging import beside_node, check_free, local_path, replaced_node_at
from tessarr.types import ZarrFormat


class Destination(NamedTuple):
    """Where a plan writes: the final place, the place in which tasks work, and the opened store of the latter."""

    target: Place
    work: Place
    store: Store
    path: str


def destination(
    dest: StoreLike, path: str, plan_id: str, *, overwrite: bool, storage_options: Mapping[str, object] | None = None
) -> Destination:
    """Choose where the tasks of a plan write. Nothing is written.

    In a file system, and where a node is replaced, tasks write beside the place. Elsewhere a new node is written where it will
    be: without its documents it does not exist.

    Raises `BaseZarrError` when something is there and not `overwrite`.
    """
    path = normalize_path(path)
    check_free(dest, path, overwrite=overwrite, storage_options=storage_options)
    local, durable = None if path else local_path(dest), False
    if not path and isinstance(dest, LocalStore) and _is_free(str(dest.root)):
        local, durable = str(dest.root), dest.durable
    if local is not None:
        final = os.path.abspath(local)
        folder, name = os.path.split(final)
        if name.endswith(".zip"):
            raise _cannot_share("a zip file", final)
        work = os.path.join(folder, f".{name}.{plan_id}.partial")
        return Destination(Place(final), Place(work), LocalStore(work, durable=durable), "")
    store, here, _ = locate(dest, path, "a", storage_options)
    if not isinstance(store, Delete):
        raise _cannot_share("a store that cannot delete, such as a zip file", store.url)
    present = replaced_node_at(store, here, overwrite)
    at = beside_node(here, plan_id) if here and (present or isinstance(store, LocalStore)) else here
    url = reopenable_url(store)
    return Destination(Place(url, here), Place(url, at), store, at)


def _cannot_share(what: str, place: str) -> UnsupportedOperationError:
    hint = "Write to a directory, then pack it, or convert to it in one process (tessarr.tools.convert)"
    return UnsupportedOperationError(f"tasks cannot share {what}", store=place, hint=hint)


def _is_free(folder: str) -> bool:
    return not os.path.lexists(folder) or (os.path.isdir(folder) and not os.listdir(folder))


def check_format(found: Destination, zarr_format: ZarrFormat) -> None:
    """Raise `MixedFormatsError` where the result would not be found from the group above, which is of another format."""
    place = found.target.path
    if place:
        refuse_mixing(
            found.store, place, zarr_format, read_entries(found.store, [*ancestors(place), place]), newer=True
        )


def check_apart(source: object, found: Destination) -> None:
    """Raise `UnsupportedOperationError` where the source is, holds, or is within the target."""
    if not isinstance(source, Array | Group):
        return
    store, path = (
        (LocalStore(found.target.url), "") if not found.path and found.target != found.work else (found.store, "")
    )
    if overlaps(source._store, source._path, store, join(path, found.target.path)):
        raise UnsupportedOperationError(
            "the source is, holds, or is within the target",
            store=found.target.url or found.store.url,
            path=f"/{found.target.path}",
            hint="Write to another place, then move it",
        )
