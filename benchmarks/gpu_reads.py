"""Print how long it takes to read the array of `make bench` into the memory of a GPU.

    python benchmarks/gpu_reads.py          # after `make bench`, in an environment with tessarr, PyTorch, CuPy and zarr

Each line has the shortest of four times in milliseconds; values are compared with the truth. What is not installed is left out.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
from layouts import DATA, LAYOUTS

import tessarr

NAMES = ("raw64", "blosc64", "zstd64")


def shortest(what: str, call: Callable[[], object]) -> None:
    """Print the shortest time of a call."""
    times = []
    for _ in range(4):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    print(f"{what}: {1000 * min(times):.1f} ms (first {1000 * times[0]:.1f})")


def by_torch(name: str) -> None:
    """Read into a tensor of PyTorch. Raises ImportError."""
    import torch

    array = tessarr.open_array(LAYOUTS[name].path, mode="r")
    pinned = torch.empty(array.shape, dtype=torch.uint16, pin_memory=True)
    tensor = torch.empty(array.shape, dtype=torch.uint16, device="cuda")

    def synchronized(call: Callable[[], object]) -> Callable[[], object]:
        return lambda: (call(), torch.cuda.synchronize())

    shortest(f"{name}, the copy from pinned memory alone", synchronized(lambda: tensor.copy_(pinned)))
    shortest(f"{name}, read into a new array of NumPy", lambda: array[...])
    shortest(f"{name}, read into pinned memory", lambda: array.read(out=pinned.numpy()))
    shortest(f"{name}, read, then .cuda()", synchronized(lambda: torch.from_numpy(array[...]).cuda()))
    shortest(f"{name}, read(out=tensor)", synchronized(lambda: array.read(out=tensor)))
    assert np.array_equal(tensor.cpu().numpy(), np.load(DATA / "truth3d.npy", mmap_mode="r"))


def by_cupy(name: str) -> None:
    """Read into an array of CuPy, and with zarr-python. Raises ImportError."""
    import cupy
    import zarr

    array = tessarr.open_array(LAYOUTS[name].path, mode="r")
    out = cupy.empty(array.shape, array.dtype)
    wait = cupy.cuda.Device().synchronize
    shortest(f"{name}, read(out=array of CuPy)", lambda: (array.read(out=out), wait()))
    assert np.array_equal(cupy.asnumpy(out), np.load(DATA / "truth3d.npy", mmap_mode="r"))
    with zarr.config.enable_gpu():
        theirs = zarr.open_array(LAYOUTS[name].path, mode="r")
        shortest(f"{name}, zarr-python with enable_gpu()", lambda: (theirs[...], wait()))


def main() -> None:
    """Print a line for each way and layout."""
    for way in (by_torch, by_cupy):
        for name in NAMES:
            try:
                way(name)
            except ImportError as error:
                print(f"left out: {error}", file=sys.stderr)
                break


if __name__ == "__main__":
    main()
