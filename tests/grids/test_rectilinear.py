"""The rectilinear grid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessarr import registry
from tessarr.errors import MetadataValidationError
from tessarr.grids.rectilinear import RectilinearGrid, VariedAxis

SPELLING: Any = [4, [1, 2, 3], [[4, 2]], [[1, 3], 3], [4, 4, 4]]


def document(chunk_shapes: Any) -> dict[str, Any]:
    """The configuration with `chunk_shapes`."""
    return {"kind": "inline", "chunk_shapes": chunk_shapes}


@pytest.mark.spec("V3-GRID-10")
def test_the_example_of_the_registry() -> None:
    grid = RectilinearGrid.from_json(document(SPELLING), (6,) * 5)
    chunks = [[axis.size(i) for i in range(axis.nchunks)] for axis in grid.axes((6,) * 5)]
    assert chunks == [[4, 4], [1, 2, 3], [4, 4], [1, 1, 1, 3], [4, 4]]
    assert grid.to_json() == {"name": "rectilinear", "configuration": document(SPELLING)}
    assert grid.chunk_shape is None
    assert registry.get("chunk_grid", "rectilinear") is RectilinearGrid


def test_an_element_is_found_in_its_chunk() -> None:
    rows, columns = RectilinearGrid([[[16, 10]], [[24, 14]]]).axes((160, 336))
    assert (rows.find(20), columns.find(15)) == (1, 0)
    assert (20 - rows.start(1), 15 - columns.start(0)) == (4, 15)


def test_a_bare_pair_is_two_chunks_and_a_nested_one_a_run() -> None:
    bare, run = RectilinearGrid([[4, 2], [[4, 2]]]).axes((6, 6))
    assert [bare.size(0), bare.size(1)] == [4, 2]
    assert [run.size(0), run.size(1)] == [4, 4]


def test_spellings_of_the_same_chunks_are_equal_and_kept() -> None:
    runs, plain = RectilinearGrid([[[2, 3], 1]]), RectilinearGrid([[2, 2, 2, 1]])
    assert runs == plain
    assert hash(runs) == hash(plain)
    assert runs.to_json() != plain.to_json()


def test_equal_chunks_are_known_to_be_uniform() -> None:
    grid = RectilinearGrid([4, [[4, 3]], [4, 4]])
    assert grid.chunk_shape == (4, 4, 4)
    assert [axis.uniform for axis in grid.axes((9, 12, 8))] == [4, 4, 4]
    (axis,) = RectilinearGrid([[4, 4, 2]]).axes((8,))
    assert axis.uniform == 4


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 4)), min_size=1, max_size=6), st.data())
def test_runs_answer_as_their_expansion_does(runs: list[tuple[int, int]], data: st.DataObject) -> None:
    sizes = [size for size, count in runs for _ in range(count)]
    length = data.draw(st.integers(0, sum(sizes)))
    starts = np.cumsum([0, *sizes[:-1]])
    axis = VariedAxis(length, runs)
    expected = [int(np.flatnonzero(starts <= p)[-1]) for p in range(length)]
    assert [axis.find(p) for p in range(length)] == expected
    many = axis.find_many(np.arange(length))
    assert many.tolist() == expected
    assert many.dtype == np.int64
    assert axis.nchunks == (max(expected) + 1 if length else 0)
    assert [axis.size(k) for k in range(axis.nchunks)] == sizes[: axis.nchunks]
    assert [axis.start(k) for k in range(axis.nchunks)] == starts[: axis.nchunks].tolist()
    if axis.uniform is not None:
        assert set(sizes[: axis.nchunks]) == {axis.uniform}


def test_long_runs_cost_nothing() -> None:
    (axis,) = RectilinearGrid([[[1, 2**61], [3, 10**30]]]).axes((2**62,))
    assert axis.find(2**62 - 1) == 2**61 + (2**61 - 1) // 3
    assert axis.find_many(np.array([2**62 - 1, 5])).tolist() == [axis.find(2**62 - 1), 5]


def test_a_chunk_longer_than_any_integer_of_numpy_is_found() -> None:
    (axis,) = RectilinearGrid([[3, 10**30]]).axes((10,))
    assert axis.find_many(np.arange(10)).tolist() == [0] * 3 + [1] * 7


def test_an_empty_axis_may_have_no_chunks_listed() -> None:
    (axis,) = RectilinearGrid.from_json(document([[]]), (0,)).axes((0,))
    assert axis.nchunks == 0
    assert axis.find_many(np.zeros(0, np.int64)).shape == (0,)


def test_surplus_chunks_do_not_count() -> None:
    (axis,) = RectilinearGrid([[2, 2, 2, 9]]).axes((4,))
    assert axis.nchunks == 2


@pytest.mark.parametrize(
    ("configuration", "loc", "kind"),
    [
        ({"chunk_shapes": [2]}, ("kind",), "missing"),
        ({"kind": "inline"}, ("chunk_shapes",), "missing"),
        ({"kind": "external", "chunk_shapes": [2]}, ("kind",), "unsupported"),
        ({"kind": "inline", "chunk_shapes": [2], "x": 1}, ("x",), "unknown"),
        (document(2), ("chunk_shapes",), "type"),
        (document([2, 2]), ("chunk_shapes",), "value"),
        (document([]), ("chunk_shapes",), "value"),
        (document([[]]), ("chunk_shapes", 0), "value"),
        (document([0]), ("chunk_shapes", 0), "value"),
        (document([True]), ("chunk_shapes", 0), "type"),
        (document([2.0]), ("chunk_shapes", 0), "type"),
        (document(["4"]), ("chunk_shapes", 0), "type"),
        (document([None]), ("chunk_shapes", 0), "type"),
        (document([[5, 0]]), ("chunk_shapes", 0, 1), "value"),
        (document([[5, True]]), ("chunk_shapes", 0, 1), "type"),
        (document([[[5, 2, 1]]]), ("chunk_shapes", 0, 0), "value"),
        (document([[[5, 0]]]), ("chunk_shapes", 0, 0, 1), "value"),
        (document([[[0, 5]]]), ("chunk_shapes", 0, 0, 0), "value"),
        (document([[[[5, 2], 2]]]), ("chunk_shapes", 0, 0, 0), "type"),
        (document([[4, 5]]), ("chunk_shapes", 0), "value"),
    ],
)
def test_a_malformed_document_is_located(configuration: Any, loc: tuple[Any, ...], kind: str) -> None:
    with pytest.raises(MetadataValidationError) as caught:
        RectilinearGrid.from_json(configuration, (10,))
    assert [(problem.loc, problem.kind) for problem in caught.value.problems] == [(loc, kind)]


def test_a_grid_that_does_not_reach_the_end_is_refused_with_the_array() -> None:
    with pytest.raises(ValueError, match="hold 4 elements in all and cannot cover its length 5"):
        RectilinearGrid([[2, 2]]).axes((5,))
    with pytest.raises(ValueError, match="1 axes"):
        RectilinearGrid([2]).axes((5, 5))


def test_lengths_may_be_numpy_values() -> None:
    lengths: Any = [np.int64(4), np.array([1, 2]), (np.int32(3), (1, 2))]
    grid = RectilinearGrid(lengths)
    assert grid.to_json()["configuration"] == document([4, [1, 2], [3, [1, 2]]])
