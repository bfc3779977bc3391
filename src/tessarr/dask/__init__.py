"""tessarr for dask: dask arrays over stored arrays, and writes by tasks aligned to stored chunks.

>>> import numpy as np, tessarr, tessarr.dask
>>> z = tessarr.create_array({}, data=np.arange(24).reshape(4, 6), chunks=(1, 2), shards=(2, 6))
>>> x = tessarr.dask.from_array(z)
>>> x.chunks
((2, 2), (6,))
>>> out = tessarr.zeros_like(z)
>>> tessarr.dask.store(x.rechunk((1, 3)) * 2, out)
>>> out[3].tolist()
[36, 38, 40, 42, 44, 46]
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tessarr.dask.alignment import aligned as aligned
    from tessarr.dask.blocks import from_array as from_array
    from tessarr.dask.blocks import store as store

__all__ = ["aligned", "from_array", "store"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'tessarr.dask' has no attribute {name!r}")
    from tessarr.errors import MissingDependencyError

    try:
        importlib.import_module("dask.array")
    except ImportError as error:
        raise MissingDependencyError("tessarr.dask needs dask", hint="pip install 'tessarr[dask]'") from error
    return getattr(importlib.import_module("tessarr.dask.blocks"), name)


def __dir__() -> list[str]:
    return [*__all__]
