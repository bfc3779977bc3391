"""Values that a transaction stages in files before it commits, and the calls for many staged files."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.errors import ConflictError, StoreError
from tessarr.stores.local.file import version_at
from tessarr.stores.local.lock import is_hidden, lock_name
from tessarr.stores.local.transactions.journal import Journal, Step
from tessarr.stores.local.transactions.many import Compared, ComparedSteps, StagedFiles

BEFORE, AFTER = [1.0] * 6, [7.0] * 6


@pytest.fixture
def place(tmp_path: Path) -> Path:
    made = tmp_path / "data.zarr"
    root = tessarr.create_group(made)
    for name in ("t", "u"):
        root.create_array(name, data=np.array(BEFORE), chunks=(2,))
    return made


def hidden(place: Path) -> list[Path]:
    return sorted(path for path in place.rglob("*") if is_hidden(path.name))


class StopError(Exception):
    """Ends a block."""


def change(place: Path, meanwhile: Callable[[Any], object] | None = None, **options: Any) -> None:
    """Replace the chunks of ``t`` in a transaction, call `meanwhile` with its group, and commit."""
    with tessarr.transaction(place, **options) as tx:
        group: Any = tx.group
        group["t"][:] = AFTER
        if meanwhile is not None:
            meanwhile(group)


def stop(_: Any) -> None:
    raise StopError


def read(group: Any) -> list[float]:
    found: list[float] = group["t"][:].tolist()
    return found


def values(place: Path) -> list[list[float]]:
    root: Any = tessarr.open_group(place, mode="r")
    return [root[name][:].tolist() for name in ("t", "u")]


def staging(array: Any) -> bool:
    """Whether this engine stages whole chunks in files: the native one, where the kernel refuses links out of a directory."""
    return array.engine.name == "native" and sys.platform == "linux"


def test_whole_chunks_are_staged_beside_their_keys_and_renamed(place: Path) -> None:
    with tessarr.transaction(place) as tx:
        array: Any = tx.group["t"]
        array[:] = AFTER
        staged = hidden(place)
        assert len(staged) == (3 if staging(array) else 0)
        assert values(place) == [BEFORE, BEFORE]
        assert array[:].tolist() == AFTER
        assert array[3] == 7
        assert tx.plan().nbytes == sum((place / "t/c" / key).stat().st_size for key in "012") or not staged
    assert values(place) == [AFTER, BEFORE]
    assert hidden(place) == []


def test_an_aborted_transaction_removes_what_it_staged(place: Path) -> None:
    with pytest.raises(StopError):
        change(place, stop)
    assert hidden(place) == []
    assert values(place) == [BEFORE, BEFORE]


@pytest.mark.parametrize("durable", [False, True], ids=["not durable", "durable"])
def test_staged_chunks_are_changed_again(place: Path, durable: bool) -> None:
    with tessarr.transaction(place, durable=durable) as tx:
        t: Any = tx.group["t"]
        u: Any = tx.group["u"]
        t[:] = AFTER
        t[1] = 8  # a part
        t[2:6] = [5, 5, 0, 0]  # whole, and one that is all fill value
        u[:] = AFTER
        u[:] = 9
        assert [t[:].tolist(), u[:].tolist()] == [[7, 8, 5, 5, 0, 0], [9] * 6]
    assert values(place) == [[7, 8, 5, 5, 0, 0], [9] * 6]
    assert not (place / "t/c/2").exists()
    assert hidden(place) == []


def test_an_array_that_is_removed_after_its_chunks_were_staged(place: Path) -> None:
    def remove(group: Any) -> None:
        del group["t"]

    change(place, remove)
    assert sorted(tessarr.open_group(place, mode="r")) == ["u"]
    assert hidden(place) == []


def test_a_staged_file_that_was_removed_is_a_conflict(place: Path) -> None:
    if not staging(tessarr.open_array(place / "t")):
        pytest.skip("this engine stages in memory")
    with pytest.raises(ConflictError) as caught:
        change(place, lambda _: hidden(place / "t")[1].unlink())
    assert caught.value.keys == ("t/c/1",)
    assert values(place) == [BEFORE, BEFORE]
    assert hidden(place) == []


def test_a_staged_file_that_another_process_has_changed_is_not_read(place: Path) -> None:
    if not staging(tessarr.open_array(place / "t")):
        pytest.skip("this engine stages in memory")

    def replace_and_read(group: Any) -> None:
        shutil.copy(place / "t/c/1", hidden(place / "t")[1])
        group["t"][:]

    with pytest.raises(ConflictError):
        change(place, replace_and_read)
    assert values(place) == [BEFORE, BEFORE]
    assert hidden(place) == []


def test_a_root_that_was_replaced_meanwhile_is_a_conflict(place: Path) -> None:
    other, old = place.with_name("other.zarr"), place.with_name("old.zarr")
    shutil.copytree(place, other)
    with pytest.raises(ConflictError):
        change(place, lambda _: (place.rename(old), other.rename(place)))
    assert values(place) == [BEFORE, BEFORE]
    assert hidden(place) == []


def test_documents_that_are_merged_leave_staged_chunks_in_place(place: Path) -> None:
    command = "import sys, tessarr; tessarr.open_group(sys.argv[1]).attrs['other'] = 2"

    def change_attributes(group: Any) -> None:
        group.attrs["mine"] = 1
        subprocess.run([sys.executable, "-c", command, str(place)], check=True)

    change(place, change_attributes, on_conflict="merge")
    assert values(place) == [AFTER, BEFORE]
    assert dict(tessarr.open_group(place, mode="r").attrs) == {"mine": 1, "other": 2}
    assert hidden(place) == []


def test_a_snapshot_that_lives_still_knows_which_chunks_were_missing(place: Path) -> None:
    root: Any = tessarr.open_group(place)
    root["t"][0:4] = 0
    missing = [0.0] * 4 + BEFORE[4:]
    with tessarr.snapshot(place) as before:
        with pytest.raises(StopError):
            change(place, stop)
        assert read(before) == missing


@pytest.mark.parametrize("commits", [False, True])
def test_a_snapshot_within_the_block_still_knows_which_chunks_were_missing(place: Path, commits: bool) -> None:
    root: Any = tessarr.open_group(place)
    root["t"][0:4] = 0
    missing = [0.0] * 4 + BEFORE[4:]
    tx = tessarr.transaction(place)
    with tx:
        group: Any = tx.group
        group["t"][:] = AFTER
        with tessarr.snapshot(place) as within:
            if commits:
                tx.commit()
            else:
                tx.abort()
            assert read(within) == missing
    assert values(place) == [AFTER if commits else missing, BEFORE]


def test_a_link_that_leads_out_of_the_root_is_not_followed(place: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (place / "t/c").rename(outside)
    (place / "t/c").symlink_to(outside)
    names, within = sorted(os.listdir(outside)), []
    with pytest.raises(StoreError, match="leads out of the root"):
        change(place, lambda _: within.extend(sorted(os.listdir(outside))))
    assert names == within == sorted(os.listdir(outside))
    assert values(place) == [BEFORE, BEFORE]


def test_a_process_that_is_killed_in_the_block_leaves_old_values(place: Path) -> None:
    program = (
        "import os, signal, sys, tessarr\n"
        "with tessarr.transaction(sys.argv[1]) as tx:\n"
        "    tx.group['t'][:] = 7\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(place)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert values(place) == [BEFORE, BEFORE]
    store = tessarr.storage.LocalStore(place)
    store.remove_leftovers(older_than_s=0)
    assert hidden(place) == []
    assert values(place) == [BEFORE, BEFORE]


# -- the calls for many files ------------------------------------------------------------------------------------------------


@pytest.fixture(params=["native", "Python"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> StagedFiles:
    (tmp_path / "a").mkdir()
    made = StagedFiles(f"{tmp_path}{os.sep}", "0123456789ab")
    if request.param == "Python":
        made.native = None
    elif made.native is None:
        pytest.skip("the Rust module is not built")
    return made


def found(compared: Compared, total: int) -> tuple[list[str | None], list[str], list[str]]:
    return [compared.version(number) for number in range(total)], compared.locked, compared.changed


@pytest.mark.parametrize("name", ["0", "n" * 200], ids=["short", "long"])
def test_both_compare_alike(files: StagedFiles, tmp_path: Path, name: str) -> None:
    key = f"a/{name}"
    keys = [(key, None), ("a/1", None), ("a", None), ("a/0/b", None)]
    assert found(files.compare(keys, 4), 4) == ([None] * 4, [], [])
    (tmp_path / "a" / lock_name(name)).touch()
    (tmp_path / key).write_bytes(b"value")
    Path(files.path(key)).write_bytes(b"other")
    value, staged = version_at(f"{tmp_path}/{key}"), str(version_at(files.path(key))).partition(":")[2]
    assert found(files.compare([(key, staged), ("a/1", staged)], 1), 2) == ([value, None], [key], ["a/1"])
    assert found(files.compare([("a/1", None), (key, "1:2:3")], 1), 2) == ([None, value], [], [key])


def test_the_steps_of_compared_keys_and_their_lines_are_alike(files: StagedFiles, tmp_path: Path) -> None:
    staged = {"a/0": "1:2:3", "a/1": None, 'a/"\\\x01\n\x7fä\U0001f600': "4:5:6"}
    for key in ("a/0", "a/1"):
        (tmp_path / key).write_bytes(b"value")
    versions = [str(version_at(f"{tmp_path}/{key}")).partition(":")[2] for key in ("a/0", "a/1")]
    compared = files.compare([*staged.items(), ("a/other", None)], 0)
    steps = ComparedSteps(staged, compared)
    expected = [Step(key, old, new) for (key, new), old in zip(staged.items(), [*versions, None], strict=True)]
    assert (len(steps), [*steps], steps[-1], steps[1:]) == (3, expected, expected[2], expected[1:])
    assert (steps.lines() is None) == (files.native is None)
    assert Journal(files.id, "2f", steps, steps.lines()).dump() == Journal(files.id, "2f", expected).dump()


def test_a_file_that_cannot_be_written_leaves_none(files: StagedFiles, tmp_path: Path) -> None:
    assert files.write([("a/0", b"x"), ("missing/0", b"y")]) is None
    assert os.listdir(tmp_path / "a") == []


def test_many_files_are_written_and_renamed_unless_a_value_has_changed(files: StagedFiles, tmp_path: Path) -> None:
    keys = [f"a/{number}" for number in range(40)]
    for key in keys[:20]:
        (tmp_path / key).write_bytes(b"old")
    new = files.write([(key, key.encode()) for key in keys])
    if files.native is None:
        assert new is None
        assert not files.place(files.compare([(key, None) for key in keys], 40), 0, 40)
        return
    assert new is not None
    compared = files.compare([*zip(keys, new, strict=True)], 40)
    assert compared.changed == []
    assert [compared.version(number) is None for number in range(40)] == [False] * 20 + [True] * 20
    (tmp_path / keys[3]).write_bytes(b"later")
    (tmp_path / keys[30]).write_bytes(b"later")
    for changed in (3, 30):
        assert not files.place(compared, changed, changed + 1)
        assert (tmp_path / keys[changed]).read_bytes() == b"later"
    for first, stop in ((0, 3), (4, 30), (31, 40)):
        assert files.place(compared, first, stop)
        assert all((tmp_path / key).read_bytes() == key.encode() for key in keys[first:stop])
    with pytest.raises(IndexError):
        files.place(compared, 39, 41)
