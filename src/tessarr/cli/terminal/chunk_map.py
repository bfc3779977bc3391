"""Draw which values (chunks or shards) of a grid are stored, as characters. Pure.

The last two axes are drawn; a character stands for a block of them where there are more than cells, and for all places
along the axes before them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

import numpy as np

from tessarr.types import Coords


def draw_map(
    stored: Iterable[Coords], grid: Sequence[int], columns: int, rows: int, has_unicode: bool
) -> tuple[list[str], str]:
    """Draw a map of at most `columns` × `rows` cells; return its lines, and a sentence that explains them.

    `stored` are the coords of the stored values, `grid` their number along each axis.

    >>> draw_map([(0, 0), (0, 1), (1, 1)], (2, 2), 80, 20, has_unicode=False)
    (['##', '.#'], '# stored, . missing')
    """
    plane = (1, 1, *grid)[-2:]
    block = tuple(-(-count // most) for count, most in zip(plane, (rows, columns), strict=True))
    shape = tuple(-(-count // step) for count, step in zip(plane, block, strict=True))
    counts = np.zeros(shape, np.int64)
    for coords in stored:
        down, right = (0, 0, *coords)[-2:]
        counts[down // block[0], right // block[1]] += 1
    heights, widths = (
        np.minimum(step, count - np.arange(length) * step)
        for count, step, length in zip(plane, block, shape, strict=True)
    )
    whole = np.outer(heights, widths) * prod(grid[:-2])
    full, part, none = "█▒·" if has_unicode else "#+."
    cells = np.where(counts == 0, none, np.where(counts >= whole, full, part))
    said = [f"{full} stored", f"{none} missing"]
    if part in cells:
        said.insert(1, f"{part} partly")
    covered = [*map(str, grid[:-2]), *(str(step) for step in block)]
    each = prod(block) * prod(grid[:-2])
    more = [f"a character is {' × '.join(covered)} = {each:,} of them"] if each > 1 else []
    return ["".join(row) for row in cells.tolist()], ", ".join([*said, *more])
