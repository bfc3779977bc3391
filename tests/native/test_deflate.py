"""gzip and zlib of level 1 have two encoders, chosen by the data: any decoder reads what either writes."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tessarr
from tessarr.storage import MemoryStore

pytest.importorskip("tessarr._native")

LEAST = 64 << 10
"""Chunks from this size on are sampled."""
SIZES = [LEAST - 1, LEAST, LEAST + 1, 5 * LEAST + 3]


def counts(size: int) -> bytes:
    """Counts of an instrument: few matches, and bytes that are not evenly distributed."""
    noise = np.random.default_rng(1).integers(0, 64, size // 2 + 1)
    return (1000 + 300 * np.sin(np.arange(size // 2 + 1) / 17) + noise).astype("<u2").tobytes()[:size]


def text(size: int) -> bytes:
    return b"".join(b"station %d at %d m\n" % (n, n * n % 977) for n in range(size // 12))[:size]


def between(outer: Callable[[int], bytes], inner: bytes, size: int) -> bytes:
    """Put `inner` into the middle of data of `size` bytes."""
    start = (size - len(inner)) // 2
    around = outer(size)
    return around[:start] + inner + around[start + len(inner) :]


DATA: dict[str, Callable[[int], bytes]] = {
    "random": lambda size: np.random.default_rng(0).bytes(size),
    "counts": counts,
    "waves": lambda size: np.sin(np.arange(size // 4 + 1) / 1000).astype("<f4").tobytes()[:size],
    "text": text,
    "zeros": bytes,
    "noise in the middle": lambda size: between(text, np.random.default_rng(2).bytes(8192), size),
    "text in the middle": lambda size: between(np.random.default_rng(3).bytes, text(8192), size),
}
MOST = {"random": 1.01, "counts": 1.06, "waves": 1.03, "noise in the middle": 1.5}
"""The size of what miniz_oxide encodes over that of zlib: more where the middle differs from the rest."""
CODECS: dict[str, tuple[dict[str, Any], Callable[[bytes], bytes]]] = {
    "gzip": ({"name": "gzip", "configuration": {"level": 1}}, gzip.decompress),
    "zlib": ({"name": "numcodecs.zlib", "configuration": {"level": 1}}, zlib.decompress),
}


def stored(data: bytes, codec: dict[str, Any]) -> bytes:
    """Return the chunk that the native engine stores for `data`."""
    store = MemoryStore()
    values: npt.NDArray[np.uint8] = np.frombuffer(data, np.uint8)
    array = tessarr.create_array(
        store, shape=values.shape, chunks=values.shape, dtype="u1", compressors=[codec], fill_value=None,
        config={"write_empty_chunks": True},
    )  # fmt: skip
    array[...] = values
    assert array.engine.name == "native"
    assert np.array_equal(array[...], values)
    return bytes(store.get("c/0") or b"")


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("codec", CODECS)
def test_other_decoders_read_it_and_its_size_is_that_of_level_1(codec: str, size: int, name: str) -> None:
    data = DATA[name](size)
    assert len(data) == size
    configuration, decode = CODECS[codec]
    encoded = stored(data, configuration)
    assert decode(encoded) == data
    assert len(encoded) <= MOST.get(name, 1.0) * len(zlib.compress(data, 1)) + 64


@pytest.mark.parametrize("codec", CODECS)
def test_equal_data_gives_equal_bytes_whatever_was_encoded_before(codec: str) -> None:
    configuration, _ = CODECS[codec]
    first = {name: stored(make(SIZES[-1]), configuration) for name, make in DATA.items()}
    again = {name: stored(DATA[name](SIZES[-1]), configuration) for name in reversed(DATA)}
    assert first == again


@pytest.mark.spec("V3-GZIP-03")
@pytest.mark.parametrize("name", ["random", "text"])
def test_neither_encoder_writes_a_time_or_a_platform(name: str) -> None:
    encoded = stored(DATA[name](LEAST), CODECS["gzip"][0])
    assert encoded[:10] == b"\x1f\x8b\x08" + bytes(5) + b"\x04\xff"
