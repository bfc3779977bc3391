"""Hold a view as a read-only store: documents are made from the stored ones, chunks are read, cast and encoded.

Nothing is kept: each document and each chunk is made from what is stored when it is requested.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from tessarr.codecs.base import ChunkSpec
from tessarr.codecs.chain import BoundChain
from tessarr.core.array import Array
from tessarr.core.stored.parse_cache import parse_entry
from tessarr.core.stored.walk import NAMES, Entry, read_entries
from tessarr.dtypes.optional import unmasked
from tessarr.errors import TessarrError
from tessarr.indexing.boxes import Box, chunk_box
from tessarr.metadata import serialize
from tessarr.metadata.array import ArrayMetadata
from tessarr.metadata.group import GroupMetadata
from tessarr.serve.dynamic.budget import Budget
from tessarr.serve.dynamic.query import Pick
from tessarr.serve.dynamic.reading import read_values
from tessarr.serve.views.options import Options
from tessarr.serve.views.viewed import Viewed, converted, image_attributes, is_level, levels_of, viewed
from tessarr.stores.base import Listing, Store
from tessarr.stores.path import check_key, check_prefix, join, prefix_of
from tessarr.tools.pyramid.levels import Level
from tessarr.tools.pyramid.reduce import check_method, reduce
from tessarr.types import AnyArray, Buffer, ByteRange, JSONObject, Shape

_List = list
_Metadata: TypeAlias = ArrayMetadata | GroupMetadata
_DOCUMENT = "zarr.json"
_SAMPLE = 256
"""Stored chunks from which one chunk of a level is made."""


class _Node(NamedTuple):
    """A node of a view."""

    entry: Entry
    """The stored node that it shows."""
    metadata: _Metadata
    """Of the stored node."""
    levels: Sequence[Level]
    """The levels of an array that is shown as a group; else empty."""
    level: Level | None = None
    """The level that the node is."""


class ViewStore(Store):
    """The view of a node, at the root, and of what is below it."""

    read_only = True

    def __init__(self, stored: Store, path: str, options: Options, budget: Budget) -> None:
        self._stored = stored
        self._path = path
        self._options = options
        self._budget = budget

    @property
    def url(self) -> str:
        return self._stored.url

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        """See `Store.get`. Raises `Refusal` for a chunk over the budget, and for one that cannot be cast."""
        check_key(key)
        path, _, name = key.rpartition("/")
        value = self._document(path) if name == _DOCUMENT else self._chunk(key)
        if value is None or byte_range is None:
            return value
        view = memoryview(value)
        return view[slice(*byte_range.bounds(view.nbytes))]

    def list(self, prefix: str = "") -> Iterator[str]:
        """See `Store.list`: documents; chunks are not enumerated."""
        found = self.list_dir(prefix)
        yield from found.keys
        for below in found.prefixes:
            yield from self.list(below)

    def list_dir(self, prefix: str) -> Listing:
        """See `Store.list_dir`: documents and nodes; chunks are not enumerated."""
        check_prefix(prefix)
        node = self._node(prefix[:-1])
        if node is None:
            return Listing([], [])
        documents = [prefix + _DOCUMENT]
        if node.levels:
            return Listing(documents, [prefix_of(prefix + level.name) for level in node.levels])
        if not isinstance(node.metadata, GroupMetadata):
            return Listing(documents, [])
        start = len(prefix_of(self._path))
        below = self._stored.list_dir(prefix_of(join(self._path, prefix[:-1]))).prefixes
        return Listing(documents, [one[start:] for one in below])

    def _node(self, path: str) -> _Node | None:
        """Find a node of the view; ``None``: there is none, or its documents cannot be parsed."""
        segments = path.split("/") if path else []
        paths = ["/".join(segments[:count]) for count in range(len(segments), max(-1, len(segments) - 3), -1)]
        entries = read_entries(self._stored, [join(self._path, one) for one in paths], NAMES)
        own, above, higher, *_ = [*map(_parsed, entries), None, None]
        if own is not None:
            return _Node(entries[0], own, self._levels(own, above, segments[-1:]))
        level = next((one for one in self._levels(above, higher, segments[-2:-1]) if one.name == segments[-1]), None)
        return None if level is None or above is None else _Node(entries[1], above, [], level)

    def _levels(self, node: _Metadata | None, above: _Metadata | None, name: Sequence[str]) -> Sequence[Level]:
        """Plan the levels of a node; none for a group, and for an array that the group `above` names as a level."""
        if not isinstance(node, ArrayMetadata):
            return []
        if isinstance(above, GroupMetadata) and is_level(above.attributes, name[0]):
            return []
        return levels_of(node, self._options)

    def _document(self, path: str) -> Buffer | None:
        node = self._node(path)
        if node is None:
            return None
        document: JSONObject
        if isinstance(node.metadata, GroupMetadata):
            document = GroupMetadata(zarr_format=3, attributes=dict(node.metadata.attributes)).documents()[_DOCUMENT]
        elif node.levels:
            document = self._image(path, node.metadata, node.levels)
        else:
            document = viewed(node.metadata, self._options, node.level).metadata.documents()[_DOCUMENT]
        return serialize.dumps({_DOCUMENT: document})[_DOCUMENT]

    def _image(self, path: str, stored: ArrayMetadata, levels: Sequence[Level]) -> JSONObject:
        """Make the document of the group of levels that an array is shown as."""
        first = viewed(stored, self._options, levels[0]).metadata
        attributes = image_attributes(
            Array._opened(self, join(path, "0"), first, read_only=True, config=None), levels, self._options
        )
        return GroupMetadata(zarr_format=3, attributes={**stored.attributes, **(attributes or {})}).documents()[
            _DOCUMENT
        ]

    def _chunk(self, key: str) -> Buffer | None:
        """Make a chunk; ``None``: the key is not one of a chunk."""
        segments = key.split("/")
        for count in range(len(segments)):
            path = "/".join(segments[:count])
            node = self._node(path)
            if node is None:
                return None
            if not isinstance(node.metadata, ArrayMetadata) or node.levels:
                continue
            shown = viewed(node.metadata, self._options, node.level)
            coords = shown.metadata.chunk_key_encoding.decode("/".join(segments[count:]), len(shown.metadata.shape))
            return None if coords is None else self._encoded(node, shown, coords)
        return None

    def _encoded(self, node: _Node, shown: Viewed, coords: Shape) -> Buffer | None:
        metadata = shown.metadata
        axes = metadata.chunk_grid.axes(metadata.shape)
        if not all(0 <= index < axis.nchunks for index, axis in zip(coords, axes, strict=True)):
            return None
        assert isinstance(node.metadata, ArrayMetadata)
        array = Array._opened(self._stored, node.entry.path, node.metadata, read_only=True, config=None)
        read = self._values(array, chunk_box(axes, coords), shown.level)
        convert = unmasked if metadata.data_type.may_be_missing else converted
        values = convert(read, metadata.dtype)
        shape = metadata.chunk_grid.chunk_shape
        fill = metadata.fill_value
        assert shape is not None
        assert fill is not None
        chunk = np.full(shape, fill, metadata.dtype)
        chunk[tuple(slice(0, length) for length in values.shape)] = values
        with self._budget.share(2 * chunk.nbytes):
            return BoundChain(metadata.codecs, ChunkSpec(shape, metadata.data_type, fill)).encode(chunk)

    def _values(self, array: Array, box: Box, level: Level | None) -> AnyArray:
        """Read the elements of a box of the view."""
        factors = (1,) * len(box) if level is None else level.total
        if self._options.levels != "mean" or max(factors, default=1) == 1:
            picks: _List[Pick] = [
                range(one.start * factor, min(one.stop * factor, length), factor)
                for one, factor, length in zip(box, factors, array.shape, strict=True)
            ]
            return read_values(array, picks, self._budget, sample=_SAMPLE if level is not None else None).data
        check_method("mean", array.dtype)
        halves = tuple(max(1, factor // 2) for factor in factors)
        picks = [
            range(one.start * factor, min(one.stop * factor, length), half)
            for one, factor, half, length in zip(box, factors, halves, array.shape, strict=True)
        ]
        read = read_values(array, picks, self._budget, sample=_SAMPLE).data
        return reduce(read, tuple(factor // half for factor, half in zip(factors, halves, strict=True)), "mean")


def _parsed(entry: Entry) -> _Metadata | None:
    if entry.kind is None:
        return None
    try:
        return parse_entry(entry, entry.formats[0])
    except (TessarrError, ValueError):
        return None
