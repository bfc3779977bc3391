"""The engine ``"tessarr"`` of xarray, found through the entry point group ``xarray.backends``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import xarray
from xarray.backends.common import BackendEntrypoint, _normalize_path
from xarray.backends.plugins import list_engines
from xarray.backends.store import StoreBackendEntrypoint
from xarray.core.utils import close_on_error

from tessarr.stores.url import StoreLike
from tessarr.xarray.data_store import TessarrStore


class TessarrBackendEntrypoint(BackendEntrypoint):
    """Open Zarr v1, v2 and v3 with tessarr, from any place that tessarr accepts: paths, URLs, pipelines, stores."""

    description = "Open Zarr data (v1, v2 and v3) with tessarr"
    url = "https://docs.xarray.dev/en/stable/internals/how-to-add-new-backend.html"
    supports_groups = True

    def guess_can_open(self, filename_or_obj: object) -> bool:
        """Return whether the name of a place ends in ``.zarr``, or is a URL with a step for Zarr (``…|zarr3:``).

        xarray asks its engines in alphabetical order. What its engine ``zarr`` opens, where zarr-python is installed, is left
        to that engine, so that installing tessarr changes no program that names no engine.
        """
        if not isinstance(filename_or_obj, str | os.PathLike):
            return False
        theirs = list_engines().get("zarr")
        if theirs is not None and not isinstance(theirs, type(self)) and theirs.guess_can_open(filename_or_obj):
            return False
        name = os.fspath(filename_or_obj)
        steps = str(name).split("|")
        return steps[0].rstrip("/").endswith((".zarr", ".zarr.zip")) or any(
            step.partition(":")[0] in ("zarr", "zarr2", "zarr3") for step in steps[1:]
        )

    def open_dataset(
        self,
        filename_or_obj: object,
        *,
        mask_and_scale: bool = True,
        decode_times: bool = True,
        concat_characters: bool = True,
        decode_coords: bool = True,
        drop_variables: str | Iterable[str] | None = None,
        use_cftime: bool | None = None,
        decode_timedelta: bool | None = None,
        group: str | None = None,
        mode: str = "r",
        consolidated: bool | None = None,
        storage_options: Mapping[str, object] | None = None,
        zarr_format: int | None = None,
        use_zarr_fill_value_as_mask: bool | None = None,
        cache_members: bool = True,
        store: Any = None,
    ) -> xarray.Dataset:
        """Open the arrays of one group as a dataset; the arguments are those of xarray's engine ``zarr``."""
        store = store or TessarrStore.open_group(
            _normalize_path(filename_or_obj),
            group=group,
            mode=mode,
            consolidated=consolidated,
            storage_options=storage_options,
            zarr_format=zarr_format,
            use_zarr_fill_value_as_mask=use_zarr_fill_value_as_mask,
            cache_members=cache_members,
        )
        store.expect(drop_variables, decode_times)
        with close_on_error(store):
            return StoreBackendEntrypoint().open_dataset(
                store,
                concat_characters=concat_characters,
                drop_variables=drop_variables,
                use_cftime=use_cftime,
                decode_timedelta=decode_timedelta,
                mask_and_scale=mask_and_scale,
                decode_times=decode_times,
                decode_coords=decode_coords,
            )

    def open_groups_as_dict(
        self,
        filename_or_obj: object,
        *,
        mask_and_scale: bool = True,
        decode_times: bool = True,
        concat_characters: bool = True,
        decode_coords: bool = True,
        drop_variables: str | Iterable[str] | None = None,
        use_cftime: bool | None = None,
        decode_timedelta: bool | None = None,
        group: str | None = None,
        mode: str = "r",
        consolidated: bool | None = None,
        storage_options: Mapping[str, object] | None = None,
        zarr_format: int | None = None,
    ) -> dict[str, xarray.Dataset]:
        """Open a group and all below as datasets, by path from that group."""
        parent = "/" + (group or "").strip("/")
        stores = TessarrStore.open_store(
            _normalize_path(filename_or_obj),
            group=parent,
            mode=mode,
            consolidated=consolidated,
            storage_options=storage_options,
            zarr_format=zarr_format,
        )
        found = {}
        for path, store in stores.items():
            name = path if parent == "/" else path.removeprefix(parent).lstrip("/") or "."
            found[name] = self.open_dataset(
                None,
                store=store,
                concat_characters=concat_characters,
                drop_variables=drop_variables,
                use_cftime=use_cftime,
                decode_timedelta=decode_timedelta,
                mask_and_scale=mask_and_scale,
                decode_times=decode_times,
                decode_coords=decode_coords,
            )
        return found

    def open_datatree(
        self,
        filename_or_obj: object,
        *,
        mask_and_scale: bool = True,
        decode_times: bool = True,
        concat_characters: bool = True,
        decode_coords: bool = True,
        drop_variables: str | Iterable[str] | None = None,
        use_cftime: bool | None = None,
        decode_timedelta: bool | None = None,
        group: str | None = None,
        mode: str = "r",
        consolidated: bool | None = None,
        storage_options: Mapping[str, object] | None = None,
        zarr_format: int | None = None,
    ) -> xarray.DataTree:
        """Open a group and all below as a tree."""
        from xarray.backends.common import datatree_from_dict_with_io_cleanup

        groups = self.open_groups_as_dict(
            filename_or_obj,
            mask_and_scale=mask_and_scale,
            decode_times=decode_times,
            concat_characters=concat_characters,
            decode_coords=decode_coords,
            drop_variables=drop_variables,
            use_cftime=use_cftime,
            decode_timedelta=decode_timedelta,
            group=group,
            mode=mode,
            consolidated=consolidated,
            storage_options=storage_options,
            zarr_format=zarr_format,
        )
        return datatree_from_dict_with_io_cleanup(groups)


def open_dataset(place: object, **options: object) -> xarray.Dataset:
    """Open the dataset at `place`: `xarray.open_dataset` with the engine ``tessarr`` and its options."""
    return xarray.open_dataset(place, engine=TessarrBackendEntrypoint, **options)  # pyright: ignore[reportArgumentType] - xarray's


def open_datatree(place: StoreLike, **options: object) -> xarray.DataTree:
    """Open the tree of datasets at `place`: `xarray.open_datatree` with the engine ``tessarr`` and its options."""
    return xarray.open_datatree(place, engine=TessarrBackendEntrypoint, **options)  # pyright: ignore[reportArgumentType] - xarray's
