"""Read several arrays as they were at one moment.

>>> import numpy as np, tempfile, tessarr
>>> place = tempfile.mkdtemp()
>>> root = tessarr.create_group(place)
>>> for name in ("t", "u"):
...     _ = root.create_array(name, data=np.zeros(4, "i4"))
>>> with tessarr.snapshot(place) as s:
...     t = s["t"][:]
...     with tessarr.transaction(place) as tx:
...         tx.group["t"][:] = 1
...         tx.group["u"][:] = 1
...     t.tolist(), s["u"][:].tolist()
([0, 0, 0, 0], [0, 0, 0, 0])
"""

from __future__ import annotations

from collections.abc import Mapping

from tessarr.core.array import Array
from tessarr.core.asynchronous.sans_io import async_variant, run_steps
from tessarr.core.group import Group
from tessarr.core.locate import locate
from tessarr.core.node import Node
from tessarr.core.open import open as open_node
from tessarr.core.stored.read_nodes import require_node_steps
from tessarr.errors import UnsupportedOperationError
from tessarr.stores.base import Store
from tessarr.stores.path import StorePath, prefix_of
from tessarr.stores.protocols import Snapshot
from tessarr.stores.transformed.manifest_options import options_of
from tessarr.stores.url import StoreLike
from tessarr.transactions.recorded import RecordedSnapshot


def snapshot(
    place: StoreLike, *, path: str | None = None, storage_options: Mapping[str, object] | None = None
) -> Array | Group:
    """Open the array or group at a place, read-only, as it is now: later changes are not seen.

    The result is a context manager; leaving it, or `close`, ends the snapshot. Writers do not wait for it. In a local
    directory, transactions keep what they replace as long as a snapshot lives that may read it. In memory and in LMDB every
    value is kept. What was changed and not kept (by writers outside transactions; in object storage and other stores; in a
    directory in which nothing may be written) raises `SnapshotChangedError` when it is read: values of two states are never
    mixed.

    `place`: a path, a URL, a store, an array or group; `path`: of the node in it. Raises `NodeNotFoundError`,
    `UnsupportedOperationError` for a store without versions of values or listings.

    >>> import tessarr
    >>> z = tessarr.create_array({}, data=[1, 2, 3])
    >>> with tessarr.snapshot(z) as before:
    ...     z[:] = 0
    ...     before[:].tolist()
    [1, 2, 3]
    """
    store, here, _ = locate(place, path, None, storage_options)
    run_steps(require_node_steps(store, here, None, None))  # completes a transaction of a process that ended
    owned = not isinstance(getattr(place, "_node", place), Store | StorePath | Node)
    # Consolidated metadata are written after the documents that they copy: the moment may be between the two.
    return open_node(_taken(store, here, owned), mode="r", path=here, use_consolidated=False)


def _taken(store: Store, path: str, owned: bool) -> Store:
    if isinstance(store, Snapshot) and not store.read_only:
        try:
            taken = store.snapshot()
        except UnsupportedOperationError:
            pass  # nothing may be written there
        else:
            taken.manifest_options = options_of(store)
            return taken
    return RecordedSnapshot(store, prefix_of(path), owned=owned)


snapshot_async = async_variant(snapshot)
