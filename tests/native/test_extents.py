"""Values that are extents of local files are read by Rust in one call, with the results of the store that locates them."""

from __future__ import annotations

import asyncio
import json
import os
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tessarr
from tessarr.engine import run
from tessarr.errors import ChunkNotFoundError, StoreError, TessarrError
from tessarr.storage import LocalStore, MemoryStore, ReadOnlyStore, ReferenceStore, Store, ZipStore
from tessarr.stores.fetch import Extent, Located
from tessarr.types import Buffer, ByteRange

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Rust knows no inodes on Windows, and Python reads such values")

SHAPE = (13, 11)
DATA = np.arange(143, dtype="<i4").reshape(SHAPE)
CODECS: list[Any] = [None, {"name": "zstd", "configuration": {"level": 1, "checksum": False}}, {"name": "crc32c"}]
LAYOUTS: list[dict[str, Any]] = [
    {"chunks": (4, 3)},
    {"chunks": (2, 3), "shards": (4, 6)},
    {"chunks": (1, 11), "shards": (13, 11)},
]


class Scattered(Store):
    """A store of one file, in which every value lies in two pieces, and says so."""

    read_only = True

    def __init__(self, folder: Path, values: dict[str, bytes], chunks: set[str]) -> None:
        self._values, self._folder, self._places = values, LocalStore(folder), dict[str, tuple[Extent, ...]]()
        with open(folder / "pieces", "wb") as file:
            for key in sorted(chunks):
                half = len(values[key]) // 2
                pieces = []
                for piece in (values[key][:half], values[key][half:]):
                    file.write(b"...")
                    pieces.append(Extent(self._folder, "pieces", file.tell(), len(piece)))
                    file.write(piece)
                self._places[key] = tuple(pieces)

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        value = self._values.get(key)
        return value if value is None or byte_range is None else value[slice(*byte_range.bounds(len(value)))]

    def list(self, prefix: str = "") -> Iterator[str]:
        return iter([key for key in self._values if key.startswith(prefix)])

    def locate(self, keys: Sequence[str]) -> Sequence[Located | None] | None:
        return [Located(self._places[key]) if key in self._places else None for key in keys]


def values_of(layout: dict[str, Any], codec: Any, written: Any) -> tuple[dict[str, bytes], set[str]]:
    """The values of an array of which `written` is stored, and the keys of its chunks."""
    store = MemoryStore()
    array = tessarr.create_array(store, dtype="i4", shape=SHAPE, compressors=codec, fill_value=-1, **layout)
    array[written] = DATA[written]
    values = {key: bytes(store.get(key) or b"") for key in store.list()}
    return values, {key for key in values if key.startswith("c/")}


def as_zip(folder: Path, values: dict[str, bytes], chunks: set[str]) -> Store:
    with zipfile.ZipFile(folder / "a.zip", "w") as archive:
        for key, value in values.items():
            archive.writestr(key, value)
    return ZipStore(folder / "a.zip")


def as_references(folder: Path, values: dict[str, bytes], chunks: set[str]) -> Store:
    refs: dict[str, Any] = {key: value.decode() for key, value in values.items() if key not in chunks}
    with open(folder / "data.bin", "wb") as file:
        for key in sorted(chunks):
            file.write(b"..")
            refs[key] = [str(folder / "data.bin"), file.tell(), len(values[key])]
            file.write(values[key])
    (folder / "refs.json").write_text(json.dumps({"version": 1, "refs": refs}))
    return ReferenceStore.open(str(folder / "refs.json"))


PLACES = {"zip": as_zip, "references": as_references, "two extents": Scattered}


@contextmanager
def only_rust(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let a read by any other way fail."""

    def refuse(*_: object) -> None:
        raise AssertionError("the store was asked for values")

    with monkeypatch.context() as patch:
        patch.setattr(run, "run", refuse)
        patch.setattr(run, "run_async", refuse)
        yield


@pytest.fixture(params=PLACES)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


indices = st.lists(st.integers(0, 10), min_size=1, max_size=6)


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    layout=st.sampled_from(LAYOUTS),
    codec=st.sampled_from(CODECS),
    rows=st.integers(0, 13),
    selection=st.one_of(
        st.tuples(st.slices(13), st.slices(11)).filter(lambda both: all((one.step or 1) > 0 for one in both)),
        st.tuples(st.integers(0, 12), st.integers(0, 10)),
        st.tuples(indices, indices),
    ),
)
def test_extents_give_what_the_store_gives(
    layout: dict[str, Any], codec: Any, rows: int, selection: Any, kind: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    values, chunks = values_of(layout, codec, np.s_[:rows])
    store = PLACES[kind](tmp_path_factory.mktemp("p"), values, chunks)
    array, plain = tessarr.open_array(store, mode="r"), tessarr.open_array(ReadOnlyStore(store), mode="r")
    assert str(array.engine) == str(plain.engine) == "native (serves this array)"
    expected = np.full(SHAPE, -1, "i4")
    expected[:rows] = DATA[:rows]
    with pytest.MonkeyPatch.context() as patch, only_rust(patch):
        found = array.oindex[selection]
    np.testing.assert_array_equal(found, plain.oindex[selection])
    np.testing.assert_array_equal(array[...], expected)


def test_reads_are_one_call_into_rust(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    array = tessarr.open_array(PLACES[kind](tmp_path, *values_of(LAYOUTS[1], CODECS[1], ...)), mode="r")
    with only_rust(monkeypatch):
        np.testing.assert_array_equal(array[...], DATA)
        np.testing.assert_array_equal(array.vindex[[0, 12, 0], [10, 3, 0]], DATA[[0, 12, 0], [10, 3, 0]])
        np.testing.assert_array_equal(asyncio.run(array.read_async(np.s_[2:, ::3])), DATA[2:, ::3])
        assert array[3, 4] == DATA[3, 4]


def test_a_missing_chunk_is_an_error_where_it_shall_be(kind: str, tmp_path: Path) -> None:
    with tessarr.config.set({"array.read_missing_chunks": False}):
        array = tessarr.open_array(PLACES[kind](tmp_path, *values_of(LAYOUTS[0], None, np.s_[:4])), mode="r")
        np.testing.assert_array_equal(array[:4], DATA[:4])
        with pytest.raises(ChunkNotFoundError, match="a chunk is missing") as caught:
            array[...]
    assert (caught.value.key or "").startswith("c/")


def message(read: Any) -> str:
    with pytest.raises(TessarrError) as caught:
        read()
    return str(caught.value)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_damaged_archive_is_the_same_error(tmp_path: Path, layout: dict[str, Any]) -> None:
    values, chunks = values_of(layout, None, ...)
    as_zip(tmp_path, values, chunks)
    key = sorted(chunks)[0]
    data = bytearray((tmp_path / "a.zip").read_bytes())
    data[data.index(values[key]) + 3] ^= 1
    (tmp_path / "a.zip").write_bytes(data)
    store = ZipStore(tmp_path / "a.zip")
    array, plain = tessarr.open_array(store, mode="r"), tessarr.open_array(ReadOnlyStore(store), mode="r")
    assert message(lambda: array[...]) == message(lambda: plain[...])
    assert "its CRC-32 does not match" in message(lambda: array[...])


def test_a_replaced_archive_is_not_mixed_with_the_open_one(tmp_path: Path) -> None:
    """A store reads the archive that it opened; the new one has the same keys, sizes and offsets."""
    values, chunks = values_of(LAYOUTS[0], None, ...)
    array = tessarr.open_array(as_zip(tmp_path, values, chunks), mode="r")
    np.testing.assert_array_equal(array[:4], DATA[:4])
    other = {key: bytes(len(value)) if key in chunks else value for key, value in values.items()}
    (tmp_path / "new").mkdir()
    as_zip(tmp_path / "new", other, chunks)
    os.utime(tmp_path / "new" / "a.zip", ns=(0, os.stat(tmp_path / "a.zip").st_mtime_ns))
    os.replace(tmp_path / "new" / "a.zip", tmp_path / "a.zip")
    np.testing.assert_array_equal(array[...], DATA)
    assert not tessarr.open_array(tmp_path / "a.zip", mode="r")[:12, :9].any()


def test_unpublished_writes_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ZipStore(tmp_path / "a.zip", mode="w") as store:
        array = tessarr.create_array(store, shape=SHAPE, dtype="i4", **LAYOUTS[0])
        for value in (1, 2):
            array[...] = DATA * value
            np.testing.assert_array_equal(array[...], DATA * value)
            store.flush()
            published = tessarr.open_array(ZipStore(tmp_path / "a.zip"), mode="r")
            with only_rust(monkeypatch):
                np.testing.assert_array_equal(published[...], DATA * value)
            np.testing.assert_array_equal(array[...], DATA * value)
    with pytest.raises(StoreError, match="the zip store is closed"):
        array[...]


def test_compressed_members_are_read_by_the_store(tmp_path: Path) -> None:
    with ZipStore(tmp_path / "a.zip", mode="w", compression=zipfile.ZIP_DEFLATED) as store:
        tessarr.create_array(store, shape=SHAPE, dtype="i4", **LAYOUTS[0])[...] = DATA
    opened = ZipStore(tmp_path / "a.zip")
    assert opened.locate(["c/0/0"]) is None
    np.testing.assert_array_equal(tessarr.open_array(opened, mode="r")[...], DATA)


@pytest.mark.parametrize(
    ("cut", "expected"), [(None, "a referenced file is missing"), (50, "a referenced file is too short")]
)
def test_a_changed_referenced_file_is_the_same_error(tmp_path: Path, cut: int | None, expected: str) -> None:
    store = as_references(tmp_path, *values_of(LAYOUTS[0], None, ...))
    array = tessarr.open_array(store, mode="r")
    np.testing.assert_array_equal(array[...], DATA)
    if cut is None:
        (tmp_path / "data.bin").unlink()
    else:
        os.truncate(tmp_path / "data.bin", cut)
    assert expected in message(lambda: array[...])


def test_references_in_memory_and_in_other_places_are_read_by_the_store(tmp_path: Path) -> None:
    values, chunks = values_of(LAYOUTS[0], None, ...)
    place = MemoryStore(values)
    refs: dict[str, Any] = {key: value.decode() for key, value in values.items() if key not in chunks}
    elsewhere = {key: [f"{place.url}/{key}"] for key in chunks}
    first = min(chunks)
    (tmp_path / "one.bin").write_bytes(values[first])
    for different in (elsewhere, elsewhere | {first: [str(tmp_path / "one.bin")]}):
        array = tessarr.open_array(ReferenceStore(refs | different), mode="r")
        np.testing.assert_array_equal(array[...], DATA)


def test_an_extent_of_another_version_is_not_used(tmp_path: Path) -> None:
    values, chunks = values_of(LAYOUTS[0], None, ...)
    store = Scattered(tmp_path, values, chunks)
    for key, pieces in store._places.items():
        store._places[key] = tuple(extent._replace(version="0:0:0:0") for extent in pieces)
    (tmp_path / "pieces").write_bytes(bytes(os.path.getsize(tmp_path / "pieces")))
    np.testing.assert_array_equal(tessarr.open_array(store, mode="r")[...], DATA)


def test_the_version_of_an_extent_is_that_of_its_store(tmp_path: Path) -> None:
    store = as_zip(tmp_path, *values_of(LAYOUTS[0], None, ...))
    assert isinstance(store, ZipStore)
    located = store.locate(["c/0/0", "c/9/9"])
    assert located is not None
    assert located[0] is not None
    assert located[1] is None
    ((folder, key, offset, nbytes, version),) = located[0].extents
    assert version == folder.version(key)
    assert nbytes is not None
    assert folder.get(key, ByteRange(offset, offset + nbytes)) == store.get("c/0/0")


def test_a_view_of_a_writable_archive_locates_nothing_before_it_is_published(tmp_path: Path) -> None:
    with ZipStore(tmp_path / "a.zip", mode="w") as store:
        array = tessarr.create_array(store, shape=SHAPE, dtype="i4", **LAYOUTS[0])
        view = tessarr.open_array(store.with_read_only(), mode="r")
        for value in (1, 2):
            array[...] = DATA * value
            assert store.locate(["c/0/0"]) is None
            np.testing.assert_array_equal(view[...], DATA * value)
            store.flush()
            assert store.locate(["c/0/0"]) is not None
            np.testing.assert_array_equal(view[...], DATA * value)
