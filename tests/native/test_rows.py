"""Large blosc chunks are decoded and encoded some rows at a time: to the same values, and the same bytes, as at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tessarr

SHAPES = [(700, 900), (3, 300, 400), (1, 1, 800, 500), (9, 41, 1000)]


def _codec(
    itemsize: int, shuffle: str = "shuffle", cname: str = "lz4", level: int = 5, blocksize: int = 0
) -> list[Any]:
    configuration = {
        "cname": cname, "clevel": level, "shuffle": shuffle, "typesize": itemsize, "blocksize": blocksize
    }  # fmt: skip
    return [{"name": "blosc", "configuration": configuration}]


def _values(shape: tuple[int, ...], dtype: str) -> Any:
    numbers = np.random.default_rng(7).integers(0, 5000, shape)
    return numbers % 2 == 0 if dtype == "?" else numbers.astype(dtype)


@st.composite
def _cases(draw: st.DrawFn) -> dict[str, Any]:
    shape = draw(st.sampled_from(SHAPES))
    dtype = draw(st.sampled_from(["<f8", ">i4", "<u2", "?"]))
    selection = []
    for n in shape:
        start = draw(st.integers(0, n - 1))
        selection.append(slice(start, draw(st.integers(start + 1, n)), draw(st.sampled_from([1, 1, 3]))))
    return {
        "shape": shape, "dtype": dtype, "selection": tuple(selection),
        "codec": _codec(
            np.dtype(dtype).itemsize, draw(st.sampled_from(["shuffle", "noshuffle", "bitshuffle"])),
            draw(st.sampled_from(["lz4", "zstd"])), draw(st.sampled_from([0, 1, 5])),
            draw(st.sampled_from([0, 1 << 14, 100_001])),
        ),
        "order": draw(st.permutations(range(len(shape)))), "edge": draw(st.booleans()),
    }  # fmt: skip


@given(case=_cases())
@settings(max_examples=40)
def test_rows_are_what_the_whole_chunk_is(tmp_path_factory: pytest.TempPathFactory, case: dict[str, Any]) -> None:
    """Alone a thread goes row by row; beside idle threads it decodes, and encodes, the whole chunk with them."""
    shape, folder = case["shape"], tmp_path_factory.mktemp("a")
    values = _values(shape, case["dtype"])
    given_memory = np.zeros(tuple(2 * n for n in shape), values.dtype)[tuple(slice(0, n) for n in shape)]
    given_memory[...] = values  # not contiguous
    chunks = tuple(n + case["edge"] for n in shape)  # at the edge of the array, a chunk holds more than values
    filters = [{"name": "transpose", "configuration": {"order": list(case["order"])}}]
    stored, read = [], []
    for threads in (1, 4):
        with tessarr.config.set({"threading.max_workers": threads, "cache.nbytes": 0}):
            array = tessarr.create_array(
                folder / str(threads), shape=shape, chunks=chunks, dtype=case["dtype"], filters=filters,
                compressors=case["codec"],
            )  # fmt: skip
            array[...] = given_memory
            stored.append((folder / str(threads) / array._bound.key((0,) * len(shape))).read_bytes())
            read.append(array[case["selection"]])
    assert array.engine.name == "native"
    assert stored[0] == stored[1]
    for one in read:
        assert np.array_equal(one, values[case["selection"]])


def test_chunks_of_fill_values_are_not_stored(tmp_path: Path) -> None:
    with tessarr.config.set({"threading.max_workers": 1}):
        array = tessarr.create_array(
            tmp_path / "a", shape=(700, 1800), chunks=(700, 900), dtype="f4", compressors=_codec(4), fill_value=3
        )
        values = np.full((700, 1800), 3, "f4")
        values[699, 1799] = 4
        array[...] = values
    assert sorted(path.name for path in (tmp_path / "a" / "c" / "0").iterdir()) == ["1"]
    assert np.array_equal(array[...], values)


def test_a_damaged_chunk_is_an_error(tmp_path: Path) -> None:
    with tessarr.config.set({"threading.max_workers": 1, "cache.nbytes": 0}):
        array = tessarr.create_array(
            tmp_path / "a", shape=(700, 900), chunks=(700, 900), dtype="f4", compressors=_codec(4)
        )
        array[...] = np.random.default_rng(1).random((700, 900), "f4")
        path = tmp_path / "a" / "c" / "0" / "0"
        data = bytearray(path.read_bytes())
        data[16:20] = b"\xff\xff\xff\x7f"
        path.write_bytes(bytes(data))
        with pytest.raises(tessarr.errors.CodecError):
            array[:, :899]
