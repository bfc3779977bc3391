"""Measure three writes of 100 chunks of 16 KiB and one transaction of them, and where the time of the transaction goes.

    python benchmarks/transaction_cost.py [chunks of each array [folder [durable]]]

Both in turn, each in new directories of the folder (``/dev/shm``), and the
least of 60 runs, in ms; with the parts of that of the transaction. ``chrt -r 3`` before it keeps other programs away.
With ``durable`` both end when a power cut cannot undo them. What that costs on a disk whose ``fsync`` takes 1 ms more::

    strace -f --seccomp-bpf -qq -o /dev/null -e trace=fsync,syncfs -e inject=fsync,syncfs:delay_exit=1000 python ...
"""

from __future__ import annotations

import gc
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

import tessarr
from tessarr.engine.native import engine
from tessarr.stores.local.transactions.many import StagedFiles

RUNS = 60
NAMES = ("a", "b", "c")
CHUNKS, FOLDER, DURABLE = (*sys.argv[1:4], *("100", "/dev/shm", "")[len(sys.argv[1:4]) :])
VALUE = np.random.default_rng(1).random((int(CHUNKS), 64, 64), dtype="float32")
PARTS: defaultdict[str, float] = defaultdict(float)


def timed(owner: Any, name: str, part: str) -> None:
    """Add the time of a method to a part."""
    method: Callable[..., object] = getattr(owner, name)

    def call(*arguments: object) -> object:
        began = time.perf_counter()
        try:
            return method(*arguments)
        finally:
            PARTS[part] += time.perf_counter() - began

    setattr(owner, name, call)


def made(path: str) -> tuple[Any, list[Any]]:
    """Make a store with three arrays."""
    group = tessarr.create_group(path)
    for name in NAMES:
        array = group.create_array(name, shape=VALUE.shape, chunks=(1, 64, 64), dtype="f4", compressors=None)
        array[...] = 1
    store = tessarr.storage.LocalStore(path, durable=DURABLE == "durable")
    opened: Any = tessarr.open_group(store, mode="r+")
    return store, [opened[name] for name in NAMES]


def writes(_: object, arrays: list[Any]) -> None:
    """Change each array by one call."""
    for array in arrays:
        array[...] = VALUE


def transaction(store: Any, _: list[Any]) -> None:
    """Change all arrays at once."""
    with tessarr.transaction(store) as tx:
        group: Any = tx.group
        for name in NAMES:
            group[name][...] = VALUE


def main() -> None:
    """Print the figures."""
    timed(engine._WritePlan, "stage_covered", "staging (Rust)")
    timed(StagedFiles, "compare", "comparing (Rust)")
    timed(StagedFiles, "place", "renaming (Rust)")
    found: dict[str, list[tuple[float, dict[str, float]]]] = {"writes": [], "transaction": []}
    top = tempfile.mkdtemp(dir=FOLDER)
    try:
        for number in range(RUNS):
            for name, change in (("writes", writes), ("transaction", transaction)):
                path = f"{top}/{name}-{number}"
                place = made(path)
                time.sleep(0.002)  # files that were replaced are freed
                gc.collect()
                PARTS.clear()
                began = time.perf_counter()
                change(*place)
                found[name].append((time.perf_counter() - began, dict(PARTS)))
                shutil.rmtree(path)
    finally:
        shutil.rmtree(top)
    least = {name: min(runs, key=lambda run: run[0]) for name, runs in found.items()}
    for name, (seconds, parts) in least.items():
        print(f"{name}: {1e3 * seconds:.2f}")
        for part, own in parts.items():
            print(f"  {part}: {1e3 * own:.2f}")
        if parts:
            print(f"  the rest (Python): {1e3 * (seconds - sum(parts.values())):.2f}")
    print(f"transaction / writes: {least['transaction'][0] / least['writes'][0]:.2f}")


if __name__ == "__main__":
    main()
