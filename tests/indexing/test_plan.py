"""What a plan promises beyond the equality with NumPy that test_request shows."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessarr.grids.rectilinear import RectilinearGrid
from tessarr.grids.regular import RegularGrid
from tessarr.indexing.chunk_plan import OuterParts, Part, _cut_run, _cut_slice, plan
from tessarr.indexing.request import basic
from tessarr.indexing.selection import Outer, Points


def parts(selection: Outer | Points, *lengths: tuple[int, int]) -> list[Part]:
    """The parts of `selection` of an array with the given (axis length, chunk length) pairs."""
    shape, chunks = zip(*lengths, strict=True) if lengths else ((), ())
    return list(plan(selection, RegularGrid(chunks).axes(shape)))


def test_a_box_is_cut_at_chunk_boundaries() -> None:
    first, second = parts(Outer((slice(2, 6, 1),)), (8, 4))
    assert (first.coords, first.out_sel, first.covers) == ((0,), (slice(0, 2, 1),), False)
    assert first.local.index == (slice(2, 4, 1),)
    assert (second.coords, second.out_sel, second.covers) == ((1,), (slice(2, 4, 1),), False)
    assert second.local.index == (slice(0, 2, 1),)


@pytest.mark.spec("V3-GRID-07")
def test_a_0d_array_is_one_covered_part() -> None:
    (part,) = parts(Outer(()))
    assert (part.coords, part.out_sel, part.covers, part.local.index) == ((), (), True, ())


@pytest.mark.spec("V3-GRID-08", "V2-17")
def test_an_empty_axis_has_no_parts() -> None:
    assert parts(basic(..., (0, 4)).selection, (0, 1), (4, 2)) == []
    assert parts(Points((np.zeros(0, np.int64),) * 2), (0, 1), (4, 2)) == []
    assert parts(Outer((np.zeros(0, np.int64), slice(0, 4, 1))), (5, 2), (4, 2)) == []


@pytest.mark.spec("V2-18", "V2-44")
@pytest.mark.parametrize(
    ("dim", "covers"),
    [
        (slice(0, 5, 1), True),
        (np.arange(5), True),
        (slice(0, 4, 1), False),
        (slice(1, 5, 1), False),
        (np.arange(5)[::-1], False),
        (np.array([0, 1, 2, 3, 4, 4]), False),
        (np.array([0, 1, 3, 2, 4]), False),
    ],
)
def test_the_part_of_a_chunk_beyond_the_array_does_not_count_for_covering(dim: Any, covers: bool) -> None:
    (part,) = parts(Outer((dim,)), (5, 10))
    assert part.covers is covers


@given(st.data(), st.integers(1, 7), st.integers(2, 40))
def test_a_run_of_chunks_is_cut_as_any_slice_is(data: st.DataObject, size: int, length: int) -> None:
    start = data.draw(st.integers(0, length - 1))
    stop = data.draw(st.integers(start + 1, length))
    axis = RegularGrid((size,)).axes((length,))[0]
    if stop - start > size:
        run = _cut_run(start, stop, size, length)
        assert [list(field) for field in run] == [list(field) for field in _cut_slice(slice(start, stop, 1), axis)]


@given(st.data(), st.integers(1, 9), st.integers(1, 20), st.integers(1, 4))
def test_a_box_in_one_chunk_is_cut_as_any_box_is(data: st.DataObject, size: int, length: int, step: int) -> None:
    axis = RegularGrid((size,)).axes((length,))[0]
    start = data.draw(st.integers(0, length - 1))
    stop = data.draw(st.integers(start + 1, min(length, (start // size + 1) * size)))
    count = len(range(start, stop, step))
    dim = slice(start, start + (count - 1) * step + 1, step if count > 1 else 1)
    (one,), (any_,) = plan(Outer((dim, dim)), (axis, axis)), OuterParts([_cut_slice(dim, axis)] * 2)
    assert isinstance(one.local, Outer)
    assert isinstance(any_.local, Outer)
    assert one.local.dims == any_.local.dims
    assert one._replace(local=any_.local) == any_


def test_a_selection_has_as_many_axes_as_the_grid() -> None:
    axes = RegularGrid((2, 2)).axes((4, 4))
    one = np.zeros(1, np.int64)
    for selection in (Outer((slice(0, 1, 1),)), Outer((one,)), Points((one,))):
        with pytest.raises(ValueError, match="zip"):
            plan(selection, axes)


def test_points_of_a_grid_with_more_chunks_than_int64_counts_are_grouped_in_order() -> None:
    rows, columns = np.array([2**32 - 1, 0, 2**32 - 1, 7, 0]), np.array([2**31, 5, 2**31, 2**31 + 1, 5])
    for high in (31, 32, 40):
        found = parts(Points((rows, columns * 2 ** (high - 31))), (2**32, 1), (2**62, 1))
        assert [part.coords for part in found] == [
            (0, 5 * 2 ** (high - 31)), (7, (2**31 + 1) * 2 ** (high - 31)), (2**32 - 1, 2**high)
        ]  # fmt: skip
        assert [part.out_sel[0].tolist() for part in found] == [[1, 4], [3], [0, 2]]


@pytest.mark.parametrize(
    "coords",
    [
        [(0, 0), (0, 7), (2**60, 0)],
        [(0, 0), (0, 7), (2**61, 0)],  # a row is so high that one of eight chunks is counted beyond int64
        [(0, 2**62 - 2), (5, 2**62 - 2), (5, 2**62 - 1)],  # columns are so high that they are counted from the lowest
    ],
)
def test_chunks_far_away_stay_apart_and_in_order(coords: list[tuple[int, int]]) -> None:
    rows, columns = np.array(coords[::-1]).T
    found = parts(Points((rows, columns)), (2**62, 1), (2**62, 1))
    assert [part.coords for part in found] == coords


def test_a_chunk_met_again_later_is_still_one_part() -> None:
    found = parts(Outer((np.array([9, 0, 8, 1, 9]),)), (10, 5))
    assert [part.coords for part in found] == [(0,), (1,)]
    low, high = (part.local.index[0] for part in found)
    assert low == slice(0, 2, 1)
    assert high.tolist() == [4, 3, 4]
    assert [part.out_sel[0].tolist() for part in found] == [[1, 3], [0, 2, 4]]


def test_sorted_indices_go_to_slices_of_the_result() -> None:
    found = parts(Outer((np.array([0, 3, 5, 6, 9]),)), (10, 5))
    assert [part.out_sel for part in found] == [(slice(0, 2, 1),), (slice(2, 5, 1),)]
    found = parts(Points((np.array([0, 3, 5, 6, 9]),)), (10, 5))
    assert [part.out_sel for part in found] == [(slice(0, 2, 1),), (slice(2, 5, 1),)]
    assert [part.covers for part in found] == [False, False]


def test_a_wide_step_leaps_over_chunks() -> None:
    found = parts(Outer((slice(0, 91, 30),)), (100, 10))
    assert [part.coords for part in found] == [(0,), (3,), (6,), (9,)]
    assert all(part.local.index == (slice(0, 1, 1),) for part in found)


def test_of_repeated_points_the_last_write_wins() -> None:
    chunk = np.zeros((4, 4), int)
    points = Points((np.array([1, 5, 1, 1]), np.array([2, 2, 2, 2])))
    value = np.array([10, 20, 30, 40])
    for part in parts(points, (8, 4), (4, 4)):
        if part.coords == (0, 0):
            chunk[part.local.index] = value[part.out_sel]
    assert chunk[1, 2] == 40


def test_of_many_repeated_indices_the_last_write_wins() -> None:
    """Enough of them that an unstable sort would show."""
    rows, columns = np.random.default_rng(0).integers(0, 40, (2, 5000))
    value = np.arange(5000)
    expected, ours = np.zeros((2, 40, 40), int)
    expected[rows, columns] = value
    for part in parts(Points((rows, columns)), (40, 8), (40, 8)):
        i, j = (8 * k for k in part.coords)
        ours[i : i + 8, j : j + 8][part.local.index] = value[part.out_sel]
    assert np.array_equal(ours, expected)
    line, mine = np.zeros((2, 40), int)
    line[rows] = value
    for part in parts(Outer((rows,)), (40, 8)):
        mine[8 * part.coords[0] :][part.local.index] = value[part.out_sel]
    assert np.array_equal(mine, line)


def test_only_the_parts_taken_whole_cover() -> None:
    assert [part.covers for part in parts(Outer((slice(0, 35, 1),)), (40, 10))] == [True, True, True, False]
    assert [part.covers for part in parts(Outer((slice(3, 40, 1),)), (40, 10))] == [False, True, True, True]


@pytest.mark.parametrize("size", [1, 3, 2**40])
def test_the_size_of_the_grid_does_not_matter(size: int) -> None:
    length = 2**62
    found = parts(Outer((slice(length - 3, length, 1), np.array([length - 1, 0]))), (length, size), (length, size))
    assert sum(np.prod(part.local.shape) for part in found) == 6
    last = np.array([length - 1, 0, length - 1])
    found = parts(Points((last, last, last)), *[(length, size)] * 3)
    assert [part.coords for part in found] == [(0, 0, 0), ((length - 1) // size,) * 3]
    assert [part.local.shape for part in found] == [(1,), (2,)]


@given(st.lists(st.tuples(*[st.integers(0, 2**62 - 1)] * 3), min_size=1, max_size=30))
def test_points_of_grids_beyond_int64_are_grouped_rightly(points: list[tuple[int, int, int]]) -> None:
    coords = tuple(np.array(axis, np.int64) for axis in zip(*points, strict=True))
    found = parts(Points(coords), *[(2**62, 2**61)] * 3)
    again: dict[int, tuple[int, ...]] = {}
    for part in found:
        where = np.arange(len(points))[part.out_sel]
        for k, local in zip(where, zip(*part.local.index, strict=True), strict=True):
            again[int(k)] = tuple(c * 2**61 + int(x) for c, x in zip(part.coords, local, strict=True))
    assert [again[k] for k in range(len(points))] == points
    assert len({part.coords for part in found}) == len(found)
    assert [part.coords for part in found] == sorted(part.coords for part in found)


def test_parts_of_a_box_are_made_while_iterated() -> None:
    axes = RegularGrid((1, 1)).axes((1000, 1000))
    tracemalloc.start()
    try:
        found = plan(Outer((slice(0, 1000, 1), slice(0, 1000, 1))), axes)
        assert len(found) == 10**6
        next(iter(found))
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_a_plan_can_be_iterated_again() -> None:
    found = plan(Outer((slice(0, 9, 1),)), RegularGrid((2,)).axes((9,)))
    assert [part.coords for part in found] == [part.coords for part in found]
    assert len(list(found)) == len(found) == 5


def test_varied_chunks_are_cut_where_they_end() -> None:
    axes = RectilinearGrid([[1, 2, [3, 2]]]).axes((8,))
    found = list(plan(Outer((slice(0, 8, 1),)), axes))
    assert [part.out_sel[0] for part in found] == [slice(0, 1, 1), slice(1, 3, 1), slice(3, 6, 1), slice(6, 8, 1)]
    assert [part.covers for part in found] == [True] * 4
