"""Zarr v3: the array document, member by member."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr import registry
from tessarr.dtypes.parse import from_v3
from tessarr.dtypes.time import DateTime64
from tessarr.errors import MetadataValidationError, NodeNotFoundError, ZarrRuntimeWarning, ZarrUserWarning
from tessarr.metadata.public import ArrayV3Metadata
from tessarr.types import JSON
from tests.conformance.documents import LITTLE, array_document, opened, regular, store_of, stored_json
from tests.narrow import array_of

REQUIRED = [
    "zarr_format",
    "node_type",
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_key_encoding",
    "fill_value",
    "codecs",
]


@pytest.mark.spec("V3-META-01")
@pytest.mark.parametrize("name", REQUIRED)
def test_a_missing_member_is_named(name: str) -> None:
    assert opened(array_document()).shape == (4,)
    with pytest.raises(MetadataValidationError, match=f"{name}: required") as raised:
        opened(array_document(drop=[name]))
    assert (name,) in [problem.loc for problem in raised.value.problems]
    assert (raised.value.path, raised.value.key) == ("/", "zarr.json")


@pytest.mark.spec("V3-META-01", "V3-META-19")
@pytest.mark.parametrize(
    "text",
    [
        b"[]", b"", b"null", b'"zarr"', b"{", b'{"zarr_format": 3,}', b"\xff{}", b"\xef\xbb\xbf{}",
        b'{"zarr_format": 3, "node_type": "group", "attributes": {"a": NaN}}',
        json.dumps(array_document(fill_value=float("nan"), data_type="float64")).encode(),
        json.dumps(array_document(fill_value=float("-inf"), data_type="float64")).encode(),
    ],
)  # fmt: skip
def test_what_is_no_json_object_is_refused_naming_the_key(text: bytes) -> None:
    with pytest.raises(MetadataValidationError, match=r"g/zarr\.json|'zarr\.json'") as raised:
        tessarr.open({"g/zarr.json": text}, path="g", mode="r")
    assert raised.value.path == "/g"


@pytest.mark.spec("V3-META-01")
@pytest.mark.parametrize("name", REQUIRED)
def test_a_duplicate_member_that_decides_what_the_node_is_is_an_error(name: str) -> None:
    document = array_document((4,))
    text = f"{json.dumps(document)[:-1]}, {json.dumps(name)}: {json.dumps(document[name])}}}"
    with pytest.raises(MetadataValidationError, match=f"{name}: occurs more than once") as raised:
        tessarr.open({"zarr.json": text.encode()}, mode="r")
    assert raised.value.key == "zarr.json"


@pytest.mark.spec("V3-META-01")
def test_of_duplicate_attributes_the_last_one_wins() -> None:
    text = json.dumps(array_document((4,), attributes={}))
    text = text.replace('"attributes": {}', '"attributes": {"a": 1, "a": 2, "shape": {"b": 3, "b": 4}}')
    opened = tessarr.open({"zarr.json": text.encode()}, mode="r")
    assert opened.attrs.asdict() == {"a": 2, "shape": {"b": 4}}


@pytest.mark.spec("V3-META-02")
@pytest.mark.parametrize("value", [2, 4, "3", None, 3.0, True])
def test_the_format_is_the_integer_3(value: Any) -> None:
    with pytest.raises(MetadataValidationError, match="zarr_format"):
        opened(array_document(zarr_format=value))


@pytest.mark.spec("V3-META-03")
def test_a_node_is_opened_as_what_it_is() -> None:
    store = store_of({"": {"zarr_format": 3, "node_type": "group"}, "z": array_document()})
    with pytest.raises(NodeNotFoundError, match="a group"):
        tessarr.open_array(store, mode="r")
    with pytest.raises(NodeNotFoundError, match="an array"):
        tessarr.open_group(store, path="z", mode="r")
    for value in ("dataset", "Array", None, 1):
        with pytest.raises(MetadataValidationError, match="node_type"):
            opened(array_document(node_type=value))


@pytest.mark.spec("V3-META-04")
@pytest.mark.parametrize("length", [-1, 10.0, True, "10", None, 2**63, [1]])
def test_lengths_are_integers_that_64_bits_hold(length: Any) -> None:
    assert opened(array_document((10, 20), (5, 5))).shape == (10, 20)
    with pytest.raises(MetadataValidationError, match="- shape"):
        opened({**array_document(), "shape": [length]})


@pytest.mark.spec("V3-META-04")
@pytest.mark.parametrize("shape", [None, 10, "10", {"0": 1}])
def test_the_shape_is_a_list(shape: Any) -> None:
    with pytest.raises(MetadataValidationError, match="- shape"):
        opened({**array_document(), "shape": shape})


@pytest.mark.spec("V3-META-04")
def test_the_longest_axis_has_a_length_of_63_bits() -> None:
    z = opened(array_document((2**63 - 1,), (10,)), {})
    assert z[-1] == 0
    assert z.size == 2**63 - 1


@pytest.mark.spec("V3-META-05")
def test_a_data_type_is_a_name_or_an_object_with_a_name_and_is_written_as_a_name() -> None:
    for written in ("float64", {"name": "float64"}, {"name": "float64", "configuration": {}}):
        z = opened(array_document(data_type=written))
        assert z.dtype == np.float64
        z.attrs["rewritten"] = 1
        copy: dict[str, bytes] = {}
        tessarr.create_array(copy, shape=4, dtype=z.dtype)
        assert stored_json(copy)["data_type"] == "float64"
    with pytest.raises(MetadataValidationError, match="float65"):
        opened(array_document(data_type="float65"))


@pytest.mark.spec("V3-META-06")
@pytest.mark.parametrize(
    "grid", ["regular", {"name": "regular"}, {"name": "regular", "configuration": {}}, regular([2]), regular([2, 5, 1])]
)
def test_a_regular_grid_states_one_chunk_length_per_axis(grid: Any) -> None:
    assert opened(array_document((10, 20), chunk_grid=regular([2, 5]))).chunks == (2, 5)
    with pytest.raises(MetadataValidationError, match="chunk_grid"):
        opened(array_document((10, 20), chunk_grid=grid))


DEFAULT_FILLS = {
    "bool": False, "int8": 0, "uint64": 0, "float32": 0.0, "complex64": [0.0, 0.0], "S3": "", "U2": "", str: "",
    "V2": [0, 0], "M8[s]": "NaT",
}  # fmt: skip


@pytest.mark.spec("V3-META-07")
@pytest.mark.parametrize("dtype", DEFAULT_FILLS, ids=str)
@pytest.mark.parametrize("given", [{}, {"fill_value": None}], ids=["absent", "None"])
def test_a_defaulted_fill_value_is_recorded(dtype: Any, given: dict[str, Any]) -> None:
    store: dict[str, bytes] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        z = tessarr.create_array(store, shape=2, dtype=dtype, **given)
        fill = stored_json(store)["fill_value"]
        assert isinstance(z.metadata, ArrayV3Metadata)
        assert fill is not None
        assert (
            z.metadata.data_type.parse_fill(fill, 3).tobytes() == z.metadata.data_type.cast_fill(z.fill_value).tobytes()
        )
    if dtype in ("bool", "int8", "uint64", "float32", "complex64", str):
        assert fill == DEFAULT_FILLS[dtype]
        assert type(fill) is type(DEFAULT_FILLS[dtype])


@pytest.mark.spec("V3-META-07")
@pytest.mark.parametrize("data_type", ["bool", "int32", "float32", "complex64", "r16"])
def test_null_is_no_fill_value_of_a_core_type(data_type: str) -> None:
    with pytest.raises(MetadataValidationError, match="fill_value"):
        opened(array_document(data_type=data_type, fill_value=None))


@pytest.mark.spec("V3-META-08")
@pytest.mark.parametrize("codecs", [[], None, {}, "bytes", 5])
def test_codecs_are_a_list_that_is_not_empty(codecs: Any) -> None:
    with pytest.raises(MetadataValidationError, match="codecs"):
        opened(array_document(codecs=codecs))


@pytest.mark.spec("V3-META-09")
def test_attributes_are_any_json_in_an_object_or_absent() -> None:
    values = {"a": None, "b": [1, {"c": 2.5}], "": "empty name", "π": "ü", "big": 2**70}
    assert opened(array_document(attributes=values)).attrs.asdict() == values
    assert opened(array_document()).attrs.asdict() == {}
    wrong: JSON
    for wrong in ([], None, "x", 1):
        with pytest.raises(MetadataValidationError, match="attributes"):
            opened(array_document(attributes=wrong))


@pytest.mark.spec("V3-META-10")
def test_no_storage_transformers_are_absent_or_an_empty_list() -> None:
    written: dict[str, Any]
    for written in ({}, {"storage_transformers": []}):
        assert opened(array_document(**written)).metadata.storage_transformers == ()
    store: dict[str, bytes] = {}
    tessarr.create_array(store, shape=4, dtype="i4")
    assert "storage_transformers" not in stored_json(store)
    wrong: JSON
    for wrong in ({}, "x", 1):
        with pytest.raises(MetadataValidationError, match="storage_transformers"):
            opened(array_document(storage_transformers=wrong))


@pytest.mark.spec("V3-META-10", "V3-META-11")
@pytest.mark.parametrize("name", ["storage_transformers", "dimension_names"])
def test_null_for_a_list_is_read_as_none_with_a_warning_and_refused_when_strict(name: str) -> None:
    null: dict[str, Any] = {name: None}
    store = store_of({"": array_document(**null)})
    with pytest.warns(ZarrRuntimeWarning, match=name):
        z = tessarr.open(store, mode="r")
    assert isinstance(z, tessarr.Array)
    assert isinstance(z.metadata, ArrayV3Metadata)
    assert z.metadata.storage_transformers == ()
    assert z.dimension_names is None
    assert name not in z._metadata.to_dict()
    with tessarr.config.set({"strict": True}), pytest.raises(MetadataValidationError, match=name):
        tessarr.open(store, mode="r")


@pytest.mark.spec("V3-META-11")
def test_dimension_names_are_one_string_or_null_per_axis() -> None:
    for names in (["x", None, "z"], ["", None, ""], [None, None, None]):
        store = store_of({"": array_document((2, 2, 2), dimension_names=names)})
        z = tessarr.open(store, mode="r+")
        assert z.dimension_names == tuple(names)
        assert z.metadata.to_dict()["dimension_names"] == names
        z.attrs["a"] = 1
        assert stored_json(store)["dimension_names"] == names
    assert opened(array_document((2, 2, 2))).dimension_names is None
    for wrong in (["x", "y"], [1, 2, 3], "xyz", [], ["x", "y", "z", "t"], {"x": 1}):
        with pytest.raises(MetadataValidationError, match="dimension_names"):
            opened(array_document((2, 2, 2), dimension_names=wrong))


@pytest.mark.spec("V3-META-12")
def test_equal_dimension_names_open_and_warn_when_created() -> None:
    assert opened(array_document((2, 2), dimension_names=["x", "x"])).dimension_names == ("x", "x")
    with pytest.warns(ZarrUserWarning, match="distinct"):
        tessarr.create_array({}, shape=(2, 2), dtype="i1", dimension_names=["x", "x"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tessarr.create_array({}, shape=(2, 2), dtype="i1", dimension_names=[None, None])


@pytest.mark.spec("V3-META-13")
def test_arrays_may_share_a_dimension_name_with_different_lengths() -> None:
    root = tessarr.group({})
    for length in (3, 5):
        root.create_array(f"z{length}", shape=length, dtype="i1", dimension_names=["x"])
    assert [(z.shape, z.dimension_names) for _, z in root.arrays()] == [((3,), ("x",)), ((5,), ("x",))]


WORKED_EXAMPLE = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [10000, 1000],
    "dimension_names": ["rows", "columns"],
    "data_type": "float64",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1000, 100]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    "fill_value": "NaN",
    "attributes": {"foo": 42, "bar": "apples", "baz": [1, 2, 3, 4]},
}


@pytest.mark.spec("V3-META-14")
def test_the_worked_example_of_the_specification() -> None:
    chunk = np.arange(100_000.0).reshape(1000, 100)
    z = opened(WORKED_EXAMPLE, {"c/9/9": chunk.astype("<f8").tobytes()})
    assert z.cdata_shape == (10, 10)
    assert z.nchunks == 100
    assert z[9001, 905] == chunk[1, 5]  # C order
    assert np.isnan(z[0, 0])
    assert json.loads(json.dumps(z._metadata.to_dict())) == WORKED_EXAMPLE


DATETIME_EXAMPLE: dict[str, Any] = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [10000, 1000],
    "data_type": {"name": "urn:example:datetime", "configuration": {"unit": "ns"}},
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1000, 100]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    "fill_value": None,
}


class ExampleDatetime(DateTime64):
    """The made-up type of the specification: nanoseconds, whose fill value may be null."""

    @classmethod
    def from_json(cls, _name: str, configuration: Any) -> Any:
        return cls(unit=configuration["unit"])

    def to_json(self) -> Any:
        return {"name": "urn:example:datetime", "configuration": {"unit": "ns"}}


@pytest.mark.spec("V3-META-15")
def test_the_example_of_an_unknown_data_type_opens_once_it_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._TABLE, "data_type", dict(registry._TABLE["data_type"]))
    with pytest.raises(MetadataValidationError, match="unknown data type 'urn:example:datetime'"):
        opened(DATETIME_EXAMPLE)
    registry.register("data_type", "urn:example:datetime", ExampleDatetime)
    z = opened({**DATETIME_EXAMPLE, "fill_value": "NaT"})
    assert z.dtype == np.dtype("M8[ns]")
    assert z.metadata.to_dict()["data_type"] == DATETIME_EXAMPLE["data_type"]
    assert isinstance(from_v3(DATETIME_EXAMPLE["data_type"]), ExampleDatetime)


@pytest.mark.spec("V3-META-16")
def test_the_example_of_extensions() -> None:
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "data_type": "string",
        "fill_value": "",
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
        "codecs": [
            {"name": "vlen-utf8"}, {"name": "zstd", "configuration": {"level": 5, "checksum": False}},
        ],
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [32]}},
        "shape": [128],
        "dimension_names": ["x"],
        "attributes": {},
        "storage_transformers": [],
    }  # fmt: skip
    store = store_of({"": document})
    z = array_of(tessarr.open(store, mode="r+"))
    z[40:42] = ["zarr", "π"]
    assert "c.1" in store
    assert array_of(tessarr.open(store))[39:43].tolist() == ["", "zarr", "π", ""]


IGNORABLE = {"must_understand": False, "x": 1, "deep": {"y": [1.5, None]}}


@pytest.mark.spec("V3-META-17", "V3-EXT-16")
def test_what_is_unknown_and_ignorable_survives_changes() -> None:
    store = store_of({"": array_document((4,), (2,), extra_member=IGNORABLE, attributes={"kept": [1]})})
    z = tessarr.open(store, mode="r+")
    z.attrs["a"] = 1
    z.resize((6,))
    z.append([1, 2])
    document = stored_json(store)
    assert document["extra_member"] == IGNORABLE
    assert document["attributes"] == {"kept": [1], "a": 1}
    assert document["shape"] == [8]
    root = store_of({"": {"zarr_format": 3, "node_type": "group", "extra_member": IGNORABLE}})
    tessarr.open(root, mode="r+").attrs["a"] = 1
    tessarr.consolidate_metadata(root)
    assert stored_json(root)["extra_member"] == IGNORABLE


@pytest.mark.spec("V3-META-18")
def test_documents_are_json_that_any_parser_reads() -> None:
    store: dict[str, bytes] = {}
    root = tessarr.group(store, attributes={"π": "ü", "n": np.int64(3), "f": np.float32(0.5)})
    fills = {"f4": np.nan, "f8": -np.inf, "c8": complex(np.nan, np.inf), "i8": 2**63 - 1, "u8": 2**64 - 1}
    for dtype, fill in fills.items():
        root.create_array(dtype, shape=(np.int64(3),), chunks=(np.int32(2),), dtype=dtype, fill_value=fill)
    for key, value in store.items():
        assert not bytes(value).startswith(b"\xef\xbb\xbf")
        document = stored_json(store, key.rpartition("/")[0])
        assert type(document["zarr_format"]) is int
    assert stored_json(store)["attributes"] == {"π": "ü", "n": 3, "f": 0.5}
    assert "π".encode() in store["zarr.json"]
    assert [stored_json(store, name)["fill_value"] for name in fills] == [
        "NaN", "-Infinity", ["NaN", "Infinity"], 2**63 - 1, 2**64 - 1,
    ]  # fmt: skip
    shape = stored_json(store, "f4")["shape"]
    assert shape == [3]
    assert type(shape[0]) is int


@pytest.mark.spec("V3-META-18")
@pytest.mark.parametrize("value", [float("nan"), float("inf"), [1, {"x": float("-inf")}], {1, 2}, object(), b"x"])
def test_attributes_that_json_cannot_hold_are_refused_and_change_nothing(value: Any) -> None:
    store = store_of({"": array_document(attributes={"a": 1})})
    z = tessarr.open(store, mode="r+")
    before = dict(store)
    with pytest.raises((TypeError, ValueError)):
        z.attrs["b"] = value
    assert store == before
    assert z.attrs.asdict() == {"a": 1}


def test_every_problem_of_a_document_is_told_at_once() -> None:
    with pytest.raises(MetadataValidationError) as raised:
        opened(array_document(data_type="float65", codecs=[LITTLE, "unknown"], attributes=[], chunk_grid="other"))
    assert {problem.loc[0] for problem in raised.value.problems} == {"data_type", "codecs", "attributes", "chunk_grid"}
