"""What overwriting deletes under the alias is what zarr-python deletes."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr

theirs = pytest.importorskip(
    "zarr", "3.1.6", reason="the alias does what releases from 3.1.6 on do; the extra `peers` has one"
)

FOREIGN = ["notes.txt", "photos/1.jpg", "a/readme.md", "a/raw/x.bin", "a.txt", "ab/y.bin"]
DOCUMENTS = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")
CALLS: dict[str, Any] = {
    "create_array": lambda m, s, p: m.create_array(s, name=p or None, shape=(4,), dtype="i4", overwrite=True),
    "create_array of v2": lambda m, s, p: m.create_array(
        s, name=p or None, shape=(4,), dtype="i4", overwrite=True, zarr_format=2
    ),
    "create_group": lambda m, s, p: m.create_group(s, path=p or "", overwrite=True),
    "group": lambda m, s, p: m.group(s, path=p or None, overwrite=True),
    "open_group": lambda m, s, p: m.open_group(s, path=p or None, mode="w"),
    "open_array": lambda m, s, p: m.open_array(s, path=p or None, mode="w", shape=(4,), dtype="i4"),
    "open": lambda m, s, p: m.open(s, path=p or None, mode="w", shape=(4,), dtype="i4"),
    "save_array": lambda m, s, p: m.save_array(s, np.arange(4), path=p or None),
    "save": lambda m, s, p: m.save(s, np.arange(4), path=p or None),
    "save_array with a mode": lambda m, s, p: m.save_array(s, np.arange(4), path=p or None, mode="w"),
    "save_group": lambda m, s, p: m.save_group(s, np.arange(4), x=np.arange(4), path=p or None),
    "open_group that may exist": lambda m, s, p: m.open_group(s, path=p or None, mode="a"),
}
BEFORE: dict[str, Any] = {
    "nothing": lambda _: None,
    "a group": lambda place: theirs.create_group(place, zarr_format=3).create_array("b", shape=(2,), dtype="i4"),
    "an array": lambda place: theirs.save_array(place, np.arange(6)),
}


def left(place: Path) -> set[str]:
    """The files other than documents and chunks of what was made."""
    files = {path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file()}
    return {file for file in files if file in FOREIGN}


@pytest.mark.parametrize(
    ("before", "path"),
    [(before, path) for before in BEFORE for path in ("", "a", "new") if before != "an array" or not path],
)
@pytest.mark.parametrize("call", CALLS)
def test_overwriting_deletes_what_zarr_python_deletes(call: str, before: str, path: str, tmp_path: Path) -> None:
    found = []
    for name, module in {"theirs": theirs, "ours": tessarr}.items():
        place = tmp_path / name
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            BEFORE[before](place)
            for file in FOREIGN:
                (place / file).parent.mkdir(parents=True, exist_ok=True)
                (place / file).write_text("foreign")
            mixes = call == "create_array of v2"  # in a group of v3, which tessarr itself refuses
            names = {"overwrite_all": True, "arguments": True, "both_formats": mixes}
            with tessarr.config.set({"zarr_python": names}):
                try:
                    CALLS[call](module, str(place), path)
                except (theirs.errors.ContainsArrayError, tessarr.errors.ContainsArrayError):
                    found.append({"an array is in the way"})
                except (theirs.errors.ContainsGroupError, tessarr.errors.ContainsGroupError):
                    found.append({"a group is in the way"})
        found.append(left(place))
    half = len(found) // 2
    assert found[half:] == found[:half]


def test_without_the_setting_foreign_files_stay_where_no_node_is(tmp_path: Path) -> None:
    for file in FOREIGN:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("foreign")
    tessarr.open_group(tmp_path, mode="w")
    assert left(tmp_path) == set(FOREIGN)


EXCLUSIVE: dict[str, Any] = {
    "open_group": lambda m, s, p: m.open_group(s, path=p, mode="w-"),
    "open_array": lambda m, s, p: m.open_array(s, path=p, mode="w-", shape=(4,), dtype="i4"),
    "open": lambda m, s, p: m.open(s, path=p, mode="w-", shape=(4,), dtype="i4"),
    "create": lambda m, s, p: m.create((4,), store=s, path=p, mode="w-", dtype="i4"),
    "save_array": lambda m, s, p: m.save_array(s, np.arange(4), path=p, mode="w-"),
}


@pytest.mark.parametrize("there", ["notes.txt", ".DS_Store", "c/0", "photos/1.jpg", "empty/", "a/raw/x.bin"])
@pytest.mark.parametrize("path", [None, "a", "new"])
@pytest.mark.parametrize("call", EXCLUSIVE)
def test_mode_w_minus_refuses_the_places_that_zarr_python_refuses(
    call: str, path: str | None, there: str, as_zarr: None, tmp_path: Path
) -> None:
    outcomes = []
    for name, module in {"theirs": theirs, "ours": tessarr}.items():
        place = tmp_path / name
        if there.endswith("/"):
            (place / there).mkdir(parents=True)
        else:
            (place / there).parent.mkdir(parents=True)
            (place / there).write_bytes(b"x")
        before = sorted(place.rglob("*"))
        try:
            EXCLUSIVE[call](module, place, path)
            outcomes.append("made")
        except FileExistsError as error:
            outcomes.append("refused" if "already contains data" in str(error) else str(error))
            assert sorted(place.rglob("*")) == before
    assert outcomes[0] == outcomes[1]


def test_tessarr_itself_makes_a_node_beside_other_files(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_bytes(b"x")
    tessarr.open_group(tmp_path, mode="w-")
    assert (tmp_path / "notes.txt").exists()
