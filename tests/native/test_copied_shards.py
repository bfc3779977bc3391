"""Updates of large shards copy the inner chunks that they leave: in pieces, byte by byte, on disk and in memory."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr

SHAPE, INNER = (1 << 20,), (1 << 15,)


@pytest.fixture(params=["disk", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A folder of the test, and one on a file system in memory where the system has the usual one."""
    if request.param == "disk" or not Path("/dev/shm").is_dir():
        yield tmp_path
        return
    made = Path(tempfile.mkdtemp(dir="/dev/shm"))
    yield made
    shutil.rmtree(made)


def inner_chunks(array: tessarr.Array) -> list[bytes]:
    """The stored bytes of the inner chunks of the only shard, by its index at the end."""
    stored = bytes(array.store.get("c/0") or b"")
    index = np.frombuffer(stored[-(16 * 32 + 4) : -4], "<u8").reshape(-1, 2)
    return [stored[offset : offset + nbytes] for offset, nbytes in index.tolist()]


@pytest.mark.parametrize("compressors", [None, "auto"])
@pytest.mark.parametrize("changed", [(0,), (31,), (7, 8, 20), tuple(range(1, 32, 2))], ids=str)
def test_what_an_update_leaves_keeps_its_bytes(folder: Path, compressors: Any, changed: tuple[int, ...]) -> None:
    values = np.random.default_rng(3).integers(0, 1 << 12, SHAPE).astype("u2")  # 2 MiB, 1.6 MiB compressed
    made = {}
    for engine in ("reference", "native"):
        with tessarr.config.set({"engine": engine}):
            array = tessarr.create_array(
                str(folder / engine), shape=SHAPE, chunks=INNER, shards=SHAPE, dtype="u2", compressors=compressors
            )
            array[:] = values
            before = inner_chunks(array)
            for number in changed:
                array[number * INNER[0] : number * INNER[0] + 5] = 9
        after = inner_chunks(array)
        assert [number for number in range(32) if after[number] != before[number]] == list(changed)
        made[engine] = array[:]
    assert np.array_equal(made["native"], made["reference"])
