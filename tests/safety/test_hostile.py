"""Hostile and broken input gives a typed error that names the place, in bounded time and memory, and never wrong data."""

from __future__ import annotations

import base64
import bz2
import contextlib
import gzip
import json
import lzma
import os
import pickle
import struct
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest

import tessarr
from tessarr.errors import (
    BaseZarrError,
    CodecError,
    KeyValidationError,
    MetadataValidationError,
    NodeNameError,
    PickleCodecDisabledError,
    ShardIndexError,
    TessarrError,
)
from tessarr.storage import LocalStore, MemoryStore
from tests.conformance.documents import array_document, v2_array_document
from tests.narrow import array_of
from tests.work import counted_steps

BOMB_NBYTES = 64 << 20
WITHIN_STEPS = 2_000_000
WITHIN_NBYTES = 44 << 20  # below a bomb; the largest document here is 6 MB of JSON, whose lists alone are 16 MB
"""What reading a hostile chunk may add to the process's memory: far less than what it claims to hold."""


@pytest.fixture
def bounded(small: None) -> Iterator[None]:
    """The test must be over soon, and must not make the process much larger than it ever was."""
    with counted_steps() as steps:
        yield
    assert steps.count < WITHIN_STEPS


@pytest.fixture
def small() -> Iterator[None]:
    """The test must not make the process much larger than it ever was."""
    before = largest()
    yield
    assert largest() - before < WITHIN_NBYTES


def largest() -> int:
    """Bytes of memory that this process held at most; 0 on Windows, which does not tell."""
    if sys.platform == "win32":
        return 0
    import resource

    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return held if sys.platform == "darwin" else held * 1024


# -- compressed data -----------------------------------------------------------------------------------------------------

CODECS: dict[str, tuple[Any, Callable[[bytes], bytes]]] = {
    "zstd": ("zstd", lambda data: bytes(numcodecs.Zstd(level=1).encode(data))),
    "gzip": ({"name": "gzip", "configuration": {"level": 1}}, lambda data: gzip.compress(data, 1)),
    "zlib": (numcodecs.Zlib(1), lambda data: zlib.compress(data, 1)),
    "bz2": (numcodecs.BZ2(1), lambda data: bz2.compress(data, 1)),
    "lzma": (numcodecs.LZMA(preset=0), lambda data: lzma.compress(data, preset=0)),
    "lz4": (numcodecs.LZ4(), lambda data: bytes(numcodecs.LZ4().encode(data))),
    "blosc": (
        numcodecs.Blosc(cname="lz4"),
        lambda data: bytes(numcodecs.Blosc(cname="lz4", shuffle=0).encode(np.frombuffer(data, "u1"))),
    ),
}
NBYTES = 64
GOOD = bytes(range(NBYTES))


@pytest.fixture(scope="module")
def zeros() -> bytes:
    return bytes(BOMB_NBYTES)


@pytest.fixture(scope="module")
def bombs(zeros: bytes) -> dict[str, bytes]:
    """For each codec a small stream of much more than a chunk."""
    return {name: encode(zeros) for name, (_, encode) in CODECS.items()}


@pytest.fixture(params=CODECS)
def codec(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def chunked(local: LocalStore, engine: str, codec: str) -> tuple[LocalStore, bytes]:
    """An array of one good chunk of 64 bytes, in a store, and the chunk as it is stored."""
    z = tessarr.create_array(local, shape=(NBYTES,), dtype="u1", compressors=CODECS[codec][0])
    stored = CODECS[codec][1](GOOD)
    local.set("c/0", stored)
    assert z[:].tobytes() == GOOD
    return local, stored


def reads(store: LocalStore) -> bytes:
    """The chunk, read by an array that has never been read before."""
    return bytes(tessarr.open_array(store, mode="r")[:].tobytes())


def outcome(store: LocalStore) -> int | str | None:
    """How many bytes were read, or the key that an error names."""
    try:
        return len(reads(store))
    except TessarrError as error:
        return error.key


def test_a_bomb_is_an_error_and_takes_no_memory(
    chunked: tuple[LocalStore, bytes], bombs: dict[str, bytes], codec: str, bounded: None
) -> None:
    store, _ = chunked
    store.set("c/0", bombs[codec])
    with pytest.raises(CodecError) as caught:
        reads(store)
    assert (caught.value.key, caught.value.chunk) == ("c/0", (0,))


def test_no_prefix_of_a_chunk_is_read_as_data(chunked: tuple[LocalStore, bytes]) -> None:
    store, stored = chunked
    for nbytes in range(len(stored)):
        store.set("c/0", stored[:nbytes])
        with pytest.raises(CodecError):
            reads(store)


def test_a_chunk_that_holds_one_byte_more_or_less_is_an_error(chunked: tuple[LocalStore, bytes], codec: str) -> None:
    store, stored = chunked
    encode = CODECS[codec][1]
    for wrong in (encode(GOOD + b"\0"), encode(GOOD[:-1]), encode(b""), stored + b"junk"):
        store.set("c/0", wrong)
        with pytest.raises(CodecError):
            reads(store)


def test_no_changed_byte_gives_another_number_of_elements_or_a_crash(
    chunked: tuple[LocalStore, bytes], bounded: None
) -> None:
    store, stored = chunked
    for position in range(len(stored)):
        for bits in (0x01, 0x80, 0xFF):
            damaged = bytearray(stored)
            damaged[position] ^= bits
            store.set("c/0", bytes(damaged))
            assert outcome(store) in {NBYTES, "c/0"}


def test_an_lz4_size_that_is_negative_or_huge_is_an_error(local: LocalStore, engine: str, bounded: None) -> None:
    z = tessarr.create_array(local, shape=(NBYTES,), dtype="u1", compressors=numcodecs.LZ4())
    block = bytes(numcodecs.LZ4().encode(GOOD))[4:]
    for size in (-1, -(2**31), 2**31 - 1, 0, NBYTES + 1):
        local.set("c/0", struct.pack("<i", size) + block)
        with pytest.raises(CodecError):
            z[:]


def test_a_zstd_frame_without_a_content_size_is_read_and_bounded(local: LocalStore, engine: str, bounded: None) -> None:
    z = tessarr.create_array(local, shape=(NBYTES,), dtype="u1", compressors="zstd")
    magic, window = b"\x28\xb5\x2f\xfd\x00", b"\x58"  # no content size, no checksum, a window of 2 MiB

    def raw_block(data: bytes, last: bool) -> bytes:
        return struct.pack("<I", len(data) << 3 | last)[:3] + data

    def run_of_zeros(nbytes: int, last: bool) -> bytes:
        return struct.pack("<I", nbytes << 3 | 1 << 1 | last)[:3] + b"\0"

    local.set("c/0", magic + window + raw_block(GOOD, last=True))
    assert z[:].tobytes() == GOOD
    local.set("c/0", magic + window + run_of_zeros(1 << 17, last=False) * 2000 + run_of_zeros(1, last=True))
    with pytest.raises(CodecError):
        z[:]


def test_gzip_of_several_members_is_read_and_bounded(local: LocalStore, engine: str, bounded: None) -> None:
    z = tessarr.create_array(
        local, shape=(NBYTES,), dtype="u1", compressors={"name": "gzip", "configuration": {"level": 1}}
    )
    local.set("c/0", gzip.compress(GOOD[:10]) + gzip.compress(GOOD[10:]))
    assert z[:].tobytes() == GOOD
    local.set("c/0", gzip.compress(GOOD) * 2)
    with pytest.raises(CodecError):
        z[:]


BLOSC_HEADERS = {
    "version": (0, b"\x09"),
    "typesize 0": (3, b"\x00"),
    "decoded size": (4, struct.pack("<I", 2**31 - 1)),
    "decoded size, negative": (4, struct.pack("<i", -1)),
    "block size 0": (8, struct.pack("<I", 0)),
    "block size": (8, struct.pack("<I", 2**31 - 1)),
    "encoded size": (12, struct.pack("<I", 2**31 - 1)),
    "first block before the table": (16, struct.pack("<i", 0)),
    "first block past the end": (16, struct.pack("<i", 2**31 - 1)),
    "first block, negative": (16, struct.pack("<i", -4)),
    "first stream": (20, struct.pack("<i", 2**31 - 1)),
    "first stream, negative": (20, struct.pack("<i", -1)),
}


@pytest.mark.parametrize("damage", BLOSC_HEADERS)
@pytest.mark.parametrize("cname", ["lz4", "blosclz", "zstd", "zlib"])
def test_a_blosc_header_that_lies_is_an_error(
    local: LocalStore, engine: str, cname: str, damage: str, bounded: None
) -> None:
    values = np.repeat(np.arange(64, dtype="<u4"), 8)
    z = tessarr.create_array(local, shape=values.shape, dtype="<u4", compressors=numcodecs.Blosc(cname=cname))
    z[:] = values
    stored = bytearray(local.get("c/0") or b"")
    position, wrong = BLOSC_HEADERS[damage]
    stored[position : position + len(wrong)] = wrong
    local.set("c/0", bytes(stored))
    with pytest.raises(CodecError):
        tessarr.open_array(local, mode="r")[:]


def test_a_blosclz_match_that_reaches_out_of_its_block_is_an_error(local: LocalStore, engine: str) -> None:
    z = tessarr.create_array(local, shape=(1024,), dtype="u1", compressors=numcodecs.Blosc(cname="blosclz", shuffle=0))
    z[:] = 7
    stored = bytearray(local.get("c/0") or b"")
    # Behind header, block table and stream length: a literal, a long match, and lengths that never end.
    stored[24:] = b"\x00\x07\xe0" + b"\xff" * (len(stored) - 27)
    local.set("c/0", bytes(stored))
    with pytest.raises(CodecError):
        tessarr.open_array(local, mode="r")[:]


# -- shards --------------------------------------------------------------------------------------------------------------

EMPTY = 2**64 - 1
INNER, COUNT = 16, 4
BODY = INNER * COUNT
INDEX = COUNT * 16 + 4


def shard(entries: list[tuple[int, int]], location: str, *, body: bytes = bytes(range(BODY)), flip: int = 0) -> bytes:
    packed = b"".join(struct.pack("<QQ", *entry) for entry in entries)
    crc = numcodecs.registry.get_codec({"id": "crc32c"}).encode(np.frombuffer(packed, "u1")).tobytes()[-4:]
    index = packed + bytes([crc[0] ^ flip, *crc[1:]])
    return index + body if location == "start" else body + index


BAD_ENTRIES = {
    "past the end": (10_000, INNER),
    "into or over the end": (BODY + INDEX - 4, INNER),
    "an overflow": (2**64 - 8, INNER),
    "a huge offset": (2**63, INNER),
    "a huge size": (0, 2**63),
    "half empty, offset": (EMPTY, INNER),
    "half empty, size": (0, EMPTY),
    "size 0": (0, 0),
    "another size": (0, INNER - 1),
}


@pytest.fixture
def sharded(local: LocalStore, engine: str, location: str) -> tuple[LocalStore, int]:
    """An array of one shard of raw inner chunks, and where its body begins."""
    tessarr.create_array(
        local,
        shape=(BODY,),
        chunks=(INNER,),
        shards={"shape": (BODY,), "index_location": location},
        dtype="u1",
        compressors=None,
        fill_value=99,
    )
    return local, INDEX if location == "start" else 0


def entries_at(base: int) -> list[tuple[int, int]]:
    return [(base + i * INNER, INNER) for i in range(COUNT)]


both_locations = pytest.mark.parametrize("location", ["start", "end"])


@both_locations
@pytest.mark.parametrize("damage", BAD_ENTRIES)
def test_an_impossible_index_entry_is_an_error(
    sharded: tuple[LocalStore, int], location: str, damage: str, bounded: None
) -> None:
    store, base = sharded
    good = entries_at(base)
    store.set("c/0", shard(good, location))
    assert tessarr.open_array(store, mode="r")[:].tolist() == list(range(BODY))
    store.set("c/0", shard([good[0], BAD_ENTRIES[damage], *good[2:]], location))
    z = tessarr.open_array(store, mode="r+")
    with pytest.raises(ShardIndexError):
        z[:]
    with pytest.raises(ShardIndexError):
        z[INNER]
    before = store.get("c/0")
    with pytest.raises(ShardIndexError):
        z[INNER + 1] = 0
    assert store.get("c/0") == before


@both_locations
def test_inner_chunks_that_reach_into_the_index_are_an_error(sharded: tuple[LocalStore, int], location: str) -> None:
    store, base = sharded
    good = entries_at(base)
    inside = (0, INNER) if location == "start" else (BODY + 2, INNER)
    store.set("c/0", shard([*good[:3], inside], location))
    z = tessarr.open_array(store, mode="r")
    with pytest.raises(ShardIndexError):
        z[:]
    with pytest.raises(ShardIndexError):
        z[BODY - 1]


@both_locations
def test_a_wrong_checksum_of_the_index_is_an_error(sharded: tuple[LocalStore, int], location: str) -> None:
    store, base = sharded
    store.set("c/0", shard(entries_at(base), location, flip=1))
    z = tessarr.open_array(store, mode="r")
    for selection in (slice(None), 0):
        with pytest.raises(ShardIndexError):
            z[selection]


@both_locations
def test_many_inner_chunks_in_the_same_bytes_take_no_more_than_the_array(
    sharded: tuple[LocalStore, int], location: str, bounded: None
) -> None:
    store, base = sharded
    store.set("c/0", shard([(base, INNER)] * COUNT, location))
    with contextlib.suppress(ShardIndexError):
        assert tessarr.open_array(store, mode="r")[:].tolist() == list(range(INNER)) * COUNT


# -- metadata --------------------------------------------------------------------------------------------------------


def document(**changes: Any) -> dict[str, Any]:
    """A good v3 array document with some members replaced."""
    encoding = {"name": "default"}
    return array_document((4,), (2,), "uint8", chunk_key_encoding=encoding, codecs=[{"name": "bytes"}]) | changes


def v2_document(**changes: Any) -> dict[str, Any]:
    return v2_array_document((4,), (2,)) | changes


def grid(*chunk_shape: Any) -> dict[str, Any]:
    return {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunk_shape)}}}


def opened(data: bytes | dict[str, Any], name: str = "zarr.json") -> tessarr.Array:
    text = data if isinstance(data, bytes) else json.dumps(data).encode()
    return tessarr.open_array(MemoryStore({name: text}), mode="r")


def test_the_good_documents_are_good() -> None:
    assert opened(document()).shape == (4,)
    assert opened(v2_document(), ".zarray").shape == (4,)


@pytest.mark.parametrize(
    "changes",
    [
        grid(0),
        grid(-1),
        grid(True),
        grid(2.0),
        grid("2"),
        grid(2, 2),
        grid(),
        {"shape": [-1]},
        {"shape": [True]},
        {"shape": [4.0]},
        {"shape": "4"},
        {"shape": None},
        {"fill_value": "0"},
        {"fill_value": 256},
        {"fill_value": None},
        {"fill_value": {}},
        {"fill_value": 0.5},
        {"data_type": "uint9"},
        {"data_type": 8},
        {"data_type": {"name": "uint8", "configuration": {"x": 1}}},
        {"codecs": []},
        {"codecs": "bytes"},
        {"codecs": [{"name": "bytes"}, {"name": "bytes"}]},
        {"codecs": [{"name": "bytes", "must_understand": "no"}]},
        {"node_type": "shard"},
        {"zarr_format": "3"},
        {"zarr_format": 3.0},
        {"unknown": {}},
        {"unknown": {"must_understand": True}},
        {"unknown": "x"},
        {"dimension_names": ["x", "y"]},
        {"dimension_names": [1]},
        {"attributes": []},
        {"storage_transformers": [{"name": "unknown"}]},
        {"chunk_key_encoding": {"name": "default", "configuration": {"separator": "-"}}},
    ],
    ids=lambda changes: json.dumps(changes)[:60],
)
def test_a_wrong_member_is_an_error_that_names_its_document(changes: dict[str, Any]) -> None:
    with pytest.raises(BaseZarrError) as caught:
        opened(document(**changes))
    assert caught.value.key == "zarr.json"


@pytest.mark.parametrize("level", ["NaN", "Infinity", "-Infinity", "1e400"])
def test_a_level_that_is_no_number_is_an_error_where_nan_is_allowed_in_attributes(level: str) -> None:
    chain = f'[{{"name": "bytes"}}, {{"name": "zstd", "configuration": {{"level": {level}, "checksum": false}}}}]'
    text = json.dumps(document(codecs=0)).replace('"codecs": 0', f'"codecs": {chain}')
    with tessarr.config.set({"attributes.allow_nan": True}), pytest.raises(BaseZarrError):
        tessarr.open_array({"zarr.json": text.encode()}, mode="r")


def test_an_unknown_member_that_need_not_be_understood_is_no_obstacle() -> None:
    assert opened(document(unknown={"must_understand": False}))[:].tolist() == [0] * 4


@pytest.mark.parametrize("name", ["zarr.json", ".zarray"])
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xef\xbb\xbf{}",
        b'{"zarr_format": \xff}',
        b'{"zarr_format": 3, "zarr_format": 2}',
        b'{"zarr_format": NaN}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"zarr_format": ' + b"9" * 10_000 + b"}",
        b'{"attributes": "' + b"x" * 100,
    ],
    ids=lambda data: data[:20].decode("latin-1"),
)
def test_what_is_no_document_is_an_error(data: bytes, name: str, bounded: None) -> None:
    with pytest.raises(TessarrError):
        opened(data, name)


@pytest.mark.parametrize(
    "changes",
    [
        {"shape": [2**62, 2**62], **grid(1, 1)},
        {"shape": [2**40], **grid(2**40)},
        {"shape": [2**63 - 1], **grid(2**62), "data_type": "complex128", "fill_value": [0.0, 0.0]},
        {"shape": [10**400], **grid(1)},
        {"shape": [4] * 100, **grid(*[2] * 100)},
    ],
    ids=["2^124 chunks", "a chunk of 1 TiB", "a chunk of 2^66 bytes", "10^400", "100 dimensions"],
)
def test_an_array_too_large_for_memory_opens_or_is_refused_at_once(changes: dict[str, Any], bounded: None) -> None:
    changes = {"codecs": [{"name": "bytes", "configuration": {"endian": "little"}}], **changes}
    text = json.dumps(document(**changes)).encode()
    try:
        z = tessarr.open_array(MemoryStore({"zarr.json": text, "c/0": b"short", "c/0/0": b"short"}), mode="r")
    except (TessarrError, ValueError):
        return
    if z.ndim <= 2:
        with pytest.raises((TessarrError, ValueError)):
            z[(0,) * z.ndim]


def many_dimensions(count: int) -> None:
    text = json.dumps(document(shape=["4s"], **grid("2s")))
    text = text.replace('"4s"', ", ".join(["4"] * count)).replace('"2s"', ", ".join(["2"] * count))
    with pytest.raises((TessarrError, ValueError)):
        tessarr.open_array(MemoryStore({"zarr.json": text.encode()}), mode="r")


def test_half_a_million_dimensions_are_refused_in_little_memory(small: None) -> None:
    many_dimensions(500_000)


def test_ten_times_the_dimensions_are_refused_in_ten_times_the_steps() -> None:
    counts = []
    for dimensions in (1_000, 10_000):
        with counted_steps() as steps:
            many_dimensions(dimensions)
        counts.append(steps.count)
    assert counts[1] < 11 * counts[0]


def test_large_attributes_are_no_trouble(bounded: None) -> None:
    assert len(opened(document(attributes={"text": "x" * 4_000_000})).attrs["text"]) == 4_000_000


# -- pickle ------------------------------------------------------------------------------------------------------------


class Payload:
    """Leaves a mark where it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.mark),)


PICKLES: dict[str, dict[str, Any]] = {
    "filter": {".zarray": v2_document(dtype="|O", fill_value=None, filters=[{"id": "pickle"}])},
    "second filter": {
        ".zarray": v2_document(dtype="|O", fill_value=None, filters=[{"id": "vlen-utf8"}, {"id": "pickle"}])
    },
    "compressor": {".zarray": v2_document(dtype="|u1", compressor={"id": "pickle"})},
    "upper case": {".zarray": v2_document(dtype="|O", fill_value=None, filters=[{"id": "Pickle"}])},
    "v3 codec": {"zarr.json": document(codecs=[{"name": "numcodecs.pickle"}])},
    "v3 codec after bytes": {"zarr.json": document(codecs=[{"name": "bytes"}, {"name": "numcodecs.pickle"}])},
    "v3 inner codec": {
        "zarr.json": document(
            codecs=[
                {
                    "name": "sharding_indexed",
                    "configuration": {
                        "chunk_shape": [1],
                        "codecs": [{"name": "bytes"}, {"name": "numcodecs.pickle"}],
                        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
                    },
                }
            ]
        )
    },
    "consolidated": {
        ".zgroup": {"zarr_format": 2},
        ".zmetadata": {
            "zarr_consolidated_format": 1,
            "metadata": {
                ".zgroup": {"zarr_format": 2},
                "x/.zarray": v2_document(dtype="|O", fill_value=None, filters=[{"id": "pickle"}]),
            },
        },
    },
}


@pytest.mark.parametrize("where", PICKLES)
def test_pickle_is_refused_wherever_it_hides_and_runs_nothing(tmp_path: Path, where: str) -> None:
    chunk = pickle.dumps([Payload(tmp_path / "mark"), (2,)])
    chunks = dict.fromkeys(("0", "1", "c/0", "x/0", "x/1"), chunk)
    documents = {name: json.dumps(value).encode() for name, value in PICKLES[where].items()}
    store = MemoryStore({**documents, **chunks})

    def read() -> Any:
        node: Any = tessarr.open(store, mode="r")
        return (array_of(node["x"] if isinstance(node, tessarr.Group) else node))[:]

    with tessarr.config.set({"array.allow_unsafe_pickle_decode": True}), pytest.raises(TessarrError) as caught:
        read()
    assert isinstance(caught.value, PickleCodecDisabledError) or "pickle" in str(caught.value).lower()
    assert not (tmp_path / "mark").exists()


# -- names -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def guarded(tmp_path: Path) -> tuple[LocalStore, Path]:
    """A store with an array beside it that must not be reached."""
    tessarr.create_array(tmp_path / "secret", data=np.arange(4))
    inside = LocalStore(tmp_path / "inside")
    tessarr.create_group(inside)
    return inside, tmp_path


ESCAPES = ["../secret", "a/../../secret", "..", ".", "a/./b", "a/\0b"]


@pytest.mark.parametrize("path", ESCAPES)
def test_no_path_leads_out_of_the_store(guarded: tuple[LocalStore, Path], path: str) -> None:
    store, above = guarded
    for attempt in (
        lambda: tessarr.open(store, mode="r", path=path),
        lambda: tessarr.open_group(store, mode="r")[path],
        lambda: tessarr.create_array(store, name=path, shape=(1,), dtype="u1"),
        lambda: tessarr.open_group(store, mode="r+").create_group(path, overwrite=True),
        lambda: tessarr.open_group(store, mode="r+").move("x", path),
    ):
        with pytest.raises((TessarrError, ValueError, KeyError)):
            attempt()
    assert tessarr.open_array(above / "secret", mode="r")[:].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("key", ["../secret/zarr.json", "/etc/passwd", "a//b", "a/../b", "", "a/", "a\0b"])
def test_no_key_leads_out_of_the_store(guarded: tuple[LocalStore, Path], key: str) -> None:
    store, _ = guarded
    for attempt in (
        lambda: store.get(key),
        lambda: store.set(key, b""),
        lambda: store.delete(key),
        lambda: store.exists(key),
    ):
        with pytest.raises(KeyValidationError):
            attempt()


def test_an_absolute_path_is_a_path_in_the_store(guarded: tuple[LocalStore, Path]) -> None:
    store, above = guarded
    with pytest.raises(TessarrError):
        tessarr.open(store, mode="r", path=str(above / "secret"))


@pytest.mark.parametrize("path", ["%2e%2e/secret", "..%2fsecret", "..\\secret", "a" * 10_000])
def test_disguised_and_long_names_are_names_or_errors(guarded: tuple[LocalStore, Path], path: str) -> None:
    store, above = guarded
    with pytest.raises((TessarrError, KeyError)):
        tessarr.open_group(store, mode="r")[path]
    assert sorted(entry.name for entry in above.iterdir()) == ["inside", "secret"]


@pytest.mark.parametrize("name", ["__zarr_reserved", "zarr.json", "...", "a" * 300])
def test_names_that_cannot_be_are_refused_before_anything_is_written(
    guarded: tuple[LocalStore, Path], name: str
) -> None:
    store, _ = guarded
    before = sorted(store.list())
    with pytest.raises((NodeNameError, KeyValidationError, TessarrError)):
        tessarr.create_array(store, name=name, shape=(1,), dtype="u1")
    assert sorted(store.list()) == before


# -- elements of any length --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [str, bytes])
@pytest.mark.parametrize(
    "chunk",
    [
        b"",
        b"\x02",
        struct.pack("<I", 2),
        struct.pack("<I", 2**32 - 1),
        struct.pack("<II", 2, 2**32 - 1),
        struct.pack("<II", 2, 2) + b"ab",
        struct.pack("<II", 2, 1) + b"a" + struct.pack("<I", 2) + b"b",
        struct.pack("<II", 2, 1) + b"a" + struct.pack("<I", 1) + b"b" + b"more",
        struct.pack("<II", 3, 0) + struct.pack("<II", 0, 0),
    ],
    ids=[
        "nothing",
        "no count",
        "no lengths",
        "a huge count",
        "a huge length",
        "one of two",
        "cut",
        "too long",
        "three",
    ],
)
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_lengths_past_the_buffer_are_errors(dtype: Any, chunk: bytes, zarr_format: int, bounded: None) -> None:
    store = MemoryStore()
    z = tessarr.create_array(store, shape=(2,), chunks=(2,), dtype=dtype, compressors=None, zarr_format=zarr_format)
    store.set("c/0" if zarr_format == 3 else "0", chunk)
    with pytest.raises(CodecError):
        z[:]


def test_text_that_is_no_utf_8_is_an_error() -> None:
    store = MemoryStore()
    z = tessarr.create_array(store, shape=(1,), dtype=str, compressors=None)
    store.set("c/0", struct.pack("<II", 1, 2) + b"\xff\xfe")
    with pytest.raises(CodecError):
        z[:]


def test_an_invalid_fill_in_base64_is_an_error_or_a_warning() -> None:
    good = base64.standard_b64encode(b"ab\0\0").decode()
    assert opened(v2_document(dtype="|S4", fill_value=good), ".zarray")[:].tolist() == [b"ab"] * 4
    with pytest.raises(MetadataValidationError):
        opened(v2_document(dtype="|S4", fill_value="!!!!"), ".zarray")


# -- stores ------------------------------------------------------------------------------------------------------------


class Echoing(MemoryStore):
    """Lists every prefix as a child of itself, as some object stores do with their markers."""

    def list_dir(self, prefix: str) -> Any:
        found = super().list_dir(prefix)
        return found._replace(prefixes=[*found.prefixes, *([prefix] if prefix else [])])


def test_a_listing_that_includes_itself_does_not_go_on_for_ever(bounded: None) -> None:
    store = Echoing()
    root = tessarr.create_group(store)
    root.create_array("a/x", shape=(1,), dtype="u1")
    assert [path for path, _ in root.members(max_depth=None)] == ["a", "a/x"]
    tessarr.consolidate_metadata(store)
    assert [path for path, _ in tessarr.open_consolidated(store).members(max_depth=None)] == ["a", "a/x"]


@pytest.mark.parametrize("key", ["a", "zarr.json", "c/0"])
def test_a_directory_where_a_value_should_be_is_not_data(local: LocalStore, key: str) -> None:
    (local.root / key).mkdir(parents=True)
    assert local.get(key) is None
    if key == "c/0":
        z = tessarr.create_array(local, shape=(2,), dtype="u1", fill_value=7)
        assert z[:].tolist() == [7, 7]
