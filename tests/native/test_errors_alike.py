"""What is damaged is refused by both engines alike: equal values, or the same class of error."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tessarr
from tessarr.engine.native.engine import NativeEngine
from tessarr.engine.reference.engine import ReferenceEngine
from tessarr.errors import TessarrError, UnknownCodecError
from tests.narrow import array_of
from tests.native.test_equality import layouts, make, put, random_values, selections, v1_documents, v3_documents

REFERENCE = ReferenceEngine()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One directory for the arrays of all examples."""
    return tmp_path_factory.mktemp("errors")


def damaged(data: bytes, rng: random.Random) -> bytes:
    """`data` cut, prolonged, emptied, or with one byte changed; the ends, where headers and indices are, more often."""
    if not data:
        return b"\0"
    kind, at = (
        rng.randrange(5),
        rng.choice([rng.randrange(len(data)), rng.randrange(min(24, len(data))), len(data) - 1]),
    )
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data + rng.randbytes(rng.randrange(1, 9))
    if kind == 2:
        return b""
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def outcome(engine: Any, array: Any, where: Any) -> npt.NDArray[Any] | type[Exception]:
    """What a read gives: values, or the class of the error."""
    out = np.empty(where.shape, array._bound.dtype)
    try:
        engine.read(array._bound, where, out)
    except TessarrError as error:
        return type(error)
    return out


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_damaged_chunks_are_values_or_the_same_error_in_both_engines(folder: Path, data: st.DataObject) -> None:
    where = str(folder / "a")
    if data.draw(st.booleans()):
        array = make(where, data.draw(layouts()))
    else:
        array = put(where, data.draw(v3_documents() | v1_documents()))
    native = NativeEngine()
    assert native.supports(array._bound) is None
    array[...] = random_values(array._bound.dtype, array.shape, 1)
    files = [file for file in sorted(Path(where).rglob("*")) if file.is_file() and file.name not in DOCUMENTS]
    if not files:
        return
    rng = random.Random(data.draw(st.integers(0, 2**32)))
    file = rng.choice(files)
    file.write_bytes(damaged(file.read_bytes(), rng))
    for _ in range(2):
        selection = data.draw(selections(array.shape))
        ours, theirs = outcome(native, array, selection), outcome(REFERENCE, array, selection)
        if isinstance(ours, np.ndarray) and isinstance(theirs, np.ndarray):
            assert ours.tobytes() == theirs.tobytes()
        else:
            assert ours is theirs


DOCUMENTS = {"zarr.json", ".zarray", ".zattrs", "meta", "attrs"}


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize(
    "compressor", [{"id": "zlib", "level": 99}, {"id": "zstd", "level": 1, "something": 1}, {"id": "nonesuch"}]
)
def test_an_array_whose_codec_cannot_be_made_opens_and_names_it_where_chunks_are_read(
    engine: str, compressor: dict[str, Any]
) -> None:
    document = {
        "zarr_format": 2,
        "shape": [2],
        "chunks": [2],
        "dtype": "<i4",
        "fill_value": 0,
        "order": "C",
        "filters": None,
    }
    store = {".zarray": json.dumps({**document, "compressor": compressor}).encode(), "0": b"12345678"}
    with tessarr.config.set({"engine": engine}):
        array = array_of(tessarr.open(store, mode="r"))
        assert array[:0].tolist() == []
        with pytest.raises(UnknownCodecError, match=compressor["id"]):
            array[...]
