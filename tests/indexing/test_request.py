"""Every form of indexing against NumPy, read and written through requests and plans."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessarr.errors import ArrayIndexError, BoundsCheckError, VindexInvalidSelectionError
from tessarr.grids.base import Axis
from tessarr.grids.rectilinear import RectilinearGrid
from tessarr.grids.regular import RegularGrid
from tessarr.indexing.request import (
    Request,
    basic,
    block,
    chunk,
    coordinate,
    fancy,
    getitem,
    mask,
    orthogonal,
    pop_fields,
    vindex,
)
from tessarr.indexing.selection import Outer, Points


@st.composite
def arrays(draw: st.DrawFn, min_dims: int = 0, max_dims: int = 4) -> tuple[np.ndarray[Any, Any], tuple[Axis, ...]]:
    """A small array of distinct numbers, and a regular or rectilinear grid for it."""
    shape = tuple(draw(st.lists(st.integers(0, 7), min_size=min_dims, max_size=max_dims)))
    data = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)
    if draw(st.booleans()):
        lengths = tuple(draw(st.integers(1, 8)) for _ in shape)
        return data, RegularGrid(lengths).axes(shape)
    spelling: list[Any] = []
    for length in shape:
        runs = draw(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3)).map(list), min_size=1, max_size=4))
        spelling.append([*runs, length + 1])
    return data, RectilinearGrid(spelling).axes(shape)


def slices(length: int) -> st.SearchStrategy[slice]:
    """Any slice that makes sense for an axis of `length`, bounds beyond it included."""
    bound = st.none() | st.integers(-length - 2, length + 2)
    return st.builds(slice, bound, bound, st.none() | st.integers(-9, 9).filter(bool))


def positions(length: int) -> st.SearchStrategy[int]:
    """Any integer index into an axis of `length`, which is not 0."""
    return st.integers(-length, length - 1)


def index_arrays(length: int, shape: tuple[int, ...]) -> st.SearchStrategy[np.ndarray[Any, Any]]:
    """Integer arrays of `shape` in random order with repeats, signed and unsigned."""
    size = int(np.prod(shape))
    if not length:
        return st.just(np.zeros(shape, np.int64)) if not size else st.nothing()
    signed = st.lists(positions(length), min_size=size, max_size=size).map(lambda v: np.array(v, np.int64))
    unsigned = st.lists(st.integers(0, length - 1), min_size=size, max_size=size).map(lambda v: np.array(v, np.uint16))
    return (signed | unsigned).map(lambda array: array.reshape(shape))


@st.composite
def basic_indices(draw: st.DrawFn, shape: tuple[int, ...]) -> Any:
    """Integers, slices and an Ellipsis, perhaps fewer than axes."""
    items: list[Any] = [draw(slices(n) | positions(n) if n else slices(n)) for n in shape]
    items = items[: draw(st.integers(0, len(items)))] if draw(st.booleans()) else items
    if draw(st.booleans()):
        start = draw(st.integers(0, len(items)))
        stop = draw(st.integers(start, len(items)))
        if len(items) == len(shape):
            items[start:stop] = [...]
        else:
            items.insert(start, ...)
    return items[0] if len(items) == 1 and draw(st.booleans()) else tuple(items)


@st.composite
def orthogonal_indices(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """An integer, slice, index array, list or mask per axis."""
    items: list[Any] = []
    for n in shape:
        size = draw(st.integers(0, 9)) if n else 0
        choices = [slices(n), index_arrays(n, (size,)), st.lists(st.booleans(), min_size=n, max_size=n)]
        choices.append(st.lists(st.booleans(), min_size=n, max_size=n).map(lambda v: np.array(v, bool)))
        if n:
            choices += [positions(n), st.lists(positions(n), max_size=6)]
        items.append(draw(st.one_of(choices)))
    return tuple(items)


def outer(data: np.ndarray[Any, Any], items: tuple[Any, ...]) -> tuple[Any, tuple[int, ...]]:
    """Flat positions that an orthogonal selection means, one axis after the other, and the result's shape."""
    flat = np.arange(data.size).reshape(data.shape)
    axis = 0
    for item in items:
        flat = np.moveaxis(flat, axis, 0)
        index = np.asarray(item, None if len(item) else np.int64) if isinstance(item, list) else item
        flat = flat[index]
        if np.ndim(item) or isinstance(item, slice):
            flat = np.moveaxis(flat, 0, axis)
            axis += 1
        else:
            flat = flat if axis == 0 else np.asarray(flat)
    return flat.ravel(), flat.shape


@st.composite
def fancy_indices(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """NumPy mixtures: arrays that broadcast together, masks of one or more axes, integers, slices, an Ellipsis."""
    common = tuple(draw(st.lists(st.integers(1, 3) | st.integers(0, 3), min_size=1, max_size=2)))
    items: list[Any] = []
    axis = 0
    length = None
    while axis < len(shape):
        n = shape[axis]
        choice = draw(st.sampled_from(["slice", "int", "array", "array", "mask"]))
        if choice == "mask" and len(common) == 1:
            width = draw(st.integers(1, min(2, len(shape) - axis)))
            area = np.zeros(shape[axis : axis + width], bool)
            if length is None:
                length = draw(st.integers(0, area.size))
            if length <= area.size:
                spots = draw(st.permutations(range(area.size)))[:length]
                area.ravel()[spots] = True
                items.append(area)
                axis += width
                continue
        if choice == "int" and n:
            items.append(draw(positions(n)))
        elif choice == "array" and n:
            own = common if draw(st.booleans()) else tuple(draw(st.sampled_from([1, size])) for size in common)
            if length is not None and len(own) == 1:
                own = (1,) if own == (1,) else (length,)
            items.append(draw(index_arrays(n, own)))
        else:
            items.append(draw(slices(n)))
        axis += 1
    if draw(st.booleans()):
        items.insert(draw(st.integers(0, len(items))), ...)
    return tuple(items)


def dims(request: Request) -> tuple[Any, ...]:
    """The axes of an outer selection."""
    assert isinstance(request.selection, Outer)
    return request.selection.dims


def check(chunked: Any, data: Any, axes: tuple[Axis, ...], request: Request, index: Any) -> None:
    """Read and written through `request`, `data` is as NumPy has it with `index`."""
    array = chunked(data, axes)
    expected = data[index]
    assert request.shape == expected.shape
    assert np.array_equal(array.read(request), expected)
    assert np.array_equal(array.whole(), data)
    for value in (np.arange(-1, -1 - expected.size, -1).reshape(expected.shape), np.int64(-5)):
        theirs = data.copy()
        theirs[index] = value
        ours = chunked(data, axes)
        ours.write(request, value)
        assert np.array_equal(ours.whole(), theirs)


class TestBasic:
    """`basic`."""

    @given(st.data())
    def test_it_selects_as_numpy_does(self, chunked: Any, data: st.DataObject) -> None:
        array, axes = data.draw(arrays())
        index = data.draw(basic_indices(array.shape))
        try:
            array[index]
        except IndexError:  # an Ellipsis moved an integer to an axis that is too short for it
            with pytest.raises(BoundsCheckError):
                basic(index, array.shape)
            return
        check(chunked, array, axes, basic(index, array.shape), index)
        check(chunked, array, axes, getitem(index, array.shape), index)

    @pytest.mark.spec("OGC-22")
    def test_slices_are_half_open(self) -> None:
        assert basic(slice(0, 1000), (10000,)).selection.shape == (1000,)

    def test_numpy_integers_and_bounds_are_integers(self) -> None:
        request = basic((np.uint8(3), slice(np.int16(1), np.int64(5))), (4, 9))
        assert dims(request) == (slice(3, 4, 1), slice(1, 5, 1))
        assert request.shape == (4,)

    def test_a_slice_of_one_element_has_step_1(self) -> None:
        assert dims(basic((slice(2, 9, 50), slice(7, None, -20)), (9, 9))) == (slice(2, 3, 1), slice(7, 8, 1))

    @pytest.mark.parametrize("index", [4, -5, np.int64(4), (slice(None), 6), (..., -7)])
    def test_an_integer_outside_its_axis_is_refused(self, index: Any) -> None:
        with pytest.raises(BoundsCheckError, match="out of bounds"):
            basic(index, (4, 6))

    @pytest.mark.parametrize(
        "index",
        [
            None,
            (0, None),
            1.0,
            np.float64(1),
            "x",
            [1],
            np.array([1]),
            True,
            np.True_,
            (0, 0, 0),
            (..., ...),
            slice(1.5),
        ],
    )
    def test_anything_else_is_refused(self, index: Any) -> None:
        with pytest.raises(ArrayIndexError):
            basic(index, (4, 6))

    def test_newaxis_is_named_in_the_refusal(self) -> None:
        with pytest.raises(ArrayIndexError, match="newaxis"):
            basic((None, 0), (4,))

    def test_too_many_indices_are_counted(self) -> None:
        with pytest.raises(ArrayIndexError, match="too many indices for array; expected 1, got 2"):
            basic((0, 0), (4,))

    @pytest.mark.parametrize(
        ("read", "kind"), [(basic, "basic"), (orthogonal, "orthogonal")], ids=["basic", "orthogonal"]
    )
    @pytest.mark.parametrize("item", [None, 2.5])
    def test_a_refusal_names_the_kind_of_indexing_as_zarr_python_does(self, read: Any, kind: str, item: Any) -> None:
        with pytest.raises(ArrayIndexError, match=f"unsupported selection item for {kind} indexing; expected integer"):
            read(item, (4,))

    def test_huge_axes_cost_nothing(self) -> None:
        assert basic(slice(None, None, -3), (2**62,)).shape == ((2**62 + 2) // 3,)


class TestOrthogonal:
    """`orthogonal`."""

    @given(st.data())
    def test_it_is_the_outer_product_of_its_axes(self, chunked: Any, data: st.DataObject) -> None:
        array, axes = data.draw(arrays())
        items = data.draw(orthogonal_indices(array.shape))
        flat, shape = outer(array, items)
        request = orthogonal(items, array.shape)
        assert request.shape == shape
        assert np.array_equal(chunked(array, axes).read(request).ravel(), flat)
        value = -1 - np.arange(len(flat))
        theirs = array.copy()
        theirs.ravel()[flat] = value
        ours = chunked(array, axes)
        ours.write(request, value.reshape(shape))
        assert np.array_equal(ours.whole(), theirs)

    @pytest.mark.parametrize(
        "items",
        [([[0, 1]],), ([1.0],), (["x"],), ([True, False],), (np.ones((4, 6), bool),), (None,), (0, [0], [0]), (True,)],
    )
    def test_what_does_not_fit_is_refused(self, items: Any) -> None:
        with pytest.raises(ArrayIndexError):
            orthogonal(items, (4, 6))

    @pytest.mark.parametrize("items", [([0, 4],), ([-5],), (slice(None), np.array([6], np.uint8))])
    def test_positions_outside_their_axis_are_refused(self, items: Any) -> None:
        with pytest.raises(BoundsCheckError):
            orthogonal(items, (4, 6))

    def test_unsigned_positions_beyond_int64_are_out_of_bounds(self) -> None:
        with pytest.raises(BoundsCheckError):
            orthogonal(np.array([2**64 - 1], np.uint64), (4,))

    def test_the_users_array_is_not_modified(self) -> None:
        mine = np.array([-1, -2])
        orthogonal(mine, (4,))
        assert mine.tolist() == [-1, -2]


class TestPoints:
    """`coordinate`, `mask` and `vindex`."""

    @given(st.data())
    def test_coordinates_select_as_numpy_does(self, chunked: Any, data: st.DataObject) -> None:
        array, axes = data.draw(arrays(min_dims=1))
        if not array.size:
            return
        common = tuple(data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=3)))
        index = tuple(
            data.draw(index_arrays(n, tuple(1 if data.draw(st.booleans()) else s for s in common))) for n in array.shape
        )
        check(chunked, array, axes, coordinate(index, array.shape), index)
        check(chunked, array, axes, vindex(index, array.shape), index)
        check(chunked, array, axes, getitem(index, array.shape), index)

    @given(st.data())
    def test_masks_select_as_numpy_does(self, chunked: Any, data: st.DataObject) -> None:
        array, axes = data.draw(arrays(min_dims=1))
        bits = data.draw(st.lists(st.booleans(), min_size=array.size, max_size=array.size))
        index = np.array(bits, bool).reshape(array.shape)
        for form in (mask, vindex, getitem):
            check(chunked, array, axes, form(index, array.shape), index)

    def test_integers_alone_give_one_point_as_in_zarr_python(self) -> None:
        assert coordinate((1, 2), (4, 6)).shape == (1,)

    def test_lists_and_integers_broadcast(self) -> None:
        request = coordinate(([0, 1, 2], -1), (4, 6))
        assert isinstance(request.selection, Points)
        assert [c.tolist() for c in request.selection.coords] == [[0, 1, 2], [5, 5, 5]]

    def test_points_of_a_1d_array_are_served_as_an_outer_selection(self) -> None:
        assert isinstance(coordinate([3, 1], (4,)).selection, Outer)

    @pytest.mark.parametrize(
        "items",
        [
            ([0],),
            ([0], slice(None)),
            ([0], ...),
            ([0, 1], [0, 1, 2]),
            ([0], [True, False]),
            np.ones((6, 4), bool),
            "x",
            (),
        ],
    )
    def test_what_is_neither_coordinates_nor_mask_is_refused(self, items: Any) -> None:
        with pytest.raises(ArrayIndexError):
            vindex(items, (4, 6))

    def test_a_mask_of_another_shape_is_a_vindex_error(self) -> None:
        with pytest.raises(VindexInvalidSelectionError, match=r"expected one boolean array of shape \(4, 6\)"):
            mask(np.ones(4, bool), (4, 6))

    def test_points_outside_are_refused(self) -> None:
        with pytest.raises(BoundsCheckError, match="axis 1"):
            coordinate(([0, 1], [0, 6]), (4, 6))


class TestFancy:
    """`fancy`."""

    @settings(max_examples=300)
    @given(st.data())
    def test_it_selects_as_numpy_does(self, chunked: Any, data: st.DataObject) -> None:
        array, axes = data.draw(arrays(max_dims=5))
        index = data.draw(fancy_indices(array.shape))
        try:
            array[index]
        except IndexError:
            with pytest.raises(ArrayIndexError):
                fancy(index, array.shape)
            return
        check(chunked, array, axes, fancy(index, array.shape), index)

    @pytest.mark.parametrize("where", range(4))
    @pytest.mark.parametrize("other", [slice(None, None, -1), slice(4, 0, -2), slice(1, None), slice(2, 2), 1, ...])
    @pytest.mark.parametrize("own", [([2, 0, 2], [1, 1, 0]), ([[2, 0]], [[1], [0]]), ([[1, 0], [2, 0]], [1, 0])])
    def test_two_arrays_with_others_between_and_around(self, chunked: Any, where: int, other: Any, own: Any) -> None:
        data = np.arange(360).reshape(3, 4, 5, 6)
        index: list[Any] = [*own, slice(None, None, -1)]
        index.insert(where, other)
        check(chunked, data, RegularGrid((2, 3, 2, 4)).axes(data.shape), fancy(tuple(index), data.shape), tuple(index))

    @pytest.mark.parametrize("index", [(0, [0, 1], [2, 0]), ([1, 1], 0, [1, 0]), (0, [], []), ([], [0], slice(2))])
    def test_integers_and_empty_arrays_beside_arrays(self, chunked: Any, index: Any) -> None:
        data = np.arange(60).reshape(3, 4, 5)
        check(chunked, data, RegularGrid((2, 2, 2)).axes(data.shape), fancy(index, data.shape), index)

    @pytest.mark.parametrize(
        ("index", "kind"),
        [
            ((slice(None), [[0, 1], [2, 0]]), Outer),
            (np.ix_([0, 2], [1, 3]), Outer),
            (([[0], [2]], slice(None, None, -1), [[1, 3]]), Outer),
            ((0, slice(None), [1, 3]), Outer),
            (([0, 2], [1, 3]), Points),
        ],
    )
    def test_what_is_an_outer_product_becomes_one(self, index: Any, kind: type) -> None:
        assert type(fancy(index, (5, 4, 6)).selection) is kind

    @pytest.mark.parametrize(
        "index", [([0, 1], [0, 1, 2]), ([True],), (np.ones((4, 5), bool),), ([0.5],), (None, [0]), (True, [0])]
    )
    def test_what_numpy_or_we_refuse_is_refused(self, index: Any) -> None:
        with pytest.raises(ArrayIndexError):
            fancy(index, (4, 6))


class TestBlock:
    """`block` and `chunk`."""

    @pytest.mark.parametrize(
        ("index", "expected"),
        [
            (0, np.s_[0:3, :]),
            ((-1, 1), np.s_[9:10, 4:8]),
            ((slice(1, 3), slice(None)), np.s_[3:9, :]),
            ((..., -1), np.s_[:, 8:9]),
            (slice(-2, None), np.s_[6:, :]),
            (slice(2, 2), np.s_[0:0, :]),
            (slice(0, 99), np.s_[:, :]),
        ],
    )
    def test_chunks_are_counted_instead_of_elements(self, chunked: Any, index: Any, expected: Any) -> None:
        data = np.arange(90).reshape(10, 9)
        axes = RegularGrid((3, 4)).axes((10, 9))
        assert np.array_equal(chunked(data, axes).read(block(index, axes)), data[expected])

    @pytest.mark.parametrize(
        "index", [4, -5, slice(4, None), slice(None, None, 2), slice(None, None, -1), [0], (0, 0, 0), 1.0]
    )
    def test_what_is_no_range_of_chunks_is_refused(self, index: Any) -> None:
        with pytest.raises(ArrayIndexError):
            block(index, RegularGrid((3, 4)).axes((10, 9)))

    def test_blocks_of_an_empty_axis_are_empty(self) -> None:
        assert block(slice(None), RegularGrid((3,)).axes((0,))).shape == (0,)

    def test_blocks_of_varied_chunks(self) -> None:
        axes = RectilinearGrid([[1, 2, [3, 2]]]).axes((8,))
        assert dims(block(slice(1, 3), axes)) == (slice(1, 6, 1),)
        assert dims(block(3, axes)) == (slice(6, 8, 1),)

    @pytest.mark.spec("V3-GRID-09")
    @pytest.mark.parametrize("coords", [(-1, 0), (0, -1), (4, 0), (0,), (0, 0, 0), (0.0, 0), (True, 0)])
    def test_chunks_that_do_not_exist_are_refused(self, coords: Any) -> None:
        with pytest.raises(BoundsCheckError):
            chunk(coords, RegularGrid((3, 4)).axes((10, 9)))

    @pytest.mark.spec("V1-12", "V2-43")
    def test_a_chunk_is_its_rows_and_columns(self) -> None:
        axes = RegularGrid((1000, 1000)).axes((10000, 10000))
        assert dims(chunk((2, 4), axes)) == (slice(2000, 3000, 1), slice(4000, 5000, 1))
        assert dims(chunk((0, 0), axes)) == (slice(0, 1000, 1), slice(0, 1000, 1))


class TestValue:
    """`Request.value`, `Request.view`."""

    @pytest.mark.parametrize("shape", [(), (1,), (5,), (4, 1), (4, 5), (1, 1, 4, 5), (1, 5)])
    def test_values_broadcast_as_in_assignment(self, shape: tuple[int, ...]) -> None:
        data, value = np.zeros((4, 6)), np.random.default_rng(0).random(shape)
        data[:, 5:0:-1] = value
        request = basic((slice(None), slice(5, 0, -1)), (4, 6))
        ours = np.zeros((4, 6))
        ours[request.selection.index] = request.value(value)
        assert np.array_equal(ours, data)

    @pytest.mark.parametrize("shape", [(4,), (5, 4), (2, 4, 5), (0,), (4, 6)])
    def test_a_mismatch_names_both_shapes(self, shape: tuple[int, ...]) -> None:
        with pytest.raises(ValueError, match=r"\(.*\).* \(4, 5\)"):
            basic((slice(None), slice(5)), (4, 6)).value(np.zeros(shape))

    def test_a_view_is_refused_where_memory_cannot_be_shared(self) -> None:
        request = coordinate((np.zeros((3, 4), int), np.zeros((3, 4), int)), (4, 6))
        assert request.view(np.zeros((4, 3)).T) is None
        assert request.view(np.zeros((3, 4))) is not None
        assert np.array_equal(request.value(np.arange(12).reshape(4, 3).T), np.arange(12).reshape(4, 3).T.ravel())

    def test_a_view_of_a_0d_result_can_be_filled(self) -> None:
        out = np.zeros(())
        view = basic((1, 2), (4, 6)).view(out)
        assert view is not None
        view[...] = 7
        assert out == 7


class TestGetitem:
    """`getitem` where several forms meet; parity with zarr-python is in tests/parity."""

    @pytest.mark.parametrize(
        ("index", "shape"),
        [
            ((0, slice(None), [1, 3]), (5, 2)),
            (([0, 2], slice(None), [1, 3]), (2, 5)),
            ((np.array([True, False, True, False]), [0, 1, 2], [0, 1]), (2, 3, 2)),
            (([0, 2], [1, 3], [1, 3]), (2,)),
            ((..., [1, 3]), (4, 5, 2)),
            (np.array([True, False, True, False]), (2, 5, 6)),
            (([[0, 1], [2, 3]],), (2, 2, 5, 6)),
            (([],), (0, 5, 6)),
            (range(2), (2, 5, 6)),
        ],
    )
    def test_shapes(self, index: Any, shape: tuple[int, ...]) -> None:
        assert getitem(index, (4, 5, 6)).shape == shape

    @pytest.mark.parametrize("index", [True, None, 1.5, "x", ([0.5],), {}, object(), b"x", ([0], None)])
    def test_no_index_is_a_typed_error(self, index: Any) -> None:
        with pytest.raises(ArrayIndexError):
            getitem(index, (4, 5, 6))


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ("a", ("a", ())),
        (["a", "b"], (["a", "b"], ())),
        (("a", 0), ("a", 0)),
        ((slice(2), "a", 1, "b"), (["a", "b"], (slice(2), 1))),
        ((0, ["a"]), (["a"], 0)),
        ((0, 1), (None, (0, 1))),
        ((), (None, ())),
        (5, (None, 5)),
        ([], (None, [])),
    ],
)
def test_field_names_are_separated(selection: Any, expected: Any) -> None:
    assert pop_fields(selection) == expected
