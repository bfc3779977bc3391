"""Codecs and stores that were written to zarr-python's contracts, on tessarr's base classes."""

from __future__ import annotations

import asyncio
import json
import pickle
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import tessarr as zarr
from tessarr import registry
from tessarr.abc.codec import (
    ArrayArrayCodec,
    ArrayBytesCodec,
    ArrayBytesCodecPartialDecodeMixin,
    BytesBytesCodec,
    SupportsSyncCodec,
)
from tessarr.abc.store import OffsetByteRequest, RangeByteRequest, Store, SuffixByteRequest
from tessarr.core.array_spec import ArraySpec
from tessarr.core.buffer import Buffer, NDBuffer, default_buffer_prototype
from tessarr.errors import CodecError
from tessarr.types import ByteRange
from tests.narrow import array_of


@dataclass(frozen=True)
class Xor(BytesBytesCodec):
    is_fixed_size = True
    key: int = 1

    @classmethod
    def from_dict(cls, data: Any) -> Xor:
        assert data["name"] == "test.xor"
        return cls(**data.get("configuration", {}))

    def to_dict(self) -> dict[str, Any]:
        return {"name": "test.xor", "configuration": {"key": self.key}}

    async def _encode_single(self, chunk_bytes: Buffer, chunk_spec: ArraySpec) -> Buffer:
        await asyncio.sleep(0)
        return chunk_spec.prototype.buffer.from_bytes((chunk_bytes.as_numpy_array() ^ self.key).tobytes())

    _decode_single = _encode_single

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: ArraySpec) -> int:
        return input_byte_length


class Increment(ArrayArrayCodec):
    """Holds elements as int64, one larger."""

    def to_dict(self) -> dict[str, Any]:
        return {"name": "test.increment"}

    @classmethod
    def from_dict(cls, data: Any) -> Increment:  # noqa: ARG003
        return cls()

    def resolve_metadata(self, chunk_spec: ArraySpec) -> ArraySpec:
        return replace(chunk_spec, dtype=zarr.dtype.Int64(), fill_value=0)

    async def _encode_single(self, chunk: NDBuffer, chunk_spec: ArraySpec) -> NDBuffer:
        return chunk_spec.prototype.nd_buffer.from_numpy_array(chunk.as_ndarray_like().astype("i8") + 1)

    async def _decode_single(self, chunk: NDBuffer, chunk_spec: ArraySpec) -> NDBuffer:
        values = chunk.as_ndarray_like() - 1
        return chunk_spec.prototype.nd_buffer.from_numpy_array(values.astype(chunk_spec.dtype.to_native_dtype()))


class Text(ArrayBytesCodec, ArrayBytesCodecPartialDecodeMixin):
    """Elements as JSON."""

    def to_dict(self) -> dict[str, Any]:
        return {"name": "test.text"}

    @classmethod
    def from_dict(cls, data: Any) -> Text:  # noqa: ARG003
        return cls()

    def _encode_sync(self, chunk: NDBuffer, chunk_spec: ArraySpec) -> Buffer:  # type: ignore[override]  # with the buffers of zarr-python
        return chunk_spec.prototype.buffer.from_bytes(json.dumps(chunk.as_ndarray_like().tolist()).encode())

    def _decode_sync(self, data: Buffer, chunk_spec: ArraySpec) -> NDBuffer:  # type: ignore[override]
        values = np.array(json.loads(data.to_bytes()), chunk_spec.dtype.to_native_dtype())
        return chunk_spec.prototype.nd_buffer.from_numpy_array(values)


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    before = dict(registry._TABLE["codec"])
    registry.register_codec("test.xor", Xor)
    registry.register_codec("test.increment", Increment)
    registry.register_codec("test.text", Text)
    yield
    registry._TABLE["codec"].clear()
    registry._TABLE["codec"].update(before)


CHAIN: dict[str, Any] = {"filters": [Increment()], "serializer": Text(), "compressors": [Xor(key=3)]}


def test_codecs_of_all_three_kinds_encode_and_decode() -> None:
    store: dict[str, bytes] = {}
    z = zarr.create_array(store, shape=(5,), chunks=(2,), dtype="i4", **CHAIN)
    z[:] = np.arange(5)
    assert bytes(store["c/1"]) == bytes(byte ^ 3 for byte in b"[3, 4]")
    assert [codec["name"] for codec in json.loads(store["zarr.json"])["codecs"]] == [
        "test.increment",
        "test.text",
        "test.xor",
    ]
    again = zarr.open_array(store, mode="r")
    assert again[:].tolist() == [0, 1, 2, 3, 4]
    assert again.compressors == (Xor(key=3),)
    assert again.filters[0].name == "test.increment"


def test_they_work_within_shards_and_inside_a_running_loop() -> None:
    async def inside() -> list[int]:
        z = zarr.create_array({}, shape=(6,), chunks=(2,), shards=(4,), dtype="i4", **CHAIN)
        z[1:5] = 7
        return z[:].tolist()  # type: ignore[no-any-return]

    assert asyncio.run(inside()) == [0, 7, 7, 7, 7, 0]


def test_a_codec_that_gives_another_size_is_an_error() -> None:
    class Cut(Xor):
        async def _decode_single(self, chunk_bytes: Buffer, chunk_spec: ArraySpec) -> Buffer:
            return chunk_bytes[1:]

    registry.register_codec("test.xor", Cut)
    z = zarr.create_array({}, shape=(2,), chunks=(2,), dtype="i4", compressors=[Cut()])
    z[:] = 1
    with pytest.raises(CodecError, match="size"):
        z[:]


def test_every_codec_is_an_instance_of_the_class_of_its_kind() -> None:
    kinds = (ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec)
    for codec, kind in [
        (zarr.codecs.TransposeCodec(order=(0,)), ArrayArrayCodec),
        (zarr.codecs.BytesCodec(), ArrayBytesCodec),
        (zarr.codecs.GzipCodec(), BytesBytesCodec),
        (Increment(), ArrayArrayCodec),
        (Text(), ArrayBytesCodec),
        (Xor(), BytesBytesCodec),
    ]:
        assert [isinstance(codec, k) for k in kinds] == [k is kind for k in kinds]
        assert [issubclass(type(codec), k) for k in kinds] == [k is kind for k in kinds]
    assert isinstance(Text(), SupportsSyncCodec)
    assert not isinstance(Xor(), SupportsSyncCodec)
    assert not isinstance(Xor(), Text)


class Places(Store):
    """A dictionary, as a store of coroutines."""

    supports_writes = True
    supports_deletes = True
    supports_listing = True

    def __init__(self, values: dict[str, bytes], *, read_only: bool = False) -> None:
        super().__init__(read_only=read_only)
        self.held = values
        self.asked: list[Any] = []

    async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:  # type: ignore[override]
        await asyncio.sleep(0)
        self.asked.append(byte_range)
        value = self.held.get(key)
        if value is None:
            return None
        match byte_range:
            case RangeByteRequest(start, end):
                value = value[start:end]
            case OffsetByteRequest(offset):
                value = value[offset:]
            case SuffixByteRequest(suffix):
                value = value[-suffix:]
        return prototype.buffer.from_bytes(value)

    async def exists(self, key: str) -> bool:  # type: ignore[override]
        return key in self.held

    async def set(self, key: str, value: Any) -> None:  # type: ignore[override]
        if key == "forbidden/zarr.json":
            raise PermissionError("not here")
        self.held[key] = value.to_bytes()

    async def delete(self, key: str) -> None:  # type: ignore[override]
        self.held.pop(key, None)

    async def list(self) -> AsyncIterator[str]:  # type: ignore[override]
        for key in [*self.held]:
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:  # type: ignore[override]
        for key in [*self.held]:
            if key.startswith(prefix):
                yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:  # type: ignore[override]
        start = f"{prefix}/" if prefix else ""
        for name in {key[len(start) :].split("/")[0] for key in self.held if key.startswith(start)}:
            yield name


def test_a_store_of_coroutines_holds_a_hierarchy() -> None:
    values: dict[str, bytes] = {}
    places = Places(values)
    root = zarr.open_group(places, mode="w", attributes={"a": 1})
    root.create_array("x", data=np.arange(10), chunks=(4,))
    shards = root.create_array("s", shape=(64,), chunks=(2,), shards=(32,), dtype="i4")
    shards[:] = np.arange(64)
    assert sorted(root) == ["s", "x"]
    again = zarr.open_group(places, mode="r+")
    assert again.attrs.asdict() == {"a": 1}
    assert array_of(again["x"])[3:7].tolist() == [3, 4, 5, 6]
    places.asked.clear()
    parts = [ByteRange(0, 2), ByteRange(1), ByteRange(-1)]
    assert [bytes(root.store.get("zarr.json", part) or b"") for part in parts] == [
        values["zarr.json"][:2],
        values["zarr.json"][1:],
        values["zarr.json"][-1:],
    ]
    assert [type(part) for part in places.asked] == [RangeByteRequest, OffsetByteRequest, SuffixByteRequest]
    assert zarr.consolidate_metadata(places).metadata.consolidated_metadata is not None
    del again["x"]
    assert "x/zarr.json" not in values
    assert zarr.open_group(Places(values, read_only=True)).read_only
    assert zarr.open_group(places).store is root.store

    async def reading() -> list[int]:
        z = await zarr.open_array_async(places, path="s")
        return (await z.read_async(slice(0, 3))).tolist()  # type: ignore[no-any-return]

    assert asyncio.run(reading()) == [0, 1, 2]
    assert pickle.loads(pickle.dumps(shards))[5] == 5


def test_what_such_a_store_raises_is_raised_with_a_note_of_the_place() -> None:
    with pytest.raises(PermissionError, match="not here") as caught:
        zarr.open_group(Places({}), path="forbidden", mode="w")
    assert re.fullmatch(r"in store places://\w+, key 'forbidden/zarr.json'", caught.value.__notes__[0])


def test_byte_requests_are_byte_ranges_and_classes() -> None:
    store = zarr.storage.MemoryStore({"k": b"0123456789"})
    requests = [RangeByteRequest(2, 5), OffsetByteRequest(7), SuffixByteRequest(3)]
    assert [bytes(store.get("k", request) or b"") for request in requests] == [b"234", b"789", b"789"]
    assert [pickle.loads(pickle.dumps(request)) for request in requests] == requests
    assert isinstance(requests[0], RangeByteRequest)
    assert not isinstance(requests[0], OffsetByteRequest)


def test_buffers_share_memory_and_are_made_by_their_prototype() -> None:
    prototype = default_buffer_prototype()
    data = prototype.buffer.from_bytes(b"abc")
    buffer: Any = data.as_buffer_like()
    assert (len(data), data.to_bytes(), bytes(buffer)) == (3, b"abc", b"abc")
    assert (data + data[1:]).to_bytes() == b"abcbc"
    assert prototype.buffer.create_zero_length().combine([data]) == data
    assert prototype.buffer.from_buffer(data).as_numpy_array().base is not None
    with pytest.raises(ValueError, match="bytes"):
        prototype.buffer.from_array_like(np.zeros(3))
    values = prototype.nd_buffer.create(shape=(2, 3), dtype="f4", fill_value=7)
    assert values.all_equal(7)
    values[0] = 0
    assert values[0].all_equal(0.0)
    assert not values[0].all_equal(-0.0)
    assert values.transpose((1, 0)).reshape(-1).shape == (6,)
    assert values.astype("f8").dtype == np.float64
    assert prototype.nd_buffer.from_numpy_array(np.array(3)).as_scalar() == 3
    values.fill(np.nan)
    assert values.all_equal(np.nan)
    assert zarr.buffer.cpu.buffer_prototype == prototype
