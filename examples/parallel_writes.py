"""Write one array from several processes at once, without lining the parts up with chunks: nothing is lost.

python examples/parallel_writes.py [FOLDER]
"""

from __future__ import annotations

import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import tessarr

ROWS, PART = 1000, 70  # parts of 70 rows over chunks of 100: most chunks are written by two processes


def fill(place: str, start: int) -> int:
    """Write the rows of one part; returns how many."""
    array = tessarr.open_array(place, mode="r+")
    stop = min(start + PART, ROWS)
    array[start:stop] = np.arange(start, stop)[:, np.newaxis]
    return stop - start


def main(folder: Path) -> None:
    """Create the array, let the processes fill it, look at it."""
    place = str(folder / "rows.zarr")
    tessarr.create_array(place, shape=(ROWS, 50), chunks=(100, 50), shards=(500, 50), dtype="int32", overwrite=True)
    starts = range(0, ROWS, PART)
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as processes:
        written = sum(processes.map(fill, [place] * len(starts), starts))
    values = tessarr.open_array(place, mode="r")[...]
    print(f"{written} rows written, all as they should be: {bool((values == np.arange(ROWS)[:, np.newaxis]).all())}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as scratch:
            main(Path(scratch))
