"""Values in files."""

from __future__ import annotations

import errno
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tessarr.errors import ConflictError, KeyValidationError, ReadOnlyError, StoreError
from tessarr.stores.base import Fetch
from tessarr.stores.local import file as localfile
from tessarr.stores.local import lock as filelock
from tessarr.stores.local import tree as localtree
from tessarr.stores.local.exchange import exchange
from tessarr.stores.local.store import LocalStore
from tessarr.stores.path import (
    case_collision,
    file_url,
    path_of_file_url,
    windows_extended,
    windows_name_problem,
    windows_path,
)
from tessarr.types import Buffer, ByteRange
from tests.narrow import calls
from tests.stores.contract import ConditionalContract, SharedContract, StoreContract, child_environment, plain
from tests.waiting import PATIENCE_S

AS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "root")


def everything(root: Path) -> list[str]:
    """Every file and directory under the root, hidden ones too."""
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*"))


class TestLocalStore(StoreContract, ConditionalContract, SharedContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> LocalStore:
        return LocalStore(tmp_path / "not" / "yet there")


class TestDurableLocalStore(StoreContract, ConditionalContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> LocalStore:
        return LocalStore(tmp_path / "not" / "yet there", durable=True)


class TestLocalStoreInPython(StoreContract):
    """As it is where the Rust module is not built."""

    @pytest.fixture
    def store(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalStore:
        monkeypatch.setattr(localfile, "reader_of_many", lambda: None)
        return LocalStore(tmp_path / "not" / "yet there")


def test_small_values_are_fetched_by_rust_and_others_as_ever(store: LocalStore, tmp_path: Path) -> None:
    large = bytes(range(256)) * 4097
    assert len(large) > localfile.SMALL
    for key, value in {"a": b"1", "large": large, "d/e": b"2"}.items():
        store.set(key, value)
    keys = ["a", "large", "d", "a/b", "zz"]
    assert [plain(answer) for answer in store.fetch(list(map(Fetch, keys)))] == [[b"1"], [large], None, None, None]
    asked: list[str] = []
    read = localfile.reader_of_many()
    assert read is not None
    requests = [*map(Fetch, keys), Fetch("a", (ByteRange(0),)), Fetch("..."), Fetch("../a")]
    assert read(store.directory, requests, 1) == [[b"1"], False, None, None, None, False, False, False]
    with pytest.raises(StoreError, match="ENAMETOOLONG"):
        store.fetch([Fetch("a"), Fetch("n" * 300)])
    with pytest.raises(KeyValidationError):
        store.fetch([Fetch("a"), Fetch("../a")])

    class Asked(LocalStore):
        """Reads in its own way, which nothing may bypass."""

        def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
            asked.append(key)
            return super().get(key, byte_range)

    Asked(store.root).fetch([Fetch("a"), Fetch("zz")])
    assert asked == ["a", "zz"]


def test_many_values_are_fetched_by_all_threads_in_the_order_of_the_requests(store: LocalStore) -> None:
    """Documents of a large group: present, missing, hidden, directories in their place."""
    for number in range(0, 200, 3):
        store.set(f"a{number}/zarr.json", b"%d" % number)
        store.set(f"a{number}/.zattrs", b"hidden %d" % number)
    store.set("a1/zarr.json/x", b"")
    names = ("zarr.json", ".zattrs", ".zarray")
    keys = [f"a{number}/{name}" for number in range(200) for name in names]
    found = [plain(answer) for answer in store.fetch(list(map(Fetch, keys)))]
    assert found == [None if (value := store.get(key)) is None else [bytes(value)] for key in keys]
    assert sum(answer is not None for answer in found) == 2 * 67


class TestLocalStoreWithoutFileLocks(StoreContract, ConditionalContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> LocalStore:
        return LocalStore(tmp_path, file_locks=False)


# -- keys and files ------------------------------------------------------------------------------------------------


@pytest.mark.spec("FS-01", "OGC-01", "FS-04")
def test_a_key_is_a_path_under_the_root(store: LocalStore) -> None:
    store.set("foo/bar", b"1")
    store.set("foo/0.0", b"2")
    assert (store.root / "foo" / "bar").read_bytes() == b"1"
    (store.root / "foo" / "0.1").write_bytes(b"3")
    assert store.get("foo/0.1") == b"3"
    assert sorted(store.list()) == ["foo/0.0", "foo/0.1", "foo/bar"]


@pytest.mark.spec("FS-02", "FS-12")
def test_windows_paths_are_made() -> None:
    assert windows_path("C:\\data", "foo/bar") == "C:\\data\\foo\\bar"
    assert windows_extended("C:\\" + "x" * 300) == "\\\\?\\C:\\" + "x" * 300
    assert windows_extended("\\\\?\\C:\\x") == "\\\\?\\C:\\x"


@pytest.mark.spec("FS-11", "FS-12")
@pytest.mark.parametrize(
    "name",
    ["CON", "nul", "aux.txt", "COM1", "lpt9.zarr", "conin$", "a:b", "a\\b", "a?", "a*", "x.", "x ", "\x1f", "é" * 256],
)  # fmt: skip
def test_names_that_windows_cannot_hold_are_refused(name: str) -> None:
    assert windows_name_problem(name) is not None
    with pytest.raises(KeyValidationError, match="Windows does not allow"):
        windows_path("C:\\data", f"a/{name}/b")


@pytest.mark.parametrize("name", ["c", "0", "console", "com", "COM10", ".zarray", "a b", "é"])
def test_names_that_windows_can_hold_pass(name: str) -> None:
    assert windows_name_problem(name) is None


@pytest.mark.spec("FS-09")
@pytest.mark.parametrize(
    ("path", "windows", "url"),
    [
        ("/my data", False, "file:///my%20data"),
        ("/é/a#b?c%d", False, "file:///%C3%A9/a%23b%3Fc%25d"),
        ("c:\\my data", True, "file:///c:/my%20data"),
        ("C:\\é\\x.zarr", True, "file:///C:/%C3%A9/x.zarr"),
        ("\\\\server\\share\\x", True, "file://server/share/x"),
    ],
)
def test_a_path_has_a_canonical_url_and_back(path: str, windows: bool, url: str) -> None:
    assert file_url(path, windows=windows) == url
    assert path_of_file_url(url, windows=windows) == path


def test_the_url_of_another_machine_is_refused() -> None:
    assert path_of_file_url("file://localhost/x", windows=False) == "/x"
    with pytest.raises(ValueError, match="another machine"):
        path_of_file_url("file://server/x", windows=False)


@pytest.mark.spec("FS-13")
def test_a_copied_tree_opens(store: LocalStore, tmp_path: Path) -> None:
    import shutil

    store.set("a/b", b"1")
    shutil.copytree(store.root, tmp_path / "copy")
    assert LocalStore(tmp_path / "copy").get("a/b") == b"1"


@pytest.mark.spec("FS-11")
@pytest.mark.parametrize("key", ["../x", "a/../../x", "/etc/passwd", "a/.."])
def test_no_key_leaves_the_root(store: LocalStore, key: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"secret")
    calls: list[Callable[[], object]] = [
        lambda: store.get(key), lambda: store.set(key, b"!"), lambda: store.delete(key), lambda: store.exists(key),
        lambda: store.version(key), lambda: store.lock(key), lambda: store.delete_prefix(key + "/"),
        lambda: list(store.list_prefix(key + "/")), lambda: store.list_dir(key + "/"),
        lambda: store.replace_prefix(key + "/", {key + "/x": b""}), lambda: store.replace_prefix("", {key: b""}),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(KeyValidationError):
            call()
    assert (tmp_path / "x").read_bytes() == b"secret"


def test_a_percent_or_backslash_in_a_key_is_a_character_of_a_name(store: LocalStore, tmp_path: Path) -> None:
    store.set("%2e%2e/x", b"1")
    store.set("..\\y", b"2")
    assert everything(store.root) == ["%2e%2e", "%2e%2e/x", "..\\y"]
    assert everything(tmp_path) == ["root", "root/%2e%2e", "root/%2e%2e/x", "root/..\\y"]


def test_a_name_that_is_too_long_is_an_error_with_a_hint(store: LocalStore) -> None:
    for call in (lambda: store.set("a/" + "x" * 10_000, b""), lambda: store.get("a/" + "x" * 10_000)):
        with pytest.raises(StoreError, match="shorter names") as caught:
            call()
        assert caught.value.errno == errno.ENAMETOOLONG


@pytest.mark.parametrize("name", ["x" * 255, "é" * 127])
def test_the_longest_names_can_be_set_and_locked(store: LocalStore, name: str) -> None:
    store.update(f"a/{name}", lambda _: b"1")
    assert [*store.list()] == [f"a/{name}"]
    assert everything(store.root) == ["a", f"a/{name}"]


def test_a_file_whose_name_is_no_unicode_is_no_key(store: LocalStore) -> None:
    store.set("a", b"1")
    with open(os.fsencode(store.root) + b"/\xff", "wb"):
        pass
    assert [*store.list()] == ["a"]
    assert store.list_dir("").keys == ["a"]


# -- what is in the way --------------------------------------------------------------------------------------------


@pytest.mark.spec("FS-03", "FS-05")
def test_a_directory_is_no_value_and_is_not_deleted_as_one(store: LocalStore) -> None:
    (store.root / "empty").mkdir(parents=True)
    store.set("c/0", b"1")
    for key in ("c", "empty"):
        assert store.get(key) is None
        assert store.get(key, ByteRange(0, 1)) is None
        assert store.version(key) is None
        store.delete(key)
    assert everything(store.root) == ["c", "c/0", "empty"]


@pytest.mark.spec("FS-08")
def test_an_empty_directory_is_listed_as_a_prefix(store: LocalStore) -> None:
    (store.root / "empty").mkdir(parents=True)
    assert store.list_dir("").prefixes == ["empty/"]
    assert [*store.list()] == []


def test_a_value_where_a_directory_should_be_is_an_error_and_stays(store: LocalStore) -> None:
    store.set("a", b"1")
    assert store.get("a/b") is None
    store.delete("a/b")
    for call in calls(
        lambda: store.set("a/b", b"2"),
        lambda: store.update("a/b", lambda _: b"2"),
        lambda: store.replace_prefix("a/", {"a/b": b"2"}),
        lambda: store.set("a/b/c", b"2"),
    ):
        with pytest.raises(StoreError, match="where a directory should be"):
            call()
    store.delete_prefix("a/")
    assert store.get("a") == b"1"
    assert everything(store.root) == ["a"]


def test_a_directory_where_the_value_should_be_is_an_error_and_stays(store: LocalStore) -> None:
    store.set("a/b", b"1")
    with pytest.raises(StoreError, match="where the value should be"):
        store.set("a", b"2")
    assert everything(store.root) == ["a", "a/b"]


def test_a_named_pipe_is_no_value_and_does_not_hang(store: LocalStore) -> None:
    store.root.mkdir()
    os.mkfifo(store.root / "pipe")
    assert store.get("pipe") is None
    assert not store.exists("pipe")
    assert [*store.list()] == []


@pytest.mark.skipif(AS_ROOT, reason="the superuser may read everything")
def test_a_forbidden_file_is_an_error_and_not_missing(store: LocalStore) -> None:
    store.set("a/b", b"1")
    (store.root / "a").chmod(0)
    try:
        for call in (lambda: store.get("a/b"), lambda: store.set("a/c", b""), lambda: store.list_dir("a/")):
            with pytest.raises(StoreError, match="permissions"):
                call()
    finally:
        (store.root / "a").chmod(0o700)


@pytest.mark.parametrize(
    ("module", "function", "code"),
    [(os, "open", errno.EACCES), (localfile, "pread", errno.EIO), (os, "fstat", errno.ESTALE)],
)
def test_trouble_while_reading_is_an_error_and_not_missing(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, module: ModuleType, function: str, code: int
) -> None:
    store.set("a/b", b"1")
    with monkeypatch.context() as patch:
        patch.setattr(module, function, failing(code))
        with pytest.raises(StoreError) as caught:
            store.get("a/b")
    assert (caught.value.key, caught.value.store, caught.value.errno) == ("a/b", store.url, code)


def failing(code: int) -> Callable[..., Any]:
    def fail(*args: object, **kwargs: object) -> Any:
        raise OSError(code, os.strerror(code))

    return fail


# -- atomic values -------------------------------------------------------------------------------------------------


@pytest.mark.spec("FS-04")
@pytest.mark.parametrize(
    ("function", "code"), [("write", errno.ENOSPC), ("write", errno.EDQUOT), ("replace", errno.EIO)]
)
def test_a_failed_set_leaves_the_old_value_whole_and_nothing_beside_it(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, function: str, code: int
) -> None:
    store.set("a/b", b"old")
    with monkeypatch.context() as patch:
        patch.setattr(os, function, failing(code))
        with pytest.raises(StoreError) as caught:
            store.set("a/b", b"new")
    assert caught.value.errno == code
    assert store.get("a/b") == b"old"
    assert everything(store.root) == ["a", "a/b"]


def test_a_disk_that_fills_half_way_leaves_the_old_value_whole(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, calls = os.write, []

    def fill(descriptor: int, data: Any) -> int:
        calls.append(len(data))
        if len(calls) > 2:
            raise OSError(errno.ENOSPC, "full")
        return write(descriptor, memoryview(data)[:10])

    store.set("a/b", b"old")
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", fill)
        with pytest.raises(StoreError, match="disk is full"):
            store.set("a/b", bytes(100))
    assert calls == [100, 90, 80]
    assert store.get("a/b") == b"old"
    assert everything(store.root) == ["a", "a/b"]


def test_short_writes_and_short_reads_are_continued(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    value = bytes(range(200))
    write, pread = os.write, os.pread
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda descriptor, data: write(descriptor, memoryview(data)[:7]))
        store.set("a", value)
    assert (store.root / "a").read_bytes() == value
    with monkeypatch.context() as patch:
        patch.setattr(localfile, "pread", lambda descriptor, nbytes, start: pread(descriptor, min(nbytes, 9), start))
        assert store.get("a") == value
        assert store.get("a", ByteRange(50, 150)) == value[50:150]


@pytest.mark.parametrize("trouble", [0, errno.EXDEV, errno.EINVAL])
def test_ranges_are_copied_also_where_the_kernel_copies_none(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, trouble: int
) -> None:
    def refuse(*_: object) -> int:
        if trouble:
            raise OSError(trouble, "no")
        return 0

    store.set("a", bytes(range(200)))
    with monkeypatch.context() as patch:
        patch.setattr(os, "copy_file_range", refuse, raising=False)
        store.splice("a", lambda old: [b"new", ByteRange(50, 150)] if old else None)
    assert store.get("a") == b"new" + bytes(range(50, 150))


def test_a_large_value_is_replaced_also_when_no_thread_can_be_started(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread at interpreter shutdown")

    store.set("a", bytes(2 << 20))
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        store.splice("a", lambda old: [b"x", ByteRange(1, 2 << 20)] if old else None)
    assert store.get("a", ByteRange(0, 3)) == b"x\0\0"


def test_a_file_that_shrinks_while_it_is_read_is_an_error(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.set("a", b"0123456789")
    answers = iter([b"012", b""])
    monkeypatch.setattr(localfile, "pread", lambda *_: next(answers))
    with pytest.raises(StoreError, match="became shorter"):
        store.get("a")


def test_an_interrupted_set_leaves_the_old_value(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.set("a", b"old")

    def interrupt(*args: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", interrupt)
        with pytest.raises(KeyboardInterrupt):
            store.set("a", b"new")
    assert everything(store.root) == ["a"]
    assert store.get("a") == b"old"


_WRITER = """
import sys
from tessarr.stores.local.store import LocalStore
store = LocalStore(sys.argv[1])
values = [bytes([number]) * 1_000_000 for number in (1, 2)]
print("ready", flush=True)
while True:
    for value in values:
        store.set("a/b", value)
        store.update("a/n", lambda old: value)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is POSIX's")
def test_a_killed_writer_never_leaves_a_truncated_value_or_a_lock(store: LocalStore) -> None:
    for attempt in range(8):
        child = subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(store.root)], env=child_environment(), stdout=subprocess.PIPE
        )
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(0.02 + 0.013 * attempt)
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        for key in set(store.list()):
            value = plain(store.get(key))
            assert len(value) == 1_000_000, key
            assert len(set(value)) == 1, key
    store.update("a/n", lambda _: b"still possible")
    assert set(store.list()) <= {"a/b", "a/n"}
    store.remove_leftovers(older_than_s=-1)
    assert set(everything(store.root)) <= {"a", "a/b", "a/n"}


def test_a_reader_sees_whole_values_only(store: LocalStore) -> None:
    values = [bytes([number]) * 300_000 for number in (1, 2)]
    store.set("a", values[0])
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            for value in values:
                store.set("a", value)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(100):
            parts = store.get_ranges("a", [ByteRange(0, 10), ByteRange(-10)])
            assert plain(store.get("a")) in values
            assert parts is not None
            assert parts[0] == parts[1]
    finally:
        stop.set()
        thread.join()


def test_a_durable_set_syncs_the_file_and_every_new_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    fsync = os.fsync

    def record(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", record)
    LocalStore(tmp_path).set("a/b/c", b"1")
    assert synced == []
    LocalStore(tmp_path / "new", durable=True).set("x/y/z", b"1")
    names = [tmp_path, *(tmp_path / "new" / name for name in ("x/y/z", "x/y", "x", ""))]
    assert synced == [os.stat(name).st_ino for name in names]


def test_a_directory_is_replaced_without_a_moment_in_which_nothing_is_there(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    if not exchange(str(tmp_path / "one"), str(tmp_path / "other")):
        pytest.skip("this system or file system cannot exchange two names")
    store.set("n/old", b"old")
    rename, seen = os.rename, []

    def look(source: str, target: str) -> None:
        seen.append((store.root / "n").exists())
        rename(source, target)

    monkeypatch.setattr(os, "rename", look)
    store.replace_prefix("n/", {"n/new": b"new"})
    assert False not in seen
    assert everything(store.root) == ["n", "n/new"]
    (tmp_path / "elsewhere").mkdir()
    (store.root / "link").symlink_to(tmp_path / "elsewhere")
    store.replace_prefix("link/", {"link/new": b"new"})
    assert False not in seen
    assert everything(store.root) == ["link", "link/new", "n", "n/new"]
    assert (tmp_path / "elsewhere").is_dir()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has renameat2")
def test_names_are_exchanged_or_stay(tmp_path: Path) -> None:
    one, other, missing = (str(tmp_path / name) for name in ("one", "other", "missing"))
    Path(one).mkdir()
    Path(other).touch()
    assert not exchange(one, missing)
    assert not exchange(missing, one)
    assert sorted(os.listdir(tmp_path)) == ["one", "other"]
    with pytest.raises(OSError, match="too long"):
        exchange(one, str(tmp_path / ("x" * 300)))
    if exchange(one, other):
        assert (os.path.isfile(one), os.path.isdir(other)) == (True, True)


def test_names_stay_where_the_c_library_cannot_exchange_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tessarr.stores.local.exchange._renameat2", lambda: None)
    (tmp_path / "one").touch()
    (tmp_path / "other").mkdir()
    assert exchange(str(tmp_path / "one"), str(tmp_path / "other")) is False
    assert (tmp_path / "one").is_file()


@pytest.mark.parametrize(("prefix", "renames"), [("n/", 2), ("", 4)])
def test_replacing_a_prefix_fails_without_loss(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, prefix: str, renames: int
) -> None:
    for key in ("n/old", "n/sub/old", "top"):
        store.set(key, b"old")
    new = {f"{prefix}new": b"1", f"{prefix}sub/new": b"2"}
    before = everything(store.root)
    monkeypatch.setattr(localtree, "exchange", lambda *_: False)  # as on NFS, or another system
    rename = os.rename
    for failing_call in range(1, renames + 1):
        calls: list[str] = []

        def fail(source: str, target: str, calls: list[str] = calls, number: int = failing_call) -> None:
            calls.append(source)
            if len(calls) == number:
                raise OSError(errno.EIO, "no")
            rename(source, target)

        with monkeypatch.context() as patch:
            patch.setattr(os, "rename", fail)
            with pytest.raises(StoreError):
                store.replace_prefix(prefix, new)
        assert everything(store.root) == before
    with monkeypatch.context() as patch:
        patch.setattr(localtree, "stage", failing(errno.ENOSPC))
        with pytest.raises(StoreError, match="full"):
            store.replace_prefix(prefix, new)
    assert everything(store.root) == before
    store.replace_prefix(prefix, new)
    assert {*store.list()} == {*new} | ({"top"} if prefix else set())


def test_a_value_for_another_prefix_is_refused(store: LocalStore) -> None:
    store.set("a/b", b"1")
    with pytest.raises(KeyValidationError, match="outside the prefix"):
        store.replace_prefix("a/", {"b/c": b"1"})
    assert store.get("a/b") == b"1"


def test_nothing_replaces_a_prefix_by_nothing(store: LocalStore) -> None:
    store.set("a/b", b"1")
    store.replace_prefix("a/", {})
    assert everything(store.root) == []


# -- directories come and go -----------------------------------------------------------------------------------------


def test_directories_go_with_their_last_value_but_the_root_stays(store: LocalStore) -> None:
    for key in ("a/b/c/0", "a/b/c/1", "a/x"):
        store.set(key, b"")
    store.delete("a/b/c/0")
    assert (store.root / "a/b/c").is_dir()
    store.delete("a/b/c/1")
    assert everything(store.root) == ["a", "a/x"]
    store.delete_prefix("a/")
    store.update("u/v", lambda _: None)
    assert everything(store.root) == []
    assert store.root.is_dir()


def test_values_are_set_while_others_remove_their_directory(store: LocalStore) -> None:
    stop = threading.Event()
    failures: list[BaseException] = []

    def churn(name: str) -> None:
        try:
            while not stop.is_set():
                store.set(f"a/b/{name}", b"1")
                assert store.get(f"a/b/{name}") == b"1"
                store.update(f"a/b/{name}", lambda _: None)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=churn, args=(str(number),)) for number in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    stop.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert everything(store.root) == []


# -- hidden names ----------------------------------------------------------------------------------------------------


@pytest.mark.spec("FS-04")
def test_temporary_and_lock_files_are_never_keys(store: LocalStore) -> None:
    hidden = [filelock.lock_name("zarr.json"), filelock.temporary_name("zarr.json")]
    assert hidden[0] == ".zarr.json.tessarr-lock"
    store.set("a/k", b"1")
    for name in hidden:
        (store.root / "a" / name).write_bytes(b"")
        with pytest.raises(KeyValidationError, match="temporary files and lock files"):
            store.set(f"a/{name}", b"")
        with pytest.raises(KeyValidationError, match="temporary files and lock files"):
            store.replace_prefix("a/", {f"a/{name}/x": b""})
    (store.root / filelock.temporary_name("tree") / "x").mkdir(parents=True)
    assert [*store.list()] == ["a/k"]
    assert store.list_dir("a/").keys == ["a/k"]
    assert store.list_dir("").prefixes == ["a/"]


def test_leftovers_are_removed_when_they_are_old(store: LocalStore) -> None:
    store.set("a/k", b"1")
    (store.root / "a" / filelock.temporary_name("k")).write_bytes(b"")
    (store.root / filelock.temporary_name("tree") / "x").mkdir(parents=True)
    assert store.remove_leftovers() == 0
    assert store.remove_leftovers(older_than_s=-1) == 2
    assert everything(store.root) == ["a", "a/k"]
    with pytest.raises(ReadOnlyError):
        store.with_read_only().remove_leftovers()


def test_no_lock_file_stays_behind(store: LocalStore) -> None:
    with store.lock("a/k"):
        assert everything(store.root) == ["a", "a/.k.tessarr-lock"]
    assert everything(store.root) == []
    with pytest.raises(RuntimeError), store.lock("a/k"):
        raise RuntimeError
    assert everything(store.root) == []


def test_a_lock_excludes_other_processes(store: LocalStore) -> None:
    code = (
        "import sys; from tessarr.stores.local.store import LocalStore\n"
        "with LocalStore(sys.argv[1]).lock('a/k'):\n"
        "    print('held', flush=True); sys.stdin.readline()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(store.root)],
        env=child_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as child:  # fmt: skip
        assert child.stdout is not None
        assert child.stdin is not None
        assert child.stdout.readline() == "held\n"
        done = threading.Event()

        def update() -> None:
            store.update("a/k", lambda _: b"1")
            done.set()

        thread = threading.Thread(target=update)
        thread.start()
        assert not done.wait(0.1)
        child.stdin.write("\n")
        child.stdin.flush()
        assert done.wait(PATIENCE_S)
        thread.join()
    assert everything(store.root) == ["a", "a/k"]


def test_a_lock_file_left_by_a_killed_process_is_used_again(store: LocalStore) -> None:
    (store.root / "a").mkdir(parents=True)
    (store.root / "a" / filelock.lock_name("k")).write_bytes(b"")
    store.update("a/k", lambda _: b"1")
    assert everything(store.root) == ["a", "a/k"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_forked_under_a_lock_does_not_keep_it(store: LocalStore) -> None:
    with store.lock("a/k"):
        child = os.fork()
        if child == 0:
            time.sleep(PATIENCE_S)
            os._exit(0)
    try:
        with store.lock("a/k"):
            assert os.waitpid(child, os.WNOHANG) == (0, 0)  # the lock is free while the child is there
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_file_system_without_locks_says_what_to_do(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filelock, "_lock", failing(errno.ENOLCK))
    with pytest.raises(StoreError, match="file_locks=False"):
        store.update("a/k", lambda _: b"1")
    LocalStore(store.root, file_locks=False).update("a/k", lambda _: b"1")
    assert store.get("a/k") == b"1"


def test_a_version_is_device_inode_time_and_size(store: LocalStore) -> None:
    store.set("a", b"123")
    status = os.stat(store.root / "a")
    parts = [int(part, 16) for part in str(store.version("a")).split(":")]
    assert parts == [status.st_dev, status.st_ino, status.st_mtime_ns, 3]
    (store.root / "a").write_bytes(b"1234")
    with pytest.raises(ConflictError):
        store.set("a", b"x", if_match=":".join(f"{part:x}" for part in parts))


# -- links and cases ---------------------------------------------------------------------------------------------------


def test_links_are_followed_and_loops_end(store: LocalStore, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "v").write_bytes(b"1")
    store.set("a/b", b"2")
    (store.root / "out").symlink_to(outside)
    (store.root / "a" / "up").symlink_to(store.root)
    (store.root / "a" / "self").symlink_to(store.root / "a")
    (store.root / "broken").symlink_to(store.root / "nowhere")
    assert store.get("out/v") == b"1"
    assert sorted(store.list()) == ["a/b", "out/v"]
    assert store.get("broken") is None


def test_a_deleted_link_leaves_what_it_led_to(store: LocalStore, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "v").write_bytes(b"1")
    store.root.mkdir()
    for name in ("one", "two", "three"):
        (store.root / name).symlink_to(outside)
    (store.root / "value").symlink_to(outside / "v")
    store.delete_prefix("one/")
    store.replace_prefix("two/", {"two/w": b"2"})
    store.set("value", b"3")
    store.clear()
    assert everything(store.root) == []
    assert (outside / "v").read_bytes() == b"1"


@pytest.mark.spec("V3-NAME-08", "FS-12")
def test_names_that_differ_in_case_only_are_found_out() -> None:
    assert case_collision("FOO", ["bar", "foo"]) == "foo"
    assert case_collision("foo", ["foo", "bar"]) is None
    assert case_collision("\u00e9", ["e\u0301"]) == "e\u0301"
    assert case_collision("straße", ["STRASSE"]) == "STRASSE"


@pytest.mark.spec("V3-NAME-08", "FS-12")
def test_a_file_system_blind_to_case_refuses_a_second_spelling(store: LocalStore) -> None:
    store._case_blind = True  # as the probe says on Windows and macOS
    store.set("foo/c/0", b"1")
    store.set("foo/c/0", b"2")
    for key in ("FOO/c/0", "foo/C/1"):
        with pytest.raises(StoreError, match="case-insensitive"):
            store.set(key, b"3")
    assert store.get("foo/c/0") == b"2"
    assert [*store.list()] == ["foo/c/0"] or everything(store.root)


def test_whether_the_file_system_is_blind_to_case_is_found_once(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os.path, "lexists", lambda path: path.upper().endswith(".TESSARR-TMP"))
    assert store._case_blind is None
    store.set("a", b"1")
    assert store._case_blind is True
    with pytest.raises(StoreError, match="case-insensitive"):
        store.set("A", b"1")


# -- the rest ------------------------------------------------------------------------------------------------------


@pytest.mark.spec("V3-STORE-17")
def test_a_directory_listing_reads_one_directory(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(50):
        store.set(f"a/deep/{number}/x", b"")
    store.set("a/k", b"")
    seen: list[str] = []
    scandir = os.scandir

    def record(path: str) -> Any:
        seen.append(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", record)
    assert store.list_dir("a/").prefixes == ["a/deep/"]
    assert len(seen) == 1
    first = next(iter(store.list_prefix("")))
    assert first == "a/k"
    assert len(seen) < 5, "a listing is lazy"


def test_the_path_is_absolute_whatever_the_working_directory_becomes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = LocalStore("x.zarr")
    monkeypatch.chdir("/")
    store.set("a", b"1")
    assert (tmp_path / "x.zarr" / "a").read_bytes() == b"1"
    assert store.root == tmp_path / "x.zarr"
    assert store == LocalStore(tmp_path / "x.zarr")
    assert store.url == (tmp_path / "x.zarr").as_uri()
    assert pickle.loads(pickle.dumps(store)) == store


def test_open_does_what_its_mode_says(tmp_path: Path) -> None:
    root = tmp_path / "x"
    for mode in ("r", "r+"):
        with pytest.raises(FileNotFoundError):
            LocalStore.open(root, mode=mode)
    LocalStore.open(root, mode="w-").set("k", b"1")
    with pytest.raises(FileExistsError):
        LocalStore.open(root, mode="w-")
    assert LocalStore.open(root, mode="r").read_only
    assert LocalStore.open(root, mode="a").get("k") == b"1"
    assert LocalStore.open(root, mode="w").get("k") is None
    assert LocalStore.open(root).get("k") is None
    assert root.is_dir()


def test_access_denied_is_tried_again_on_windows_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    replace = os.replace

    def deny(source: str, target: str) -> None:
        calls.append(source)
        if len(calls) < 4:
            raise PermissionError(13, "Access is denied")
        replace(source, target)

    (tmp_path / "a").write_bytes(b"1")
    monkeypatch.setattr(os, "replace", deny)
    with pytest.raises(PermissionError):
        filelock.retry_denied(str(tmp_path / "a"), str(tmp_path / "b"))
    monkeypatch.setattr(sys, "platform", "win32")
    filelock.retry_denied(str(tmp_path / "a"), str(tmp_path / "b"))
    assert len(calls) == 4
    assert (tmp_path / "b").read_bytes() == b"1"


def test_a_directory_without_values_is_not_renamed(store: LocalStore, tmp_path: Path) -> None:
    store.set("b/k", b"1")
    folder = Path(store.root) / "a" / "c"
    folder.mkdir(parents=True)
    (folder / filelock.lock_name("k")).touch()  # another process begins to store a value
    assert not store.rename_prefix("a/", "n/")
    assert not store.rename_prefix("missing/", "n/")
    assert folder.is_dir()
    assert not (Path(store.root) / "n").exists()
    assert store.rename_prefix("b/", "n/")
    assert store.get("n/k") == b"1"


@pytest.mark.parametrize("durable", [False, True])
def test_directories_are_exchanged_without_what_was_held_in_them(tmp_path: Path, durable: bool) -> None:
    store = LocalStore(tmp_path, durable=durable)
    store.set("a/k", b"1")
    store.set("b/c/k", b"2")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert not store.exchange_prefixes("a/", "empty/")
    assert not store.exchange_prefixes("link/", "b/")
    assert not store.exchange_prefixes("", "b/")
    assert store.exchange_prefixes("a/", "b/")
    assert (store.get("b/k"), store.get("a/c/k")) == (b"1", b"2")
    assert [file for file in tmp_path.rglob("*") if filelock.is_hidden(file.name)] == []
