"""Read Zarr of any version, with all properties of its arrays: codecs, chunks, shards, fill values, names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tessarr.codecs.base import BytesToBytes, Codec
from tessarr.core.array import Array
from tessarr.core.group import Group
from tessarr.core.open import open as open_node
from tessarr.core.stored.create_nodes import Watched
from tessarr.stores.path import join
from tessarr.tools.sources.base import UNSET, SourceArray, SourceGroup, is_axis
from tessarr.tools.transfer import values_in

_N5_BLOCKS = ("n5_default", "n5_varlen")
_CLIPPED = "tessarr.clipped"
"""The names of codecs of other formats, whose modules need not be imported to know them."""


class ZarrSource:
    """Read an array or a whole hierarchy."""

    kind = "zarr"
    parallel = True

    def __init__(self, node: Array | Group) -> None:
        self.node = node
        self._watched: Watched | None = None
        self.notices: list[str] = []
        self.unsupported: list[tuple[str, str]] = []
        self._opened: list[tuple[str, Array | Group]] = [("", node)]
        if isinstance(node, Group):
            found = node.members(max_depth=None)
            self._opened += sorted(found, key=lambda item: item[0].split("/"))
        self.nodes: list[SourceArray | SourceGroup] = [_node(path, one) for path, one in self._opened]

    def watch(self) -> None:
        """Record the documents of all nodes, once. Raises `ConflictError` where they are not those that were opened."""
        if self._watched is None:
            opened = {join(self.node._path, path): node._metadata for path, node in self._opened}
            consolidated = getattr(self.node._metadata, "consolidated_metadata", None) is not None
            self._watched = Watched.of(self.node._store, opened, consolidated=consolidated)

    def check_unchanged(self, *, grown: bool = False) -> None:
        """Raise `ConflictError` where a node changed since `watch`; see `Watched.check`."""
        if self._watched is not None:
            self._watched.check(grown=grown)

    def close(self) -> None:
        """Do nothing: the caller that opened the store closes it."""


def _node(path: str, node: Array | Group) -> SourceArray | SourceGroup:
    attributes = node.attrs.asdict()
    if isinstance(node, Group):
        return SourceGroup(path=path, attributes=attributes)
    metadata = node._metadata
    regular = metadata.chunk_grid.chunk_shape is not None
    keep: dict[str, object] = {
        "zarr_format": node.zarr_format,
        "chunks": node.chunks if regular else metadata.chunk_grid,
        "shards": node.shards if regular else None,
        "filters": node.filters if node.zarr_format == 3 else tuple(metadata.filters or ()),
        "serializer": node.serializer,
        "compressors": node.compressors if node.zarr_format == 3 else _v2_compressors(metadata.compressor),
        "order": metadata.order,
        "v2_filters": metadata.filters,
        "v2_compressor": metadata.compressor,
        "chunk_key_encoding": metadata.chunk_key_encoding,
        "separator": metadata.dimension_separator,
    }
    blocks = metadata.codecs[-1]
    if blocks.name in _N5_BLOCKS:
        keep |= _without_blocks(getattr(blocks, "codecs", ()))
    elif blocks.name == _CLIPPED:
        keep = {}  # but for its chunks, nothing of another format is a choice for Zarr
    made = SourceArray(
        path=path,
        shape=node.shape,
        dtype=metadata.data_type,
        read=lambda box: values_in(node, box),
        read_into=(lambda box, out: node.read(box, out=out)) if regular else None,
        chunks=tuple(min(axis.size(0), axis.length) if axis.nchunks else 1 for axis in node._chunk_axes),
        fill_value=UNSET if metadata.fill_value is None else metadata.fill_value,
        attributes=attributes,
        dimension_names=node.dims,
        keep=keep,
    )
    made.is_coordinate = is_axis(made)
    return made


def _v2_compressors(config: object) -> tuple[object, ...]:
    return (config,) if isinstance(config, Mapping) else ()


def _without_blocks(codecs: Sequence[Codec]) -> dict[str, object]:
    """Describe the codecs of an N5 dataset without the form of its blocks, which only N5 needs."""
    compressors = [codec for codec in codecs if isinstance(codec, BytesToBytes)]
    return {"filters": (), "serializer": "auto", "compressors": compressors, "chunk_key_encoding": None}


def open_source(place: Any, storage_options: Mapping[str, object] | None = None) -> ZarrSource:
    """Open Zarr data at a place, or use an opened node."""
    if isinstance(place, Array | Group):
        return ZarrSource(place)
    return ZarrSource(open_node(place, mode="r", storage_options=storage_options))
