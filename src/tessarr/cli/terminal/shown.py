"""Read what a terminal shows of an array: a plane, a line or an element, at about as many places as there are cells.

A plane of any size is read at once: from the level of a pyramid that is just fine enough, at steps, and, where the chunks of
the plane are still too many, from a sample of them (`tessarr.serve.dynamic.reading`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote

import numpy as np

from tessarr.core.array import Array
from tessarr.core.group import Group
from tessarr.core.open import open_array, open_group
from tessarr.errors import ArrayNotFoundError, NodeNotFoundError, TessarrError
from tessarr.serve.dynamic import query
from tessarr.serve.dynamic.budget import Budget
from tessarr.serve.dynamic.decoded import decoded
from tessarr.serve.dynamic.description import dimension_names, pyramids
from tessarr.serve.dynamic.labels import Coordinates
from tessarr.serve.dynamic.query import Pick
from tessarr.serve.dynamic.reading import chunk_nbytes, read_values
from tessarr.serve.dynamic.refusal import Refusal
from tessarr.stores.path import join
from tessarr.stores.protocols import Remote
from tessarr.types import AnyArray

_MAX_NBYTES = 256 << 20
"""Decoded bytes of the chunks of one picture, or one chunk."""
_MAX_CHUNKS, _MAX_REQUESTS = 256, 64
"""Chunks of one picture; the same where each is a request."""
_WHOLE_LINE = 1 << 22
"""Elements of a line that are read one by one."""


class ShownAxis(NamedTuple):
    """One axis that is drawn: its name, and the labels of its ends."""

    name: str
    first: object
    last: object
    rises: bool
    """Whether the first element belongs at the bottom: latitudes that rise."""


class Shown(NamedTuple):
    """What is drawn of an array."""

    array: Array
    values: AnyArray
    """Decoded; no dimension is an element, one a line, two a plane, three a plane of colours."""
    axes: Sequence[ShownAxis]
    """The axes of a line or a plane."""
    indices: Sequence[str]
    """The other axes, with their index and label."""
    names: Sequence[str | None]
    notes: Sequence[str]
    """What stands for the selected elements: a level, steps, a sample."""


class Selection(NamedTuple):
    """What a user selects."""

    places: str = ""
    """By position: ``0, :, 2000-01..2000-03``."""
    named: Sequence[str] = ()
    """By dimension: ``time=3``."""
    decode: bool = True
    """Whether values are decoded by CF."""

    def as_query(self, ndim: int) -> str:
        """Return the selection as the query of a URL, whose grammar it has. Raises `ValueError`."""
        items: list[str | None] = [item.strip() for item in self.places.split(",")] if self.places.strip() else []
        if items.count("...") > 1 or len(items) - items.count("...") > ndim:
            raise ValueError(f"the selection {self.places!r} does not fit {ndim} dimensions")
        if "..." in items:
            at = items.index("...")
            items[at : at + 1] = [None] * (ndim - len(items) + 1)
        parts = [f"{axis}={quote(item)}" for axis, item in enumerate(items) if item is not None]
        for one in self.named:
            name, equals, item = one.partition("=")
            if not equals:
                raise ValueError(f"--at needs DIMENSION=SELECTION, got {one!r}")
            parts.append(f"{quote(name)}={quote(item)}")
        return "&".join(parts)


def find_levels(node: Array | Group) -> tuple[list[Array], list[str]]:
    """Return an array and the coarser levels of its pyramid, and the names of its axes as the pyramid has them.

    Of a group, its pyramid, or its only array. Raises `ArrayNotFoundError` where a group has none, or several.
    """
    group, own = (node, None) if isinstance(node, Group) else (_above(node), node.path.rpartition("/")[2])
    for pyramid in [] if group is None else pyramids(group._metadata.attributes):
        assert isinstance(pyramid, Mapping)
        paths, axes = pyramid["paths"], pyramid["axes"]
        assert isinstance(paths, list)
        assert isinstance(axes, list)
        if own is None or own in paths:
            assert group is not None
            chosen = paths[0 if own is None else paths.index(own) :]
            levels = [open_array(group._store, path=join(group.path, str(path)), mode="r") for path in chosen]
            return levels, [str(axis["name"]) for axis in axes if isinstance(axis, Mapping)]
    if isinstance(node, Array):
        return [node], []
    arrays = [member for _, member in node.members() if isinstance(member, Array)]
    if len(arrays) == 1:
        return arrays, []
    names = ", ".join(array.path.rpartition("/")[2] for array in arrays[:8])
    hint = f"Name one of its arrays: {names}" if arrays else "It has no array as direct member; see: tessarr tree"
    raise ArrayNotFoundError("a group has no values", store=node._store.url, path=node.name, hint=hint)


def _above(array: Array) -> Group | None:
    if not array.path:
        return None
    try:
        return open_group(array._store, path=array.path.rpartition("/")[0] or None, mode="r")
    except (NodeNotFoundError, TessarrError, ValueError):
        return None


def read_shown(node: Array | Group, selection: Selection, *, across: int, down: int) -> Shown:
    """Read what is drawn in `across` × `down` pixels. Raises `ValueError` for a selection without meaning."""
    try:
        return _read(node, selection, across, down)
    except Refusal as refusal:
        raise ValueError(f"{refusal}. {refusal.hint}".rstrip(". ")) from refusal


def _read(node: Array | Group, selection: Selection, across: int, down: int) -> Shown:
    levels, axis_names = find_levels(node)
    array = levels[0]
    names = dimension_names(array._metadata)
    if not any(names) and len(axis_names) == array.ndim:
        names = tuple(axis_names)
    budget = Budget()
    coordinates = Coordinates("", array, names, budget)
    is_colour = array.ndim >= 3 and array.dtype == np.uint8 and array.shape[-1] in (3, 4)
    asked = query.parse(selection.as_query(array.ndim), names)
    picks = query.picks_of(asked, array.shape, coordinates.find, ndim=min(array.ndim, 2 + is_colour))
    picks, drawn = _drawn(picks, is_colour)
    wanted = dict(zip(reversed(drawn), (across, down), strict=False))
    number, scaled = _level(levels, picks, wanted)
    stepped = [_at_steps(pick, wanted.get(axis), len(drawn) == 1) for axis, pick in enumerate(scaled)]
    values, is_sample = _values(levels[number], stepped, budget)
    notes = [f"level {number + 1} of {len(levels)}"] if number else []
    if values.size < np.prod([len(pick) for pick in scaled if isinstance(pick, range)]):
        steps = [str(pick.step) for axis, pick in enumerate(stepped) if isinstance(pick, range) and axis in wanted]
        notes.append(f"every {' × '.join(steps)} elements")
    notes += ["one chunk stands for several"] if is_sample else []
    return Shown(
        array=array,
        values=decoded(array, values) if selection.decode else values,
        axes=[_shown_axis(coordinates, names, axis, picks[axis]) for axis in drawn],
        indices=[_index(coordinates, names, axis, pick) for axis, pick in enumerate(picks) if isinstance(pick, int)],
        names=names,
        notes=notes,
    )


def _drawn(picks: Sequence[Pick], is_colour: bool) -> tuple[list[Pick], list[int]]:
    """Return the picks, and the axes that are drawn; of several axes, those with one element are not. Raises `ValueError`."""
    ranges = [axis for axis, pick in enumerate(picks) if isinstance(pick, range)]
    if any(isinstance(pick, range) and not pick for pick in picks):
        raise ValueError("the selection is empty")
    colour = [axis for axis in ranges[-1:] if is_colour and len(ranges) == 3 and axis == len(picks) - 1]
    places = [axis for axis in ranges if axis not in colour]
    single = [axis for axis in places if len(picks[axis]) == 1 and len(places) > 1 and not colour]  # type: ignore[arg-type]
    for axis in single[: len(places) - 1]:
        places.remove(axis)
    if len(places) > 2:
        raise ValueError(f"{len(places)} dimensions cannot be drawn: select one index along some, with --slice or --at")
    return [pick[0] if axis in single and axis not in places else pick for axis, pick in enumerate(picks)], places  # type: ignore[index]


def _level(levels: Sequence[Array], picks: Sequence[Pick], wanted: Mapping[int, int]) -> tuple[int, list[Pick]]:
    """Choose the coarsest level that has an element for each pixel along some axis; return its picks too."""
    chosen, best = 0, list(picks)
    for number, level in enumerate(levels[1:], 1):
        if level.ndim != len(picks):
            break
        scaled = [
            _scaled(pick, fine, coarse) for pick, fine, coarse in zip(picks, levels[0].shape, level.shape, strict=True)
        ]
        if all(len(scaled[axis]) < most for axis, most in wanted.items()):  # type: ignore[arg-type]
            break
        chosen, best = number, scaled
    return chosen, best


def _scaled(pick: Pick, fine: int, coarse: int) -> Pick:
    if fine == coarse:
        return pick
    if isinstance(pick, int):
        return min(coarse - 1, pick * coarse // fine)
    start, stop = pick[0] * coarse // fine, -(-(pick[-1] + 1) * coarse // fine)
    return range(start, max(start + 1, min(coarse, stop)), max(1, pick.step * coarse // fine))


def _at_steps(pick: Pick, most: int | None, is_line: bool) -> Pick:
    """Step through a pick so that it has a little more elements than pixels; a line is read whole where it can be."""
    if most is None or isinstance(pick, int) or (is_line and len(pick) <= _WHOLE_LINE):
        return pick
    return pick[:: max(1, len(pick) // most)]


def _values(array: Array, picks: Sequence[Pick], budget: Budget) -> tuple[AnyArray, bool]:
    most = _MAX_REQUESTS if isinstance(array._bound.store, Remote) else _MAX_CHUNKS
    each = chunk_nbytes(array._chunk_axes, picks, array.dtype.itemsize)
    read = read_values(array, picks, budget, sample=max(1, min(most, _MAX_NBYTES // max(1, each))))
    return read.data, read.is_sample


def _shown_axis(coordinates: Coordinates, names: Sequence[str | None], axis: int, pick: Pick) -> ShownAxis:
    assert isinstance(pick, range)
    first, last = (_label(coordinates, axis, index) for index in (pick[0], pick[-1]))
    name = names[axis] or f"axis {axis}"
    numbers = isinstance(first, np.number) and isinstance(last, np.number)
    return ShownAxis(name, first, last, bool(numbers and _is_latitude(coordinates, axis, name) and last > first))  # type: ignore[operator]


def _is_latitude(coordinates: Coordinates, axis: int, name: str) -> bool:
    array = coordinates.array(axis)
    units = "" if array is None else str(array._metadata.attributes.get("units", ""))
    return units.replace("_", "").lower() in ("degreesnorth", "degreenorth", "degreen", "degreesn") or (
        not units and name.lower() in ("lat", "latitude")
    )


def _index(coordinates: Coordinates, names: Sequence[str | None], axis: int, index: int) -> str:
    label = _label(coordinates, axis, index)
    said = "" if coordinates.array(axis) is None else f" ({text(label)})"
    return f"{names[axis] or f'axis {axis}'} = {index}{said}"


def _label(coordinates: Coordinates, axis: int, index: int) -> object:
    """Return the coordinate at an index, or the index where there is none that can be read."""
    try:
        found = coordinates.read(axis, index)
    except (Refusal, TessarrError):
        found = None
    return index if found is None else found[()]


def text(value: object) -> str:
    """Write a label or a limit in few characters.

    >>> text(np.float32(0.1)), text(np.datetime64("2000-01-01T00:00:00")), text(281.99999)
    ('0.1', '2000-01-01', '282')
    """
    if isinstance(value, np.datetime64):
        return str(value).removesuffix(".000000000").removesuffix(".000000").removesuffix("T00:00:00")
    if isinstance(value, float | np.floating):
        return f"{float(value):.6g}"
    return str(value)
