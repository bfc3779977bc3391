"""Other libraries read before, during and after a commit: whole values always, and what the page promises (invariant I9)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.stores.local import exchange
from tessarr.stores.local import file as localfile
from tessarr.stores.local import replace as localswap
from tessarr.stores.local.swap import swap_root
from tessarr.stores.local.transactions import many, recovery
from tests.parity.test_pending_appends import READERS

OLD, NEW = [1] * 6, [7] * 6 + [9]


def _two_arrays(
    place: Path, read: Callable[[Path, int], Any], zarr_format: Any
) -> tuple[Path, Callable[[], list[list[int]]]]:
    """Store arrays at `place`. Returns it, and a function by which another program reads both."""
    root = tessarr.create_group(place, zarr_format=zarr_format)
    for name in ("t", "u"):
        root.create_array(name, data=np.array(OLD, "i4"), chunks=(2,), fill_value=0)
    return place, lambda: [read(place / name, zarr_format).tolist() for name in ("t", "u")]


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("read", READERS)
@pytest.mark.filterwarnings("ignore:Object at:UserWarning")
def test_each_value_is_old_or_new(
    tmp_path: Path, read: Callable[[Path, int], Any], zarr_format: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, read_both = _two_arrays(tmp_path / "a", read, zarr_format)
    seen: list[list[list[int]]] = []
    carry_out = recovery._carry_out

    def carried_out(*arguments: Any, **options: Any) -> None:
        seen.append(read_both() if read is not READERS[0] else [OLD, OLD])
        carry_out(*arguments, **options)

    with tessarr.transaction(place) as tx:
        group: Any = tx.group
        for name in ("t", "u"):
            group[name][...] = 7
            group[name].append(np.array([9], "i4"))
        assert read_both() == [OLD, OLD], "before the commit"
        monkeypatch.setattr(many.StagedFiles, "place", lambda *_: False)  # step by step, not by one call
        monkeypatch.setattr(recovery, "_carry_out", carried_out)
    assert read_both() == [NEW, NEW], "after the commit"
    assert len(seen) == 10, "eight chunks, two documents"
    for array in (array for arrays in seen for array in arrays):
        assert array in [[*NEW[:length], *OLD[length:]] for length in (0, 2, 4, 6)] + [NEW]
    assert seen[0] == [OLD, OLD]


@pytest.mark.parametrize("read", READERS[1:])
@pytest.mark.filterwarnings("ignore:Object at:UserWarning")
def test_appends_are_seen_whole_and_of_all_arrays_at_once_by_consolidated_metadata(
    tmp_path: Path, read: Callable[[Path, int], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, read_both = _two_arrays(tmp_path / "a", read, 3)
    tessarr.consolidate_metadata(place)
    seen: list[tuple[list[list[int]], set[int]]] = []
    carry_out = recovery._carry_out

    def carried_out(*arguments: Any, **options: Any) -> None:
        documents = json.loads((place / "zarr.json").read_bytes())["consolidated_metadata"]["metadata"]
        seen.append((read_both(), {documents[name]["shape"][0] for name in ("t", "u")}))
        carry_out(*arguments, **options)

    with tessarr.transaction(place) as tx:
        group: Any = tx.group
        for name in ("t", "u"):
            group[name].append(np.array([9, 9, 9], "i4"))
        assert tx.plan().level == "publish"
        monkeypatch.setattr(many.StagedFiles, "place", lambda *_: False)  # step by step, not by one call
        monkeypatch.setattr(recovery, "_carry_out", carried_out)
    longer = [*OLD, 9, 9, 9]
    assert read_both() == [longer, longer]
    assert len(seen) == 7, "four chunks, three documents"
    assert [both for both, _ in seen] == [[OLD, OLD]] * 5 + [[longer, OLD], [longer, longer]]
    assert [lengths for _, lengths in seen] == [{6}] * 7, "the document of the root is replaced last"


@pytest.mark.skipif(exchange._renameat2() is None, reason="RENAME_EXCHANGE is a call of Linux")
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("read", READERS)
@pytest.mark.filterwarnings("ignore:Object at:UserWarning")
def test_all_arrays_are_old_or_all_new_when_the_root_is_exchanged(
    tmp_path: Path, read: Callable[[Path, int], Any], zarr_format: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, read_both = _two_arrays(tmp_path / "a", read, zarr_format)
    seen: list[list[list[int]]] = []

    def reading(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            seen.append(read_both())
            return function(*arguments, **options)

        return call

    with tessarr.transaction(place, mode="swap") as tx:
        group: Any = tx.group
        for name in ("t", "u"):
            group[name][...] = 7
            group[name].append(np.array([9], "i4"))
        monkeypatch.setattr(localfile, "write_value", reading(localfile.write_value))
        for step in ("exchange", "complete_swap"):
            monkeypatch.setattr(swap_root, step, reading(getattr(swap_root, step)))
        monkeypatch.setattr(localswap, "remove", reading(localswap.remove))
    switch = seen.index([NEW, NEW])
    assert switch > 10, "eight chunks, two documents, and what the new root needs"
    assert len(seen) - switch >= 9, "the files of the old tree"
    assert seen == [[OLD, OLD]] * switch + [[NEW, NEW]] * (len(seen) - switch)
