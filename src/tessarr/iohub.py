"""tessarr as a Zarr implementation of iohub, under its entry-point group ``iohub.zarr_implementations``.

Where both are installed: ``iohub.core.registry.set_default_implementation("tessarr")``, or ``implementation="tessarr"`` where
iohub takes one. Handles are tessarr's groups and arrays.

>>> io = TessarrImplementation()
>>> group = io.open_group({}, "w", zarr_format=2)
>>> image = io.create_array_v2(group, "0", shape=(2, 4, 4), dtype="u2", chunks=(1, 4, 4))
>>> io.write(image, (slice(0, 1),), np.ones((1, 4, 4), "u2"))
>>> io.array_keys(group), io.get_chunks(image), int(io.read(image, ...).sum())
(['0'], (1, 4, 4), 16)

Source: `ZarrImplementation` of iohub 0.3, ``iohub/core/protocol.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np

from tessarr.core.array import Array
from tessarr.core.group import Group
from tessarr.core.open import open_group
from tessarr.errors import ArrayNotFoundError
from tessarr.types import JSON, AnyArray, AnyDType, SelectionLike, Shape, ZarrFormat

if TYPE_CHECKING:
    import dask.array as da

    from tessarr.stores.url import StoreLike

_Region = tuple[slice, ...]


class _ArraySpec(Protocol):
    """``iohub.core.specs.ArraySpec``: the members of a v3 document."""

    shape: Shape
    data_type: str
    chunk_grid: dict[str, dict[str, Sequence[int]]]
    chunk_key_encoding: Mapping[str, object]
    codecs: Sequence[JSON]
    fill_value: JSON
    dimension_names: Sequence[str | None] | None
    attributes: dict[str, JSON]


class _Compressor(Protocol):
    cname: str
    clevel: int
    shuffle: str


class _Config(Protocol):
    compressor: _Compressor


class TessarrImplementation:
    """Read and write for iohub. `config` is an ``iohub.core.config.ZarrConfig``, of which the compressor for v2 is used."""

    def __init__(self, config: _Config | None = None) -> None:
        self.config = config

    # -- groups ------------------------------------------------------------------------------------------------------

    def open_group(self, path: StoreLike, mode: str, zarr_format: ZarrFormat | None = None) -> Group:
        """Open or create the group at `path`."""
        return open_group(path, mode=mode, zarr_format=zarr_format)

    def group_keys(self, group: Group) -> list[str]:
        """Return the names of groups in `group`, sorted."""
        return sorted(group.group_keys())

    def array_keys(self, group: Group) -> list[str]:
        """Return the names of arrays in `group`, sorted."""
        return sorted(group.array_keys())

    def close(self, group: Group) -> None:
        """Close the store of `group`."""
        group.close()

    def get_zarr_format(self, group: Group) -> int:
        """Return the format of `group`."""
        return group.metadata.zarr_format

    # -- arrays ------------------------------------------------------------------------------------------------------

    def create_array(self, group: Group, name: str, spec: _ArraySpec, *, overwrite: bool = False) -> Array:
        """Create a v3 array from iohub's description of its document."""
        return group.create(
            name,
            shape=spec.shape,
            dtype=spec.data_type,
            chunks=tuple(spec.chunk_grid["configuration"]["chunk_shape"]),
            chunk_key_encoding=spec.chunk_key_encoding,
            codecs=spec.codecs,
            fill_value=spec.fill_value,
            dimension_names=spec.dimension_names,
            attributes=spec.attributes,
            overwrite=overwrite,
        )

    def create_array_v2(
        self,
        group: Group,
        name: str,
        *,
        shape: Shape,
        dtype: AnyDType | str,
        chunks: Shape,
        fill_value: int = 0,
        overwrite: bool = False,
    ) -> Array:
        """Create a v2 array, with ``/`` between the indices of a chunk key."""
        from tessarr.common.numcodecs import numcodecs

        blosc = numcodecs.Blosc
        settings = None if self.config is None else self.config.compressor
        shuffle = {"noshuffle": blosc.NOSHUFFLE, "shuffle": blosc.SHUFFLE}
        compressor = (
            blosc("zstd", 1, blosc.BITSHUFFLE)
            if settings is None
            else blosc(settings.cname, settings.clevel, shuffle.get(settings.shuffle, blosc.BITSHUFFLE))
        )
        return group.create_array(
            name,
            shape=shape,
            dtype=dtype,
            chunks=chunks,
            fill_value=fill_value,
            chunk_key_encoding={"name": "v2", "separator": "/"},
            compressors=compressor,
            overwrite=overwrite,
        )

    def open_array(self, group: Group, name: str) -> Array:
        """Open the array `name`. Raises `ArrayNotFoundError` for a group."""
        found = group[name]
        if not isinstance(found, Array):
            raise ArrayNotFoundError(f"{name!r} is a group", path=found.path, expected="an array")
        return found

    def read(self, handle: Array, selection: SelectionLike) -> AnyArray:
        """Read a basic selection."""
        return np.asarray(handle[selection])

    def write(self, handle: Array, selection: SelectionLike, data: AnyArray) -> None:
        """Write a basic selection."""
        handle[selection] = data

    def read_oindex(self, handle: Array, selection: SelectionLike) -> AnyArray:
        """Read an orthogonal selection."""
        return np.asarray(handle.oindex[selection])

    def write_oindex(self, handle: Array, selection: SelectionLike, data: AnyArray) -> None:
        """Write an orthogonal selection."""
        handle.oindex[selection] = data

    def resize(self, handle: Array, new_shape: Shape) -> None:
        """Change the shape."""
        handle.resize(new_shape)

    def get_shape(self, handle: Array) -> Shape:
        """Return the shape."""
        return handle.shape

    def get_dtype(self, handle: Array) -> AnyDType:
        """Return the NumPy dtype."""
        return handle.dtype

    def get_chunks(self, handle: Array) -> Shape:
        """Return the shape of chunks; of inner chunks where the array has shards."""
        return handle.chunks

    def get_shards(self, handle: Array) -> Shape | None:
        """Return the shape of shards, if there are any."""
        return handle.shards

    # -- dask --------------------------------------------------------------------------------------------------------

    def to_dask(self, handle: Array) -> da.Array:
        """Return a dask array with one block per chunk."""
        import tessarr.dask

        return tessarr.dask.from_array(handle)

    def write_from_dask(self, handle: Array, dask_array: da.Array) -> None:
        """Write `dask_array` by tasks that share no stored chunk."""
        import tessarr.dask

        tessarr.dask.store(dask_array, handle)

    # -- pyramids: iohub's own arithmetic, so that levels are those of its other implementations ---------------------------

    def downsample(self, source: Array, target: Array, factors: list[int], method: str = "mean") -> None:
        """Write `source`, reduced by `factors`, into `target`, one region after the other."""
        for region in self.iter_work_regions(target):
            self.downsample_region(source, target, region, factors, method)

    def downsample_region(
        self, source: Array, target: Array, target_region: _Region, factors: list[int], method: str = "mean"
    ) -> None:
        """Write one region of `target`."""
        from iohub.core.downsample import (  # pyright: ignore[reportMissingImports] - of `make test-apps`
            downsample_block,
            target_region_to_source,
        )

        block = self.read(source, target_region_to_source(target_region, factors, source.shape))
        target[target_region] = downsample_block(block, factors, method)

    def iter_work_regions(self, target: Array) -> list[_Region]:
        """Return regions of `target` that share no stored value: shards, or chunks."""
        from iohub.core.downsample import iter_work_regions  # pyright: ignore[reportMissingImports]

        return cast("list[_Region]", iter_work_regions(target.shape, target.shards or target.chunks))
