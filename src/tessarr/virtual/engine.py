"""The engine of virtual arrays: it reads the elements of a selection from the arrays that hold them, all in one batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tessarr.core.array_parts.read_many import ArrayRead, carry_out, carry_out_async
from tessarr.engine.bound import BoundArray
from tessarr.engine.reference.engine import ReferenceEngine
from tessarr.indexing.base import Request
from tessarr.indexing.selection import IndexArray, Outer, Points, Selection
from tessarr.types import AnyArray, Shape

if TYPE_CHECKING:
    from tessarr.core.array_parts.lazy_view import View


class Piece(NamedTuple):
    """A view, and the position of its first element in the virtual array."""

    start: Shape
    view: View


class VirtualEngine(ReferenceEngine):
    """Reads a virtual array of `pieces`. `tiles`: they cover each of its elements exactly once; else the last one counts.

    Reads of chunks (`plan_read`) are those of the reference engine, from the store. Virtual arrays are read-only.
    """

    name = "virtual"

    def __init__(self, pieces: Sequence[Piece], *, tiles: bool) -> None:
        self.pieces = tuple(pieces)
        self.tiles = tiles
        rank = len(pieces[0].start)
        self._starts = np.array([piece.start for piece in pieces], np.int64).reshape(-1, rank)
        self._stops = self._starts + np.array([piece.view.shape for piece in pieces], np.int64).reshape(-1, rank)

    def read(self, bound: BoundArray, selection: Selection, out: AnyArray) -> None:
        reads: list[ArrayRead] = []
        steps = [*self._plan(bound, selection, out, reads)]
        carry_out(reads)
        for step in steps:
            step()

    async def read_async(self, bound: BoundArray, selection: Selection, out: AnyArray) -> None:
        reads: list[ArrayRead] = []
        steps = [*self._plan(bound, selection, out, reads)]
        await carry_out_async(reads)
        for step in steps:
            step()

    def _touched(self, selection: Selection) -> list[Piece]:
        """Return the pieces in the bounding box of a selection that is not empty, in order."""
        dims = selection.dims if isinstance(selection, Outer) else selection.coords
        low = np.array([d.start if isinstance(d, slice) else d.min() for d in dims], np.int64)
        high = np.array([d.stop if isinstance(d, slice) else d.max() + 1 for d in dims], np.int64)
        found = ((self._starts < high) & (self._stops > low)).all(axis=1)
        return [self.pieces[index] for index in np.flatnonzero(found)]

    def _plan(
        self, bound: BoundArray, selection: Selection, out: AnyArray, reads: list[ArrayRead]
    ) -> Iterator[Callable[[], object]]:
        """Append to `reads` what is needed to fill `out`; return the steps to take after that, in order.

        The elements of a piece are read into `out` itself where they are a box there that no other piece fills. A piece of
        another virtual array is taken apart, so that its arrays are read in the same batch.
        """
        if not self.tiles:
            out[...] = bound.fill
        touched = self._touched(selection) if out.size else []
        alone = self.tiles or len(touched) == 1
        for piece in touched:
            place, inner = within(selection, piece)
            if 0 in inner.shape:
                continue
            direct = alone and all(isinstance(one, slice) for one in place)
            part = out[place] if direct else np.empty(inner.shape, out.dtype)
            read = ArrayRead.of_view(piece.view, Request(inner, inner.shape), part)
            engine = read.array._engine
            if isinstance(engine, VirtualEngine):
                yield from engine._plan(read.bound, read.request.selection, read.full, reads)
            else:
                reads.append(read)
            yield read.result
            if not direct:
                yield partial(out.__setitem__, Outer(place).index if isinstance(selection, Outer) else place, part)


def within(selection: Selection, piece: Piece) -> tuple[tuple[slice | IndexArray, ...], Selection]:
    """Return which part of a selection is in a piece: its place in the selection's result, and the selection in the piece.

    >>> from types import SimpleNamespace
    >>> piece = Piece((4,), SimpleNamespace(shape=(3,)))
    >>> within(Outer((slice(1, 10, 2),)), piece)
    ((slice(2, 3, 1),), Outer(dims=(slice(1, 2, 2),)))
    """
    if isinstance(selection, Points):
        offsets = [one - start for one, start in zip(selection.coords, piece.start, strict=True)]
        inside = [(one >= 0) & (one < n) for one, n in zip(offsets, piece.view.shape, strict=True)]
        at = np.flatnonzero(np.logical_and.reduce(inside))
        return (at,), Points(tuple(one[at] for one in offsets))
    place: list[slice | IndexArray] = []
    dims: list[slice | IndexArray] = []
    for dim, start, length in zip(selection.dims, piece.start, piece.view.shape, strict=True):
        if isinstance(dim, slice):
            count = (dim.stop - dim.start + dim.step - 1) // dim.step
            offset = dim.start - start
            first = max(0, -(offset // dim.step))
            stop = max(first, min(count, -((offset - length) // dim.step)))
            place.append(slice(first, stop, 1))
            last = offset + (stop - 1) * dim.step
            dims.append(slice(offset + first * dim.step, last + 1, dim.step) if stop > first else slice(0, 0, 1))
        else:
            at = np.flatnonzero((dim >= start) & (dim < start + length))
            place.append(at)
            dims.append(dim[at] - start)
    return tuple(place), Outer(tuple(dims))
