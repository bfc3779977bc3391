"""Arrays made of arrays: joined along an axis, stacked along a new one, or placed at positions, without copying elements.

>>> import numpy as np, tessarr
>>> from tessarr import virtual
>>> days = [tessarr.array(np.full((2, 3), day)) for day in (1, 2)]
>>> z = virtual.concat(days)
>>> z[:, 0].tolist(), virtual.stack(days, axis=1).shape
([1, 1, 2, 2], (2, 2, 3))
>>> virtual.merge({(0, 0): days[0], (1, 2): days[1].lazy[:1, :2]}, fill_value=0)[...].tolist()
[[1, 1, 1, 0], [1, 1, 2, 2]]

The result is an `tessarr.Array`, read-only: it is indexed eagerly, and by ``.lazy`` as a view; xarray, dask and tools take it.
A read asks all arrays that it touches in one round of requests, whatever stores they are in.
"""

from tessarr.virtual.joining import concat, merge, stack
from tessarr.virtual.references import save_references

__all__ = ["concat", "merge", "save_references", "stack"]
