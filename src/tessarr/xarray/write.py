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

from tessarr.core.locate import format_of_new
from tessarr.errors import BaseZarrError, GroupNotFoundError, TessarrError
from tessarr.stores.base import Store
from tessarr.stores.memory.store import MemoryStore
from tessarr.stores.url import StoreLike, store_from
from tessarr.stores.virtual.branches import commits
from tessarr.xarray.data_store import ByName, TessarrStore
from tessarr.xarray.lazy_sources import check_not_own_source
from tessarr.xarray.prepare import Nodes, Prepared, prepare, prepare_nodes
from tessarr.xarray.writer import LockingWriter, locks_hold, when_written

Mode = Literal["w", "w-", "a", "a-", "r+"]
Region = Mapping[str, slice | Literal["auto"]] | Literal["auto"]


@commits
def to_zarr(
    obj: xarray.Dataset | xarray.DataArray | xarray.DataTree, store: StoreLike = None,
    mode: Mode | None = None, group: str | None = None,
    encoding: ByName | None = None, *, compute: bool = True, consolidated: bool | None = None,
    append_dim: Hashable | None = None, region: Region | None = None, safe_chunks: bool | Literal["refuse"] = True,
    align_chunks: bool = False, storage_options: Mapping[str, object] | None = None,
    zarr_format: Literal[2, 3] | None = None, write_empty_chunks: bool | None = None, write_inherited_coords: bool = False,
    chunkmanager_store_kwargs: dict[str, object] | None = None, executor: object = None,
) -> Any:  # fmt: skip
    """Write a dataset, data array or tree to `store`, any place that tessarr accepts.

    The arguments are those of xarray's ``Dataset.to_zarr``. A call that is refused changes nothing. `safe_chunks` has more
    values, for dask tasks that write the same stored chunk or shard. ``True`` writes nevertheless where the store's locks
    exclude concurrent updates, with a warning about the cost, and refuses otherwise; ``"refuse"`` always refuses, as xarray
    does; ``False`` does not check. With ``compute=False`` the metadata is written now, and the values when it is computed.

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
    if executor is not None and not compute:
        raise ValueError("compute=False is for writes without an executor")
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
    else:
        nodes = {"": (_as_dataset(obj), encoding or {})}
    chosen: str = _choose_default_mode(mode=mode, append_dim=append_dim, region=region)
    if chosen == "w":
        check_not_own_source({path: dataset for path, (dataset, _) in nodes.items()}, store, group, storage_options)
    if executor is not None:
        return _write_on(executor, store, chosen, group, options, nodes)
    return _write(store, chosen, group, options, nodes, compute, chunkmanager_store_kwargs)


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
    tree: xarray.DataTree, encoding: ByName, inherited: bool
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


def _write_on(
    executor: object, place: StoreLike, mode: str, group: str | None, options: Mapping[str, object], nodes: Nodes
) -> object:
    """Write by tasks of `executor`; into an Icechunk session by forks of it."""
    from tessarr.plan.executors import executor_from
    from tessarr.stores.virtual.icechunk import forked, merge

    executor_from(executor, None)  # raises for another object
    session = None if place is None or isinstance(place, str | os.PathLike) else store_from(place, mode="a")[0]
    fork = None if session is None else forked(session)
    carry_out = partial(LockingWriter.carry_out, executor=executor, fork=fork)
    written = _write(fork or place, mode, group, {**options, "safe_chunks": False}, nodes, True, None, carry_out)
    if session is not None and fork is not None:
        merge(session, fork)
    return written


def _write(
    place: StoreLike, mode: str, group: str | None, options: Mapping[str, object], nodes: Nodes, compute: bool,
    store_kwargs: Mapping[str, object] | None, carry_out: Callable[[LockingWriter], None] | None = None,
) -> object:  # fmt: skip
    """Encode and check `nodes`, then create or delete what `mode` says, and write."""
    place = {} if place is None else place
    existing = _open_existing(place, mode, group, options)
    root = existing or _empty_in_memory(place, mode, options)
    try:
        _decide_safety(root, _store_of(place, options) if existing is None else None, store_kwargs, options)
        prepared = prepare_nodes(root, nodes)
    except BaseException:
        root.close()
        raise
    if existing is None:
        root = _open(place, mode, group, options)
        _decide_safety(root, None, store_kwargs, options)
    return _write_nodes(root, nodes, prepared, compute, store_kwargs, carry_out)


def _open(
    place: StoreLike, mode: str, group: str | None, options: Mapping[str, object], first: str | None = None
) -> TessarrStore:
    """Open the store to write in `mode`, whatever that deletes or creates; with `first` by that mode instead."""
    consolidated = options["consolidated"]
    kept = {**options, "consolidated": consolidated if mode == "r+" else False}
    kept["consolidate_on_close"] = mode != "r+" and consolidated is not False
    opened = TessarrStore.open_group(place, first or mode, group, **kept)
    opened._mode = mode
    return opened


def _open_existing(
    place: StoreLike, mode: str, group: str | None, options: Mapping[str, object]
) -> TessarrStore | None:
    """Open the group that is written to, where it exists and stays. Nothing is changed.

    Raises `GroupNotFoundError` for mode "r+", `ContainsGroupError` for mode "w-".
    """
    if mode == "w":
        return None
    try:
        opened = _open(place, mode, group, options, first="r+")
    except GroupNotFoundError:
        if mode == "r+":
            raise
        return None
    if mode == "w-":
        opened.close()
        return _open(place, mode, group, options)  # raises
    return opened


def _empty_in_memory(place: StoreLike, mode: str, options: Mapping[str, object]) -> TessarrStore:
    """Make a group in memory like the one that `mode` creates at `place`."""
    zarr_format = format_of_new(place, cast("int | None", options["zarr_format"]))
    return _open(MemoryStore(), mode, None, {**options, "zarr_format": zarr_format, "storage_options": None})


def _store_of(place: StoreLike, options: Mapping[str, object]) -> Store | None:
    """Return the store at `place`; ``None``: it is not there yet."""
    storage_options = cast("dict[str, object] | None", options["storage_options"])
    try:
        return store_from(place, mode="r", storage_options=storage_options)[0]
    except (TessarrError, OSError):
        return None


def _decide_safety(
    root: TessarrStore, store: Store | None, store_kwargs: Mapping[str, object] | None, options: Mapping[str, object]
) -> None:
    """Allow tasks to share stored chunks where locks of `store` (``None``: that of `root`) keep them apart."""
    if options["safe_chunks"] is True and locks_hold(store or root.zarr_group.store, store_kwargs):
        root._safe_chunks = False  # `LockingWriter` warns of the cost
        root.warns_of_shared = True


def _write_nodes(
    root: TessarrStore, nodes: Nodes, prepared: Mapping[str, Prepared], compute: bool,
    store_kwargs: Mapping[str, object] | None, carry_out: Callable[[LockingWriter], None] | None,
) -> object:  # fmt: skip
    """Write `nodes`, which are encoded now where they are not in `prepared`."""
    writer = LockingWriter(warns=root.warns_of_shared, aligns=carry_out is not None)
    consolidates, root._consolidate_on_close = root._consolidate_on_close, False
    try:
        for path, (dataset, encoding) in nodes.items():
            store = root.get_child_store(path) if path else root
            (prepared.get(path) or prepare(store, dataset, encoding)).write(store, writer)
        if consolidates:
            root.consolidate()
        if carry_out is not None:
            carry_out(writer)
        written = None if carry_out else writer.sync(compute=compute, chunkmanager_store_kwargs=store_kwargs)
    finally:
        if compute:
            root.close()
    return root if compute else when_written(written, root)
