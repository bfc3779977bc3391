"""Encode and check what is to be written before anything is changed, so that a refused call leaves the store as it was.

xarray resizes and creates arrays one by one, and finds errors in between. Here it does so first with arrays in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import xarray
from xarray.backends.common import ArrayWriter

from tessarr.core.group import Group
from tessarr.stores.memory.store import MemoryStore
from tessarr.xarray.data_store import ByName, TessarrStore, alike
from tessarr.xarray.writer import dump, validate_names

Nodes = Mapping[str, tuple[xarray.Dataset, ByName]]
"""Datasets and their encodings, by path below the group that is written to."""


class Prepared(NamedTuple):
    """What is written to one group."""

    variables: ByName
    """Encoded."""
    attributes: ByName
    checked: frozenset[object]
    """The variables whose encoding the caller gave: it may have no unknown entries."""
    region: object
    """The part of the existing arrays that is written, as slices by dimension; ``None``: all."""

    def write(self, store: TessarrStore, writer: ArrayWriter) -> None:
        """Create what is missing in `store`, and pass the values to `writer`."""
        store._write_region = self.region
        store.write(self.variables, self.attributes, self.checked, writer)


def prepare_nodes(root: TessarrStore, nodes: Nodes) -> dict[str, Prepared]:
    """Encode and check `nodes`, which are to be written to `root` and below. Nothing is written.

    The result lacks nodes whose variables are still to be read: of several nodes, only one at a time is in memory. They are
    checked without their values.

    Raises what writing would raise before it stores values.
    """
    absent = alike(root, _empty_group(root), TessarrStore)
    prepared = {}
    for path, (dataset, encoding) in nodes.items():
        there = root if path in root.zarr_group else absent
        store = there.get_child_store(path) if path else root
        unread = _unread(dataset) if len(nodes) > 1 else {}
        found = prepare(store, dataset._replace(variables={**dataset._variables, **unread}), encoding)
        _try(store, found)
        if not unread:
            prepared[path] = found
    return prepared


def prepare(store: TessarrStore, dataset: xarray.Dataset, encoding: ByName) -> Prepared:
    """Encode `dataset` for `store`. Raises where names, region or encoding do not fit what is stored."""
    validate_names(dataset)
    for variable in dataset.variables.values():
        if variable.size == 0:
            variable.load()  # dask has no chunks to store where there are no elements
    selected = store._validate_and_autodetect_region(dataset)
    store._validate_encoding(encoding)
    encoder = _Encoder(store)
    dump(selected, encoder, _NoWriter(), encoding=encoding)
    return encoder.prepared


class _Encoder:
    """Take the place of a store in xarray's `dump_to_store`, and keep what would be stored."""

    prepared: Prepared

    def __init__(self, store: TessarrStore) -> None:
        self._store = store

    def store(
        self, variables: ByName, attributes: ByName, checked: Iterable[object], writer: object, unlimited_dims: object
    ) -> None:
        encoded = self._store.encode_for_writing(variables, attributes)
        self.prepared = Prepared(*encoded, frozenset(checked), self._store._write_region)


def _try(store: TessarrStore, prepared: Prepared) -> None:
    """Create and resize in memory what `store` would create and resize."""
    trial = alike(store, _empty_group(store), _Trial)
    trial._members = store.members
    prepared.write(trial, _NoWriter())


def _empty_group(store: TessarrStore) -> Group:
    """Create a group in memory, of the format of the group of `store`."""
    return Group.from_store(MemoryStore(), zarr_format=store.zarr_group.zarr_format)


class _Trial(TessarrStore):
    """A store whose existing arrays have nothing but a shape."""

    __slots__ = ()

    def _open_existing_array(self, *, name: str) -> _Shape:  # type: ignore[override]
        return _Shape(dict(self.arrays())[name].shape)


class _Shape:
    """The shape of an array, which is resized without the array."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape

    def resize(self, shape: tuple[int, ...]) -> None:
        self.shape = shape


class _NoWriter(ArrayWriter):
    """Compare the shape of the values with the region that they are for, and write nothing."""

    def add(self, source: _Shape, target: _Shape, region: tuple[slice, ...] = ()) -> None:
        wanted = tuple(len(range(*part.indices(size))) for part, size in zip(region, target.shape, strict=True))
        if wanted != source.shape:
            raise ValueError(f"values of shape {source.shape} are to be written to a region of shape {wanted}")


def _unread(dataset: xarray.Dataset) -> dict[object, xarray.Variable]:
    """Return the variables that encoding would read, with one value of their type in place of theirs.

    Variables of objects are left out: their values decide how they are encoded.
    """
    return {
        name: xarray.Variable(
            variable.dims,
            np.broadcast_to(np.zeros((), variable.dtype), variable.shape),
            variable.attrs,
            variable.encoding,
        )
        for name, variable in dataset.variables.items()
        if not variable._in_memory and variable.chunks is None and variable.dtype != object
    }
