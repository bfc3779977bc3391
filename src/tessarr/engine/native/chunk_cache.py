"""The native engine's cache of decoded chunks, as a program sees it: one per process, sized by ``config["cache.nbytes"]``."""

from __future__ import annotations

from typing import NamedTuple

from tessarr.common.extension import NOT_LOADED, module


class ChunkCacheInfo(NamedTuple):
    """What the cache holds now, and did since the process began."""

    capacity: int
    """Bytes that it may hold; 0: it is off, or the native engine was not built."""
    nbytes: int
    """Bytes that it holds."""
    entries: int
    """Decoded chunks and shard indexes."""
    hits: int
    misses: int
    evictions: int


def chunk_cache_info() -> ChunkCacheInfo:
    """The statistics of the cache of decoded chunks.

    Chunks are kept when they are read in part, and used while the stored value is the same (local files: device, inode,
    modification time, size; behind a network: the version, or ETag, that a request of the same read tells).

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
    """Forget all decoded chunks and shard indexes. Never needed for right results; frees the memory.

    >>> import tessarr
    >>> tessarr.clear_chunk_cache()
    >>> tessarr.chunk_cache_info().entries
    0
    """
    native = module()
    if native is not None:
        native.clear_cache()
