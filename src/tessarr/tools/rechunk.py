"""Rewrite arrays with other chunks."""

from __future__ import annotations

from tessarr.stores.url import StoreLike
from tessarr.tools.convert import Report, convert
from tessarr.tools.copy_tree import ChunksChoice


def rechunk(
    source: StoreLike,
    dest: StoreLike,
    *,
    chunks: ChunksChoice,
    shards: ChunksChoice = None,
    overwrite: bool = False,
    jobs: int = 1,
) -> Report:
    """Rewrite an array, or every array of a hierarchy, with other chunks; all else is kept, and the result is verified.

    `source` and `dest` are what `tessarr.open` accepts; they may be equal with `overwrite`, since the new data replaces the
    old only when it is complete.
    """
    return convert(source, dest, chunks=chunks, shards=shards, zarr_format="keep", overwrite=overwrite, jobs=jobs)
