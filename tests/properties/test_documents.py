"""Arrays of random documents keep every bit, in both engines, however they are written."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tessarr
from tests.properties.documents import bits, elements, v3_documents

pytest.importorskip("ml_dtypes", reason="belongs to the extra [ml]")


def opened(store: dict[str, bytes], engine: str) -> Any:
    with warnings.catch_warnings(), tessarr.config.set({"engine": engine}):
        warnings.simplefilter("ignore", tessarr.errors.ZarrUserWarning)
        array = tessarr.open_array(store, mode="r+")
        assert array.engine.name
        return array


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_arrays_of_any_document_keep_every_bit(data: st.DataObject) -> None:
    document = data.draw(v3_documents())
    store = {"zarr.json": json.dumps(document).encode()}
    array = opened(store, data.draw(st.sampled_from(["auto", "reference"])))
    data_type = array._bound.metadata.data_type
    expected = data.draw(elements(array.shape, data_type))
    array[...] = expected
    if array.size and array.ndim:
        place = tuple(data.draw(st.integers(0, n - 1)) for n in array.shape)
        box = tuple(slice(at, None) for at in place)
        new = data.draw(elements(expected[box].shape, data_type))
        array[box] = new
        expected[box] = new
        array[place] = expected[tuple(-1 for _ in place)]
        expected[place] = expected[tuple(-1 for _ in place)]
    for engine in ("auto", "reference"):
        assert bits(opened(store, engine)[...], data_type) == bits(expected, data_type)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_document_says_the_same_after_it_was_rewritten(data: st.DataObject) -> None:
    document = data.draw(v3_documents())
    store = {"zarr.json": json.dumps(document).encode()}
    array = opened(store, "reference")
    array.attrs["a"] = 1
    again = opened(store, "reference")
    assert again.metadata.update_attributes({}) == array.metadata.update_attributes({})
    assert json.loads(store["zarr.json"])["fill_value"] == document["fill_value"]
    assert np.shape(again) == tuple(document["shape"])
