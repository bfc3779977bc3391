"""Plans that convert files: scanned when the plan is made, read by references in its tasks."""

from __future__ import annotations

import json
import shutil
from base64 import b64encode
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from http.server import ThreadingHTTPServer
from multiprocessing import get_context
from pathlib import Path
from threading import Thread
from typing import Any, NoReturn

import numpy as np
import pytest

import tessarr
import tessarr.plan
from tessarr.cli import main
from tessarr.errors import (
    ConflictError,
    MetadataValidationError,
    StoreError,
    UnsupportedOperationError,
)
from tessarr.storage import LocalStore
from tessarr.tools.convert import convert, save_file_references
from tessarr.tools.digest import digest
from tessarr.tools.files.file_table import load_table
from tessarr.tools.gc import gc
from tests.narrow import array_of
from tests.ranged_files import RangedFiles


def test_many_files_are_converted_by_references_to_their_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    h5py = pytest.importorskip("h5py", reason="belongs to the extra [convert]")
    for number in range(3):
        with h5py.File(tmp_path / f"{number}.h5", "w") as file:
            file.create_dataset(
                "a", data=np.arange(40.0).reshape(4, 10) + 100 * number, chunks=(1, 10), compression="gzip"
            )
            file["a"].dims[0].label, file["a"].dims[1].label = "time", "x"
    dest = tmp_path / "a.zarr"
    arguments = ["--along", "time", "--chunks", "time=12,x=5", "--memory", "4kB", "--save", str(tmp_path / "PLAN")]
    assert main(["plan", "convert", str(tmp_path / "*.h5"), str(dest), *arguments]) == 0

    def read(*_: object) -> NoReturn:
        raise AssertionError("a task used the package of the format")

    monkeypatch.setattr("tessarr.tools.files.joined.FilesSource._read_by_package", read)
    plan = tessarr.plan.load(tmp_path / "PLAN")
    assert plan.run().finished
    made: Any = tessarr.open_group(dest)["a"]
    assert made.chunks == (12, 5)
    assert made[:, 0].tolist() == [100.0 * number + 10 * row for number in range(3) for row in range(4)]


def test_files_that_changed_since_a_plan_was_made_are_an_error(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py", reason="belongs to the extra [convert]")
    for number in range(2):
        with h5py.File(tmp_path / f"{number}.h5", "w") as file:
            file.create_dataset("a", data=np.arange(4))
            file["a"].dims[0].label = "time"
    tessarr.plan.convert(tmp_path / "*.h5", tmp_path / "a.zarr", along="time").save(tmp_path / "PLAN")
    with (tmp_path / "1.h5").open("ab") as more:
        more.write(b"x")
    with pytest.raises(ConflictError, match="changed"):
        tessarr.plan.load(tmp_path / "PLAN").run()


def test_the_size_of_a_plan_does_not_grow_with_the_number_of_files(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py", reason="belongs to the extra [convert]")
    sizes: list[int] = []
    for count in (3, 60):
        folder = tmp_path / f"{count:02}"
        folder.mkdir()
        for number in range(count):
            with h5py.File(folder / f"{number:03}.h5", "w") as file:  # of unlike lengths
                file.create_dataset("a", data=np.arange(1 + number % 3))
                file["a"].dims[0].label = "time"
        plan = tessarr.plan.convert(folder / "*.h5", tmp_path / f"{count:02}.zarr", along="time", chunks={"time": 2})
        plan.save(tmp_path / f"PLAN{count:02}")
        sizes.append((tmp_path / f"PLAN{count:02}" / "plan.json").stat().st_size)
    assert sizes[1] - sizes[0] < 20  # digits of lengths


def _write_rows(path: Path, number: int) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        file.create_dataset("a", data=np.arange(4) + 4 * number, chunks=(2,))
        file["a"].dims[0].label = "time"


@pytest.mark.parametrize("saved", [False, True])
def test_a_list_of_files_is_converted_also_by_other_processes_from_elsewhere(
    saved: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("h5py", reason="belongs to the extra [convert]")
    for number in range(3):
        _write_rows(tmp_path / f"{number}.h5", number)
    monkeypatch.chdir(tmp_path)
    plan = tessarr.plan.convert(["0.h5", Path("2.h5"), "1.h5"], "a.zarr", along="time", chunks=6, memory="1kB")
    if saved:
        plan.save("PLAN")
        plan = tessarr.plan.load(tmp_path / "PLAN")
        assert sorted(path.name for path in (tmp_path / "PLAN").iterdir() if path.suffix == ".json") == ["plan.json"]
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        assert plan.run(executor).finished
    made: Any = tessarr.open_group(tmp_path / "a.zarr")["a"]
    assert sorted(made[...].tolist()) == list(range(12))
    assert [path.name for path in (tmp_path / "a.zarr").iterdir() if path.name != "a"] == ["zarr.json"]


@pytest.mark.parametrize("path", ["", "node"])
def test_processes_read_the_table_of_a_plan_that_is_not_saved_and_scan_nothing(path: str, tmp_path: Path) -> None:
    pytest.importorskip("h5py", reason="belongs to the extra [convert]")
    for number in range(3):
        _write_rows(tmp_path / f"{number}.h5", number)
    base = tmp_path / "a.zarr"
    plan = tessarr.plan.convert(tmp_path / "*.h5", base, path=path, along="time", chunks=6, memory="1kB")
    _write_rows(tmp_path / "9.h5", 9)  # a worker that scanned would find it, and refuse
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        assert plan.run(executor).finished
    assert tessarr.open_group(base, path=path or None)["a"].shape == (12,)
    assert [left.name for left in tmp_path.rglob("*") if left.name.endswith((".files", ".partial"))] == []


def write_packed(path: Path, number: int, rows: int = 3) -> None:
    """Write a file with numbers in chunks, numbers without, text, and coordinates; packed in its own way, of its own chunks."""
    import h5py

    with h5py.File(path, "w") as file:
        start = 10 * number
        file["time"] = np.arange(start, start + rows)
        file["time"].make_scale("time")
        file["x"] = np.arange(4.0)
        file["x"].make_scale("x")
        data = np.arange(rows * 4, dtype="i2").reshape(rows, 4) + start
        packed = file.create_dataset("packed", data=data, chunks=(1 + number % 2, 4), compression="gzip")
        packed.attrs.update(scale_factor=np.float32(0.5 + number), _FillValue=np.int16(-1))
        plain = file.create_dataset("plain", data=data * 2, compression=[None, "gzip"][number % 2], chunks=(1, 4))
        text = file.create_dataset("text", data=[f"{number}-{row}" for row in range(rows)])
        for one in (packed, plain, text):
            one.dims[0].attach_scale(file["time"])
        for one in (packed, plain):
            one.dims[1].attach_scale(file["x"])


@pytest.mark.parametrize("unpack", [False, True])
def test_workers_read_the_table_that_the_planner_wrote_and_scan_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unpack: bool
) -> None:
    pytest.importorskip("h5py", reason="belongs to the extra [convert]")
    for number in range(5):
        write_packed(tmp_path / f"{number}.h5", number, rows=2 + number)
    options: dict[str, Any] = {"gaps": True, "chunks": {"time": 4}, "unpack": unpack}
    if not unpack:
        options["exclude"] = ["packed"]
        for number in range(5):
            import h5py

            with h5py.File(tmp_path / f"{number}.h5", "r+") as file:
                del file["packed"].attrs["scale_factor"]
    convert(tmp_path / "*.h5", tmp_path / "expected.zarr", **options)
    tessarr.plan.convert(tmp_path / "*.h5", tmp_path / "made.zarr", **options).save(tmp_path / "PLAN")

    def scanned(*_: object) -> NoReturn:
        raise AssertionError("a worker scanned the files")

    monkeypatch.setattr("tessarr.tools.files.scan.scan", scanned)
    for part in (1, 2):
        tessarr.plan.load(tmp_path / "PLAN").run_part(part, 2)
    assert tessarr.plan.load(tmp_path / "PLAN").finish().finished
    assert digest(tessarr.open(tmp_path / "made.zarr")) == digest(tessarr.open(tmp_path / "expected.zarr"))


def test_processes_read_the_table_of_a_saved_plan(tmp_path: Path) -> None:
    pytest.importorskip("h5py", reason="belongs to the extra [convert]")
    for number in range(3):
        write_packed(tmp_path / f"{number}.h5", number)
    (tmp_path / "PLAN").mkdir()
    plan = tessarr.plan.convert(tmp_path / "*.h5", tmp_path / "a.zarr", gaps=True, exclude=["packed"], unpack=True)
    plan.save(tmp_path / "PLAN" / "below")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        assert tessarr.plan.load(tmp_path / "PLAN" / "below").run(executor).finished
    made: Any = tessarr.open_group(tmp_path / "a.zarr")["text"]
    assert made[...].tolist() == [f"{number}-{row}" for number in range(3) for row in range(3)]


@pytest.mark.parametrize("change", ["append", "remove"])
def test_the_file_that_changed_is_named_when_it_is_read_and_when_the_plan_is_finished(
    tmp_path: Path, change: str
) -> None:
    pytest.importorskip("h5py", reason="belongs to the extra [convert]")
    for number in range(3):
        write_packed(tmp_path / f"{number}.h5", number)

    def spoil(path: Path) -> None:
        if change == "remove":
            path.unlink()
        else:
            path.write_bytes(path.read_bytes() + b"x")

    options: dict[str, Any] = {"gaps": True, "include": ["plain", "time", "x"], "chunks": {"time": 3}, "unpack": True}
    tessarr.plan.convert(tmp_path / "*.h5", tmp_path / "a.zarr", **options).save(tmp_path / "PLAN")
    assert tessarr.plan.load(tmp_path / "PLAN").run_part(1, 1).missing == 0
    spoil(tmp_path / "2.h5")
    with pytest.raises(ConflictError, match=r"changed.*2\.h5"):
        tessarr.plan.load(tmp_path / "PLAN").finish()
    assert not (tmp_path / "a.zarr").exists()
    if change == "append":
        tessarr.plan.convert(tmp_path / "*.h5", tmp_path / "b.zarr", **options).save(tmp_path / "MORE")
        spoil(tmp_path / "1.h5")
        with pytest.raises(ConflictError, match=r"changed.*1\.h5"):
            tessarr.plan.load(tmp_path / "MORE").run()


def test_a_plan_without_its_table_is_damaged(tmp_path: Path) -> None:
    pytest.importorskip("h5py", reason="belongs to the extra [convert]")
    write_packed(tmp_path / "0.h5", 0)
    tessarr.plan.convert(tmp_path / "*.h5", tmp_path / "a.zarr").save(tmp_path / "PLAN")
    (table,) = (tmp_path / "PLAN").glob("*.files")
    document = json.loads((table / "zarr.json").read_text())
    document["attributes"]["identity"] = "another"
    (table / "zarr.json").write_text(json.dumps(document))
    with pytest.raises(ConflictError, match="changed since the plan"):
        tessarr.plan.load(tmp_path / "PLAN").run()
    for damage in ({"tessarr_files": 99}, {"arrays": [{"path": 1}]}, {"arrays": None}, {"along": [1]}):
        document["attributes"] = {**document["attributes"], **damage}
        (table / "zarr.json").write_text(json.dumps(document))
        with pytest.raises(MetadataValidationError, match="missing or damaged"):
            tessarr.plan.load(tmp_path / "PLAN").run()
    shutil.rmtree(table)
    with pytest.raises(MetadataValidationError, match="missing or damaged"):
        tessarr.plan.load(tmp_path / "PLAN").run()


def test_garbage_collection_keeps_the_table_of_a_plan_and_knows_what_was_not_finished(tmp_path: Path) -> None:
    pytest.importorskip("h5py", reason="belongs to the extra [convert]")
    write_packed(tmp_path / "0.h5", 0)
    tessarr.plan.convert(tmp_path / "*.h5", tmp_path / "a.zarr").save(tmp_path / "PLAN")
    tessarr.plan.load(tmp_path / "PLAN").run_part(1, 1)
    found = gc(tmp_path / "PLAN", dry_run=True)
    assert [item for item in found.items if "plan" in str(item)]
    assert [*(tmp_path / "PLAN").glob("*.files")]


def test_the_table_takes_a_few_bytes_for_each_chunk_and_a_worker_reads_a_part_of_it(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py", reason="belongs to the extra [convert]")
    for number in range(8):
        with h5py.File(tmp_path / f"{number}.h5", "w") as file:
            file.create_dataset("a", data=np.arange(4000), chunks=(1,))
            file["a"].dims[0].label = "time"
    plan = tessarr.plan.convert(tmp_path / "*.h5", tmp_path / "a.zarr", along="time", chunks={"time": 4000})
    plan.save(tmp_path / "PLAN")
    (table,) = (tmp_path / "PLAN").glob("*.files")
    nbytes = sum(one.stat().st_size for one in table.rglob("*") if one.is_file())
    assert nbytes < 8 * 4000 * 8
    found = load_table(LocalStore(tmp_path / "PLAN"), table.name)
    assert isinstance(found.chunk._rows, tessarr.Array)
    found.chunk[0]
    found.chunk[31_999]
    assert len(found.chunk._blocks) == 2
    assert sum(block.nbytes for block in found.chunk._blocks.values()) < 2 * 8192 * 16 + 1


class _Guarded(RangedFiles):
    """Serves files to one user."""

    def do_GET(self) -> None:
        if self.headers.get("Authorization") == f"Basic {b64encode(b'me:hunter2').decode()}":
            super().do_GET()
        else:
            self.send_error(401)


def test_the_password_in_a_url_is_not_written_to_a_plan_nor_to_references(tmp_path: Path) -> None:
    pytest.importorskip("h5py", reason="belongs to the extra [convert]")
    for number in range(2):
        _write_rows(tmp_path / f"{number}.h5", number)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Guarded, directory=str(tmp_path)))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        host = f"127.0.0.1:{server.server_port}"
        files = [f"http://me:hunter2@{host}/{number}.h5" for number in range(2)]
        plan = tessarr.plan.convert(files, tmp_path / "a.zarr", along="time", chunks=6)
        plan.save(tmp_path / "PLAN")
        written = b"".join(path.read_bytes() for path in (tmp_path / "PLAN").rglob("*") if path.is_file())
        assert b"hunter2" not in written
        with pytest.raises(StoreError, match="401"):
            tessarr.plan.load(tmp_path / "PLAN").run(retries=0)
        headers = {"Authorization": f"Basic {b64encode(b'me:hunter2').decode()}"}
        assert tessarr.plan.load(tmp_path / "PLAN", storage_options={"headers": headers}).run().finished
        assert array_of(tessarr.open_group(tmp_path / "a.zarr")["a"])[...].tolist() == list(range(8))
        one = tessarr.plan.convert(files[0], tmp_path / "b.zarr")
        assert "hunter2" not in one._manifest.source.url
        assert one.run().finished
        for other in (f"http://you:2@{host}/1.h5", f"http://{host}/1.h5", str(tmp_path / "1.h5")):
            with pytest.raises(UnsupportedOperationError, match="one user at one server"):
                tessarr.plan.convert([files[0], other], tmp_path / "c.zarr", along="time")
        save_file_references(files, tmp_path / "refs.json", along="time")
        assert b"hunter2" not in (tmp_path / "refs.json").read_bytes()
        reference = f"reference:{tmp_path}/refs.json"
        found = tessarr.open_group(reference, storage_options={"headers": headers}, mode="r")["a"]
        assert array_of(found)[...].tolist() == list(range(8))
        (tmp_path / "bad.h5").write_bytes(bytes.fromhex("894844460d0a1a0a") + bytes(100))
        with pytest.raises(StoreError) as told:
            convert(f"http://me:hunter2@{host}/bad.h5", tmp_path / "d.zarr")
        assert "hunter2" not in str(told.value)
    finally:
        server.shutdown()
        server.server_close()
