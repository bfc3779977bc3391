"""What users see as the store of a node, where that is another object than the store that does the work.

Code that was written for zarr-python hands over stores of zarr-python's shape, whose methods are coroutines, and expects that
very object back from ``array.store``. Such a class has the method ``__tessarr_place__``, which gives the tessarr store that
does the work and the path in it; that store remembers the object as `Store.given`.

`shape_with` also gives a shape to the stores that `tessarr.storage.store_from` makes of paths and URLs: `tessarr.as_zarr` does
so while it is installed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tessarr.stores.base import Store

_shape: Callable[[Store], Any] | None = None


def shape_with(shape: Callable[[Store], object] | None) -> None:
    """Show the stores that are made from now on as what `shape` makes of them; ``None``: as they are."""
    global _shape
    _shape = shape


def shaped(store: Store) -> Store:
    """`store`, which was just made, with the object that it is to be shown as."""
    if _shape is not None and store.given is None:
        store.given = _shape(store)
    return store


def shown(store: Store) -> Any:
    """The object that users see as `store`: the one it was made of, read-only or not as the store is."""
    given = store.given
    if given is None:
        return store
    if bool(given.read_only) != store.read_only:
        try:
            given = given.with_read_only(store.read_only)
        except NotImplementedError:  # a user-defined store, which need not have it
            return given
        store.given = given
    return given
