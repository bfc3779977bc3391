"""N5 containers: those of TensorStore, and ours in TensorStore."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import pickle
import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
import tessarr.plan
from tessarr.cli import main
from tessarr.common import extension
from tessarr.conventions import ome
from tessarr.core.creation.bridge import bridge
from tessarr.errors import (
    BaseZarrError,
    CodecError,
    MetadataValidationError,
    NodeNotFoundError,
    ReadOnlyError,
    StoreError,
    TessarrError,
    UnsupportedOperationError,
)
from tessarr.metadata import n5
from tessarr.storage import N5FSStore, N5Store
from tessarr.tools.convert import convert
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


def container(place: str, **more: Any) -> np.ndarray[Any, Any]:
    """Make a container with a dataset of two axes at v/s0; return its elements."""
    whole = np.arange(24, dtype="u2").reshape(4, 6)
    how: dict[str, Any] = {"shape": (4, 6), "chunks": (2, 3), "dtype": "u2", "dimension_names": ["y", "x"], **more}
    tessarr.create_n5(place, path="v/s0", **how)[...] = whole
    return whole


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


@pytest.mark.spec("N5-06", "N5-07")
@pytest.mark.parametrize("seed", range(20))
def test_any_dataset_of_tensorstore_is_read_and_changed_and_the_other_way_round(seed: int, tmp_path: Path) -> None:
    tensorstore = pytest.importorskip("tensorstore")
    pick = random.Random(seed)
    ndim = pick.randint(1, 4)
    shape, block = [pick.randint(1, 12) for _ in range(ndim)], [pick.randint(1, 6) for _ in range(ndim)]
    data_type = pick.choice("uint8 int8 uint16 int16 uint32 int32 uint64 int64 float32 float64".split())  # noqa: SIM905
    order: n5.AxisOrder = pick.choice(["C", "F"])
    kind: dict[str, dict[str, Any]] = {
        "gzip": {"level": pick.randint(0, 9), "useZlib": pick.random() < 0.5}, "bzip2": {"blockSize": pick.randint(1, 9)},
        "xz": {"preset": 1}, "raw": {}, "zstd": {"level": 1}, "blosc": {"cname": "lz4", "clevel": 3, "shuffle":
        pick.randint(0, 2)},
    }  # fmt: skip
    name = pick.choice(list(kind))
    whole = np.random.default_rng(seed).integers(0, 100, shape).astype(data_type)
    metadata = {
        "dimensions": shape,
        "blockSize": block,
        "dataType": data_type,
        "compression": {"type": name, **kind[name]},
    }
    spec = {"driver": "n5", "kvstore": {"driver": "file", "path": str(tmp_path / "a")}, "metadata": metadata}
    theirs = tensorstore.open({**spec, "create": True}).result()
    theirs.write(whole).result()
    z = array_of(tessarr.open_n5(str(tmp_path), "r+", path="a", axis_order=order))
    expected = whole.T if order == "C" else whole
    assert (z[...] == expected).all()
    part = tuple(slice(start := pick.randrange(n), pick.randint(start, n), pick.randint(1, 2)) for n in z.shape)
    assert (z[part] == expected[part]).all()
    z[part] = 7
    expected[part] = 7
    assert (tensorstore.open({**spec, "open": True}).result().read().result() == whole).all()
    before = {path: path.read_bytes() for path in (tmp_path / "a").rglob("*") if path.is_file()}
    for path, value in before.items():  # any byte of a block may be another
        damaged = bytearray(value)
        damaged[pick.randrange(min(20, len(damaged)))] ^= 1 << pick.randrange(8)
        if path.name != "attributes.json":
            path.write_bytes(damaged[: pick.choice([len(damaged), pick.randrange(len(damaged))])])
    with contextlib.suppress(TessarrError):
        assert z[...].shape == expected.shape


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
        {"dimensions": [], "blockSize": []}, {"dataType": "complex"}, {"dataType": 5}, {"compression": {"type": "jpeg",
        "gamma": 0}},
        {"compression": {"type": "jpeg", "dataType": "text"}},
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
    for mode, rest in ((1, struct.pack(">III", 2, 3, 5)), (2, struct.pack(">I", 12)), (3, struct.pack(">II", 2, 3))):
        z = array_of(tessarr.open_n5({**dataset(), "0/0": struct.pack(">HH", mode, 2) + rest + bytes(12)}))
        with pytest.raises(CodecError) as caught:
            z[...]
        assert caught.value.chunk == (0, 0) or caught.value.key == "0/0"


@pytest.mark.spec("N5-17")
@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize("compressor", [{"type": "raw"}, {"type": "gzip"}])
def test_numbers_in_blocks_of_mode_1_are_read(engine: str, compressor: dict[str, Any], tmp_path: Path) -> None:
    """Java writes how many elements a block has, where that is not the product of its shape; others write it always."""
    if engine == "native" and extension.module() is None:
        pytest.skip("the Rust module was not built")
    body = np.arange(6, dtype=">u2").tobytes()
    body = gzip.compress(body) if compressor["type"] == "gzip" else body
    block = struct.pack(">HHIII", 1, 2, 2, 3, 6) + body
    values = {**dataset(compression=compressor), "0/0": block, "1/0": b"\0\0" + block[2:12] + block[16:]}
    for key, value in values.items():
        (tmp_path / "v" / key).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "v" / key).write_bytes(value)
    with tessarr.config.set({"engine": engine}):
        for place, path in ((values, ""), (str(tmp_path), "v")):
            z = array_of(tessarr.open_n5(place, "r+", path=path))
            assert z[:3].tolist() == [[0, 1, 0, 1], [2, 3, 2, 3], [4, 5, 4, 5]]
    z[0, 0] = 9
    assert (tmp_path / "v/0/0").read_bytes()[:2] == b"\0\0"
    assert array_of(tessarr.open_n5(str(tmp_path), path="v"))[0].tolist() == [9, 1, 0, 1]
    assert asyncio.run(array_of(tessarr.open_n5(values)).read_async((0,))).tolist() == [0, 1, 0, 1]


@pytest.mark.spec("N5-18")
def test_a_container_is_bridged_to_zarr_without_copying_a_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    whole = container("a.n5", attributes={"unit": "nm"})
    blocks = {path: path.read_bytes() for path in (tmp_path / "a.n5").rglob("*") if path.is_file()}
    assert main(["bridge", "a.n5", "--dry-run"]) == 0
    assert {path for path in (tmp_path / "a.n5").rglob("*") if path.is_file()} == set(blocks)
    assert main(["bridge", "a.n5"]) == 0
    assert "v/s0/zarr.json" in capsys.readouterr().out
    assert all(path.read_bytes() == value for path, value in blocks.items())
    z = tessarr.open_array("a.n5/v/s0", mode="r+", zarr_format=3)
    assert (z[...] == whole.T).all()
    assert (z.dims, dict(z.attrs)) == (("x", "y"), {"unit": "nm"})
    z[5, 3] = 99
    assert array_of(tessarr.open_n5("a.n5", path="v/s0"))[3, 5] == 99
    assert main(["check", "a.n5", "--data"]) == main(["check", "a.n5|n5:", "--data"]) == 0
    assert sorted(tessarr.open_n5("a.n5").store.list("v/s0/")) == sorted(
        f"v/s0/{name}" for name in ("zarr.json", "0/0", "0/1", "1/0", "1/1")
    )
    assert main(["bridge", "a.n5"]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert main(["bridge", "a.n5", "--overwrite", "--json"]) == 0
    # The other way round: without its own documents the container is described by those of Zarr.
    before = {path: json.loads(path.read_text()) for path in (tmp_path / "a.n5").rglob("attributes.json")}
    for path in before:
        path.unlink()
    assert main(["bridge", "a.n5"]) == 0
    assert {path: json.loads(path.read_text()) for path in (tmp_path / "a.n5").rglob("attributes.json")} == before
    tessarr.create_array("b.zarr", name="x", shape=(4,), chunks=(2,), dtype="u1")
    tessarr.open_group("b.zarr", mode="a")
    assert main(["bridge", "b.zarr"]) == 2
    assert main(["bridge", "nowhere"]) == 2
    assert not list((tmp_path / "b.zarr").rglob("attributes.json"))


@pytest.mark.spec("N5-18")
def test_a_bridge_in_memory_of_either_order() -> None:
    orders: tuple[n5.AxisOrder, ...] = ("C", "F")
    for order in orders:
        values: dict[str, bytes] = {}
        z = tessarr.create_n5(values, path="a", shape=(3, 2), chunks=(2, 2), dtype="i4", axis_order=order)
        z[...] = 4
        assert bridge(values) == ["a/zarr.json", "zarr.json"]
        again = array_of(tessarr.open_group(values, mode="r", zarr_format=3)["a"])
        assert again[...].tolist() == np.full((2, 3) if order == "C" else (3, 2), 4).tolist()
        with pytest.raises(BaseZarrError):
            bridge(values)


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
def test_a_block_of_a_chunk_that_no_memory_holds_is_an_error() -> None:
    document: dict[str, Any] = {"dimensions": [2, 1], "blockSize": [1 << 30, 1 << 20], "dataType": "uint8"}
    document["compression"] = {"type": "raw"}
    block = struct.pack(">HHII", 0, 2, 2, 1) + bytes([1, 2])
    store = N5Store({"a/attributes.json": json.dumps(document).encode(), "a/0/0": block})
    with tessarr.config.set({"engine": "reference"}), pytest.raises(CodecError, match="too large for the memory"):
        array_of(tessarr.open_array(store, path="a", mode="r"))[...]


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
    whole = container("a.n5", compressor="gzip")
    tessarr.create_n5("a.n5", path="t", shape=(3,), chunks=(2,), dtype=str)[...] = np.array(["a", "b", "c"], object)
    assert main(["convert", "a.n5|n5:", "b.zarr"]) == 0
    group = tessarr.open_group("b.zarr", mode="r")
    np.testing.assert_array_equal(array_of(group["v/s0"])[...], whole)
    assert array_of(group["t"])[...].tolist() == ["a", "b", "c"]
    document = json.loads((tmp_path / "b.zarr/v/s0/zarr.json").read_text())
    assert [codec["name"] for codec in document["codecs"]] == ["bytes", "gzip"]
    assert document["chunk_key_encoding"]["name"] == "default"
    capsys.readouterr()
    assert main(["info", "a.n5|n5:v/s0"]) == 0
    assert "slowest axis first" in capsys.readouterr().out
    assert main(["info", "a.n5|n5:v/s0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["axis_order"] == "C"
    assert main(["info", "b.zarr/t", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["axis_order"] is None
    assert main(["check", "a.n5|n5:"]) == 0
    capsys.readouterr()


@pytest.mark.spec("N5-16")
def test_zarr_is_converted_to_containers_that_others_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    root = tessarr.create_group("a.zarr", attributes={"title": "cells"})
    how: Any = {"dtype": "u2", "dimension_names": ["z", "y", "x"], "chunks": (4, 5, 6)}
    whole = np.arange(960, dtype="u2").reshape(8, 10, 12)
    compressors: Any = [{"name": "gzip", "configuration": {"level": 3}}, {"name": "crc32c"}]
    root.create_array("im/s0", shape=(8, 10, 12), compressors=compressors, **how)[...] = whole
    root.create_array("im/s1", shape=(8, 5, 6), shards=(8, 5, 6), fill_value=7, **how)[...] = whole[:, ::2, ::2]
    root.create_array("t", shape=(3,), dtype=str)[...] = np.array(["a", "", "c"], object)
    axes = [ome.Axis(name, "space", "nanometer") for name in "zyx"]
    levels = [ome.Level("s0", (40, 4, 4)), ome.Level("s1", (40, 8, 8), (0, 2, 2))]
    image = ome.write(axes, levels, version="0.5")
    group_of(root["im"]).attrs.update(image)
    assert main(["convert", "a.zarr", "b.n5|n5:"]) == 0
    said = capsys.readouterr()
    assert ": N5, 3 arrays" in said.out
    assert "crc32c" in said.err
    assert "fill value 7" in said.err
    container = group_of(tessarr.open_n5("b.n5"))
    assert container.attrs.asdict() == {"title": "cells"}
    assert array_of(container["t"])[...].tolist() == ["a", "", "c"]
    assert (array_of(container["im/s1"])[...] == whole[:, ::2, ::2]).all()
    assert group_of(container["im"]).attrs["ome"] == image["ome"]
    assert attributes(tmp_path / "b.n5", "im/s0")["compression"] == {"type": "gzip", "level": 3}
    group = attributes(tmp_path / "b.n5", "im")
    assert (group["axes"], group["resolution"], group["units"]) == (["x", "y", "z"], [4, 4, 40], ["nm", "nm", "nm"])
    assert group["downsamplingFactors"] == [[1, 1, 1], [2, 2, 1]]
    del group["ome"]  # the dialects alone say the same
    (tmp_path / "b.n5/im/attributes.json").write_text(json.dumps(group))
    again = group_of(tessarr.open_n5("b.n5", path="im")).attrs["ome"]
    assert ome.read({"ome": again})[0].levels[1] == ome.read(image)[0].levels[1]
    assert main(["check", "b.n5|n5:", "--data"]) == 0
    assert main(["convert", "b.n5|n5:", "c.zarr"]) == 0
    assert (array_of(tessarr.open_group("c.zarr", mode="r")["im/s0"])[...] == whole).all()
    assert main(["convert", "a.zarr", "b.n5|n5:"]) == 2
    root.create_array("bad", shape=(3,), dtype="c16")
    assert main(["convert", "a.zarr", "d.n5|n5:"]) == 2
    assert "no form in N5" in capsys.readouterr().err
    assert not (tmp_path / "d.n5").exists()
    tensorstore = pytest.importorskip("tensorstore")
    kvstore = {"driver": "file", "path": str(tmp_path / "b.n5/im/s0")}
    theirs = tensorstore.open({"driver": "n5", "kvstore": kvstore}).result()
    assert (whole == theirs.read().result().T).all()


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


@pytest.mark.spec("N5-13")
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("compressor", [None, "gzip", "tessarr.lz4java"])
def test_objects_are_elements_of_bytes(order: Any, compressor: Any) -> None:
    values: dict[str, bytes] = {}
    how: Any = {"path": "o", "compressor": compressor, "axis_order": order}
    z = tessarr.create_n5(values, shape=(2, 3), chunks=(1, 1), dtype=bytes, **how)
    z[0, 1], z[1, 2] = b"hello", b"x" * 100
    expected = [[b"", b"hello", b""], [b"", b"", b"x" * 100]]
    again = array_of(tessarr.open_n5(values, "r+", path="o", axis_order=order))
    assert again[...].tolist() == expected
    assert again._metadata == z._metadata
    again.attrs["title"] = "objects"
    said = json.loads(values["o/attributes.json"])
    assert (said["dataType"], said["blockSize"], said["title"]) == ("object", [1, 1], "objects")
    turned = array_of(tessarr.open_n5(values, path="o", axis_order="F" if order == "C" else "C"))
    assert turned[...].tolist() == np.array(expected, object).T.tolist()
    with pytest.raises(CodecError, match="one object"):
        tessarr.create_n5({}, shape=(2, 3), chunks=(1, 2), dtype=bytes)


@pytest.mark.spec("N5-13")
def test_blocks_of_objects_have_the_bytes_of_java() -> None:
    """Mode 2 and the number of bytes, without a shape; one object for each block, whatever the size of blocks."""
    values = dataset(dimensions=[5, 2], blockSize=[2, 2], dataType="object")
    values["1/0"] = struct.pack(">HI", 2, 3) + b"abc"
    z = array_of(tessarr.open_n5(values, "r+"))
    assert z[...].tolist() == [[b"", b"abc", b""]]
    z.attrs["a"] = 1
    z.resize((2, 3))
    said = json.loads(values["attributes.json"])
    assert (said["dimensions"], said["blockSize"], said["dataType"]) == ([6, 4], [2, 2], "object")
    for wrong in (b"", b"\0\2", struct.pack(">HI", 2, 4) + b"abc", struct.pack(">HI", 1, 3) + b"abc"):
        values["1/0"] = wrong
        with pytest.raises(CodecError):
            array_of(tessarr.open_n5(values))[...]


@pytest.mark.spec("N5-14")
@pytest.mark.parametrize(
    ("data_type", "options", "atol"),
    [
        ("uint8", {}, 2), ("uint8", {"min": 10.0, "max": 200.0}, 2), ("int8", {"min": -128, "max": 127}, 2),
        ("uint16", {"max": 65535, "gamma": 0.5}, 2000), ("int32", {"min": -1e6, "max": 1e6}, 2e4), ("float32", {"max": 1.0},
        0.01),
        ("float64", {"min": 1, "max": 0}, 0.01), ("uint64", {"max": 2.0**64}, 2.0**57),
    ],
)  # fmt: skip
def test_jpeg_maps_elements_to_bytes(data_type: str, options: dict[str, Any], atol: float) -> None:
    pytest.importorskip("PIL", reason="pillow is not installed (extra codecs)")
    ramp = np.linspace(0, 1, 20 * 30).reshape(20, 30)
    low, high = options.get("min", 0), options.get("max", 255)
    top = np.iinfo(data_type).max if data_type[-1] in "846" and "int" in data_type else np.inf
    whole = np.minimum(low + ramp * (high - low), np.nextafter(float(top), 0) if data_type == "uint64" else top).astype(
        data_type
    )
    values: dict[str, bytes] = {}
    codec = {"name": "tessarr.n5_jpeg", "configuration": {"quality": 100, "data_type": data_type, **options}}
    z = tessarr.create_n5(values, shape=(20, 30), chunks=(10, 15), dtype=data_type, compressor=codec)
    z[...] = whole
    said = json.loads(values["attributes.json"])["compression"]
    assert {name: said[name] for name in ("type", "quality", "dataType")} == {
        "type": "jpeg", "quality": 100, "dataType": data_type,
    }  # fmt: skip
    again = array_of(tessarr.open_n5(values))
    np.testing.assert_allclose(again[...].astype(float), whole.astype(float), rtol=0, atol=atol)
    assert again._metadata == z._metadata
    assert values["0/0"][12:14] == b"\xff\xd8"
    for wrong in (values["0/0"][:40], values["0/0"][:12], values["0/0"][:8] + b"\0\0\0\x07" + values["0/0"][12:]):
        values["0/0"] = wrong
        with pytest.raises(CodecError):
            array_of(tessarr.open_n5(values))[...]


class TestN5Store(WriteContract):
    """What is no document passes unchanged."""

    @pytest.fixture
    def store(self) -> N5Store:
        return N5Store({})


def test_datasets_are_replaced_by_conversions_moved_and_removed(tmp_path: Path) -> None:
    """A directory with blocks is a group without attributes: it is not in the way of the dataset's own."""
    container = f"{tmp_path / 'x.n5'}|n5:"
    np.save(tmp_path / "a.npy", np.arange(12.0).reshape(3, 4))
    convert(tmp_path / "a.npy", container, path="a", chunks=(3, 4))
    convert(tmp_path / "a.npy", container, path="a", chunks=(2, 2), overwrite=True)
    group = tessarr.open_group(container)
    assert array_of(group["a"]).chunks == (2, 2)
    group.move("a", "b/c")
    assert [path for path, _ in group.members(max_depth=None)] == ["b", "b/c"]
    assert array_of(group["b/c"])[...].tolist() == np.arange(12.0).reshape(3, 4).tolist()
    tessarr.create_n5(tmp_path / "x.n5", path="b/c", shape=(2,), chunks=(2,), dtype="i4", overwrite=True)
    assert array_of(group["b/c"]).shape == (2,)
    del group["b"]
    assert sorted(group._store.list()) == ["zarr.json"]


def test_a_plan_refuses_a_container_and_leaves_nothing(tmp_path: Path) -> None:
    tessarr.create_array(tmp_path / "a.zarr", data=[1, 2, 3])
    with pytest.raises(UnsupportedOperationError, match="a directory of N5 with blocks is a group"):
        tessarr.plan.rechunk(tmp_path / "a.zarr", f"{tmp_path / 'x.n5'}|n5:", path="a", chunks=(1,))
    assert not (tmp_path / "x.n5").exists()
