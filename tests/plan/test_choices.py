"""What a user chooses for a plan: targets, chunks, codecs, data types and scratch directories."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
import tessarr.plan
from tessarr.cli import main
from tessarr.codecs.bytes_to_bytes.blosc import BloscCodec
from tessarr.errors import BaseZarrError, ReadOnlyError, UnsupportedOperationError
from tessarr.plan.strategies.strategy import Name

VALUES = np.arange(200, dtype="f8").reshape(20, 10)


@pytest.fixture
def source(tmp_path: Path) -> str:
    blosc = BloscCodec(typesize=8, shuffle="shuffle")
    tessarr.create_array(tmp_path / "a.zarr", data=VALUES, chunks=(5, 10), compressors=blosc)
    return str(tmp_path / "a.zarr")


def test_a_place_that_cannot_be_written_is_refused_before_anything_is_planned(source: str) -> None:
    with pytest.raises(ReadOnlyError):
        tessarr.plan.copy(source, "http://127.0.0.1:1/x.zarr")
    with pytest.raises(ReadOnlyError):
        tessarr.plan.rechunk(source, tessarr.storage.MemoryStore(read_only=True), path="x", chunks=(20, 1))


def test_an_icechunk_session_is_refused_with_what_writes_to_one(source: str) -> None:
    icechunk = pytest.importorskip("icechunk", reason="belongs to the extra [test]")
    session = icechunk.Repository.create(icechunk.in_memory_storage()).writable_session("main")
    with pytest.raises(UnsupportedOperationError, match=r"tessarr\.dask\.store or tessarr\.xarray\.to_zarr"):
        tessarr.plan.rechunk(source, session.store, path="z", chunks=(20, 1))


@pytest.mark.parametrize(("length", "chunks"), [(6, (6, 6)), (-1, (20, 10)), (np.int64(4), (4, 4))])
def test_one_length_holds_along_every_axis(length: Any, chunks: tuple[int, ...], source: str, tmp_path: Path) -> None:
    """As `tessarr.create_array` takes it."""
    assert tessarr.plan.rechunk(source, tmp_path / "b.zarr", chunks=length).run().finished
    assert tessarr.open_array(tmp_path / "b.zarr").chunks == chunks
    assert tessarr.plan.rechunk(source, tmp_path / "c.zarr", chunks=2, shards=4).run().finished
    made = tessarr.open_array(tmp_path / "c.zarr")
    assert (made.chunks, made.shards) == ((2, 2), (4, 4))


@pytest.mark.parametrize("strategy", ["direct", "staged"])
def test_chunks_and_shards_may_be_of_several_lengths(strategy: Name, source: str, tmp_path: Path) -> None:
    layouts: list[dict[str, Any]] = [
        {"chunks": [[5, 8, 7], [3, 3, 4]]}, {"chunks": [[5, 8, 7], -1]}, {"chunks": (5, 2), "shards": [[5, 15], [6, 4]]},
    ]  # fmt: skip
    for number, layout in enumerate(layouts):
        plan = tessarr.plan.rechunk(source, tmp_path / f"{number}.zarr", memory="4kB", strategy=strategy, **layout)
        assert plan.run().finished
        made = tessarr.open_array(tmp_path / f"{number}.zarr")
        grid: Any = made._metadata.chunk_grid.to_json()
        wanted = [length if isinstance(length, list) else 10 for length in layout.get("shards") or layout["chunks"]]
        assert grid["configuration"]["chunk_shapes"] == wanted
        assert (made[...] == VALUES).all()


@pytest.mark.parametrize("wrong", [[[5, 15], [3.5]], [[], 2], True, 2.5, [2.5, 2], {"x": "2"}])
def test_what_is_no_length_is_named(wrong: Any, source: str, tmp_path: Path) -> None:
    for what in ("chunks", "shards"):
        with pytest.raises(BaseZarrError, match=f"{what}: a length is a number"):
            tessarr.plan.rechunk(source, tmp_path / "b.zarr", **{what: wrong})


def test_the_command_line_recompresses_and_blosc_follows_the_data_type(source: str, tmp_path: Path) -> None:
    dest = str(tmp_path / "b.zarr")
    assert main(["rechunk", source, dest, "--dtype", "float32"]) == 0
    codec = tessarr.open_array(dest).compressors[0]
    assert isinstance(codec, BloscCodec)
    assert codec.typesize == 4
    assert (tessarr.open_array(dest)[...] == VALUES).all()
    options = ["--compressor", "gzip:7", "--filters", '[{"name": "transpose", "configuration": {"order": [1, 0]}}]']
    assert main(["plan", "rechunk", source, str(tmp_path / "c.zarr"), "--save", str(tmp_path / "P"), *options]) == 0
    assert main(["run", str(tmp_path / "P")]) == 0
    made = tessarr.open_array(tmp_path / "c.zarr")
    assert [codec.name for codec in (*made.filters, *made.compressors)] == ["transpose", "gzip"]
    assert main(["rechunk", source, str(tmp_path / "d.zarr"), "--codecs", '["bytes", "crc32c"]']) == 0
    assert [codec.name for codec in tessarr.open_array(tmp_path / "d.zarr").compressors] == ["crc32c"]


def test_a_relative_scratch_directory_is_found_from_elsewhere_and_created(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    plan = tessarr.plan.rechunk(
        source, tmp_path / "b.zarr", chunks=(20, 1), strategy="scratch", scratch="new/scratch", memory="3kB"
    )
    plan.save(tmp_path / "P")
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert tessarr.plan.load(tmp_path / "P").run().finished
    assert (tmp_path / "here" / "new" / "scratch").is_dir()


def test_the_command_line_plans_the_conversion_of_several_files(tmp_path: Path) -> None:
    files = [str(tmp_path / f"{name}.npy") for name in "ab"]
    for number, name in enumerate(files):
        np.save(name, VALUES + number)
    dest = str(tmp_path / "all.zarr")
    assert main(["plan", "convert", *files, dest, "--along", "run", "--save", str(tmp_path / "P")]) == 0
    assert main(["run", str(tmp_path / "P")]) == 0
    assert (tessarr.open_array(dest)[...] == np.stack([VALUES, VALUES + 1])).all()
