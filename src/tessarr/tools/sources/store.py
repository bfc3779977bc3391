"""Show a foreign file as Zarr v3, without a copy: documents made from its description, chunks encoded when they are read.

Chunks are those of the file where it has any, uncompressed, so that a client needs no codec. The bytes of a chunk are made by
writing its values to an array in memory, so that they are those that `tessarr.tools.convert` writes.

>>> import numpy, tempfile, tessarr
>>> folder = tempfile.mkdtemp()
>>> numpy.save(f"{folder}/a.npy", numpy.arange(6).reshape(2, 3))
>>> store = source_store(f"{folder}/a.npy")
>>> tessarr.open_array(store, mode="r")[1].tolist()
[3, 4, 5]
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from itertools import product

from tessarr.core.creation.shorthands import create_hierarchy
from tessarr.core.open import open_array
from tessarr.errors import StoreError
from tessarr.metadata.array import ArrayMetadata
from tessarr.stores.base import Listing, Store, Version
from tessarr.stores.buffers import byte_view
from tessarr.stores.functions import children
from tessarr.stores.local.file import version_of
from tessarr.stores.memory.store import MemoryStore
from tessarr.stores.path import check_key, check_prefix, file_url, prefix_of
from tessarr.stores.url import is_url
from tessarr.tools.copy_tree import Choices, Planned, plan_tree
from tessarr.tools.sources import open_source, source_kind
from tessarr.tools.sources.base import Source, SourceArray
from tessarr.types import Buffer, ByteRange

_CACHED_NBYTES = 64 << 20
"""Encoded chunks that are kept: a chunk is read in several ranges."""


class SourceStore(Store):
    """A read-only store over an opened source. Arrays that Zarr cannot hold are left out (`Source.unsupported`)."""

    read_only = True

    def __init__(self, source: Source, place: str) -> None:
        self._source = source
        self._place = os.path.abspath(place)
        self._lock = threading.Lock()
        self._encoded: OrderedDict[str, Buffer | None] = OrderedDict()
        self._file_version = self._version_of_file()
        choices = Choices(filters=None, compressors=None, exclude=[path for path, _ in source.unsupported])
        planned = plan_tree(source, choices).nodes
        self._documents = MemoryStore()
        list(create_hierarchy(store=self._documents, nodes={node.path: node.metadata for node in planned}))
        self._arrays = {node.path: node for node in planned if isinstance(node.source, SourceArray)}

    @property
    def url(self) -> str:
        return file_url(self._place, windows=os.name == "nt")

    def close(self) -> None:
        with self._lock:
            self._source.close()

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        value = self._value(key)
        if value is None or byte_range is None:
            return value
        view = byte_view(value)
        return view[slice(*byte_range.bounds(view.nbytes))]

    def version(self, key: str) -> Version | None:
        """See `Store.version`: that of the file."""
        check_key(key)
        return self._version_of_file()

    def list(self, prefix: str = "") -> Iterator[str]:
        check_prefix(prefix)
        yield from (key for key in self._documents.list() if key.startswith(prefix))
        for path, node in self._arrays.items():
            if prefix_of(path).startswith(prefix) or prefix.startswith(prefix_of(path)):
                yield from (key for key in _chunk_keys(node) if key.startswith(prefix))

    def list_dir(self, prefix: str) -> Listing:
        """See `Store.list_dir`: chunks are enumerated only below an array."""
        check_prefix(prefix)
        if any(prefix.startswith(prefix_of(path)) and prefix != prefix_of(path) for path in self._arrays):
            return children(self.list(prefix), prefix)
        found = children((key for key in self._documents.list() if key.startswith(prefix)), prefix)
        node = self._arrays.get(prefix[:-1])
        first = None if node is None else next(_chunk_keys(node), None)
        return found if first is None else children([*found.keys, first], prefix)

    def _version_of_file(self) -> Version:
        return version_of(os.stat(self._place))

    def _value(self, key: str) -> Buffer | None:
        check_key(key)
        document = self._documents.get(key)
        if document is not None:
            return document
        node, coords = self._find(key)
        if node is None:
            return None
        with self._lock:
            if self._version_of_file() != self._file_version:
                raise StoreError("the file changed since it was opened", store=self.url, key=key, hint="Open it again")
            if key not in self._encoded:
                self._encoded[key] = self._encode(node, coords, key)
                while len(self._encoded) > 1 and sum(map(_nbytes, self._encoded.values())) > _CACHED_NBYTES:
                    self._encoded.popitem(last=False)
            self._encoded.move_to_end(key)
            return self._encoded[key]

    def _find(self, key: str) -> tuple[Planned | None, tuple[int, ...]]:
        """Find the array and the coords of a chunk key; ``None``: the key is not a chunk key."""
        for path, node in self._arrays.items():
            if not key.startswith(prefix_of(path)) or not isinstance(node.metadata, ArrayMetadata):
                continue
            metadata = node.metadata
            coords = metadata.chunk_key_encoding.decode(key[len(prefix_of(path)) :], len(metadata.shape))
            axes = metadata.chunk_grid.axes(metadata.shape)
            if coords is not None and all(n < axis.nchunks for n, axis in zip(coords, axes, strict=True)):
                return node, coords
        return None, ()

    def _encode(self, node: Planned, coords: tuple[int, ...], key: str) -> Buffer | None:
        """Encode one chunk; ``None`` where it holds only the fill value."""
        assert isinstance(node.metadata, ArrayMetadata)
        assert isinstance(node.source, SourceArray)
        axes = node.metadata.chunk_grid.axes(node.metadata.shape)
        box = tuple(
            slice(axis.start(n), min(axis.start(n) + axis.size(n), axis.length))
            for n, axis in zip(coords, axes, strict=True)
        )
        name = f"{prefix_of(node.path)}zarr.json"
        document = self._documents.get(name)
        assert document is not None
        scratch = MemoryStore({name: document})
        open_array(scratch, path=node.path, mode="r+")[box] = node.source.read(box)
        return scratch.get(key)


def _nbytes(value: Buffer | None) -> int:
    return 0 if value is None else byte_view(value).nbytes


def _chunk_keys(node: Planned) -> Iterator[str]:
    assert isinstance(node.metadata, ArrayMetadata)
    counts = (axis.nchunks for axis in node.metadata.chunk_grid.axes(node.metadata.shape))
    for coords in product(*map(range, counts)):
        yield prefix_of(node.path) + node.metadata.chunk_key_encoding.encode(coords)


def source_store(place: object) -> SourceStore | None:
    """Open a file of another format as a store; ``None`` for anything else: a directory, a URL, a zip file, no file.

    Raises `MissingDependencyError` when the package for the format is not installed, `StoreError` for a damaged file.
    """
    path = os.fspath(place) if isinstance(place, os.PathLike) else place
    if not isinstance(path, str) or is_url(path) or not os.path.isfile(path):
        return None
    kind = source_kind(path)
    return None if kind == "zarr" else SourceStore(open_source(path, kind), path)
