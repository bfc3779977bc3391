"""Neuroglancer precomputed volumes: those of TensorStore, and what hostile ones do."""

from __future__ import annotations

import asyncio
import json
import pickle
import random
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tessarr
from tessarr.cli import main
from tessarr.codecs import CompressedSegmentationCodec
from tessarr.conventions import ome
from tessarr.errors import (
    CodecError,
    KeyValidationError,
    MetadataValidationError,
    NodeNotFoundError,
    ReadOnlyError,
    StoreError,
    TessarrError,
    UnsupportedOperationError,
)
from tessarr.storage import CountingStore, MemoryStore, PrecomputedStore
from tessarr.stores.virtual.precomputed_shards import chunk_id, coords_of, murmurhash3
from tessarr.types import ByteRange
from tests.codecs.samples import data, spec_of
from tests.narrow import array_of, bytes_of, group_of

TYPES = "uint8 int8 uint16 int16 uint32 int32 uint64 float32".split()  # noqa: SIM905
SHARDING = {
    "@type": "neuroglancer_uint64_sharded_v1", "preshift_bits": 1, "hash": "murmurhash3_x86_128", "minishard_bits": 2,
    "shard_bits": 1, "minishard_index_encoding": "gzip", "data_encoding": "gzip",
}  # fmt: skip
Volume = dict[str, bytes]


def volume(size: tuple[int, int, int] = (3, 2, 1), **members: Any) -> Volume:
    """Make a volume with one scale: ``data_type`` and other members of the document, or of the scale."""
    top: dict[str, Any] = {
        "@type": "neuroglancer_multiscale_volume",
        "type": "image",
        "data_type": "uint8",
        "num_channels": 1,
    }
    scale: dict[str, Any] = {
        "key": "s",
        "size": list(size),
        "chunk_sizes": [[2, 2, 1]],
        "resolution": [8, 8, 40],
        "encoding": "raw",
    }
    for name, value in members.items():
        (top if name in (*top, "scales", "mesh") else scale)[name] = value
    whole = {"scales": [{k: v for k, v in scale.items() if v is not ...}], **top}
    return {"info": json.dumps({k: v for k, v in whole.items() if v is not ...}).encode()}


def of_tensorstore(place: Path, seed: int) -> tuple[npt.NDArray[Any], str]:
    """Write a volume by TensorStore, every choice by `seed`. Returns its elements (x, y, z, channel), and the encoding."""
    tensorstore = pytest.importorskip("tensorstore")
    pick = random.Random(seed)
    encoding = pick.choice(["raw", "raw", "compressed_segmentation", "jpeg"])
    data_type = {"raw": pick.choice(TYPES), "jpeg": "uint8"}.get(encoding, pick.choice(["uint32", "uint64"]))
    scale: dict[str, Any] = {
        "key": "a/8_8_40", "size": [pick.randint(1, 30) for _ in range(3)], "encoding": encoding,
        "chunk_size": [pick.randint(3, 14) for _ in range(3)], "resolution": [8, 8, 40],
        "voxel_offset": [pick.randint(-20, 60) for _ in range(3)],
    }  # fmt: skip
    if encoding == "compressed_segmentation":
        scale["compressed_segmentation_block_size"] = [pick.randint(1, 9) for _ in range(3)]
    if pick.random() < 0.6:
        bits = {
            "preshift_bits": pick.randint(0, 3),
            "minishard_bits": pick.randint(0, 4),
            "shard_bits": pick.randint(0, 6),
        }
        scale["sharding"] = {
            "@type": "neuroglancer_uint64_sharded_v1", "hash": pick.choice(["identity", "murmurhash3_x86_128"]), **bits,
            "minishard_index_encoding": pick.choice(["raw", "gzip"]), "data_encoding": pick.choice(["raw", "gzip"]),
        }  # fmt: skip
    top = {
        "type": "image",
        "data_type": data_type,
        "num_channels": pick.choice([1, 3] if encoding == "jpeg" else [1, 2]),
    }
    theirs = tensorstore.open(
        {
            "driver": "neuroglancer_precomputed", "kvstore": {"driver": "file", "path": str(place)}, "create": True,
            "multiscale_metadata": top, "scale_metadata": scale,
        }
    ).result()  # fmt: skip
    values = np.random.default_rng(seed).integers(0, pick.choice([2, 100, 2**31]), theirs.shape).astype(data_type)
    values[: scale["chunk_size"][0]] *= pick.randint(0, 1)  # chunks of zeros are not stored
    theirs.write(values).result()
    return np.asarray(theirs.read().result()), encoding


@pytest.mark.spec("NG-01", "NG-02", "NG-03")
@pytest.mark.parametrize("seed", range(24))
def test_volumes_of_tensorstore_are_read(seed: int, tmp_path: Path) -> None:
    expected, encoding = of_tensorstore(tmp_path, seed)
    pick = random.Random(seed)
    z = array_of(tessarr.open_precomputed(str(tmp_path), path="a/8_8_40"))
    f = array_of(tessarr.open_precomputed(str(tmp_path), path="a/8_8_40", axis_order="F"))
    assert (z.dims, f.dims) == (("c", "z", "y", "x"), ("x", "y", "z", "c"))
    # Another JPEG decoder than theirs may differ by the rounding of its transform.
    tolerance = 2 if encoding == "jpeg" else 0
    np.testing.assert_allclose(f[...], expected, rtol=0, atol=tolerance)
    part = tuple(slice(start := pick.randrange(n), pick.randint(start, n), pick.randint(1, 3)) for n in z.shape)
    np.testing.assert_allclose(z[part], expected.T[part], rtol=0, atol=tolerance)
    keys = [key for key in z.store.list() if "/c/" in key]
    assert len(set(keys)) == len(keys) == len(list(z.stored_chunks()))
    assert bool(keys) == bool(expected.any())
    assert all(z.store.getsize(key) == len(bytes_of(z.store.get(key))) for key in keys)
    assert asyncio.run(z.read_async(part)).tolist() == z[part].tolist()


@pytest.mark.spec("NG-07")
@pytest.mark.parametrize("seed", range(12))
def test_tensorstore_reads_what_the_codec_of_labels_encodes(seed: int, tmp_path: Path) -> None:
    tensorstore = pytest.importorskip("tensorstore")
    pick = random.Random(seed)
    data_type, channels = pick.choice(["uint32", "uint64"]), pick.randint(1, 3)
    size, block = [pick.randint(1, 20) for _ in range(3)], [pick.randint(1, 9) for _ in range(3)]
    labels = np.random.default_rng(seed).integers(0, pick.choice([1, 2, 5, 300, 2**32]), (channels, *size[::-1]))
    labels = (labels << (33 if data_type == "uint64" else 0)).astype(data_type)
    spec = spec_of(data_type, labels.shape)
    encoded = data(CompressedSegmentationCodec((block[0], block[1], block[2])).encode(labels, spec))
    name = "_".join(f"0-{n}" for n in size)
    theirs = tensorstore.open(
        {
            "driver": "neuroglancer_precomputed", "kvstore": {"driver": "file", "path": str(tmp_path)}, "create": True,
            "multiscale_metadata": {"type": "segmentation", "data_type": data_type, "num_channels": channels},
            "scale_metadata": {
                "key": "s", "size": size, "chunk_size": size, "resolution": [1, 1, 1],
                "encoding": "compressed_segmentation", "compressed_segmentation_block_size": block,
            },
        }
    ).result()  # fmt: skip
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / name).write_bytes(encoded)
    assert (labels == theirs.read().result().T).all()


@pytest.mark.spec("NG-02", "NG-04")
def test_scales_are_arrays_at_their_keys_and_levels_of_one_image() -> None:
    scales = [
        {
            "key": f"deep/{n}", "size": [6 // n, 4, 2], "chunk_sizes": [[2, 4, 2], [9, 9, 9]], "voxel_offset": [-10, 0, 5],
            "resolution": [4 * n, 4, 40], "encoding": "raw", "hidden": n > 1,
        }
        for n in (1, 2)
    ]  # fmt: skip
    root = group_of(tessarr.open_precomputed(volume(scales=scales, mesh="m")))
    assert [path for path, _ in root.members(max_depth=None)] == ["deep", "deep/1", "deep/2"]
    image = ome.read(root.attrs.asdict())[0]
    assert [(level.path, level.scale, level.translation) for level in image.levels] == [
        ("deep/1", (1.0, 40.0, 4.0, 4.0), (0.0, 200.0, 0.0, -40.0)),
        ("deep/2", (1.0, 40.0, 4.0, 8.0), (0.0, 200.0, 0.0, -80.0)),
    ]
    assert (root.attrs["mesh"], root.attrs["type"]) == ("m", "image")
    z = array_of(root["deep/2"])
    assert (z.shape, z.chunks) == ((1, 2, 4, 3), (1, 2, 4, 2))
    assert dict(z.attrs) == {"voxel_offset": [-10, 0, 5], "resolution": [8, 4, 40], "hidden": True}
    listed = group_of(tessarr.open_precomputed(volume(scales=scales), axis_order="F")).attrs["multiscales"]
    assert [level["path"] for level in listed[0]["datasets"]] == ["deep/1", "deep/2"]
    for path in ("nowhere", "deep/3", "deep/1/c", "info"):
        with pytest.raises(NodeNotFoundError):
            tessarr.open_precomputed(volume(scales=scales), path=path)
    with pytest.raises(NodeNotFoundError):
        tessarr.open_precomputed({})


@pytest.mark.spec("NG-06")
def test_a_url_opens_a_volume_for_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in {**volume(), "s/0-2_0-2_0-1": b"abcd", "s/2-3_0-2_0-1": b"xy"}.items():
        (tmp_path / "v" / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / "v" / name).write_bytes(value)
    whole = [[[list(b"abx"), list(b"cdy")]]]
    place = (tmp_path / "v").as_uri()
    for url in (
        "v|neuroglancer-precomputed:s",
        f"{place}|neuroglancer-precomputed:/s/",
        f"{place}/|neuroglancer-precomputed:s",
    ):
        assert tessarr.open_array(url, mode="r")[...].tolist() == whole
    root = group_of(tessarr.open(f"precomputed://{place}", mode="r"))
    z = array_of(root["s"])
    assert z[...].tolist() == pickle.loads(pickle.dumps(z))[...].tolist() == whole
    assert tessarr.open_array(z.store.url, path="s", mode="r")[...].tolist() == whole
    assert isinstance(asyncio.run(tessarr.open_precomputed_async(place)), tessarr.Group)
    with pytest.raises(ReadOnlyError):
        z[0] = 1
    with pytest.raises(UnsupportedOperationError):
        z.store.with_read_only(False)
    with pytest.raises(TessarrError):
        tessarr.open_array(f"{place}|neuroglancer-precomputed:s", mode="r+")[0] = 1
    with pytest.raises(StoreError):
        tessarr.open(f"{place}|neuroglancer-precomputed:s|zarr3:", mode="r")
    for arguments in (
        ["info", f"precomputed://{place}"],
        ["info", "v|neuroglancer-precomputed:s"],
        ["check", f"precomputed://{place}"],
    ):
        assert main(arguments) == 0
    capsys.readouterr()
    assert main(["convert", f"precomputed://{place}", "z.zarr"]) == 0
    assert "automatic ones" not in capsys.readouterr().out
    converted = tessarr.open_group("z.zarr", mode="r")
    assert array_of(converted["s"])[...].tolist() == whole
    assert ome.read(converted.attrs.asdict())[0].levels[0].scale == (1.0, 40.0, 8.0, 8.0)
    document = json.loads((tmp_path / "z.zarr/s/zarr.json").read_text())
    assert [codec["name"] for codec in document["codecs"]] == ["bytes", "zstd"]


@pytest.mark.spec("NG-05")
@pytest.mark.parametrize(
    "members",
    [
        {"data_type": "float64"}, {"data_type": 5}, {"data_type": ...}, {"num_channels": 0}, {"num_channels": True},
        {"scales": []}, {"scales": "s"}, {"scales": [5]}, {"scales": ...}, {"key": "../s"}, {"key": "/s"}, {"key": ""},
        {"key": "a//b"}, {"key": 5},
        {"key": "a/zarr.json"}, {"key": "a/.."}, {"key": "\0"}, {"key": "gs://other/volume"}, {"size": [1, 2]}, {"size": [1,
        2, -1]},
        {"size": [1, 2, 1.5]}, {"size": [1, 2, 2**63]}, {"size": "abc"}, {"chunk_sizes": [[0, 1, 1]]}, {"chunk_sizes": []},
        {"chunk_sizes": ...}, {"voxel_offset": [1, 2]}, {"resolution": [1, 2]}, {"resolution": ["a", 1, 1]}, {"resolution":
        [True, 1, 1]},
        {"encoding": "png"}, {"encoding": ...}, {"encoding": "jpeg", "data_type": "uint16"}, {"encoding": "jpeg",
        "num_channels": 2},
        {"encoding": "compressed_segmentation", "data_type": "uint32"}, {"sharding": 5}, {"sharding": {}},
        {"encoding": "compressed_segmentation", "compressed_segmentation_block_size": [8, 8, 8]},
        *({"sharding": {**SHARDING, name: value}} for name, value in [
            ("hash", "md5"), ("@type", "v2"), ("shard_bits", -1), ("minishard_bits", 65), ("preshift_bits", "1"),
            ("shard_bits", True),
            ("minishard_bits", 64), ("data_encoding", "zstd"),
        ]),
    ],
    ids=str,
)  # fmt: skip
def test_documents_that_lie_are_errors(members: dict[str, Any]) -> None:
    with pytest.raises(MetadataValidationError) as caught:
        tessarr.open_precomputed(volume(**members))
    assert caught.value.key == "info"


@pytest.mark.spec("NG-05")
def test_scales_in_each_other_and_documents_of_others_are_errors() -> None:
    scale = json.loads(volume()["info"])["scales"][0]
    for second in ("s", "s/c", "s/"):
        with pytest.raises(MetadataValidationError, match="another scale"):
            tessarr.open_precomputed(volume(scales=[scale, {**scale, "key": second}]))
    for wrong in (
        b"[]",
        b"{",
        b"{}",
        b"\xff",
        b'{"scales": [], "scales": []}',
        volume()["info"].replace(b"multiscale_volume", b"legacy_mesh"),
    ):
        with pytest.raises(MetadataValidationError):
            tessarr.open_precomputed({"info": wrong})


def test_sizes_beyond_memory_are_no_trouble_until_they_are_read() -> None:
    z = array_of(tessarr.open_precomputed(volume((2**62, 2**40, 1), voxel_offset=[-(2**62), 0, 0]), path="s"))
    assert z[0, 0, -1, -3:].tolist() == [0, 0, 0]
    assert list(z.stored_chunks()) == []


@pytest.mark.spec("NG-02")
def test_only_files_of_the_grid_are_chunks() -> None:
    names = [
        "5-7_0-2_0-1",
        "5-6_0-2_0-1",
        "6-8_0-2_0-1",
        "05-7_0-2_0-1",
        "7-9_0-2_0-1",
        "3-5_0-2_0-1",
        "5-7_0-2",
        "x",
        "7-8_0-2_0-1",
    ]
    store = PrecomputedStore({**volume(voxel_offset=[5, 0, 0]), **{f"s/{name}": b"abcd" for name in names}})
    assert sorted(store.list()) == ["s/c/0/0/0/0", "s/c/0/0/0/1", "s/zarr.json", "zarr.json"]
    assert store.list_dir("s/") == (["s/zarr.json"], ["s/c/"])
    assert store.list_dir("s/c/0/0/0/").keys == ["s/c/0/0/0/0", "s/c/0/0/0/1"]
    for key in (
        "info",
        "s/5-7_0-2_0-1",
        "s/c/1/0/0/0",
        "s/c/0/0/0/2",
        "s/c/0/0/0",
        "s/c/0/0/0/00",
        "t/c/0/0/0/0",
        "s/c",
    ):
        assert store.get(key) is None, key
        assert not store.exists(key), key
    with pytest.raises(KeyValidationError):
        store.get("../info")
    z = array_of(tessarr.open(store, path="s", mode="r"))
    with pytest.raises(CodecError) as caught:  # four bytes for a block of two
        z[...]
    assert caught.value.chunk == (0, 0, 0, 1)


# -- compressed segmentation ---------------------------------------------------------------------------------------------


@pytest.mark.spec("NG-05")
def test_labels_that_lie_are_errors_whatever_is_changed() -> None:
    labels = np.random.default_rng(1).integers(0, 9, (2, 5, 6, 7)).astype("uint64")
    spec, codec = spec_of("uint64", labels.shape), CompressedSegmentationCodec((4, 4, 4))
    encoded = bytearray(data(codec.encode(labels, spec)))
    assert (codec.decode(encoded, spec) == labels).all()
    pick, failed = random.Random(1), 0
    for _ in range(400):
        changed = bytearray(encoded)
        for _ in range(pick.randint(1, 3)):
            changed[pick.randrange(min(len(changed), 80))] = pick.randrange(256)
        changed = changed[
            : pick.choice([len(changed), len(changed), 4 * pick.randrange(len(changed) // 4), pick.randrange(99)])
        ]
        try:
            assert codec.decode(changed, spec).shape == labels.shape
        except CodecError:
            failed += 1
    assert failed > 100
    with pytest.raises(CodecError, match="much larger"):
        CompressedSegmentationCodec((2**20, 2**20, 2**20)).encoded_size(spec)
    with pytest.raises(MetadataValidationError):
        CompressedSegmentationCodec((0, 1, 1))


# -- shards --------------------------------------------------------------------------------------------------------------


def sharded(**changes: Any) -> Volume:
    """Make a volume whose two chunks are in one shard, in a minishard whose index is raw; `changes` are written over it."""
    sharding = {
        **SHARDING, "hash": "identity", "preshift_bits": 1, "shard_bits": 0, "minishard_index_encoding": "raw",
        "data_encoding": "raw",
    }  # fmt: skip
    index = changes.get("index", struct.pack("<6Q", 0, 1, 0, 0, 4, 2))
    body = b"abcdxy"
    head = changes.get("head", struct.pack("<2Q", len(body), len(body) + len(index)) + bytes(48))
    return {**volume(sharding=sharding), "s/0.shard": (head + body + index)[: changes.get("length")]}


@pytest.mark.spec("NG-03")
def test_ids_are_compressed_morton_codes() -> None:
    grid = (5, 1, 3)
    every = {chunk_id((x, y, z), grid): (x, y, z) for x in range(5) for y in range(1) for z in range(3)}
    assert len(every) == 15
    assert max(every) < 1 << 5  # three bits for x, two for z
    assert {number: coords_of(number, grid) for number in range(40)} == {
        number: every.get(number) for number in range(40)
    }
    assert chunk_id((1, 1, 1), (2, 2, 2)) == 7
    assert chunk_id((3, 0, 0), (4, 2, 1)) == 5
    assert len({murmurhash3(number) for number in range(1000)}) == 1000


@pytest.mark.spec("NG-03")
def test_chunks_of_shards_are_read_in_three_rounds_and_then_in_one() -> None:
    whole = [[[list(b"abx"), list(b"cdy")]]]
    inner = CountingStore(MemoryStore(sharded()))
    z = array_of(tessarr.open_precomputed(inner, path="s"))
    for rounds in (3, 1, 1):
        before = inner.counter.get("fetch", 0)
        assert z[...].tolist() == whole
        assert inner.counter["fetch"] - before == rounds
    assert sorted(z.store.list("s/c/")) == ["s/c/0/0/0/0", "s/c/0/0/0/1"]
    assert z.store.getsize("s/c/0/0/0/1") == 20 + 2
    assert bytes_of(z.store.get("s/c/0/0/0/1", ByteRange(20, 22))) == b"xy"
    assert pickle.loads(pickle.dumps(z))[...].tolist() == whole


@pytest.mark.spec("NG-03")
def test_a_shard_that_is_replaced_is_read_anew() -> None:
    inner = MemoryStore(sharded())
    z = array_of(tessarr.open_precomputed(inner, path="s"))
    z[...]
    other = struct.pack("<6Q", 0, 1, 2, 2**64 - 6, 4, 2)  # the second chunk before the first
    inner.set("s/0.shard", sharded(index=other)["s/0.shard"])
    assert z[...].tolist() == [[[list(b"cda"), list(b"xyb")]]]
    inner.delete("s/0.shard")
    assert not z[...].any()


@pytest.mark.spec("NG-05")
@pytest.mark.parametrize(
    "changes",
    [
        {"length": 10}, {"length": 60}, {"length": 75}, {"index": bytes(23)},
        {"head": struct.pack("<2Q", 2**64 - 1, 0) + bytes(48)}, {"head": struct.pack("<2Q", 0, 2**64 - 1) + bytes(48)},
        {"head": struct.pack("<2Q", 5, 2**62) + bytes(48)}, {"index": struct.pack("<3Q", 0, 0, 2**63)},
        {"index": struct.pack("<3Q", 0, 2**64 - 70, 4)}, {"index": struct.pack("<3Q", 0, 2**40, 4)},
        {"index": struct.pack("<3Q", 0, 0, 2**40)},
    ],
    ids=str,
)  # fmt: skip
def test_shards_that_lie_are_errors_that_name_them(changes: dict[str, Any]) -> None:
    z = array_of(tessarr.open_precomputed(sharded(**changes), path="s"))
    with pytest.raises(TessarrError) as caught:
        z[...]
    assert "s/" in str(caught.value)


@pytest.mark.spec("NG-05")
def test_shards_of_any_bytes_are_read_or_refused(tmp_path: Path) -> None:
    good = sharded()
    pick = random.Random(3)

    def damaged() -> Iterator[Volume]:
        for _ in range(300):
            shard = bytearray(good["s/0.shard"])
            for _ in range(pick.randint(1, 4)):
                shard[pick.randrange(len(shard))] = pick.choice([0, 1, 255, pick.randrange(256)])
            yield {**good, "s/0.shard": bytes(shard[: pick.choice([len(shard), pick.randrange(len(shard))])])}

    refused = 0
    for values in damaged():
        z = array_of(tessarr.open_precomputed(values, path="s"))
        try:
            assert z[...].shape == (1, 1, 2, 3)
            list(z.store.list())
        except TessarrError:
            refused += 1
    assert refused > 50


def test_an_index_that_is_a_bomb_is_refused() -> None:
    import zlib

    stream = zlib.compressobj(9, wbits=31)
    bomb = b"".join([*(stream.compress(bytes(1 << 24)) for _ in range(20)), stream.flush()])
    values = sharded(index=bomb)
    values["info"] = values["info"].replace(b'"minishard_index_encoding": "raw"', b'"minishard_index_encoding": "gzip"')
    with pytest.raises(StoreError, match="too large"):
        array_of(tessarr.open_precomputed(values, path="s"))[...]
