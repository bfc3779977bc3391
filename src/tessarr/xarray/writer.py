"""Compare dask's chunks with stored chunks, and decide whether locks make concurrent tasks safe.

A task that writes a part of a stored chunk (of a shard, where there are shards) reads it, changes it and writes it again,
under the lock of its key or as a compare-and-swap (`Store.update`). So tasks that share stored chunks lose nothing where
those locks cover all of them; the cost is that each task reads and writes the shared chunks again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

from xarray.backends.common import ArrayWriter

from tessarr.common.warn import warn
from tessarr.dask.targets import target_of
from tessarr.errors import ZarrUserWarning
from tessarr.stores.base import Store
from tessarr.stores.functions import notices_writes
from tessarr.stores.protocols import Lock
from tessarr.xarray.opening import THROUGH

if TYPE_CHECKING:
    from tessarr.core.array import Array
    from tessarr.stores.base import Store


class LockingWriter(ArrayWriter):
    """Collect the values that xarray writes. `warns`: warn of the cost of tasks that share stored chunks.

    `aligns`: chunked values are written by `carry_out`, whose tasks share none.
    """

    __slots__ = ("aligns", "warns")

    def __init__(self, *, warns: bool = False, aligns: bool = False) -> None:
        super().__init__(lock=False)
        self.warns = warns
        self.aligns = aligns

    def add(self, source: object, target: Array, region: object = None) -> None:
        """Write `source` into `region` of `target`; chunked sources are written in `sync`."""
        chunks = getattr(source, "chunks", None)
        if self.warns and chunks and not self.aligns:
            shared, stored = shared_chunks(chunks, target, region)
            if shared:
                _warn_of_shared(target, shared, stored)
        super().add(source, target_of(target) if chunks and not self.aligns else target, region)

    def carry_out(self, executor: object, fork: Store | None) -> None:
        """Write what was collected by tasks on `executor`; `fork`: see `tessarr.dask.tasks.carry_out`."""
        from tessarr.dask.alignment import region_of
        from tessarr.dask.tasks import Write, carry_out

        found = zip(self.sources, self.targets, self.regions, strict=True)
        carry_out(
            [Write(source, target, region_of(target, region)) for source, target, region in found], executor, fork
        )


def _warn_of_shared(target: Array, shared: int, stored: int) -> None:
    nbytes = prod(max(axis.size(0), 1) for axis in target._bound.axes) * target.dtype.itemsize
    size = f", of up to {nbytes / 1e6:.3g} MB each" if nbytes else ""
    warn(
        f"array {target.name}: {shared} of {stored} stored chunks are written by more than one task{size}; each task reads "
        "and writes them again under a lock. Nothing is lost. To write them once, align the chunks "
        "(align_chunks=True); to silence this warning, say safe_chunks=False",
        ZarrUserWarning,
        through=THROUGH,
    )


def shared_chunks(chunks: Sequence[Sequence[int]], target: Array, region: object = None) -> tuple[int, int]:
    """Count the stored chunks (shards) of `region` that more than one block of `chunks` overlaps, and all of them."""
    alone, stored = 1, 1
    selections = region if isinstance(region, tuple) else (slice(None),) * target.ndim
    for sizes, axis, selection in zip(chunks, target._bound.axes, selections, strict=True):
        start = selection.start or 0
        cuts, at = set(), start
        for size in sizes[:-1]:
            at += size
            index = axis.find(at) if at < axis.length else None
            if index is not None and axis.start(index) != at:
                cuts.add(index)
        last = start + sum(sizes)
        touched = axis.find(last - 1) - axis.find(start) + 1 if last > start else 0
        stored *= touched
        alone *= touched - len(cuts)
    return stored - alone, stored


def locks_hold(store: Store, store_kwargs: Mapping[str, object] | None = None) -> bool:
    """Return whether no task that writes to `store` can overwrite another's update.

    Either the store's locks reach every process (or its updates compare and swap), or dask runs all tasks in this process.
    """
    reaches_all = isinstance(store, Lock) or notices_writes(store)
    return reaches_all or _in_this_process((store_kwargs or {}).get("scheduler"))


def _in_this_process(scheduler: object) -> bool:
    try:
        import dask.local
        import dask.threaded
        from dask.base import get_scheduler
    except ImportError:
        return True  # no dask, no tasks
    return get_scheduler(scheduler=scheduler) in (None, dask.threaded.get, dask.local.get_sync)


# -- what xarray moved between releases --------------------------------------------------------------------------------


def _private(name: str) -> Callable[..., object]:
    """Return a private function of xarray's writers, in `xarray.backends.api` until 2025.9."""
    try:
        from xarray.backends import writers as home
    except ImportError:
        from xarray.backends import api as home
    return getattr(home, name)


def dump(dataset: object, store: object, writer: ArrayWriter, *, encoding: Mapping[object, object]) -> None:
    """Encode a dataset, and pass it to `store`."""
    _private("dump_to_store")(dataset, store, writer, encoding=encoding)


def validate_names(dataset: object) -> None:
    """Raise for variables whose names are not non-empty strings."""
    _private("_validate_dataset_names")(dataset)


def when_written(written: object, store: object) -> object:
    """Return a delayed object that closes `store` after the delayed `written`."""
    from dask.delayed import delayed

    return delayed(_closed)(store, written)


def _closed(store: Store, written: object) -> object:
    """Close `store`; `written` is dask's result, on which this call has to wait."""
    store.close()
    return written
