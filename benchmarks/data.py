"""Write the arrays that are read: the true values with NumPy, the Zarr data with zarr-python.

.bench/main/bin/python benchmarks/data.py      # done by bench.py when something is missing
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import layouts
import numpy as np
from layouts import DATA, GRIDS, LAYOUTS, SIDE, SIDE_1D, SIDE_2D, Layout


def smooth_noise(shape: tuple[int, ...]) -> np.ndarray:
    """Simulate the counts of an instrument: a smooth field with shot noise; compresses about 2:1."""
    rng = np.random.default_rng(20240607)
    axes = np.ogrid[tuple(slice(0, n) for n in shape)]
    waves = (np.sin(axis / (17.0 + 11 * number)) for number, axis in enumerate(axes))
    field = sum(waves, start=np.zeros(()))
    noise = rng.integers(0, 64, shape, dtype=np.uint16)
    return (1000 + 300 * field).astype(np.uint16) + noise


def write_truth() -> None:
    """Write the true values as .npy files."""
    for shape in ((SIDE_1D,), (SIDE_2D,) * 2):
        np.save(DATA / f"truth{len(shape)}d.npy", (smooth_noise(shape) / np.float32(16)).astype(np.float32))
    np.save(DATA / "truth3d.npy", smooth_noise((SIDE,) * 3))


def write_array(layout: Layout) -> None:
    """Write one layout, in the format in which it is read."""
    import zarr
    from numcodecs import GZip, Zstd
    from numcodecs.blosc import Blosc

    if layout.zarr_format == 2:
        codecs = {"raw": None, "blosc": Blosc("lz4", 5, 1), "zstd": Zstd(3), "gzip": GZip(1)}
        array = zarr.create_array(
            layout.path, shape=layout.shape, chunks=layout.chunk, dtype=layout.dtype, compressors=codecs[layout.codec],
            fill_value=0, zarr_format=2, overwrite=True,
        )  # fmt: skip
    else:
        Path(layout.path).mkdir(parents=True)
        (Path(layout.path) / "zarr.json").write_text(json.dumps(layout.metadata()))
        array = zarr.open_array(layout.path, mode="r+")
    array[...] = layout.truth()[...]


def write_grid(name: str, count: int) -> None:
    """Write an array of `count`³ chunks of which one is stored."""
    layout = Layout(name, (4 * count,) * 3, (4, 4, 4), "raw")
    folder = Path(layout.path)
    (folder / "c" / "1" / "2").mkdir(parents=True)
    (folder / "zarr.json").write_text(json.dumps(layout.metadata()))
    (folder / "c" / "1" / "2" / "3").write_bytes(np.arange(64, dtype="<u2").tobytes())


def write_group(name: str, *, consolidated: bool) -> None:
    """Write a group of 1,000 small arrays without chunks."""
    folder = DATA / name
    document = Layout("a", (100, 100), (10, 10), "zstd", dtype="float32").metadata()
    group: dict[str, object] = {"zarr_format": 3, "node_type": "group", "attributes": {}}
    members = {f"array{number:04d}": document for number in range(1000)}
    for member, content in members.items():
        (folder / member).mkdir(parents=True)
        (folder / member / "zarr.json").write_text(json.dumps(content))
    if consolidated:
        group["consolidated_metadata"] = {"kind": "inline", "must_understand": False, "metadata": members}
    (folder / "zarr.json").write_text(json.dumps(group))


def main() -> None:
    """Write everything that is missing; a marker per piece is written after the piece is complete."""
    DATA.mkdir(parents=True, exist_ok=True)
    if not all((DATA / f"truth{axes}d.npy").exists() for axes in (1, 2, 3)):
        write_truth()
    pieces: dict[str, Callable[[], None]] = {
        **{name: partial(write_array, layout) for name, layout in LAYOUTS.items()},
        **{name: partial(write_grid, name, count) for name, count in GRIDS.items()},
        "group": partial(write_group, "group.zarr", consolidated=False),
        "group-consolidated": partial(write_group, "group-consolidated.zarr", consolidated=True),
    }
    for name, write in pieces.items():
        done = DATA / f".{name}.done"
        if not done.exists():
            shutil.rmtree(DATA / f"{name}.zarr", ignore_errors=True)
            print(f"writing {layouts.SCALE}/{name}", flush=True)
            write()
            done.touch()


if __name__ == "__main__":
    main()
