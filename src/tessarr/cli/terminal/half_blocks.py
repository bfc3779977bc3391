"""Draw a plane of pixels in cells: two pixels per cell in colour, or one per cell by a ramp of characters. Pure.

A cell is about twice as high as it is wide, so that the upper and the lower half of a cell are square pixels: the character
``▀`` has the upper pixel as its colour, and the lower one as its background.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

RAMP = ".:-=+*#%@"
"""Characters of rising share of ink; what is missing is blank."""
_RESET = "\x1b[0m"
_STEPS = np.array([0, 95, 135, 175, 215, 255])

Pixels = npt.NDArray[np.uint8]
"""Red, green, blue and opacity: shape ``(height, width, 4)``. An opacity of 0 is a missing pixel."""


def draw_blocks(pixels: Pixels, colours: int) -> list[str]:
    """Draw pixels by half blocks, two rows of them per line, in 256 or in all colours.

    >>> draw_blocks(np.array([[[255, 0, 0, 255]], [[0, 0, 255, 255]]], np.uint8), 1 << 24)
    ['\\x1b[38;2;255;0;0;48;2;0;0;255m▀\\x1b[0m']
    """
    if len(pixels) % 2:
        pixels = np.concatenate([pixels, np.zeros_like(pixels[:1])])
    codes = _codes(pixels, colours)
    return ["".join(_line(upper, lower)) for upper, lower in zip(codes[::2], codes[1::2], strict=True)]


def draw_ramp(shares: npt.NDArray[np.float64]) -> list[str]:
    """Draw shares between 0 and 1 by characters, one row of them per line; NaN is blank.

    >>> draw_ramp(np.array([[0.0, 0.5, np.nan, 1.0]]))
    ['.+ @']
    """
    places = np.minimum(np.nan_to_num(shares) * len(RAMP), len(RAMP) - 1).astype(np.intp)
    characters = np.where(np.isnan(shares), " ", np.array(list(RAMP))[places])
    return ["".join(row) for row in characters.tolist()]


def _line(upper: list[str], lower: list[str]) -> Iterator[str]:
    """Draw one line of cells; an escape sequence only where the colours change."""
    before = ("", "")
    for pair in zip(upper, lower, strict=True):
        above, below = pair
        if pair != before:
            yield _RESET if before != ("", "") and not (above and below) else ""
            shown = [f"38;{above or below}"] if above or below else []
            shown += [f"48;{below}"] if above and below else []
            yield f"\x1b[{';'.join(shown)}m" if shown else ""
            before = pair
        yield " " if not above and not below else "▀" if above else "▄"
    if before != ("", ""):
        yield _RESET


def _codes(pixels: Pixels, colours: int) -> list[list[str]]:
    """Return the parameters of each pixel's colour; an empty text for a missing one."""
    if colours == 256:
        texts = [[f"5;{code}" for code in row] for row in nearest_256(pixels).tolist()]
    else:
        texts = [[f"2;{red};{green};{blue}" for red, green, blue, _ in row] for row in pixels.tolist()]
    seen = (pixels[..., 3] > 0).tolist()
    return [[text if shown else "" for text, shown in zip(*row, strict=True)] for row in zip(texts, seen, strict=True)]


def nearest_256(pixels: Pixels) -> npt.NDArray[np.intp]:
    """Return the nearest of xterm's colours 16 to 255: a cube of 6 × 6 × 6, and 24 grays.

    >>> nearest_256(np.array([[[255, 0, 0, 255], [118, 118, 118, 255]]], np.uint8)).tolist()
    [[196, 243]]
    """
    rgb = pixels[..., :3].astype(np.intp)
    cube = np.abs(rgb[..., np.newaxis] - _STEPS).argmin(axis=-1)
    gray = np.clip((rgb.sum(axis=-1) // 3 - 3) // 10, 0, 23)
    far_cube = ((_STEPS[cube] - rgb) ** 2).sum(axis=-1)
    far_gray = ((8 + 10 * gray[..., np.newaxis] - rgb) ** 2).sum(axis=-1)
    return np.asarray(np.where(far_gray < far_cube, 232 + gray, 16 + cube @ np.array([36, 6, 1])), np.intp)
