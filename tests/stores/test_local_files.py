"""Functions of files beneath a local store: parts of a file, the new file that replaces it, and what the system cannot do."""

from __future__ import annotations

import errno
import os
import stat
import struct
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tessarr.common import extension
from tessarr.errors import StoreError
from tessarr.stores.local import file as localfile
from tessarr.stores.local.file import FileValue, has_coarse_times, rest, version_at, version_of, write_value
from tessarr.types import ByteRange

if sys.platform == "win32":
    pytest.skip("Windows has no pread and no descriptors of directories", allow_module_level=True)
DATA = bytes(range(256)) * 4


@pytest.fixture
def path(tmp_path: Path) -> str:
    (tmp_path / "value").write_bytes(DATA)
    return str(tmp_path / "value")


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def failing(number: int) -> Callable[..., Any]:
    """A function of the operating system that fails."""

    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


def created(path: Path) -> int:
    return os.open(path, localfile.CREATE, 0o666)


def test_a_file_that_is_there_is_never_created_again(path: str) -> None:
    with pytest.raises(FileExistsError):
        created(Path(path))


def test_a_file_is_open_until_its_value_is_closed(path: str) -> None:
    value = FileValue.open(path)
    assert value is not None
    assert (value.nbytes, value.version) == (len(DATA), version_at(path))
    assert is_open(value.descriptor)
    assert not os.get_inheritable(value.descriptor)
    value.close()
    assert not is_open(value.descriptor)


def test_where_there_is_no_regular_file_there_is_no_value(path: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    opened = len(os.listdir("/dev/fd"))
    for missing in (tmp_path / "missing", tmp_path / "value" / "below", tmp_path, tmp_path / "pipe"):
        assert FileValue.open(str(missing)) is None
        assert version_at(str(missing)) is None
    assert len(os.listdir("/dev/fd")) == opened


def test_other_trouble_with_a_file_is_an_error(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", failing(errno.EACCES))
        with pytest.raises(PermissionError):
            FileValue.open(path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", failing(errno.EACCES))
        with pytest.raises(PermissionError):
            version_at(path)


def test_ranges_of_a_value_are_read_also_beyond_its_end(path: str) -> None:
    value = FileValue.open(path)
    assert value is not None
    assert value.read(ByteRange(3, 10)) == DATA[3:10]
    assert value.read(ByteRange(1000, 2000)) == DATA[1000:]
    assert value.read(ByteRange(2000, 3000)) == b""
    value.close()


def test_an_error_of_a_read_has_the_number_of_the_system(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    value = FileValue.open(path)
    assert value is not None
    with monkeypatch.context() as patch:
        patch.setattr(localfile, "pread", failing(errno.EIO))
        with pytest.raises(StoreError, match="could not read") as caught:
            value.read(ByteRange(3, 10))
    assert caught.value.errno == errno.EIO
    assert "bytes 3 to 10" in str(caught.value)
    assert "EIO" in str(caught.value)
    value.close()


def test_a_short_read_is_completed_and_a_shorter_file_is_an_error(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    descriptor = os.open(path, localfile.READ)
    pread = os.pread
    monkeypatch.setattr(localfile, "pread", lambda file, nbytes, start: pread(file, min(nbytes, 100), start))
    assert rest(descriptor, DATA[10:15], 10, 700) == DATA[10:710]
    value = FileValue.open(path)
    assert value is not None
    assert value.read(ByteRange(10, 710)) == DATA[10:710]
    value.close()
    with pytest.raises(StoreError, match="became shorter") as caught:
        rest(descriptor, b"", 1000, 50)
    assert "50 bytes" in str(caught.value)
    assert "24" in str(caught.value)
    os.close(descriptor)


@pytest.mark.parametrize(("nbytes", "threads"), [(localfile.LARGE, 1), (localfile.LARGE - 1, 0)])
def test_only_a_large_file_is_closed_by_another_thread(
    path: str, monkeypatch: pytest.MonkeyPatch, nbytes: int, threads: int
) -> None:
    os.truncate(path, nbytes)
    closing: list[str] = []
    close = os.close

    def noted(descriptor: int) -> None:
        closing.append(threading.current_thread().name)
        close(descriptor)

    value = FileValue.open(path)
    assert value is not None
    with monkeypatch.context() as patch:
        patch.setattr(os, "close", noted)
        value.close()
        for thread in threading.enumerate():
            if thread.name == "tessarr-closing":
                thread.join()
    assert closing == ["tessarr-closing" if threads else threading.current_thread().name]
    assert not is_open(value.descriptor)


@pytest.mark.parametrize(
    ("mtime_ns", "ctime_ns", "coarse"),
    [(2 * 10**9, 3 * 10**9, True), (10**7, 2 * 10**7, True), (10**7 + 1, 10**7, False), (10**7, 10**7 + 1, False),
     (5 * 10**6, 10**7, False), (10**7, 5 * 10**6, False)],
)  # fmt: skip
def test_times_are_coarse_where_both_are_multiples_of_ten_milliseconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mtime_ns: int, ctime_ns: int, coarse: bool
) -> None:
    status = SimpleNamespace(st_mode=stat.S_IFDIR, st_mtime_ns=mtime_ns, st_ctime_ns=ctime_ns)
    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", lambda _: status)
        assert has_coarse_times(str(tmp_path)) is coarse


def test_what_is_no_directory_has_no_such_times(path: str, tmp_path: Path) -> None:
    assert has_coarse_times(path) is None
    assert has_coarse_times(str(tmp_path / "missing")) is None


def test_a_new_file_has_the_pieces_in_order_and_is_closed(path: str, tmp_path: Path) -> None:
    source = FileValue.open(path)
    assert source is not None
    descriptor = created(tmp_path / "new")
    assert write_value(descriptor, [b"head", ByteRange(5, 300), memoryview(b"tail")], source, durable=False)
    assert (tmp_path / "new").read_bytes() == b"head" + DATA[5:300] + b"tail"
    assert not is_open(descriptor)
    source.close()


@pytest.mark.parametrize("durable", [True, False])
def test_a_durable_file_is_synced_when_all_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durable: bool
) -> None:
    synced: list[tuple[int, int]] = []
    monkeypatch.setattr(localfile, "sync", lambda file: synced.append((file, os.fstat(file).st_size)))
    descriptor = created(tmp_path / "new")
    assert write_value(descriptor, [b"1", b"23"], durable=durable)
    assert synced == [(descriptor, 3)] * durable


def test_a_file_that_cannot_be_written_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    descriptor = created(tmp_path / "new")
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", failing(errno.ENOSPC))
        with pytest.raises(OSError, match="No space"):
            write_value(descriptor, [b"1"], durable=True)
    assert not is_open(descriptor)


@pytest.mark.parametrize(
    ("off_ns", "kept"), [(0, True), (9_999, True), (-9_999, True), (10_000, False), (-(10**9), False)]
)
def test_it_is_noticed_when_a_file_system_does_not_keep_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, off_ns: int, kept: bool
) -> None:
    times: list[tuple[int, int]] = []
    monkeypatch.setattr(time, "time_ns", lambda: 1_700_000_000_123_456_789)
    monkeypatch.setattr(os, "utime", lambda _, *, ns: times.append(ns))
    status = SimpleNamespace(st_mtime_ns=1_700_000_000_123_456_789 + off_ns)
    descriptor = created(tmp_path / "new")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", lambda _: status)
        assert write_value(descriptor, [b"1"], durable=False) is kept
    assert times == [(1_700_000_000_123_456_789,) * 2]


def test_two_values_have_two_versions_also_where_the_clock_of_the_kernel_is_coarse(tmp_path: Path) -> None:
    write_value(created(tmp_path / "new"), [b"1"], durable=False)
    before = os.stat(tmp_path / "new")
    os.utime(tmp_path / "new", ns=(0, 0))
    assert version_of(os.stat(tmp_path / "new")) != version_of(before)
    assert abs(before.st_mtime_ns - before.st_ctime_ns) < 10**9
    assert abs(before.st_atime_ns - before.st_mtime_ns) < 10**9


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let the kernel refuse to copy, with an error."""

    def refuse(number: int) -> None:
        monkeypatch.setattr(os, "copy_file_range", failing(number), raising=False)

    return refuse


@pytest.mark.parametrize("number", [errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM])
def test_ranges_are_copied_also_where_the_kernel_cannot(
    path: str, tmp_path: Path, refused: Callable[[int], None], number: int
) -> None:
    refused(number)
    source = FileValue.open(path)
    assert source is not None
    write_value(created(tmp_path / "new"), [ByteRange(1, 1000)], source, durable=False)
    assert (tmp_path / "new").read_bytes() == DATA[1:1000]
    source.close()


def test_ranges_are_copied_also_by_a_system_without_such_a_call(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "copy_file_range", raising=False)
    source = FileValue.open(path)
    assert source is not None
    write_value(created(tmp_path / "new"), [ByteRange(1, 1000)], source, durable=False)
    assert (tmp_path / "new").read_bytes() == DATA[1:1000]
    source.close()


def test_without_the_rust_module_files_are_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extension, "module", lambda: None)
    assert localfile.reader_of_many.__wrapped__() is None


def test_a_disk_that_is_full_while_the_kernel_copies_is_an_error(
    path: str, tmp_path: Path, refused: Callable[[int], None]
) -> None:
    refused(errno.ENOSPC)
    source = FileValue.open(path)
    assert source is not None
    with pytest.raises(OSError, match="No space"):
        write_value(created(tmp_path / "new"), [ByteRange(1, 1000)], source, durable=False)
    source.close()


@pytest.mark.parametrize("copied", [0, 7, 400])
def test_what_the_kernel_copies_in_parts_is_completed(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copied: int
) -> None:
    parts: list[tuple[int, int]] = []

    def copy(source: int, target: int, nbytes: int, start: int) -> int:
        parts.append((start, nbytes))
        return os.write(target, os.pread(source, min(nbytes, copied), start))

    monkeypatch.setattr(os, "copy_file_range", copy, raising=False)
    source = FileValue.open(path)
    assert source is not None
    write_value(created(tmp_path / "new"), [ByteRange(100, 1000)], source, durable=False)
    assert (tmp_path / "new").read_bytes() == DATA[100:1000]
    assert parts == [(start, 1000 - start) for start in range(100, 1000, copied or 900)]
    source.close()


def test_ranges_that_the_kernel_does_not_copy_are_read_in_pieces_that_fit_in_memory(
    path: str, tmp_path: Path, refused: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    refused(errno.EXDEV)
    reads: list[int] = []
    pread = os.pread

    def read(file: int, nbytes: int, start: int) -> bytes:
        reads.append(nbytes)
        return pread(file, nbytes, start)

    monkeypatch.setattr(localfile, "pread", read)
    os.truncate(path, 20 << 20)
    source = FileValue.open(path)
    assert source is not None
    write_value(created(tmp_path / "new"), [ByteRange(0, 20 << 20)], source, durable=False)
    assert reads == [8 << 20, 8 << 20, 4 << 20]
    source.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux preallocates files")
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOTTY])
def test_only_a_full_disk_is_an_error_of_a_preallocation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    import fcntl

    asked: list[int] = []

    def refuse(*_: object) -> None:
        asked.append(number)
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "ioctl", refuse)
    with open(tmp_path / "new", "wb") as file:
        localfile.preallocate(file.fileno(), localfile.ROOM - 1)
        assert asked == []
        if number == errno.ENOTTY:
            localfile.preallocate(file.fileno(), localfile.ROOM)
        else:
            with pytest.raises(OSError, match=os.strerror(number)):
                localfile.preallocate(file.fileno(), localfile.ROOM)
        assert asked == [number]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux preallocates files")
def test_a_preallocation_asks_for_the_bytes_of_the_whole_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    calls: list[tuple[int, int, tuple[int, ...]]] = []
    monkeypatch.setattr(
        fcntl, "ioctl", lambda file, what, data: calls.append((file, what, struct.unpack("=hhxxxxqqiI16x", data)))
    )
    descriptor = created(tmp_path / "new")
    write_value(descriptor, [bytes(1 << 20), b"123"], durable=False)
    # FS_IOC_RESVSP64 with a `struct space_resv`: from the start of the file on
    assert calls == [(descriptor, 0x4030582A, (0, os.SEEK_SET, 0, (1 << 20) + 3, 0, 0))]
    assert os.stat(tmp_path / "new").st_size == (1 << 20) + 3
