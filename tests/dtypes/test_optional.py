"""Elements that may be missing: the data type and the codec ``optional``."""

from __future__ import annotations

import asyncio
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr import plan, virtual
from tessarr.cli import main
from tessarr.dtypes.optional import OptionalValue
from tessarr.dtypes.parse import from_v3
from tessarr.errors import CodecError, DataTypeValidationError, MetadataValidationError, UnsupportedOperationError
from tessarr.serve import app
from tessarr.tools.check import check
from tessarr.tools.convert import convert
from tessarr.tools.diff import diff
from tessarr.tools.digest import digest
from tessarr.tools.pyramid import build_pyramid
from tessarr.types import JSON, JSONObject
from tests.narrow import array_of
from tests.serve.client import Client

GOLDEN = json.loads((Path(__file__).parent / "golden/optional.json").read_text(encoding="utf-8"))
HOLES: Any = [[1, None, 3], [None, None, None], [-7, 8, None], [1, 2, 3]]
"""Elements of the arrays below: the second row is fill value."""


def of(inner: JSON, name: str = "optional") -> JSONObject:
    """Return the optional type of `inner`."""
    named = inner if isinstance(inner, dict) else {"name": inner, "configuration": {}}
    return {"name": name, "configuration": named}


def array(store: Any = None, dtype: Any = None, **options: Any) -> tessarr.Array:
    """Make an array of `HOLES`."""
    given = {"shape": (4, 3), "chunks": (2, 2), "dtype": dtype or of("int16"), **options}
    z = tessarr.create_array({} if store is None else store, **given)
    z[...] = HOLES
    return z


def same(found: Any, expected: Any = HOLES) -> bool:
    return isinstance(found, np.ma.MaskedArray) and found.tolist() == expected


@pytest.mark.spec("REG-25")
@pytest.mark.parametrize("entry", GOLDEN, ids=lambda entry: json.dumps(entry["data_type"])[:60])
def test_chunks_are_those_of_zarrs(entry: Any) -> None:
    metadata = {
        "zarr_format": 3, "node_type": "array", "shape": entry["shape"], "data_type": entry["data_type"],
        "fill_value": entry["fill_value"], "codecs": entry["codecs"], "attributes": {},
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": entry["shape"]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    }  # fmt: skip
    chunk, key = bytes.fromhex(entry["chunk"]), "c" + "/0" * len(entry["shape"])
    store = {"zarr.json": json.dumps(metadata).encode(), key: chunk}
    z = tessarr.open_array(store)
    assert z[...].tolist() == entry["values"]
    z[...] = np.ma.masked  # the missing element, whatever the fill value
    z[...] = np.array(entry["values"], object)
    assert store[key].hex() == entry["chunk"]
    z.attrs["a"] = 1
    written = json.loads(store["zarr.json"])
    assert (written["data_type"], written["fill_value"]) == (entry["data_type"], entry["fill_value"])


@pytest.mark.spec("REG-25")
@pytest.mark.parametrize(
    ("inner", "values"),
    [
        ("bool", [True, None, False]),
        ("uint8", [0, None, 255]),
        ("int64", [2**63 - 1, None, -(2**63)]),
        ("float32", [0.5, None, -0.0]),
        ("complex64", [1 + 2j, None, 0j]),
        ("string", ["", None, "grün"]),
        ("bytes", [b"", None, b"\xff\0"]),
        ({"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}}, ["ab", None, ""]),
        ({"name": "numpy.datetime64", "configuration": {"unit": "D", "scale_factor": 1}}, ["2026-11-23", None, "1970-01-01"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("shards", [None, (4,)])
def test_values_and_fill_values_of_each_kind(inner: JSON, values: list[Any], shards: Any) -> None:
    for fill in (None, values[0]):
        store: dict[str, bytes] = {}
        z = tessarr.create_array(store, shape=(7,), chunks=(2,), shards=shards, dtype=of(inner), fill_value=fill)
        assert z[...].tolist() == [None if fill is None else z[0]] * 7
        z[2:5] = values
        z = tessarr.open_array(store)
        read: Any = z[...]
        assert read[2:5].mask.tolist() == [False, True, False]
        assert read[[2, 4]].data.tolist() == np.array([values[0], values[2]], z.dtype).tolist()
        assert (read[0] is np.ma.masked) is (fill is None)
        assert (z.fill_value is np.ma.masked) is (fill is None)
        z[...] = fill
        assert not [key for key in store if key.startswith("c/")]  # chunks of fill value are not stored


@pytest.mark.spec("REG-25")
def test_records_and_optional_types_may_be_optional() -> None:
    fields: JSON = {"fields": [{"name": "x", "data_type": "int16"}, {"name": "y", "data_type": "float32"}]}
    z = tessarr.create_array({}, shape=(3,), dtype=of({"name": "struct", "configuration": fields}))
    given = np.ma.array([(1, 2.0), (3, 4.0), (5, 6.0)], dtype=z.dtype, mask=[False, True, False])
    z[...] = given
    assert z[...].tolist() == given.tolist() == [(1, 2.0), (None, None), (5, 6.0)]
    half: Any = np.ma.array([(1, 2.0)], dtype=z.dtype)
    half.mask[0]["x"] = True
    with pytest.raises(ValueError, match="missing as a whole"):
        z[:1] = half
    with pytest.raises(tessarr.errors.FieldNotFoundError):
        z["x"]
    nested = tessarr.create_array({}, shape=(3,), dtype=of(of("uint8")))
    nested[...] = np.ma.array([(7, True), (0, False), (9, True)], dtype=nested.dtype, mask=[False, False, True])
    assert nested[...].tolist() == [(7, True), (0, False), (None, None)]


@pytest.mark.spec("REG-25")
def test_every_way_to_read_and_write_keeps_the_mask(tmp_path: Path) -> None:
    z = array(tmp_path)
    assert z.dtype == np.int16
    assert same(z[...])
    assert z[0, 1] is np.ma.masked
    assert z[0, 2] == 3
    assert z[::2, 1:].tolist() == [[None, 3], [8, None]]
    assert z.oindex[[0, 2], [0, 2]].tolist() == [[1, 3], [-7, None]]
    assert z.vindex[[0, 2], [1, 1]].tolist() == [None, 8]
    assert z.blocks[1, 0].tolist() == [[-7, 8], [1, 2]]
    assert z.lazy[::-1].T[0].read().tolist() == [1, -7, None, 1]
    assert tessarr.read_many([(z, np.s_[0]), (z, np.s_[2])])[1].tolist() == [-7, 8, None]
    out = np.ma.zeros((3,), np.int16)
    assert z.read(0, out=out) is out
    assert out.tolist() == [1, None, 3]
    with pytest.raises(TypeError, match="MaskedArray"):
        z.read(0, out=np.zeros(3, np.int16))
    assert same(virtual.concat([z, z])[4:])
    z.lazy[:, 0].write(np.ma.array([9, 9, 9, 9], mask=[True, False, False, True]))
    assert z[:, 0].tolist() == [None, 9, 9, None]
    z.append(np.ma.array([[1, 2, 3]], mask=[[True, False, False]]))
    assert z[4].tolist() == [None, 2, 3]
    z.resize((6, 3))
    assert z[5].tolist() == [None, None, None]
    z[0] = z.lazy[4]
    row: Any = [None, np.ma.masked, 5]
    z[1] = row
    assert z[:2].tolist() == [[None, 2, 3], [None, None, 5]]
    with pytest.raises(OverflowError):
        z[0, 0] = 40000
    assert next(rows.tolist() for _, rows in z.follow(timeout=0, max_rows=6))[1] == [None, None, 5]


@pytest.mark.spec("REG-25")
def test_an_array_of_numpy_is_refused_where_elements_are_missing() -> None:
    z = array()
    for read in (lambda: np.asarray(z), lambda: np.asarray(z.lazy[0]), lambda: np.from_dlpack(z)):
        with pytest.raises(ValueError, match="elements are missing"):
            read()
    assert np.asarray(z.lazy[3]).tolist() == [1, 2, 3]
    assert z.astype("float32").tolist() == HOLES


@pytest.mark.spec("REG-25")
@pytest.mark.parametrize("inner", ["int16", "string"])
def test_tools_keep_what_is_missing(tmp_path: Path, inner: str) -> None:
    values: Any = HOLES if inner == "int16" else [[None if one is None else str(one) for one in row] for row in HOLES]
    z = tessarr.create_array(tmp_path / "a", shape=(4, 3), chunks=(2, 2), dtype=of(inner))
    z[...] = values
    convert(tmp_path / "a", tmp_path / "b", chunks=(3, 3), shards=(6, 3))
    copied = tessarr.open_array(tmp_path / "b")
    made: list[tessarr.Array] = [
        copied,
        tessarr.from_array({}, data=z),
        tessarr.array(z),
        array_of(tessarr.empty_like(z)),
    ]
    made[-1][...] = z
    for one in made:
        assert same(one[...], values)
        assert one._metadata.data_type == z._metadata.data_type
        assert digest(one).nodes[""] == digest(z).nodes[""]
    assert not diff(tmp_path / "a", tmp_path / "b", data=True).values
    assert not check(tmp_path / "a", data="decode").findings
    for strategy in ("direct", "staged"):
        plan.rechunk(tmp_path / "a", tmp_path / strategy, chunks=(1, 3), strategy=strategy).run()
        assert digest(tessarr.open_array(tmp_path / strategy)).nodes[""] == digest(z).nodes[""]
    before = digest(z).nodes[""]
    z[3, 0] = None
    assert digest(z).nodes[""] != before
    made_by_plan = plan.digest(z)
    made_by_plan.run()
    assert made_by_plan.result() == digest(z)
    with pytest.raises(DataTypeValidationError, match="v2 has no data type"):
        convert(tmp_path / "a", tmp_path / "c", zarr_format=2)
    with pytest.raises(UnsupportedOperationError):
        plan.rechunk(tmp_path / "a", tmp_path / "d", dtype="float32")
    with pytest.raises(UnsupportedOperationError, match="no levels"):
        build_pyramid(tessarr.open_group(tmp_path, mode="a"), "a", method="nearest")


@pytest.mark.spec("REG-25")
def test_doors_show_what_is_missing_or_say_that_they_cannot(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    tessarr.create_group(tmp_path)
    z = array(tmp_path / "a", dimension_names=["y", "x"], attributes={"scale_factor": 0.5})
    client = Client(app(tmp_path))
    assert client.get("/a.json").json["data"] == HOLES
    assert client.get("/a.csv?y=0").body == b"x,a\r\n0,1\r\n1,\r\n2,3\r\n"
    assert {client.get(f"/a.{suffix}").status for suffix in ("raw", "npy", "png", "stats")} == {400}
    described = client.get("/a/?json").json
    assert (described["is_raw"], described["dtype"]) == (False, "optional")
    assert json.loads(client.get("/@chunks=4x3/a/zarr.json").body)["data_type"] == of("int16")
    shown = {"zarr.json": client.get("/@chunks=4x3/a/zarr.json").body, "c/0/0": client.get("/@chunks=4x3/a/c/0/0").body}
    assert same(tessarr.open_array(shown)[...])
    assert main(["cat", "--csv", str(tmp_path / "a")]) == 0
    assert capsys.readouterr().out == "1,,3\n,,\n-7,8,\n1,2,3\n"
    assert main(["cat", "--raw", str(tmp_path / "a")]) == 2
    for verb in ("show", "info", "tree", "cat"):
        assert main([verb, str(tmp_path / "a")]) == 0
    assert "optional" in z._repr_html_()
    assert pickle.loads(pickle.dumps(z))[0].tolist() == [1, None, 3]
    assert asyncio.run(z.read_async(0)).tolist() == [1, None, 3]
    assert tessarr.model.validate(tessarr.model.from_store(tmp_path)) == []


@pytest.mark.spec("REG-25")
def test_dask_and_xarray_lose_no_mask(tmp_path: Path) -> None:
    dask = pytest.importorskip("dask.array")
    xarray = pytest.importorskip("xarray")
    import tessarr.dask

    tessarr.create_group(tmp_path)
    z = array(tmp_path / "a", dimension_names=["y", "x"])
    for lazy in (dask.from_array(z), tessarr.dask.from_array(z)):
        assert same(lazy.compute())
        assert lazy.sum().compute() == 11
    tessarr.consolidate_metadata(tmp_path)
    with xarray.open_dataset(tmp_path, engine="tessarr") as opened:
        assert opened.a[3].values.tolist() == [1, 2, 3]
        with pytest.raises(ValueError, match="elements are missing"):
            opened.a.load()


@pytest.mark.spec("REG-25")
@pytest.mark.parametrize("value", [0, [], [1, 2], [None], {"value": 1}, ["a"], [70000]])
def test_fill_values_are_null_or_a_list_of_one(value: JSON) -> None:
    data_type = from_v3(of("int16"))
    with pytest.raises(MetadataValidationError):
        data_type.parse_fill(value, 3)


@pytest.mark.parametrize("inner", ["json", of("string"), "float999"])
def test_other_types_of_differing_size_are_refused(inner: JSON) -> None:
    with pytest.raises(DataTypeValidationError):
        from_v3(of(inner))


def test_types_are_equal_whatever_their_name() -> None:
    assert (
        from_v3(of("int16"))
        == from_v3(of("int16", "zarrs.optional"))
        == from_v3({"name": "optional", "configuration": {"name": "int16"}})
    )
    assert from_v3(of("int16")) != from_v3(of("int32"))
    assert isinstance(from_v3(of("int16")), OptionalValue)


@pytest.mark.parametrize(
    ("chunk", "what"),
    [
        ("", "16"),
        ("0100000000000000", "16"),
        ("01000000000000000200000000000000" + "05", "header"),
        ("ffffffffffffffff0200000000000000" + "050507", "header"),
        ("01000000000000000300000000000000" + "05050707", "size"),
        ("02000000000000000200000000000000" + "05000507", "packbits"),
    ],
)
def test_chunks_that_lie_are_refused(chunk: str, what: str) -> None:
    store: dict[str, bytes] = {}
    z = tessarr.create_array(store, shape=(3,), dtype=of("uint8"), compressors=None)
    store["c/0"] = bytes.fromhex(chunk)
    with pytest.raises(CodecError, match=what):
        z[...]


def test_codecs_that_cannot_apply_are_refused() -> None:
    plain: JSON = {"mask_codecs": ["bytes"], "data_codecs": ["bytes"]}
    with pytest.raises(CodecError, match="never missing"):
        tessarr.create_array({}, shape=(3,), dtype="int8", serializer={"name": "optional", "configuration": plain})
    with pytest.raises(CodecError, match="bytes codec"):
        tessarr.create_array({}, shape=(3,), dtype=of("int16"), serializer="bytes")
    with pytest.raises(MetadataValidationError, match="data_codecs"):
        tessarr.create_array(
            {},
            shape=(3,),
            dtype=of("int16"),
            serializer={"name": "optional", "configuration": {"mask_codecs": ["bytes"], "other": 1}},
        )
