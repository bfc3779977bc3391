"""Codecs that other packages offer to zarr-python, in the entry-point group ``zarr.codecs``."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr import registry
from tessarr.codecs.zarr_python import adapted
from tessarr.errors import CodecError, MetadataValidationError, MissingDependencyError

zarr = pytest.importorskip("zarr", reason="zarr-python is the extra `peers`")

PACKAGE = '''
import asyncio
from dataclasses import dataclass, replace
import numpy as np
from zarr.abc.codec import ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec
from zarr.dtype import Int16

@dataclass(frozen=True)
class Xor(BytesBytesCodec):
    """Every byte, combined with one byte; as coroutines that leave the thread."""
    byte: int = 255
    is_fixed_size = True
    @classmethod
    def from_dict(cls, data):
        return cls(**data.get("configuration", {}))
    def to_dict(self):
        return {"name": "example.xor", "configuration": {"byte": self.byte}}
    def compute_encoded_size(self, input_byte_length, chunk_spec):
        return input_byte_length
    async def _encode_single(self, chunk_bytes, chunk_spec):
        await asyncio.sleep(0)
        return chunk_spec.prototype.buffer.from_bytes(bytes(b ^ self.byte for b in chunk_bytes.to_bytes()))
    _decode_single = _encode_single

@dataclass(frozen=True)
class Halved(ArrayArrayCodec):
    """int32 as int16, and the axes in reverse."""
    is_fixed_size = True
    @classmethod
    def from_dict(cls, data):
        return cls()
    def to_dict(self):
        return {"name": "example.halved"}
    def resolve_metadata(self, spec):
        return replace(spec, shape=spec.shape[::-1], dtype=Int16(), fill_value=np.int16(spec.fill_value))
    def compute_encoded_size(self, input_byte_length, chunk_spec):
        return input_byte_length // 2
    def _encode_sync(self, chunk, spec):
        return spec.prototype.nd_buffer.from_numpy_array(chunk.as_numpy_array().T.astype("i2"))
    def _decode_sync(self, chunk, spec):
        return spec.prototype.nd_buffer.from_numpy_array(chunk.as_numpy_array().T.astype("i4"))
    async def _encode_single(self, chunk, spec):
        return self._encode_sync(chunk, spec)
    async def _decode_single(self, chunk, spec):
        return self._decode_sync(chunk, spec)

@dataclass(frozen=True)
class Text(ArrayBytesCodec):
    """Numbers as text. Its name says so when it is made."""
    is_fixed_size = False
    @classmethod
    def from_dict(cls, data):
        return cls()
    def to_dict(self):
        return {"name": "example.text"}
    def compute_encoded_size(self, input_byte_length, chunk_spec):
        raise NotImplementedError
    async def _encode_single(self, chunk, spec):
        text = " ".join(map(str, chunk.as_numpy_array().ravel().tolist()))
        return spec.prototype.buffer.from_bytes(text.encode())
    async def _decode_single(self, data, spec):
        numbers = np.array(data.to_bytes().decode().split(), spec.dtype.to_native_dtype()).reshape(spec.shape)
        return spec.prototype.nd_buffer.from_numpy_array(numbers)

class Dropping(Xor):
    async def _encode_single(self, chunk_bytes, chunk_spec):
        return None

class NoCodec:
    pass
'''
ENTRY_POINTS = """
[zarr.codecs]
example.xor = zarr_offer:Xor
example.halved = zarr_offer:Halved
example.text = zarr_offer:Text
example.dropping = zarr_offer:Dropping
example.none = zarr_offer:NoCodec
example.broken = zarr_offer_broken:Codec
example.ours = tessarr.codecs.bytes_to_bytes.gzip:GzipCodec
gzip = zarr_offer:Xor
"""


def install(folder: Path) -> None:
    """A distribution that offers codecs to zarr-python, as an installer would leave it in `folder`."""
    (folder / "zarr_offer.py").write_text(PACKAGE, encoding="utf-8")
    (folder / "zarr_offer_broken.py").write_text("raise ValueError('invalid literal for int(): post0')\n")
    info = folder / "zarr_offer-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: zarr-offer\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(textwrap.dedent(ENTRY_POINTS), encoding="utf-8")


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the distribution is."""
    folder = tmp_path_factory.mktemp("packages")
    install(folder)
    return folder


@pytest.fixture
def offered(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The distribution is installed, and nobody looked for it yet; zarr-python, which looks only once, knows its codecs."""
    monkeypatch.syspath_prepend(str(packages))
    importlib.invalidate_caches()
    registry._entry_points_read.clear()
    offer: Any = importlib.import_module("zarr_offer")
    for codec in (offer.Xor, offer.Halved, offer.Text):
        zarr.registry.register_codec("example." + codec.__name__.lower(), codec)


CHAINS: list[tuple[str, dict[str, Any]]] = [
    ("example.xor", {"compressors": [{"name": "example.xor", "configuration": {"byte": 15}}]}),
    ("example.halved", {"filters": [{"name": "example.halved"}]}),
    ("example.text", {"serializer": {"name": "example.text"}, "compressors": None}),
    ("in a shard", {"shards": (4, 6), "compressors": [{"name": "example.xor", "configuration": {"byte": 15}}]}),
]


@pytest.mark.usefixtures("offered")
@pytest.mark.parametrize("options", [options for _, options in CHAINS], ids=[name for name, _ in CHAINS])
def test_what_is_written_with_an_offered_codec_is_read_by_zarr_python_and_the_reverse(
    options: dict[str, Any], tmp_path: Path
) -> None:
    values = np.arange(48, dtype="i4").reshape(8, 6)
    kwargs: dict[str, Any] = {"shape": (8, 6), "chunks": (2, 3), "dtype": "i4", **options}
    ours = tessarr.create_array(tmp_path / "ours", **kwargs)
    ours[:] = values
    assert np.array_equal(zarr.open_array(tmp_path / "ours", mode="r")[:], values)
    theirs = zarr.create_array(tmp_path / "theirs", **kwargs)
    theirs[:] = values
    again = tessarr.open_array(tmp_path / "theirs", mode="r+")
    assert np.array_equal(again[:], values)
    again[1:5, 2] = -1
    values[1:5, 2] = -1
    assert np.array_equal(theirs[:], values)
    assert again.engine.name == "reference"
    assert np.array_equal(pickle.loads(pickle.dumps(again))[1:5], values[1:5])


@pytest.mark.usefixtures("offered")
def test_a_built_in_name_keeps_its_codec_and_entries_of_tessarr_are_skipped() -> None:
    assert "example.xor" in set(registry.names("codec"))
    assert registry.get("codec", "gzip").__module__ == "tessarr.codecs.bytes_to_bytes.gzip"
    assert registry.get("codec", "example.ours") is None


@pytest.mark.usefixtures("offered")
def test_a_package_that_cannot_be_imported_is_an_error_only_where_its_codec_is_needed() -> None:
    values: dict[str, Any] = {}
    z = tessarr.create_array(values, shape=(4,), dtype="u1", compressors=[{"name": "example.xor"}])
    z[:] = 3
    assert tessarr.open_array(values)[:].tolist() == [3] * 4
    with pytest.raises(
        MissingDependencyError, match=r"'example.broken' of the package 'zarr-offer'.*ValueError: invalid literal"
    ):
        tessarr.create_array({}, shape=(4,), dtype="u1", compressors=[{"name": "example.broken"}])
    with pytest.raises(MissingDependencyError, match=r"expected a codec class of zarr.abc.codec"):
        tessarr.create_array({}, shape=(4,), dtype="u1", compressors=[{"name": "example.none"}])


@pytest.mark.usefixtures("offered")
def test_a_configuration_that_the_codec_refuses_is_a_problem_of_the_document() -> None:
    with pytest.raises(MetadataValidationError, match=r"zarr_offer.Xor refuses it.*bite"):
        tessarr.create_array(
            {}, shape=(4,), dtype="u1", compressors=[{"name": "example.xor", "configuration": {"bite": 1}}]
        )


@pytest.mark.usefixtures("offered")
def test_a_codec_that_drops_a_chunk_is_refused() -> None:
    z = tessarr.create_array({}, shape=(4,), dtype="u1", compressors=[{"name": "example.dropping"}])
    with pytest.raises(CodecError, match="drops chunks"):
        z[:] = 1


@pytest.mark.usefixtures("offered")
def test_adapted_codecs_are_values() -> None:
    xor = registry.get("codec", "example.xor")
    assert xor is not None
    made = xor.from_json({"byte": 3})
    assert made == xor.from_json({"byte": 3}) == pickle.loads(pickle.dumps(made))
    assert made != xor.from_json({"byte": 4})
    assert made.to_json() == {"name": "example.xor", "configuration": {"byte": 3}}
    assert adapted("gzip", tessarr.codecs.GzipCodec) is tessarr.codecs.GzipCodec


@pytest.mark.parametrize("alias", [False, True], ids=["zarr-python", "alias"])
def test_a_new_process_reads_with_the_codec_with_and_without_the_alias(packages: Path, alias: bool) -> None:
    code = f"""
import sys
sys.path[:0] = {[str(packages), *sys.path]!r}
import tessarr, tessarr.as_zarr
if {alias}:
    tessarr.as_zarr.install()
values = {{}}
codecs = dict(compressors=[{{"name": "example.xor", "configuration": {{"byte": 15}}}}])
z = tessarr.create_array(values, shape=(4,), dtype="u1", chunks=(4,), **codecs)
z[:] = [0, 1, 2, 3]
print(bytes(values["c/0"]), tessarr.open_array(values)[:].tolist(), z.metadata.codecs[-1].to_dict()["configuration"])
import copy, pickle
codec = z.metadata.codecs[-1]
if {alias}:
    from zarr_offer import Xor
    assert codec == Xor(15) and Xor(15) == codec and codec != Xor(14) and hash(codec) == hash(Xor(15)), codec
assert pickle.loads(pickle.dumps(codec)) == codec == copy.deepcopy(codec)
assert pickle.loads(pickle.dumps(z.metadata)) == z.metadata
assert pickle.loads(pickle.dumps(z))[:].tolist() == [0, 1, 2, 3]
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == r"b'\x0f\x0e\r\x0c' [0, 1, 2, 3] {'byte': 15}"
