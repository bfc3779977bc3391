"""Order files along a dimension, and find everything in which they disagree. No file is opened."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tessarr.dtypes.base import DataType
from tessarr.errors import BaseZarrError
from tessarr.tools.files.scan import ScannedArray, ScannedFile
from tessarr.types import AnyArray, AnyDType

_MEANING = ("units", "calendar", "flag_values", "flag_meanings", "_Unsigned")
PACKING = ("scale_factor", "add_offset")
_MOST_SHOWN = 10


class Along(NamedTuple):
    """Say along which dimension files are joined."""

    name: str
    new: bool
    """Whether no file has it: each file is one index of it."""


def dimension_between(one: ScannedFile, other: ScannedFile) -> str:
    """Return the dimension along which two files differ.

    Raises `BaseZarrError` where there is none, or more than one.
    """
    lengths = [_lengths(file) for file in (one, other)]
    differing = {name for name, length in lengths[0].items() if lengths[1].get(name, length) != length}
    theirs = other.arrays
    for path, array in one.arrays.items():
        match = theirs.get(path)
        name = path.rpartition("/")[2]
        if array.node.dimension_names == (name,) and array.values is not None and match and match.values is not None:
            same = (
                array.values.shape == match.values.shape
                and np.array_equal(array.values, match.values)
                and not any(_unlike(array, match, what) for what in _MEANING)
            )
            differing |= set() if same else {name}
    if len(differing) != 1:
        raise BaseZarrError(
            "the dimension along which the files are joined is not clear", got=", ".join(sorted(differing)) or "none differs",
            expected="one dimension whose length or coordinates differ", hint="Name it with along (--along)",
        )  # fmt: skip
    return differing.pop()


def _unlike(one: ScannedArray, other: ScannedArray, attribute: str) -> bool:
    return one.node.attributes.get(attribute) != other.node.attributes.get(attribute)


def _lengths(file: ScannedFile) -> dict[str, int]:
    return {
        name: length
        for array in file.arrays.values()
        for name, length in zip(array.node.dimension_names or (), array.node.shape, strict=False)
        if name
    }


def join_scalars(files: Sequence[ScannedFile]) -> None:
    """Let scalars that differ between files be values along the new dimension, as the time of files of one time each."""
    named = [file.arrays for file in files]
    for path, array in named[0].items():
        found = [arrays[path] for arrays in named if path in arrays]
        if array.node.shape or len(found) < len(files) or any(one.node.shape for one in found):
            continue
        if len({one.digest for one in found}) > 1:
            for one in found:
                one.digest = None


def ordered(files: Sequence[ScannedFile], along: str) -> list[ScannedFile]:
    """Return the files by the first value of the dimension's coordinate; as given where a file has none."""
    found = [_coordinate(file, along) for file in files]
    parts = [part for part in found if part is not None]
    if len(parts) < len(files):
        return list(files)
    firsts = np.array([part[0] for part in parts])
    return [files[index] for index in np.argsort(-firsts if _falls(parts) else firsts, kind="stable")]


def _falls(parts: Sequence[AnyArray]) -> bool:
    return all(part[0] > part[-1] for part in parts if part.size > 1) and any(part.size > 1 for part in parts)


def _coordinate(file: ScannedFile, along: str) -> AnyArray | None:
    found = [
        array.values
        for path, array in file.arrays.items()
        if path.rpartition("/")[2] == along
        and (array.node.dimension_names == (along,) or (array.node.dimension_names == () and array.digest is None))
    ]
    if len(found) != 1 or found[0] is None or not found[0].size or found[0].dtype.kind not in "iuf":
        return None
    return found[0].reshape(-1).astype(np.int64 if found[0].dtype.kind == "i" else np.float64)


def check_agreement(files: Sequence[ScannedFile], along: Along, *, packing: bool, gaps: bool) -> None:
    """Raise `BaseZarrError` that names the files which cannot be joined to the others, and why.

    `packing`: whether ``scale_factor`` and ``add_offset`` must agree; `gaps`: whether steps may be missing between files.
    """
    names = _names(files)
    problems = _unlike_files(files[0], files, along, packing, names)
    if 2 * len(problems) > len(files):  # the first one may be what is unlike the others
        other = next(file for file in files if file.place in problems)
        problems = min(problems, _unlike_files(other, files, along, packing, names), key=len)
    reasons = [f"{names[place]}: {what}" for place, found in problems.items() for what in found]
    if not reasons:
        reasons = list(_steps(files, along.name, gaps, names))
    if reasons:
        more = f"\n  - and {len(reasons) - _MOST_SHOWN} more" if len(reasons) > _MOST_SHOWN else ""
        listed = "".join(f"\n  - {reason}" for reason in reasons[:_MOST_SHOWN]) + more
        raise BaseZarrError(f"the files cannot be joined along {along.name!r}:{listed}")


def _names(files: Sequence[ScannedFile]) -> dict[str, str]:
    """Return what files are called, by place: their last name where no other has it."""
    last = {file.place: os.path.basename(file.place) for file in files}
    times = Counter(last.values())
    return {place: name if times[name] == 1 else place for place, name in last.items()}


def _unlike_files(
    one: ScannedFile, files: Sequence[ScannedFile], along: Along, packing: bool, names: Mapping[str, str]
) -> dict[str, list[str]]:
    """Return in what files differ from `one`, by place; of those that differ in nothing, nothing."""
    others = (file for file in files if file is not one)
    found = ((file.place, list(_differences(one, file, along, packing, names[one.place]))) for file in others)
    return {place: what for place, what in found if what}


def _differences(one: ScannedFile, file: ScannedFile, along: Along, packing: bool, name: str) -> Iterator[str]:
    """Say in what a file differs from `one`, which is called `name`."""
    ours, theirs = one.arrays, file.arrays
    for path in ours.keys() - theirs.keys():
        yield f"it has no array /{path}, which {name} has"
    for path in theirs.keys() - ours.keys():
        yield f"/{path} is not in {name}"
    for path, array in ours.items():
        if path in theirs:
            for what, mine, other in _compared(array, theirs[path], along, packing):
                yield f"/{path}: {what} {other}, where {name} has {mine}"


def _compared(
    one: ScannedArray, other: ScannedArray, along: Along, packing: bool
) -> Iterator[tuple[str, object, object]]:
    a, b = one.node, other.node
    yield from _unequal("data type", _type_name(a.dtype), _type_name(b.dtype))
    yield from _unequal("dimensions", a.dimension_names, b.dimension_names)
    if a.dimension_names == b.dimension_names:
        yield from _unequal("shape", _apart(one, along), _apart(other, along))
    for name in (*_MEANING, *(PACKING if packing else ())):
        yield from _unequal(name, a.attributes.get(name), b.attributes.get(name))
    if repr(a.cf_fill) != repr(b.cf_fill):  # NaN is NaN
        yield "_FillValue", _shown(a.cf_fill), _shown(b.cf_fill)
    if one.digest is not None and other.digest is not None and one.digest != other.digest and a.shape == b.shape:
        yield "values", "others", "differ"


def _unequal(what: str, mine: object, other: object) -> Iterator[tuple[str, object, object]]:
    if mine != other:
        yield what, _shown(mine), _shown(other)


def _shown(value: object) -> object:
    return "none" if value is None else repr(value) if isinstance(value, str) else value


def _type_name(dtype: type[str | bytes] | AnyDType | DataType) -> str:
    return dtype.__name__ if isinstance(dtype, type) else str(dtype)


def _apart(array: ScannedArray, along: Along) -> tuple[object, ...]:
    names = array.node.dimension_names or (None,) * len(array.node.shape)
    return tuple("any" if name == along.name else n for name, n in zip(names, array.node.shape, strict=True))


def _steps(files: Sequence[ScannedFile], along: str, gaps: bool, names: Mapping[str, str]) -> Iterator[str]:
    """Describe values of the joined coordinate that are there twice, out of order, or missing."""
    found = [_coordinate(file, along) for file in files]
    parts = [part for part in found if part is not None]
    if len(parts) < len(files):
        return
    values = np.concatenate(parts)
    steps = -np.diff(values) if _falls(parts) else np.diff(values)
    owners = np.repeat(np.arange(len(parts)), [part.size for part in parts])
    usual = float(np.median(steps)) if steps.size else 0.0
    for at in np.flatnonzero((steps <= 0) | ((steps > 1.99 * usual) & (usual > 0) & (not gaps))):
        where = " and ".join(dict.fromkeys(names[files[owner].place] for owner in owners[at : at + 2]))
        between = f"{values[at]} to {values[at + 1]}"
        if steps[at] <= 0:
            yield f"{where}: {along} goes back, or stays, from {between}: files overlap, or one is there twice"
        else:
            yield f"{where}: {along} has a gap from {between}, where steps are {usual:g} (gaps=True or --allow-gaps allows it)"
