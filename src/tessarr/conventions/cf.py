"""CF (Climate and Forecast): the meaning of numbers. Attributes only; the names are CF's, without prefix.

    group   {"Conventions": "CF-1.11"}
    array   {"standard_name": "air_temperature", "units": "K", "scale_factor": 0.01, "add_offset": 273.15,
             "_FillValue": -32768, "grid_mapping": "crs", "coordinates": "lat lon"}

>>> import numpy as np
>>> packing = Packing.read({"scale_factor": 0.5, "add_offset": 1, "_FillValue": -1})
>>> packing.decode(np.array([-1, 4], "i2"))
array([nan,  3.])
>>> packing.encode(np.array([np.nan, 3.0]), np.dtype("i2"))
array([-1,  4], dtype=int16)

Time is in `tessarr.conventions.cftime`, coordinate reference systems in `tessarr.conventions.crs`. Reading never changes
attributes; `Packing` decodes stored numbers on request.

Source: CF 1.11, sections 2.5, 3.5, 4.4, 8.1; Appendix A. Its registration in ``zarr_conventions`` is a proposal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tessarr.conventions import cftime, framework
from tessarr.conventions.base import Attributes, Convention, Hierarchy, Node, Problem, is_number
from tessarr.conventions.xarray import find, read_coordinates, read_fill, write_fill
from tessarr.types import AnyArray, AnyDType, JSONObject

NAME = "CF"
ATTRIBUTES = frozenset({
    "Conventions", "standard_name", "units", "calendar", "axis", "bounds", "coordinates", "cell_methods",
    "cell_measures", "grid_mapping", "grid_mapping_name", "crs_wkt", "scale_factor", "add_offset", "valid_range", "valid_min",
    "valid_max", "flag_values", "flag_meanings", "flag_masks", "ancillary_variables", "formula_terms", "missing_value",
})  # fmt: skip
"""Attributes by which CF is recognised (``long_name`` and ``_FillValue`` are used without CF too)."""
_VERSION = re.compile(r"CF-(\d+\.\d+)")


def version(attributes: Attributes) -> str | None:
    """Return the version in ``Conventions`` (or ``conventions``): ``"1.11"``; ``None`` without."""
    for name in ("Conventions", "conventions"):
        found = _VERSION.search(str(attributes.get(name, "")))
        if found:
            return found[1]
    return None


def write_version(attributes: Attributes, number: str = "1.11", *, entry: bool = False) -> JSONObject:
    """Make the attributes of a root group that follows CF; with `entry` also in the ``zarr_conventions`` framework."""
    result = {**attributes, "Conventions": f"CF-{number}"}
    return framework.write(result, framework.CF) if entry else result


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """Decode stored numbers: mask, then scale, then add."""

    scale: float = 1.0
    offset: float = 0.0
    missing: tuple[Any, ...] = ()
    """Stored values for "missing": ``_FillValue`` and ``missing_value``."""
    valid_min: float | None = None
    """Stored values below this limit are missing too."""
    valid_max: float | None = None
    unsigned: bool | None = None
    """``_Unsigned``: whether stored integers are interpreted as unsigned (or signed)."""
    packed: bool = False
    """Whether the attributes request scaling at all."""

    @classmethod
    def read(
        cls, attributes: Attributes, *, kind: str = "i", zarr_format: int = 2, fill_value: object = None
    ) -> Packing:
        """Read the attributes of an array of NumPy kind `kind`.

        `fill_value` is that of the array: xarray and netCDF use it as ``_FillValue`` where v2 files state none. Without it
        (the default) only attributes count.

        Raises `ValueError` for a scale, offset or limit that is not a number: decoded values would be wrong.
        """
        missing = []
        for name in ("_FillValue", "missing_value"):
            value = attributes.get(name)
            if value is not None:
                several = isinstance(value, list | tuple) and not (kind == "c" and zarr_format == 3)
                missing += [read_fill(item, kind, zarr_format) for item in (value if several else [value])]
        if fill_value is not None and zarr_format == 2 and "_FillValue" not in attributes:
            missing.append(fill_value.item() if isinstance(fill_value, np.generic) else fill_value)
        limits = attributes.get("valid_range")
        low, high = limits if isinstance(limits, list | tuple) and len(limits) == 2 else (None, None)
        unsigned, scale = attributes.get("_Unsigned"), _number(attributes, "scale_factor")
        return cls(
            scale=1.0 if scale is None else float(scale),
            offset=float(_number(attributes, "add_offset") or 0.0),
            missing=tuple(missing),
            valid_min=_number(attributes, "valid_min", low),
            valid_max=_number(attributes, "valid_max", high),
            unsigned=None if unsigned is None else str(unsigned).lower() == "true",
            packed="scale_factor" in attributes or "add_offset" in attributes,
        )

    def write(self, attributes: Attributes | None = None, *, kind: str = "i", zarr_format: int = 2) -> JSONObject:
        """Make the attributes of an array of NumPy kind `kind`; other attributes passed stay.

        >>> Packing(scale=0.5, missing=(-1,), packed=True).write({"units": "K"})
        {'units': 'K', '_FillValue': -1, 'scale_factor': 0.5, 'add_offset': 0.0}
        """
        stated = ("_FillValue", "missing_value", "scale_factor", "add_offset", "valid_range", "valid_min", "valid_max")
        result = {name: value for name, value in (attributes or {}).items() if name not in (*stated, "_Unsigned")}
        if self.missing:
            result["_FillValue"] = write_fill(self.missing[0], kind, zarr_format)
        if len(self.missing) > 1:
            result["missing_value"] = [write_fill(item, kind, zarr_format) for item in self.missing[1:]]
        if self.packed:
            result |= {"scale_factor": self.scale, "add_offset": self.offset}
        for name, limit in (("valid_min", self.valid_min), ("valid_max", self.valid_max)):
            if limit is not None:
                result[name] = limit
        if self.unsigned is not None:
            result["_Unsigned"] = "true" if self.unsigned else "false"
        return result

    def mask(self, values: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Return where stored values are missing."""
        stored = self._signed(np.asarray(values))
        found = np.zeros(stored.shape, bool)
        for item in self.missing:
            if isinstance(item, float | complex) and item != item:
                found |= np.isnan(stored) if stored.dtype.kind in "fc" else False
            else:  # with _Unsigned, missing values may be stated in stored or decoded form
                found |= (stored == item) | (np.asarray(values) == item)
        if self.valid_min is not None:
            found |= stored < self._limit(self.valid_min, stored.dtype)
        if self.valid_max is not None:
            found |= stored > self._limit(self.valid_max, stored.dtype)
        return found

    def _limit(self, value: float, dtype: AnyDType) -> float:
        """Convert a limit; with ``_Unsigned`` a negative one is stated in stored form."""
        if self.unsigned and dtype.kind == "u" and -(1 << (8 * dtype.itemsize - 1)) <= value < 0:
            return value + (1 << (8 * dtype.itemsize))
        return value

    def decode(self, values: npt.ArrayLike) -> AnyArray:
        """Decode stored values to numbers, NaN where missing.

        Packed numbers, and integers that may be missing, become float64 for any values, so that every part of an array
        has the same dtype; others keep their dtype. Values that are not numbers (text, dates) are returned unchanged:
        `mask` says where they are missing.
        """
        stored = self._signed(np.asarray(values))
        limited = self.valid_min is not None or self.valid_max is not None
        if stored.dtype.kind not in "biufc" or not (self.packed or self.missing or limited):
            return stored
        masked = self.mask(values)
        floats = stored.astype(np.float64 if stored.dtype.kind in "iub" or self.packed else stored.dtype)
        result = floats * self.scale + self.offset if self.packed else floats
        return np.where(masked, np.nan, result)

    def encode(self, values: npt.ArrayLike, dtype: AnyDType) -> AnyArray:
        """Encode numbers as stored values: the nearest ones of `dtype`; NaN becomes the first missing value.

        Raises `ValueError` for NaN when no missing value is stated, and for a scale of 0; `OverflowError` for values out
        of the range of `dtype`.
        """
        if self.scale == 0:
            raise ValueError("scale_factor is 0: cannot divide by it")
        meant = np.asarray(values, np.float64)
        missing = np.isnan(meant)
        if missing.any() and not self.missing and dtype.kind in "iu":
            raise ValueError("there are NaNs, and no _FillValue to store for them")
        stored = (np.where(missing, self.offset, meant) - self.offset) / self.scale
        counted = self._interpreted_dtype(dtype)
        if dtype.kind in "iu":
            stored = np.rint(stored)
            limits = np.iinfo(counted)
            # For 64 bits, limits.max is not exact as a float64; the number after it always is.
            if stored.size and (stored.min() < limits.min or stored.max() >= float(limits.max) + 1):
                raise OverflowError(f"values from {stored.min()} to {stored.max()} do not fit {counted}")
        result = stored.astype(counted)
        if missing.any():
            result.view(dtype)[missing] = self._missing_as(dtype)
        return result.view(dtype)

    def _missing_as(self, dtype: AnyDType) -> object:
        """Return the first missing value in stored form; with ``_Unsigned`` it may be stated in decoded form."""
        fill = self.missing[0] if self.missing else np.nan
        counted = self._interpreted_dtype(dtype)
        if counted != dtype and not np.iinfo(dtype).min <= fill <= np.iinfo(dtype).max:
            return np.array(fill, counted).view(dtype)
        return fill

    def _interpreted_dtype(self, dtype: AnyDType) -> AnyDType:
        """Return the dtype as which stored integers are interpreted."""
        if self.unsigned is None or dtype.kind not in "iu":
            return dtype
        return np.dtype(dtype.str.replace("i", "u") if self.unsigned else dtype.str.replace("u", "i"))

    def _signed(self, stored: AnyArray) -> AnyArray:
        counted = self._interpreted_dtype(stored.dtype)
        return stored if counted == stored.dtype else stored.view(counted)


def _number(attributes: Attributes, name: str, value: Any = None) -> float | None:
    """Return a numeric attribute, or `value` without it; a list of one number (netCDF attributes are lists) counts
    too.
    """
    value = attributes.get(name, value)
    if isinstance(value, list | tuple) and len(value) == 1:
        (value,) = value
    value = value.item() if isinstance(value, np.generic) else value
    if value is None:
        return None
    if is_number(value):
        number: float = value
        return number
    raise ValueError(f"{name} must be a number, got {value!r}")


def read_flags(attributes: Attributes) -> dict[str, tuple[int | None, int | None]]:
    """Read the flags of an array: meaning → (mask, value). {} without flags, or when the attributes do not match.

    >>> read_flags({"flag_values": [0, 1], "flag_meanings": "good bad"})
    {'good': (None, 0), 'bad': (None, 1)}
    """
    meanings = attributes.get("flag_meanings")
    words = meanings.split() if isinstance(meanings, str) else []
    masks, values = attributes.get("flag_masks"), attributes.get("flag_values")
    lists = [
        item if isinstance(item, list | tuple) else [item] if item is not None else None for item in (masks, values)
    ]
    if (
        not words
        or all(item is None for item in lists)
        or any(item is not None and len(item) != len(words) for item in lists)
    ):
        return {}
    pairs = zip(*(item if item is not None else [None] * len(words) for item in lists), strict=True)
    return dict(zip(words, pairs, strict=True))


def write_flags(
    meanings: Mapping[str, tuple[int | None, int | None]], attributes: Attributes | None = None
) -> JSONObject:
    """Make the attributes of an array of flags: meaning → (mask, value), as from `read_flags`.

    >>> write_flags({"good": (None, 0), "bad": (None, 1)})
    {'flag_meanings': 'good bad', 'flag_values': [0, 1]}

    Raises `ValueError` for a meaning that is not a single word, and where only some have a mask, or a value.
    """
    if not meanings or any(meaning.split() != [meaning] for meaning in meanings):
        raise ValueError(f"meanings must be single words, at least one: {list(meanings)}")
    result: JSONObject = {**(attributes or {}), "flag_meanings": " ".join(meanings)}
    for name, which in (("flag_masks", 0), ("flag_values", 1)):
        numbers = [pair[which] for pair in meanings.values()]
        if None not in numbers:
            result[name] = list(numbers)
        elif any(number is not None for number in numbers):
            raise ValueError(f"either all flags have one of {name}, or none: {dict(meanings)}")
    if not {"flag_masks", "flag_values"} & result.keys():
        raise ValueError("flags need masks or values")
    return result


def _detect(node: Node) -> bool:
    if node.kind == "group":
        return version(node.attributes) is not None or framework.uses(node.attributes, framework.CF)
    return not ATTRIBUTES.isdisjoint(node.attributes)


def _check(node: Node, path: str, hierarchy: Hierarchy) -> Iterator[Problem]:
    attributes = node.attributes
    if node.kind == "group":
        if version(attributes) is None:
            message = f"must name the version, such as CF-1.11, got {attributes.get('Conventions')!r}"
            yield Problem(NAME, ("Conventions",), message, "CF-VERSION")
        return
    for name in ("standard_name", "long_name", "units", "calendar", "axis", "bounds", "coordinates", "cell_methods"):
        if name in attributes and not isinstance(attributes[name], str):
            yield Problem(NAME, (name,), f"must be a string, got {attributes[name]!r}", "CF-TYPE")
    yield from _check_time(attributes)
    for name in ("scale_factor", "add_offset", "valid_min", "valid_max"):
        value = attributes.get(name)
        alone = value[0] if isinstance(value, list | tuple) and len(value) == 1 else value
        if name in attributes and not is_number(alone):
            yield Problem(NAME, (name,), f"must be a number, got {attributes[name]!r}", "CF-PACKING")
    if attributes.get("axis") not in (None, "X", "Y", "Z", "T"):
        yield Problem(NAME, ("axis",), f"must be X, Y, Z or T, got {attributes['axis']!r}", "CF-AXIS")
    if "valid_range" in attributes and {"valid_min", "valid_max"} & attributes.keys():
        yield Problem(NAME, ("valid_range",), "cannot be there together with valid_min or valid_max", "CF-RANGE")
    if "flag_meanings" in attributes and not read_flags(attributes):
        yield Problem(NAME, ("flag_meanings",), "needs as many flag_values or flag_masks as meanings", "CF-FLAGS")
    if len(hierarchy) > 1:
        yield from _check_references(attributes, path, hierarchy)


def _check_time(attributes: Attributes) -> Iterator[Problem]:
    units = attributes.get("units")
    if cftime.is_time(units):
        try:
            cftime.Units.parse(str(units))
        except ValueError as error:
            yield Problem(NAME, ("units",), str(error), "CF-TIME")
    calendar = attributes.get("calendar")
    if isinstance(calendar, str) and calendar.lower() not in (*cftime.CALENDARS, "none", "utc", "tai"):
        yield Problem(NAME, ("calendar",), f"unknown calendar {calendar!r}", "CF-CALENDAR")


def _check_references(attributes: Attributes, path: str, hierarchy: Hierarchy) -> Iterator[Problem]:
    """Check that arrays named in attributes exist: beside the array, or (CF 2.7) in a group above it."""
    named = [("coordinates", name) for name in read_coordinates(attributes)]
    bounds, mapping = attributes.get("bounds"), attributes.get("grid_mapping")
    if isinstance(bounds, str) and bounds:
        named.append(("bounds", bounds))
    words = mapping.replace(":", " ").split() if isinstance(mapping, str) else []  # all names, in the extended form too
    named += [("grid_mapping", name) for name in words]
    for attribute, name in named:
        if find(name, path, hierarchy) is None:
            yield Problem(NAME, (attribute,), f"names {name!r}, which is not there", "CF-REFERENCE")


CONVENTION = Convention(NAME, _detect, _check, framework.CF, "https://cfconventions.org")
