"""References in Kerchunk's Parquet form: our reader and fsspec's find the same bytes."""

from __future__ import annotations

import sys
from pathlib import Path

import fsspec
import numpy as np
import pytest

import tessarr
from tessarr import virtual
from tessarr.cli import main
from tessarr.errors import BaseZarrError, MissingDependencyError, UnsupportedOperationError
from tessarr.tools.convert import save_file_references
from tessarr.virtual import parquet_references
from tests.narrow import array_of

VALUES = np.arange(35, dtype="<i4").reshape(5, 7) + 1


def saved(tmp_path: Path, *, full: bool = True) -> Path:
    z = tessarr.create_array(f"{tmp_path}/day 1.zarr", shape=(5, 7), chunks=(2, 3), dtype="<i4", fill_value=0)
    z[...] = VALUES
    if not full:
        z[2:4, 3:6] = 0
        (tmp_path / "day 1.zarr/c/1/1").unlink(missing_ok=True)
    x = tessarr.create_array({}, data=np.arange(7.0), chunks=(7,))
    scalar = tessarr.create_array(f"{tmp_path}/s.zarr", data=np.float64(3.5))
    place = tmp_path / "refs.parq"
    assert virtual.save_references({"g/t": z, "s": scalar}, place, inline={"g/x": x}) == (10 if full else 9)
    return place


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("record_size", [4, 10_000])
def test_our_reader_finds_the_same_elements(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: bool, record_size: int
) -> None:
    monkeypatch.setattr(parquet_references, "RECORD_SIZE", record_size)
    place = saved(tmp_path, full=full)
    assert len([*(place / "g/t").iterdir()]) == -(-9 // record_size)
    group = tessarr.open_group(f"reference:{place}", mode="r")
    expected = VALUES.copy()
    if not full:
        expected[2:4, 3:6] = 0
    np.testing.assert_array_equal(array_of(group["g/t"])[...], expected)
    np.testing.assert_array_equal(array_of(group["g/x"])[...], np.arange(7.0))
    assert array_of(group["s"])[()] == 3.5


def test_fsspec_reads_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas", reason="fsspec reads Parquet references by pandas")
    monkeypatch.setattr(parquet_references, "RECORD_SIZE", 4)
    place = saved(tmp_path)
    fs = fsspec.filesystem("reference", fo=str(place), remote_protocol="file", lazy=True)
    fs.references.engine = "pyarrow"
    for i in range(3):
        for j in range(3):
            assert fs.cat(f"g/t/{i}.{j}") == (tmp_path / f"day 1.zarr/c/{i}/{j}").read_bytes()
    assert fs.cat("s/0") == (tmp_path / "s.zarr/c").read_bytes()
    ours = tessarr.storage.ReferenceStore.open(str(place))
    assert fs.cat("g/x/0") == bytes(memoryview(ours.get("g/x/0") or b""))


def test_what_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(tmp_path)
    z = tessarr.open_array(f"{tmp_path}/day 1.zarr", mode="r")
    with pytest.raises(UnsupportedOperationError, match="root"):
        virtual.save_references(z, tmp_path / "one.parquet")
    with pytest.raises(BaseZarrError, match="already"):
        virtual.save_references({"a": z}, tmp_path / "refs.parq")
    virtual.save_references({"a": z}, tmp_path / "refs.parq", overwrite=True)
    np.testing.assert_array_equal(
        tessarr.open_array(f"reference:{tmp_path}/refs.parq", path="a", mode="r")[...], VALUES
    )
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match="pyarrow"):
        virtual.save_references({"a": z}, tmp_path / "two.parq")
    assert not (tmp_path / "two.parq").exists()


def test_writing_over_references_removes_those_of_arrays_that_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_references, "RECORD_SIZE", 4)
    place = saved(tmp_path)
    (place / "g/t/refs.txt").write_text("not a record")
    z = tessarr.open_array(f"{tmp_path}/day 1.zarr", mode="r")
    monkeypatch.setattr(parquet_references, "RECORD_SIZE", 10)
    virtual.save_references({"a": z}, place, overwrite=True)
    left = sorted(one.relative_to(place).as_posix() for one in place.rglob("*") if one.is_file())
    assert left == [".zmetadata", "a/refs.0.parq", "g/t/refs.txt"]


def test_a_format_that_a_form_of_references_does_not_have_is_an_error(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", VALUES)
    with pytest.raises(UnsupportedOperationError, match=r"format 2.*format 3.*\.json"):
        save_file_references(tmp_path / "a.npy", tmp_path / "a.parq", zarr_format=3)
    with pytest.raises(UnsupportedOperationError, match=r"format 3.*format 2"):
        save_file_references(tmp_path / "a.npy", tmp_path / "a.zarr", zarr_format=2)
    arguments = ["convert", str(tmp_path / "a.npy"), str(tmp_path / "a.parq"), "--references", "--format"]
    assert main([*arguments, "3"]) != 0
    assert main([*arguments, "keep"]) == 2
    assert not (tmp_path / "a.parq").exists()


def test_the_command_line_writes_them(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py", reason="the source is an HDF5 file")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("t", data=VALUES, chunks=(2, 3))
    assert main(["convert", str(tmp_path / "a.h5"), str(tmp_path / "a.parquet"), "--references"]) == 0
    found = tessarr.open_array(f"reference:{tmp_path}/a.parquet", path="t", mode="r")
    np.testing.assert_array_equal(found[...], VALUES)
