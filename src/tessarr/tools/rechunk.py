"""Values from one chunking to another, in bounded memory, and whether they arrived.

`transfer` moves an array in boxes. A box is made of whole stored chunks of the target, so that nothing is written twice;
where memory allows it is also made of whole chunks of the source, so that nothing is read twice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from itertools import product
from math import lcm, prod
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tessarr.core import copy as copying
from tessarr.core.array import Array
from tessarr.errors import BaseZarrError
from tessarr.types import Shape

if TYPE_CHECKING:
    from tessarr.tools.convert import Report

Box: TypeAlias = tuple[slice, ...]
"""A slice with start and stop per axis."""

PIECE_NBYTES = 64 << 20
"""About so much is held in memory at once, or one stored chunk of the target where that is more."""

Read: TypeAlias = Callable[[Box], npt.NDArray[Any]]
Done: TypeAlias = Callable[[int], None]
"""Called with the number of elements that are done."""


def box_shape(shape: Shape, write: Shape, read: Shape | None, itemsize: int, nbytes: int = PIECE_NBYTES) -> Shape:
    """The shape of boxes in which to move values: whole chunks of `write`, and of `read` as far as `nbytes` allows.

    >>> box_shape((100, 100), (10, 100), (100, 10), 8)
    (100, 100)
    >>> box_shape((100, 100), (10, 100), (100, 10), 8, nbytes=16_000)
    (20, 100)
    """
    box = [max(1, size) for size in write]
    if 0 in shape:
        return tuple(box)

    def fits(candidate: Iterable[int]) -> bool:
        return prod(min(n, size) for n, size in zip(shape, candidate, strict=True)) * itemsize <= nbytes

    for axis, size in reversed(list(enumerate(read or ()))):
        aligned = min(lcm(box[axis], max(1, size)), -(-shape[axis] // box[axis]) * box[axis])
        if fits([*box[:axis], aligned, *box[axis + 1 :]]):
            box[axis] = aligned
    for axis in reversed(range(len(box))):
        whole = -(-shape[axis] // box[axis])
        rest = prod(min(n, size) for n, size in zip(shape, box, strict=True)) * itemsize
        grown = min(whole, max(1, nbytes // max(1, rest))) * box[axis]
        if fits([*box[:axis], grown, *box[axis + 1 :]]):
            box[axis] = grown
    return tuple(box)


def boxes(array: Array, read: Shape | None, nbytes: int = PIECE_NBYTES) -> Iterator[Box]:
    """Boxes that tile `array`, for reading from chunks of shape `read` (``None``: from anywhere)."""
    if array._metadata.chunk_grid.chunk_shape is None:
        yield from copying.boxes(array, nbytes)
        return
    steps = box_shape(array.shape, array._metadata.chunks, read, max(1, array.dtype.itemsize), nbytes)
    for starts in product(*(range(0, n, step) for n, step in zip(array.shape, steps, strict=True))):
        yield tuple(
            slice(start, min(start + step, n)) for start, step, n in zip(starts, steps, array.shape, strict=True)
        )


def transfer(
    read: Read,
    target: Array,
    *,
    chunks: Shape | None = None,
    jobs: int = 1,
    parallel: bool = True,
    done: Done | None = None,
) -> None:
    """Write what `read` gives into `target`, `jobs` boxes at a time; with ``parallel=False`` reads wait for each other."""
    turn = _turn(parallel)

    def move(box: Box) -> int:
        with turn:
            values = read(box)
        target[box or ...] = values
        return int(values.size)

    _each(move, boxes(target, chunks, PIECE_NBYTES // jobs), jobs, done)


def verify(
    read: Read,
    target: Array,
    *,
    chunks: Shape | None = None,
    jobs: int = 1,
    parallel: bool = True,
    done: Done | None = None,
) -> None:
    """Read both sides again and compare them bit by bit. Raises `BaseZarrError` at the first box that differs."""
    turn = _turn(parallel)

    def compare(box: Box) -> int:
        with turn:
            values = read(box)
        stored = values_in(target, box)
        if not identical(values, stored):
            raise BaseZarrError(
                "the values read back differ from the source",
                store=target.store.url,
                path=target.name,
                got=f"a difference in [{', '.join(f'{part.start}:{part.stop}' for part in box)}]",
                hint="A lossy codec changes values by intent: verify=False (--no-verify) then skips this comparison",
            )
        return int(stored.size)

    _each(compare, boxes(target, chunks, PIECE_NBYTES // jobs), jobs, done)


def _turn(parallel: bool) -> AbstractContextManager[Any]:
    return nullcontext() if parallel else Lock()


def _silent(_size: int) -> None:
    """Nobody listens."""


def _each(work: Callable[[Box], int], over: Iterator[Box], jobs: int, done: Done | None) -> None:
    """Run `work` on every box, at most `jobs` at once; the first error ends it."""
    tell = done or _silent
    if jobs <= 1:
        for box in over:
            tell(work(box))
        return
    running: deque[Future[int]] = deque()
    with ThreadPoolExecutor(jobs) as pool:
        try:
            for box in over:
                running.append(pool.submit(work, box))
                if len(running) >= jobs:
                    tell(running.popleft().result())
            while running:
                tell(running.popleft().result())
        finally:
            for waiting in running:
                waiting.cancel()


def values_in(array: Array, box: Box) -> npt.NDArray[Any]:
    """The values of a box as an array of the array's dtype. NumPy would make another one of what a 0-d array gives."""
    value = array[box or ...]
    if isinstance(value, np.ndarray) and value.shape == tuple(part.stop - part.start for part in box):
        return value
    made = np.empty((), array.dtype)
    made[()] = value
    return made


def identical(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> bool:
    """Whether two arrays hold the same values to the bit; byte order and the padding of records do not count.

    >>> import numpy as np
    >>> identical(np.array([0.0]), np.array([-0.0])), identical(np.array([np.nan], ">f4"), np.array([np.nan], "<f4"))
    (False, True)
    """
    if a.shape != b.shape:
        return False
    if a.dtype.names is not None or b.dtype.names is not None:
        if a.dtype.names is None or b.dtype.names is None or len(a.dtype.names) != len(b.dtype.names):
            return False
        return all(identical(a[one], b[other]) for one, other in zip(a.dtype.names, b.dtype.names, strict=True))
    if a.dtype.kind in "OT" or b.dtype.kind in "OT":
        return all(same_value(x, y) for x, y in zip(a.reshape(-1).tolist(), b.reshape(-1).tolist(), strict=True))
    if a.dtype.newbyteorder("=") != b.dtype.newbyteorder("="):
        return False
    return _native(a).tobytes() == _native(b).tobytes()


def _native(a: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return a if a.dtype.isnative else a.astype(a.dtype.newbyteorder("="))


def same_value(x: object, y: object) -> bool:
    """Whether two elements of object arrays are the same; rows (arrays) to the bit."""
    if isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
        return identical(x, y)
    return x == y or (x != x and y != y)  # only NaN differs from itself


def rechunk(
    source: Any,
    dest: Any,
    *,
    chunks: Any,
    shards: Any = None,
    overwrite: bool = False,
    jobs: int = 1,
) -> Report:
    """Store an array, or every array of a hierarchy, anew with other chunks; all else is kept, and the result is verified.

    `source` and `dest` are what `tessarr.open` takes; they may be one place with `overwrite`, since the new data takes its
    place only when it is complete.
    """
    from tessarr.tools.convert import convert

    return convert(source, dest, chunks=chunks, shards=shards, zarr_format="keep", overwrite=overwrite, jobs=jobs)
