"""``array[selection]`` selects what zarr-python selects, wherever zarr-python selects anything.

Where zarr-python refuses, tessarr must do what NumPy does, or refuse with a typed error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessarr.errors import ArrayIndexError
from tessarr.grids.regular import RegularGrid
from tessarr.indexing.request import Request, block, getitem, orthogonal, vindex

zarr = pytest.importorskip("zarr", reason="zarr-python is the other side of this comparison")

SHAPES = [(7,), (4, 6), (3, 4, 5), ()]
CHUNKS = [(3,), (3, 4), (2, 3, 2), ()]
DATA = [np.arange(int(np.prod(shape))).reshape(shape) for shape in SHAPES]


@pytest.fixture(scope="module")
def theirs() -> list[Any]:
    """`DATA` as zarr-python arrays."""
    arrays = []
    for data, chunks in zip(DATA, CHUNKS, strict=True):
        array = zarr.create_array({}, shape=data.shape, chunks=chunks, dtype=data.dtype)
        array[...] = data
        arrays.append(array)
    return arrays


@st.composite
def items(draw: st.DrawFn, length: int) -> Any:
    """Anything one could write for an axis of `length`."""
    positions = st.integers(-length, length - 1)
    several = st.lists(positions, max_size=4)
    masks = st.lists(st.booleans(), min_size=length, max_size=length)
    bound = st.none() | st.integers(-length - 1, length + 1)
    return draw(
        st.one_of(
            positions,
            positions.map(np.int64),
            positions.map(np.array),
            st.builds(slice, bound, bound, st.none() | st.sampled_from([1, 2, 3, -1, -2])),
            several,
            several.map(lambda v: np.array(v, np.int32)),
            st.lists(st.integers(0, length - 1), max_size=4).map(lambda v: np.array(v, np.uint64)),
            masks,
            masks.map(np.array),
            st.lists(positions, min_size=4, max_size=4).map(lambda v: np.array(v).reshape(2, 2)),
            st.lists(positions, min_size=2, max_size=2).map(lambda v: np.array(v).reshape(2, 1)),
            st.just(...),
        )
    )


@st.composite
def selections(draw: st.DrawFn) -> tuple[int, Any]:
    """Which array, and what to select from it."""
    which = draw(st.sampled_from(range(3)))
    shape = SHAPES[which]
    if draw(st.integers(0, 9)) == 0:
        bits = draw(st.lists(st.booleans(), min_size=DATA[which].size, max_size=DATA[which].size))
        return which, np.array(bits).reshape(shape)
    count = draw(st.integers(1, len(shape)))
    chosen = tuple(draw(items(shape[axis])) for axis in range(count))
    return which, chosen[0] if count == 1 and draw(st.booleans()) else chosen


def select(data: np.ndarray[Any, Any], request: Request) -> np.ndarray[Any, Any]:
    """What `request` selects from an array in memory."""
    return request.result(np.ascontiguousarray(data[request.selection.index]).reshape(request.selection.shape))


def own(selection: Any) -> Any:
    """`selection` for zarr-python: a copy, because it wraps negative positions around in the user's own array, and
    with signed positions, because 3.1 fails on uint64 ones in most places."""
    if isinstance(selection, tuple):
        return tuple(own(item) for item in selection)
    if isinstance(selection, np.ndarray):
        return selection.astype(np.int64) if selection.dtype.kind == "u" else selection.copy()
    return selection


def compare(
    theirs: Callable[[Any], Any], form: Callable[[Any], Request], data: np.ndarray[Any, Any], selection: Any
) -> bool:
    """Compare one selection; whether zarr-python accepts it."""
    try:
        expected = np.asarray(theirs(own(selection)))
    except Exception:  # it refuses with many types, AttributeError and TypeError among them
        return False
    ours = select(data, form(selection))
    assert ours.shape == expected.shape, selection
    assert np.array_equal(ours, expected), selection
    return True


@settings(max_examples=600)
@given(selections())
def test_getitem_selects_the_same_and_otherwise_what_numpy_does(theirs: list[Any], drawn: tuple[int, Any]) -> None:
    which, selection = drawn
    data = DATA[which]
    if compare(theirs[which].__getitem__, lambda s: getitem(s, data.shape), data, selection):
        return
    try:
        expected = data[selection]
    except IndexError:
        with pytest.raises(ArrayIndexError):
            getitem(selection, data.shape)
        return
    try:
        request = getitem(selection, data.shape)
    except ArrayIndexError:
        pytest.fail(f"NumPy selects {selection!r} and tessarr refuses")
    assert np.array_equal(select(data, request), expected), selection


@settings(max_examples=200)
@given(selections())
def test_oindex_selects_the_same(theirs: list[Any], drawn: tuple[int, Any]) -> None:
    which, selection = drawn
    compare(theirs[which].oindex.__getitem__, lambda s: orthogonal(s, SHAPES[which]), DATA[which], selection)


@settings(max_examples=200)
@given(selections())
def test_vindex_selects_the_same(theirs: list[Any], drawn: tuple[int, Any]) -> None:
    which, selection = drawn
    compare(theirs[which].vindex.__getitem__, lambda s: vindex(s, SHAPES[which]), DATA[which], selection)


@pytest.mark.parametrize(
    "selection", [0, -1, (1, 1), (slice(1), 0), slice(1, None), (..., -1), (slice(0, 2), slice(1, 2))]
)
def test_blocks_selects_the_same(theirs: list[Any], selection: Any) -> None:
    axes = RegularGrid(CHUNKS[1]).axes(SHAPES[1])
    assert compare(theirs[1].blocks.__getitem__, lambda s: block(s, axes), DATA[1], selection)


@pytest.mark.parametrize("selection", [(), ..., (...,)])
def test_0d_arrays_select_the_same(theirs: list[Any], selection: Any) -> None:
    assert compare(theirs[3].__getitem__, lambda s: getitem(s, ()), DATA[3], selection)


def test_enough_selections_are_accepted_by_zarr_python(theirs: list[Any]) -> None:
    """Else the comparisons above would say nothing."""
    accepted = [
        ([0, 2], [1, 3]),
        (0, [1, 3]),
        (slice(None), [1, 3]),
        (np.array([True, False, True, False]), [0, 1, 2]),
        (np.array([True, False, True, False]), slice(1, 5, 2)),
        ([[0, 1], [2, 3]], 1),
        (np.array([[0], [1]]), np.array([[0, 1]])),
        DATA[1] % 3 == 0,
        (-1, slice(None)),
    ]
    for selection in accepted[:5] + accepted[6:]:
        assert compare(theirs[1].__getitem__, lambda s: getitem(s, SHAPES[1]), DATA[1], selection), selection
