"""Make dask arrays of stored arrays, and store dask arrays.

A task that covers whole stored chunks (shards, where there are shards) replaces them without reading, and no other task
writes to them. So tasks are aligned to stored chunks, and only the store's own locks are held; tasks can contend for these
only at the edge of a region.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import dask.array as da
import numpy as np
from dask.array.core import normalize_chunks
from dask.base import tokenize

from tessarr.dask.alignment import aligned, region_of
from tessarr.dask.targets import UnevenSource, target_of
from tessarr.grids.guess import ChunksLike

if TYPE_CHECKING:
    from tessarr.core.array import Array
    from tessarr.stores.url import StoreLike


def from_array(
    z: Array | StoreLike, chunks: Any = "shards", *, name: str | None = None, inline_array: bool = False
) -> Any:
    """Make a dask array that reads `z`, a block per task.

    `z`: an array, or a place that `tessarr.open_array` takes. `chunks`: ``"shards"`` for stored values (shards, or else
    chunks); ``"chunks"`` for the smallest readable parts (the inner chunks of shards); ``"auto"`` or a size such as
    ``"64MiB"`` for as many whole stored values as fit; any other value as in `dask.array.from_array`. `name`: that of the
    dask array; the default is derived from the place and the documents of `z` and from the blocks, so that it is the same
    in every process and session.

    >>> import tessarr, tessarr.dask
    >>> z = tessarr.zeros((100, 100), chunks=(10, 10), dtype="f8", store={})
    >>> tessarr.dask.from_array(z, chunks="16KiB").chunks[0]
    (40, 40, 20)
    """
    z = _array(z, "r")
    blocks = blocks_of(z, chunks)
    regular = z._metadata.chunk_grid.chunk_shape is not None
    return da.from_array(
        z if regular else UnevenSource(z),
        chunks=blocks,  # pyright: ignore[reportArgumentType] - dask declares its default, "auto", as the type
        name=name or f"tessarr-{tokenize(z, blocks)}",
        lock=False,
        fancy=False,  # NumPy and dask differ in the meaning of lists among slices
        inline_array=inline_array,
        meta=np.empty((0,) * z.ndim, dtype=z.dtype),
    )


def _array(z: Array | StoreLike, mode: Literal["r", "r+"]) -> Array:
    """Return `z`, or the array at the place `z`."""
    from tessarr.core.array import Array
    from tessarr.core.open import open_array

    return z if isinstance(z, Array) else open_array(z, mode=mode)


def blocks_of(z: Array, chunks: ChunksLike) -> tuple[tuple[int, ...], ...]:
    """Return the block sizes along each axis that `chunks` means for `z`; see `from_array`."""
    stored = _as_blocks(z.write_chunk_sizes)
    if chunks == "shards":
        return stored
    if chunks == "chunks":
        return _as_blocks(z.read_chunk_sizes)
    blocks = normalize_chunks(chunks, z.shape, dtype=z.dtype, previous_chunks=stored)
    return aligned(blocks, z) if isinstance(chunks, str) else blocks


def _as_blocks(chunk_sizes: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    """Return one block of length 0 along an axis of length 0, which has no chunks: dask has no axis without blocks."""
    return tuple(sizes or (0,) for sizes in chunk_sizes)


def store(
    x: Any, z: Array | StoreLike, region: Any = None, *, executor: object = None, compute: bool = True, **options: Any
) -> Any:
    """Write `x` to `z`, or to `region` of it, by tasks that each write whole stored values (shards, or else chunks).

    `z` is an array, or a place that `tessarr.open_array` takes. `x` is rechunked to such blocks first, and no lock is held
    around the tasks: threads, processes and `distributed` write concurrently. `region`: slices of step 1, one per axis;
    ``None`` for all of `z`. Where a region begins or ends within a stored value, one task updates that value, under the
    store's lock, and elements outside the region stay. `options` are those of dask's `store`, such as `scheduler`.

    `executor`: ``"dask"`` for the current client of dask, or any `concurrent.futures.Executor`. Each block is then one task,
    which computes what it needs of `x` alone; a bounded number is submitted at a time, and a task that fails is repeated. In
    an Icechunk session tasks write to forks of it, which are merged into it at the end: commit it then, once.

    Returns ``None``, or with ``compute=False`` a delayed. Raises `ValueError` where the shapes differ, `FailedTasksError`
    naming tasks of `executor` that failed, and `UnsupportedOperationError` for a store in memory where tasks run in other
    processes, or a session with changes that are not committed.

    >>> import dask.array as da, tessarr, tessarr.dask
    >>> z = tessarr.zeros((6,), chunks=(4,), dtype="i4", store={})
    >>> tessarr.dask.store(da.ones((3,), chunks=1, dtype="i4"), z, region=slice(2, 5))
    >>> z[...].tolist()
    [0, 0, 1, 1, 1, 0]
    """
    z = _array(z, "r+")
    whole = region_of(z, region)
    shape = tuple(part.stop - part.start for part in whole)
    x = da.asarray(x)
    if x.shape != shape:
        raise ValueError(f"the shapes differ: {x.shape} is to be stored in a region of shape {shape} of {z!r}")
    if executor is not None:
        if options or not compute:
            raise ValueError("options of dask's store, and compute=False, are for writes without an executor")
        from tessarr.dask.tasks import store_on

        return store_on(executor, x, z, whole)
    blocks = aligned(x.chunks, z, whole)
    kept = {**options, "lock": False, "compute": compute}
    return da.store(x.rechunk(blocks), target_of(z), regions=whole, **kept)
