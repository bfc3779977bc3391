"""Row P7: a pyramid of a volume."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plans.row import FULL, WORKERS, Row

SIDE, CHUNK, LEVELS = (512, 64, 5) if FULL else (64, 16, 2)
MEMORY = 500 * 10**6


def make(path: Path) -> None:
    """Write a volume of counts."""
    import numpy as np

    import tessarr

    group = tessarr.create_group(path)
    names = ("z", "y", "x")
    array = group.create_array("0", shape=(SIDE,) * 3, chunks=(CHUNK,) * 3, dtype="u2", dimension_names=names)
    for start in range(0, SIDE, CHUNK):
        random = np.random.default_rng(start)
        array[start : start + CHUNK] = random.integers(0, 2000, (CHUNK, SIDE, SIDE)).astype("u2")


def check(source: Path, target: Path, peer: str) -> None:
    """Compare all levels with exact means, up to how a peer rounds; ome-zarr-py interpolates: only its shapes are compared."""
    import numpy as np

    import tessarr

    expected: Any = tessarr.open_array(source, path="0", mode="r")[...]
    group = tessarr.open_group(target, mode="r")
    levels = {node.shape[-1]: node for _, node in group.members(max_depth=None) if isinstance(node, tessarr.Array)}
    for level in range(1, LEVELS + 1):
        side = SIDE >> level
        expected = expected.reshape(side, 2, side, 2, side, 2).mean((1, 3, 5))
        assert side in levels, f"level {level} of {sorted(levels)}"
        found: Any = levels[side][...].reshape(side, side, side)
        if peer != "ome-zarr":
            assert np.abs(found - expected).max() <= level, f"values of level {level}"


def tessarr_job(source: str, target: str) -> None:
    """Copy the volume, and carry out the plan of a pyramid."""
    import shutil

    import tessarr.plan

    shutil.copytree(source, target)
    with tessarr.config.set({"threading.max_workers": WORKERS}):
        tessarr.plan.pyramid(
            target, "0", levels=LEVELS, convention="ome-0.5", memory=MEMORY // WORKERS, verify=False
        ).run(slots=WORKERS)  # fmt: skip


def ngff_zarr_job(source: str, target: str) -> None:
    """Write the volume and its levels with ngff-zarr."""
    import dask.array as da
    import ngff_zarr
    import zarr

    volume = da.from_array(zarr.open_array(f"{source}/0", mode="r"), chunks=(CHUNK,) * 3)
    image = ngff_zarr.to_ngff_image(volume, dims=["z", "y", "x"])
    scales = ngff_zarr.to_multiscales(
        image, scale_factors=[2**level for level in range(1, LEVELS + 1)], chunks=CHUNK,
        method=ngff_zarr.Methods.ITKWASM_BIN_SHRINK,
    )  # fmt: skip
    ngff_zarr.to_ngff_zarr(target, scales, version="0.5")


def ome_zarr_job(source: str, target: str) -> None:
    """Write the volume and its levels with ome-zarr-py."""
    import dask.array as da
    import zarr
    from ome_zarr.writer import write_image

    volume = da.from_array(zarr.open_array(f"{source}/0", mode="r"), chunks=(CHUNK,) * 3)
    factors = [{"z": 2**level, "y": 2**level, "x": 2**level} for level in range(1, LEVELS + 1)]
    write_image(
        volume, zarr.open_group(target, mode="w"), axes="zyx", scale_factors=factors,
        storage_options={"chunks": (CHUNK,) * 3},
    )  # fmt: skip


def tensorstore_job(source: str, target: str) -> None:
    """Copy the volume, and write each level from a downsampled view of the one before."""
    import shutil

    import tensorstore as ts

    shutil.copytree(source, target)
    context = ts.Context(
        {"cache_pool": {"total_bytes_limit": MEMORY // 2}, "data_copy_concurrency": {"limit": WORKERS}}
    )
    before = ts.open({"driver": "zarr3", "kvstore": f"file://{source}/0/"}, context=context).result()
    for level in range(1, LEVELS + 1):
        view = ts.downsample(before, [2, 2, 2], "mean")
        made = ts.open(
            {"driver": "zarr3", "kvstore": f"file://{target}/{level}/"}, create=True, dtype=ts.uint16, context=context,
            shape=[SIDE >> level] * 3,
            chunk_layout=ts.ChunkLayout(chunk_shape=[min(CHUNK, SIDE >> level)] * 3),
            codec=ts.CodecSpec({"driver": "zarr3", "codecs": [
                {"name": "bytes"}, {"name": "zstd", "configuration": {"level": 0}}]}),
        ).result()  # fmt: skip
        made.write(view).result()
        before = made


ROWS = {
    "P7": Row(
        f"pyramid of {SIDE}³, {LEVELS} levels", make, check,
        {"tessarr": tessarr_job, "ngff-zarr": ngff_zarr_job, "ome-zarr": ome_zarr_job, "tensorstore": tensorstore_job},
        MEMORY,
    )
}  # fmt: skip
