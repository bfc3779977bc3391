"""Names of zarr-python 2 that tools take from its modules: fill values of documents, and the file system of a store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tessarr.facade.zarr2 import meta, storage


@pytest.mark.parametrize(
    ("value", "dtype", "stored"),
    [
        (np.nan, "<f4", "NaN"),
        (-np.inf, ">f8", "-Infinity"),
        (np.int16(-5), ">i2", -5),
        (True, "?", True),
        (1 + 2j, "<c16", [1.0, 2.0]),
        ("x", "<U2", "x"),
        (b"ab", "S2", "YWI="),
        (np.datetime64("NaT"), "<M8[s]", -(2**63)),
        (None, "<i4", None),
        ("text", "O", "text"),
    ],
)
def test_fill_values_are_written_as_in_documents(value: Any, dtype: str, stored: Any) -> None:
    """What zarr-python 2.18.7 returns, but for a tuple of complex numbers, and texts without their padding."""
    assert meta.encode_fill_value(value, np.dtype(dtype)) == stored
    again = meta.decode_fill_value(json.loads(json.dumps(stored)), dtype)
    assert np.array(again == value).all() or (again != again and value != value)


@pytest.mark.parametrize("dtype", ["<f4", "|S3", "<M8[ns]", [("a", "<i4"), ("b", "|u1", (2,))]])
def test_data_types_come_back_from_documents(dtype: Any) -> None:
    native = np.dtype(dtype)
    assert meta.decode_dtype(json.loads(json.dumps(meta.encode_dtype(native)))) == native


def test_a_store_tells_its_file_system(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec", reason="belongs to the extra [fsspec]")
    for store in (storage.FSStore(str(tmp_path)), storage.FSStore(str(tmp_path), fs=fsspec.filesystem("file"))):
        store.set("a/0", b"x")
        assert store.fs.cat(f"{store.path}/a/0") == b"x"  # type: ignore[attr-defined]
    memory = fsspec.filesystem("memory")
    storage.FSStore("given", fs=memory).set("0", b"y")
    assert memory.cat("/given/0") == b"y"
    memory.rm("/given", recursive=True)
