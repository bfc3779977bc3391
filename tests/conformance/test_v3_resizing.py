"""Zarr v3: growing and shrinking, by the chunks that remain."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.errors import ZarrUserWarning
from tests.conformance.documents import Place, array_document, sharding, store_of, stored_json
from tests.narrow import array_of

VALUES = np.arange(1, 37, dtype="<i4").reshape(6, 6)


def filled(place: Place, **members: Any) -> Any:
    """A 6 × 6 array of chunks of 2 × 4, all written; fill value -1."""
    z = place.open(array_document((6, 6), (2, 4), **{"fill_value": -1, **members}))
    z[...] = VALUES
    return z


def element(place: Place, key: str, *where: int) -> int:
    data = place.get(key)
    assert data is not None
    return int(np.frombuffer(data, "<i4").reshape(2, 4)[where])


@pytest.mark.spec("V3-RESIZE-01")
def test_shrinking_deletes_exactly_the_chunks_outside_and_leaves_those_at_the_edge_alone(place: Place) -> None:
    z = filled(place)
    edge = place.get("c/1/0")
    z.resize(3, 3)
    assert place.keys() == ["c/0/0", "c/1/0"]
    assert place.get("c/1/0") == edge
    assert element(place, "c/1/0", 1, 3) == VALUES[3, 3]  # beyond the edge, stale
    assert (z[...] == VALUES[:3, :3]).all()
    assert (array_of(tessarr.open(place.store, mode="r"))[...] == VALUES[:3, :3]).all()


@pytest.mark.spec("V3-RESIZE-01", "V3-RESIZE-03")
def test_kept_chunks_bring_their_data_back_and_the_user_is_told(place: Place) -> None:
    z = filled(place)
    before = place.keys()
    with pytest.warns(ZarrUserWarning, match="their data reappears if the array grows again"):
        z.resize((1, 1), delete_outside_chunks=False)
    assert place.keys() == before
    assert z[...].tolist() == [[1]]
    z.resize(6, 6)
    assert (z[...] == VALUES).all()


@pytest.mark.spec("V3-RESIZE-01")
def test_shrinking_with_deletion_brings_back_only_what_shared_a_chunk(place: Place) -> None:
    z = filled(place)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        z.resize(3, 3)
        z.resize(6, 6)
    expected = np.full((6, 6), -1)
    expected[:4, :4] = VALUES[:4, :4]
    assert (z[...] == expected).all()


@pytest.mark.spec("V3-RESIZE-02")
def test_growing_changes_the_document_only(place: Place) -> None:
    z = filled(place)
    before = [(key, place.get(key)) for key in place.keys()]  # noqa: SIM118 - no mapping
    z.resize(100, 7)
    assert [(key, place.get(key)) for key in place.keys()] == before  # noqa: SIM118
    assert (z[:6, :6] == VALUES).all()
    assert (z[6:] == -1).all()
    assert (z[:, 6:] == -1).all()
    assert z.shape == tessarr.open(place.store).shape == (100, 7)


@pytest.mark.spec("V3-RESIZE-04")
@pytest.mark.parametrize("sharded", [False, True])
def test_clearing_overwrites_what_comes_back(place: Place, sharded: bool) -> None:
    members = {"codecs": [sharding([1, 2])]} if sharded else {}
    z = filled(place, **members)
    with pytest.warns(ZarrUserWarning):
        z.resize((3, 3), delete_outside_chunks=False)
    z.resize((6, 6), clear=True)
    expected = np.full((6, 6), -1)
    expected[:3, :3] = VALUES[:3, :3]
    assert (z[...] == expected).all()
    assert place.keys() == ["c/0/0", "c/1/0"]
    z = filled(place, **members)
    z.resize((3, 3), clear=True)
    z.resize(6, 6)
    assert (z[...] == expected).all()


@pytest.mark.spec("V3-RESIZE-05", "V3-GRID-06")
def test_edge_chunks_hold_the_fill_value_of_when_they_were_written(place: Place) -> None:
    z = filled(place)
    assert element(place, "c/0/1", 0, 2) == -1
    document = z.metadata.to_dict()
    chunk = place.get("c/0/1")
    assert chunk is not None
    z = place.open({**document, "fill_value": -9}, {"c/0/1": chunk})
    z.resize(6, 9)
    assert z[0].tolist() == [-9, -9, -9, -9, 5, 6, -1, -1, -9]


@pytest.mark.spec("V3-RESIZE-06", "V3-META-17")
def test_resizing_keeps_all_else_and_the_number_of_axes() -> None:
    ignorable = {"must_understand": False, "y": [1]}
    document = array_document(
        (6, 6), (2, 4), attributes={"a": [1, {"b": None}]}, dimension_names=["x", None], extension=ignorable
    )
    store = store_of({"": document})
    z = tessarr.open(store, mode="r+")
    z.resize(8, 3)
    assert stored_json(store) == {**document, "shape": [8, 3]}
    for wrong in ((8,), (8, 3, 1), (), (-1, 3), (1.5, 3), (True, 3), ("8", 3)):
        with pytest.raises((ValueError, TypeError)):
            z.resize(wrong)
    assert stored_json(store) == {**document, "shape": [8, 3]}
    assert z.shape == (8, 3)


@pytest.mark.spec("V3-RESIZE-06")
def test_consolidated_metadata_follows_a_resize() -> None:
    store: dict[str, bytes] = {}
    root = tessarr.group(store)
    root.create_array("g/z", shape=4, dtype="i4")
    tessarr.consolidate_metadata(store)
    tessarr.open_group(store, mode="r+")["g/z"].resize(9)
    assert stored_json(store)["consolidated_metadata"]["metadata"]["g/z"]["shape"] == [9]
    consolidated = tessarr.open_consolidated(store, mode="r")
    assert consolidated["g/z"].shape == (9,)
    tessarr.open(store, path="g/z", mode="r+").append(np.arange(3))
    assert tessarr.open_consolidated(store, mode="r")["g/z"].shape == (12,)
