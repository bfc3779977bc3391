"""The goals of ZEP 1, shown on the package as a whole."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest

import tessarr
from tessarr import conventions, registry
from tessarr.errors import MetadataValidationError, PickleCodecDisabledError
from tessarr.stores.base import Store
from tessarr.stores.buffers import byte_view
from tessarr.stores.memory.store import MemoryStore
from tessarr.types import Buffer, ByteRange
from tests.narrow import array_of

FIXTURES = Path(__file__).parents[1] / "fixtures"
VALUES = np.arange(24).reshape(4, 6) + 1


@pytest.mark.spec("ZEP1-01", "ZEP1-05")
@pytest.mark.parametrize(
    ("name", "path", "zarr_format"),
    [
        ("zarr-1.1.0/blosc_i4_C.zarr", "", 1),
        ("gdal/byte_cf1.zarr", "Band1", 2),
        ("zarrita.js/v3/data.zarr", "2d.chunked.i2", 3),
        ("anndata/v0.11.4/adata.zarr.zip", "obs/_index", 2),
    ],
)
def test_one_call_opens_every_format_from_its_place_alone(name: str, path: str, zarr_format: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        opened = tessarr.open(str(FIXTURES / name), path=path, mode="r")
        if isinstance(opened, tessarr.Group):
            opened = array_of(opened["data"])
    assert opened.zarr_format == zarr_format
    assert np.asarray(opened[...]).shape == opened.shape


@pytest.mark.spec("ZEP1-09")
def test_the_documents_of_v3_have_one_name() -> None:
    for number, wanted in (
        (2, {"foo/bar/.zarray", "foo/.zgroup", ".zgroup"}),
        (3, {"foo/bar/zarr.json", "foo/zarr.json", "zarr.json"}),
    ):
        store = MemoryStore()
        tessarr.create_array(store, name="foo/bar", shape=(1,), dtype="u1", zarr_format=number)
        assert set(store.list()) == wanted


class Doubling(tessarr.codecs.Crc32cCodec):
    """A codec of somebody else's."""

    name = "example.doubling"

    def encoded_size(self, nbytes: int) -> int:
        return 2 * nbytes

    def encode(self, data: Any) -> bytes:
        return bytes(byte_view(data)) * 2

    def decode(self, data: Any, nbytes: int | None) -> bytes:
        whole = bytes(byte_view(data))
        return whole[: len(whole) // 2]


@pytest.mark.spec("ZEP1-03")
def test_anyone_can_publish_an_extension_and_a_store() -> None:
    class Upper(Store):
        """The least a store must have."""

        def __init__(self) -> None:
            self.held: dict[str, bytes] = {}

        def get(self, key: str, byte_range: ByteRange | None = None) -> bytes | None:
            value = self.held.get(key.upper())
            if value is None or byte_range is None:
                return value
            start, stop = byte_range.bounds(len(value))
            return value[start:stop]

        def set(self, key: str, value: Buffer, **_: Any) -> None:
            self.held[key.upper()] = bytes(byte_view(value))

        def delete(self, key: str) -> None:
            self.held.pop(key.upper(), None)

        def list(self, prefix: str = "") -> Iterator[str]:
            return (key.lower() for key in self.held if key.lower().startswith(prefix))

    registry.register("codec", Doubling.name, Doubling)
    try:
        store = Upper()
        made = tessarr.create_array(
            store, shape=(4, 6), chunks=(2, 3), dtype="i4", compressors=[{"name": Doubling.name}]
        )
        made[...] = VALUES
        np.testing.assert_array_equal(tessarr.open_array(store, mode="r")[...], VALUES)
        assert len(store.held["C/0/0"]) == 2 * 24
    finally:
        registry._TABLE["codec"].pop(Doubling.name)


@pytest.mark.spec("ZEP1-04")
def test_what_may_be_ignored_is_and_what_must_be_understood_stops() -> None:
    store = MemoryStore()
    tessarr.create_array(store, shape=(2,), dtype="u1")
    document = json.loads(bytes(store.get("zarr.json") or b""))
    for extra, fine in (
        ({"must_understand": False}, True),
        ({"must_understand": True}, False),
        ({}, False),
        ("x", False),
    ):
        store.set("zarr.json", json.dumps({**document, "somebody:extra": extra}).encode())
        if fine:
            assert tessarr.open_array(store, mode="r").shape == (2,)
        else:
            with pytest.raises(MetadataValidationError, match=r"somebody:extra"):
                tessarr.open_array(store, mode="r")


@pytest.mark.spec("ZEP1-06")
def test_text_is_an_extension_and_nothing_is_unpickled() -> None:
    store = MemoryStore()
    made = tessarr.create_array(store, shape=(2,), dtype=str)
    made[...] = np.array(["a", "ü"], object)
    document = json.loads(bytes(store.get("zarr.json") or b""))
    assert document["data_type"] == "string"
    assert document["codecs"][0]["name"] == "vlen-utf8"
    store.set(
        "zarr.json", json.dumps({**document, "codecs": [*document["codecs"], {"name": "numcodecs.pickle"}]}).encode()
    )
    with pytest.raises((PickleCodecDisabledError, MetadataValidationError), match=r"(?i)pickle"):
        tessarr.open_array(store, mode="r")


# -- storage transformers ------------------------------------------------------------------------------------------------


class Wrapped(Store):
    """A store that keeps its values in another under other names, or in other ways."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner

    def place(self, key: str) -> str:
        return key

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        return self.inner.get(self.place(key), byte_range)

    def set(self, key: str, value: Buffer, **_: Any) -> None:
        self.inner.set(self.place(key), value)

    def delete(self, key: str) -> None:
        self.inner.delete(self.place(key))

    def list(self) -> Iterator[str]:  # type: ignore[override]  # as stores written for zarr-python 2 have it
        return self.inner.list()


class ContentAddressed(Wrapped):
    """Keys map to the hash of their value; equal values are stored once (zarr-specs issue 82)."""

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        name = self.inner.get(f"{key}.ref")
        return None if name is None else self.inner.get(bytes(byte_view(name)).decode(), byte_range)

    def set(self, key: str, value: Buffer, **_: Any) -> None:
        name = f"cas/{hashlib.sha256(byte_view(value)).hexdigest()}"
        if not self.inner.exists(name):
            self.inner.set(name, value)
        self.inner.set(f"{key}.ref", name.encode())

    def delete(self, key: str) -> None:
        self.inner.delete(f"{key}.ref")


class Hashed(Wrapped):
    """Chunks are spread over directories by a hash of their key (zarr-specs issue 115)."""

    def place(self, key: str) -> str:
        return f"{hashlib.sha256(key.encode()).hexdigest()[:2]}/{key}"


class Versioned(Wrapped):
    """Every write makes a new version; readers see the newest, or the one they ask for (zarr-specs issue 76)."""

    at: int | None = None

    def _versions(self, key: str) -> list[str]:
        found = sorted(name for name in self.inner.list() if name.startswith(f"{key}@"))
        return found if self.at is None else [name for name in found if int(name.rpartition("@")[2]) <= self.at]

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        found = self._versions(key)
        return self.inner.get(found[-1], byte_range) if found else None

    def set(self, key: str, value: Buffer, **_: Any) -> None:
        self.inner.set(f"{key}@{len(self._versions(key)):06d}", value)


class FileChunks(Wrapped):
    """Chunks are byte ranges of files that were there before (zarr-python issue 556)."""

    ranges: Mapping[str, tuple[str, int, int]] = {}

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        if key not in self.ranges:
            return None
        name, start, stop = self.ranges[key]
        if byte_range is not None:
            low, high = byte_range.bounds(stop - start)
            start, stop = start + low, start + high
        return self.inner.get(name, ByteRange(start, stop))


class _Transformer:
    """What the registry wants: made from its configuration, wraps a store."""

    store: type[Wrapped]

    def __init__(self, configuration: Mapping[str, Any]) -> None:
        self.configuration = dict(configuration)

    @classmethod
    def from_json(cls, configuration: Mapping[str, Any]) -> Self:
        return cls(configuration)

    def wrap(self, store: Store) -> Store:
        made = self.store(store)
        for name, value in self.configuration.items():
            setattr(made, name, value)
        return made


@pytest.fixture
def transformers() -> Iterator[None]:
    for name, cls in (("cas", ContentAddressed), ("hashed", Hashed), ("versioned", Versioned), ("files", FileChunks)):
        registry.register("storage_transformer", name, type(f"T{name}", (_Transformer,), {"store": cls}))
    yield
    for name in ("cas", "hashed", "versioned", "files"):
        registry._TABLE["storage_transformer"].pop(name)


def transformed(store: Any, *names: str, **configuration: Any) -> Any:
    """A new array whose chunks go through these transformers."""
    tessarr.create_array(store, shape=(4, 6), chunks=(2, 3), dtype="i4", compressors=None, overwrite=True)
    document = json.loads(bytes(store.get("zarr.json")))
    document["storage_transformers"] = [{"name": name, "configuration": configuration} for name in names]
    store.set("zarr.json", json.dumps(document).encode())
    return tessarr.open_array(store, mode="r+")


@pytest.mark.spec("ZEP1-11")
def test_a_transformer_stores_equal_chunks_once(transformers: None) -> None:
    store = MemoryStore()
    array = transformed(store, "cas")
    array[...] = 7
    np.testing.assert_array_equal(tessarr.open_array(store, mode="r")[...], 7)
    assert sum(key.startswith("cas/") for key in store.list()) == 1
    array[0, 0] = 8
    np.testing.assert_array_equal(tessarr.open_array(store, mode="r")[0, :2], [8, 7])
    assert sum(key.startswith("cas/") for key in store.list()) == 2


@pytest.mark.spec("ZEP1-12")
def test_a_transformer_spreads_chunks_over_directories(transformers: None) -> None:
    store = MemoryStore()
    transformed(store, "hashed")[...] = VALUES
    np.testing.assert_array_equal(tessarr.open_array(store, mode="r")[...], VALUES)
    assert not any(key.startswith("c/") for key in store.list())


@pytest.mark.spec("ZEP1-13")
def test_a_transformer_keeps_old_versions_of_chunks(transformers: None) -> None:
    store = MemoryStore()
    array = transformed(store, "versioned")
    array[...] = VALUES
    array[...] = VALUES + 100
    np.testing.assert_array_equal(tessarr.open_array(store, mode="r")[...], VALUES + 100)
    document = json.loads(bytes(store.get("zarr.json") or b""))
    document["storage_transformers"][0]["configuration"] = {"at": 0}
    store.set("zarr.json", json.dumps(document).encode())
    np.testing.assert_array_equal(tessarr.open_array(store, mode="r")[...], VALUES)


@pytest.mark.spec("ZEP1-14")
def test_a_transformer_reads_chunks_from_ranges_of_existing_files(transformers: None) -> None:
    store = MemoryStore()
    values = VALUES.astype("<i4")
    store.set("old.tiff", b"header--" + values[:2, :3].tobytes() + values[2:, 3:].tobytes())
    array = transformed(store, "files", ranges={"c/0/0": ["old.tiff", 8, 32], "c/1/1": ["old.tiff", 32, 56]})
    np.testing.assert_array_equal(array[:2, :3], values[:2, :3])
    np.testing.assert_array_equal(array[2:, 3:], values[2:, 3:])
    assert not array[:2, 3:].any()


@pytest.mark.spec("ZEP1-10")
@pytest.mark.parametrize("names", [("cas", "hashed"), ("hashed", "cas"), ("hashed", "versioned")])
def test_transformers_are_stacked_in_their_order(transformers: None, names: tuple[str, ...]) -> None:
    store = MemoryStore()
    transformed(store, *names)[...] = VALUES
    np.testing.assert_array_equal(tessarr.open_array(store, mode="r")[...], VALUES)
    # the last transformer is the one that sees the store
    hashed_names = [key for key in store.list() if key[2:3] == "/"]
    assert bool(hashed_names) is True
    assert any(key[3:].startswith("cas/") for key in hashed_names) is (names[0] == "cas")


# -- scale ---------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("ZEP1-15")
def test_conventions_are_out_of_the_cores_way() -> None:
    broken = {
        "_ARRAY_DIMENSIONS": 7, "zarr_conventions": "x", "multiscales": 3, "ome": [], "_CRS": 1, "spatial:transform": "x",
        "units": 5, "grid_mapping": [], "encoding-type": {}, "proj:code": None,
    }  # fmt: skip
    store = MemoryStore()
    group = tessarr.create_group(store, attributes=broken)
    group.create_array("x", shape=(2,), dtype="u1", attributes=broken)[...] = 3
    opened = tessarr.open_group(store, mode="r")
    assert dict(opened.attrs) == broken
    assert array_of(opened["x"])[...].tolist() == [3, 3]
    assert conventions.check_node(opened["x"])


class Counting(MemoryStore):
    counts: Counter[str]

    def __init__(self) -> None:
        super().__init__()
        self.counts = Counter()
        self.requests_at_once = 16

    def fetch(self, requests: Any) -> Any:
        self.counts["waves"] += 1
        self.counts["reads"] += len(requests)
        return super().fetch(requests)

    def get(self, key: str, byte_range: ByteRange | None = None) -> Any:
        self.counts["reads"] += 1
        return super().get(key, byte_range)

    def list_dir(self, prefix: str) -> Any:
        found = super().list_dir(prefix)
        self.counts["listings"] += 1
        self.counts["chunk keys"] += sum(key.rpartition("/")[2] not in ("zarr.json",) for key in found.keys)
        return found

    def list_prefix(self, prefix: str) -> Any:
        self.counts["deep listings"] += 1
        return super().list_prefix(prefix)


@pytest.mark.spec("ZEP1-07")
def test_the_tree_of_many_arrays_is_found_without_a_look_at_any_chunk() -> None:
    store = Counting()
    group = tessarr.create_group(store)
    for number in range(20):
        group.create_array(f"x{number}", shape=(100,), chunks=(1,), dtype="u1")
        for chunk in range(100):
            store.set(f"x{number}/c/{chunk}", b"\1")
    store.counts.clear()
    tessarr.open_group(store, mode="r").tree()
    assert store.counts["listings"] <= 21
    assert store.counts["chunk keys"] == 0
    assert store.counts["deep listings"] == 0


@pytest.mark.spec("ZEP1-08")
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_consolidated_tree_is_read_without_a_request_for_any_node_below(zarr_format: Any) -> None:
    store = Counting()
    group = tessarr.create_group(store, zarr_format=zarr_format)
    for number in range(20):
        group.create_array(f"g/x{number}", shape=(1,), dtype="u1")
    store.counts.clear()
    tessarr.open_group(store, mode="r")
    plain = store.counts["waves"]
    tessarr.consolidate_metadata(store)
    store.counts.clear()
    opened = tessarr.open_group(store, mode="r")
    assert store.counts["waves"] == plain
    store.counts.clear()
    assert len(opened["g"]) == 20
    assert opened["g/x7"].shape == (1,)
    assert store.counts["reads"] == store.counts["listings"] == store.counts["deep listings"] == 0


@pytest.mark.spec("ZEP1-16")
def test_the_cost_of_a_read_does_not_depend_on_how_many_chunks_there_could_be() -> None:
    store = Counting()
    huge = tessarr.create_array(store, shape=(2**50, 2**50), chunks=(10, 10), dtype="u1")
    store.counts.clear()
    assert huge[2**49, 2**49] == 0
    assert huge[:20, :20].sum() == 0
    assert store.counts["reads"] <= 5 + 5
    assert store.counts["waves"] <= 2
