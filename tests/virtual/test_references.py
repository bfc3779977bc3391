"""Arrays saved as references: other readers find the same elements, and what cannot be referred to is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr import virtual
from tessarr.cli import main
from tessarr.errors import BaseZarrError, ContainsArrayError, ForbiddenPlaceError, UnsupportedOperationError
from tests.narrow import array_of
from tests.stores.contract import ENGINES

DAYS = [np.arange(12).reshape(3, 4) + 100 * day for day in (1, 2, 3)]


@pytest.fixture
def days(tmp_path: Path) -> list[tessarr.Array]:
    return [
        tessarr.create_array(f"{tmp_path}/day {number}.zarr", data=values, chunks=(3, 2), dimension_names=["y", "x"])
        for number, values in enumerate(DAYS)
    ]


def reopened(place: Path, folder: Path, path: str = "") -> tessarr.Array:
    return tessarr.open_array(place, path=path, mode="r", storage_options={"manifest": {"allow": [str(folder)]}})


@pytest.mark.spec("ZEP1-14", "ZEP1-19")
@pytest.mark.parametrize("engine", ENGINES)
def test_a_virtual_array_is_saved_as_a_manifest(days: list[tessarr.Array], tmp_path: Path, engine: str) -> None:
    joined = virtual.concat([days[0], days[1].lazy[:, 2:], days[2].lazy[:, :2]], axis=1, attributes={"a": 1})
    z = virtual.stack([joined, joined], dimension_names=["t", "y", "x"])
    assert virtual.save_references(z, tmp_path / "all.zarr") == 8
    with pytest.raises(ForbiddenPlaceError):
        tessarr.open_array(tmp_path / "all.zarr", mode="r")[...]
    with tessarr.config.set({"engine": engine}):
        again = reopened(tmp_path / "all.zarr", tmp_path)
        assert (again.dims, again.chunks) == (("t", "y", "x"), (1, 3, 2))
        np.testing.assert_array_equal(again[...], z[...])
    with pytest.raises(ContainsArrayError):
        virtual.save_references(z, tmp_path / "all.zarr")
    virtual.save_references(days[0], tmp_path / "all.zarr", overwrite=True)
    np.testing.assert_array_equal(reopened(tmp_path / "all.zarr", tmp_path)[...], DAYS[0])


def test_references_to_references_name_the_files(days: list[tessarr.Array], tmp_path: Path) -> None:
    virtual.save_references(days[0], tmp_path / "one.zarr")
    virtual.save_references(reopened(tmp_path / "one.zarr", tmp_path), tmp_path / "two.zarr")
    entries = json.loads((tmp_path / "two.zarr/manifest.json").read_text())
    assert entries["0.1"]["path"] == (tmp_path / "day 0.zarr/c/0/1").as_uri()
    np.testing.assert_array_equal(reopened(tmp_path / "two.zarr", tmp_path)[...], DAYS[0])


def test_a_kerchunk_file_is_read_by_fsspec_s_readers(days: list[tessarr.Array], tmp_path: Path) -> None:
    z = virtual.stack(days)
    assert virtual.save_references({"a/days": z, "first": days[0]}, tmp_path / "all.json") == 8
    with pytest.raises(BaseZarrError, match="already"):
        virtual.save_references(z, tmp_path / "all.json")
    group = tessarr.open_group(f"reference:{tmp_path}/all.json", mode="r")
    np.testing.assert_array_equal(array_of(group["a/days"])[...], DAYS)
    np.testing.assert_array_equal(array_of(group["first"])[...], DAYS[0])
    fsspec = pytest.importorskip("fsspec")
    theirs = fsspec.filesystem("reference", fo=str(tmp_path / "all.json"))
    chunk = (tmp_path / "day 1.zarr/c/0/1").read_bytes()
    assert theirs.cat("a/days/c/1/0/1") == chunk


def test_v2_zip_members_and_groups_are_referred_to(tmp_path: Path) -> None:
    root = tessarr.create_group(tmp_path / "g.zarr", zarr_format=2, attributes={"title": "t"})
    root.create_group("below").create_array(
        "x", data=DAYS[0], chunks=(2, 2), attributes={"_ARRAY_DIMENSIONS": ["y", "x"]}
    )
    root.create_array("scalar", data=np.array(5.0))
    assert virtual.save_references(root, tmp_path / "refs.zarr") == 5
    options = {"manifest": {"allow": [str(tmp_path)]}}
    again = tessarr.open_group(tmp_path / "refs.zarr", mode="r", storage_options=options)
    assert (dict(again.attrs), array_of(again["below/x"]).dims) == ({"title": "t"}, ("y", "x"))
    np.testing.assert_array_equal(array_of(again["below/x"])[...], DAYS[0])
    assert array_of(again["scalar"])[()] == 5.0
    with tessarr.storage.ZipStore(tmp_path / "a.zip", mode="w") as store:
        tessarr.create_array(store, data=DAYS[1], chunks=(3, 2))
    virtual.save_references(tessarr.open_array(tmp_path / "a.zip", mode="r"), tmp_path / "of_zip.zarr")
    np.testing.assert_array_equal(reopened(tmp_path / "of_zip.zarr", tmp_path)[...], DAYS[1])


def test_the_command_line_writes_references(
    days: list[tessarr.Array], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tessarr.create_group(tmp_path / "g.zarr", attributes={"title": "t"})
    root.create_array("x", data=DAYS[0], chunks=(3, 2))
    for dest in ("refs.json", "refs.zarr"):
        assert main(["convert", str(tmp_path / "g.zarr"), str(tmp_path / dest), "--references"]) == 0
        assert "2 references" in capsys.readouterr().out
    group = tessarr.open_group(f"reference:{tmp_path}/refs.json", mode="r")
    np.testing.assert_array_equal(array_of(group["x"])[...], DAYS[0])
    np.testing.assert_array_equal(reopened(tmp_path / "refs.zarr", tmp_path, "x")[...], DAYS[0])
    assert main(["convert", str(tmp_path / "g.zarr"), str(tmp_path / "refs.json"), "--references"]) == 2
    assert "already" in capsys.readouterr().err


def test_shards_and_the_edge_of_a_merge(tmp_path: Path) -> None:
    z = tessarr.create_array(tmp_path / "s.zarr", data=np.arange(10), chunks=2, shards=4, fill_value=-1)
    parts: dict[tuple[int], Any] = {(0,): z.lazy[:8], (8,): z}
    with_edge = virtual.merge(parts, fill_value=-1)
    assert virtual.save_references(with_edge, tmp_path / "m.zarr") == 5
    np.testing.assert_array_equal(reopened(tmp_path / "m.zarr", tmp_path)[...], with_edge[...])
    gap = virtual.merge({(4,): z.lazy[:4]}, (12,), fill_value=-1)
    virtual.save_references(gap, tmp_path / "gap.zarr")
    assert reopened(tmp_path / "gap.zarr", tmp_path)[...].tolist() == [-1] * 4 + [0, 1, 2, 3] + [-1] * 4


def test_a_missing_chunk_on_top_hides_what_is_below(tmp_path: Path) -> None:
    below = tessarr.create_array(tmp_path / "b.zarr", data=np.ones(4, "i4"), chunks=2)
    above = tessarr.create_array(tmp_path / "a.zarr", shape=2, dtype="i4", chunks=2)
    z = virtual.merge({(0,): below, (2,): above})
    virtual.save_references(z, tmp_path / "m.zarr")
    assert reopened(tmp_path / "m.zarr", tmp_path)[...].tolist() == z[...].tolist() == [1, 1, 0, 0]


def test_what_is_not_made_of_stored_chunks_is_refused(days: list[tessarr.Array], tmp_path: Path) -> None:
    other = tessarr.create_array(tmp_path / "o.zarr", data=DAYS[0], chunks=(3, 2), compressors=None)
    filled = tessarr.create_array(tmp_path / "f.zarr", data=DAYS[0], chunks=(3, 2), fill_value=7)
    sharded = tessarr.create_array(tmp_path / "s.zarr", data=DAYS[0], chunks=(3, 2), shards=(3, 4))
    cases: list[tuple[Any, str]] = [
        (virtual.concat([days[0].lazy[:2], days[1]]), "parts of chunks"),
        (virtual.concat([days[0].lazy[:, 1:], days[1]], axis=1), "parts of chunks"),
        (virtual.concat([days[0].lazy[::-1]]), "not consecutive"),
        (virtual.concat([days[0].lazy.T]), "another order"),
        (virtual.concat([days[0], other]), "other chunks or codecs"),
        (virtual.concat([days[0], filled]), "another fill value"),
        (virtual.stack([sharded]), "sharding_indexed"),
        (tessarr.array([1, 2]), "no URL"),
    ]
    for z, text in cases:
        with pytest.raises(UnsupportedOperationError, match=text):
            virtual.save_references(z, tmp_path / "x.zarr")
    assert not (tmp_path / "x.zarr").exists()


_FIRST = """
import sys
import tessarr
from tessarr.storage import ReferenceStore
store = ReferenceStore({"zarr.json": DOCUMENT})
assert "asyncio" not in sys.modules
assert tessarr.open(store, mode="r").shape == (4,)
"""


def test_references_that_are_all_in_the_document_are_the_first_that_a_process_reads() -> None:
    made: dict[str, bytes] = {}
    tessarr.create_array(made, shape=(4,), chunks=(4,), dtype="u1")
    code = _FIRST.replace("DOCUMENT", repr(bytes(made["zarr.json"]).decode()))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
