"""Blocks of a blosc chunk are decoded one by one, from its file and on several threads, to what the whole frame decodes to."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import tessarr
from tessarr.errors import TessarrError

N = 150_000
"""Elements of a chunk: more than two blocks are decoded on several threads."""
Values = npt.NDArray[np.uint16]


@pytest.fixture(autouse=True, params=[1, 4])
def threads(request: pytest.FixtureRequest) -> Iterator[None]:
    with tessarr.config.set({"threading.max_workers": request.param}):
        yield


def values_of(seed: int) -> Values:
    return np.random.default_rng(seed).integers(0, 300, N, dtype=np.uint16)


def stored(path: Path, frame: bytes) -> Path:
    """Store an array of one chunk, whose bytes are `frame`."""
    codec = {
        "name": "blosc",
        "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 2, "blocksize": 0},
    }
    tessarr.create_array(path, shape=(N,), chunks=(N,), dtype="u2", compressors=[codec], overwrite=True)
    (path / "c").mkdir(exist_ok=True)
    (path / "c" / "0").write_bytes(frame)
    return path


def outcome(path: Path, engine: str, part: Any) -> Any:
    """Return what an engine reads, or how it fails."""
    with tessarr.config.set({"engine": engine}):
        try:
            return np.asarray(tessarr.open_array(path, mode="r")[part]).tobytes()
        except TessarrError as error:
            return type(error)


def blocks_of(frame: bytes) -> list[bytes]:
    """Return the encoded blocks of a frame, which several threads of blosc may have stored in any order."""
    nbytes, blocksize, _ = struct.unpack_from("<III", frame, 4)
    starts = struct.unpack_from(f"<{-(-nbytes // blocksize)}I", frame, 16)
    return [frame[start : min((n for n in starts if n > start), default=len(frame))] for start in starts]


def framed(frame: bytes, blocks: list[bytes], order: list[int]) -> bytes:
    """Return the frame with its blocks stored in the order of the numbers `order`."""
    places, body = [0] * len(blocks), b""
    for number in sorted(range(len(blocks)), key=lambda number: order[number % len(order)]):
        places[number] = 16 + 4 * len(blocks) + len(body)
        body += blocks[number]
    return frame[:16] + struct.pack(f"<{len(blocks)}I", *places) + body


parts = st.one_of(
    st.just(slice(None)),
    st.tuples(st.integers(0, N - 1), st.integers(1, 30_000)).map(lambda pair: slice(pair[0], sum(pair))),
    st.integers(0, N - 1),
)


@given(
    st.integers(0, 3),
    st.sampled_from(["lz4", "zstd", "blosclz"]),
    st.sampled_from([0, 1 << 14, 1 << 16, 100_001]),
    st.sampled_from([0, 1, 2]),
    st.lists(st.integers(0, 9), min_size=1, max_size=9),
    parts,
)
def test_blocks_in_any_order_decode_to_the_values(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    compressor: str,
    blocksize: int,
    shuffle: int,
    order: list[int],
    part: Any,
) -> None:
    values = values_of(seed)
    frame = bytes(numcodecs.Blosc(compressor, 5, shuffle, blocksize).encode(values))
    if not frame[2] & 2:  # else the data is stored without blocks
        frame = framed(frame, blocks_of(frame), order)
    path = stored(tmp_path_factory.mktemp("a"), frame)
    assert outcome(path, "native", part) == values[part].tobytes()


@given(st.data(), parts)
def test_damaged_frames_are_read_or_refused_as_by_the_reference_engine(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, part: Any
) -> None:
    frame = bytearray(numcodecs.Blosc("lz4", 5, 1, 1 << 16).encode(values_of(0)))
    for _ in range(data.draw(st.integers(0, 2))):
        at = data.draw(st.one_of(st.integers(0, 40), st.integers(0, len(frame) - 5)))
        frame[at : at + 4] = struct.pack(
            "<I", data.draw(st.one_of(st.integers(0, len(frame)), st.integers(0, 2**32 - 1)))
        )
    path = stored(tmp_path_factory.mktemp("a"), bytes(frame))
    whole = outcome(path, "reference", slice(None))
    native = outcome(path, "native", slice(None))
    assert native == whole or (isinstance(native, type) and isinstance(whole, type))
    if isinstance(whole, bytes):
        values = np.frombuffer(whole, np.uint16)
        assert outcome(path, "native", part) == values[part].tobytes()


def test_blocks_that_overlap_are_decoded(tmp_path: Path) -> None:
    values = np.tile(np.arange(1 << 15, dtype=np.uint16), 5)[:N]
    frame = bytes(numcodecs.Blosc("lz4", 5, 1, 1 << 16).encode(values))
    blocks = blocks_of(frame)
    assert blocks[0] == blocks[1]
    frame = framed(frame, blocks, [0, 1, 2, 3])
    frame = frame[:20] + frame[16:20] + frame[24:]
    path = stored(tmp_path, frame)
    for part in (slice(None), slice(30_000, 70_000), 40_000):
        assert outcome(path, "native", part) == values[part].tobytes()


@given(st.integers(1, 3), st.sampled_from(["lz4", "blosclz", "zstd"]), st.sampled_from(["u1", "u2", "f8"]))
@example(2, "lz4", "u2")
def test_chunks_are_encoded_to_the_same_bytes_by_any_number_of_threads(
    tmp_path_factory: pytest.TempPathFactory, seed: int, compressor: str, dtype: str
) -> None:
    values = values_of(seed).astype(dtype)
    configuration = {
        "cname": compressor,
        "clevel": 5,
        "shuffle": "shuffle",
        "typesize": values.itemsize,
        "blocksize": 0,
    }
    found = []
    for number in (1, 4):
        with tessarr.config.set({"threading.max_workers": number}):
            path = tmp_path_factory.mktemp("a") / "z"
            codec = {"name": "blosc", "configuration": configuration}
            array = tessarr.create_array(path, shape=(N,), chunks=(N,), dtype=dtype, compressors=[codec])
            array[:] = values
        found.append((path / "c" / "0").read_bytes())
    assert found[0] == found[1]
    assert np.array_equal(np.frombuffer(numcodecs.Blosc().decode(found[0]), dtype), values)
