"""Read a selection from the query of a URL: ``?time=3&lat=10:20&lon=::2``. Pure.

A parameter is named after a dimension, or its number: ``0=3``. Its value is one of

| value | selects |
|---|---|
| ``3``, ``-1`` | one index; the dimension disappears |
| ``a:b``, ``a:b:c`` | a slice of indices, as in Python, with a positive step |
| ``nearest::50.2`` | the label that is nearest |
| ``exact::7`` | a label, where it would be read as an index |
| ``2020-01-01`` | any other text is a label |
| ``2020-01..2020-03`` | the labels between two, both included |

A name that is an option (`OPTIONS`) is never a dimension, which then goes by its number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias
from urllib.parse import parse_qsl

from tessarr.serve.dynamic.refusal import malformed

OPTIONS = frozenset({"cmap", "limits", "size", "decode", "sample", "bins"})
"""Parameters that are not dimensions."""
_MAX_PARAMETERS = 100
_INDEX = re.compile(r"[+-]?\d{1,19}")
_SLICE = re.compile(r"([+-]?\d{1,19})?:([+-]?\d{1,19})?(?::(\d{1,19})?)?")

Pick: TypeAlias = "int | range"
"""What is selected along an axis: one index, or indices with a positive step."""


class Asked(NamedTuple):
    """A query in parts."""

    dimensions: Mapping[int, str]
    """Axis → the text of its selection."""
    options: Mapping[str, str]


class Label(NamedTuple):
    """A selection by labels, as text."""

    first: str
    last: str | None = None
    """The label at the end of an interval; ``None`` for one label."""
    nearest: bool = False


def parse(query: str, names: Sequence[str | None]) -> Asked:
    """Parse a query for an array with these dimension names. Raises `Refusal` for unknown and repeated parameters.

    >>> parse("time=3&1=::2&cmap=gray", ["time", None])
    Asked(dimensions={0: '3', 1: '::2'}, options={'cmap': 'gray'})
    """
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=_MAX_PARAMETERS, errors="strict")
    except ValueError as error:
        raise malformed(f"the query cannot be read: {error}") from error
    dimensions: dict[int, str] = {}
    options: dict[str, str] = {}
    for name, text in pairs:
        if name in OPTIONS:
            options[name] = text
            continue
        axis = _axis(name, names)
        if axis in dimensions:
            raise malformed(f"dimension {name!r} is selected twice")
        dimensions[axis] = text.strip()
    return Asked(dimensions, options)


def _axis(name: str, names: Sequence[str | None]) -> int:
    found = [axis for axis, known in enumerate(names) if known == name]
    if len(found) == 1:
        return found[0]
    if re.fullmatch(r"\d{1,3}", name) and int(name) < len(names):
        return int(name)
    known = ", ".join(name or str(axis) for axis, name in enumerate(names)) or "none, it has no dimensions"
    raise malformed(
        f"{name!r} is not a dimension of the array", f"Dimensions: {known}. Options: {', '.join(sorted(OPTIONS))}"
    )


def parse_pick(text: str, length: int) -> Pick | Label:
    """Parse the selection along an axis of `length` elements. Raises `Refusal` for an index out of bounds.

    >>> parse_pick("-1", 5), parse_pick("1::2", 5), parse_pick("0..3.5", 5), parse_pick("nearest::2", 5)
    (4, range(1, 5, 2), Label(first='0', last='3.5', nearest=False), Label(first='2', last=None, nearest=True))
    """
    if _INDEX.fullmatch(text):
        index = int(text)
        if not -length <= index < length:
            raise malformed(f"index {index} is out of bounds", f"The dimension has {length} elements")
        return index % length
    found = _SLICE.fullmatch(text)
    if found is not None:
        start, stop, step = (None if part is None or part == "" else int(part) for part in found.groups())
        if step == 0:
            raise malformed("the step of a slice must not be 0")
        return range(*slice(start, stop, step).indices(length))
    for prefix, nearest in (("nearest::", True), ("exact::", False)):
        if text.startswith(prefix):
            return Label(text.removeprefix(prefix), nearest=nearest)
    first, dots, last = text.partition("..")
    if not text:
        raise malformed("a selection is empty", "Write an index, a slice a:b:c, or a label")
    return Label(first, last) if dots and last else Label(text)


def picks_of(
    asked: Asked, shape: Sequence[int], find: Callable[[int, Label], Pick], *, ndim: int | None = None
) -> list[Pick]:
    """Return what is selected along each axis; `find` looks up labels.

    Axes that the query does not name are selected whole. With `ndim` only so many, the last, that the selection has `ndim`
    dimensions; the others at their first index.

    >>> picks_of(parse("2=1", [None] * 4), (5, 6, 7, 8), lambda axis, label: 0, ndim=2)
    [0, range(0, 6), 1, range(0, 8)]
    """
    named: dict[int, Pick] = {}
    for axis, text in asked.dimensions.items():
        pick = parse_pick(text, shape[axis])
        named[axis] = find(axis, pick) if isinstance(pick, Label) else pick
    unnamed = [axis for axis in range(len(shape)) if axis not in named]
    if ndim is not None:
        wanted = max(0, ndim - sum(isinstance(pick, range) for pick in named.values()))
        for axis in unnamed[: max(0, len(unnamed) - wanted)]:
            named[axis] = 0 if shape[axis] else range(0)
    return [named.get(axis, range(length)) for axis, length in enumerate(shape)]


def number(options: Mapping[str, str], name: str, default: int, most: int) -> int:
    """Return an option that is a positive integer, at most `most`. Raises `Refusal` for other text."""
    text = options.get(name)
    if text is None:
        return default
    if not re.fullmatch(r"\d{1,9}", text) or not 0 < int(text) <= most:
        raise malformed(f"{name} must be an integer from 1 to {most}, got {text[:40]!r}")
    return int(text)
