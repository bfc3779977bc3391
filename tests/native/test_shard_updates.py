"""Shards of more than a mebibyte, changed again and again.

Their files are given room at once, and share what is not touched where the file system can; what is read back does not
depend on it, and no file grows without end.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr


@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.parametrize("compressors", [None, "auto"])
def test_many_changes_of_a_large_shard_are_kept_and_its_file_stays_small(
    tmp_path: Path, location: Any, compressors: Any
) -> None:
    random = np.random.default_rng(0)
    truth = random.integers(0, 1 << 16, (64, 128, 128)).astype("u2")
    z = tessarr.create_array(
        tmp_path / "z",
        shape=truth.shape,
        chunks=(8, 32, 32),
        shards={"shape": truth.shape, "index_location": location},
        dtype="u2",
        compressors=compressors,
    )
    z[...] = truth
    file = tmp_path / "z" / "c" / "0" / "0" / "0"
    first = file.stat().st_size
    assert first > 1 << 20
    for number in range(120):
        with tessarr.config.set({"engine": ("native", "native", "reference")[number % 3]}):
            start = [int(random.integers(0, n - 20)) for n in truth.shape]
            where = tuple(slice(i, i + int(random.integers(1, 20))) for i in start)
            z[where] = truth[where] = random.integers(0, 1 << 16, truth[where].shape)
            assert file.stat().st_size <= 1.6 * first
            assert file.stat().st_blocks * 512 <= 1.6 * first + (1 << 16)
    assert (z[...] == truth).all()
    with tessarr.config.set({"engine": "reference"}):
        assert (tessarr.open_array(tmp_path / "z")[...] == truth).all()


@pytest.mark.parametrize("order", ["morton", "lexicographic", "colexicographic"])
@pytest.mark.parametrize("location", ["start", "end"])
def test_several_threads_write_inner_chunks_in_the_given_order(tmp_path: Path, order: str, location: Any) -> None:
    values = np.random.default_rng(0).integers(1, 1 << 16, (96, 64, 160)).astype("u2")
    values[16:32, 8:24] = 0  # inner chunks that are left out
    stored = []
    for engine in ("native", "reference"):
        with tessarr.config.set({"engine": engine}):
            z = tessarr.create_array(
                tmp_path / engine,
                shape=values.shape,
                chunks=(8, 8, 16),
                shards={"shape": values.shape, "index_location": location, "subchunk_write_order": order},
                dtype="u2",
                compressors=None,
                fill_value=0,
            )
            assert z.engine.name == engine
            z[...] = values
            stored.append((tmp_path / engine / "c" / "0" / "0" / "0").read_bytes())
    assert stored[0] == stored[1]
