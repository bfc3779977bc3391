"""Open Neuroglancer precomputed volumes as groups and arrays.

Source: Neuroglancer, "Neuroglancer Precomputed Volume Format"; `tessarr.stores.virtual.precomputed` describes how a volume is
read as a store.
"""

from __future__ import annotations

from collections.abc import Mapping

from tessarr.core.array import Array
from tessarr.core.asynchronous.sans_io import async_variant, sans_io, steps_of
from tessarr.core.group import Group
from tessarr.core.open import open
from tessarr.metadata.n5 import AxisOrder
from tessarr.stores.url import StoreLike
from tessarr.stores.virtual.precomputed import PrecomputedStore


@sans_io
async def open_precomputed(
    store: StoreLike,
    *,
    path: str | None = None,
    axis_order: AxisOrder = "C",
    storage_options: Mapping[str, object] | None = None,
) -> Array | Group:
    """Open a Neuroglancer precomputed volume, or the scale at `path` in it, for reading.

    `store` is a path, a URL (also ``precomputed://…``), a mapping or a store; `path` the ``key`` of a scale. `axis_order` is
    ``"C"`` for arrays with the axes c, z, y, x, or ``"F"`` for x, y, z, c, as in Neuroglancer and TensorStore. Indices start at
    0: the origin of a scale is its attribute ``voxel_offset``, in voxels. A URL that ends in ``|neuroglancer-precomputed:``
    opens the same volume with `tessarr.open`, in C order.

    Raises `NodeNotFoundError`, and `MetadataValidationError` for a malformed document, or an encoding other than raw,
    compressed_segmentation and jpeg.

    >>> import tessarr
    >>> info = (b'{"type": "image", "data_type": "uint8", "num_channels": 1, "scales": [{"key": "8_8_40", "size": [3, 2, 1],'
    ...     b' "chunk_sizes": [[2, 2, 1]], "resolution": [8, 8, 40], "encoding": "raw"}]}')
    >>> volume = {"info": info, "8_8_40/0-2_0-2_0-1": bytes(range(4))}
    >>> z = tessarr.open_precomputed(volume)["8_8_40"]
    >>> z.shape, z.dims, z[0, 0].tolist()
    ((1, 1, 2, 3), ('c', 'z', 'y', 'x'), [[0, 1, 0], [2, 3, 0]])
    """
    return await steps_of(open)(_opened(store, axis_order, storage_options), "r", path=path)


def _opened(store: StoreLike, axis_order: AxisOrder, options: Mapping[str, object] | None) -> PrecomputedStore:
    from tessarr.stores.path import StorePath
    from tessarr.stores.url import store_from

    if isinstance(store, PrecomputedStore):
        return store
    opened, path = store_from(store, mode="r", storage_options=options)
    if isinstance(opened, PrecomputedStore):
        return opened
    return PrecomputedStore(StorePath(opened, path), axis_order=axis_order)


open_precomputed_async = async_variant(open_precomputed)
