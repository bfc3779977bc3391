"""N5 containers: those of TensorStore, and ours in TensorStore."""

from __future__ import annotations

import asyncio
import json
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.cli import main
from tessarr.errors import CodecError, MetadataValidationError, NodeNotFoundError, ReadOnlyError, StoreError
from tessarr.metadata import n5
from tessarr.storage import N5FSStore, N5Store
from tests.narrow import array_of, group_of
from tests.stores.contract import WriteContract

BLOSC = {
    "name": "blosc",
    "configuration": {"cname": "zstd", "clevel": 5, "shuffle": "shuffle", "blocksize": 0, "typesize": 2},
}
COMPRESSORS: list[tuple[Any, dict[str, Any]]] = [
    (None, {"type": "raw"}),
    ("gzip", {"type": "gzip", "level": 5}),
    ({"name": "numcodecs.zlib", "configuration": {"level": 4}}, {"type": "gzip", "level": 4, "useZlib": True}),
    ("zstd", {"type": "zstd", "level": 3}),
    ({"name": "numcodecs.bz2", "configuration": {"level": 9}}, {"type": "bzip2", "blockSize": 9}),
    ({"name": "numcodecs.lzma", "configuration": {"preset": 6}}, {"type": "xz", "preset": 6}),
    (BLOSC, {"type": "blosc", "cname": "zstd", "clevel": 5, "shuffle": 1, "blocksize": 0}),
    ("tessarr.lz4java", {"type": "lz4", "blockSize": 65536}),
]
SHAPE = (5, 7, 9)


def attributes(place: Path, path: str = "") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((place / path / "attributes.json").read_text(encoding="utf-8"))
    return found


def numbers(dtype: str = "uint16") -> np.ndarray[Any, Any]:
    return (np.arange(int(np.prod(SHAPE))) % 113).astype(dtype).reshape(SHAPE)


def dataset(**members: Any) -> dict[str, bytes]:
    whole = {"dimensions": [4, 6], "blockSize": [2, 3], "dataType": "uint16", "compression": {"type": "raw"}, **members}
    return {"attributes.json": json.dumps({k: v for k, v in whole.items() if v is not ...}).encode()}


@pytest.mark.spec("N5-06", "N5-07")
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(("compressor", "expected"), COMPRESSORS, ids=lambda value: str(value)[:24])
def test_tensorstore_reads_what_is_written_here_and_the_other_way_round(
    compressor: Any, expected: dict[str, Any], order: Any, tmp_path: Path
) -> None:
    tensorstore = pytest.importorskip("tensorstore")
    values = numbers()
    names = ["z", "y", "x"] if order == "C" else ["x", "y", "z"]
    z = tessarr.create_n5(
        str(tmp_path), path="a/s0", shape=SHAPE, chunks=(2, 4, 3), dtype="uint16", compressor=compressor,
        axis_order=order, attributes={"unit": "nm"}, dimension_names=names,
    )  # fmt: skip
    z[...] = values
    z[1:2, 3:5] = values[1:2, 3:5] = 3
    said = attributes(tmp_path, "a/s0")
    assert said["compression"] == expected
    assert (said["dimensions"], said["blockSize"]) == (
        ([9, 7, 5], [3, 4, 2]) if order == "C" else ([5, 7, 9], [2, 4, 3])
    )
    assert (said["axes"], said["unit"]) == (["x", "y", "z"], "nm")
    assert attributes(tmp_path) == {"n5": "4.0.0"}
    again = array_of(tessarr.open_n5(str(tmp_path), "r+", path="a/s0", axis_order=order))
    assert (again[...] == values).all()
    if expected["type"] == "lz4":  # which TensorStore does not have
        return
    theirs = tensorstore.open(
        {"driver": "n5", "kvstore": {"driver": "file", "path": str(tmp_path / "a" / "s0")}}
    ).result()
    found = theirs.read().result()
    assert ((found.T if order == "C" else found) == values).all()
    theirs.write(found + np.uint16(1)).result()
    assert (array_of(tessarr.open_n5(str(tmp_path), path="a/s0", axis_order=order))[...] == values + 1).all()


@pytest.mark.spec("N5-06")
def test_the_native_engine_serves_datasets(tmp_path: Path) -> None:
    how: Any = {"path": "a", "shape": SHAPE, "chunks": (2, 4, 3), "dtype": "float64", "compressor": "gzip"}
    tessarr.create_n5(str(tmp_path), **how)[...] = numbers("float64")
    z = array_of(tessarr.open_n5(str(tmp_path), path="a"))
    assert z.engine.name == "native"
    with tessarr.config.set({"engine": "reference"}):
        reference = array_of(tessarr.open_n5(str(tmp_path), path="a"))
        assert (reference[1:4, ::3, -1] == z[1:4, ::3, -1]).all()


@pytest.mark.spec("N5-08")
def test_every_directory_is_a_group_but_those_of_blocks(tmp_path: Path) -> None:
    tessarr.create_n5(str(tmp_path), path="a/b", shape=(4, 4), chunks=(2, 2), dtype="uint8")[...] = 1
    for name in ("attributes.json", "a/attributes.json"):
        (tmp_path / name).unlink()
    (tmp_path / "empty" / "deep").mkdir(parents=True)
    root = group_of(tessarr.open_n5(str(tmp_path)))
    assert sorted(root.group_keys()) == ["a", "empty"]
    assert list(group_of(root["a"]).array_keys()) == ["b"]
    assert dict(root.attrs) == {}
    for path in ("a/b/0", "a/b/0/0", "nowhere"):
        with pytest.raises(NodeNotFoundError):
            tessarr.open_n5(str(tmp_path), path=path)


@pytest.mark.spec("N5-08")
def test_attributes_are_changed_and_the_rest_stays_as_it_was_spelled() -> None:
    values = dataset(compression=..., compressionType="gzip", resolution=[1, 2], n5="2.1.0")
    z = tessarr.open_n5(values, "r+")
    assert dict(z.attrs) == {"resolution": [1, 2]}
    z.attrs["unit"] = "nm"
    assert json.loads(values["attributes.json"]) == {
        "n5": "2.1.0", "dimensions": [4, 6], "blockSize": [2, 3], "dataType": "uint16", "compressionType": "gzip",
        "resolution": [1, 2], "unit": "nm",
    }  # fmt: skip
    with pytest.raises(MetadataValidationError):
        z.attrs["dimensions"] = [1]
    z.resize((9, 4))
    assert json.loads(values["attributes.json"])["dimensions"] == [4, 9]
    root = tessarr.open_n5({}, "a")
    root.attrs["title"] = "cells"
    assert dict(root.attrs) == {"title": "cells"}


@pytest.mark.spec("N5-09")
@pytest.mark.parametrize("store", [N5Store, N5FSStore])
def test_an_array_that_n5_cannot_say_is_refused_before_anything_is_written(store: Any) -> None:
    values: dict[str, bytes] = {}
    root = tessarr.open_group(store(values), mode="a")
    before = dict(values)
    how: dict[str, Any]
    for how in ({}, {"fill_value": 7}, {"shards": (4,), "chunks": (2,)}, {"chunks": [[1, 3]]}):
        options: dict[str, Any] = {"shape": (4,), "chunks": (2,), "dtype": "u1", **how}
        with pytest.raises(MetadataValidationError, match="create_n5"):
            root.create_array("x", **options)
    assert values == before
    for how in ({"dtype": "bool"}, {"dtype": "complex64"}, {"dtype": "float16"}):
        options = {"shape": (4,), "chunks": (2,), **how}
        with pytest.raises((MetadataValidationError, CodecError)):
            tessarr.create_n5(values, path="x", **options)
    with pytest.raises(MetadataValidationError):
        tessarr.create_n5(values, path="x", shape=(4,), chunks=(2,), dtype="u1", compressor="crc32c")
    assert values == before


@pytest.mark.spec("N5-10", "REG-20")
@pytest.mark.parametrize(
    "members",
    [
        {"dimensions": [4]}, {"dimensions": 4}, {"dimensions": [4, -1]}, {"dimensions": [4, 1.5]}, {"blockSize": [2, 0]},
        {"dimensions": [], "blockSize": []}, {"dataType": "object"}, {"dataType": 5},
        {"compression": ...}, {"compression": "gzip"}, {"compression": {"type": "lzo"}}, {"compression": {}},
        {"compression": {"type": "gzip", "level": "high"}}, {"compression": {"type": "blosc", "shuffle": 9}},
        {"compression": {"type": "gzip", "level": 99}}, {"dimensions": [4, True]},
    ],
)  # fmt: skip
def test_attributes_that_lie_are_errors(members: dict[str, Any]) -> None:
    with pytest.raises(MetadataValidationError):
        tessarr.open_n5(dataset(**members))


@pytest.mark.spec("N5-03")
def test_blocks_of_other_modes_are_errors_with_their_place() -> None:
    for mode, rest in ((1, struct.pack(">III", 2, 3, 6)), (2, struct.pack(">I", 12))):
        z = array_of(tessarr.open_n5({**dataset(), "0/0": struct.pack(">HH", mode, 2) + rest + bytes(12)}))
        with pytest.raises(CodecError) as caught:
            z[...]
        assert caught.value.chunk == (0, 0)


@pytest.mark.spec("N5-02", "N5-06")
def test_blocks_of_java_that_are_cut_at_the_edge_are_read() -> None:
    # dimensions 4 × 6, blocks of 3 × 4: the blocks at the edge are 1 × 4, 3 × 2 and 1 × 2.
    whole = np.arange(24, dtype="u2").reshape(6, 4)  # C order: the other way round
    values = dataset(blockSize=[3, 4])
    for x in range(2):
        for y in range(2):
            block = whole[4 * y : 4 * y + 4, 3 * x : 3 * x + 3]
            head = struct.pack(">HHII", 0, 2, block.shape[1], block.shape[0])
            values[f"{x}/{y}"] = head + block.astype(">u2").tobytes()
    z = array_of(tessarr.open_n5(values, "r+"))
    assert z.shape == (6, 4)
    assert (z[...] == whole).all()
    assert (array_of(tessarr.open_n5(values, axis_order="F"))[...] == whole.T).all()
    z[5, 3] = 99
    whole[5, 3] = 99
    assert (array_of(tessarr.open_n5(values))[...] == whole).all()


@pytest.mark.spec("N5-11")
def test_a_url_with_the_adapter_opens_a_container(tmp_path: Path) -> None:
    tessarr.create_n5(str(tmp_path / "c.n5"), path="a/b", shape=(4, 4), chunks=(2, 2), dtype="uint8")[...] = 5
    for url in (f"{tmp_path}/c.n5|n5:a/b", f"{(tmp_path / 'c.n5').as_uri()}|n5:a/b", f"{tmp_path}/c.n5|n5:/a/b/"):
        assert (tessarr.open_array(url, mode="r")[...] == 5).all()
    z = array_of(tessarr.open_n5(str(tmp_path / "c.n5"), path="a/b"))
    assert z.store.url.endswith("c.n5|n5:")
    assert (tessarr.open_array(z.store.url, path="a/b", mode="r")[...] == 5).all()
    assert (pickle.loads(pickle.dumps(z))[...] == 5).all()
    with pytest.raises(ReadOnlyError):
        z[0] = 1
    with pytest.raises(StoreError):
        tessarr.open(f"{tmp_path}/c.n5|n5:a|zarr3:", mode="r")
    assert isinstance(asyncio.run(tessarr.open_n5_async(str(tmp_path / "c.n5"))), tessarr.Group)


def test_documents_come_back_from_their_attributes() -> None:
    for order in ("C", "F"):
        for kind in ("raw", "gzip", "bzip2", "xz", "lz4", "zstd", "blosc"):
            said = {"dimensions": [9, 5], "blockSize": [4, 5], "dataType": "int32", "compression": {"type": kind}}
            document = n5.to_zarr(said, order)
            again = n5.to_zarr(n5.to_n5(document, order, {}), order)
            assert again == document


@pytest.mark.spec("N5-11")
def test_containers_are_converted_to_zarr_as_every_reader_knows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    whole = np.arange(24, dtype="u2").reshape(4, 6)
    names = ["y", "x"]
    made = {"shape": (4, 6), "chunks": (2, 3), "dtype": "u2", "compressor": "gzip", "dimension_names": names}
    tessarr.create_n5("a.n5", path="v/s0", **made)[...] = whole  # type: ignore[arg-type]
    tessarr.create_n5("a.n5", path="t", shape=(3,), chunks=(2,), dtype=str)[...] = np.array(["a", "b", "c"], object)
    assert main(["convert", "a.n5|n5:", "b.zarr"]) == 0
    group = tessarr.open_group("b.zarr", mode="r")
    np.testing.assert_array_equal(array_of(group["v/s0"])[...], whole)
    assert array_of(group["t"])[...].tolist() == ["a", "b", "c"]
    document = json.loads((tmp_path / "b.zarr/v/s0/zarr.json").read_text())
    assert [codec["name"] for codec in document["codecs"]] == ["bytes", "gzip"]
    assert document["chunk_key_encoding"]["name"] == "default"
    assert main(["info", "a.n5|n5:v/s0"]) == 0
    assert main(["check", "a.n5|n5:"]) == 0
    capsys.readouterr()


TEXTS = np.array([["a", "", "ça"], ["d", "e", "f"], ["g", "h", "j"]], object)


@pytest.mark.spec("N5-12")
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("compressor", [None, "gzip"])
def test_text_is_in_blocks_of_mode_1(order: Any, compressor: Any) -> None:
    values: dict[str, bytes] = {}
    z = tessarr.create_n5(
        values, path="t", shape=(3, 3), chunks=(2, 2), dtype=str, compressor=compressor, axis_order=order
    )
    z[...] = TEXTS
    assert json.loads(values["t/attributes.json"])["dataType"] == "string"
    again = array_of(tessarr.open_n5(values, path="t", axis_order=order))
    assert again[...].tolist() == TEXTS.tolist()
    other = array_of(tessarr.open_n5(values, path="t", axis_order="F" if order == "C" else "C"))
    assert other[...].tolist() == TEXTS.T.tolist()
    assert tessarr.open_n5(values, path="t", axis_order=order)._metadata == z._metadata


@pytest.mark.spec("N5-12")
def test_blocks_of_text_have_the_bytes_of_java() -> None:
    """Two axes, 2 × 2, x fastest: header of mode 1, size of the text, strings that end with a NUL."""
    text = "a\0\0ça\0d\0".encode()
    block = struct.pack(">HHIII", 1, 2, 2, 2, len(text)) + text
    values = {**dataset(dimensions=[2, 2], blockSize=[2, 2], dataType="string"), "0/0": block}
    assert array_of(tessarr.open_n5(values))[...].tolist() == [["a", ""], ["ça", "d"]]
    written: dict[str, bytes] = {}
    z = tessarr.create_n5(written, shape=(2, 2), chunks=(2, 2), dtype=str, compressor=None)
    z[...] = np.array([["a", ""], ["ça", "d"]], object)
    assert bytes(written["0/0"]) == block
    with pytest.raises(CodecError, match="NUL"):
        z[0, 0] = "a\0b"
    for wrong in (text[:-1], text + b"x", b"\xff\0\0\0\0", text + b"\0"):
        values["0/0"] = struct.pack(">HHIII", 1, 2, 2, 2, len(wrong)) + wrong
        with pytest.raises(CodecError):
            array_of(tessarr.open_n5(values))[...]


class TestN5Store(WriteContract):
    """What is no document passes unchanged."""

    @pytest.fixture
    def store(self) -> N5Store:
        return N5Store({})
