"""Say how a selection is cut into chunks and shards, and which values are stored."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

from tessarr.core.array import Array
from tessarr.grids.base import Axis
from tessarr.serve.dynamic.query import Pick
from tessarr.serve.dynamic.refusal import too_large
from tessarr.stores.protocols import Remote
from tessarr.types import JSON, JSONObject

MAX_VALUES = 4096
"""Stored values (chunks or shards) of one response: each is one look into the store."""
MAX_REMOTE_VALUES = 256
"""The same for stores behind a network, where each look is a request."""
MAX_EDGES = 20_000


def stored_chunks(array: Array, picks: Sequence[Pick]) -> JSONObject:
    """Return, per axis, where chunks and stored values begin within the picks, and which values are stored.

    ``stored`` is a text of ``1`` and ``0`` in C order over ``values``, or ``null`` where there are too many to look for.
    Raises `Refusal` for too many chunks to list.
    """
    inner = [_edges(axis, pick) for axis, pick in zip(array._chunk_axes, picks, strict=True)]
    outer = [_edges(axis, pick) for axis, pick in zip(array._bound.axes, picks, strict=True)]
    indices = [_touched(axis, pick) for axis, pick in zip(array._bound.axes, picks, strict=True)]
    count = prod(len(one) for one in indices)
    stored: str | None = None
    store = array._bound.store
    if count <= (MAX_REMOTE_VALUES if isinstance(store, Remote) else MAX_VALUES):
        stored = "".join("1" if store.exists(array._bound.key(coords)) else "0" for coords in product(*indices))
    has_shards = array._sharding is not None
    chunks: JSON = [list[JSON](edges) for edges in inner]
    values: JSON = [list[JSON](edges) for edges in outer]
    grid: JSON = [axis.nchunks for axis in array._bound.axes]
    return {
        "chunks": chunks,
        "values": values,
        "unit": "shard" if has_shards else "chunk",
        "grid": grid,
        "stored": stored,
    }


def _touched(axis: Axis, pick: Pick) -> range:
    if isinstance(pick, int):
        return range(axis.find(pick), axis.find(pick) + 1)
    return range(axis.find(pick[0]), axis.find(pick[-1]) + 1) if pick else range(0)


def _edges(axis: Axis, pick: Pick) -> list[int]:
    """Return the first element of each chunk that a pick touches, and the end of the last."""
    touched = _touched(axis, pick)
    if len(touched) > MAX_EDGES:
        raise too_large(f"the selection has {len(touched)} chunks along an axis", "Select less")
    if not touched:
        return []
    last = touched[-1]
    return [*(axis.start(index) for index in touched), min(axis.length, axis.start(last) + axis.size(last))]
