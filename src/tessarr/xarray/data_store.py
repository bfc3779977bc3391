"""Implement xarray's store of a Zarr group with tessarr.

`TessarrStore` is `xarray.backends.ZarrStore` with every use of the module ``zarr`` replaced: opening, distinguishing arrays
from groups, reading variables, creating arrays and consolidating. Decisions about encodings, regions and appending remain
in xarray's code. The class relies on private names of `xarray.backends.zarr`, as every other writer must; `tests/xarray`
runs with the oldest and the newest supported release.

Source: xarray 2025.6 to 2026.9, `xarray/backends/zarr.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar, cast

import xarray.backends.zarr as theirs
from xarray import Variable, conventions
from xarray.backends.common import _encode_variable_name
from xarray.backends.zarr import (
    DIMENSION_KEY,
    ZarrStore,
    _validate_and_transpose_existing_dims,
    _validate_datatypes_for_zarr_append,
)
from xarray.core.indexing import LazilyIndexedArray

from tessarr.common import strict_json
from tessarr.conventions.xarray import read_fill
from tessarr.core.group import Group
from tessarr.dtypes.parse import DTypeLike
from tessarr.types import ShapeLike
from tessarr.xarray.encoding import dimensions_and_attributes, encoding_of
from tessarr.xarray.lazy_array import CoordinateBatch, LazyArray
from tessarr.xarray.opening import groups_below, open_place

if TYPE_CHECKING:
    from tessarr.core.array import Array

Kind = TypeVar("Kind", bound="TessarrStore")
ByName: TypeAlias = "Mapping[Any, Any]"
"""Variables, attributes or encodings by name: xarray allows any hashable value as a name."""
_STORE_OPTIONS = (
    "consolidate_on_close", "append_dim", "write_region", "safe_chunks", "write_empty", "align_chunks",
    "cache_members", "use_zarr_fill_value_as_mask",
)  # fmt: skip

_VERSION_3 = "_zarr_v3"
"""xarray's function, before 2026.9, that says whether zarr-python is there, and is version 3."""
_writing: ContextVar[bool] = ContextVar("tessarr.xarray.writing", default=False)


def _or_writing(installed: Callable[[], bool]) -> Callable[[], bool]:
    return lambda: _writing.get() or installed()


if _VERSION_3 in vars(theirs):
    setattr(theirs, _VERSION_3, _or_writing(getattr(theirs, _VERSION_3)))


class TessarrStore(ZarrStore):
    """Read and write the variables of one Zarr group. Made by `open_group` and `open_store`."""

    __slots__ = ("_batch", "_decodes_times", "_dropped", "warns_of_shared")

    @classmethod
    def open_group(cls, store: object, mode: str = "r", group: str | None = None, **options: object) -> Self:
        """Open the group `group` of `store`, any place that tessarr accepts; options as for xarray's `ZarrStore`."""
        opened, owned = open_place(store, mode=mode, group=group, **_place_options(options))
        return cls._over(opened, mode, owned, options)

    @classmethod
    def open_store(cls, store: object, mode: str = "r", group: str | None = None, **options: object) -> dict[str, Self]:
        """Open the group and each one below with `open_group`, by path."""
        parent = group or "/"
        opened, owned = open_place(store, mode=mode, group=group, **_place_options(options))
        return {
            path: cls._over(found, mode, owned and path == parent, options)
            for path, found in groups_below(opened, parent)
        }

    @classmethod
    def _over(cls, group: Group, mode: str, owned: bool, options: Mapping[str, object]) -> Self:
        known = {name: options[name] for name in _STORE_OPTIONS if name in options}
        if known.get("use_zarr_fill_value_as_mask") is None:
            known["use_zarr_fill_value_as_mask"] = group.zarr_format != 3
        return cls(group, mode, close_store_on_close=owned, **known)

    def __init__(self, zarr_group: object, mode: str | None = None, **options: object) -> None:
        """Take `zarr_group`, a `tessarr.Group`; the options are those of xarray's `ZarrStore`."""
        self._batch: CoordinateBatch | None = None
        self._dropped: frozenset[str] = frozenset()
        self._decodes_times: object = True
        self.warns_of_shared = False
        super().__init__(zarr_group, mode, **options)  # pyright: ignore[reportArgumentType] - xarray's options

    def _fetch_members(self) -> dict[str, Array | Group]:
        return dict(self.zarr_group.members())  # xarray imports zarr here until 2025.9

    def get_child_store(self, group: str) -> Self:
        """Make a store of the group `group` below this one, which is created if it is missing."""
        return alike(self, self.zarr_group.require_group(group), type(self))

    # -- reading -------------------------------------------------------------------------------------------------------

    def expect(self, dropped: str | Iterable[str] | None, decodes_times: object) -> None:
        """Set which variables the caller drops, and whether (a mapping: of which) it decodes times when it opens them.

        What xarray then reads while it opens the dataset is read in one batch.
        """
        self._dropped = frozenset([dropped] if isinstance(dropped, str) else dropped or ())
        self._decodes_times = decodes_times

    def arrays(self) -> tuple[tuple[str, Array], ...]:
        """Return names and arrays."""
        from tessarr.core.array import Array

        return tuple((name, node) for name, node in self.members.items() if isinstance(node, Array))

    def array_keys(self) -> tuple[str, ...]:
        """Return the names of the arrays."""
        return tuple(name for name, _ in self.arrays())

    def get_variables(self) -> object:
        """Return the variables by name; those that xarray reads while it opens them share their requests."""
        wanted = {name: array for name, array in self.arrays() if name not in self._dropped}
        named = {name: array for name, array in wanted.items() if is_dimension_named(name, array)}
        self._batch = CoordinateBatch(named, times(wanted, self._decodes_times))
        try:
            return super().get_variables()
        finally:
            self._batch = None  # the variables hold the batch; the store is pickled with the dataset

    def open_store_variable(self, name: str) -> Variable:
        """Return the array `name` as a variable whose values are read on use."""
        array = cast("Array", self.members[name])
        dimensions, attributes = dimensions_and_attributes(array)
        data = LazyArray(array, name, self._batch)
        encoding = encoding_of(array, dimensions)
        if data.dtype.kind == "T":
            encoding["dtype"] = data.dtype
        if self._use_zarr_fill_value_as_mask:
            if array.fill_value is not None and not array._metadata.data_type.may_be_missing:
                attributes["_FillValue"] = array.fill_value
        else:
            if array.zarr_format == 3:
                encoding["fill_value"] = array.fill_value
            if "_FillValue" in attributes:
                attributes["_FillValue"] = read_fill(attributes["_FillValue"], array.dtype.kind, array.zarr_format)
        return Variable(dimensions, LazilyIndexedArray(data), attributes, encoding)

    def get_dimensions(self) -> dict[str, int]:
        """Return the dimensions of all arrays and their lengths. Raises `ValueError` where arrays disagree."""
        found: dict[str, int] = {}
        for name, array in self.arrays():
            for dimension, length in zip(dimensions_and_attributes(array)[0], array.shape, strict=True):
                if found.setdefault(dimension, length) != length:
                    raise ValueError(
                        f"found conflicting lengths for dimension {dimension} ({length} != {found[dimension]}, "
                        f"array {name!r})"
                    )
        return found

    # -- writing -------------------------------------------------------------------------------------------------------

    def store(
        self,
        variables: ByName,
        attributes: ByName,
        check_encoding_set: Iterable[object] = frozenset(),
        writer: object = None,
        unlimited_dims: object = None,
    ) -> None:
        """Encode `variables` and `attributes`, create what is missing, and pass the values to `writer`."""
        self.set_dimensions(variables, unlimited_dims=unlimited_dims)
        self.write(*self.encode_for_writing(variables, attributes), check_encoding_set, writer)
        if self._consolidate_on_close:
            self.consolidate()

    def write(self, encoded: ByName, attributes: ByName, checked: object, writer: object) -> None:
        """Create what is missing, and pass the values to `writer`; the arguments are those of `store`, encoded."""
        if self._mode not in ("r", "r+"):
            self.set_attributes(attributes)
        # xarray takes entries out of the encodings
        copies = {name: variable.copy(deep=False) for name, variable in encoded.items()}
        self.set_variables(copies, checked, writer)

    def set_variables(
        self, variables: ByName, check_encoding_set: object, writer: object, unlimited_dims: object = None
    ) -> None:
        """Create and resize arrays as for zarr-python 3, whatever is installed, and pass the values to `writer`."""
        before = _writing.set(True)
        try:
            super().set_variables(variables, check_encoding_set, writer, unlimited_dims)  # pyright: ignore[reportArgumentType]
        finally:
            _writing.reset(before)

    def encode_for_writing(self, variables: ByName, attributes: ByName) -> tuple[ByName, ByName]:
        """Encode the variables that the mode writes, and `attributes`: what is stored already as its stored values are.

        Raises `ValueError` for variables that do not fit those that are stored, or are not allowed.
        """
        there = self.array_keys()
        existing = set() if self._mode == "w" else {name for name in variables if _encode_variable_name(name) in there}
        self._check_allowed(variables, there)
        new = {name: value for name, value in variables.items() if name not in existing}
        encoded, attributes = self.encode(new, attributes)
        encoded.update(self._encoded_as_stored({name: variables[name] for name in variables if name in existing}))
        if self._mode == "a-" and self._append_dim is not None:
            encoded = {
                name: value for name, value in encoded.items() if name not in existing or self._append_dim in value.dims
            }
        return encoded, attributes

    def consolidate(self) -> None:
        """Consolidate the metadata of the whole store; no effect on a store that has none, such as Icechunk's."""
        from tessarr.core.creation.shorthands import consolidate_metadata

        store = self.zarr_group._store
        if store.supports_consolidated_metadata:
            consolidate_metadata(store, zarr_format=self.zarr_group.zarr_format)

    def _check_allowed(self, variables: Mapping[object, object], there: tuple[str, ...]) -> None:
        """Raise `ValueError` for variables that the mode, or `append_dim`, does not allow."""
        missing = [name for name in variables if name not in there]
        if self._mode == "r+" and missing:
            raise ValueError(
                f"dataset contains non-pre-existing variables {missing!r}, which is not allowed in "
                "``xarray.Dataset.to_zarr()`` with ``mode='r+'``. To allow writing new variables, set ``mode='a'``."
            )
        if self._append_dim is not None and self._append_dim not in there:
            known = self.get_dimensions()
            if self._append_dim not in known:
                raise ValueError(
                    f"append_dim={self._append_dim!r} does not match any existing dataset dimensions {known}"
                )

    def _encoded_as_stored(self, variables: ByName) -> dict[object, object]:
        """Encode `variables`, which are already stored, with exactly the encoding of their stored values."""
        if not variables:
            return {}
        stored = {name: self.open_store_variable(name) for name in variables}
        stored, _, _ = conventions.decode_cf_variables(stored, {})
        lengths = {name: one.sizes[self._append_dim] for name, one in stored.items() if self._append_dim in one.dims}
        if len({*lengths.values()}) > 1:
            raise ValueError(
                f"the stored variables have other lengths along append_dim={self._append_dim!r}: {lengths}. An append of "
                "another process has not ended, or failed: resize the longer ones once none is running"
            )
        alike = {}
        for name, variable in variables.items():
            _validate_datatypes_for_zarr_append(name, stored[name], variable)
            alike[name] = variable.copy(deep=False)
            alike[name].encoding = stored[name].encoding
        encoded, _ = self.encode(alike, {})
        return {
            name: _validate_and_transpose_existing_dims(
                name, variable, stored[name], self._write_region, self._append_dim
            )
            for name, variable in encoded.items()
        }

    def _open_existing_array(self, *, name: str) -> Array:
        array = self.zarr_group[name]
        return array if self._write_empty is None else array.with_config({"write_empty_chunks": self._write_empty})

    def _create_new_array(
        self,
        *,
        name: str,
        shape: ShapeLike,
        dtype: DTypeLike,
        fill_value: object,
        encoding: Mapping[str, object],
        attrs: Mapping[str, object],
    ) -> Array:
        from tessarr.xarray.encoding import creation_keywords

        keywords = creation_keywords(dtype, fill_value, encoding, self._write_empty, self.zarr_group.zarr_format)
        try:
            strict_json.dumps(attrs, allow_nan=True)  # `create_array` decides about NaN
        except TypeError as error:
            raise TypeError(f"Invalid attribute in Dataset.attrs. (variable {name!r}: {error})") from error
        return self.zarr_group.create_array(name, shape=shape, attributes=attrs, **keywords)


def alike(store: TessarrStore, group: Group, kind: type[Kind]) -> Kind:
    """Make a store of `group` with the mode and options of `store`. It closes nothing."""
    return kind(
        group,
        store._mode,
        append_dim=store._append_dim,
        write_region=store._write_region,
        safe_chunks=store._safe_chunks,
        write_empty=store._write_empty,
        align_chunks=store._align_chunks,
        use_zarr_fill_value_as_mask=store._use_zarr_fill_value_as_mask,
    )


def _place_options(options: Mapping[str, object]) -> dict[str, Any]:
    return {
        "consolidated": options.get("consolidated", False),
        "storage_options": options.get("storage_options"),
        "zarr_format": options.get("zarr_format"),
    }


def times(arrays: Mapping[str, Array], decoded: object) -> dict[str, Array]:
    """Return the arrays whose values xarray decodes as times: those with such units, and the bounds of these.

    `decoded` is the argument ``decode_times`` of xarray: a mapping has an entry for each variable that is an exception.
    """
    if not decoded:
        return {}
    kept = decoded if isinstance(decoded, Mapping) else {}
    found = {}
    for name, array in arrays.items():
        units = array.attrs.get("units")
        if isinstance(units, str) and "since" in units:
            bounds = array.attrs.get("bounds")
            found.update(
                {other: arrays[other] for other in (name, bounds) if isinstance(other, str) and other in arrays}
            )
    return {name: array for name, array in found.items() if kept.get(name, True)}


def is_dimension_named(name: str, array: Array) -> bool:
    """Return whether an array is the coordinate of the dimension after which it is named."""
    return array.ndim == 1 and dimensions_and_attributes(array)[0] == (name,)


__all__ = ["DIMENSION_KEY", "TessarrStore"]
