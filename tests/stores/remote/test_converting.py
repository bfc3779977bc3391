"""Files behind S3 and HTTP, and in memory, are converted as local ones are, by ranged reads."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
import tessarr.plan
from tessarr.errors import ConflictError, StoreError, UnsupportedOperationError
from tessarr.stores.url import store_from
from tessarr.tools.convert import convert, save_file_references
from tessarr.tools.digest import digest
from tessarr.tools.sources import remote_file
from tessarr.tools.sources.remote_file import BLOCK, RemoteFile, listed
from tests.narrow import array_of
from tests.stores.remote.proxy import Proxy
from tests.stores.remote.servers import S3_OPTIONS, Server

h5py = pytest.importorskip("h5py", reason="belongs to the extra [convert]")
netcdf4 = pytest.importorskip("netCDF4", reason="belongs to the extra [convert]")
nibabel = pytest.importorskip("nibabel", reason="belongs to the extra [convert]")
tifffile = pytest.importorskip("tifffile", reason="belongs to the extra [convert]")

_number = itertools.count()


def netcdf(form: str, start: int = 0) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with netcdf4.Dataset(path, "w", format=form) as file:
            for name, length in (("time", None), ("x", 5), ("lone", 3)):
                file.createDimension(name, length)
            time = file.createVariable("time", "f8", ("time",))
            time.units, time[:] = "days since 2000-01-01", np.arange(start, start + 4)
            t = file.createVariable("t", "i2", ("time", "x"), fill_value=-1)
            t[:] = np.arange(20).reshape(4, 5) + 10 * start
            t.setncatts(
                {"units": "K", "scale_factor": np.float32(0.5), "tags": np.array([1, 2], "i4"), "one": np.array([7])}
            )
            letters = file.createVariable("letters", "S1", ("time", "x"))
            letters[:] = np.array([list("hello")] * 4, "S1")
            file.createVariable("number", "i4", ())[...] = 7
            file.setncatts({"title": "ü", "empty": ""})

    return write


def netcdf_of_two_dimensions(path: Path) -> None:
    with netcdf4.Dataset(path, "w") as file:
        for name, length in (("x", 5), ("y", 2)):
            file.createDimension(name, length)
        kind = file.createEnumType("i1", "kinds", {"low": 0, "high": 1})
        file.createVariable("kind", kind, ("x",))[:] = [0, 1, 0, 1, 1]
        file.createVariable("name", str, ("x",))[:] = np.array(list("abcde"), object)
        file.createVariable("x", "f4", ("x", "y"))[:] = 1  # has the name of a dimension, and two
        file.createVariable("y", "f4", ("x",))[:] = 2  # has the name of a dimension that it does not have
        group = file.createGroup("below")
        group.createVariable("z", "f4", ("y", "x"), zlib=True, chunksizes=(1, 5), fill_value=-5.0)[:] = 9


def hdf5(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["plain"] = np.arange(100.0).reshape(10, 10)
        file.create_dataset("chunked", data=np.arange(1000).reshape(100, 10), chunks=(10, 10), compression="gzip")
        file["text"] = ["ab", "c"]
        file["plain"].attrs["units"] = "K"


IMAGE = np.random.default_rng(0).integers(0, 9, (3, 130, 150)).astype("u2")
VOLUME = np.arange(24, dtype="i2").reshape(2, 3, 4)
FILES: dict[str, Callable[[Path], object]] = {
    "classic.nc": netcdf("NETCDF3_CLASSIC"), "offset.nc": netcdf("NETCDF3_64BIT_OFFSET"),
    "data.nc": netcdf("NETCDF3_64BIT_DATA"), "four.nc": netcdf("NETCDF4"), "two.nc": netcdf_of_two_dimensions,
    "a.h5": hdf5,
    "c.npy": lambda path: np.save(path, np.arange(12.0).reshape(3, 4)),
    "f.npy": lambda path: np.save(path, np.asfortranarray(np.arange(12.0).reshape(3, 4))),
    "text.npy": lambda path: np.save(path, np.array(["ab", "c"])),
    "a.npz": lambda path: np.savez(path, a=np.arange(3), b=np.arange(2)),
    "tiles.tif": lambda path: tifffile.imwrite(path, IMAGE, tile=(64, 64), compression="zlib", photometric="minisblack"),
    "strips.tif": lambda path: tifffile.imwrite(path, IMAGE, photometric="minisblack"),
    "a.nii": lambda path: nibabel.save(nibabel.Nifti1Image(VOLUME, np.eye(4)), path),
    "two.nii": lambda path: nibabel.save(nibabel.Nifti2Image(VOLUME, np.eye(4)), path),
    "a.nii.gz": lambda path: nibabel.save(nibabel.Nifti1Image(VOLUME, np.eye(4)), path),
}  # fmt: skip


def in_memory(path: Path) -> str:
    """Copy a file to a store in memory. Returns its URL."""
    url = f"memory://files{next(_number)}"
    store_from(url)[0].set(f"run/{path.name}", path.read_bytes())
    return f"{url}/run/{path.name}"


def in_s3(server: Server, proxy: Proxy, *paths: Path) -> str:
    """Copy files to a new folder of the bucket. Returns its URL, through the proxy."""
    folder = f"folder{next(_number)}"
    (server.root / "data" / "bucket" / folder).mkdir()
    for path in paths:
        (server.root / "data" / "bucket" / folder / path.name).write_bytes(path.read_bytes())
    return f"s3+http://{proxy.address}/bucket/{folder}"


@pytest.mark.parametrize("name", FILES)
def test_a_file_in_a_store_becomes_what_the_same_local_file_becomes(tmp_path: Path, name: str) -> None:
    FILES[name](tmp_path / name)
    here = convert(tmp_path / name, tmp_path / "here.zarr")
    there = convert(in_memory(tmp_path / name), tmp_path / "there.zarr")
    assert there.to_json()["nodes"] == here.to_json()["nodes"]
    assert digest(tessarr.open(tmp_path / "there.zarr")) == digest(tessarr.open(tmp_path / "here.zarr"))


def test_many_files_in_s3_are_joined_by_a_pattern_and_read_by_ranges(
    tmp_path: Path, s3: Server, s3_proxy: Proxy
) -> None:
    paths = [tmp_path / f"{number}.nc" for number in range(3)]
    for number, path in enumerate(paths):
        netcdf("NETCDF4" if number % 2 else "NETCDF4_CLASSIC", 4 * number)(path)
    (tmp_path / "other.txt").write_text("no file of the pattern")
    place = in_s3(s3, s3_proxy, *paths, tmp_path / "other.txt")
    convert(f"{place}/?.nc", tmp_path / "out.zarr", exclude=["number"], source_storage_options=S3_OPTIONS)
    group = tessarr.open_group(tmp_path / "out.zarr", mode="r")
    assert array_of(group["t"]).shape == (12, 5)
    assert array_of(group["t"])[:, 0].tolist() == [5 * row + 40 * number for number in range(3) for row in range(4)]
    gets = [seen for seen in s3_proxy.seen if seen.method == "GET" and seen.key.endswith(".nc")]
    assert gets
    assert all(seen.range is not None for seen in gets)


def test_a_scan_sends_few_requests_however_much_the_library_seeks(tmp_path: Path, s3: Server, s3_proxy: Proxy) -> None:
    path = tmp_path / "many.h5"
    with h5py.File(path, "w") as file:
        for number in range(200):
            data = np.random.default_rng(number).random((20, 64))
            file.create_dataset(f"a{number:03}", data=data, chunks=(1, 64))
    blocks = -(-path.stat().st_size // BLOCK)
    assert blocks > 10
    url = f"{in_s3(s3, s3_proxy, path)}/many.h5"
    s3_proxy.clear()
    assert save_file_references(url, tmp_path / "refs.json", source_storage_options=S3_OPTIONS) == 4000
    requests = [seen for seen in s3_proxy.seen if seen.key.endswith("many.h5")]
    assert len(requests) <= blocks
    refs = json.loads((tmp_path / "refs.json").read_text())["refs"]
    assert {entry[0] for entry in refs.values() if isinstance(entry, list)} == {url}
    s3_proxy.clear()
    store = {"s3": S3_OPTIONS}
    found = tessarr.open_array(f"reference:{tmp_path}/refs.json", path="a007", mode="r", storage_options=store)
    np.testing.assert_array_equal(found[:2], np.random.default_rng(7).random((20, 64))[:2])
    assert [seen.range is not None for seen in s3_proxy.seen] == [True] * len(s3_proxy.seen)


def test_plans_of_files_in_s3_hold_no_credential(
    tmp_path: Path, s3: Server, s3_proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    hdf5(tmp_path / "a.h5")
    url = f"{in_s3(s3, s3_proxy, tmp_path / 'a.h5')}/a.h5"
    options = {**S3_OPTIONS}
    plan = tessarr.plan.convert(url, tmp_path / "out.zarr", source_storage_options=options)
    plan.save(tmp_path / "PLAN")
    written = b"".join(one.read_bytes() for one in (tmp_path / "PLAN").rglob("*") if one.is_file())
    assert options["secret_access_key"].encode() not in written
    assert options["access_key_id"].encode() not in written
    for name, value in (
        ("ACCESS_KEY_ID", "access_key_id"),
        ("SECRET_ACCESS_KEY", "secret_access_key"),
        ("REGION", "region"),
    ):
        monkeypatch.setenv(f"AWS_{name}", options[value])
    assert tessarr.plan.load(tmp_path / "PLAN").run().finished
    made = tessarr.open_group(tmp_path / "out.zarr", mode="r")
    np.testing.assert_array_equal(array_of(made["chunked"])[...], np.arange(1000).reshape(100, 10))


def test_a_file_behind_http_is_converted_and_cannot_be_listed(tmp_path: Path, nginx: Server) -> None:
    name = f"web{next(_number)}.h5"
    hdf5(nginx.root / "data" / name)
    convert(f"http://{nginx.address}/{name}", tmp_path / "out.zarr")
    np.testing.assert_array_equal(array_of(tessarr.open_group(tmp_path / "out.zarr")["plain"])[1], np.arange(10.0, 20))
    with pytest.raises(UnsupportedOperationError, match=r"cannot list.*one by one"):
        convert(f"http://{nginx.address}/*.h5", tmp_path / "more.zarr")
    with pytest.raises(StoreError, match="no such file"):
        convert(f"http://{nginx.address}/none.h5", tmp_path / "more.zarr", kind="hdf5")


def test_a_server_without_ranges_is_refused_for_large_files(tmp_path: Path, nginx: Server) -> None:
    name = f"plain{next(_number)}.npy"
    np.save(nginx.root / "data" / name, np.zeros(BLOCK, "u2"))
    with pytest.raises(UnsupportedOperationError, match=r"whole files.*Download"):
        convert(f"http://{nginx.address}/plain/{name}", tmp_path / "out.zarr", kind="npy")


def test_a_file_that_changes_while_it_is_converted_is_named(tmp_path: Path, nginx: Server) -> None:
    path = nginx.root / "data" / f"unsteady{next(_number)}.nc"
    netcdf("NETCDF3_CLASSIC")(path)

    def change(*_: object) -> None:
        path.write_bytes(path.read_bytes() + b"x")

    with pytest.raises(ConflictError, match=rf"changed.*{path.name}"):
        convert(f"http://{nginx.address}/{path.name}", tmp_path / "out.zarr", progress=change)
    assert not (tmp_path / "out.zarr").exists()


def test_a_plan_says_which_files_each_worker_downloads(tmp_path: Path) -> None:
    for name in ("a.nii.gz", "a.nii", "a.h5"):
        FILES[name](tmp_path / name)
    downloaded = tessarr.plan.convert(in_memory(tmp_path / "a.nii.gz"), tmp_path / "out.zarr")
    assert "each worker downloads the files" in str(downloaded.describe())
    assert "compressed as a whole" in str(downloaded.describe())
    assert "downloads" not in str(tessarr.plan.convert(in_memory(tmp_path / "a.nii"), tmp_path / "out.zarr").describe())
    by_ranges = str(
        tessarr.plan.convert(in_memory(tmp_path / "a.h5"), tmp_path / "out.zarr", include=["text"]).describe()
    )
    assert "a package reads the values" in by_ranges
    assert "downloads" not in by_ranges


def test_listing_follows_the_segments_of_a_pattern() -> None:
    store, _ = store_from("memory://patterns")
    for key in ("a/1.nc", "a/2.nc", "a/3.txt", "b/1.nc", "c/d/1.nc"):
        store.set(key, b"x")
    assert listed("memory://patterns/a/*.nc") == ["memory://patterns/a/1.nc", "memory://patterns/a/2.nc"]
    assert listed("memory://patterns/[ab]/1.nc") == ["memory://patterns/a/1.nc", "memory://patterns/b/1.nc"]
    assert len(listed("memory://patterns/**/*.nc")) == 4
    with pytest.raises(StoreError, match="no file matches"):
        listed("memory://patterns/a/*.h5")


def test_reading_on_fetches_more_at_once_and_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_file, "BLOCK", 10)
    monkeypatch.setattr(remote_file, "_KEPT", 20)
    data = bytes(range(256)) * 40
    store, _ = store_from("memory://ahead")
    store.set("a", data)
    file = RemoteFile("memory://ahead/a")
    sent: list[tuple[int, int]] = []
    fetch = file._fetch

    def counted(start: int, stop: int) -> object:
        sent.append((start, stop))
        return fetch(start, stop)

    monkeypatch.setattr(file, "_fetch", counted)
    assert b"".join(iter(lambda: file.read(7), b"")) == data
    assert len(sent) <= 2 + len(data) / 10 / 16 + 4  # one block, two, four, … sixteen
    assert len(file._blocks) <= 20
    sent.clear()
    file.seek(-5, 2)
    assert file.read() == data[-5:]
    file.seek(15)
    assert file.read(30) == data[15:45]
    assert len(sent) <= 2
    assert file.read(0) == b""


def test_a_file_that_changes_while_it_is_read_is_an_error(nginx: Server) -> None:
    path = nginx.root / "data" / f"changing{next(_number)}.bin"
    path.write_bytes(b"a" * (3 * BLOCK))
    file = RemoteFile(f"http://{nginx.address}/{path.name}")
    path.write_bytes(b"b" * (3 * BLOCK + 1))
    file.seek(2 * BLOCK)
    with pytest.raises(StoreError, match="changed while"):
        file.read(10)


def test_references_to_files_of_fsspec_name_their_urls(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec", reason="belongs to the extra [fsspec]")
    hdf5(tmp_path / "a.h5")
    fsspec.filesystem("memory").pipe("/converted/a.h5", (tmp_path / "a.h5").read_bytes())
    url = "fsspec+memory://converted/a.h5"
    assert save_file_references(url, tmp_path / "refs.json", exclude=["text"]) == 11
    found: Any = tessarr.open_group(f"reference:{tmp_path}/refs.json", mode="r")["chunked"]
    np.testing.assert_array_equal(found[...], np.arange(1000).reshape(100, 10))
