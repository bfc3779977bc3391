"""``out=``: elements are read into any writable memory of the caller, and nothing else is changed."""

from __future__ import annotations

import array
import asyncio
import ctypes
import mmap
from typing import Any, cast

import numpy as np
import pytest

import tessarr
from tests.stores.contract import ENGINES

VALUES = np.arange(24, dtype="<i4").reshape(4, 6)


@pytest.fixture(params=ENGINES)
def z(request: pytest.FixtureRequest) -> Any:
    with tessarr.config.set({"engine": request.param}):
        yield tessarr.create_array({}, data=VALUES, chunks=(3, 4))


class Tensor:
    """Memory that is exchanged by DLPack only, as that of tensors."""

    def __init__(self, shape: tuple[int, ...], *, device: int = 1, versioned: bool = True) -> None:
        self.memory: Any = np.zeros(shape, "<i4")
        self.device, self.versioned = device, versioned

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0

    def __dlpack__(self, **options: Any) -> Any:
        options.pop("dl_device", None)
        options.pop("copy", None)
        return self.memory.__dlpack__(**(options if self.versioned else {}))


class OldTensor(Tensor):
    """One whose DLPack says nothing about writing, and which NumPy takes by ``__array__``."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.memory


def anonymous() -> mmap.mmap:
    return mmap.mmap(-1, VALUES.nbytes)


@pytest.mark.parametrize(
    "make",
    [
        lambda: bytearray(VALUES.nbytes),
        lambda: memoryview(bytearray(VALUES.nbytes)),
        lambda: memoryview(bytearray(VALUES.nbytes)).cast("i", (4, 6)),
        lambda: array.array("i", [0] * 24),
        lambda: (ctypes.c_int32 * 6 * 4)(),
        anonymous,
    ],
    ids=["bytearray", "memoryview", "of an array", "array.array", "ctypes", "mmap"],
)
def test_writable_buffers_are_filled(z: tessarr.Array, make: Any) -> None:
    out = make()
    assert z.read(out=out) is out
    assert bytes(memoryview(out).cast("B")) == VALUES.tobytes()
    assert asyncio.run(z.read_async(out=make())) is not None
    view = make()
    assert z.lazy[::-1].read(out=view) is view
    assert bytes(memoryview(view).cast("B")) == VALUES[::-1].tobytes()


@pytest.mark.parametrize("kind", [Tensor, lambda shape: OldTensor(shape, versioned=False)])
def test_tensors_are_filled_in_place(z: tessarr.Array, kind: Any) -> None:
    out: Any = kind((2, 6))
    filled: Any = z.read(slice(1, 3), out=out)
    assert filled is out
    np.testing.assert_array_equal(out.memory, VALUES[1:3])


def test_a_part_of_another_array_is_filled_without_a_copy(z: tessarr.Array) -> None:
    memory = bytearray(3 * VALUES.nbytes)
    part = memoryview(memory)[VALUES.nbytes : 2 * VALUES.nbytes]
    z.read(out=part)
    assert bytes(memory) == bytes(VALUES.nbytes) + VALUES.tobytes() + bytes(VALUES.nbytes)


@pytest.mark.parametrize(
    ("out", "error", "text"),
    [
        (bytes(96), ValueError, "read-only"),
        (memoryview(VALUES.tobytes()), ValueError, "read-only"),
        (bytearray(95), ValueError, "shape"),
        (array.array("d", [0.0] * 12), ValueError, "shape"),
        ([0] * 24, TypeError, "writable buffer"),
        (Tensor((4, 6), versioned=False), ValueError, "read-only"),
        (Tensor((4, 6), device=2), TypeError, "CUDA device"),
        (Tensor((4, 6), device=10), TypeError, "ROCm device"),
    ],
)
def test_other_memory_is_refused_before_anything_is_read(z: tessarr.Array, out: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        z.read(out=out)


def test_elements_that_are_objects_are_not_read_into_bytes() -> None:
    z = tessarr.array(np.array(["a", "b"], object), dtype=str)
    with pytest.raises(ValueError, match="shape"):
        z.read(out=bytearray(16 * 2))


def test_an_array_of_cupy_is_filled_by_one_copy(z: tessarr.Array) -> None:
    cupy = pytest.importorskip("cupy", reason="CuPy needs a CUDA device")
    out = cupy.zeros((4, 6), dtype="i4")
    assert z.read(out=out) is out
    np.testing.assert_array_equal(cupy.asnumpy(out), VALUES)


class _FakeHost:
    def __init__(self, shape: tuple[int, ...]) -> None:
        self.memory = np.zeros(shape, "<i4")

    def numpy(self) -> Any:
        return self.memory


def test_the_copy_to_the_device_comes_after_the_read(z: tessarr.Array, monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps of a tensor of torch on a device, with a stand-in for its module."""
    import sys
    from types import SimpleNamespace

    class FakeTensor(Tensor):
        dtype, shape = "int32", (4, 6)

        def copy_(self, host: _FakeHost) -> None:
            self.memory[...] = host.memory

    FakeTensor.__module__ = "torch"
    made: list[bool] = []

    def empty(shape: Any, dtype: Any, pin_memory: bool) -> _FakeHost:
        made.append(pin_memory)
        return _FakeHost(shape)

    monkeypatch.setitem(sys.modules, "torch", cast("Any", SimpleNamespace(empty=empty)))
    out = FakeTensor((4, 6), device=2)
    assert z.read(out=out) is out
    np.testing.assert_array_equal(out.memory, VALUES)
    assert made == [True]
