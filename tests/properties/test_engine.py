"""What is written is what is read, whatever the data type, layout, chain, grid, fill value and selection."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import tessarr
from tessarr.stores.memory.store import MemoryStore

from .strategies import boxes, layouts, values


def same(found: Any, expected: Any) -> bool:
    """Equal bits."""
    found, expected = np.asarray(found), np.asarray(expected)
    return bool(found.shape == expected.shape and found.tobytes() == expected.astype(found.dtype).tobytes())


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_values_survive_the_round_trip_bit_for_bit(data: st.DataObject) -> None:
    layout = data.draw(layouts())
    expected = data.draw(values(layout.shape, layout.dtype))
    store = MemoryStore()
    array = tessarr.create_array(store, **layout.arguments())
    array[...] = expected
    assert same(array[...], expected)
    assert same(tessarr.open_array(store, mode="r")[...], expected)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_partial_writes_and_reads_agree_with_numpy(data: st.DataObject) -> None:
    layout = data.draw(layouts(min_dims=1))
    array = tessarr.create_array(MemoryStore(), **layout.arguments())
    model = np.empty(layout.shape, array.dtype)
    model[...] = array.fill_value if array.fill_value is not None else array._bound.metadata.data_type.default_fill()
    for _ in range(data.draw(st.integers(1, 3))):
        where = data.draw(boxes(layout.shape))
        new = data.draw(values(np.empty(layout.shape)[where].shape, layout.dtype))
        array[where] = new
        model[where] = new
    assert same(array[...], model)
    where = data.draw(boxes(layout.shape))
    assert same(array[where], model[where])


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_orthogonal_and_point_writes_agree_with_numpy(data: st.DataObject) -> None:
    """Chunks are written by several threads; `tests/core/test_writes_of_one_request.py` says why that changes nothing."""
    layout = data.draw(layouts(min_dims=1).filter(lambda layout: 0 not in layout.shape))
    array = tessarr.create_array(MemoryStore(), **layout.arguments())
    model = np.empty(layout.shape, array.dtype)
    model[...] = array.fill_value if array.fill_value is not None else array._bound.metadata.data_type.default_fill()
    picks = tuple(data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=6, unique=True)) for n in layout.shape)
    new = data.draw(values(tuple(map(len, picks)), layout.dtype))
    array.oindex[picks] = new
    model[np.ix_(*picks)] = new
    assert same(array[...], model)
    assert same(array.oindex[picks], model[np.ix_(*picks)])
    count = data.draw(st.integers(1, 8))
    points = tuple(
        np.array(data.draw(st.lists(st.integers(-n, n - 1), min_size=count, max_size=count))) for n in layout.shape
    )
    scattered = data.draw(values((count,), layout.dtype))
    array.vindex[points] = scattered
    model[points] = scattered
    assert same(array[...], model)
    assert same(array.vindex[points], model[points])
    mask = data.draw(values(layout.shape, np.dtype(bool)))
    assert same(array.get_mask_selection(mask), model[mask])


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_resize_and_append_agree_with_a_model(data: st.DataObject) -> None:
    layout = data.draw(layouts(min_dims=1))
    array = tessarr.create_array(MemoryStore(), **layout.arguments())
    fill = array.fill_value if array.fill_value is not None else array._bound.metadata.data_type.default_fill()
    model = np.empty(layout.shape, array.dtype)
    model[...] = fill
    for _ in range(data.draw(st.integers(1, 4))):
        if data.draw(st.booleans()):
            axis = data.draw(st.integers(0, array.ndim - 1))
            shape = tuple(data.draw(st.integers(0, 4)) if i == axis else n for i, n in enumerate(array.shape))
            more = data.draw(values(shape, layout.dtype))
            array.append(more, axis)
            model = np.concatenate([model, more.astype(model.dtype)], axis)
        else:
            shape = tuple(data.draw(st.integers(0, 8)) for _ in array.shape)
            array.resize(shape, clear=True)
            kept = tuple(slice(0, min(a, b)) for a, b in zip(shape, model.shape, strict=True))
            grown = np.empty(shape, model.dtype)
            grown[...] = fill
            grown[kept] = model[kept]
            model = grown
        assert array.shape == model.shape
        assert same(array[...], model)
