"""Find labels along a dimension: in the one-dimensional array that has its name, beside the array or in a group above.

Where the array is the root of a directory, the group beside whose members it stands is that of the directory above.

Numbers are compared as numbers, times (CF, or ``datetime64``) as times, other labels as text.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tessarr.core.array import Array
from tessarr.core.open import open_array
from tessarr.core.stored.walk import read_entries
from tessarr.errors import NodeNotFoundError
from tessarr.serve.contained import ContainedStore
from tessarr.serve.dynamic.budget import Budget
from tessarr.serve.dynamic.decoded import decoded
from tessarr.serve.dynamic.query import Label, Pick
from tessarr.serve.dynamic.reading import read_values
from tessarr.serve.dynamic.refusal import Refusal, malformed
from tessarr.stores.base import Store
from tessarr.stores.local.store import LocalStore
from tessarr.stores.path import join
from tessarr.types import AnyArray


class Coordinates:
    """The coordinates of the dimensions of one array, read when they are needed, in the groups from `root` to the array.

    Those of an array that is `root` itself are in the groups above it.
    """

    def __init__(self, root: str, array: Array, names: tuple[str | None, ...], budget: Budget) -> None:
        self._root = root
        self._array = array
        self._names = names
        self._budget = budget
        self._arrays: dict[int, Array | None] = {}

    def array(self, axis: int) -> Array | None:
        """Return the array of coordinates along an axis, which may be the array itself; ``None``: there is none."""
        if axis not in self._arrays:
            self._arrays[axis] = self._find(axis)
        return self._arrays[axis]

    def _find(self, axis: int) -> Array | None:
        name, length = self._names[axis], self._array.shape[axis]
        if not name or "/" in name or name.startswith("."):
            return None
        store, own = self._place
        group = own
        while group and (group == own or group != self._root):
            group = group.rpartition("/")[0]
            path = join(group, name)
            if path == own:
                if self._array.ndim == 1:
                    return self._array
                continue
            try:
                found = open_array(store, path=path, mode="r")
            except (NodeNotFoundError, ValueError):
                continue
            if found.shape == (length,):
                return found
        return None

    @cached_property
    def _place(self) -> tuple[Store, str]:
        """The store and path of the array, from the directory above where that is a group."""
        store, path = self._array._store, self._array.path
        if path or not isinstance(store, LocalStore):
            return store, path
        folder, name = os.path.split(store.root)
        above = ContainedStore(folder) if isinstance(store, ContainedStore) else LocalStore(folder, read_only=True)
        return (above, name) if read_entries(above, [""])[0].kind == "group" else (store, path)

    def read(self, axis: int, pick: Pick | None = None) -> AnyArray | None:
        """Read the decoded coordinates along an axis, at `pick`; ``None``: there are no coordinates."""
        array = self.array(axis)
        if array is None:
            return None
        picks = [range(array.shape[0]) if pick is None else pick]
        return decoded(array, read_values(array, picks, self._budget).data)

    def find(self, axis: int, label: Label) -> Pick:
        """Return the index of a label, or those of an interval. Raises `Refusal` when it is not there."""
        values = self.read(axis)
        name = self._names[axis] or str(axis)
        if values is None:
            raise malformed(
                f"dimension {name!r} has no coordinates, so that {label.first[:40]!r} cannot be looked up",
                "Select by indices: 3, 0:10, ::2",
            )
        if label.last is not None and values.dtype.kind not in "iufM":
            raise malformed(f"labels of {name!r} are text, of which there is no interval")
        first = _converted(label.first, values, name)
        if label.last is not None:
            return _between(values, first, _converted(label.last, values, name, is_last=True), name)
        if label.nearest:
            return _nearest(values, first, name)
        same = np.flatnonzero(values == first)
        if not len(same):
            raise Refusal(
                404, "label", f"{label.first[:40]!r} is not a label of {name!r}",
                f"Labels are {_shown(values)}; {name}=nearest::{label.first[:40]} selects the nearest",
            )  # fmt: skip
        return int(same[0])


def _between(values: AnyArray, first: object, last: object, name: str) -> Pick:
    low, high = np.minimum(first, last), np.maximum(first, last)  # type: ignore[call-overload]
    inside = np.flatnonzero((values >= low) & (values <= high))
    if not len(inside):
        raise Refusal(404, "label", f"no label of {name!r} is in that interval", f"Labels are {_shown(values)}")
    start, stop = int(inside[0]), int(inside[-1]) + 1
    if stop - start != len(inside):
        raise malformed(f"the labels of {name!r} are not sorted, so that an interval is not a slice")
    return range(start, stop)


def _nearest(values: AnyArray, label: object, name: str) -> int:
    if values.dtype.kind not in "iufM":
        raise malformed(f"labels of {name!r} are text, of which no one is nearest")
    if values.dtype.kind in "iuf":
        distance = np.abs(values.astype(np.float64) - float(label))  # type: ignore[arg-type]
        return int(np.nanargmin(distance))
    moments = values.astype("datetime64[us]").astype(np.int64).astype(np.float64)
    moments[np.isnat(values)] = np.nan
    return int(np.nanargmin(np.abs(moments - np.datetime64(str(label), "us").astype(np.int64))))


def _converted(text: str, values: AnyArray, name: str, *, is_last: bool = False) -> object:
    """Convert the text of a label to the type of `values`; the end of an interval ``2020-03`` is the end of that month."""
    conversion: Callable[[str], object]
    if values.dtype.kind == "M":
        conversion = _end_of if is_last else _moment
    elif values.dtype.kind in "iuf":
        conversion = _number
    else:
        return text
    try:
        return conversion(text.strip())
    except ValueError as error:
        raise malformed(f"{text[:40]!r} cannot be a label of {name!r}", f"Labels are {_shown(values)}") from error


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _moment(text: str) -> np.datetime64:
    moment: np.datetime64 = np.datetime64(text.removesuffix("Z"))
    if np.isnat(moment):
        raise ValueError("not a time")
    return moment


def _end_of(text: str) -> np.datetime64:
    """Return the last microsecond of a time that is given to the day, month or year.

    >>> str(_end_of("2020-02"))
    '2020-02-29T23:59:59.999999'
    """
    moment = _moment(text)
    end: np.datetime64 = (moment + 1).astype("datetime64[us]") - np.timedelta64(1, "us")
    return end


def _shown(values: npt.NDArray[np.generic]) -> str:
    if len(values) < 4:
        return ", ".join(str(value) for value in values)
    return f"{values[0]}, {values[1]}, … {values[-1]}"
