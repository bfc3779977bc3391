"""The regular grid."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessarr import registry
from tessarr.errors import MetadataValidationError
from tessarr.grids.regular import RegularAxis, RegularGrid

lengths = st.integers(0, 60)
sizes = st.integers(1, 70)


@pytest.mark.spec("V3-GRID-01", "V3-GRID-02")
@given(st.lists(st.tuples(lengths, sizes), max_size=3))
def test_every_element_is_in_exactly_one_chunk(axes: list[tuple[int, int]]) -> None:
    shape, chunks = tuple(n for n, _ in axes), tuple(c for _, c in axes)
    counts = np.zeros(shape, int)
    grid = RegularGrid(chunks).axes(shape)
    for coords in product(*(range(axis.nchunks) for axis in grid)):
        counts[tuple(slice(k * c, k * c + a.size(k)) for k, c, a in zip(coords, chunks, grid, strict=True))] += 1
        assert [a.start(k) for k, a in zip(coords, grid, strict=True)] == [
            k * c for k, c in zip(coords, chunks, strict=True)
        ]
    assert (counts == 1).all()


@given(st.integers(1, 60), sizes)
def test_an_element_is_found_in_the_chunk_that_holds_it(length: int, size: int) -> None:
    axis = RegularAxis(length, size)
    found = [axis.find(position) for position in range(length)]
    assert all(axis.start(k) <= p < axis.start(k) + axis.size(k) for p, k in enumerate(found))
    many = axis.find_many(np.arange(length))
    assert many.tolist() == found
    assert many.dtype == np.int64
    assert axis.uniform == size


@pytest.mark.spec("V3-GRID-03", "V3-GRID-04")
def test_the_examples_of_the_specification() -> None:
    axes = RegularGrid((5, 20, 400)).axes((10, 200, 3000))
    assert [axis.nchunks for axis in axes] == [2, 10, 8]
    assert axes[2].start(7) + axes[2].size(7) == 3200
    chunk = [axis.find(p) for axis, p in zip(axes, (7, 150, 900), strict=True)]
    assert chunk == [1, 7, 2]
    assert [p - axis.start(k) for axis, p, k in zip(axes, (7, 150, 900), chunk, strict=True)] == [2, 10, 100]


@pytest.mark.spec("V3-GRID-05", "V2-18")
def test_a_chunk_at_the_edge_is_stored_whole() -> None:
    rows, columns = RegularGrid((16, 16)).axes((30, 30))
    assert (rows.size(0), columns.size(1)) == (16, 16)
    (axis,) = RegularGrid((10,)).axes((5,))
    assert (axis.nchunks, axis.size(0)) == (1, 10)


@pytest.mark.spec("V1-08", "V2-43")
def test_the_example_of_versions_1_and_2_has_100_chunks() -> None:
    axes = RegularGrid.from_json({"chunk_shape": [1000, 1000]}, (10000, 10000)).axes((10000, 10000))
    assert [axis.nchunks for axis in axes] == [10, 10]


@pytest.mark.spec("OGC-22", "V1-12", "V2-43")
def test_chunks_are_half_open() -> None:
    rows, columns = RegularGrid((1000, 1000)).axes((10000, 10000))
    assert (rows.start(0), rows.start(0) + rows.size(0), rows.find(999), rows.find(1000)) == (0, 1000, 0, 1)
    assert (rows.start(2), columns.start(4), columns.find(4999), columns.find(5000)) == (2000, 4000, 4, 5)


@pytest.mark.spec("V3-GRID-07")
def test_a_0d_array_has_an_empty_grid_shape() -> None:
    assert RegularGrid(()).axes(()) == ()
    assert RegularGrid.from_json({"chunk_shape": []}, ()).to_json()["configuration"] == {"chunk_shape": []}


@pytest.mark.spec("V3-GRID-08", "V2-17")
def test_an_axis_of_length_0_has_no_chunks() -> None:
    assert [axis.nchunks for axis in RegularGrid((3, 4)).axes((0, 4))] == [0, 1]


@pytest.mark.spec("V3-META-06")
def test_the_document_is_read_and_written_back() -> None:
    grid = RegularGrid.from_json({"chunk_shape": [2, 5]}, (10, 10))
    assert grid.to_json() == {"name": "regular", "configuration": {"chunk_shape": [2, 5]}}
    numpy_lengths: Any = np.array([2, 5])
    assert grid == RegularGrid((2, 5)) == RegularGrid(numpy_lengths)
    assert hash(grid) == hash(RegularGrid((2, 5)))
    assert grid != RegularGrid((5, 2))
    assert grid.chunk_shape == (2, 5)
    assert registry.get("chunk_grid", "regular") is RegularGrid


@pytest.mark.spec("V3-META-06", "V3-HIER-08")
@pytest.mark.parametrize(
    ("configuration", "loc", "kind"),
    [
        ({}, ("chunk_shape",), "missing"),
        ({"chunk_shape": [2]}, ("chunk_shape",), "value"),
        ({"chunk_shape": [2, 5, 1]}, ("chunk_shape",), "value"),
        ({"chunk_shape": 2}, ("chunk_shape",), "type"),
        ({"chunk_shape": None}, ("chunk_shape",), "type"),
        ({"chunk_shape": "25"}, ("chunk_shape",), "type"),
        ({"chunk_shape": [2, 0]}, ("chunk_shape", 1), "value"),
        ({"chunk_shape": [-1, 5]}, ("chunk_shape", 0), "value"),
        ({"chunk_shape": [2.0, 5]}, ("chunk_shape", 0), "type"),
        ({"chunk_shape": [2, True]}, ("chunk_shape", 1), "type"),
        ({"chunk_shape": [2, False]}, ("chunk_shape", 1), "type"),
        ({"chunk_shape": [2, "5"]}, ("chunk_shape", 1), "type"),
        ({"chunk_shape": [2, [5]]}, ("chunk_shape", 1), "type"),
        ({"chunk_shape": [2, 5], "kind": "inline"}, ("kind",), "unknown"),
    ],
)
def test_a_malformed_document_is_located(configuration: Any, loc: tuple[Any, ...], kind: str) -> None:
    with pytest.raises(MetadataValidationError) as caught:
        RegularGrid.from_json(configuration, (10, 10))
    assert [(problem.loc, problem.kind) for problem in caught.value.problems] == [(loc, kind)]


def test_all_problems_are_listed() -> None:
    with pytest.raises(MetadataValidationError) as caught:
        RegularGrid.from_json({"chunk_shape": [0, True, 1.5], "x": 1}, (10, 10))
    assert len(caught.value.problems) == 5


@pytest.mark.spec("V2-17", "V3-HIER-08")
def test_chunk_length_0_on_an_empty_axis_is_read_as_1_with_a_diagnostic() -> None:
    grid = RegularGrid.from_json({"chunk_shape": [0, 4]}, (0, 4))
    (said,) = grid.diagnostics
    assert "axis 0" in said
    assert RegularGrid((1, 4)).diagnostics == ()
    assert grid.to_json()["configuration"] == {"chunk_shape": [1, 4]}


@pytest.mark.spec("V3-HIER-08")
def test_chunk_length_0_is_refused_when_strict() -> None:
    with pytest.raises(MetadataValidationError):
        RegularGrid.from_json({"chunk_shape": [0]}, (0,), strict=True)


@pytest.mark.spec("V3-HIER-08")
@pytest.mark.parametrize("chunks", [(0,), (-1,), (True,), (2.0,), ("2",), (None,), (np.bool_(True),), (np.float64(2),)])
def test_a_grid_is_not_made_of_what_is_no_positive_integer(chunks: Any) -> None:
    with pytest.raises(ValueError, match="positive integers"):
        RegularGrid(chunks)


def test_a_grid_of_another_rank_cannot_cover() -> None:
    with pytest.raises(ValueError, match=r"\(2, 5\).*\(10,\)"):
        RegularGrid((2, 5)).axes((10,))


def test_huge_grids_are_plain_arithmetic() -> None:
    axis = RegularAxis(2**62, 1)
    assert (axis.nchunks, axis.find(2**62 - 1), axis.start(2**62 - 1)) == (2**62, 2**62 - 1, 2**62 - 1)
