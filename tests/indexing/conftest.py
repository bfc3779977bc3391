"""An engine of a few lines: an array in memory, in separate chunks, that follows requests and plans to the letter."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from tessarr.grids.base import Axis
from tessarr.indexing.base import Request
from tessarr.indexing.chunk_plan import Parts, plan
from tessarr.indexing.selection import Selection

JUNK = -999


class Chunked:
    """`data` (integers) in chunks along `axes`; what lies beyond the edge holds `JUNK`."""

    def __init__(self, data: np.ndarray[Any, Any], axes: tuple[Axis, ...]) -> None:
        self.axes, self.shape, self.dtype = axes, data.shape, data.dtype
        self.chunks: dict[tuple[int, ...], np.ndarray[Any, Any]] = {}
        for coords in product(*(range(axis.nchunks) for axis in axes)):
            chunk = np.full([a.size(c) for a, c in zip(axes, coords, strict=True)], JUNK, data.dtype)
            where = self._where(coords)
            inside = data[where]
            chunk[tuple(map(slice, inside.shape))] = inside
            self.chunks[coords] = chunk

    def _where(self, coords: tuple[int, ...]) -> tuple[slice, ...]:
        return tuple(slice(a.start(c), a.start(c) + a.size(c)) for a, c in zip(self.axes, coords, strict=True))

    def parts(self, selection: Selection) -> Parts:
        """The plan, after checking what every plan promises."""
        parts = plan(selection, self.axes)
        listed = list(parts)
        assert len(parts) == len(listed)
        assert len({part.coords for part in listed}) == len(listed), "a chunk appears in two parts"
        assert [part.coords for part in listed] == sorted(part.coords for part in listed)
        for part in listed:
            inside = tuple(
                slice(0, min(a.size(c), a.length - a.start(c))) for a, c in zip(self.axes, part.coords, strict=True)
            )
            numbers = np.arange(self.chunks[part.coords].size).reshape(self.chunks[part.coords].shape)
            taken, whole = numbers[part.local.index], numbers[inside]
            assert taken.shape == part.local.shape
            if part.covers:
                assert np.array_equal(taken, whole)
            elif len(part.local.shape) == len(self.axes) > 0 and type(part.local).__name__ == "Outer":
                assert not np.array_equal(taken, whole), "a covering part is not marked"
        return parts

    def read(self, request: Request) -> np.ndarray[Any, Any]:
        """Through a full-rank result; the in-place way is checked to give the same."""
        full = np.full(request.selection.shape, JUNK, self.dtype)
        for part in self.parts(request.selection):
            full[part.out_sel] = self.chunks[part.coords][part.local.index]
        result = request.result(full)
        assert result.shape == request.shape
        assert not full.size or np.shares_memory(result, full), "the result is a copy"
        mine = np.full(request.shape, JUNK, self.dtype)
        view = request.view(mine)
        assert view is not None
        assert view.shape == request.selection.shape
        for part in self.parts(request.selection):
            view[part.out_sel] = self.chunks[part.coords][part.local.index]
        assert np.array_equal(mine, result)
        return result

    def write(self, request: Request, value: Any) -> None:
        """Store `value`, whose chunks are replaced when covered and updated when not."""
        full = request.value(value)
        assert full.shape == request.selection.shape
        for part in self.parts(request.selection):
            self.chunks[part.coords][part.local.index] = full[part.out_sel]

    def whole(self) -> np.ndarray[Any, Any]:
        """The array again, put together without a plan."""
        data = np.full(self.shape, JUNK, self.dtype)
        for coords, chunk in self.chunks.items():
            where = self._where(coords)
            data[where] = chunk[tuple(map(slice, data[where].shape))]
        return data


@pytest.fixture(scope="session")
def chunked() -> Callable[[np.ndarray[Any, Any], tuple[Axis, ...]], Chunked]:
    """`Chunked`."""
    return Chunked
