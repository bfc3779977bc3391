"""Read HDF5 with h5py: groups, datasets, attributes, dimension scales.

Text of variable length becomes strings, compounds become structs, enumerations their integers (with CF's ``flag_values``
and ``flag_meanings``), booleans booleans. A compound with fields of variable length cannot be a Zarr array; it becomes a
group with one array per field. A dataset that several links lead to is converted at each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from tessarr.dtypes.base import DataType
from tessarr.tools.sources.attributes import collect, packing_of
from tessarr.tools.sources.base import UNSET, Box, SourceArray, SourceGroup, missing, ragged, rows
from tessarr.tools.sources.hdf5_chunks import stored_chunks
from tessarr.tools.sources.remote_file import RemoteFile
from tessarr.types import JSON, AnyArray, AnyDType

if TYPE_CHECKING:
    import h5py

# Internal attributes of HDF5's dimension scales and of netCDF-4; in Zarr the dimension names replace them.
_INTERNAL = frozenset(
    {"CLASS", "NAME", "REFERENCE_LIST", "DIMENSION_LIST", "DIMENSION_LABELS"}
    | {"_Netcdf4Dimid", "_Netcdf4Coordinates", "_nc3_strict", "_NCProperties"}
)
_NO_VARIABLE = b"This is a netCDF dimension but not a netCDF variable"
_NO_COORDINATE = "_nc4_non_coord_"
"""The prefix of a NetCDF variable with the name of a dimension that it does not describe."""


class HDF5Source:
    """Read an opened HDF5 file."""

    parallel = False  # h5py holds a global lock

    def __init__(self, place: str | RemoteFile, *, kind: str = "hdf5") -> None:
        """Open a file. `kind`: "netcdf" reads a NetCDF-4 file as the netCDF4 package does, which needs a path."""
        try:
            import h5py
        except ImportError as error:
            raise missing("h5py", "HDF5") from error
        self.kind = kind
        self._h5py = h5py
        self._file = h5py.File(place, "r")
        self.notices: list[str] = []
        self.unsupported: list[tuple[str, str]] = []
        self.nodes: list[SourceArray | SourceGroup] = []
        self._group(self._file, "", ())

    def _group(self, group: h5py.Group, path: str, above: tuple[object, ...]) -> None:
        identity = self._h5py.h5o.get_info(group.id).addr  # pyright: ignore[reportAttributeAccessIssue] - compiled
        if identity in above:
            self.notices.append(f"/{path}: a link to a group above it; left out")
            return
        self.nodes.append(SourceGroup(path=path, attributes=self._attributes(group, path)))
        for name in group:
            plain = str(name).removeprefix(_NO_COORDINATE) if self.kind == "netcdf" else name
            below = f"{path}/{plain}".lstrip("/")
            try:
                member = group[name]
            except (KeyError, OSError) as error:
                self.notices.append(f"/{below}: a broken link; left out ({error})")
                continue
            if isinstance(member, self._h5py.Group):
                self._group(member, below, (*above, identity))
            elif isinstance(member, self._h5py.Dataset):
                self._dataset(member, below)
            elif self.kind == "hdf5":
                self.notices.append(f"/{below}: a named data type; left out")

    def _attributes(self, node: h5py.Group | h5py.Dataset, path: str) -> dict[str, JSON]:
        values = []
        for name in node.attrs:
            if name in _INTERNAL or name == "_FillValue":
                continue
            try:
                values.append((name, node.attrs[name]))
            except (OSError, TypeError) as error:
                self.notices.append(f"/{path}: attribute {name!r} cannot be read; left out ({error})")
        plain = [(name, None if isinstance(value, self._h5py.Empty) else value) for name, value in values]
        if self.kind == "netcdf":
            plain = [(name, _as_netcdf(value)) for name, value in plain]
        return collect(plain, f"/{path}", self.notices)

    def _dataset(self, dataset: h5py.Dataset, path: str) -> None:
        if dataset.shape is None:
            self.unsupported.append((path, "it is an empty dataset without a shape"))
            return
        if bytes(np.asarray(dataset.attrs.get("NAME", b"")).tobytes()).startswith(_NO_VARIABLE):
            return  # netCDF-4's form of a dimension without a variable
        text = self._h5py.check_string_dtype(dataset.dtype)
        names = self._h5py.check_enum_dtype(dataset.dtype)
        attributes = self._attributes(dataset, path)
        if names is not None and dataset.dtype != np.bool_:
            ordered = sorted(names, key=names.__getitem__)
            flags: dict[str, JSON] = {
                "flag_values": [int(names[name]) for name in ordered],
                "flag_meanings": " ".join(ordered),
            }
            attributes = {**flags, **attributes}
        dtype = dataset.dtype
        if text is not None and text.length is None:
            self._add(dataset, path, str, _text_reader(dataset), attributes)
        elif dtype.names and dtype.hasobject:
            self._columns(dataset, path, attributes)
        elif (row := self._h5py.check_vlen_dtype(dtype)) is not None and (kind := ragged(row)) is not None:
            if np.dtype(row).isnative:
                self._add(dataset, path, kind, lambda box: rows(np.asarray(dataset[box], object), row), attributes)
            else:
                self.unsupported.append((path, "it holds rows in foreign byte order, which h5py does not convert"))
        elif dtype.hasobject:
            what = "references" if self._h5py.check_ref_dtype(dtype) else "sequences of varying length"
            self.unsupported.append((path, f"it holds {what}"))
        elif (dtype.kind == "f" and dtype.itemsize > 8) or (dtype.kind == "c" and dtype.itemsize > 16):
            self.unsupported.append((path, f"Zarr has no data type for {dtype}"))
        else:
            plain = np.dtype(dtype.newbyteorder("="))
            self._add(dataset, path, plain, _reader(dataset, plain), attributes)

    def _columns(self, dataset: h5py.Dataset, path: str, attributes: dict[str, JSON]) -> None:
        """Convert a table with text in it, field by field."""
        self.notices.append(f"/{path}: a table with fields of varying length becomes a group with one array per field")
        self.nodes.append(SourceGroup(path=path, attributes=attributes))
        for field in dataset.dtype.names:
            dtype = dataset.dtype[field]
            text = self._h5py.check_string_dtype(dtype)
            if text is not None and text.length is None:
                self._add(dataset, f"{path}/{field}", str, _field_reader(dataset, field, True), {}, field=field)
            elif dtype.hasobject or dtype.subdtype:
                self.unsupported.append((f"{path}/{field}", f"it is a field of {dtype}"))
            else:
                plain = np.dtype(dtype.newbyteorder("="))
                self._add(dataset, f"{path}/{field}", plain, _field_reader(dataset, field, False), {}, field=field)

    def _add(
        self,
        dataset: h5py.Dataset,
        path: str,
        dtype: AnyDType | type[str] | DataType,
        read: Callable[[Box], AnyArray],
        attributes: Mapping[str, object],
        *,
        field: str = "",
    ) -> None:
        fill: object = UNSET
        cf_fill = dataset.attrs.get("_FillValue") if not field else None
        if cf_fill is not None:
            cf_fill = np.asarray(cf_fill).reshape(-1)[0]
            fill = cf_fill
        elif (
            self.kind == "hdf5"
            and not field
            and isinstance(dtype, np.dtype)
            and dataset.id.get_create_plist().fill_value_defined() == 2
        ):
            fill = dataset.fillvalue  # 2: set by a user; HDF5's default is meaningless
        self.nodes.append(
            SourceArray(
                path=path,
                shape=tuple(int(n) for n in dataset.shape),
                dtype=dtype,
                read=read,
                chunks=dataset.chunks,
                fill_value=fill,
                attributes=attributes,
                dimension_names=self._dimensions(dataset),
                cf_fill=cf_fill,
                packing=packing_of(dataset.attrs),
                stored=(lambda: "it is a field of a table") if field else partial(stored_chunks, dataset),
            )
        )

    def _dimensions(self, dataset: h5py.Dataset) -> tuple[str | None, ...] | None:
        """Return the names of the axes: that of the dimension scale attached to each, or its label."""
        names: list[str | None] = []
        for axis, dimension in enumerate(dataset.dims):
            scales = [scale for scale in dimension.values() if scale]
            name = scales[0].name if scales else None
            if name is None and dataset.is_scale and axis == 0:
                name = dataset.name
            names.append(dimension.label or (name.rpartition("/")[2] if name else None))
        numbers = np.asarray(dataset.attrs.get("_Netcdf4Coordinates", []))
        if None in names and numbers.size == len(names):
            names = [self._numbered.get(int(number)) for number in numbers.flat]
        return tuple(names) if any(names) else None

    @cached_property
    def _numbered(self) -> dict[int, str]:
        """The dimensions of a NetCDF-4 file by the numbers that name them where no scale can be attached."""
        found: dict[int, str] = {}

        def add(name: str, node: h5py.Group | h5py.Dataset) -> None:
            if "_Netcdf4Dimid" in node.attrs:
                found[int(np.asarray(node.attrs["_Netcdf4Dimid"]).flat[0])] = name.rpartition("/")[2]

        self._file.visititems(add)
        return found

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _as_netcdf(value: object) -> object:
    """Return an attribute as NetCDF has it, whose lists of one are the value itself, and whose empty values are texts."""
    if value is None:
        return ""
    return value.reshape(-1)[0] if isinstance(value, np.ndarray) and value.size == 1 else value


def _reader(dataset: h5py.Dataset, dtype: AnyDType) -> Callable[[Box], AnyArray]:
    return lambda box: np.asarray(dataset[box]).astype(dtype, copy=False)


def _text_reader(dataset: h5py.Dataset) -> Callable[[Box], AnyArray]:
    return lambda box: np.asarray(dataset.asstr()[box], dtype=np.dtypes.StringDType())


def _field_reader(dataset: h5py.Dataset, field: str, text: bool) -> Callable[[Box], AnyArray]:
    def read(box: Box) -> AnyArray:
        values = dataset[box][field]
        if not text:
            return np.asarray(values)
        decoded = [item.decode() if isinstance(item, bytes) else item for item in values.reshape(-1)]
        return np.array(decoded, dtype=np.dtypes.StringDType()).reshape(values.shape)

    return read


def open_source(place: str | RemoteFile) -> HDF5Source:
    """Open an HDF5 file."""
    return HDF5Source(place)
