"""Measure rows W1 to W3, M1 and M2: writing, opening, memory."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from layouts import CALLS, DATA, LAYOUTS, MEMORY, SCRATCH, SHARDED, UNSHARDED, Layout
from peers.base import NotSupportedError, Peer
from rows_read import assert_whole, layout_for, random_chunks
from task import ROWS, Task, printed, row

ALL = [layout.name for layout in [*UNSHARDED, *SHARDED]]
IN_MEMORY = "in memory"
SEVERAL = "create, one of 20"


NUMBER = itertools.count()
PLACE = [""]
"""Where this process writes now."""


def scratch_path(peer: Peer) -> str:
    """Return the folder of the last `new_path`."""
    return PLACE[0] or new_path(peer)


def in_memory(names: list[str]) -> list[str]:
    """Return the variants `names`, and the same on a file system in memory."""
    return [*names, *(f"{name} {IN_MEMORY}" for name in names)]


def folder_of(variant: str) -> Path:
    """Return the folder to which a variant writes. Raises NotSupportedError where there is no file system in memory."""
    if not variant.endswith(IN_MEMORY):
        return SCRATCH
    if not MEMORY.parent.is_dir():
        raise NotSupportedError(f"{MEMORY.parent} is missing; BENCH_MEMORY names a folder on a file system in memory")
    return MEMORY


def new_path(peer: Peer, folder: Path = SCRATCH) -> str:
    """Return the path in `folder` of a directory that does not exist yet, and remove the previous one.

    Its name is new, and where that can be said its place on the disk too: ext4 without a journal is slow to reuse what was
    deleted in the last minutes, and the peer that comes next would pay for what others deleted.
    """
    shutil.rmtree(PLACE[0], ignore_errors=True)
    if not folder.exists():
        folder.mkdir(parents=True)
        if shutil.which("chattr"):
            subprocess.run(["chattr", "+T", str(folder)], capture_output=True, check=False)
    PLACE[0] = str(folder / f"{type(peer).__name__}-{os.getpid()}-{next(NUMBER)}.zarr")
    return PLACE[0]


def copied(peer: Peer, layout: Layout, folder: Path) -> Any:
    """Copy the stored array, and open the copy for writing."""
    return peer.open(shutil.copytree(layout.path, new_path(peer, folder)))


@row("W1", "write all", [*in_memory(ALL), "raw64 fsync", "shard-zstd32 fsync"], bar=1.3, most_rounds=7, limited=True)
def write_whole(peer: Peer, name: str) -> Task:
    """Write all of an array into an empty one; without fsync, or with one per value if the name of the variant says so."""
    layout_name, _, how = name.partition(" ")
    layout, folder = LAYOUTS[layout_name], folder_of(name)
    value = np.array(layout.truth())
    everything = (slice(None),) * value.ndim
    handle: list[Any] = []

    def before() -> None:
        handle[:] = [peer.create(new_path(peer, folder), layout, durable=how == "fsync")]

    def check(_: object) -> None:
        assert_whole(layout, peer.read(peer.open(scratch_path(peer)), everything))

    return Task(run=lambda: peer.write(handle[0], everything, value), check=check, before=before)


def small_boxes(layout: Layout, count: int) -> list[tuple[slice, ...]]:
    """Return random boxes of 8³ elements inside chunks."""
    return [tuple(slice(part.start + 3, part.start + 11) for part in box) for box in random_chunks(layout, count)]


@row(
    "W2",
    "small writes inside chunks",
    in_memory(["raw64", "blosc64", "zstd64", "shard-zstd32"]),
    unit="µs",
    bar=3.0,
    most_rounds=7,
    limited=True,
)
def write_small(peer: Peer, name: str) -> Task:
    """Update small boxes, one per call."""
    layout, folder = layout_for(peer, name.partition(" ")[0]), folder_of(name)
    # A peer that writes a whole shard anew takes 0.2 s per box.
    boxes = small_boxes(layout, 20 if layout.shard or CALLS <= 100 else 200)
    value = np.full((8, 8, 8), 4242, dtype=layout.dtype)
    handle: list[Any] = []

    def before() -> None:
        handle[:] = [copied(peer, layout, folder)]

    def run() -> None:
        for box in boxes:
            peer.write(handle[0], box, value)

    def check(_: object) -> None:
        expected = np.array(layout.truth())
        for box in boxes:
            expected[box] = value
        assert np.array_equal(peer.read(peer.open(scratch_path(peer)), (slice(None),) * 3), expected)

    return Task(run=run, check=check, before=before, calls=len(boxes))


@row("W3", "update one inner chunk of a large shard", in_memory([layout.name for layout in SHARDED]), bar=10.0)
def update_shard(peer: Peer, name: str) -> Task:
    """Replace one inner chunk of a full shard (32 MB at full scale)."""
    layout = layout_for(peer, name.partition(" ")[0])
    box = tuple(slice(n, 2 * n) for n in layout.chunk)
    values = [np.full(layout.chunk, fill, dtype=layout.dtype) for fill in (1234, 4321)]
    array, turn = copied(peer, layout, folder_of(name)), [0]

    def run() -> None:
        turn[0] ^= 1
        peer.write(array, box, values[turn[0]])

    def check(_: object) -> None:
        expected = np.array(layout.truth())
        expected[box] = values[turn[0]]
        assert np.array_equal(peer.read(peer.open(scratch_path(peer)), (slice(None),) * 3), expected)

    return Task(run=run, check=check)


def seconds_to_import(peer: Peer) -> float:
    """Measure the seconds of the peer's import beyond NumPy's, in a new interpreter."""
    code = f"import time, numpy; t = time.perf_counter(); {peer.statement}; print(time.perf_counter() - t)"
    return printed(code)


def create_several(peer: Peer, name: str) -> Task:
    """Create 20 arrays, one after another, in new directories."""
    layout, folder, place = layout_for(peer, "zstd64"), folder_of(name), [""]

    def before() -> None:
        place[0] = new_path(peer, folder)
        os.mkdir(place[0])

    def run() -> list[Any]:
        return [peer.create(f"{place[0]}/{number}.zarr", layout, durable=False) for number in range(20)]

    def check(arrays: list[Any]) -> None:
        assert [tuple(peer.open(f"{place[0]}/{n}.zarr").shape) for n in range(len(arrays))] == [layout.shape] * 20

    return Task(run=run, check=check, before=before, calls=20)


@row("M1", "metadata", ["create", *in_memory([SEVERAL]), "open", "group of 1000", "group of 1000, consolidated", "import"],
     bar=3.0)  # fmt: skip
def metadata(peer: Peer, name: str) -> Task:
    """Measure creating and opening arrays, the listing of a group, and the import of the package.

    One array is created ("create") between the runs of other peers, with cold caches; 20 of them are as those that are opened.
    """
    if name.startswith(SEVERAL):
        return create_several(peer, name)
    layout = layout_for(peer, "zstd64")

    def check_count(count: object) -> None:
        assert count == 1000

    def check_array(array: Any) -> None:
        assert tuple(array.shape) == layout.shape

    if name == "create":
        place = new_path(peer)
        return Task(
            run=lambda: peer.create(place, layout, durable=False),
            check=check_array,
            before=lambda: shutil.rmtree(place, ignore_errors=True),
        )
    if name == "open":
        return Task(
            run=lambda: [peer.open(layout.path) for _ in range(20)], check=lambda got: check_array(got[0]), calls=20
        )
    if name == "import":
        if peer.statement == "pass":
            raise NotSupportedError("nothing to import")
        return Task(run=lambda: None, check=lambda _: None, measure=lambda: seconds_to_import(peer))
    path = str(DATA / ("group-consolidated.zarr" if "consolidated" in name else "group.zarr"))
    return Task(run=lambda: peer.list_group(path), check=check_count)


def status_kib(field: str) -> int:
    """Read a value of this process from the kernel. Raises NotSupportedError where there is none."""
    status = Path("/proc/self/status")
    if not status.exists():
        raise NotSupportedError("peak memory is read from /proc")
    return int(next(line for line in status.read_text().splitlines() if line.startswith(field)).split()[1])


MEASURED = [
    *(f"R1 {name}" for name in ("raw64", "blosc64", "zstd64", "gzip64")), "R2 shard-raw32", "R2 shard-zstd32", "R3 zstd64",
    "R5 strided plane-zstd256", *(f"W1 {name}" for name in ("raw64", "blosc64", "zstd64", "gzip64", "shard-zstd32")),
    "W2 zstd64", "W2 shard-zstd32", "W3 shard-raw32",
]  # fmt: skip
"""The rows, with their variants, whose memory is measured."""


@row("M2", "peak memory beyond the array", MEASURED, unit="MiB", most_rounds=3)
def memory(peer: Peer, name: str) -> Task:
    """Measure the peak memory of the work of another row, in a separate process, beyond what it returns or writes."""
    task = task_of(peer, name)

    def measure() -> float:
        worker = str(Path(__file__).with_name("worker.py"))
        command = [sys.executable, "-W", "ignore", worker, peer.name, name]
        return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    return Task(run=task.run, check=task.check, before=task.before, measure=measure)


def task_of(peer: Peer, name: str) -> Task:
    """Make the task whose memory a variant of M2 measures."""
    row_name, _, variant = name.partition(" ")
    return ROWS[row_name].make(peer, variant)


def peak_memory(peer: Peer, name: str) -> float:
    """Return the peak memory of this process in MiB during the work, without the memory before and without the output."""
    task = task_of(peer, name)
    task.before()
    Path("/proc/self/clear_refs").write_text("5")  # sets the high-water mark back
    base = status_kib("VmRSS")
    result = task.run()
    peak = status_kib("VmHWM") - base
    output = result if isinstance(result, list) else [result]
    peak -= sum(array.nbytes for array in output if isinstance(array, np.ndarray)) // 1024
    shutil.rmtree(scratch_path(peer), ignore_errors=True)
    return peak / 1024
