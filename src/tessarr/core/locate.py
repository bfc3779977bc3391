"""Resolve the arguments of an opening function: store and path in the store, mode, and requested format."""

from __future__ import annotations

import os
from collections.abc import Mapping

from tessarr.core.node import Node
from tessarr.errors import MetadataValidationError, NodeNotFoundError, ReadOnlyError, UnsupportedOperationError
from tessarr.settings import config as settings
from tessarr.stores.base import Store
from tessarr.stores.path import join, normalize_path
from tessarr.stores.url import StoreLike, same_place, store_from
from tessarr.types import ZarrFormat

_MODES = ("r", "r+", "a", "w", "w-", "x")
_COROUTINE = 0x80
"""inspect.CO_COROUTINE"""


def locate(
    store: StoreLike,
    path: str | None,
    mode: str | None,
    storage_options: Mapping[str, object] | None = None,
    *,
    error: type[NodeNotFoundError] = NodeNotFoundError,
) -> tuple[Store, str, str]:
    """Resolve a store-like value, path and mode as users give them. Returns the store, the path in the store, and the mode.

    `store` may also be an opened array or group, whose store is then used. A store that is opened here is read-only
    with ``mode="r"``.

    Raises, where `tessarr.as_zarr` is installed, `ReadOnlyError` for a read-only store and a mode that writes (elsewhere the
    first write raises it), and `error` for a path without a directory and a mode that does not create.
    """
    check_mode(mode)
    held = getattr(store, "_node", store)  # unwraps an `AsyncArray` or `AsyncGroup`
    if isinstance(held, Node):
        base, here = store_from(held._store, storage_options=storage_options)[0], held._path
    else:
        base, here = store_from(store, mode=mode, storage_options=storage_options)
    base = synchronous(base)
    if mode is not None and settings.get("zarr_python.arguments"):
        _check_as_zarr_python(store, base, mode, error)
    whole = join(here, normalize_path(path)) if path else here
    mode = mode or ("r" if base.read_only else "a")
    if mode == "r" and not base.read_only and not isinstance(store, Store) and not hasattr(store, "store"):
        base = base.with_read_only(True)  # the store was made for this call
    return base, whole, "w-" if mode == "x" else mode


def _check_as_zarr_python(given: StoreLike, store: Store, mode: str, error: type[NodeNotFoundError]) -> None:
    if mode != "r" and getattr(given, "read_only", False):
        raise ReadOnlyError(
            f"Store is read-only but mode is {mode!r}", store=store.url, hint="Give a writable store, or mode 'r'"
        )
    if mode in ("r", "r+") and isinstance(given, str | os.PathLike):
        root = getattr(store, "root", None)
        if isinstance(root, os.PathLike) and not os.path.exists(
            root
        ):  # no array or group is missing, but the place of one
            raise error(f"{root} does not exist", store=store.url, hint="Check the path")


def check_mode(mode: str | None) -> None:
    """Raise `ValueError` for an unknown mode."""
    if mode is not None and mode not in _MODES:
        raise ValueError(f"mode must be one of {', '.join(_MODES)}; got {mode!r}")


def check_chunk_store(store: Store, chunk_store: object) -> None:
    """Require chunks beside their metadata: `chunk_store` must be ``None`` or the same place.

    Raises `UnsupportedOperationError` when it is another.
    """
    if chunk_store is None:
        return
    inner, path = store_from(chunk_store)
    if path or not any(same_place(outer, inner) for outer in (store, getattr(store, "store", store))):
        raise UnsupportedOperationError(
            "chunks in a store of their own are not supported", store=store.url, got=f"chunk_store {inner.url}"
        )


def synchronous(store: Store) -> Store:
    """Return `store`; if its methods are coroutines, the synchronous store that runs them."""
    code = getattr(type(store).get, "__code__", None)
    if code is None or not code.co_flags & _COROUTINE:
        return store
    from tessarr.core.asynchronous.stores import synchronous_store

    return synchronous_store(store)


def requested_format(store: StoreLike, zarr_format: int | None) -> ZarrFormat | None:
    """Return the format requested by the argument or by the end of a URL (``…|zarr2:``); ``None``: any format."""
    if zarr_format not in (None, 1, 2, 3):
        raise MetadataValidationError(
            f"Invalid value for 'zarr_format'. Expected 2, 3, or None. Got {zarr_format!r}.",
            hint="1 opens data of Zarr v1",
        )
    by_url = None
    if isinstance(store, str) and "|" in store:
        from tessarr.stores.url import as_url
        from tessarr.stores.virtual.pipeline import format_of

        by_url = format_of(as_url(store))
    if by_url is not None and zarr_format not in (None, by_url):
        raise ValueError(f"the URL asks for Zarr v{by_url}, and zarr_format for v{zarr_format}: {store!r}")
    return by_url or zarr_format  # type: ignore[return-value]


def format_of_new(store: StoreLike, zarr_format: int | None) -> ZarrFormat:
    """Return the format of a new node: the requested format, or the default."""
    return requested_format(store, zarr_format) or settings.get("default_zarr_format", 3)
