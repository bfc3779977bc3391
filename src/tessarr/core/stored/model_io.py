"""Read models from stores and write models to stores: metadata documents only, no chunks.

Source: ZEP 6, "Motivation and Scope": create a hierarchy from a definition; evaluate whether one has a structure.
"""

from __future__ import annotations

from typing import Any

from tessarr.common.warn import warn
from tessarr.core.asynchronous.sans_io import run_steps
from tessarr.core.locate import locate
from tessarr.core.stored import metadata_io
from tessarr.core.stored.walk import Entry, block_of, read_entries, walk_below_steps
from tessarr.errors import MetadataValidationError, NodeNotFoundError, UnsupportedOperationError, ZarrUserWarning
from tessarr.metadata import consolidated
from tessarr.model.node import GroupSpec, Spec
from tessarr.model.stored import from_block, own_spec, serialise
from tessarr.model.valid import require_valid
from tessarr.stores.base import Store
from tessarr.stores.url import StoreLike
from tessarr.types import ZarrFormat

_NAMES = ("zarr.json", ".zarray", ".zgroup", ".zattrs")


def from_store(
    store: StoreLike,
    path: str = "",
    *,
    zarr_format: ZarrFormat | None = None,
    use_consolidated: bool | None = None,
) -> Any:
    """Read the model of the node at `path` and all nodes below: an `ArraySpec` or `GroupSpec` with JSON attributes.

    `store` is a store, a path or URL, or an opened array or group, to which `path` is relative. With
    `use_consolidated` ``None`` consolidated metadata is used if there is any, ``True`` requires it, ``False`` reads
    the nodes themselves. Where a node has documents of both formats v3 is read, unless `zarr_format` is given.

    Raises `NodeNotFoundError`; `MetadataValidationError` (with the node's path) for invalid documents.
    """
    place, path = _located(store, path, "r")
    try:
        return _model(place, path, zarr_format, use_consolidated)
    finally:
        _close(place, store)


def _close(place: Any, given: object) -> None:
    """Close `place` unless it is the store given by the caller; closing publishes a zip archive."""
    if place is not given and getattr(given, "store", None) is not place:
        place.close()


def _model(store: Store, path: str, zarr_format: ZarrFormat | None, use_consolidated: bool | None) -> Any:
    (top,) = read_entries(store, [path], _NAMES)
    found = zarr_format or next(iter(top.formats), None)
    if found is None or found not in top.formats:
        if not path and store.get("meta") is not None:
            hint = "Migrate it to v2 or v3 first"
            raise UnsupportedOperationError("the object model does not support Zarr v1", path="/", hint=hint)
        raise NodeNotFoundError("no node here", path=f"/{path}", hint="Check the path and the format")
    if use_consolidated is not False and top.is_group(found):
        block = block_of(top if found == 3 else read_entries(store, [path], (consolidated.V2_KEY,))[0])
        if block is not None:
            return from_block(block, top.documents(found), path, found)
        if use_consolidated:
            raise MetadataValidationError("no consolidated metadata here", path=f"/{path}")
    return _read_tree(store, top, found, strict=zarr_format is None)


def _read_tree(store: Store, top: Entry, zarr_format: ZarrFormat, *, strict: bool) -> Any:
    specs = {top.path: own_spec(top.documents(zarr_format), zarr_format, top.path)}
    children: dict[str, list[str]] = {}
    is_group = isinstance(specs[top.path], GroupSpec)
    for entry in run_steps(walk_below_steps(store, top, zarr_format, _NAMES, others=True)) if is_group else ():
        if zarr_format not in entry.formats:
            _mixed(entry.path, entry.formats[0], zarr_format, strict=strict)
            continue
        specs[entry.path] = own_spec(entry.documents(zarr_format), zarr_format, entry.path)
        children.setdefault(entry.path.rpartition("/")[0], []).append(entry.path)

    def build(path: str) -> Any:
        if not isinstance(specs[path], GroupSpec):
            return specs[path]
        return specs[path].with_(members={below.rpartition("/")[2]: build(below) for below in children.get(path, ())})

    return build(top.path)


def _mixed(path: str, other: int, zarr_format: int, *, strict: bool) -> None:
    """Raise (`strict`) or warn for a node of another format: a hierarchy has one format (ZOM-24)."""
    if strict:
        hint = f"Give zarr_format={zarr_format} to leave it out, or migrate it"
        raise MetadataValidationError(f"a v{other} node is in a v{zarr_format} group", path=f"/{path}", hint=hint)
    message = f"/{path} has metadata of Zarr v{other}, not v{zarr_format}; it is left out"
    warn(message, ZarrUserWarning)


def to_store(
    spec: Spec,
    store: StoreLike,
    path: str = "",
    *,
    overwrite: bool = False,
    consolidate: bool = False,
    check: bool = True,
) -> None:
    """Create the hierarchy that the model `spec` describes: its metadata documents, no chunks.

    All documents are serialised before the first write, and with `check` validated so that each node can be opened.
    The root's document is written last, so that readers see the complete hierarchy or none. `consolidate` adds
    consolidated metadata. With `overwrite`, an existing node, and everything below it, is replaced once the new
    documents are staged; without, `ContainsArrayError` or `ContainsGroupError` is raised. Missing groups above `path` are
    created.
    """
    if check:
        require_valid(spec)
    place, path = _located(store, path, "a")
    try:
        values = serialise(spec, path, consolidate=consolidate)
        metadata_io.check_path(path, spec.zarr_format)
        run_steps(metadata_io.create_documents_steps(place, path, spec.zarr_format, values, overwrite=overwrite))
    finally:
        _close(place, store)


def _located(store: StoreLike, path: str, mode: str) -> tuple[Store, str]:
    place, path, _ = locate(store, path, mode)
    return place, path
