"""The arrays that tasks write: targets, and those between stages, sharded, never published, removed block by block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from tessarr.codecs.parse import codec_from
from tessarr.codecs.sharding import ShardingCodec
from tessarr.core.array import Array
from tessarr.core.creation.array_config import DEFAULT, array_config
from tessarr.core.creation.metadata import new_array_metadata
from tessarr.engine.bound import RuntimeOptions
from tessarr.indexing.boxes import Box, box_shape, tiles
from tessarr.metadata.array import ArrayMetadata
from tessarr.plan.strategies.staged import Intermediate
from tessarr.plan.strategies.stages import Stages
from tessarr.stores.base import Store

PIECE = 1 << 20
"""Bytes of a part that is read to be compared."""
_CODEC = {"name": "zstd", "configuration": {"level": 1, "checksum": False}}
"""Fast to encode, and to decode once."""


def open_intermediate(store: Store, path: str, target: ArrayMetadata, shapes: Intermediate) -> Array:
    """Open an array of the elements of `target`, whose documents are never written. A chunk that is not there is an error."""
    metadata = new_array_metadata(
        shape=target.shape,
        dtype=target.data_type,
        chunks=shapes.chunks,
        shards=shapes.shards,
        compressors=[codec_from(_CODEC)],
        fill_value=DEFAULT if target.fill_value is None else target.fill_value,
    )
    options = RuntimeOptions(write_empty_chunks=True, read_missing_chunks=False, replace_cut_chunks=True)
    return Array._make(store, path, metadata, options, read_only=False, order=None)


def open_target(store: Store, path: str, metadata: ArrayMetadata) -> Array:
    """Open an array whose documents are not written yet.

    Stored values depend on elements alone, so that a repeated task writes the same bytes: inner chunks are written in order,
    and chunks that the end of the array cuts are replaced, whatever a stopped plan has left there.
    """
    codecs = (
        replace(codec, subchunk_write_order="lexicographic") if isinstance(codec, ShardingCodec) else codec
        for codec in metadata.codecs
    )
    options = array_config(None).options._replace(replace_cut_chunks=True)
    return Array._make(store, path, replace(metadata, codecs=tuple(codecs)), options, read_only=False, order=None)


def pieces_of(box: Box, array: Array) -> Iterator[Box]:
    """Tile a box by small ones of whole chunks, or inner chunks, to read it in."""
    chunks = [axis.size(0) if axis.nchunks else 1 for axis in array._chunk_axes]
    shape = tuple(part.stop - part.start for part in box)
    lengths = box_shape(shape, tuple(chunks), None, array.itemsize, PIECE)
    for piece in tiles(shape, lengths):
        yield tuple(slice(low.start + part.start, low.start + part.stop) for low, part in zip(box, piece, strict=True))


def keys_of_block(array: Array, stages: Stages, stage: int, block: int) -> Iterator[str]:
    """Yield the keys of the shards that a stage stores in a block."""
    tiling = stages.tilings[stage]
    parts = stages.blocks.box(block)
    ranges = [range(tiling.before(axis, part.start), tiling.before(axis, part.stop)) for axis, part in enumerate(parts)]
    return (array._bound.key(coords) for coords in product(*ranges))
