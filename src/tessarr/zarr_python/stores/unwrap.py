"""Unwrap stores of zarr-python: make a tessarr store of the same place, where possible without zarr-python's event loop.

Only stores of exactly the known classes are unwrapped. A subclass or a wrapper may observe or transform values, which
unwrapping would bypass; `unwrap` refuses it with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tessarr.stores.base import Store

if TYPE_CHECKING:
    from zarr import AsyncGroup, Group
    from zarr.abc.store import Store as TheirStore
    from zarr.types import AnyArray, AnyAsyncArray

_STORAGE = "zarr.storage."


class NotServedError(Exception):
    """The reason why zarr-python serves an array: a sentence without a full stop."""


def unwrap(store: TheirStore) -> Store:
    """Make the tessarr store of the place of `store`, a store of zarr-python; read-only if `store` is.

    Raises `NotServedError` for an unknown class.
    """
    kind = type(store)
    inner = getattr(store, "tessarr_store", None)
    if isinstance(inner, Store) and kind.__module__ == "tessarr.zarr_python.stores.shape":
        return inner if inner.read_only == store.read_only else inner.with_read_only(store.read_only)
    make = _KNOWN.get(f"{kind.__module__}.{kind.__qualname__}")
    if make is None:
        raise NotServedError(f"its store is a {kind.__module__}.{kind.__qualname__}, which may do more than hold bytes")
    return make(store)


def place_of(theirs: AnyArray | AnyAsyncArray | Group | AsyncGroup) -> tuple[Store, str]:
    """Return the store of `theirs`, an array or group of zarr-python, and its path there; ``.given`` is zarr-python's store.

    A store of an unknown class is called through zarr-python's event loop.
    """
    from tessarr.stores.virtual.zarr_python import ZarrPythonStore

    given = theirs.store_path.store
    try:
        store = unwrap(given)
    except NotServedError:
        store = ZarrPythonStore(given)
    store.given = given
    return store, theirs.store_path.path


def _local(store: Any) -> Store:
    from tessarr.stores.local.store import LocalStore

    return LocalStore(store.root, read_only=store.read_only)


def _memory(store: Any) -> Store:
    from tessarr.zarr_python.stores.memory import BufferStore

    return BufferStore(store._store_dict, prefix=getattr(store, "path", ""), read_only=store.read_only)


def _zip(store: Any) -> Store:
    from tessarr.zarr_python.stores.zipped import OpenZip

    return OpenZip(store)


def _object(store: Any) -> Store:
    from tessarr.stores.remote.obstore.store import ObjectStore

    return ObjectStore(store.store, read_only=store.read_only)


def _fsspec(store: TheirStore) -> Store:
    # The connections of the filesystem belong to zarr-python's event loop, so that it must make the calls.
    from tessarr.stores.virtual.zarr_python import ZarrPythonStore

    return ZarrPythonStore(store)


_KNOWN: dict[str, Callable[[Any], Store]] = {
    _STORAGE + "_local.LocalStore": _local,
    _STORAGE + "_memory.MemoryStore": _memory,
    _STORAGE + "_memory.ManagedMemoryStore": _memory,
    _STORAGE + "_zip.ZipStore": _zip,
    _STORAGE + "_obstore.ObjectStore": _object,
    _STORAGE + "_fsspec.FsspecStore": _fsspec,
}
"""The functions that unwrap, by module and name of the class."""
