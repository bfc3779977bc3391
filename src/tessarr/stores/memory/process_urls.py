"""URLs of in-process stores: over a mapping, or over an object of a client library.

``mapping://…`` and ``object+…://…`` open the same place again as long as the store with that URL exists, as ``memory://…``
does for stores in memory.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from urllib.parse import unquote

from tessarr.errors import StoreError
from tessarr.stores.base import Store

_LIVE: weakref.WeakValueDictionary[str, Store] = weakref.WeakValueDictionary()


def registered(store: Store, url: str) -> str:
    """Register `url`, so that it opens the place of `store`. Returns `url`."""
    _LIVE.setdefault(url, store)
    return url


def open_url(url: str, options: Mapping[str, object], read_only: bool) -> Store:  # noqa: ARG001 - it has none
    """Open the in-process store at `url`. Raises `StoreError` when it no longer exists, or is in another process."""
    scheme, _, rest = url.partition("://")
    name, _, path = rest.partition("/")
    store = _LIVE.get(f"{scheme}://{name}")
    if store is None:
        raise StoreError("this URL refers to an in-process store that no longer exists", store=url)
    if read_only and not store.read_only:
        store = store.with_read_only()
    path = unquote(path).strip("/")
    if not path:
        return store
    from tessarr.stores.wrappers.prefix import PrefixStore

    return PrefixStore(store, path)
