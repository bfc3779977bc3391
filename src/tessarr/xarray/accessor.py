"""The accessor ``.tessarr`` of datasets, data arrays and trees."""

from __future__ import annotations

from typing import Any

import xarray


class TessarrAccessor:
    """Offer tessarr's functions on an object of xarray, as ``ds.tessarr`` after ``import tessarr.xarray``."""

    def __init__(self, obj: xarray.Dataset | xarray.DataArray | xarray.DataTree) -> None:
        self._obj = obj

    def to_zarr(self, *args: Any, **kwargs: Any) -> Any:
        """Write the object with `tessarr.xarray.to_zarr`, whose other arguments this method takes."""
        from tessarr.xarray.write import to_zarr

        return to_zarr(self._obj, *args, **kwargs)

    def accelerate(self) -> object:
        """Call `tessarr.xarray.accelerate` for the object."""
        from tessarr.xarray.accelerate import accelerate

        return accelerate(self._obj)

    def explain(self) -> dict[str, str]:
        """Call `tessarr.xarray.accelerate.explain` for the object."""
        from tessarr.xarray.accelerate import accelerate

        return accelerate.explain(self._obj)


# xarray warns of a name that is registered twice, as on reloading this module.
for _kind, _register in (
    (xarray.Dataset, xarray.register_dataset_accessor),
    (xarray.DataArray, xarray.register_dataarray_accessor),
    (xarray.DataTree, xarray.register_datatree_accessor),
):
    if not hasattr(_kind, "tessarr"):
        _register("tessarr")(TessarrAccessor)
