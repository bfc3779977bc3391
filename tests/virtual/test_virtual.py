"""`tessarr.virtual`: arrays made of arrays equal what NumPy makes of their elements, and are read in one round of requests."""

from __future__ import annotations

import asyncio
import pickle
import threading
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tessarr
from tessarr import virtual
from tessarr.errors import BoundsCheckError, CodecError, ReadOnlyError
from tessarr.storage import LatencyStore, MemoryStore
from tests.native.far import FarStore

LENGTHS = (5, 3, 8)
VALUES = [np.arange(n * 7).reshape(n, 7) + 100 * n for n in LENGTHS]
WHOLE = np.concatenate(VALUES)
SELECTIONS: list[Any] = [
    np.s_[...],
    np.s_[3:11:3],
    np.s_[::-2, ::3],
    np.s_[4:5],
    np.s_[7:7],
    np.s_[4],
    np.s_[4, 2],
    ([1, 15, 1, 0],),
    ([1, 15, 7], [0, 6, 2]),
    WHOLE % 5 == 0,
]


@pytest.fixture(params=["auto", "reference"])
def arrays(request: pytest.FixtureRequest) -> Iterator[list[tessarr.Array]]:
    """In memory, sharded in memory, and behind a network."""
    with tessarr.config.set({"engine": request.param}):
        layouts: list[Any] = [{"chunks": (2, 3)}, {"chunks": (1, 2), "shards": (2, 4)}, {"chunks": (3, 3)}]
        stores = [MemoryStore(), MemoryStore(), LatencyStore(MemoryStore())]
        yield [
            tessarr.create_array(store, data=values, dimension_names=["t", "x"], **layout)
            for store, values, layout in zip(stores, VALUES, layouts, strict=True)
        ]


def same(z: tessarr.Array, expected: Any, selections: list[Any]) -> None:
    for selection in selections:
        np.testing.assert_array_equal(z[selection], expected[selection], str(selection))
        np.testing.assert_array_equal(z.lazy[selection].read(), expected[selection], str(selection))
        np.testing.assert_array_equal(asyncio.run(z.read_async(selection)), expected[selection], str(selection))


def test_concat_is_numpy_s(arrays: list[tessarr.Array]) -> None:
    z = virtual.concat(arrays)
    assert (z.shape, z.dtype, z.dims, z.read_only, z.engine.name) == ((16, 7), WHOLE.dtype, ("t", "x"), True, "virtual")
    same(z, WHOLE, SELECTIONS)
    np.testing.assert_array_equal(z.oindex[[15, 0, 6], [1, 1]], WHOLE[np.ix_([15, 0, 6], [1, 1])])
    np.testing.assert_array_equal(z.vindex[[15, 0, 6], [1, 1, 6]], WHOLE[[15, 0, 6], [1, 1, 6]])
    np.testing.assert_array_equal(z.lazy[::-1].T[2:, 3:9:2].read(), WHOLE[::-1].T[2:, 3:9:2])
    out = np.zeros((7, 16), WHOLE.dtype).T
    assert z.read(out=out) is out
    np.testing.assert_array_equal(out, WHOLE)


def test_concat_of_views_along_another_axis(arrays: list[tessarr.Array]) -> None:
    parts = [arrays[0].lazy[:3], arrays[1].lazy[::-1, ::2], arrays[2].lazy.T[:, 2:5].T[:3, [6, 1]]]
    expected = np.concatenate([VALUES[0][:3], VALUES[1][::-1, ::2], VALUES[2].T[:, 2:5].T[:3, [6, 1]]], axis=1)
    z = virtual.concat(parts, axis=-1)
    same(z, expected, [np.s_[...], np.s_[1, ::3], np.s_[::-1, [12, 0]], expected > 500])


def test_stack_of_virtual_arrays_is_numpy_s(arrays: list[tessarr.Array]) -> None:
    z = virtual.concat(arrays)
    stacked = virtual.stack([z, z.lazy[::-1], z], axis=1, dimension_names=["t", "run", "x"], attributes={"a": 1})
    expected = np.stack([WHOLE, WHOLE[::-1], WHOLE], axis=1)
    assert (stacked.dims, dict(stacked.attrs)) == (("t", "run", "x"), {"a": 1})
    same(stacked, expected, [np.s_[...], np.s_[3:9, 1, ::2], np.s_[:, ::-1, 3], np.s_[[0, 15], [2, 0], [6, 1]]])


def test_merge_lays_the_last_part_on_top(arrays: list[tessarr.Array]) -> None:
    placed: list[tuple[tuple[int, int], Any]] = [
        ((0, 1), arrays[0]),
        ((3, 2), arrays[1]),
        ((4, 0), arrays[2].lazy[:2, :3]),
    ]
    z = virtual.merge(placed, (9, 11), fill_value=-1)
    expected = np.full((9, 11), -1)
    for ((row, column), _), values in zip(placed, [VALUES[0], VALUES[1], VALUES[2][:2, :3]], strict=True):
        expected[row : row + values.shape[0], column : column + values.shape[1]] = values
    same(z, expected, [np.s_[...], np.s_[::2, [1, 9, 3]], np.s_[8], np.s_[3, 4], expected == -1, np.s_[4:6, :3]])
    assert virtual.merge(dict(placed)).shape == (6, 9)


boxes = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=5
)
steps = st.slices(8)


@given(boxes, steps, steps)
@settings(max_examples=60, deadline=None)
def test_any_merge_and_any_slices(parts: Any, rows: slice, columns: slice) -> None:
    expected = np.full((11, 11), 77)
    placed = []
    for number, (row, column, height, width) in enumerate(parts):
        placed.append(((row, column), tessarr.full((height, width), number, chunks=(3, 2), dtype="i8", store={})))
        expected[row : row + height, column : column + width] = number
    z = virtual.merge(placed, (11, 11), fill_value=77)
    np.testing.assert_array_equal(z[rows, columns], expected[rows, columns])
    np.testing.assert_array_equal(z.oindex[[9, 0, 3, 3], columns], expected[[9, 0, 3, 3]][:, columns])


def test_text_and_records() -> None:
    text = [tessarr.array(np.array(["a", "bé"], object), dtype=str), tessarr.array(np.array(["c"], object), dtype=str)]
    assert list(virtual.concat(text)[...]) == ["a", "bé", "c"]
    records = tessarr.array(np.array([(1, 2.5)], [("a", "i4"), ("b", "f8")]))
    z = virtual.concat([records, records])
    assert z["b"].tolist() == [2.5, 2.5]
    assert virtual.concat([records.lazy["b"]])[...].tolist() == [2.5]


@pytest.mark.spec("ZEP1-19")
def test_arrays_of_several_stores_are_read_in_one_round() -> None:
    """Each request waits until all are there; requests one after another would wait for ever."""
    stores = [FarStore() for _ in range(3)]
    arrays = [tessarr.create_array(store, data=np.arange(8.0), chunks=(4,)) for store in stores]
    z = virtual.stack([virtual.concat(arrays[:2]), virtual.concat([arrays[2], arrays[2].lazy[::-1]])])
    together = threading.Barrier(6, timeout=60)
    for store in stores:
        store.requests.clear()
        store.before = lambda *_: together.wait()
    np.testing.assert_array_equal(z[...], [[*range(8)] * 2, [*range(8), *range(7, -1, -1)]])
    assert [len(store.requests) for store in stores] == [2, 2, 2]


def test_nothing_is_read_before_it_is_indexed_and_only_what_is_selected() -> None:
    stores = [FarStore() for _ in range(2)]
    arrays = [tessarr.create_array(store, data=np.arange(8.0), chunks=(4,)) for store in stores]
    for store in stores:
        store.requests.clear()
    z = virtual.concat(arrays)
    view = z.lazy[9:11]
    assert [store.requests for store in stores] == [[], []]
    assert view.read().tolist() == [1.0, 2.0]
    assert [len(store.requests) for store in stores] == [0, 1]


def test_the_store_gives_the_same_chunks_to_whoever_reads_chunks(arrays: list[tessarr.Array]) -> None:
    z = virtual.concat(arrays)
    values: dict[str, bytes] = {}
    tessarr.copy_store(z.store, MemoryStore(values))
    np.testing.assert_array_equal(tessarr.open_array(values)[...], WHOLE)
    np.testing.assert_array_equal(tessarr.open_array(z.store, mode="r")[...], WHOLE)
    assert z.store.get("c/99/0") is None
    assert list(z.store.list("c/0/")) == [f"c/0/{n}" for n in range(3)]


def test_pickles_and_names_for_dask() -> None:
    z = virtual.stack([tessarr.array(VALUES[0]).lazy[:, [2, 0]]] * 2)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(z))[...], z[...])
    source = tessarr.array(VALUES[0])
    urls = {virtual.concat([source.lazy[index]]).store.url for index in ([0, 1], [1, 0], slice(0, 2))}
    assert len(urls) == 3
    assert virtual.concat([source]).store.url == virtual.concat([source]).store.url


def test_dask_reads_blocks_of_stored_values(arrays: list[tessarr.Array]) -> None:
    pytest.importorskip("dask.array")
    import tessarr.dask

    x = tessarr.dask.from_array(virtual.concat(arrays))
    assert x.chunks[0] == (2, 2, 1, 2, 1, 3, 3, 2)
    np.testing.assert_array_equal(x.compute(), WHOLE)


def test_xarray_reads_what_it_needs(arrays: list[tessarr.Array]) -> None:
    xr = pytest.importorskip("xarray")
    import tessarr.xarray

    dataset = xr.Dataset({"a": tessarr.xarray.variable(virtual.concat(arrays))})
    assert dataset.sizes == {"t": 16, "x": 7}
    np.testing.assert_array_equal(dataset.a.isel(t=[15, 0], x=slice(1, None, 2)).values, WHOLE[[15, 0], 1::2])
    assert tessarr.xarray.variable(tessarr.array(VALUES[0])).dims == ("dim_0", "dim_1")


def test_what_does_not_fit_is_refused(arrays: list[tessarr.Array]) -> None:
    for call, error, text in [
        (lambda: virtual.concat([]), ValueError, "at least one"),
        (lambda: virtual.concat([cast("Any", VALUES[0])]), TypeError, "got a ndarray"),
        (lambda: virtual.concat([arrays[0], arrays[1].lazy.T]), ValueError, r"number 1 has"),
        (lambda: virtual.concat(arrays, axis=2), IndexError, "range"),
        (lambda: virtual.stack(arrays), ValueError, "shapes of the arrays differ"),
        (lambda: virtual.concat([arrays[0], tessarr.zeros((5, 7), dtype="f4", store={})]), ValueError, "data types"),
        (lambda: virtual.merge({(0,): arrays[0]}), ValueError, "one integer"),
        (lambda: virtual.merge({(0, -1): arrays[0]}), ValueError, "from 0 on"),
        (lambda: virtual.merge({(0, 0): arrays[0]}, (4, 7)), ValueError, "not within"),
        (lambda: virtual.merge({}), ValueError, "at least one"),
    ]:
        with pytest.raises(error, match=text):
            call()  # type: ignore[no-untyped-call]


def test_it_is_not_written_and_names_what_cannot_be_read() -> None:
    values: dict[str, bytes] = {}
    source = tessarr.create_array(values, data=np.arange(8), chunks=(2,))
    z = virtual.concat([source, source])
    with pytest.raises(ReadOnlyError):
        z[0] = 1
    with pytest.raises(ReadOnlyError):
        z.resize((3,))
    values["c/3"] = b"broken"
    with pytest.raises(CodecError, match="c/3"):
        z[...]
    source.resize((4,))
    with pytest.raises(BoundsCheckError, match="made shorter"):
        z[...]
    assert z[:4].tolist() == [0, 1, 2, 3]
