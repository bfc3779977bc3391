"""What every codec promises, whatever it does."""

from __future__ import annotations

import contextlib
import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from tessarr import built_in, registry
from tessarr.codecs.base import ArrayToArray, ArrayToBytes
from tessarr.codecs.numcodecs import V2Codec
from tessarr.errors import CodecError, MetadataValidationError
from tessarr.types import Buffer
from tests.codecs.samples import ARRAYS, BYTES, data, numbers, spec_of

SIZES = (0, 4, 44, 4000)


def input_of(nbytes: int) -> bytes:
    return numbers("int32", (nbytes // 4,)).tobytes()


@pytest.mark.parametrize("name", BYTES)
class TestBytesToBytes:
    @pytest.mark.parametrize("nbytes", SIZES)
    def test_gives_back_what_went_in(self, name: str, nbytes: int) -> None:
        codec, given = BYTES[name].make(), input_of(nbytes)
        encoded = codec.encode(given)
        assert data(codec.decode(encoded, nbytes)) == given
        assert data(codec.decode(data(encoded), None)) == given

    def test_takes_bytes_bytearrays_memoryviews_and_arrays_of_any_type(self, name: str) -> None:
        codec, given = BYTES[name].make(), input_of(400)
        array = np.frombuffer(given, "<i4")
        writable = bytearray(given)
        forms: list[Buffer] = [given, writable, memoryview(writable), memoryview(given), array, array.reshape(10, 10)]
        forms += [array.view("f4"), array[:50].view("m8[s]")]
        for form in forms:
            encoded = codec.encode(form)
            expected = given[: form.nbytes] if isinstance(form, np.ndarray) else given
            for stored in (data(encoded), bytearray(data(encoded)), memoryview(data(encoded)), encoded):
                assert data(codec.decode(stored, len(expected))) == expected
        assert bytes(writable) == given

    @pytest.mark.spec("V3-CHAIN-05")
    @pytest.mark.parametrize("nbytes", SIZES)
    def test_a_promised_size_is_kept(self, name: str, nbytes: int) -> None:
        codec = BYTES[name].make()
        promised = codec.encoded_size(nbytes)
        assert promised is None or promised == len(data(codec.encode(input_of(nbytes))))

    @pytest.mark.parametrize("nbytes", SIZES)
    def test_decode_into_gives_the_same_or_says_no(self, name: str, nbytes: int) -> None:
        codec, given = BYTES[name].make(), input_of(nbytes)
        out = np.full(nbytes, 170, np.uint8)
        if codec.decode_into(data(codec.encode(given)), memoryview(out)):
            assert out.tobytes() == given
        else:
            assert (out == 170).all()

    @pytest.mark.spec("V3-CHAIN-08")
    @pytest.mark.parametrize("nbytes", SIZES)
    def test_another_size_than_expected_is_an_error(self, name: str, nbytes: int) -> None:
        codec = BYTES[name].make()
        encoded = data(codec.encode(input_of(nbytes)))
        for wrong in {0, nbytes - 4, nbytes - 1, nbytes + 1, nbytes + 4, 1 << 50} - {nbytes, -4, -1}:
            with pytest.raises(CodecError):
                codec.decode(encoded, wrong)
        for wrong in {nbytes - 4, nbytes + 4} - {-4}:
            out = memoryview(np.zeros(wrong, np.uint8))
            try:
                assert not codec.decode_into(encoded, out)
            except CodecError:
                continue

    @pytest.mark.parametrize("nbytes", SIZES)
    def test_every_prefix_and_every_extension_is_an_error(self, name: str, nbytes: int) -> None:
        codec = BYTES[name].make()
        encoded = data(codec.encode(input_of(nbytes)))
        cuts = range(len(encoded)) if len(encoded) < 300 else range(0, len(encoded), 41)
        for wrong in [encoded[:cut] for cut in cuts] + [encoded + b"\0", encoded + b"\x1f\x8b\x08rest"]:
            with pytest.raises(CodecError):
                codec.decode(wrong, nbytes)

    def test_a_changed_byte_is_an_error_or_another_value_of_the_same_size(self, name: str) -> None:
        codec, given = BYTES[name].make(), input_of(400)
        encoded = bytearray(data(codec.encode(given)))
        for at in range(0, len(encoded), max(1, len(encoded) // 150)):
            for bit in (1, 128):
                encoded[at] ^= bit
                with contextlib.suppress(CodecError):
                    assert len(data(codec.decode(bytes(encoded), 400))) == 400
                encoded[at] ^= bit

    def test_works_in_many_threads_at_once(self, name: str) -> None:
        codec = BYTES[name].make()
        inputs = [input_of(4 * n) for n in range(1, 200, 9)]
        with ThreadPoolExecutor(4) as pool:
            encoded = list(pool.map(codec.encode, inputs))
            decoded = list(pool.map(lambda pair: data(codec.decode(pair[0], len(pair[1]))), zip(encoded, inputs)))
        assert decoded == inputs

    def test_the_main_thread_and_others_write_the_same_bytes(self, name: str) -> None:
        codec, given = BYTES[name].make(), input_of(400_000)
        with ThreadPoolExecutor(1) as pool:
            assert data(pool.submit(codec.encode, given).result()) == data(codec.encode(given))

    @pytest.mark.spec("V3-CHAIN-09")
    def test_comes_back_from_its_document_and_from_pickle(self, name: str) -> None:
        codec = BYTES[name].make()
        assert pickle.loads(pickle.dumps(codec)) == codec
        assert copy.deepcopy(codec) == codec
        assert hash(copy.deepcopy(codec)) == hash(codec)
        if isinstance(codec, V2Codec):
            assert V2Codec(codec.to_v2()) == codec
        else:
            assert type(codec).from_dict(codec.to_dict()) == codec


@pytest.mark.parametrize("name", ARRAYS)
class TestArrays:
    @pytest.mark.parametrize("shape", [(2, 3, 4), (1, 1, 1), (5, 1, 7)])
    @pytest.mark.parametrize("layout", ["C", "F", "strided"])
    def test_gives_back_what_went_in_whatever_the_memory_layout(
        self, name: str, shape: tuple[int, ...], layout: str
    ) -> None:
        make, data_type = ARRAYS[name]
        spec, chunk = spec_of(data_type, shape), numbers(data_type, shape)
        if layout == "F":
            chunk = np.asfortranarray(chunk)
        elif layout == "strided":
            wide = np.zeros((2, *shape[:-1], 2 * shape[-1]), chunk.dtype)
            wide[0, ..., ::2] = chunk
            chunk = wide[0, ..., ::2]
        before = chunk.copy()
        codec = make()
        assert isinstance(codec, ArrayToArray | ArrayToBytes)
        if isinstance(codec, ArrayToArray):
            array = codec.encode(chunk, spec)
            given = codec.encoded_spec(spec)
            assert (array.shape, array.dtype) == (given.shape, given.dtype)
            decoded = codec.decode(array, spec)
        else:
            encoded = codec.encode(chunk, spec)
            assert codec.encoded_size(spec) in (None, len(data(encoded)))
            decoded = codec.decode(encoded, spec)
        assert decoded.shape == shape
        assert np.allclose(
            decoded.astype(spec.dtype), before, rtol=0, atol=1e-3 if "zfpy" in name or "accuracy" in name else 0
        )
        assert (chunk == before).all()

    @pytest.mark.spec("V3-CHAIN-09")
    def test_comes_back_from_its_document_and_from_pickle(self, name: str) -> None:
        codec = ARRAYS[name][0]()
        assert type(codec).from_dict(codec.to_dict()) == codec
        assert pickle.loads(pickle.dumps(codec)) == codec
        assert hash(copy.deepcopy(codec)) == hash(codec)


@pytest.mark.spec("V3-EXT-12")
@pytest.mark.parametrize("name", sorted({*built_in.TABLE["codec"]} - {"numcodecs.pickle"}))
def test_an_unknown_member_of_a_configuration_is_an_error(name: str) -> None:
    examples: dict[str, dict[str, Any]] = {
        "gzip": {"level": 1},
        "zstd": {"level": 1},
        "transpose": {"order": [0]},
        "bitround": {"keepbits": 1},
        "cast_value": {"data_type": "int8"},
        "reshape": {"shape": [-1]},
        "numcodecs.delta": {"dtype": "<i4"},
        "zfp": {"mode": "reversible"},
        "zarrs.zfp": {"mode": "reversible"},
        "https://codec.zarrs.dev/array_to_bytes/zfp": {"mode": "reversible"},
        "https://codec.zarrs.dev/array_to_bytes/bitround": {"keepbits": 1},
        "https://codec.zarrs.dev/array_to_array/bitround": {"keepbits": 1},
        "zarrs.bitround": {"keepbits": 1},
        "singleton_dim": {"operations": []},
        "pad": {"location": "start", "nbytes": 0},
        "conditional": {"codecs": ["crc32c"]},
        "optional": {"mask_codecs": ["packbits"], "data_codecs": ["bytes"]},
        "zarrs.optional": {"mask_codecs": ["packbits"], "data_codecs": ["bytes"]},
        "n5_default": {"codecs": [{"name": "transpose", "configuration": {"order": [0]}}, "bytes"]},
        "n5_varlen": {"codecs": ["vlen-utf8"]},
        "tessarr.clipped": {"codecs": ["bytes"]},
        "tessarr.n5_objects": {"codecs": ["crc32c"]},
        "tessarr.compressed_segmentation": {"block_size": [8, 8, 8]},
        "blosc": {"cname": "lz4", "clevel": 1, "shuffle": "noshuffle", "blocksize": 0},
        "numcodecs.bitround": {"keepbits": 3},
        "numcodecs.quantize": {"digits": 3},
        "numcodecs.fixedscaleoffset": {"scale": 1, "offset": 0},
        "numcodecs.astype": {"encode_dtype": "<i4"},
    }
    known = examples.get(name, {})
    implementation = registry.get("codec", name)
    assert implementation is not None
    if name != "sharding_indexed":
        implementation.from_json(known)
    with pytest.raises(MetadataValidationError) as caught:
        implementation.from_json({**known, "turbo": True})
    assert any(problem.loc == ("turbo",) and problem.kind == "unknown" for problem in caught.value.problems)
