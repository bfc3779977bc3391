"""What is synced when files of a local store change, and in which order, in one process."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tessarr.common import extension
from tessarr.errors import DurabilityError
from tessarr.stores.local import sync as filesync

if sys.platform == "win32":
    pytest.skip("Windows syncs no directories", allow_module_level=True)


class Watch:
    """The files and directories that were synced, by their inodes."""

    def __init__(self) -> None:
        self.inodes: list[int] = []
        self.failure = 0

    def fsync(self, descriptor: int) -> None:
        if self.failure:
            raise OSError(self.failure, os.strerror(self.failure))
        self.inodes.append(os.fstat(descriptor).st_ino)

    def assert_only(self, *paths: Path | str) -> None:
        assert self.inodes == [os.stat(path).st_ino for path in paths]
        self.inodes.clear()


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> Watch:
    watch = Watch()
    monkeypatch.setattr(os, "fsync", watch.fsync)
    return watch


def files(folder: Path, count: int) -> list[str]:
    folder.mkdir(exist_ok=True)
    paths = [folder / f"f{number}" for number in range(count)]
    for path in paths:
        path.touch()
    return [str(path) for path in paths]


def folders(folder: Path, count: int) -> list[str]:
    paths = [folder / f"d{number:02}" for number in range(count)]
    for path in paths:
        path.mkdir()
    return [str(path) for path in paths]


def test_files_and_directories_are_synced_and_closed(tmp_path: Path, synced: Watch) -> None:
    paths = files(tmp_path, 3)
    opened = len(os.listdir("/dev/fd"))
    filesync.sync_files(paths)
    synced.assert_only(*paths)
    filesync.sync_directory(str(tmp_path))
    synced.assert_only(tmp_path)
    synced.failure = errno.EIO
    for call, argument in ((filesync.sync_files, paths), (filesync.sync_directory, str(tmp_path))):
        with pytest.raises(OSError, match=os.strerror(errno.EIO)):
            call(argument)  # type: ignore[arg-type]
    assert len(os.listdir("/dev/fd")) == opened
    with pytest.raises(FileNotFoundError):
        filesync.sync_directory(str(tmp_path / "missing"))


def test_a_file_that_must_not_be_written_is_synced(
    tmp_path: Path, synced: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths, real = files(tmp_path, 1), os.open

    def only_read(path: str, flags: int) -> int:
        if flags & (os.O_RDWR | os.O_WRONLY):
            raise PermissionError(errno.EACCES, "read only", path)
        return real(path, flags)

    monkeypatch.setattr(os, "open", only_read)
    filesync.sync_files(paths)
    synced.assert_only(*paths)


def test_a_name_is_synced_in_its_directory_and_in_each_above_up_to_the_root(tmp_path: Path, synced: Watch) -> None:
    root = tmp_path / "root"
    (root / "a" / "b").mkdir(parents=True)
    filesync.sync_names(str(root / "a" / "b" / "k"), str(root), "done")
    synced.assert_only(root / "a" / "b", root / "a", root)
    filesync.sync_names(str(root / "k"), f"{root}/", "done")
    synced.assert_only(root)
    filesync.sync_names(str(root / "a" / "gone" / "too" / "k"), str(root), "done")
    synced.assert_only(root / "a", root)
    filesync.sync_names(str(root), str(root), "done")
    synced.assert_only()
    filesync.sync_names(str(root / "k"), "/", "done")
    synced.assert_only(root, *root.parents)


def test_a_name_that_cannot_be_synced_may_not_last(tmp_path: Path, synced: Watch) -> None:
    synced.failure = errno.EIO
    with pytest.raises(DurabilityError, match="the value was stored, but its directory could not be synced") as caught:
        filesync.sync_names(str(tmp_path / "k"), str(tmp_path), "the value was stored")
    assert caught.value.errno == errno.EIO
    assert "EIO" in str(caught.value)
    with pytest.raises(DurabilityError) as caught:
        filesync.sync_names(str(tmp_path / "root" / "k"), str(tmp_path / "root"), "the root is gone")
    assert caught.value.errno == errno.ENOENT


def test_names_of_new_directories_above_the_values_are_synced(tmp_path: Path, synced: Watch) -> None:
    root = tmp_path / "x" / "y" / "root"
    filesync.make_directories(str(root / "a" / "b"), f"{root}/", durable=True)
    assert (root / "a" / "b").is_dir()
    synced.assert_only(tmp_path / "x" / "y", tmp_path / "x", tmp_path)
    filesync.make_directories(str(root / "c"), str(root), durable=True)
    assert (root / "c").is_dir()
    synced.assert_only()
    filesync.make_directories(str(root / "c"), str(root), durable=True)
    filesync.make_directories(str(tmp_path / "z" / "a"), str(tmp_path / "z"), durable=False)
    assert (tmp_path / "z" / "a").is_dir()
    synced.assert_only()


def test_the_root_of_the_file_system_is_no_new_directory(
    tmp_path: Path, synced: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os.path, "isdir", lambda path: path != "/")
    filesync.make_directories(str(tmp_path), "/", durable=True)
    synced.assert_only()


@pytest.mark.parametrize(
    ("release", "reports"), [("5.7.19", False), ("5.8.0-rc1", True), ("4.19", False), ("6.1", True), ("unknown", False)]
)
def test_from_linux_5_8_on_a_sync_of_the_file_system_reports_errors(
    release: str, reports: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(release=release), raising=False)
    assert filesync._has_reporting_syncfs.__wrapped__() is reports


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let there be a file system that is synced as a whole; returns the calls."""
    calls: list[str] = []
    system = SimpleNamespace(kind="ext", sync=lambda: calls.append("syncfs"))
    monkeypatch.setattr(filesync, "open_file_system", lambda folder: system if os.path.isdir(folder) else None)
    monkeypatch.setattr(filesync, "_has_reporting_syncfs", lambda: True)
    monkeypatch.setattr(filesync, "_may_have_mounts", lambda _: False)
    return calls


def test_a_few_files_are_synced_then_the_directories_from_the_deepest_up(
    tmp_path: Path, synced: Watch, whole: list[str]
) -> None:
    paths = files(tmp_path, 7)
    (tmp_path / "a" / "b").mkdir(parents=True)
    above = [str(tmp_path), str(tmp_path / "missing"), str(tmp_path / "a" / "b"), str(tmp_path / "a")]
    filesync.BatchSync(str(tmp_path)).sync(paths, above)
    assert whole == []
    synced.assert_only(*paths, tmp_path / "a" / "b", tmp_path / "a", tmp_path)
    filesync.BatchSync(str(tmp_path)).sync([], [""])
    synced.assert_only("/")
    with pytest.raises(FileNotFoundError):
        filesync.BatchSync(str(tmp_path)).sync([str(tmp_path / "missing")], [])


@pytest.mark.parametrize(("some", "few"), [(8, 1), (0, 16), (0, 17), (9, 0)])
def test_many_files_or_directories_are_synced_with_their_file_system(
    tmp_path: Path, synced: Watch, whole: list[str], some: int, few: int
) -> None:
    batch = filesync.BatchSync(str(tmp_path))
    assert batch.kind == "ext"
    batch.sync(files(tmp_path, some), folders(tmp_path, few))
    assert whole == ["syncfs"]
    synced.assert_only()


def test_fifteen_directories_are_not_many(tmp_path: Path, synced: Watch, whole: list[str]) -> None:
    above = folders(tmp_path, 15)
    filesync.BatchSync(str(tmp_path)).sync([], above)
    assert whole == []
    synced.assert_only(*above)


def _other_kind(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(filesync, "open_file_system", lambda _: SimpleNamespace(kind="overlay", sync=_fail))


def _unknown(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(filesync, "open_file_system", lambda _: None)


def _old_kernel(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(filesync, "_has_reporting_syncfs", lambda: False)


def _fail() -> None:
    pytest.fail("synced as a whole")


@pytest.mark.parametrize("why", [_other_kind, _unknown, _old_kernel])
def test_a_file_system_that_reports_no_errors_is_not_synced_as_a_whole(
    tmp_path: Path, synced: Watch, whole: list[str], monkeypatch: pytest.MonkeyPatch, why: Callable[..., None]
) -> None:
    why(monkeypatch)
    paths = files(tmp_path, 10)
    batch = filesync.BatchSync(str(tmp_path))
    assert batch.kind == (None if why is _unknown else "overlay" if why is _other_kind else "ext")
    batch.sync(paths, [])
    assert whole == []
    synced.assert_only(*paths)


@pytest.mark.parametrize("inside", [True, False])
def test_files_on_another_device_are_synced_one_by_one(
    tmp_path: Path, synced: Watch, whole: list[str], monkeypatch: pytest.MonkeyPatch, inside: bool
) -> None:
    paths = files(tmp_path, 10)
    monkeypatch.setattr(filesync, "_may_have_mounts", lambda folder: folder == str(tmp_path))
    batch = filesync.BatchSync(str(tmp_path))
    stat = os.stat

    def mounted(path: str) -> object:
        return stat(path) if inside or path != paths[9] else SimpleNamespace(st_dev=stat(path).st_dev + 1)

    monkeypatch.setattr(os, "stat", mounted)
    batch.sync(paths, [str(tmp_path / "missing")])
    monkeypatch.undo()
    assert whole == ["syncfs"] * inside
    synced.assert_only(*[] if inside else paths)


MOUNTS = """\
21 1 8:1 / / rw,noatime - ext4 /dev/sda1 rw
22 21 0:20 / /proc rw - proc proc rw
23 21 8:2 / {folder}/a\\040b/mounted rw - ext4 /dev/sda2 rw
24 21 8:2 / {folder}/plain rw - ext4 /dev/sda2 rw
"""


def test_what_is_mounted_below_a_directory_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS.format(folder=tmp_path))
    monkeypatch.setattr(filesync, "_MOUNTS", str(mounts))
    for name in ("a b", "a", "plain", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a b")
    found = {name: filesync._may_have_mounts(str(tmp_path / name)) for name in ("a b", "link", "a", "plain", "other")}
    assert found == {"a b": True, "link": True, "a": False, "plain": False, "other": False}
    assert filesync._may_have_mounts("/")
    mounts.write_text("damaged\n")
    assert filesync._may_have_mounts(str(tmp_path / "other"))
    mounts.unlink()
    assert filesync._may_have_mounts(str(tmp_path / "other"))


def test_a_file_system_is_opened_by_the_rust_module_where_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extension, "module", lambda: SimpleNamespace(FileSystem=lambda folder: ("opened", folder)))
    opened: object = filesync.open_file_system("/x")
    assert opened == ("opened", "/x")
    monkeypatch.setattr(extension, "module", lambda: SimpleNamespace())
    assert filesync.open_file_system("/x") is None
    monkeypatch.setattr(extension, "module", lambda: None)
    assert filesync.open_file_system("/x") is None
