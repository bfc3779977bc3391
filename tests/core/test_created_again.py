"""Metadata of new arrays are not made anew of arguments that were given before, and nobody sees a difference."""

from __future__ import annotations

import warnings
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import tessarr
from tessarr import registry
from tessarr.core.creation import metadata as made
from tessarr.core.creation.array_config import DEFAULT
from tessarr.core.creation.metadata import new_array_metadata
from tessarr.errors import ZarrUserWarning
from tessarr.metadata import serialize
from tessarr.metadata.array import ArrayMetadata

ZSTD = {"name": "zstd", "configuration": {"level": 3, "checksum": False}}
PLAIN: dict[str, Any] = {"shape": (8, 6), "dtype": "uint16", "chunks": (4, 3), "compressors": [ZSTD], "fill_value": 0}

SHAPES = st.sampled_from([(8, 6), [8, 6], (8,), 8, (), (0, 6), (-1,), (True, 6), (8.0, 6), np.array([8, 6])])
DTYPES = st.sampled_from(
    ["uint16", "<u2", ">u2", "float32", "bool", "string", np.dtype("u2"), np.dtype(">u2"), np.uint16, float, np.dtype("f4"),
     np.dtype("u2", metadata={"of": "mine"}), ["H"], "no such type", "datetime64[s]", [["a", "<i4"]]]
)  # fmt: skip
FILLS = st.sampled_from(
    [
        DEFAULT,
        None,
        0,
        1,
        True,
        1.0,
        -0.0,
        0.0,
        float("nan"),
        "NaN",
        "1",
        np.float32(1),
        np.int32(1065353216),
        b"a",
    ]
)
CHUNKS = st.sampled_from(["auto", (4, 3), (4,), [4, 3], [[3, 5], [6]], True, (4, -1), (0, 1), "1KB"])
CODECS = st.sampled_from(
    ["auto", None, (), [ZSTD], ZSTD, "zstd", [{"name": "gzip", "configuration": {"level": 1}}], {"name": "none such"}]
)
ARGUMENTS = st.fixed_dictionaries(
    {"shape": SHAPES, "dtype": DTYPES},
    optional={
        "fill_value": FILLS,
        "chunks": CHUNKS,
        "compressors": CODECS,
        "shards": st.sampled_from([None, (8, 6), {"shape": (8, 6), "index_location": "start"}]),
        "dimension_names": st.sampled_from([None, ("y", "x"), ["y", "y"], ("y",)]),
        "chunk_key_encoding": st.sampled_from([None, "/", ".", {"name": "v2", "separator": "/"}]),
        "zarr_format": st.sampled_from([2, 3]),
        "attributes": st.sampled_from([None, {}, {"a": [1]}, {"a": np.float32(2)}]),
    },
)


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made, "_known", {})
    monkeypatch.setattr(registry, "_extended", set())


def outcome(arguments: dict[str, Any]) -> Any:
    """Return all that a caller sees of one call."""
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        try:
            metadata = new_array_metadata(**arguments)
        except Exception as error:
            found: Any = type(error), str(error)
        else:
            fill = None if metadata.fill_value is None else metadata.fill_value.tobytes()
            found = serialize.dumps(metadata.documents()), metadata.dtype, fill
    return found, [(warning.category, str(warning.message)) for warning in issued]


@given(before=st.lists(ARGUMENTS, max_size=3), arguments=ARGUMENTS)
def test_what_was_created_before_changes_nothing(before: list[dict[str, Any]], arguments: dict[str, Any]) -> None:
    made._known.clear()
    expected = outcome(arguments)
    made._known.clear()
    for other in before:
        outcome(other)
    assert [outcome(arguments), outcome(arguments)] == [expected, expected]


def test_equal_arguments_give_the_same_objects_and_attributes_of_their_own() -> None:
    first = new_array_metadata(**PLAIN, attributes={"a": [1]})
    again = new_array_metadata(**PLAIN, attributes={"b": 2})
    assert again.codecs is first.codecs
    assert again.chunk_grid is first.chunk_grid
    assert (first.attributes, again.attributes) == ({"a": [1]}, {"b": 2})
    new_array_metadata(**PLAIN).attributes["c"] = 3
    assert new_array_metadata(**PLAIN).attributes == {}


def test_a_dtype_of_numpy_is_no_list() -> None:
    assert new_array_metadata(**{**PLAIN, "dtype": np.dtype("H")}).dtype == np.uint16
    with pytest.raises((TypeError, ValueError)):
        new_array_metadata(**{**PLAIN, "dtype": ["H"]})


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, True), (1, 1.0), (0.0, -0.0), (np.float32(1), np.int32(1065353216)), (b"\x00\x00\x80?", np.float32(1))],
)
def test_fill_values_that_are_equal_or_have_equal_bytes_are_distinct(one: object, other: object) -> None:
    def document(fill: object) -> Any:
        return outcome({**PLAIN, "dtype": "float32", "fill_value": fill})

    expected = document(other)
    made._known.clear()
    document(one)
    assert document(other) == expected


def test_each_creation_warns() -> None:
    for _ in range(2):
        with pytest.warns(ZarrUserWarning, match="distinct"):
            new_array_metadata(**PLAIN, dimension_names=["y", "y"])


def test_settings_are_those_of_the_call() -> None:
    automatic = {**PLAIN, "shape": (10_000, 10_000), "chunks": "auto"}
    before = new_array_metadata(**automatic).chunks
    with tessarr.config.set({"zarr_python.auto_chunks": True}):
        assert new_array_metadata(**automatic).chunks != before
    assert new_array_metadata(**automatic).chunks == before


def test_nothing_is_kept_beside_registrations_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_extended", {("codec", "zstd")})
    new_array_metadata(**PLAIN)
    assert made._known == {}


def test_the_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made, "_MAX_KNOWN", 3)
    found: list[ArrayMetadata] = [new_array_metadata(**{**PLAIN, "shape": (n, 6)}) for n in range(8)]
    assert [metadata.shape for metadata in found] == [(n, 6) for n in range(8)]
    assert 0 < len(made._known) <= 3
    new_array_metadata(**{**PLAIN, "chunks": [[1] * 5000, [6]], "shape": (5000, 6)})
    assert max(len(key) for _, key in made._known) <= made._MAX_KEY_NBYTES
