"""The last step of a replacement or removal of a local file, where links and locks work and where they do not."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tessarr
from tessarr.errors import StoreError
from tessarr.stores.base import ANY
from tessarr.stores.local import replace as localswap
from tessarr.stores.local.file import version_of
from tessarr.stores.local.store import LocalStore
from tessarr.types import ByteRange

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no flock: locks of keys exclude there")


def refuse(*_: Any, **__: Any) -> None:
    raise OSError(errno.EPERM, "not here")


@pytest.fixture(params=["all", "no links", "no locks", "neither", "switched off"])
def options(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """For `place` and `remove`, on a system with these abilities."""
    if request.param in ("no links", "neither"):
        monkeypatch.setattr(os, "link", refuse)
    if request.param in ("no locks", "neither"):
        monkeypatch.setattr("fcntl.flock", refuse)
    return {"flock": request.param != "switched off"}


def new_file(folder: Path) -> str:
    file = folder / "new"
    file.write_bytes(b"new")
    return str(file)


def test_a_file_is_put_where_nothing_is_and_over_another(tmp_path: Path, options: dict[str, bool]) -> None:
    path = tmp_path / "value"
    for _ in range(2):
        assert localswap.place(new_file(tmp_path), str(path), flock=options["flock"])
        assert path.read_bytes() == b"new"
        assert os.listdir(tmp_path) == ["value"]
        assert path.stat().st_nlink == 1


def test_a_file_is_put_only_over_the_version_that_was_seen(tmp_path: Path, options: dict[str, bool]) -> None:
    path = tmp_path / "value"
    assert not localswap.place(new_file(tmp_path), str(path), "1:2:3:4", **options)
    assert localswap.place(new_file(tmp_path), str(path), None, **options)
    path.write_bytes(b"another")
    assert not localswap.place(new_file(tmp_path), str(path), None, **options)
    assert not localswap.place(new_file(tmp_path), str(path), "1:2:3:4", **options)
    assert (path.read_bytes(), (tmp_path / "new").read_bytes()) == (b"another", b"new")
    assert localswap.place(str(tmp_path / "new"), str(path), version_of(path.stat()), **options)
    assert path.read_bytes() == b"new"


def test_a_file_is_taken_away_only_in_the_version_that_was_seen(tmp_path: Path, options: dict[str, bool]) -> None:
    path = tmp_path / "value"
    assert localswap.remove(str(path), None, **options)
    assert not localswap.remove(str(path), "1:2:3:4", **options)
    with pytest.raises(FileNotFoundError):
        localswap.remove(str(path), ANY, **options)
    path.write_bytes(b"1")
    assert not localswap.remove(str(path), None, **options)
    assert not localswap.remove(str(path), "1:2:3:4", **options)
    assert localswap.remove(str(path), version_of(path.stat()), **options)
    path.write_bytes(b"1")
    assert localswap.remove(str(path), ANY, **options)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("method", ["update", "splice"])
@pytest.mark.parametrize("put_there", [None, b"whole"])
@pytest.mark.parametrize("deletes", [False, True])
def test_a_whole_value_that_comes_at_the_last_moment_of_an_update_is_not_undone(
    tmp_path: Path, method: str, put_there: bytes | None, deletes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore(tmp_path)
    store.set("k", b"old")
    seen: list[bytes | None] = []

    def change(old: Any) -> Any:
        seen.append(None if old is None else bytes(old.read(ByteRange(0)) if method == "splice" else old))
        if deletes and len(seen) == 1:
            return None
        new = (seen[-1] or b"") + b"+part"
        return [new] if method == "splice" else new

    def late(step: Callable[..., bool]) -> Callable[..., bool]:
        def wrapped(*arguments: Any, **options: Any) -> bool:
            monkeypatch.undo()
            if put_there is None:
                store.delete("k")
            else:
                store.set("k", put_there)
            return step(*arguments, **options)

        return wrapped

    monkeypatch.setattr(localswap, "place", late(localswap.place))
    monkeypatch.setattr(localswap, "remove", late(localswap.remove))
    getattr(store, method)("k", change)
    assert seen == [b"old", put_there]
    assert bytes(store.get("k") or b"") == (put_there or b"") + b"+part"


@pytest.mark.parametrize("over", [ANY, None])
def test_a_file_that_comes_and_goes_is_never_replaced_without_its_lock(
    tmp_path: Path, over: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often: a rename without the lock would undo what another writer wrote since the check."""
    rounds = 0
    link = os.link

    def busy(source: str, target: str) -> None:
        nonlocal rounds
        rounds += 1
        if rounds < 1000:  # there is a file; before it is opened, its writer removes it
            raise FileExistsError(errno.EEXIST, "there", target)
        link(source, target)

    monkeypatch.setattr(os, "link", busy)
    monkeypatch.setattr("tessarr.stores.local.lock.retry_denied", refuse)
    assert localswap.place(new_file(tmp_path), str(tmp_path / "value"), over)
    assert (rounds, os.listdir(tmp_path)) == (1000, ["value"])


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_a_directory_that_is_a_link_that_leads_nowhere_is_an_error_that_says_so(tmp_path: Path, engine: str) -> None:
    with tessarr.config.set({"engine": engine}):
        z = tessarr.create_array(tmp_path, shape=(4,), chunks=(4,), dtype="u1")
        (tmp_path / "c").symlink_to("nowhere")
        with pytest.raises(StoreError) as caught:
            z[...] = 1
        assert "nowhere" in str(caught.value) or "No such file" in str(caught.value)


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_a_link_that_leads_nowhere_is_replaced(tmp_path: Path, engine: str) -> None:
    """Nothing can be opened there, and nothing new put there."""
    with tessarr.config.set({"engine": engine}):
        z = tessarr.create_array(tmp_path, shape=(4,), chunks=(4,), dtype="u1")
        (tmp_path / "c").mkdir()
        for values in ([1, 2, 3, 4], [0, 0, 0, 0]):
            (tmp_path / "c" / "0").symlink_to("nowhere")
            z[...] = values
            assert z[...].tolist() == values
            assert not (tmp_path / "c" / "0").is_symlink()
            (tmp_path / "c" / "0").unlink(missing_ok=True)
        (tmp_path / "c").mkdir(exist_ok=True)
        (tmp_path / "c" / "0").symlink_to("nowhere")
        z[1] = 7
        assert z[...].tolist() == [0, 7, 0, 0]
