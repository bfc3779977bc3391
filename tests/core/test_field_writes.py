"""Writing one field of structured elements leaves the others alone, also while others write them."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.errors import ArrayIndexError, ReadOnlyError

DTYPE = np.dtype([("a", "i4"), ("b", "f8"), ("c", "S3"), ("d", "i2", (2,))])


@pytest.mark.parametrize("zarr_format", [2])
def test_a_field_is_written_by_name_in_every_form(zarr_format: int) -> None:
    z = tessarr.create_array({}, shape=(6, 4), chunks=(4, 3), dtype=DTYPE, zarr_format=zarr_format)
    model = np.zeros((6, 4), DTYPE)
    z["a"] = model["a"] = np.arange(24).reshape(6, 4)
    z["b", 1:3] = 2.5
    model["b"][1:3] = 2.5
    z["c", 0, 0] = model["c"][0, 0] = b"xyz"
    z["d", 5] = model["d"][5] = [7, 8]
    z.set_orthogonal_selection(([0, 5], slice(None)), -1, fields="a")
    model["a"][[0, 5]] = -1
    new = np.zeros((6,), [("a", "i4"), ("b", "f8")])
    new["a"], new["b"] = 5, 6
    z.set_basic_selection((slice(None), 2), new, fields=["a", "b"])
    model["a"][:, 2], model["b"][:, 2] = 5, 6
    assert z[...].tobytes() == model.tobytes()
    with pytest.raises(ArrayIndexError, match="no such field"):
        z.set_basic_selection(Ellipsis, 1, fields="z")


def test_a_field_of_a_read_only_array_is_not_written() -> None:
    store: dict[str, bytes] = {}
    tessarr.create_array(store, shape=(2,), dtype=[("a", "i4"), ("b", "i4")])
    with pytest.raises(ReadOnlyError):
        tessarr.open_array(store, mode="r")["a"] = 1


@pytest.mark.parametrize("shards", [None, (8,)])
def test_writers_of_different_fields_of_one_chunk_lose_nothing(tmp_path: Path, shards: Any) -> None:
    dtype = [(name, "i4") for name in "abcdefgh"]
    place = str(tmp_path / "a.zarr")
    tessarr.create_array(place, shape=(8,), chunks=(4,) if shards else (8,), shards=shards, dtype=dtype)

    def write(name: str) -> None:
        z = tessarr.open_array(place, mode="r+")
        for value in range(1, 11):
            z[name] = value

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcdefgh"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = tessarr.open_array(place, mode="r")[...]
    assert all((found[name] == 10).all() for name in "abcdefgh")
    assert not list(tmp_path.rglob("*tessarr*"))
