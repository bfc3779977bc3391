"""Elements that are asked for one by one are those of the whole, wherever the engine remembers them from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.codecs import BytesCodec, GzipCodec, TransposeCodec

_LAYOUTS: dict[str, dict[str, Any]] = {
    "raw": {"chunks": (3, 4, 5), "compressors": None},
    "raw big": {"chunks": (3, 4, 5), "compressors": None, "serializer": BytesCodec("big")},
    "raw turned": {"chunks": (3, 4, 5), "compressors": None, "filters": [TransposeCodec((2, 0, 1))]},
    "gzip turned": {"chunks": (3, 4, 5), "compressors": [GzipCodec()], "filters": [TransposeCodec((1, 2, 0))]},
    "raw shards": {"chunks": (3, 2, 5), "shards": (6, 4, 10), "compressors": None},
    "gzip shards": {"chunks": (3, 2, 5), "shards": (6, 4, 10), "compressors": [GzipCodec()]},
    "turned shards": {
        "chunks": (3, 2, 5), "shards": (6, 4, 10), "compressors": None, "filters": [TransposeCodec((1, 2, 0))],
    },
    "v2": {"chunks": (3, 4, 5), "compressors": None, "zarr_format": 2, "order": "F"},
    "bool": {"chunks": (3, 4, 5), "compressors": None, "dtype": "?"},
    "rectilinear": {"chunks": ((1, 6), (2, 2, 4, 1), (11,)), "compressors": None},
}  # fmt: skip


@pytest.mark.parametrize("layout", _LAYOUTS)
def test_every_element_is_the_one_of_the_whole_also_after_others_have_written(tmp_path: Path, layout: str) -> None:
    random = np.random.default_rng(0)
    members = {"dtype": "i2", **_LAYOUTS[layout]}
    truth = random.integers(0, 2 if members["dtype"] == "?" else 9999, (7, 9, 11)).astype(members["dtype"])
    with tessarr.config.set({"array.rectilinear_chunks": True, "engine": "native"}):
        z = tessarr.create_array(tmp_path / "z", shape=truth.shape, **members)
        assert "native" in repr(z.engine)
        z[...] = truth
        other = tessarr.open_array(tmp_path / "z")
        for _ in range(6):
            places = random.integers(0, truth.shape, (40, 3))
            for place in [*places, *np.repeat(places[:8], 5, 0)]:
                i, j, k = place.tolist()
                value = z[i, j, k]
                assert value == truth[i, j, k]
                assert value.dtype == truth.dtype
            i, j, k = places[0].tolist()
            truth[i, j, k] = not truth[i, j, k] if truth.dtype == bool else truth[i, j, k] + 1
            other[i, j, k] = truth[i, j, k]
            assert z[i, j, k] == truth[i, j, k]
            truth[:, j] = truth[::-1, j]
            other[:, j] = truth[:, j]
            assert [z[n, j, k] for n in range(7)] == truth[:, j, k].tolist()


def test_an_element_of_a_chunk_that_was_deleted_is_the_fill_value(tmp_path: Path) -> None:
    z = tessarr.create_array(tmp_path / "z", shape=(8,), chunks=(4,), dtype="u1", compressors=None, fill_value=7)
    z[...] = np.arange(8)
    assert [z[5], z[5], z[6]] == [5, 5, 6]
    z.store.delete("c/1")
    assert [z[5], z[6], z[1]] == [7, 7, 1]


def test_an_element_of_a_chunk_that_became_short_is_an_error(tmp_path: Path) -> None:
    z = tessarr.create_array(tmp_path / "z", shape=(8,), chunks=(4,), dtype="u2", compressors=None)
    z[...] = np.arange(8)
    assert z[5] == 5
    z.store.set("c/1", b"123")
    with pytest.raises(tessarr.errors.CodecError, match="expected 8 bytes"):
        z[4]


def test_names_too_long_for_their_locks_are_left_to_the_engine_that_shortens_them(tmp_path: Path) -> None:
    shape = (10**12,) * 15
    keys = {"name": "default", "configuration": {"separator": "."}}
    z = tessarr.create_array(tmp_path / "z", shape=shape, chunks=(1,) * 15, dtype="u2", chunk_key_encoding=keys)
    assert z.engine.name == "reference"
    assert "too long" in z.engine.reason
    z[(10**12 - 1,) * 15] = 7
    assert z[(10**12 - 1,) * 15] == 7
