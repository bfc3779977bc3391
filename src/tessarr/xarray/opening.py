"""Open the group that a place of xarray's users means."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tessarr.common.warn import warn
from tessarr.errors import ZarrRuntimeWarning
from tessarr.stores.remote.obstore.open import options_of_fsspec

if TYPE_CHECKING:
    from tessarr.core.group import Group

THROUGH = frozenset(("dask", "xarray"))
"""Packages that call the engine and the writer on behalf of a program."""
NOT_CONSOLIDATED = (
    "Failed to open Zarr store with consolidated metadata, but successfully read with non-consolidated metadata, which "
    "takes a request per member instead of one for all. To silence this warning, consolidate the metadata "
    "(tessarr.consolidate_metadata), or say consolidated=False"
)


@options_of_fsspec()
def open_place(
    place: Any,
    *,
    mode: str,
    group: str | None,
    consolidated: bool | None,
    storage_options: Mapping[str, object] | None,
    zarr_format: int | None,
) -> tuple[Group, bool]:
    """Open the group `group` of `place`; return it, and whether its store was opened here and must be closed with it.

    `consolidated`: ``None`` uses consolidated metadata of the root where there is some, and warns where there is none;
    ``True`` requires it; ``False`` ignores it. `mode` is xarray's, whose ``a-`` is ``a`` here.
    `storage_options` may be those of fsspec, which xarray documents.

    Raises `GroupNotFoundError` (a `FileNotFoundError`), `ValueError` for missing consolidated metadata.
    """
    from tessarr.core.group import Group
    from tessarr.core.open import open_group

    place = os.fspath(place) if isinstance(place, os.PathLike) else place
    owned = isinstance(place, str)
    options: dict[str, Any] = {"storage_options": storage_options, "zarr_format": zarr_format}
    options["mode"] = "a" if mode == "a-" else mode
    path = (group or "").strip("/")
    if getattr(place, "supports_consolidated_metadata", True) is False:
        consolidated = False
    if consolidated is False:
        return open_group(place, path=path or None, use_consolidated=False, **options), owned
    root = open_group(place, use_consolidated=consolidated, **options)
    if root.metadata.consolidated_metadata is None:
        warn(NOT_CONSOLIDATED, ZarrRuntimeWarning, through=THROUGH)
    found = root[path] if path else root
    if not isinstance(found, Group):
        raise ValueError(f"{found.name} is an array, not a group that could be a dataset")
    return found, owned


def groups_below(root: Group, parent: str) -> Iterator[tuple[str, Group]]:
    """Yield ``(path, group)`` of `root`, whose path is `parent`, and of every group below, parents first."""
    from tessarr.core.group import Group

    prefix = parent.rstrip("/")
    yield parent, root
    for path, node in root.members(max_depth=None):
        if isinstance(node, Group):
            yield f"{prefix}/{path}", node
