"""Draw a line in cells: by braille characters of 2 × 4 dots, or by ASCII, three places per cell. Pure.

Where there are more values than columns of dots, a column shows the range of its values, so that no peak is lost.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_BRAILLE = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
"""Bit of each dot of U+2800, four rows of two."""
_ASCII = {0: " ", 1: "'", 2: "-", 4: "."}
"""Character of a cell by which of its three places are drawn: 1 the upper, 2 the middle, 4 the lower one; else a bar."""


def draw_line(values: Floats, limits: tuple[float, float], columns: int, rows: int, has_unicode: bool) -> list[str]:
    """Draw values from left to right, the first of `limits` at the bottom, the second at the top; NaN leaves a gap.

    >>> draw_line(np.array([0.0, 1.0, 2.0]), (0, 2), 3, 1, False)
    [".-'"]
    >>> draw_line(np.array([0.0, 3.0]), (0, 3), 1, 1, True)
    ['⡸']
    """
    across, upward = (2, 4) if has_unicode else (1, 3)
    low, high = _ranges(values, columns * across)
    dots = _dots(low, high, limits, rows * upward)
    cells = dots.reshape(rows, upward, columns, across).transpose(0, 2, 1, 3)
    if has_unicode:
        bits = (cells * _BRAILLE).sum(axis=(2, 3))
        return ["".join(chr(0x2800 + bit) if bit else " " for bit in row) for row in bits.tolist()]
    bits = (cells[..., 0] * np.array([1, 2, 4])).sum(axis=2)
    return ["".join(_ASCII.get(bit, "|") for bit in row) for row in bits.tolist()]


def _ranges(values: Floats, count: int) -> tuple[Floats, Floats]:
    """Return the lowest and the highest value in each of `count` columns; of few values, lines between neighbours."""
    if len(values) < 2 * count:
        places = np.linspace(0, len(values) - 1, count)
        below = np.floor(places).astype(np.intp)
        share = places - below
        above = np.minimum(below + 1, len(values) - 1)
        line = np.where(share == 0, values[below], values[below] * (1 - share) + values[above] * share)
        return line, line
    starts = np.arange(count) * len(values) // count
    return np.fmin.reduceat(values, starts), np.fmax.reduceat(values, starts)


def _dots(low: Floats, high: Floats, limits: tuple[float, float], height: int) -> npt.NDArray[np.bool_]:
    """Return which dots are drawn, from top to bottom; a column reaches as far as it takes to touch the one before it."""
    least, most = limits
    scale = (height - 1) / ((most - least) or 1.0)
    bottom, top = (np.rint(np.clip((edge - least) * scale, -1, height)) for edge in (low, high))
    before_top, before_bottom = (np.concatenate([edge[:1], edge[:-1]]) for edge in (top, bottom))
    lowest, highest = np.fmin(bottom, before_top + 1), np.fmax(top, before_bottom - 1)
    row = np.arange(height - 1, -1, -1)[:, np.newaxis]
    return np.asarray((row >= lowest) & (row <= highest) & ~np.isnan(bottom), bool)
