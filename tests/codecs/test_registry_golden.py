"""Bytes of other implementations for the codecs of the registry's extensions, in both engines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.codecs.base import ChunkSpec
from tessarr.codecs.chain import BoundChain, split
from tessarr.codecs.parse import codec_from
from tessarr.common import extension
from tessarr.dtypes.parse import from_v3
from tests.codecs.samples import data

GOLDEN = Path(__file__).parent / "golden" / "registry"
ENTRIES = json.loads((GOLDEN / "index.json").read_text(encoding="utf-8"))
ALL = [pytest.param(entry, id=entry["file"].removesuffix(".bin")) for entry in ENTRIES]
SAME = [param for param in ALL if "given" in param.values[0]]  # type: ignore[operator]
RUST = pytest.mark.skipif(
    not hasattr(extension.module(), "decode_step"), reason="the Rust module is not built, and does this alone"
)


def elements(entry: dict[str, Any], member: str) -> np.ndarray[Any, Any]:
    dtype = from_v3(entry["data_type"]).dtype
    if "elements" in entry:
        return np.array([bytes.fromhex(word) for word in entry["elements"]], dtype)
    dtype = dtype.newbyteorder("<")
    return np.frombuffer(bytes.fromhex(entry[member]), dtype).reshape(entry["shape"])


def chain_of(entry: dict[str, Any]) -> BoundChain:
    data_type = from_v3(entry["data_type"])
    spec = ChunkSpec(tuple(entry["shape"]), data_type, data_type.default_fill())
    return BoundChain([codec_from(codec) for codec in entry["codecs"]], spec)


def exact(entry: dict[str, Any]) -> int:
    """How far a decoded value may be from the other implementation's: JPEG leaves rounding to the decoder."""
    return 1 if entry["codecs"] == ["jpeg"] else 0


def assert_same(decoded: np.ndarray[Any, Any], entry: dict[str, Any]) -> None:
    expected = elements(entry, "decoded")
    if exact(entry):
        assert np.abs(decoded.astype(int) - expected.astype(int)).max() <= exact(entry)
    elif expected.dtype == object:
        assert decoded.tolist() == expected.tolist()
    else:
        assert np.ascontiguousarray(decoded, expected.dtype).tobytes() == expected.tobytes()


def needs_rust(entry: dict[str, Any]) -> bool:
    names = json.dumps(entry["codecs"])
    return "lzw" in names or '"expert"' in names


def test_every_file_is_in_the_index_and_the_other_way_round() -> None:
    assert {path.name for path in GOLDEN.glob("*.bin")} == {entry["file"] for entry in ENTRIES}
    assert len(ENTRIES) >= 95


@pytest.mark.spec("REG-11", "REG-13", "REG-15", "REG-16", "N5-01", "N5-02")
@pytest.mark.parametrize("native", [pytest.param(True, marks=RUST), False], ids=["rust", "python"])
@pytest.mark.parametrize("entry", ALL)
def test_the_classes_decode_them(entry: dict[str, Any], native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not native:
        if needs_rust(entry):
            pytest.skip("only the Rust module does this")
        monkeypatch.setattr(extension, "module", lambda: None)
    decoded = chain_of(entry).decode((GOLDEN / entry["file"]).read_bytes())
    assert_same(decoded, entry)


@pytest.mark.spec("REG-11", "REG-12", "N5-01")
@pytest.mark.parametrize("native", [pytest.param(True, marks=RUST), False], ids=["rust", "python"])
@pytest.mark.parametrize("entry", SAME)
def test_the_classes_write_the_same_bytes(entry: dict[str, Any], native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not native:
        if needs_rust(entry):
            pytest.skip("only the Rust module does this")
        monkeypatch.setattr(extension, "module", lambda: None)
    given = elements(entry, "given")
    spec = from_v3(entry["data_type"]).dtype
    assert data(chain_of(entry).encode(given.astype(spec))) == (GOLDEN / entry["file"]).read_bytes()


@RUST
@pytest.mark.parametrize("entry", ALL)
def test_both_engines_read_them_as_a_chunk(entry: dict[str, Any]) -> None:
    values: dict[str, bytes] = {}
    filters, serializer, compressors = split([codec_from(codec) for codec in entry["codecs"]])
    shape = tuple(entry["shape"])
    how: dict[str, Any] = {"filters": filters, "serializer": serializer, "compressors": compressors}
    z = tessarr.create_array(values, shape=shape, chunks=shape, dtype=from_v3(entry["data_type"]), **how)
    values["/".join(["c", *"0" * len(shape)])] = (GOLDEN / entry["file"]).read_bytes()
    found = {}
    for engine in ("auto", "reference"):
        with tessarr.config.set({"engine": engine}):
            z = tessarr.open_array(values)
            found[z.engine.name] = z[...]
    served = {"jpeg", "numcodecs.lzma", "vlen-bytes", "scale_offset"}
    names = json.dumps(entry["codecs"])
    if not any(name in names for name in served) and "imagecodecs" not in names:
        assert set(found) == {"native", "reference"}
    for chunk in found.values():
        assert_same(chunk, entry)
