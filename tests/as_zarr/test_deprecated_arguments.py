"""Deprecated arguments, functions and modules: the alias warns of them as zarr-python does, and refuses what contradicts."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.codecs import GzipCodec

zarr = pytest.importorskip(
    "zarr", "3.1.6", reason="the alias does what releases from 3.1.6 on do; the extra `peers` has one"
)


def _saved(library: Any, place: Path) -> Path:
    library.create_group(place, overwrite=True).create_array("a", data=np.arange(3))
    return place


CALLS: dict[str, Callable[[Any, Path], object]] = {
    "open_group": lambda library, _: library.open_group({}, mode="w", zarr_version=3),
    "group": lambda library, _: library.group({}, zarr_version=3),
    "open": lambda library, place: library.open(_saved(library, place), mode="r", zarr_version=3),
    "open_array": lambda library, place: library.open_array(store=_saved(library, place), path="a", zarr_version=3),
    "create": lambda library, _: library.create(3, store={}, zarr_version=3),
    "save": lambda library, place: library.save(place, np.arange(3), zarr_version=3),
    "save of a group": lambda library, place: library.save(place, a=np.arange(3), b=np.arange(3), zarr_version=3),
    "save_array": lambda library, place: library.save_array(place, np.arange(3), zarr_version=3),
    "save_group": lambda library, place: library.save_group(place, np.arange(3), zarr_version=3),
    "load": lambda library, place: library.load(_saved(library, place), path="a", zarr_version=3),
    "compressor": lambda library, _: library.group({}).create_array(
        "q", shape=3, dtype="i4", compressor=(GzipCodec if library is tessarr else library.codecs.GzipCodec)()
    ),
    "no compressor": lambda library, _: library.group({}).create_array("q", shape=3, dtype="i4", compressor=None),
    "compressor in v2": lambda library, _: library.group({}, zarr_format=2).create_array(
        "q", shape=3, dtype="i4", compressor=None
    ),
    "Group.array": lambda library, _: library.group({}).array("r", data=np.arange(2), shape=2, dtype="i4"),
    "Array.create": lambda library, _: library.Array.create(
        library.storage.MemoryStore()
        if library is tessarr
        else library.storage.StorePath(library.storage.MemoryStore()),
        shape=3,
        dtype="i4",
        zarr_format=3,
    ),
}


def _warned(call: Callable[[Any, Path], object], library: Any, place: Path) -> set[tuple[str, str]]:
    """The categories and texts of the warnings of a call."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call(library, place)
    return {(warning.category.__name__, str(warning.message)) for warning in found}


@pytest.mark.parametrize("name", CALLS)
def test_the_warnings_are_those_of_zarr_python(name: str, as_zarr: None, tmp_path: Path) -> None:
    theirs = _warned(CALLS[name], zarr, tmp_path / "theirs")
    if name == "Group.array":  # zarr-python 3.1 also warns of its own calls
        theirs = {found for found in theirs if found[1] == "Use Group.create_array instead."}
    assert _warned(CALLS[name], tessarr, tmp_path / "ours") == theirs
    assert bool(theirs) == (name != "compressor in v2")


@pytest.mark.filterwarnings("ignore:zarr_version is deprecated")
@pytest.mark.parametrize("library", [zarr, tessarr], ids=["zarr-python", "tessarr"])
def test_two_formats_that_differ_are_refused(library: Any, tmp_path: Path) -> None:
    both: dict[str, Any] = {"zarr_version": 2, "zarr_format": 3}
    calls: list[Callable[[], object]] = [
        lambda: library.open_group({}, mode="w", **both),
        lambda: library.group({}, **both),
        lambda: library.open({}, mode="w", **both),
        lambda: library.open_array(store={}, mode="w", shape=3, **both),
        lambda: library.create(3, store={}, **both),
        lambda: library.save(tmp_path / "a", np.arange(3), **both),
        lambda: library.save_array(tmp_path / "a", np.arange(3), **both),
        lambda: library.save_group(tmp_path / "a", np.arange(3), **both),
        lambda: library.load(tmp_path, **both),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="zarr_format 3 does not match zarr_version 2, please only set one"):
            call()
    assert not (tmp_path / "a").exists()


def test_deprecated_modules_warn_where_they_are_imported(tmp_path: Path) -> None:
    (tmp_path / "use.py").write_text(
        "import zarr\nimport zarr.convenience\nfrom zarr.creation import ones\nimport zarr.convenience\n"
    )
    code = "import tessarr.as_zarr; tessarr.as_zarr.install(); import use"
    command = [sys.executable, "-W", "always::DeprecationWarning:use", "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    found = [line.partition("use.py:")[2] for line in run.stderr.splitlines() if "use.py:" in line]
    text = "is deprecated. Import these functions from the top level zarr. namespace instead."
    assert found == [
        f"2: ZarrDeprecationWarning: zarr.convenience {text}",
        f"3: ZarrDeprecationWarning: zarr.creation {text}",
    ]
