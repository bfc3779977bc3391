"""Zarr v3: chunks at the edges, empty axes and chunk keys, in what is stored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.errors import ArrayIndexError, MetadataValidationError
from tests.conformance.documents import Place, array_document, regular, stored_json
from tests.narrow import array_of


def chunk_of(place: Place, key: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    data = place.get(key)
    assert data is not None
    return np.frombuffer(data, "<i4").reshape(shape)


@pytest.mark.spec("V3-GRID-05", "V3-GRID-06", "V3-RESIZE-05")
def test_elements_beyond_the_edge_are_stored_as_fill_value(place: Place) -> None:
    z = place.open(array_document((30, 30), (16, 16), fill_value=-1))
    z[...] = np.arange(900).reshape(30, 30)
    chunk = chunk_of(place, "c/0/1", (16, 16))
    assert (chunk[:, 14:] == -1).all()
    assert (chunk[:, :14] == z[:16, 16:]).all()
    corner = chunk_of(place, "c/1/1", (16, 16))
    assert (corner[14:] == -1).all()
    assert (corner[:, 14:] == -1).all()


@pytest.mark.spec("V3-GRID-06")
def test_the_reader_never_trusts_what_lies_beyond_the_edge(place: Place) -> None:
    stored = np.arange(4, dtype="<i4")
    z = place.open(array_document((3,), (4,)), {"c/0": stored.tobytes()})
    assert z[...].tolist() == [0, 1, 2]
    assert z[-1] == 2
    z.resize(5)
    assert z[...].tolist() == [0, 1, 2, 3, 0]


@pytest.mark.spec("V3-GRID-03", "V3-GRID-04", "V3-GRID-02")
def test_the_worked_example_of_the_regular_grid(place: Place) -> None:
    z = place.open(array_document((10, 200, 3000), (5, 20, 400), "int8", codecs=["bytes"]))
    assert z.cdata_shape == (2, 10, 8)
    z[7, 150, 900] = 1
    assert place.keys() == ["c/1/7/2"]
    data = place.get("c/1/7/2")
    assert data is not None
    assert np.argwhere(np.frombuffer(data, "i1").reshape(5, 20, 400)).tolist() == [[2, 10, 100]]


@pytest.mark.spec("V3-GRID-07", "V3-CKE-03", "V3-CKE-06")
@pytest.mark.parametrize(
    ("encoding", "key"),
    [
        ("default", "c"), ({"name": "default", "configuration": {"separator": "."}}, "c"),
        ("v2", "0"), ({"name": "v2", "configuration": {"separator": "/"}}, "0"),
    ],
)  # fmt: skip
def test_an_array_without_dimensions_has_one_chunk(place: Place, encoding: Any, key: str) -> None:
    z = place.open(array_document((), (), chunk_key_encoding=encoding))
    assert z.cdata_shape == ()
    assert z.nchunks == 1
    z[...] = 5
    assert place.keys() == [key]


@pytest.mark.spec("V3-GRID-08", "V3-HIER-07")
def test_an_empty_axis_has_no_chunks_and_can_grow(place: Place) -> None:
    z = place.open(array_document((0, 4), (2, 4)))
    assert z.cdata_shape == (0, 1)
    assert z.nchunks == 0
    assert z[...].shape == (0, 4)
    z[...] = np.empty((0, 4))
    z[0:0] = 1
    assert place.keys() == []
    assert z.append(np.arange(12).reshape(3, 4)) == (3, 4)
    assert z[...].tolist() == np.arange(12).reshape(3, 4).tolist()
    assert place.keys() == ["c/0/0", "c/1/0"]


@pytest.mark.spec("V3-GRID-09")
def test_there_are_no_negative_chunks() -> None:
    z = tessarr.create_array({}, shape=(4, 4), chunks=(2, 2), dtype="i4")
    for wrong in ((2, 0), (-3, 0), (0, 5)):
        with pytest.raises((ArrayIndexError, IndexError)):
            z.blocks[wrong]


@pytest.mark.spec("V3-GRID-10")
def test_an_unknown_grid_is_refused_at_open(place: Place) -> None:
    with pytest.raises(MetadataValidationError, match="hexagonal"):
        place.open(array_document(chunk_grid={"name": "hexagonal", "configuration": {"edge": 2}}))


@pytest.mark.spec("V3-CKE-07")
def test_v2_keys_are_written_only_on_request() -> None:
    store: dict[str, bytes] = {}
    z = tessarr.create_array(store, name="z", shape=(2, 2), chunks=(1, 1), dtype="i1")
    assert stored_json(store, "z")["chunk_key_encoding"]["name"] == "default"
    asked = tessarr.create_array(
        store, name="x", shape=(2, 2), chunks=(1, 1), dtype="i1", chunk_key_encoding={"name": "v2", "separator": "."}
    )
    asked[1, 0] = 1
    z[0, 1] = 1
    encoding = stored_json(store, "x")["chunk_key_encoding"]
    assert encoding == {"name": "v2", "configuration": {"separator": "."}}
    assert {"x/1.0", "z/c/0/1"} <= set(store)


@pytest.mark.spec("V3-CKE-01", "V3-CKE-02", "V3-CKE-05", "V3-CKE-08")
@pytest.mark.parametrize(
    ("encoding", "key"),
    [
        ("default", "c/1/23/45"), ({"name": "default", "configuration": {"separator": "."}}, "c.1.23.45"),
        ("v2", "1.23.45"), ({"name": "v2", "configuration": {"separator": "/"}}, "1/23/45"),
    ],
)  # fmt: skip
def test_the_examples_of_chunk_keys(place: Place, encoding: Any, key: str) -> None:
    z = place.open(array_document((2, 24, 46), chunk_grid=regular((1, 1, 1)), chunk_key_encoding=encoding))
    z[1, 23, 45] = 7
    assert place.keys() == [key]
    assert z[1, 23, 45] == 7
    assert [coords for coords, _ in z.stored_chunks()] == [(1, 23, 45)]


@pytest.mark.spec("V3-CKE-09")
def test_keys_that_only_look_like_chunks_are_none(place: Place) -> None:
    strays = dict.fromkeys(("c/01/2", "c/1", "c/1/2/3", "c/-1/0", "c/+1/0", "c/9/9", "1/1", "d/1/1"), b"\x01")
    place.put({"": array_document((4, 4), (1, 1), "int8", codecs=["bytes"])}, {"c/1/2": b"\7"} if place.folder else {})
    if place.folder is None:
        place.put({}, {**strays, "c/1/2": b"\7"})
    else:
        place.put({}, {"c/01/2": b"\1", "c/-1/0": b"\1", "c/9/9": b"\1", "d/1/1": b"\1"})
    z = array_of(tessarr.open(place.store, mode="r"))
    assert [coords for coords, _ in z.stored_chunks()] == [(1, 2)]
    assert int(z[...].sum()) == 7
