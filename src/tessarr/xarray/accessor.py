"""The accessor ``.tessarr`` of datasets, data arrays and trees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import xarray

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from tessarr.stores.url import StoreLike
    from tessarr.xarray.data_store import ByName
    from tessarr.xarray.write import Mode, Region


class _Accessor:
    """What datasets, data arrays and trees have in common."""

    def __init__(self, obj: xarray.Dataset | xarray.DataArray | xarray.DataTree) -> None:
        self._obj = obj

    def accelerate(self) -> object:
        """Call `tessarr.xarray.accelerate` for the object."""
        from tessarr.xarray.accelerate import accelerate

        return accelerate(self._obj)

    def explain(self) -> dict[str, str]:
        """Call `tessarr.xarray.accelerate.explain` for the object."""
        from tessarr.xarray.accelerate import accelerate

        return accelerate.explain(self._obj)


class TessarrAccessor(_Accessor):
    """Offer tessarr's functions on a dataset or a data array, as ``ds.tessarr`` after ``import tessarr.xarray``."""

    def to_zarr(
        self, store: StoreLike = None, mode: Mode | None = None, group: str | None = None, encoding: ByName | None = None,
        *, compute: bool = True, consolidated: bool | None = None, append_dim: Hashable | None = None,
        region: Region | None = None, safe_chunks: bool | Literal["refuse"] = True, align_chunks: bool = False,
        storage_options: Mapping[str, object] | None = None, zarr_format: Literal[2, 3] | None = None,
        write_empty_chunks: bool | None = None, chunkmanager_store_kwargs: dict[str, object] | None = None,
        executor: object = None,
    ) -> object:  # fmt: skip
        """Write the object. The arguments are those of xarray's method; see `tessarr.xarray.to_zarr` for `safe_chunks`,
        `executor`, the result and the errors.

        >>> import tempfile, xarray as xr, tessarr.xarray
        >>> _ = xr.Dataset({"a": ("x", [1, 2])}).tessarr.to_zarr(tempfile.mkdtemp() + "/a.zarr", "w")
        """
        from tessarr.xarray.write import to_zarr

        return to_zarr(
            self._obj, store, mode, group, encoding,
            compute=compute, consolidated=consolidated, append_dim=append_dim, region=region, safe_chunks=safe_chunks,
            align_chunks=align_chunks, storage_options=storage_options, zarr_format=zarr_format,
            write_empty_chunks=write_empty_chunks, chunkmanager_store_kwargs=chunkmanager_store_kwargs, executor=executor,
        )  # fmt: skip


class TreeAccessor(_Accessor):
    """Offer tessarr's functions on a tree, as ``tree.tessarr`` after ``import tessarr.xarray``."""

    def to_zarr(
        self, store: StoreLike = None, mode: Mode = "w-", encoding: ByName | None = None, consolidated: bool | None = None,
        group: str | None = None, write_inherited_coords: bool = False, compute: bool = True, *,
        safe_chunks: bool | Literal["refuse"] = True, align_chunks: bool = False,
        storage_options: Mapping[str, object] | None = None, zarr_format: Literal[2, 3] | None = None,
        write_empty_chunks: bool | None = None, chunkmanager_store_kwargs: dict[str, object] | None = None,
        executor: object = None,
    ) -> object:  # fmt: skip
        """Write the tree. The arguments are those of xarray's method for trees, which has another order than for datasets.

        `encoding` has the encoding of variables by the path of their group. See `tessarr.xarray.to_zarr` for `safe_chunks`,
        `executor`, the result and the errors.

        >>> import tempfile, xarray as xr, tessarr.xarray
        >>> tree = xr.DataTree.from_dict({"/b": xr.Dataset({"a": ("x", [1, 2])})})
        >>> _ = tree.tessarr.to_zarr(tempfile.mkdtemp() + "/a.zarr", "w", {"/b": {"a": {"chunks": (1,)}}})
        """
        from tessarr.xarray.write import to_zarr

        return to_zarr(
            self._obj, store, mode, group, encoding,
            compute=compute, consolidated=consolidated, safe_chunks=safe_chunks, align_chunks=align_chunks,
            storage_options=storage_options, zarr_format=zarr_format, write_empty_chunks=write_empty_chunks,
            write_inherited_coords=write_inherited_coords, chunkmanager_store_kwargs=chunkmanager_store_kwargs,
            executor=executor,
        )  # fmt: skip


# xarray warns of a name that is registered twice, as on reloading this module.
if not hasattr(xarray.Dataset, "tessarr"):
    xarray.register_dataset_accessor("tessarr")(TessarrAccessor)
if not hasattr(xarray.DataArray, "tessarr"):
    xarray.register_dataarray_accessor("tessarr")(TessarrAccessor)
if not hasattr(xarray.DataTree, "tessarr"):
    xarray.register_datatree_accessor("tessarr")(TreeAccessor)
