"""``tessarr show``: draw values in the terminal."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tessarr.cli.places import open_node
from tessarr.cli.printing import OK, add_place, add_verb, lengths, print_json
from tessarr.cli.terminal.dots import draw_line
from tessarr.cli.terminal.frame import cut_line, framed
from tessarr.cli.terminal.half_blocks import RAMP, draw_blocks, draw_ramp
from tessarr.cli.terminal.screen import STYLES, Screen, screen_of
from tessarr.cli.terminal.shown import Selection, Shown, read_shown, text
from tessarr.serve.dynamic.exports import parse_limits
from tessarr.serve.dynamic.refusal import Refusal
from tessarr.tools.picture import COLOUR_MAPS, colours, limits_of, numbers_of, shares_of
from tessarr.types import AnyArray

Limits = tuple[float, float]
_MARGIN = 11
"""Cells for labels left of a drawing."""
_AROUND = 6
"""Lines above and below a drawing."""
_LEAST = 12
"""Pixels of the shorter side of a plane, which is stretched if it would have less."""
_BAR = 24


def add(verbs: object) -> None:
    """Add the verb."""
    verb = add_verb(
        verbs,
        "show",
        summary="draw a plane or a line of values in the terminal",
        text="Draw values: a plane (of the last two dimensions, unless others are selected) in colours, a line as a curve, "
        "an image by its level that fits. Planes of any size are drawn at once, at steps or from some of their chunks. "
        "Selections are written as in the URLs of tessarr serve: 3, 0:10:2, 2020-01-01, nearest::50.2, 2020-01..2020-03. "
        "Without a terminal the output is ASCII of 80 columns; NO_COLOR in the environment switches colours off.",
        examples="""
tessarr show data.zarr air
tessarr show data.zarr air -s "0, :, 10:40"
tessarr show data.zarr air --at time=2020-01-01 --at lat=nearest::50
tessarr show "data.zarr/air[0]"
tessarr show data.zarr air --cmap diverging --limits=-10,10
tessarr show data.zarr air --style ascii --width 120
""",
    )
    add_place(verb)
    verb.add_argument("-s", "--slice", metavar="SELECTION", default="", help='by position: "0, :, ::2"')
    verb.add_argument(
        "--at", metavar="DIM=SELECTION", action="append", default=[], help="by dimension: time=3 (may be repeated)"
    )
    verb.add_argument("--cmap", choices=sorted(COLOUR_MAPS), default="viridis", help="the colours")
    verb.add_argument("--limits", metavar="LOW,HIGH", help="values of the first and the last colour")
    verb.add_argument("--style", choices=STYLES, default="auto", help="24 bits, 256 colours, no colours, ASCII")
    verb.add_argument("--width", type=int, metavar="N", help="columns (default: those of the terminal)")
    verb.add_argument("--height", type=int, metavar="N", help="lines (default: those of the terminal)")
    verb.add_argument("--no-decode", action="store_true", help="show stored values: no scale, offset and times of CF")
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the drawing."""
    screen = screen_of(sys.stdout, os.environ, style=arguments.style, columns=arguments.width, rows=arguments.height)
    place, path, places = _split(arguments.place, arguments.path, arguments.slice)
    node = open_node(place, path, storage=arguments.storage)
    selection = Selection(places, arguments.at, not arguments.no_decode)
    across, down = screen.columns - _MARGIN - 1, 2 * (screen.rows - _AROUND)
    shown = read_shown(node, selection, across=across, down=down)
    try:
        limits = parse_limits(arguments.limits)
    except Refusal as refusal:
        raise ValueError(str(refusal)) from refusal
    if arguments.json:
        print_json(_document(shown, limits))
    else:
        print("\n".join(draw(shown, screen, limits, arguments.cmap)))
    return OK


def _split(place: str, path: str, places: str) -> tuple[str, str, str]:
    """Split ``place[selection]``, or ``path[selection]``, unless something is stored under that name."""
    found = None if places else re.fullmatch(r"(.*[^/])\[([^\[\]]*)\]", path or place)
    if found is None or os.path.exists(place if not path else os.path.join(place, path)):
        return place, path, places
    return (place, found[1], found[2]) if path else (found[1], "", found[2])


def _units(shown: Shown) -> str:
    units = shown.array._metadata.attributes.get("units")
    return units if isinstance(units, str) and shown.values.dtype.kind != "M" else ""


def _heading(shown: Shown, screen: Screen) -> list[str]:
    array = shown.array
    units = _units(shown)
    name = f"{array.name} {lengths(array.shape, shown.names)} {array._metadata.data_type.name}"
    lines = [f"{name}, {units}" if units else name, "; ".join([*shown.indices, *shown.notes])]
    return [cut_line(line, screen.columns) for line in lines if line]


def draw(shown: Shown, screen: Screen, limits: Limits | None = None, map_name: str = "viridis") -> list[str]:
    """Draw what was read, or write it where it is not a plane or line of numbers; return lines."""
    return [*_heading(shown, screen), *_drawing(shown, screen, limits, map_name)]


def _drawing(shown: Shown, screen: Screen, limits: Limits | None, map_name: str) -> list[str]:
    values = shown.values
    try:
        numbers = numbers_of(values)
    except TypeError:
        numbers = None
    if numbers is None or values.ndim == 0:
        with np.printoptions(linewidth=screen.columns, threshold=200):
            return [text(values[()]) if values.dtype.kind == "M" and not values.ndim else str(values)]
    if values.ndim == 1:
        return _line(shown, numbers.astype(np.float64), screen, limits)
    return _plane(shown, numbers, screen, limits, map_name)


def _line(shown: Shown, numbers: npt.NDArray[np.float64], screen: Screen, limits: Limits | None) -> list[str]:
    """Draw a line between its smallest and its largest value."""
    seen = numbers[np.isfinite(numbers)]
    low, high = limits or ((float(seen.min()), float(seen.max())) if seen.size else (0.0, 1.0))
    across, rows = screen.columns - _MARGIN - 1, screen.rows - _AROUND
    finite = np.where(np.isfinite(numbers), numbers, np.nan)
    kind = shown.values.dtype
    upper, lower = (text(np.int64(limit).astype(kind)) if kind.kind == "M" else text(limit) for limit in (high, low))
    return _framed(shown, draw_line(finite, (low, high), across, rows, screen.has_unicode), upper, lower, across)


def _plane(shown: Shown, numbers: AnyArray, screen: Screen, limits: Limits | None, map_name: str) -> list[str]:
    """Draw a plane of numbers or colours, in the ratio of its sides unless it would be too thin."""
    across, down = screen.columns - _MARGIN - 1, 2 * (screen.rows - _AROUND)
    plane = numbers[::-1] if shown.axes[0].rises else numbers
    width, height = _size(plane.shape[1], plane.shape[0], across, down)
    low, high = limits or limits_of(plane)
    if not screen.colours:
        height = max(1, height // 2)
    picked = plane[_places(plane.shape[0], height)][:, _places(plane.shape[1], width)]
    if screen.colours:
        pixels = _opaque(picked) if picked.ndim == 3 else colours(picked, limits=(low, high), map_name=map_name)
        lines = draw_blocks(pixels, screen.colours)
        ramp = np.linspace(0, 1, _BAR)[np.newaxis].repeat(2, axis=0)
        bar = draw_blocks(colours(ramp, limits=(0, 1), map_name=map_name), screen.colours)[0]
    else:
        gray = picked[..., :3].mean(axis=2) if picked.ndim == 3 else picked
        lines = draw_ramp(shares_of(gray, (0, 255) if picked.ndim == 3 else (low, high)))
        bar = RAMP
    down_axis = shown.axes[0]
    ends = (down_axis.last, down_axis.first) if down_axis.rises else (down_axis.first, down_axis.last)
    drawn = _framed(shown, lines, text(ends[0]), text(ends[1]), width)
    units = _units(shown)
    return drawn if numbers.ndim == 3 else [*drawn, f"{text(low)} {bar} {text(high)}{f' {units}' if units else ''}"]


def _framed(shown: Shown, lines: Sequence[str], upper: str, lower: str, columns: int) -> list[str]:
    """Put a frame of labels around a drawing, with the names of its axes."""
    *above, across = shown.axes
    name = f"{above[0].name} down, {across.name} across" if above else across.name
    upper, lower = (f"{label[:_MARGIN]:>{_MARGIN}}" for label in (upper, lower))
    left, right = text(across.first), text(across.last)
    return framed(lines, upper=upper, lower=lower, left=left, right=right, middle=name, columns=columns)


def _size(columns: int, rows: int, across: int, down: int) -> tuple[int, int]:
    """Return width and height in pixels.

    >>> _size(50, 25, 100, 100), _size(1000, 10, 100, 100)
    ((100, 50), (100, 12))
    """
    scale = min(across / columns, down / rows)
    return tuple(  # type: ignore[return-value]
        max(round(length * scale), min(most, _LEAST)) for length, most in ((columns, across), (rows, down))
    )


def _places(length: int, count: int) -> npt.NDArray[np.intp]:
    """Return which of `length` elements each of `count` pixels shows: that at its centre."""
    return ((np.arange(count) + 0.5) * length / count).astype(np.intp)


def _opaque(picked: AnyArray) -> npt.NDArray[np.uint8]:
    full = np.full((*picked.shape[:2], 1), 255, np.uint8)
    return np.asarray(np.concatenate([picked[..., :3], full], axis=2), np.uint8)


def _document(shown: Shown, limits: Limits | None) -> dict[str, object]:
    """Describe a drawing as plain values, with the elements that it is made of."""
    values = shown.values
    try:
        numbers = numbers_of(values)
    except TypeError:
        numbers = None
    used = limits or (limits_of(numbers) if numbers is not None and values.ndim == 2 else None)
    return {
        "array": shown.array.name,
        "shape": list(shown.array.shape),
        "axes": [{"name": axis.name, "first": text(axis.first), "last": text(axis.last)} for axis in shown.axes],
        "indices": list(shown.indices),
        "notes": list(shown.notes),
        "units": _units(shown) or None,
        "limits": None if used is None else list(used),
        "values": values,
    }
