"""Hold the state of an array: store, path and metadata, and the bound array and engine made from them."""

from __future__ import annotations

from collections.abc import Mapping
from operator import ge
from typing import TYPE_CHECKING, Any, Self

from tessarr.core.creation.array_config import ArrayConfigLike, array_config
from tessarr.core.node import STATE_LOCK, Node
from tessarr.core.stored import read_nodes
from tessarr.engine.bound import BoundArray, RuntimeOptions, bind
from tessarr.engine.choose import Choice, choose
from tessarr.metadata.array import ArrayMetadata
from tessarr.stores.base import Store
from tessarr.stores.path import prefix_of
from tessarr.types import JSONObject, Shape

if TYPE_CHECKING:
    from functools import cached_property as cached_by_state
else:
    from tessarr.core.node import cached_by_state

_ANY = object()


class ArrayState(Node):
    """Hold the store, path, metadata and runtime options of an array, and the engine that serves it. Base of `Array`."""

    _metadata: ArrayMetadata
    _options: RuntimeOptions
    _read_only: bool
    _transformed: tuple[tuple[JSONObject, ...], Store, Store] | None = None
    """The storage transformers, the store, and the store that they made of it."""
    _order: Any
    """"C" or "F": memory layout of the arrays that reading returns."""

    @classmethod
    def _make(
        cls,
        store: Store,
        path: str,
        metadata: ArrayMetadata,
        options: RuntimeOptions,
        *,
        read_only: bool,
        order: str | None,
    ) -> Self:
        """Make an array from known metadata, without reading or writing."""
        self = cls.__new__(cls)
        self._store = store
        self._path = path
        self._metadata = metadata
        self._options = options
        self._read_only = read_only
        self._order = order or metadata.order
        return self

    @classmethod
    def _opened(
        cls, store: Store, path: str, metadata: ArrayMetadata, *, read_only: bool, config: ArrayConfigLike | None
    ) -> Self:
        """Make an array from metadata that was read, with the runtime options `config` of `tessarr.open_array`."""
        chosen = array_config(config)
        order = chosen.order if metadata.zarr_format == 3 or _states_order(config) else metadata.order
        return cls._make(store, path, metadata, chosen.options, read_only=read_only, order=order)

    @property
    def shape(self) -> Shape:
        """Lengths of the axes."""
        return self._metadata.shape

    @property
    def order(self) -> str:
        """Memory layout of the arrays that reading returns: "C" or "F"."""
        return str(self._order)

    @property
    def zarr_format(self) -> int:
        """The Zarr format: 1, 2 or 3."""
        return self._metadata.zarr_format

    @property
    def read_only(self) -> bool:
        """Whether writes raise `ReadOnlyError`."""
        return self._read_only_reason() is not None

    @read_only.setter
    def read_only(self, value: bool) -> None:
        self._read_only = value
        self._adopt(None)

    def _read_only_reason(self) -> str | None:
        if self._store.read_only:
            return "its store is read-only"
        return "it was opened with mode='r'" if self._read_only else self._metadata.not_writable

    # -- engines -------------------------------------------------------------------------------------------------------

    @cached_by_state
    def _bound(self) -> BoundArray:
        read_nodes.warn_of_nested_chunks(self._store, self._path, self._metadata)
        chunks = self._chunk_store()
        return bind(self._store, self._path, self._metadata, self._options, self._read_only_reason(), chunks)

    def _chunk_store(self) -> Store:
        """Return the store of the chunks: one as long as the storage transformers are the same, since it may hold values."""
        transformers = self._metadata.storage_transformers
        if not transformers:
            return self._store
        from tessarr.engine.transformers import transformed

        with STATE_LOCK:
            if self._transformed is None or self._transformed[:2] != (transformers, self._store):
                made = transformed(self._store, self._path, self._metadata)
                self._transformed = (transformers, self._store, made)
            return self._transformed[2]

    @cached_by_state
    def engine(self) -> Choice:
        """The engine that serves this array (``.name``), and the reason for the choice (``.reason``)."""
        return choose(self._bound)

    @cached_by_state
    def _engine(self) -> Any:
        return self.engine.engine

    def _adopt(self, metadata: ArrayMetadata | None, since: object = _ANY) -> bool:
        """Replace the metadata, and drop the bound array and engine made from the old one.

        ``None`` keeps the metadata (`read_only` has changed). Compares and swaps in memory: if the state is not `since` any
        more, because another thread changed the array, nothing is done and ``False`` returned.
        """
        if metadata is not None:
            self._forget_gained(metadata)
        with STATE_LOCK:
            if since is not _ANY and self._state is not since:
                return False
            self._metadata = self._metadata if metadata is None else metadata
            self._state = object()
            for name in ("_bound", "engine", "_engine"):
                self.__dict__.pop(name, None)
        return True

    def _forget_gained(self, metadata: ArrayMetadata) -> None:
        """Invalidate what a store has cached of chunks with elements that the shape of `metadata` gains: others stored them."""
        old, new = self._metadata.shape, metadata.shape
        if len(old) != len(new) or all(after <= before for before, after in zip(old, new, strict=True)):
            return
        axes = metadata.chunk_grid.axes(new)
        first = [
            axis.find(before) if after > before else axis.nchunks
            for axis, before, after in zip(axes, old, new, strict=True)
        ]

        def is_stale(name: str) -> bool:
            coords = metadata.chunk_key_encoding.decode(name, len(new))
            return coords is not None and any(map(ge, coords, first))

        self._store._invalidate_cached(prefix_of(self._path), is_stale)


def _states_order(config: ArrayConfigLike | None) -> bool:
    stated = config.get("order") if isinstance(config, Mapping) else getattr(config, "order", None)
    return stated is not None
