"""Draw the grid of an array as SVG, true to scale: a plane of the last two axes, and a bar for each axis before them.

Where it is known which values (chunks or shards) are stored, the plane is shaded where any of them is.

Pure. At most `MAX_LINES` lines per axis: where there are more chunks, a line stands for several of them, and the
caption says so. The drawing has no identifier, no style of its own and no script; its colour is that of the text around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import prod

import numpy as np
import numpy.typing as npt

from tessarr.common.counted import counted
from tessarr.grids.base import Axis

MAX_LINES = 32
MAX_BARS = 8
SIDE = 200
"""Pixels of the longer side of the plane, and of a bar."""
MIN_SIDE = 20
_LINE_PIXELS = 4
_LEFT, _TOP, _BAR, _TEXT = 26, 16, 14, 14
_NAME_CHARS = 20
_SHADE = 0.08


@dataclass(frozen=True)
class DrawnAxis:
    """One axis of a drawing: its name, its chunks (inner chunks, where there are shards), and its shards."""

    name: str
    chunks: Axis
    shards: Axis | None = None

    @property
    def length(self) -> int:
        """Elements along the axis."""
        return self.chunks.length

    @property
    def short(self) -> str:
        """The name, cut where it is long."""
        return self.name if len(self.name) <= _NAME_CHARS else f"{self.name[: _NAME_CHARS - 1]}…"

    @property
    def values(self) -> Axis:
        """How stored values cut the axis: as shards, or as chunks."""
        return self.shards or self.chunks


Stored = npt.NDArray[np.bool_]
"""Whether each value is stored: one dimension per axis of the grid of values."""


def draw(axes: Sequence[DrawnAxis], stored: Stored | None = None, *, caption: str | None = None) -> str:
    """Draw the grid; the caption, that of `caption_of` unless another is given, is the text alternative."""
    bars = axes[:-2][:MAX_BARS]
    width, height = _sides(axes)
    parts: list[str] = []
    top = _TOP
    for axis in bars:
        parts += _bar(axis, top)
        top += _BAR + _TEXT + 4
    parts += _plane(axes[-2:], top, width, height, stored)
    total = top + height + _TEXT + 6
    said = escape(caption or caption_of(axes, stored))
    return (
        f'<svg class="tsr-grid" role="img" aria-label="{said}" width="{SIDE + _LEFT + 6}" '
        f'height="{_number(total)}" viewBox="0 0 {SIDE + _LEFT + 6} {_number(total)}" fill="none" '
        f'stroke="currentColor" font-size="11">{"".join(parts)}</svg>'
    )


def caption_of(axes: Sequence[DrawnAxis], stored: Stored | None = None) -> str:
    """Say what the drawing shows: numbers of chunks and shards, and what is not drawn one by one."""
    if not axes:
        return "One element in one chunk." if stored is None or stored.all() else "One element, not stored."
    said = [f"{_count([axis.chunks for axis in axes], 'chunk')}"]
    shards = [axis.shards for axis in axes if axis.shards is not None]
    if shards:
        said = [f"{_count(shards, 'shard')} (thick lines) of {said[0]} (thin lines)"]
    if not all(axis.length for axis in axes):
        said.append("no elements")
    elif stored is not None:
        count = int(stored.sum())
        said.append("all stored" if count == stored.size else f"{count:,} stored, where the plane is shaded")
    if len(axes) > 2:
        said.append(f"plane: {axes[-2].short}, {axes[-1].short}; bars: the axes before them")
    if len(axes) - 2 > MAX_BARS:
        said.append(f"{len(axes) - 2 - MAX_BARS} axes are not drawn")
    for axis, side in zip(axes, _axis_sides(axes), strict=True):
        step = _step(axis.chunks, side)
        if step > 1:
            said.append(f"along {axis.short} a line is drawn every {step:,} chunks")
    if _is_stretched(axes):
        said.append("each axis is to its own scale")
    return f"{'; '.join(said)}."


def _axis_sides(axes: Sequence[DrawnAxis]) -> list[float]:
    width, height = _sides(axes)
    return [float(SIDE)] * (len(axes) - 2) + [height, width][-len(axes) :]


def _count(axes: Sequence[Axis], noun: str) -> str:
    counts = [axis.nchunks for axis in axes]
    total = prod(counts)
    product = f"{' × '.join(f'{count:,}' for count in counts)} = " if len(counts) > 1 else ""
    return product + counted(total, noun)


def _lengths(axes: Sequence[DrawnAxis]) -> tuple[int, int]:
    return axes[-1].length, axes[-2].length


def _sides(axes: Sequence[DrawnAxis]) -> tuple[float, float]:
    """Compute the width and the height of the plane, in the ratio of its axes unless one would be too short to see."""
    if not axes:
        return MIN_SIDE, MIN_SIDE
    if len(axes) == 1:
        return SIDE, MIN_SIDE
    columns, rows = _lengths(axes)
    longest = max(columns, rows, 1)
    return max(SIDE * (columns / longest), MIN_SIDE), max(SIDE * (rows / longest), MIN_SIDE)


def _is_stretched(axes: Sequence[DrawnAxis]) -> bool:
    if len(axes) < 2:
        return False
    columns, rows = _lengths(axes)
    return min(columns, rows) > 0 and min(columns, rows) * SIDE < max(columns, rows) * MIN_SIDE


def _step(axis: Axis, side: float) -> int:
    """Return how many chunks one line stands for."""
    most = min(MAX_LINES, max(int(side) // _LINE_PIXELS, 1))
    return max(-(-axis.nchunks // (most + 1)), 1)


def _offsets(axis: Axis, side: float) -> Iterator[str]:
    """Iterate over the pixels at which chunks of an axis begin, the first chunk left out."""
    step = _step(axis, side)
    for index in range(step, axis.nchunks, step):
        yield _number(side * (axis.start(index) / axis.length))


def _lines(axis: DrawnAxis, sideways: bool, side: float, across: float, left: float, top: float) -> Iterator[str]:
    """Draw the edges of chunks, thin, and of shards, thick; `sideways`: the axis runs from left to right."""
    for kind, one, width in (("chunk", axis.chunks, "0.5"), ("shard", axis.shards, "1.5")):
        offsets = [] if one is None else list(_offsets(one, side))
        if not offsets:
            continue
        moves = "".join(
            f"M{_number(left + float(at))} {_number(top)}v{_number(across)}"
            if sideways
            else f"M{_number(left)} {_number(top + float(at))}h{_number(across)}"
            for at in offsets
        )
        yield f'<path class="tsr-{kind}" d="{moves}" stroke-width="{width}"/>'


def _box(left: float, top: float, width: float, height: float, empty: bool, shaded: bool = True) -> str:
    dashes = ' stroke-dasharray="4 3"' if empty else ""
    return (
        f'<rect x="{_number(left)}" y="{_number(top)}" width="{_number(width)}" height="{_number(height)}" '
        f'fill="currentColor" fill-opacity="{0 if empty or not shaded else _SHADE}" stroke-width="1.5"{dashes}/>'
    )


def _shading(axes: Sequence[DrawnAxis], stored: Stored, left: float, top: float, width: float, height: float) -> str:
    """Shade the plane where a value is stored at any place along the axes before it; neighbours in a row are one rectangle."""
    rows, columns = [None, None, *axes][-2:]
    whole = stored.reshape(-1, *stored.shape[-2:]) if stored.ndim >= 2 else stored.reshape(1, 1, -1)
    plane: Stored = np.asarray(whole.any(axis=0), bool)
    moves = []
    for row, places in enumerate(plane):
        y, below = _edges(rows, row, row + 1, height)
        changes = np.flatnonzero(np.diff(np.concatenate(([0], places.astype(np.int8), [0]))))
        for first, stop in zip(changes[::2].tolist(), changes[1::2].tolist(), strict=True):
            x, right = _edges(columns, first, stop, width)
            moves.append(
                f"M{_number(left + x)} {_number(top + y)}h{_number(right - x)}v{_number(below - y)}h{_number(x - right)}z"
            )
    return f'<path d="{"".join(moves)}" fill="currentColor" fill-opacity="{_SHADE}" stroke="none"/>' if moves else ""


def _edges(axis: DrawnAxis | None, first: int, stop: int, side: float) -> tuple[float, float]:
    """Return the pixels at which values begin and end."""
    if axis is None:
        return 0.0, side
    end = axis.length if stop >= axis.values.nchunks else axis.values.start(stop)
    return side * axis.values.start(first) / axis.length, side * end / axis.length


def _text(x: float, y: float, axis: DrawnAxis, upright: bool = False) -> str:
    turn = f' transform="rotate(-90 {_number(x)} {_number(y)})" text-anchor="middle"' if upright else ""
    return (
        f'<text x="{_number(x)}" y="{_number(y)}" fill="currentColor" stroke="none"{turn}>'
        f"{escape(axis.short)}: {axis.length:,}</text>"
    )


def _bar(axis: DrawnAxis, top: float) -> Iterator[str]:
    yield _text(_LEFT, top - 4, axis)
    yield _box(_LEFT, top, SIDE, _BAR, not axis.length)
    yield from _lines(axis, True, SIDE, _BAR, _LEFT, top)


def _plane(axes: Sequence[DrawnAxis], top: float, width: float, height: float, stored: Stored | None) -> Iterator[str]:
    is_partial = stored is not None and not stored.all()
    yield _box(_LEFT, top, width, height, not all(axis.length for axis in axes), not is_partial)
    if stored is not None and is_partial:
        yield _shading(axes, stored, _LEFT, top, width, height)
    if axes:
        yield from _lines(axes[-1], True, width, height, _LEFT, top)
        yield _text(_LEFT, top + height + _TEXT, axes[-1])
    if len(axes) > 1:
        yield from _lines(axes[-2], False, height, width, _LEFT, top)
        upright = height >= SIDE / 2
        yield _text(_LEFT - 8 if upright else _LEFT, top + height / 2 if upright else top - 4, axes[-2], upright)


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
