"""zfp: what it refuses, what it does with damage, and streams of zarrs."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.codecs import ZfpCodec
from tessarr.common import extension
from tessarr.errors import CodecError, MetadataValidationError, MissingDependencyError
from tests.codecs.samples import data, numbers, spec_of

EXAMPLES: list[dict[str, Any]] = [
    {"mode": "reversible"},
    {"mode": "expert", "minbits": 1, "maxbits": 13, "maxprec": 19, "minexp": -2},
    {"mode": "fixed_accuracy", "tolerance": 0.05},
    {"mode": "fixed_precision", "precision": 19},
    {"mode": "fixed_rate", "rate": 10.5},
]
RUST = pytest.mark.skipif(
    not hasattr(extension.module(), "decode_step"), reason="the Rust module is not built, and does this alone"
)


@pytest.mark.spec("REG-11")
@pytest.mark.parametrize("configuration", EXAMPLES, ids=lambda configuration: configuration["mode"])
def test_the_documents_of_the_registry_come_back(configuration: dict[str, Any]) -> None:
    codec = ZfpCodec.from_json(configuration)
    assert codec.to_json() == {"name": "zfp", "configuration": configuration}
    codec.encoded_size(spec_of("float64", (4, 4)))


@pytest.mark.parametrize(
    "configuration",
    [
        {}, {"mode": "best"}, {"mode": None}, {"mode": "reversible", "rate": 1}, {"mode": "fixed_rate"},
        {"mode": "fixed_rate", "rate": "1"}, {"mode": "fixed_rate", "rate": True}, {"mode": "fixed_rate", "rate": -1},
        {"mode": "fixed_accuracy", "tolerance": float("nan")}, {"mode": "fixed_precision", "precision": 1.5},
        {"mode": "fixed_precision", "precision": -1}, {**EXAMPLES[1], "maxprec": 65}, {**EXAMPLES[1], "maxprec": 0},
        {**EXAMPLES[1], "minbits": 14}, {**EXAMPLES[1], "minbits": 1 << 31, "maxbits": 1 << 31},
        {**EXAMPLES[0], "write_header": False},
    ],
)  # fmt: skip
def test_another_configuration_is_refused(configuration: dict[str, Any]) -> None:
    with pytest.raises(MetadataValidationError):
        ZfpCodec.from_json(configuration)


@pytest.mark.spec("REG-20")
@pytest.mark.parametrize(
    ("configuration", "data_type", "shape"),
    [
        ({"mode": "reversible"}, "float32", (1, 1, 1, 1, 4)),
        ({"mode": "reversible"}, "complex64", (4,)),
        ({"mode": "reversible"}, "bool", (4,)),
        ({"mode": "reversible"}, "float8_e4m3", (4,)),
        ({"mode": "fixed_accuracy", "tolerance": 1}, "int32", (4,)),
        ({"mode": "expert", "minbits": 0, "maxbits": 8, "maxprec": 64, "minexp": -1074}, "float32", (4,)),
        ({"mode": "expert", "minbits": 0, "maxbits": 18, "maxprec": 64, "minexp": -1075}, "float64", (4,)),
        ({"mode": "fixed_rate", "rate": 1e9}, "float64", (4,)),
    ],
)
def test_chunks_that_zfp_cannot_hold_are_refused_when_the_chain_is_bound(
    configuration: dict[str, Any], data_type: str, shape: tuple[int, ...]
) -> None:
    with pytest.raises(CodecError):
        ZfpCodec.from_json(configuration).encoded_size(spec_of(data_type, shape))


@pytest.mark.spec("REG-12")
@pytest.mark.parametrize("data_type", ["uint32", "uint64"])
@pytest.mark.parametrize("native", [pytest.param(True, marks=RUST), False], ids=["rust", "python"])
def test_the_upper_half_of_unsigned_types_is_an_error_not_another_value(
    data_type: str, native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not native:
        monkeypatch.setattr(extension, "module", lambda: None)
    spec = spec_of(data_type, (5,))
    largest = np.iinfo(data_type).max // 2
    held = np.array([0, 1, largest - 1, largest, 7], data_type)
    assert (ZfpCodec().decode(ZfpCodec().encode(held, spec), spec) == held).all()
    with pytest.raises(CodecError, match="upper half"):
        ZfpCodec().encode(np.array([0, 1, 2, largest + 1, 3], data_type), spec)


@pytest.mark.parametrize("data_type", ["float16", "bfloat16", "int8", "uint8", "int16", "uint16", "int64"])
@pytest.mark.parametrize("shape", [(), (1,), (9,), (4, 5), (3, 4, 5), (2, 3, 2, 5)])
def test_reversible_mode_gives_back_every_value(data_type: str, shape: tuple[int, ...]) -> None:
    spec = spec_of(data_type, shape)
    chunk = numbers(data_type, shape)
    if spec.dtype.kind in "iu" and chunk.size > 1:
        flat = chunk.reshape(-1)
        flat[0], flat[-1] = np.iinfo(spec.dtype).min, np.iinfo(spec.dtype).max
    assert (ZfpCodec().decode(ZfpCodec().encode(chunk, spec), spec) == chunk).all()


def test_dates_and_durations_are_integers() -> None:
    spec = spec_of({"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}}, (3, 4))
    chunk = (np.arange(12) * 86400).astype("M8[s]").reshape(3, 4)
    chunk[1, 1] = "NaT"
    decoded = ZfpCodec().decode(ZfpCodec().encode(chunk, spec), spec)
    assert decoded.dtype == chunk.dtype
    assert decoded.tobytes() == chunk.tobytes()


@RUST
@pytest.mark.spec("REG-20")
@pytest.mark.parametrize("configuration", EXAMPLES, ids=lambda configuration: configuration["mode"])
def test_damage_is_an_error_or_other_values_of_the_same_shape(configuration: dict[str, Any]) -> None:
    codec, spec = ZfpCodec.from_json(configuration), spec_of("float64", (9, 7))
    encoded = data(codec.encode(numbers("float64", (9, 7)), spec))
    for cut in range(0, len(encoded), 8):
        with pytest.raises(CodecError):
            codec.decode(encoded[:cut], spec)
    for wrong in (encoded + bytes(8), encoded + bytes(800)):
        with pytest.raises(CodecError):
            codec.decode(wrong, spec)
    for at in range(len(encoded)):
        changed = bytearray(encoded)
        changed[at] ^= 0xFF
        try:
            assert codec.decode(bytes(changed), spec).shape == (9, 7)
        except CodecError:
            continue


@RUST
@pytest.mark.spec("REG-20")
def test_a_few_bytes_do_not_take_the_memory_of_a_huge_chunk() -> None:
    spec = spec_of("float64", (1 << 15, 1 << 15))
    tracemalloc.start()
    with pytest.raises(CodecError):
        ZfpCodec().decode(bytes(64), spec)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


@RUST
def test_a_fixed_rate_that_zarrs_counted_for_three_axes_is_read_as_it_was_meant() -> None:
    # zarrs 0.23 gives a block 64 × rate bits, whatever the number of axes: that of four times the rate for two.
    spec = spec_of("float32", (9, 7))
    chunk = numbers("float32", (9, 7))
    as_zarrs = data(ZfpCodec("fixed_rate", rate=16.0).encode(chunk, spec))
    codec = ZfpCodec("fixed_rate", rate=4.0)
    assert len(data(codec.encode(chunk, spec))) == len(as_zarrs) // 4
    expected = ZfpCodec("fixed_rate", rate=16.0).decode(as_zarrs, spec)
    assert (codec.decode(as_zarrs, spec) == expected).all()


def test_expert_mode_without_rust_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extension, "module", lambda: None)
    spec = spec_of("float32", (4,))
    with pytest.raises(MissingDependencyError, match="Rust"):
        ZfpCodec.from_json(EXAMPLES[1]).encode(numbers("float32", (4,)), spec)


@RUST
@pytest.mark.spec("REG-11")
@pytest.mark.parametrize("shards", [None, (8, 8)])
def test_both_engines_write_the_same_chunks(shards: tuple[int, int] | None, tmp_path: Path) -> None:
    values = np.sin(np.arange(20 * 17) / 5).astype("f4").reshape(20, 17)
    stored = []
    for engine in ("native", "reference"):
        place = tmp_path / engine
        with tessarr.config.set({"engine": engine}):
            z = tessarr.create_array(
                str(place), shape=(20, 17), chunks=(4, 4), shards=shards, dtype="f4",
                serializer=ZfpCodec(), compressors=["crc32c"],
            )  # fmt: skip
            z[...] = values
            assert z.engine.name == engine
            stored.append({p.relative_to(place): p.read_bytes() for p in place.rglob("*") if p.is_file()})
            z[3:7, 2:9] = values[3:7, 2:9] + 1
            assert (z[3:7, 2:9] == values[3:7, 2:9] + 1).all()
            z[3:7, 2:9] = values[3:7, 2:9]
        with tessarr.config.set({"engine": "reference" if engine == "native" else "native"}):
            assert (tessarr.open_array(str(place))[...] == values).all()
    documents = [json.loads(found.pop(Path("zarr.json"))) for found in stored]
    assert documents[0] == documents[1]
    assert stored[0] == stored[1]
