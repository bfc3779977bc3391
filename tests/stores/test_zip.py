"""Values in a zip archive."""

from __future__ import annotations

import errno
import gc
import io
import os
import pickle
import signal
import struct
import subprocess
import sys
import time
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest

from tessarr.errors import (
    KeyValidationError,
    ReadOnlyError,
    StoreError,
    UnsupportedOperationError,
)
from tessarr.stores.base import Listing, Store
from tessarr.stores.local.store import LocalStore
from tessarr.stores.zip import format as zipformat
from tessarr.stores.zip.store import ZipStore
from tessarr.types import ByteRange
from tests.narrow import calls
from tests.stores.contract import (
    SEED,
    ConditionalContract,
    ListContract,
    ReadContract,
    WriteContract,
    child_environment,
    plain,
)

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"


class ZipContract(ReadContract, WriteContract, ListContract, ConditionalContract):
    """What an archive promises: all but deleting."""

    def test_a_version_changes_with_the_value(self, store: Store) -> None:
        assert store.version("k") is None
        versions = set()
        for number in range(20):
            store.set("k", b"%02d" % number)
            versions.add(store.version("k"))
        assert len(versions) == 20

    @pytest.mark.spec("V3-STORE-13")
    def test_it_cannot_delete_what_is_there(self, seeded: Store) -> None:
        assert not seeded.supports_deletes
        for call in calls(
            lambda: seeded.delete("a/b"),
            lambda: seeded.delete_many(["a/b"]),
            lambda: seeded.delete_prefix("a/"),
            lambda: seeded.clear(),
            lambda: seeded.update("a/b", lambda _: None),
        ):
            with pytest.raises(UnsupportedOperationError, match="cannot delete"):
                call()
        seeded.delete("missing")
        seeded.delete_prefix("missing/")
        assert sorted(seeded.list()) == sorted(SEED)

    @pytest.mark.parametrize("prefix", ["", "n/"])
    def test_a_replaced_prefix_holds_exactly_the_new_values(self, store: Store, prefix: str) -> None:
        for key in ("beside", f"{prefix}old", f"{prefix}sub/old"):
            store.set(key, b"old")
        store.replace_prefix(prefix, {f"{prefix}new": b"1"})
        assert sorted(store.list()) == sorted([f"{prefix}new"] + ["beside"] * bool(prefix))
        with pytest.raises(KeyValidationError):
            store.replace_prefix("n/", {"other/x": b""})


class TestZipStoreAtAPath(ZipContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> ZipStore:
        return ZipStore(tmp_path / "not yet" / "x.zip", mode="w")


class TestZipStoreThatAppends(ZipContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> ZipStore:
        ZipStore(tmp_path / "x.zip", mode="w").close()
        return ZipStore(tmp_path / "x.zip", mode="a")


class TestZipStoreInAFileObject(ZipContract):
    @pytest.fixture
    def store(self) -> ZipStore:
        return ZipStore(io.BytesIO(), mode="w")


class TestZipStoreThatDeflates(ZipContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> ZipStore:
        return ZipStore(tmp_path / "x.zip", mode="w", compression=zipfile.ZIP_DEFLATED)


class TestPublishedArchives(ReadContract, ListContract):
    """Written by us, published, opened again."""

    @pytest.fixture(params=[zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
    def compression(self, request: pytest.FixtureRequest) -> int:
        return int(request.param)

    @pytest.fixture
    def seeded(self, tmp_path: Path, compression: int) -> Store:
        with ZipStore(tmp_path / "x.zip", mode="w", compression=compression) as store:
            for key, value in SEED.items():
                store.set(key, value)
        return ZipStore(tmp_path / "x.zip")

    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return ZipStore(tmp_path / "y.zip", mode="w")

    def test_other_readers_find_the_same(self, seeded: ZipStore) -> None:
        with zipfile.ZipFile(str(seeded.path)) as archive:
            assert archive.testzip() is None
            assert {name: archive.read(name) for name in archive.namelist()} == SEED


# -- archives of others ----------------------------------------------------------------------------------------------


def zipped(path: Path, values: dict[str, bytes], compression: int, *, prefix: str = "", zip64: bool = False) -> Path:
    """An archive made by `zipfile` as ``zip -r`` makes one: with entries for directories."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        for folder in ["", *sorted({f"{key.rpartition('/')[0]}/" for key in values if "/" in key})]:
            if prefix + folder:
                archive.writestr(prefix + folder, b"")
        for key, value in values.items():
            with archive.open(zipfile.ZipInfo(prefix + key), "w", force_zip64=zip64) as entry:
                entry.write(value)
    return path


@pytest.mark.spec("OGC-03")
@pytest.mark.parametrize("zip64", [False, True])
@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_a_zipped_directory_store_opens(tmp_path: Path, compression: int, zip64: bool) -> None:
    store = ZipStore(zipped(tmp_path / "x.zip", SEED, compression, zip64=zip64))
    assert {key: plain(store.get(key)) for key in store.list()} == SEED
    assert store.list_dir("a/") == Listing(["a/b"], ["a/c/"])
    assert plain(store.get("a/b", ByteRange(2, 5))) == b"234"


@pytest.mark.spec("OGC-03")
def test_a_zip_of_the_directory_itself_has_its_name_before_the_keys(tmp_path: Path) -> None:
    store = ZipStore(zipped(tmp_path / "x.zip", SEED, zipfile.ZIP_STORED, prefix="x.zarr/"))
    assert store.list_dir("").prefixes == ["x.zarr/"]
    assert plain(store.get("x.zarr/a/b")) == b"0123456789"


@pytest.mark.filterwarnings("ignore:Empty unicode path extra field")  # of zipfile, from Python 3.14 on
@pytest.mark.spec("OGC-03")
@pytest.mark.parametrize(
    "path", sorted(FIXTURES.rglob("*.zip")), ids=lambda path: path.relative_to(FIXTURES).as_posix()
)
def test_every_entry_of_a_foreign_archive_reads_as_its_directory_says(path: Path) -> None:
    store = ZipStore(path)
    with zipfile.ZipFile(path) as archive:
        last = {info.filename: info for info in archive.infolist() if info.filename[-1:] != "/"}
        # Not by reading: zipfile refuses one of them, whose names differ between entry and directory.
        expected = [info.CRC for info in last.values()]
    assert sorted(zlib.crc32(plain(store.get(key))) for key in store.list()) == sorted(expected)
    for key in store.list():
        assert plain(store.get(key, ByteRange(1, 3))) == plain(store.get(key))[1:3]
        assert plain(store.get(key, ByteRange(-2))) == plain(store.get(key))[-2:]


@pytest.mark.filterwarnings("ignore:Empty unicode path extra field")  # of zipfile, from Python 3.14 on
@pytest.mark.spec("OGC-03", "V3-NAME-10")
def test_names_are_read_as_their_writer_meant_them() -> None:
    folder = FIXTURES / "neuroglancer/kvstore/zip/from-yauzl/success"
    assert [*ZipStore(folder / "unicode-path-extra-field.zip").list()] == ["七个房间.txt"]
    assert "Turmion Kätilöt/Hoitovirhe/Rautaketju.mp3" in [*ZipStore(folder / "unicode.zip").list()]
    assert [*ZipStore(folder / "directories.zip").list()] == ["a/a.txt"]
    assert [*ZipStore(folder / "empty.zip").list()] == []


def test_an_unmarked_name_in_utf_8_is_read_as_that(tmp_path: Path) -> None:
    data = zipped(tmp_path / "x.zip", {"ab/k": b"1"}, zipfile.ZIP_STORED).read_bytes()
    store = ZipStore(io.BytesIO(data.replace(b"ab/", "é/".encode())))
    assert plain(store.get("é/k")) == b"1"


def test_the_last_entry_of_a_name_counts_and_foreign_names_are_no_keys(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("k", b"old")
        archive.writestr("../up", b"")
        archive.writestr("/abs", b"")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("k", b"new")
    store = ZipStore(tmp_path / "x.zip")
    assert [*store.list()] == ["k"]
    assert plain(store.get("k")) == b"new"


def test_an_archive_behind_other_bytes_opens_and_grows(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x.zip", {"a": b"1"}, zipfile.ZIP_DEFLATED)
    path.write_bytes(b"#!/bin/sh\n" + path.read_bytes())
    with ZipStore(path, mode="a") as store:
        assert plain(store.get("a")) == b"1"
        store.set("b", b"2")
    with zipfile.ZipFile(path) as archive:
        assert (archive.read("a"), archive.read("b")) == (b"1", b"2")


# -- writing -------------------------------------------------------------------------------------------------------


def names(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()


def test_a_value_set_again_is_one_entry(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    with ZipStore(path, mode="w") as store:
        for number in range(5):
            store.set("k", b"%d" % number)
    with ZipStore(path, mode="a") as store:
        store.set("k", b"last")
        store.set("l", b"")
        assert store.exists("l")
    assert names(path) == ["k", "l"]
    assert plain(ZipStore(path).get("k")) == b"last"


def test_what_is_appended_keeps_the_entries_and_comment_of_others(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x.zip", SEED, zipfile.ZIP_DEFLATED, zip64=True)
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = b"hello"
        before = {info.filename: (info.date_time, info.external_attr, info.CRC) for info in archive.infolist()}
    with ZipStore(path, mode="a") as store:
        store.set("new", b"1")
    with zipfile.ZipFile(path) as archive:
        assert archive.comment == b"hello"
        assert archive.testzip() is None
        for name in SEED:
            info = archive.getinfo(name)
            assert (info.date_time, info.external_attr, info.CRC) == before[name]


def test_the_same_values_make_the_same_archive(tmp_path: Path) -> None:
    for name in ("x", "y"):
        with ZipStore(tmp_path / name, mode="w") as store:
            store.set("a/é", b"1")
    assert (tmp_path / "x").read_bytes() == (tmp_path / "y").read_bytes()


@pytest.mark.parametrize("mode", ["w", "a"])
def test_the_archive_is_replaced_at_once_on_flush_and_close(tmp_path: Path, mode: Any) -> None:
    path = zipped(tmp_path / "x.zip", {"old": b"1"}, zipfile.ZIP_STORED)
    before = path.read_bytes()
    store = ZipStore(path, mode=mode)
    store.set("new", b"2")
    assert path.read_bytes() == before
    assert plain(store.get("new")) == b"2"
    store.flush()
    assert names(path) == (["new"] if mode == "w" else ["old", "new"])
    store.set("newer", b"3")
    assert "newer" not in names(path)
    store.close()
    assert "newer" in names(path)
    assert os.listdir(tmp_path) == ["x.zip"]
    with pytest.raises(StoreError, match="closed"):
        store.get("new")


def test_opening_to_append_without_writing_changes_nothing(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x.zip", {"old": b"1"}, zipfile.ZIP_STORED)
    before = os.stat(path)
    ZipStore(path, mode="a").close()
    assert os.stat(path).st_mtime_ns == before.st_mtime_ns
    ZipStore(tmp_path / "y.zip", mode="a").close()
    assert os.listdir(tmp_path) == ["x.zip"]
    ZipStore(tmp_path / "y.zip", mode="w").close()
    assert names(tmp_path / "y.zip") == []


def test_modes_and_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    with pytest.raises(FileNotFoundError):
        ZipStore(path)
    with ZipStore(path, mode="x") as store:
        store.set("k", b"1")
    with pytest.raises(FileExistsError):
        ZipStore(path, mode="x")
    with pytest.raises(ValueError, match="mode"):
        ZipStore(path, mode="r+")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="compression"):
        ZipStore(path, compression=zipfile.ZIP_LZMA)
    with pytest.raises(ReadOnlyError):
        ZipStore(path).set("k", b"2")
    with pytest.raises(ReadOnlyError):
        ZipStore(path, mode="a", read_only=True).set("k", b"2")


def test_an_exclusive_archive_does_not_replace_one_made_meanwhile(tmp_path: Path) -> None:
    store = ZipStore(tmp_path / "x.zip", mode="x")
    store.set("k", b"mine")
    zipped(tmp_path / "x.zip", {"k": b"theirs"}, zipfile.ZIP_STORED)
    with pytest.raises(StoreError, match="meanwhile"):
        store.close()
    assert plain(ZipStore(tmp_path / "x.zip").get("k")) == b"theirs"
    (tmp_path / "x.zip").unlink()
    store.close()
    assert plain(ZipStore(tmp_path / "x.zip").get("k")) == b"mine"


def test_what_was_written_is_published_when_the_store_is_forgotten(tmp_path: Path) -> None:
    store = ZipStore(tmp_path / "x.zip", mode="w")
    store.set("k", b"1")
    view = store.with_read_only()
    del store
    gc.collect()
    assert not (tmp_path / "x.zip").exists()
    assert plain(view.get("k")) == b"1"
    del view
    gc.collect()
    assert names(tmp_path / "x.zip") == ["k"]


def test_what_was_written_is_published_when_the_interpreter_ends(tmp_path: Path) -> None:
    code = "import sys; from tessarr.stores.zip.store import ZipStore; s = ZipStore(sys.argv[1], mode='w'); s.set('k', b'1')"
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "x.zip")], env=child_environment(), check=True)
    assert os.listdir(tmp_path) == ["x.zip"]
    assert names(tmp_path / "x.zip") == ["k"]


_WRITER = """
import sys
from tessarr.stores.zip.store import ZipStore
store = ZipStore(sys.argv[1], mode="a")
print("ready", flush=True)
number = 0
while True:
    number += 1
    store.set(f"k/{number}", bytes(100_000))
    if number % 5 == 0:
        store.flush()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is POSIX's")
def test_a_killed_writer_never_destroys_the_archive(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x.zip", {"old": b"1"}, zipfile.ZIP_STORED)
    for attempt in range(6):
        child = subprocess.Popen([sys.executable, "-c", _WRITER, str(path)], env=child_environment(), stdout=-1)
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(0.02 + 0.017 * attempt)
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None
            assert archive.read("old") == b"1"
    assert LocalStore(tmp_path).list_dir("").keys == ["x.zip"]


def test_a_full_disk_leaves_the_archive_and_the_store_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = zipped(tmp_path / "x.zip", {"old": b"1"}, zipfile.ZIP_STORED)
    before = path.read_bytes()
    store = ZipStore(path, mode="a")
    store.set("k", b"first")
    write = os.write

    def fill(descriptor: int, data: Any) -> int:
        if len(data) > 100:
            write(descriptor, memoryview(data)[:50])
            raise OSError(errno.ENOSPC, "full")
        return write(descriptor, data)

    def refuse(descriptor: int, data: Any) -> int:
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", fill)
        with pytest.raises(StoreError, match="full"):
            store.set("k", bytes(1000))
        patch.setattr(os, "write", refuse)
        with pytest.raises(StoreError, match="unchanged"):
            store.close()
    assert path.read_bytes() == before
    assert plain(store.get("k")) == b"first"
    store.set("l", b"after")
    store.close()
    assert {key: plain(ZipStore(path).get(key)) for key in names(path)} == {"old": b"1", "k": b"first", "l": b"after"}


# -- one writer ----------------------------------------------------------------------------------------------------


def test_a_second_writer_is_refused_until_the_first_is_done(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    first, second = ZipStore(path, mode="a"), ZipStore(path, mode="a")
    first.set("a", b"1")
    with pytest.raises(StoreError, match="another store is writing"):
        second.set("b", b"2")
    assert plain(first.get("a")) == b"1"
    first.close()
    second.set("b", b"2")
    assert plain(second.get("a")) == b"1", "what the first one wrote is not lost"
    second.close()
    assert names(path) == ["a", "b"]


def test_a_store_whose_first_write_fails_keeps_neither_the_lock_nor_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    path = zipped(tmp_path / "x.zip", {"old": b"1"}, zipfile.ZIP_STORED)
    first = ZipStore(path, mode="a")
    with monkeypatch.context() as patch:
        patch.setattr(zipformat, "append", full)
        with pytest.raises(StoreError, match="could not write"):
            first.set("a", b"1")
    first.close()
    assert os.listdir(tmp_path) == ["x.zip"]
    with ZipStore(path, mode="a") as second:
        second.set("b", b"2")
    assert names(path) == ["old", "b"]


def test_a_writable_store_is_not_pickled_and_a_read_only_one_opens_again(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    store = ZipStore(path, mode="w")
    store.set("k", b"1")
    for candidate in (store, store.with_read_only(), ZipStore(io.BytesIO(), mode="w")):
        with pytest.raises(UnsupportedOperationError, match="cannot be pickled"):
            pickle.dumps(candidate)
    store.close()
    twin = pickle.loads(pickle.dumps(ZipStore(path)))
    assert (plain(twin.get("k")), twin.read_only) == (b"1", True)
    assert twin == ZipStore(path)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_reads_and_does_not_write_or_publish(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x.zip", {"old": b"1"}, zipfile.ZIP_STORED)
    before = path.read_bytes()
    for write_first in (False, True):
        store = ZipStore(path, mode="a")
        if write_first:
            store.set("new", b"2")
        child = os.fork()
        if child == 0:
            status = 1
            try:
                assert plain(store.get("old")) == b"1"
                store.close()
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        assert path.read_bytes() == before
        store.close()
    assert names(path) == ["old", "new"]


# -- hostile archives ------------------------------------------------------------------------------------------------


def test_what_is_no_archive_is_an_error(tmp_path: Path) -> None:
    for data in (b"", b"PK\x05\x06", b"no zip at all" * 100):
        (tmp_path / "x.zip").write_bytes(data)
        with pytest.raises(StoreError, match="not a readable zip"):
            ZipStore(tmp_path / "x.zip")


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_damage_is_found_and_told_with_its_place(tmp_path: Path, compression: int) -> None:
    path = zipped(tmp_path / "x.zip", {"k": bytes(range(256)) * 4}, compression)
    data = bytearray(path.read_bytes())
    for at in (0, 45, 60):
        damaged = bytearray(data)
        damaged[at] ^= 0xFF
        store = ZipStore(io.BytesIO(damaged))
        with pytest.raises(StoreError) as caught:
            store.get("k")
        assert (caught.value.key, caught.value.store) == ("k", store.url)


def doctored(path: Path, offset: int, value: bytes) -> io.BytesIO:
    """The archive with `value` at `offset` of its first directory record."""
    data = bytearray(path.read_bytes())
    at = data.index(b"PK\x01\x02") + offset
    data[at : at + len(value)] = value
    return io.BytesIO(data)


@pytest.mark.parametrize(
    ("compression", "offset", "value"),
    [
        (zipfile.ZIP_DEFLATED, 24, struct.pack("<L", 0xFFFFFFF0)),  # a bomb: claims 4 GiB
        (zipfile.ZIP_DEFLATED, 24, struct.pack("<L", 3)),
        (zipfile.ZIP_STORED, 24, struct.pack("<L", 500)),
        (zipfile.ZIP_STORED, 20, struct.pack("<2L", 5000, 5000)),
        (zipfile.ZIP_STORED, 42, struct.pack("<L", 7)),
        (zipfile.ZIP_STORED, 8, struct.pack("<H", 1)),
        (zipfile.ZIP_STORED, 10, struct.pack("<H", 99)),
    ],
    ids=["bomb", "longer", "two sizes", "past the end", "elsewhere", "encrypted", "unknown method"],
)
def test_a_directory_that_lies_is_found_out(tmp_path: Path, compression: int, offset: int, value: bytes) -> None:
    path = zipped(tmp_path / "x.zip", {"k": bytes(range(100))}, compression)
    store = ZipStore(doctored(path, offset, value))
    for byte_range in (None, ByteRange(0, 1)):
        with pytest.raises((StoreError, UnsupportedOperationError)):
            store.get("k", byte_range)


def test_an_archive_that_lost_its_beginning_is_a_typed_error(tmp_path: Path) -> None:
    data = zipped(tmp_path / "x.zip", {"k": bytes(range(100))}, zipfile.ZIP_STORED).read_bytes()
    (tmp_path / "y.zip").write_bytes(data[7:])
    for place in (io.BytesIO(data[7:]), tmp_path / "y.zip"):
        with ZipStore(place) as store, pytest.raises(StoreError):
            store.get("k")


def test_a_large_directory_needs_and_gets_zip64(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    with ZipStore(path, mode="w") as store:
        for number in range(70_000):
            store.set(f"c/{number}", b"")
    with zipfile.ZipFile(path) as archive:
        assert len(archive.namelist()) == 70_000
    assert ZipStore(path).list_dir("").prefixes == ["c/"]
    store = ZipStore(tmp_path / "y.zip", mode="w", allowZip64=False)
    for number in range(0xFFFF):
        store.set(f"c/{number}", b"")
    with pytest.raises(StoreError, match="allowZip64"):
        store.set("one more", b"")


def test_a_huge_archive_has_zip64_records() -> None:
    class Sparse(zipformat.ObjectFile):
        def write_at(self, offset: int, data: bytes | memoryview) -> None:
            parts[offset] = bytes(data)

    parts: dict[int, bytes] = {}
    far = 5 << 32
    info, end = zipformat.append(Sparse(io.BytesIO()), far, "k", b"value", zipfile.ZIP_STORED)
    tail = zipformat.directory([info], end)
    extra = tail[46 + 1 :]
    assert struct.unpack_from("<2HQ", extra) == (1, 8, far)
    assert b"PK\x06\x06" in tail
    assert b"PK\x06\x07" in tail
    assert zlib.crc32(b"value") == info.CRC
    assert parts[far][:4] == b"PK\x03\x04"
