"""Inspect and clear the native engine's cache of decoded chunks: one per process, sized by ``config["cache.nbytes"]``."""

from __future__ import annotations

from typing import NamedTuple

from tessarr.common.extension import NOT_LOADED, module


class ChunkCacheInfo(NamedTuple):
    """Statistics of the cache: its present size, and its counters since the process started."""

    capacity: int
    """Maximal size in bytes; 0: the cache is off, or the native engine was not built."""
    nbytes: int
    """Present size in bytes."""
    entries: int
    """Number of cached chunks and shard indexes."""
    hits: int
    misses: int
    evictions: int


def chunk_cache_info() -> ChunkCacheInfo:
    """Return the statistics of the cache of decoded chunks.

    Chunks are cached when they are read in part. An entry is valid while the stored value is unchanged (local files: device,
    inode, modification time, size; remote stores: the version, or ETag, in a response of the same read).

    >>> import tessarr
    >>> tessarr.chunk_cache_info().nbytes <= tessarr.chunk_cache_info().capacity
    True
    """
    try:
        from tessarr.engine.native import engine as native
    except NOT_LOADED:
        return ChunkCacheInfo(0, 0, 0, 0, 0, 0)
    return ChunkCacheInfo(**native.cache_info())


def clear_chunk_cache() -> None:
    """Remove all cached chunks and shard indexes, to free memory. Results never depend on the cache.

    >>> import tessarr
    >>> tessarr.clear_chunk_cache()
    >>> tessarr.chunk_cache_info().entries
    0
    """
    native = module()
    if native is not None:
        native.clear_cache()
