"""Zarr v2 array metadata, line by line: ``.zarray`` and ``.zattrs`` as a user meets them through `open` and `create`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr as zarr
from tessarr.errors import MetadataValidationError, NodeNotFoundError, UnknownCodecError, ZarrRuntimeWarning
from tests.conformance.documents import v2_array_document
from tests.narrow import array_of

ZARRAY = v2_array_document((4, 6), (2, 3), fill_value=42)


def store_of(stored: dict[str, bytes] | None = None, /, **changes: Any) -> dict[str, bytes]:
    """A v2 array in a dict: `stored` beside a ``.zarray`` with `changes`."""
    return {".zarray": json.dumps({**ZARRAY, **changes}).encode(), **(stored or {})}


def opened(**changes: Any) -> zarr.Array:
    return zarr.open_array(store_of(**changes), mode="r")


@pytest.mark.spec("V2-01")
def test_a_plain_dict_is_store_enough_for_a_whole_hierarchy() -> None:
    store: dict[str, bytes] = {}
    root = zarr.open_group(store, mode="w", zarr_format=2)
    root.create_array("a/b", data=np.arange(4, dtype="<i4"), chunks=(2,), compressors=None)
    assert sorted(store) == [".zgroup", "a/.zgroup", "a/b/.zarray", "a/b/0", "a/b/1"]
    del store["a/b/1"]
    assert zarr.open_array(store, path="a/b", mode="r")[...].tolist() == [0, 1, 0, 0]


@pytest.mark.spec("V2-02")
def test_the_documents_and_chunks_of_an_array_stand_below_its_path() -> None:
    store: dict[str, bytes] = {}
    z = zarr.create(shape=(4, 6), chunks=(4, 6), dtype="i4", store=store, path="foo/bar", zarr_format=2)
    z[...] = 1
    z.attrs["a"] = 1
    zarr.open_group(store, path="foo", mode="r+").attrs["b"] = 2
    assert {key for key in store if key.startswith("foo/bar/")} == {
        "foo/bar/.zarray",
        "foo/bar/.zattrs",
        "foo/bar/0.0",
    }
    assert json.loads(store["foo/.zattrs"]) == {"b": 2}
    assert json.loads(store["foo/.zgroup"]) == {"zarr_format": 2}


@pytest.mark.spec("V2-02")
def test_the_root_has_no_prefix() -> None:
    store: dict[str, bytes] = {}
    z = zarr.create(shape=(2,), dtype="i4", store=store, zarr_format=2, attributes={"a": 1})
    z[...] = 1
    assert sorted(store) == [".zarray", ".zattrs", "0"]


@pytest.mark.spec("V2-03")
def test_without_zattrs_the_attributes_are_empty() -> None:
    store: dict[str, bytes] = {}
    root = zarr.create_group(store, zarr_format=2, attributes={"a": 1})
    root.create_array("x", shape=(2,), dtype="i4", attributes={"b": 1})
    del store[".zattrs"], store["x/.zattrs"]
    assert dict(zarr.open_group(store, mode="r").attrs) == {}
    assert dict(zarr.open_array(store, path="x", mode="r").attrs) == {}


@pytest.mark.spec("V2-04")
@pytest.mark.parametrize("wrong", [b"[]", b"null", b"", b"1", b'"text"', b"{"])
def test_zattrs_that_are_no_object_are_an_error_that_names_the_key(wrong: bytes) -> None:
    with pytest.raises(MetadataValidationError, match=r"\.zattrs"):
        zarr.open_array(store_of({".zattrs": wrong}), mode="r")
    with pytest.raises(MetadataValidationError, match=r"\.zattrs"):
        zarr.open_group({".zgroup": b'{"zarr_format": 2}', ".zattrs": wrong}, mode="r")


@pytest.mark.spec("V2-05")
@pytest.mark.parametrize("name", sorted(ZARRAY))
def test_every_member_is_required(name: str) -> None:
    document = {key: value for key, value in ZARRAY.items() if key != name}
    with pytest.raises(MetadataValidationError, match=name):
        zarr.open_array({".zarray": json.dumps(document).encode()}, mode="r")


@pytest.mark.spec("V2-06")
@pytest.mark.parametrize("wrong", [1, 3, "2", 2.5, True, None])
def test_zarr_format_is_the_integer_two(wrong: Any) -> None:
    with pytest.raises(MetadataValidationError, match="zarr_format"):
        opened(zarr_format=wrong)


@pytest.mark.spec("V2-07")
@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("chunks", {"chunks": [2]}),
        ("chunks", {"chunks": [2, 3, 4]}),
        ("chunks", {"chunks": [2, -3]}),
        ("chunks", {"chunks": [2, 0]}),
        ("chunks", {"chunks": [True, 3]}),
        ("chunks", {"chunks": 2}),
        ("shape", {"shape": [4, -6]}),
        ("shape", {"shape": [True, 6]}),
        ("shape", {"shape": [4.5, 6]}),
        ("shape", {"shape": "46"}),
    ],
)
def test_shape_and_chunks_are_integers_of_one_length(name: str, changes: dict[str, Any]) -> None:
    with pytest.raises(MetadataValidationError, match=name):
        opened(**changes)


@pytest.mark.spec("V2-08")
@pytest.mark.parametrize("wrong", [{}, {"level": 1}, {"id": 1}, "zlib", []])
def test_a_compressor_has_an_id(wrong: Any) -> None:
    with pytest.raises(MetadataValidationError, match="compressor"):
        opened(compressor=wrong)


@pytest.mark.spec("V2-08")
def test_without_a_compressor_a_chunk_is_raw_bytes() -> None:
    raw = np.arange(6, dtype="<i4").tobytes()
    assert zarr.open_array(store_of({"0.0": raw}), mode="r")[:2, :3].tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.spec("V2-08")
def test_an_unknown_compressor_is_an_error_at_the_first_chunk_and_the_metadata_can_be_looked_at() -> None:
    z = zarr.open_array(store_of({"0.0": b"x"}, compressor={"id": "frobnicate"}), mode="r")
    assert (z.shape, z.chunks, z.dtype, z.fill_value) == ((4, 6), (2, 3), np.dtype("<i4"), 42)
    with pytest.raises(UnknownCodecError, match="frobnicate"):
        z[0, 0]


@pytest.mark.spec("V2-09")
@pytest.mark.parametrize("wrong", [[{"dtype": "<f8"}], [1], {"id": "delta"}, "delta", [{}]])
def test_a_filter_has_an_id(wrong: Any) -> None:
    with pytest.raises(MetadataValidationError, match="filters"):
        opened(filters=wrong)


@pytest.mark.spec("V2-09")
def test_an_empty_list_of_filters_is_read_as_null_and_never_written() -> None:
    store = store_of(filters=[])
    with pytest.warns(ZarrRuntimeWarning, match="filters"):
        z = zarr.open_array(store, mode="r+")
    z.resize(8, 6)
    assert json.loads(store[".zarray"])["filters"] is None
    made: dict[str, bytes] = {}
    zarr.create(shape=(2,), dtype="i4", store=made, filters=[], zarr_format=2)
    assert json.loads(made[".zarray"])["filters"] is None


@pytest.mark.spec("V2-10")
def test_order_gives_the_layout_in_a_chunk() -> None:
    values = [[0, 1, 2], [3, 4, 5]]
    fortran = np.array([0, 3, 1, 4, 2, 5], "<i4").tobytes()
    shape = {"shape": [2, 3]}
    assert zarr.open_array(store_of({"0.0": fortran}, order="F", **shape), mode="r")[...].tolist() == values
    store: dict[str, bytes] = {}
    z = zarr.create(shape=(2, 3), chunks=(2, 3), dtype="<i4", order="F", compressor=None, store=store, zarr_format=2)
    z[...] = values
    assert store["0.0"] == fortran
    for wrong in ("K", "c", None, 1):
        with pytest.raises(MetadataValidationError, match="order"):
            opened(order=wrong)


@pytest.mark.spec("V2-11")
def test_a_fill_value_of_null_leaves_missing_chunks_undefined_which_reads_as_zeros() -> None:
    z = opened(fill_value=None)
    assert z.fill_value is None
    assert not z[...].any()
    with pytest.raises(MetadataValidationError, match="fill_value"):
        opened(fill_value=[1, 2])


@pytest.mark.spec("V2-12")
def test_the_dimension_separator_is_a_period_unless_it_is_a_slash() -> None:
    raw = np.arange(6, dtype="<i4").tobytes()
    assert zarr.open_array(store_of({"0.1": raw}), mode="r")[0, 3:].tolist() == [0, 1, 2]
    assert zarr.open_array(store_of({"0.1": raw}, dimension_separator="."), mode="r")[0, 3:].tolist() == [0, 1, 2]
    assert zarr.open_array(store_of({"0/1": raw}, dimension_separator="/"), mode="r")[0, 3:].tolist() == [0, 1, 2]
    for wrong in ("-", "", None, 1):
        with pytest.raises(MetadataValidationError, match="dimension_separator"):
            opened(dimension_separator=wrong)


@pytest.mark.spec("V2-12", "V2-13")
def test_slashes_in_keys_are_directories(tmp_path: Path) -> None:
    z = zarr.create(
        shape=(4, 6), chunks=(2, 3), dtype="i4", store=tmp_path / "a", dimension_separator="/", zarr_format=2
    )
    z[...] = 1
    assert json.loads((tmp_path / "a/.zarray").read_text())["dimension_separator"] == "/"
    files = sorted(p.relative_to(tmp_path / "a").as_posix() for p in (tmp_path / "a").rglob("*") if p.is_file())
    assert files == [".zarray", "0/0", "0/1", "1/0", "1/1"]
    assert (array_of(zarr.open(tmp_path / "a", mode="r"))[...] == 1).all()


@pytest.mark.spec("V2-14")
def test_other_members_are_ignored_kept_and_never_added() -> None:
    store = store_of(foo={"must": "not matter"})
    z = zarr.open_array(store, mode="r+")
    z.resize(8, 6)
    assert json.loads(store[".zarray"]) == {**ZARRAY, "shape": [8, 6], "foo": {"must": "not matter"}}
    made: dict[str, bytes] = {}
    zarr.create(shape=(2,), dtype="i4", store=made, zarr_format=2)
    assert json.loads(made[".zarray"]).keys() == ZARRAY.keys()


@pytest.mark.spec("V2-16")
def test_an_array_without_dimensions_has_one_chunk_called_0(tmp_path: Path) -> None:
    z = zarr.create(shape=(), dtype="<f8", store=tmp_path, zarr_format=2, compressor=None, fill_value=0)
    z[()] = 1.5
    assert sorted(p.name for p in tmp_path.iterdir()) == [".zarray", "0"]
    assert (tmp_path / "0").read_bytes() == np.array(1.5, "<f8").tobytes()
    document = json.loads((tmp_path / ".zarray").read_text())
    assert document["shape"] == document["chunks"] == []
    assert zarr.open_array(tmp_path, mode="r")[()] == 1.5


@pytest.mark.spec("V2-17")
def test_a_dimension_of_length_zero_has_no_chunks() -> None:
    z = opened(shape=[0, 6])
    assert z[...].shape == (0, 6)
    assert z[...].dtype == np.dtype("<i4")
    assert z.nchunks == 0
    with pytest.warns(ZarrRuntimeWarning):
        assert opened(shape=[0, 6], chunks=[0, 3])[...].shape == (0, 6)


@pytest.mark.spec("V2-18")
def test_a_chunk_may_be_longer_than_its_dimension() -> None:
    store: dict[str, bytes] = {}
    z = zarr.create(shape=(5,), chunks=(10,), dtype="<i4", compressor=None, store=store, zarr_format=2)
    z[...] = np.arange(5)
    assert z.chunks == (10,)
    assert len(store["0"]) == 40
    assert np.frombuffer(store["0"], "<i4")[:5].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.spec("V2-38")
def test_a_large_integer_fill_value_is_exact() -> None:
    for dtype, fill in [("<u8", 18446744073709551615), ("<i8", -9223372036854775807), ("<u8", 2**53 + 1)]:
        store: dict[str, bytes] = {}
        zarr.create(shape=(2,), dtype=dtype, fill_value=fill, store=store, zarr_format=2)
        assert json.loads(store[".zarray"])["fill_value"] == fill
        assert int(zarr.open_array(store, mode="r")[0]) == fill


@pytest.mark.spec("V2-57", "V2-58", "OGC-23")
def test_attribute_values_are_any_json() -> None:
    values = {
        "foo": 42,
        "bar": "apples",
        "baz": [1, 2, 3, 4],
        "nested": {"a": [{"b": None}, True], "": {}},
        "unicode": "añb – 日本",
        "large": 2**70,
        "float": 1e-300,
        "none": None,
    }
    store: dict[str, bytes] = {}
    z = zarr.create(shape=(2,), dtype="i4", store=store, zarr_format=2)
    z.attrs.put(values)
    assert json.loads(store[".zattrs"]) == values
    assert dict(zarr.open_array(store, mode="r").attrs) == values
    root = zarr.create_group({}, zarr_format=2, attributes=values)
    assert root.attrs.asdict() == values


@pytest.mark.spec("V2-57")
def test_the_specification_s_example_of_attributes_is_read() -> None:
    z = zarr.open_array(store_of({".zattrs": b'{"foo": 42, "bar": "apples", "baz": [1, 2, 3, 4]}'}), mode="r")
    assert z.attrs.asdict() == {"foo": 42, "bar": "apples", "baz": [1, 2, 3, 4]}


@pytest.mark.spec("V2-58")
@pytest.mark.parametrize("value", [float("nan"), float("inf"), np.float32("nan"), {"deep": [-float("inf")]}])
def test_nan_and_infinity_are_not_json_and_are_refused_on_write(value: Any) -> None:
    store = store_of({".zattrs": b'{"kept": 1}'})
    z = zarr.open_array(store, mode="r+")
    with pytest.raises((TypeError, ValueError), match=r"(?i)nan|inf|json"):
        z.attrs["a"] = value
    assert json.loads(store[".zattrs"]) == {"kept": 1}
    assert dict(z.attrs) == {"kept": 1}


@pytest.mark.spec("V2-58")
def test_bare_nan_in_attributes_is_read() -> None:
    z = zarr.open_array(store_of({".zattrs": b'{"a": NaN, "b": [-Infinity]}'}), mode="r")
    assert np.isnan(z.attrs["a"])
    assert z.attrs["b"] == [-np.inf]


@pytest.mark.spec("V2-50")
def test_a_directory_without_a_document_is_no_node(tmp_path: Path) -> None:
    zarr.create_group(tmp_path, zarr_format=2)
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain/file").write_text("x")
    root = zarr.open_group(tmp_path, mode="r")
    assert "plain" not in root
    assert list(root) == []
    with pytest.raises(NodeNotFoundError):
        zarr.open(tmp_path / "plain", mode="r")
