"""``array.lazy``: views are indexed without I/O, read in one request, and written."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.errors import BoundsCheckError, FieldNotFoundError, ReadOnlyError
from tessarr.storage import LoggingStore, MemoryStore


@pytest.fixture(params=["auto", "reference"])
def array(request: pytest.FixtureRequest) -> Iterator[tessarr.Array]:
    """Chunks of (2, 3, 3), and the numbers of elements in C order."""
    with tessarr.config.set({"engine": request.param}):
        z = tessarr.create_array(MemoryStore(), shape=(4, 6, 3), chunks=(2, 3, 3), dtype="int64")
        z[...] = NUMBERS
        yield z


NUMBERS = np.arange(72).reshape(4, 6, 3)


def test_nothing_is_read_until_the_elements_are_asked_for() -> None:
    inner = MemoryStore()
    tessarr.create_array(inner, shape=(4, 6), chunks=(2, 3), dtype="i4", fill_value=5)[0, 0] = 1
    z = tessarr.open_array(LoggingStore(inner))
    store: Any = z.store
    store.counter.clear()
    view = z.lazy[1:, None, ::-1].T.flip(0).squeeze(1)[2:4]
    assert view.shape == (2, 3)
    assert sum(store.counter.values()) == 0
    assert view.read().tolist() == [[5, 5, 5], [5, 5, 5]]
    assert sum(store.counter.values()) > 0


@pytest.mark.parametrize(
    "index",
    [
        ...,
        (1, slice(None, None, -2)),
        (slice(None), [3, 0], 1),
        (None, slice(1, 3), ..., None),
        ([0, 2], slice(None), [2, 0]),
        NUMBERS % 5 == 0,
        np.array([[0, 1], [2, 1]]),
        (0, 0, 0),
        slice(2, 2),
    ],
    ids=[
        "all",
        "integer and slice",
        "array and integer",
        "new axes",
        "arrays",
        "mask",
        "array of two axes",
        "element",
        "none",
    ],
)
def test_a_view_reads_what_numpy_selects_and_writes_it_back(array: tessarr.Array, index: Any) -> None:
    for order in ((0, 1, 2), (2, 0, 1)):
        expected = NUMBERS.transpose(order)
        view = array.lazy.transpose(order)
        if order == (0, 1, 2) or not isinstance(index, np.ndarray) or index.shape != NUMBERS.shape:
            some, there = view[index], np.array(expected[index])
            assert some.shape == there.shape
            assert np.array_equal(some.read(), there)
            assert np.array_equal(np.asarray(some), there)
            view[index] = -there
            assert np.array_equal(some.read(), -there)
            some.write(there)
            assert np.array_equal(array[...], NUMBERS)


def test_rearrangements_are_those_of_numpy(array: tessarr.Array) -> None:
    view, lazy = NUMBERS[:, :1], array.lazy[:, :1]
    for found, expected in [
        (lazy.T, view.T),
        (lazy.mT, np.swapaxes(view, -1, -2)),
        (lazy.transpose(), view.transpose()),
        (lazy.transpose(1, 2, 0), view.transpose(1, 2, 0)),
        (lazy.permute_dims((1, -1, 0)), view.transpose((1, -1, 0))),
        (lazy.moveaxis(0, -1), np.moveaxis(view, 0, -1)),
        (lazy.expand_dims(-1), np.expand_dims(view, -1)),
        (lazy.expand_dims(1), np.expand_dims(view, 1)),
        (lazy.squeeze(), view.squeeze()),
        (lazy.squeeze(1), view.squeeze(1)),
        (lazy.flip(), np.flip(view)),
        (lazy.flip((0, -1)), np.flip(view, (0, -1))),
    ]:
        assert found.shape == expected.shape
        assert np.array_equal(found.read(), expected)
    with pytest.raises(ValueError, match="axis 0 has length 4"):
        lazy.squeeze(0)
    with pytest.raises(ValueError, match="at least two axes"):
        _ = lazy[0, 0].mT
    with pytest.raises(IndexError):
        lazy.expand_dims(5)


def test_views_are_indexed_orthogonally_and_by_points(array: tessarr.Array) -> None:
    view = array.lazy[::-1].T  # (3, 6, 4)
    expected = NUMBERS[::-1].T
    assert np.array_equal(view.oindex[[2, 0], 1:4, [3, 1]].read(), expected[np.ix_([2, 0], [1, 2, 3], [3, 1])])
    assert np.array_equal(view.vindex[[2, 0], [1, 5], [3, 1]].read(), expected[[2, 0], [1, 5], [3, 1]])
    assert np.array_equal(view.vindex[expected > 60].read(), expected[expected > 60])
    view.oindex[[2, 0], 1:4, [3, 1]] = 0
    view.vindex[[1], [5], [0]] = -1
    assert array[3, 5, 1] == -1
    assert array[0, 1:4, 2].tolist() == [0, 0, 0]


def test_out_is_filled_and_returned(array: tessarr.Array) -> None:
    out = np.empty((3, 6, 4), np.int64)
    assert array.lazy.T.read(out=out) is out
    assert np.array_equal(out, NUMBERS.T)
    with pytest.raises(ValueError, match="the selection has shape"):
        array.lazy.read(out=out)


def test_a_view_is_read_and_written_without_blocking_the_event_loop(array: tessarr.Array) -> None:
    view = array.lazy[1, ::-1]

    async def both() -> Any:
        await view.write_async(7)
        return await view.read_async()

    assert np.array_equal(asyncio.run(both()), np.full((6, 3), 7))
    assert (array[1] == 7).all()


def test_fields_are_read_and_written_through_a_view() -> None:
    records = np.array([(1, 2.0), (3, 4.0)], dtype=[("a", "i4"), ("b", "f8")])
    z = tessarr.array(records)
    view = z.lazy["a"][::-1]
    assert view.dtype == np.dtype("i4")
    assert view.nbytes == 8
    assert view.read().tolist() == [3, 1]
    view[0] = 9
    assert z[...].tolist() == [(1, 2.0), (9, 4.0)]
    assert z.lazy[["b"]][1]["b"].read() == 4.0
    with pytest.raises(FieldNotFoundError, match="no such field"):
        z.lazy["c"]
    with pytest.raises((KeyError, IndexError)):
        z.lazy[["b"]]["a"]


def test_a_view_reads_what_is_stored_when_it_is_read(array: tessarr.Array) -> None:
    view = array.lazy[3, ::2]
    array[3, 2] = -5
    assert view.read()[1].tolist() == [-5, -5, -5]
    array.resize((8, 6, 3))
    assert view.read()[1].tolist() == [-5, -5, -5]
    array.resize((3, 6, 3))
    with pytest.raises(BoundsCheckError, match="has length 3 now"):
        view.read()
    with pytest.raises(BoundsCheckError, match="has length 3 now"):
        view.write(1)


def test_a_view_of_a_read_only_array_is_not_written(array: tessarr.Array) -> None:
    z = tessarr.open_array(array.store, mode="r")
    with pytest.raises(ReadOnlyError):
        z.lazy[0].write(1)


def test_facts_and_protocols_of_a_view(array: tessarr.Array, tmp_path: Path) -> None:
    view = array.lazy[1:, 0]
    assert (view.shape, view.ndim, view.size, view.nbytes, len(view)) == ((3, 3), 2, 9, 72, 3)
    assert view.dtype == np.dtype("int64")
    assert view.array is array
    assert repr(view) == "<View of / (3, 3) int64>"
    assert np.array_equal(np.from_dlpack(view), NUMBERS[1:, 0])
    assert np.array_equal(np.from_dlpack(array), NUMBERS)
    assert view.device == array.device == "cpu"
    assert np.asarray(view, dtype="f4").dtype == np.float32
    with pytest.raises(ValueError, match="copy=False"):
        np.asarray(view, copy=False)
    with pytest.raises(BufferError, match="copy=False"):
        view.__dlpack__(copy=False)
    with pytest.raises(TypeError, match="0-d"):
        len(view[0, 0])
    stored = tessarr.create_array(tmp_path / "a", data=NUMBERS, chunks=(2, 3, 3))
    assert np.array_equal(pickle.loads(pickle.dumps(stored.lazy[1:, ::-1])).read(), NUMBERS[1:, ::-1])
