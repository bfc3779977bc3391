"""tessarr's store contract, and zarr-python's names for byte ranges and for the abilities of its stores.

A user-defined store inherits `Store` and implements the synchronous ``get``, ``set``, ``delete`` and ``list``
(`tessarr.stores.base`). Or it implements zarr-python's contract: the coroutines ``get(key, prototype, byte_range)``, ``set``,
``delete`` and ``exists``, and the asynchronous generators ``list``, ``list_prefix`` and ``list_dir``.
"""

from tessarr.facade.zarr3.abc import _values
from tessarr.facade.zarr3.abc._values import *  # noqa: F403
from tessarr.stores.base import Store

__all__ = ["Store"]
__all__ += _values.__all__
