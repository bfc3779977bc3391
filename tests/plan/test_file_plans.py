"""Plans that convert files: scanned when the plan is made, read by references in its tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

import tessarr
import tessarr.plan
from tessarr.cli import main
from tessarr.errors import ConflictError, UnsupportedOperationError


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


def test_a_list_of_files_is_refused(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py", reason="belongs to the extra [convert]")
    for number in range(2):
        with h5py.File(tmp_path / f"{number}.h5", "w") as file:
            file.create_dataset("a", data=np.arange(4))
            file["a"].dims[0].label = "time"
    files: Any = [tmp_path / "0.h5", tmp_path / "1.h5"]
    with pytest.raises(UnsupportedOperationError, match=r"one path or pattern.*Give a pattern"):
        tessarr.plan.convert(files, tmp_path / "a.zarr", along="time")
    assert not (tmp_path / "a.zarr").exists()
