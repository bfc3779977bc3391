"""The table of scanned files: what reads of their arrays need, in columns, compactly; saved once, and read where it is needed.

A saved table is a group of Zarr: ``place``, ``size`` and ``version`` of each file; ``length``, ``layout`` and ``start`` of each
array in each file; ``chunk``, the offset and length of every chunk; and the values of coordinates, joined, below ``values``.
Its attributes have the rest, which does not grow with the files: what the arrays are, and each *layout* that one has in files.
A column is an array of NumPy, or a stored one, of which blocks are read and the last ones kept.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from threading import Lock
from typing import cast

import numpy as np
import numpy.typing as npt

from tessarr.common import strict_json
from tessarr.core.array import Array
from tessarr.core.creation.arrays import create_array
from tessarr.core.group import Group
from tessarr.core.open import open_group
from tessarr.errors import MetadataValidationError, NodeNotFoundError
from tessarr.stores.base import Store
from tessarr.stores.path import StorePath, join
from tessarr.tools.files.agree import Along
from tessarr.tools.files.layouts import Known, Layout, layout_of
from tessarr.tools.files.scan import ScannedArray, ScannedFile
from tessarr.tools.sources.base import StoredChunks
from tessarr.tools.sources.remote_file import State
from tessarr.types import JSON, AnyArray

_BLOCK = 8192
"""Rows of a stored column that are read at once."""
_KEPT = 32
_NAME = "tessarr_files"
_VERSION = 1


class Column:
    """A column of a table: rows of an array, in memory or stored."""

    def __init__(self, rows: AnyArray | Array) -> None:
        self._rows = rows
        self._blocks: OrderedDict[int, AnyArray] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return int(self._rows.shape[0])

    def __getitem__(self, row: int) -> AnyArray:
        if isinstance(self._rows, np.ndarray):
            return cast("AnyArray", self._rows[row])
        number, at = divmod(row, _BLOCK)
        with self._lock:
            block = self._blocks.get(number)
            if block is None:
                block = self._blocks[number] = np.asarray(self._rows[number * _BLOCK : (number + 1) * _BLOCK])
                if len(self._blocks) > _KEPT:
                    self._blocks.popitem(last=False)
            self._blocks.move_to_end(number)
        return cast("AnyArray", block[at])

    def all(self) -> AnyArray:
        """Return all rows."""
        return np.asarray(self._rows[...])


@dataclass(slots=True, kw_only=True)
class TableArray:
    """One array of files: joined along an axis, or that of the first file."""

    path: str
    axis: int | None
    """The axis along which it is joined; ``None``: it is that of the first file."""
    layouts: list[Layout]
    lengths: npt.NDArray[np.int64]
    """The length along the axis in each file; 1 for a new axis, and where there is none."""
    layout: Column
    """The number of the layout in each file."""
    start: Column
    """The first row of the chunks of each file."""
    values: AnyArray | Array | None
    """All values, of a coordinate."""
    edges: list[int] = field(init=False)
    """Where the files begin along the axis, and where the last one ends."""

    def __post_init__(self) -> None:
        self.edges = [0, *accumulate(self.lengths.tolist())]

    def of_file(self, number: int) -> Layout:
        """Return the layout in a file."""
        return self.layouts[int(self.layout[number])]


@dataclass(slots=True, kw_only=True)
class FileTable:
    """See the head of this module."""

    kind: str
    along: Along | None
    place: Column
    size: Column
    version: Column
    chunk: Column
    arrays: dict[str, TableArray]
    stated: str = ""
    """The `identity` that was saved with it."""

    def __len__(self) -> int:
        return len(self.place)

    def state(self, number: int) -> State:
        """Return the state of a file when it was scanned."""
        return int(self.size[number]), str(self.version[number])

    @property
    def identity(self) -> str:
        """A digest of the places and states of all files."""
        if self.stated:
            return self.stated
        found = hashlib.sha256()
        for place, size, version in zip(self.place.all(), self.size.all(), self.version.all(), strict=True):
            found.update(strict_json.dumps([str(place), int(size), str(version)]))
        return found.hexdigest()


def axis_of(array: ScannedArray, along: Along | None) -> int | None:
    """Return the axis along which an array of files is joined; ``None``: it is that of the first file."""
    if along is None:
        return None
    if along.new:
        return None if array.digest is not None else 0
    names = array.node.dimension_names or ()
    return names.index(along.name) if along.name in names else None


def table_of(files: Sequence[ScannedFile], along: Along | None) -> FileTable:
    """Make the table of files that agree, in order. The places of their chunks are moved to it."""
    chunk = np.empty((sum(_rows(array) for file in files for array in file.arrays.values()), 2), np.int64)
    named = [file.arrays for file in files]
    arrays: dict[str, TableArray] = {}
    row = 0
    for path, array in files[0].arrays.items():
        axis = axis_of(array, along) if len(files) > 1 else None
        parts = [one[path] for one in named] if axis is not None else [array]
        known: dict[Layout, int] = {}
        made: Known = {}
        layout, start = np.zeros(len(parts), np.int32), np.zeros(len(parts), np.int64)
        is_new = along is not None and along.new
        lengths = [1 if axis is None or is_new else part.node.shape[axis] for part in parts]
        for number, part in enumerate(parts):
            layout[number] = known.setdefault(layout_of(part, None if is_new else axis, made), len(known))
            start[number] = row
            if isinstance(part.stored, StoredChunks):
                count = part.stored.offsets.size
                chunk[row : row + count, 0], chunk[row : row + count, 1] = (
                    part.stored.offsets.flat,
                    part.stored.nbytes.flat,
                )
                row += count
        arrays[path] = TableArray(
            path=path, axis=axis, layouts=[*known], lengths=np.array(lengths, np.int64), layout=Column(layout),
            start=Column(start), values=_values(parts, axis, new=is_new),
        )  # fmt: skip
    return FileTable(
        kind=files[0].kind, along=along if len(files) > 1 else None, arrays=arrays, chunk=Column(chunk[:row]),
        place=Column(np.array([file.place for file in files], np.dtypes.StringDType())),
        size=Column(np.array([file.state[0] for file in files], np.int64)),
        version=Column(np.array([file.state[1] for file in files], np.dtypes.StringDType())),
    )  # fmt: skip


def _rows(array: ScannedArray) -> int:
    return array.stored.offsets.size if isinstance(array.stored, StoredChunks) else 0


def _values(parts: Sequence[ScannedArray], axis: int | None, *, new: bool) -> AnyArray | None:
    values = [part.values for part in parts if part.values is not None]
    if len(values) < len(parts):
        return None
    if axis is None:
        return values[0]
    return np.stack(values, axis=axis) if new else np.concatenate(values, axis=axis)


# -- saved ---------------------------------------------------------------------------------------------------------------


def save_table(table: FileTable, store: Store, path: str) -> None:
    """Write a table as the group at `path` of a store; what describes it is written last."""
    group = Group.from_store(StorePath(store, path), overwrite=True)
    columns: dict[str, AnyArray] = {
        "place": table.place.all(),
        "size": table.size.all(),
        "version": table.version.all(),
        "chunk": table.chunk.all(),
    }
    described: list[JSON] = []
    for number, one in enumerate(table.arrays.values()):
        columns |= {
            f"{number}/length": one.lengths,
            f"{number}/layout": one.layout.all(),
            f"{number}/start": one.start.all(),
        }
        if one.values is not None:
            columns[f"{number}/values"] = np.asarray(one.values[...])
        layouts: list[JSON] = [layout.to_json() for layout in one.layouts]
        described.append({"path": one.path, "axis": one.axis, "layouts": layouts, "is_kept": one.values is not None})
    for name, values in columns.items():
        chunks = tuple(min(max(1, n), 8 * _BLOCK) for n in values.shape)
        create_array(store, name=join(path, name), data=values, chunks=chunks)
    along: JSON = None if table.along is None else [table.along.name, table.along.new]
    said = {"kind": table.kind, "along": along, "identity": table.identity, "arrays": described}
    group.attrs.put({_NAME: _VERSION, **said})


def load_table(store: Store, path: str) -> FileTable:
    """Open a saved table. Raises `MetadataValidationError` for anything else."""
    try:
        group = open_group(store, path=path, mode="r")
        said = cast("Mapping[str, JSON]", group.attrs.asdict())
        if said.get(_NAME) != _VERSION:
            raise KeyError(_NAME)
        return _parsed(group, said)
    except (NodeNotFoundError, LookupError, TypeError, ValueError) as error:
        raise MetadataValidationError(
            "the table of the files of a plan is missing or damaged", key=path, expected=f"version {_VERSION} of it",
            got=repr(error)[:200], hint="Make the plan again",
        ) from error  # fmt: skip


def _parsed(group: Group, said: Mapping[str, JSON]) -> FileTable:
    arrays: dict[str, TableArray] = {}
    described = said["arrays"]
    assert isinstance(described, list)
    for number, one in enumerate(described):
        assert isinstance(one, Mapping)
        path, axis, layouts = one["path"], one["axis"], one["layouts"]
        if not isinstance(path, str) or not isinstance(axis, int | None) or not isinstance(layouts, list):
            raise TypeError(f"array {number} is described by {one!r}")
        arrays[path] = TableArray(
            path=path,
            axis=axis,
            layouts=[Layout.from_json(layout) for layout in layouts if isinstance(layout, Mapping)],
            lengths=np.asarray(_array(group, f"{number}/length")[...]),
            layout=Column(_array(group, f"{number}/layout")),
            start=Column(_array(group, f"{number}/start")),
            values=_array(group, f"{number}/values") if one["is_kept"] else None,
        )
    along = said["along"]
    place, size, version, chunk = (Column(_array(group, name)) for name in ("place", "size", "version", "chunk"))
    return FileTable(
        kind=str(said["kind"]), along=Along(str(along[0]), bool(along[1])) if isinstance(along, list) else None,
        place=place, size=size, version=version, chunk=chunk, arrays=arrays,
        stated=str(said["identity"]),
    )  # fmt: skip


def _array(group: Group, name: str) -> Array:
    found = group[name]
    if not isinstance(found, Array):
        raise TypeError(f"/{name} is not an array")
    return found
