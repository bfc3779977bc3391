"""Write datasets, data arrays and trees with tessarr.

xarray has no entry point for writers, so `to_zarr` is a function with the arguments of xarray's methods.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import Any, Literal, cast

import xarray
from xarray.backends.zarr import _choose_default_mode

from tessarr.errors import BaseZarrError
from tessarr.stores.url import StoreLike, store_from
from tessarr.xarray.data_store import TessarrStore
from tessarr.xarray.lazy_sources import check_not_own_source
from tessarr.xarray.writer import LockingWriter, locks_hold

Region = Mapping[str, slice | Literal["auto"]] | Literal["auto"]


def to_zarr(
    obj: xarray.Dataset | xarray.DataArray | xarray.DataTree, store: StoreLike = None,
    mode: Literal["w", "w-", "a", "a-", "r+"] | None = None, group: str | None = None,
    encoding: Mapping[Any, Any] | None = None, *, compute: bool = True, consolidated: bool | None = None,
    append_dim: Hashable | None = None, region: Region | None = None, safe_chunks: bool | Literal["refuse"] = True,
    align_chunks: bool = False, storage_options: Mapping[str, object] | None = None,
    zarr_format: Literal[2, 3] | None = None, write_empty_chunks: bool | None = None, write_inherited_coords: bool = False,
    chunkmanager_store_kwargs: dict[str, object] | None = None, executor: object = None,
) -> Any:  # fmt: skip
    """Write a dataset, data array or tree to `store`, any place that tessarr accepts.

    The arguments are those of xarray's ``to_zarr``. One has more values: `safe_chunks`, for dask tasks that write the same
    stored chunk or shard. ``True`` writes nevertheless where the store's locks exclude concurrent updates, with a warning
    about the cost, and refuses otherwise; ``"refuse"`` always refuses, as xarray does; ``False`` does not check. With
    ``compute=False`` the metadata is written now, and the values when the result is computed.

    `executor`: ``"dask"`` for the current client of dask, or any `concurrent.futures.Executor`. Documents, and variables
    that are not chunked, are written here; each stored value of a chunked variable (`obj.chunk()`) by one task, which computes
    what it needs alone, so that tasks never share one and no graph is submitted; see `tessarr.dask.store`. Into the store of
    an Icechunk session everything is written to forks, which are merged into it at the end: commit it then, once.

    Returns the store, or with ``compute=False`` a delayed object. Raises what xarray's ``to_zarr`` raises, and
    tessarr's errors of stores; `FailedTasksError` naming tasks of `executor` that failed; `BaseZarrError` for another value
    of `safe_chunks`, and where ``mode="w"`` would replace arrays that `obj` is still to be read from.

    >>> import tempfile, xarray as xr
    >>> import tessarr.xarray
    >>> place = tempfile.mkdtemp() + "/a.zarr"
    >>> ds = xr.Dataset({"rain": ("time", [1.0, 2.0])}, coords={"time": [0, 1]})
    >>> _ = tessarr.xarray.to_zarr(ds, place)
    >>> _ = tessarr.xarray.to_zarr(ds.assign_coords(time=[2, 3]), place, append_dim="time")
    >>> tessarr.xarray.open_dataset(place).rain.values.tolist()
    [1.0, 2.0, 1.0, 2.0]
    """
    _check_safe_chunks(safe_chunks)
    options = {
        "consolidated": consolidated,
        "append_dim": append_dim,
        "write_region": region,
        "safe_chunks": safe_chunks,
        "align_chunks": align_chunks,
        "storage_options": storage_options,
        "zarr_format": zarr_format,
        "write_empty": write_empty_chunks,
    }
    if isinstance(obj, xarray.DataTree):
        if group is not None or append_dim is not None:
            raise NotImplementedError("a tree is written whole: `group` and `append_dim` are for datasets")
        nodes = _tree_nodes(obj, encoding or {}, write_inherited_coords)
        mode = mode or "w-"
    else:
        nodes = {"": (_as_dataset(obj), encoding or {})}
    if mode == "w":
        check_not_own_source({path: dataset for path, (dataset, _) in nodes.items()}, store, group, storage_options)
    if executor is not None:
        if not compute:
            raise ValueError("compute=False is for writes without an executor")
        return _write_on(executor, store, mode, group, options, nodes)
    opened = _open_for_writing({} if store is None else store, mode, group, chunkmanager_store_kwargs, options)
    return _write_nodes(opened, nodes, compute, chunkmanager_store_kwargs)


def _as_dataset(obj: xarray.Dataset | xarray.DataArray) -> xarray.Dataset:
    """Convert a data array to a dataset: under its name, or the one that xarray reserves for arrays without a name."""
    if isinstance(obj, xarray.Dataset):
        return obj
    if obj.name is None:
        return obj.to_dataset(name="__xarray_dataarray_variable__")
    if obj.name in obj.coords or obj.name in obj.dims:
        return obj.to_dataset(name="__xarray_dataarray_variable__").assign_attrs(
            {"__xarray_dataarray_name__": obj.name}
        )
    return obj.to_dataset()


def _tree_nodes(
    tree: xarray.DataTree, encoding: Mapping[str, Any], inherited: bool
) -> dict[str, tuple[xarray.Dataset, Mapping[object, object]]]:
    """Map the path below the root to dataset and encoding."""
    unknown = set(encoding) - set(tree.groups)
    if unknown:
        raise ValueError(f"unexpected encoding group name(s) provided: {unknown}")
    return {
        ("" if node is tree else path): (
            node.to_dataset(inherit=inherited or node is tree),
            encoding.get(node.path) or {},
        )
        for path, node in tree.subtree_with_keys
    }


def _check_safe_chunks(given: object) -> None:
    if given not in (True, False, "refuse"):
        raise BaseZarrError("unknown safe_chunks", expected='True, False or "refuse"', got=repr(given))


def _open_for_writing(
    place: Any, mode: Any, group: str | None, store_kwargs: Mapping[str, object] | None, options: dict[str, object]
) -> TessarrStore:
    """Open the store in the mode that the other arguments require."""
    region = cast("Literal['auto'] | None", options["write_region"])  # or a mapping: only ``None`` makes a difference
    mode = _choose_default_mode(mode=mode, append_dim=options["append_dim"], region=region)
    consolidated = options.pop("consolidated")
    safe = options.pop("safe_chunks")
    opened = TessarrStore.open_group(
        place,
        mode,
        group,
        consolidated=consolidated if mode == "r+" else False,
        consolidate_on_close=mode != "r+" and consolidated is not False,
        safe_chunks=bool(safe),
        **options,
    )
    if safe is True and locks_hold(opened.zarr_group.store, store_kwargs):
        opened._safe_chunks = False  # `LockingWriter` warns of the cost
        opened.warns_of_shared = True
    return opened


def _write_on(
    executor: object, place: StoreLike, mode: str | None, group: str | None, options: dict[str, object],
    nodes: Mapping[str, tuple[xarray.Dataset, Mapping[object, object]]],
) -> object:  # fmt: skip
    """Write by tasks of `executor`; into an Icechunk session by forks of it."""
    from tessarr.stores.virtual.icechunk import forked, merge

    session = None if place is None or isinstance(place, str | os.PathLike) else store_from(place, mode="a")[0]
    fork = None if session is None else forked(session)
    opened = _open_for_writing(
        {} if place is None else fork or place, mode, group, None, {**options, "safe_chunks": False}
    )
    written = _write_nodes(opened, nodes, True, None, partial(LockingWriter.carry_out, executor=executor, fork=fork))
    if session is not None and fork is not None:
        merge(session, fork)
    return written


def _write_nodes(
    store: TessarrStore,
    nodes: Mapping[str, tuple[xarray.Dataset, Mapping[object, object]]],
    compute: bool,
    store_kwargs: Mapping[str, object] | None,
    carry_out: Callable[[LockingWriter], None] | None = None,
) -> object:
    from tessarr.xarray.writer import dump, validate_names, when_written

    writer = LockingWriter(warns=store.warns_of_shared, aligns=carry_out is not None)
    consolidates, store._consolidate_on_close = store._consolidate_on_close, False
    try:
        for path, (dataset, encoding) in nodes.items():
            validate_names(dataset)
            for variable in dataset.variables.values():
                if variable.size == 0:
                    variable.load()  # dask has no chunks to store where there are no elements
            child = store.get_child_store(path) if path else store
            prepared = child._validate_and_autodetect_region(dataset)
            child._validate_encoding(encoding)
            dump(prepared, child, writer, encoding=encoding)
        if consolidates:
            store.consolidate()
        if carry_out is not None:
            carry_out(writer)
        written = None if carry_out else writer.sync(compute=compute, chunkmanager_store_kwargs=store_kwargs)
    finally:
        if compute:
            store.close()
    return store if compute else when_written(written, store)
