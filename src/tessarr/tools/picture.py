"""Write a plane of numbers as a PNG file, with only zlib.

>>> import numpy as np
>>> picture = png(colours(np.array([[0.0, 1.0], [np.nan, 2.0]])))
>>> picture[:8], len(picture) < 200
(b'\\x89PNG\\r\\n\\x1a\\n', True)

Source: PNG specification (third edition), sections 5 and 11; the colours follow viridis, by Smith and van der Walt (CC0).
"""

from __future__ import annotations

import struct
import zlib

import numpy as np
import numpy.typing as npt

from tessarr.types import AnyArray

# Viridis at ten evenly spaced points; linear interpolation between them is visually identical.
_VIRIDIS = np.array(
    [
        [68, 1, 84],
        [72, 40, 120],
        [62, 74, 137],
        [49, 104, 142],
        [38, 130, 142],
        [31, 158, 137],
        [53, 183, 121],
        [110, 206, 88],
        [181, 222, 43],
        [253, 231, 37],
    ],
    dtype=np.float64,
)
_DIVERGING = [
    [33, 60, 132],
    [103, 140, 200],
    [190, 206, 230],
    [242, 240, 238],
    [238, 188, 166],
    [212, 104, 86],
    [140, 22, 44],
]
COLOUR_MAPS = {
    "viridis": _VIRIDIS,
    "gray": np.array([[0, 0, 0], [255, 255, 255]], dtype=np.float64),
    "diverging": np.array(_DIVERGING, dtype=np.float64),
}
"""Name → red, green and blue at evenly spaced points."""
_SMALLEST_SIDE = 480
"""Smallest side in pixels; smaller planes are enlarged by a whole number."""


def colours(
    values: AnyArray,
    *,
    limits: tuple[float, float] | None = None,
    missing: object = None,
    map_name: str = "viridis",
) -> npt.NDArray[np.uint8]:
    """Map a plane of numbers to red, green, blue and opacity: shape ``(*values.shape, 4)``.

    `limits` are the values of the first and the last colour; by default the 2nd and 98th percentile, so that a few
    extreme values do not dominate the contrast. NaN, and values equal to `missing`, are transparent. `map_name` is one of
    `COLOUR_MAPS`.
    """
    if values.ndim != 2:
        raise ValueError(f"a picture needs two dimensions, got shape {values.shape}")
    shares = shares_of(values, limits or limits_of(values, missing), missing)
    seen = ~np.isnan(shares)
    points = COLOUR_MAPS[map_name]
    position = np.where(seen, shares, 0) * (len(points) - 1)
    below = np.minimum(position.astype(np.intp), len(points) - 2)
    share = (position - below)[..., np.newaxis]
    pixels = np.empty((*values.shape, 4), dtype=np.uint8)
    pixels[..., :3] = np.rint(points[below] * (1 - share) + points[below + 1] * share)
    pixels[..., 3] = np.where(seen, 255, 0)
    return pixels


def limits_of(values: AnyArray, missing: object = None) -> tuple[float, float]:
    """Return the 2nd and 98th percentile of finite numbers that are not `missing`; 0 and 1 where there are none."""
    seen = values.astype(np.float64)[_is_seen(values, missing)]
    if not seen.size:
        return 0.0, 1.0
    low, high = np.percentile(seen, [2, 98])
    return float(low), float(high)


def shares_of(values: AnyArray, limits: tuple[float, float], missing: object = None) -> npt.NDArray[np.float64]:
    """Return how far each number is from the first to the second of `limits`, between 0 and 1; NaN for what is missing.

    >>> shares_of(np.array([0, 5, 99]), (0, 10)).tolist()
    [0.0, 0.5, 1.0]
    """
    low, high = limits
    seen = _is_seen(values, missing)
    shares = np.clip((np.where(seen, values.astype(np.float64), low) - low) / (float(high - low) or 1.0), 0, 1)
    return np.where(seen, shares, np.nan)


def numbers_of(values: AnyArray) -> AnyArray:
    """Return values as real numbers: the magnitude of complex ones, times as numbers of their unit, with NaN for NaT.

    Raises `TypeError` for elements that are not numbers.
    """
    if values.dtype.kind == "c":
        return np.abs(values)
    if values.dtype.kind in "mM":
        return np.where(np.isnat(values), np.nan, values.astype(np.int64).astype(np.float64))
    if values.dtype.kind not in "biuf" and not np.issubdtype(values.dtype, np.number):
        raise TypeError(f"elements of type {values.dtype} are not numbers")
    return values


def _is_seen(values: AnyArray, missing: object) -> npt.NDArray[np.bool_]:
    seen = np.isfinite(values.astype(np.float64))
    return seen if missing is None else seen & np.asarray(values != missing, bool)


def enlarged(pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Repeat each pixel as a square, so that the shorter side has some hundred pixels."""
    factor = max(1, -(-_SMALLEST_SIDE // max(1, min(pixels.shape[:2]))))
    return pixels.repeat(factor, axis=0).repeat(factor, axis=1)


def png(pixels: npt.NDArray[np.uint8], *, level: int = 9) -> bytes:
    """Encode `pixels`, shape ``(height, width, 4)``, as a PNG file; `level` is that of zlib."""
    height, width = pixels.shape[:2]
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)  # 8 bits; red, green, blue, opacity
    # Filter 2 ("up"): a row as its difference from the one above, which for enlarged pixels is mostly zero.
    rows = pixels.reshape(height, width * 4)
    differences = rows - np.concatenate([np.zeros_like(rows[:1]), rows[:-1]])
    filtered = np.concatenate([np.full((height, 1), 2, dtype=np.uint8), differences], axis=1)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(filtered.tobytes(), level)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
