"""Rows P1 to P4, and P4L: other chunks."""

from __future__ import annotations

from functools import partial
from math import prod
from pathlib import Path
from typing import Any, Literal, NamedTuple

from plans.row import FULL, WORKERS, Job, Row, assert_equal, dask_cluster, opened, timed

Method = Literal["tasks", "p2p", "p2p-memory"]


class Layouts(NamedTuple):
    """An array before and after."""

    shape: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    dtype: str
    limit: int
    shards: tuple[int, ...] | None = None


GB, MB = 10**9, 10**6
LAYOUTS = {
    "P1": Layouts((540, 721, 1440), (1, 721, 1440), (540, 20, 20), "f4", 2 * GB)
    if FULL
    else Layouts((60, 181, 360), (1, 181, 360), (60, 20, 20), "f4", GB),
    "P2": Layouts((3000, 300, 150), (60, 300, 150), (3000, 6, 150), "f8", 2 * GB)
    if FULL
    else Layouts((600, 60, 30), (60, 60, 30), (600, 6, 30), "f8", GB),
    "P3": Layouts((20480, 20480), (512, 512), (512, 512), "f4", 2 * GB, (5120, 5120))
    if FULL
    else Layouts((2048, 2048), (128, 128), (128, 128), "f4", GB, (1024, 1024)),
    "P4": Layouts((9990, 9990), (1000, 1000), (999, 999), "f8", 2 * GB)
    if FULL
    else Layouts((1998, 1998), (200, 200), (199, 199), "f8", GB),
    "P4L": Layouts((19980, 19980), (1000, 1000), (999, 999), "f8", 2 * GB)
    if FULL
    else Layouts((3996, 3996), (200, 200), (199, 199), "f8", GB),
}
BLOSC = {
    "name": "blosc",
    "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0},
}


def make(name: str, path: Path) -> None:
    """Write the source: numbers that compress to about a half."""
    import numpy as np

    import tessarr

    layout = LAYOUTS[name]
    group = tessarr.create_group(path, zarr_format=3 if layout.shards else 2)
    array = group.create_array(
        "a", shape=layout.shape, chunks=layout.before, dtype=layout.dtype, compressors=_compressor(layout),
        **({"dimension_names": _names(layout)} if layout.shards else {"attributes": {"_ARRAY_DIMENSIONS": _names(layout)}}),
    )  # fmt: skip
    random = np.random.default_rng(0)
    step = layout.before[0]
    for start in range(0, layout.shape[0], step):
        region = (min(step, layout.shape[0] - start), *layout.shape[1:])
        array[start : start + step] = random.integers(0, 4000, region).astype(layout.dtype) / 16 + start


def _names(layout: Layouts) -> list[str]:
    return ["t", "y", "x"][-len(layout.shape) :]


def _compressor(layout: Layouts) -> Any:
    size = int(layout.dtype[1])
    if layout.shards:
        return [{**BLOSC, "configuration": {**BLOSC["configuration"], "typesize": size}}]  # type: ignore[dict-item]
    return {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}


def check(name: str, source: Path, target: Path, peer: str) -> None:
    """Compare chunks, shards and values; "limit" has none that are right."""
    if peer == "limit":
        assert len(list(target.iterdir())) == len(list((source / "a").glob("[0-9]*"))), "chunks"
        return
    found, layout = opened(target), LAYOUTS[name]
    assert found.chunks == layout.after, f"chunks {found.chunks}"
    assert found.shards == layout.shards, f"shards {found.shards}"
    assert_equal(opened(source), found)


def tessarr_job(name: str, source: str, target: str, *, verify: bool) -> None:
    """Carry out a plan, one task at a time, which uses all threads and may use all of the memory."""
    import tessarr.plan

    layout = LAYOUTS[name]
    with tessarr.config.set({"threading.max_workers": WORKERS}):
        tessarr.plan.rechunk(
            f"{source}/a", target, chunks=layout.after, shards=layout.shards or "keep", memory=layout.limit, verify=verify,
        ).run()  # fmt: skip


def _zarr_array(layout: Layouts, target: str) -> Any:
    import zarr
    from zarr.codecs import BloscCodec

    return zarr.create_array(
        target, shape=layout.shape, chunks=layout.after, shards=layout.shards, dtype=layout.dtype,
        compressors=BloscCodec(cname="lz4", clevel=5, shuffle="shuffle"), fill_value=0,
    )  # fmt: skip


def dask_job(name: str, source: str, target: str, *, method: Method) -> dict[str, float]:
    """Rechunk to whole stored values, and store them without locks; the start of the cluster is not measured."""
    import dask
    import dask.array as da
    import zarr

    layout = LAYOUTS[name]
    with (
        dask.config.set(
            {"array.rechunk.method": method.partition("-")[0], "distributed.p2p.storage.disk": method != "p2p-memory"}
        ),
        dask_cluster(layout.limit, target),
    ):

        def work() -> None:
            array = zarr.open_array(f"{source}/a", mode="r")
            moved = da.from_array(array, chunks=layout.before).rechunk(layout.shards or layout.after)
            da.store(moved, _zarr_array(layout, target), lock=False)

        return timed(work)


def xarray_job(name: str, source: str, target: str) -> dict[str, float]:
    """Use a dataset's ``to_zarr``; the start of the cluster is not measured."""
    import xarray as xr
    from zarr.codecs import BloscCodec

    layout = LAYOUTS[name]
    names = _names(layout)
    chunks: Any = {
        "chunks": layout.after,
        "compressors": BloscCodec(cname="lz4", clevel=5, shuffle="shuffle"),
    }
    if layout.shards:
        chunks["shards"] = layout.shards
    with dask_cluster(layout.limit, target):

        def work() -> None:
            dataset: Any = xr.open_zarr(source, consolidated=False, mask_and_scale=False)
            dataset = dataset.chunk(dict(zip(names, layout.shards or layout.after, strict=True)))
            dataset["a"].encoding = {}
            dataset.to_zarr(target, mode="w", zarr_format=3, encoding={"a": chunks}, consolidated=False)

        return timed(work)


def cubed_job(name: str, source: str, target: str) -> None:
    """Rechunk with cubed, in processes."""
    import cubed
    from cubed.runtime.executors.local import ProcessesExecutor

    layout = LAYOUTS[name]
    spec = cubed.Spec(
        work_dir=f"{target}.cubed", allowed_mem=layout.limit // WORKERS, reserved_mem=100 * MB,
        executor=ProcessesExecutor(max_workers=WORKERS),
    )  # fmt: skip
    array = cubed.from_zarr(f"{source}/a", spec=spec)
    cubed.to_zarr(cubed.rechunk(array, layout.after), store=target)


def rechunker_job(name: str, source: str, target: str) -> None:
    """Rechunk with rechunker, on dask's threads."""
    import rechunker
    import zarr

    layout = LAYOUTS[name]
    plan = rechunker.rechunk(
        zarr.open_array(f"{source}/a", mode="r"), target_chunks=layout.after, max_mem=layout.limit // WORKERS,
        target_store=target, temp_store=f"{target}.temporary",
    )  # fmt: skip
    plan.execute(scheduler="threads", num_workers=WORKERS)


def tensorstore_job(name: str, source: str, target: str) -> None:
    """Copy one array to another, with a pool for chunks of half of the memory."""
    import tensorstore as ts

    layout = LAYOUTS[name]
    size, blosc = int(layout.dtype[1]), dict(BLOSC)
    blosc["configuration"] = {**BLOSC["configuration"], "typesize": size}  # type: ignore[dict-item]
    codecs: list[Any] = [{"name": "bytes", "configuration": {"endian": "little"}}, blosc]
    if layout.shards:
        inner = {"chunk_shape": layout.after, "codecs": codecs, "index_location": "end"}
        inner["index_codecs"] = [codecs[0], {"name": "crc32c"}]
        codecs = [{"name": "sharding_indexed", "configuration": inner}]
    context = ts.Context(
        {"cache_pool": {"total_bytes_limit": layout.limit // 2}, "data_copy_concurrency": {"limit": WORKERS}}
    )
    driver = "zarr3" if layout.shards else "zarr"
    store = ts.open({"driver": driver, "kvstore": f"file://{source}/a/"}, context=context).result()
    metadata = {
        "shape": layout.shape, "data_type": f"float{8 * size}", "fill_value": 0.0, "codecs": codecs,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": layout.shards or layout.after}},
        "chunk_key_encoding": {"name": "default"},
    }  # fmt: skip
    made = ts.open(
        {"driver": "zarr3", "kvstore": f"file://{target}/", "metadata": metadata}, context=context, create=True
    ).result()
    made.write(store).result()


def limit_job(name: str, source: str, target: str) -> None:
    """Do only what every peer must: read and decode each chunk once, encode as many of the new shape, and write their files.

    By the library of the codec, in as many threads as there are processors, each of which keeps its memory.
    """
    import threading
    from concurrent.futures import ThreadPoolExecutor

    import numpy as np
    from numcodecs import blosc

    layout, kept = LAYOUTS[name], threading.local()
    blosc.use_threads = False
    codec, folder = blosc.Blosc("lz4", 5, blosc.SHUFFLE), Path(target)
    folder.mkdir()

    def move(file: Path) -> None:
        if not hasattr(kept, "values"):
            kept.values = np.empty(layout.before, layout.dtype)
        codec.decode(file.read_bytes(), out=kept.values)
        moved = np.ascontiguousarray(kept.values[tuple(map(slice, layout.after))])
        (folder / file.name).write_bytes(codec.encode(moved))

    with ThreadPoolExecutor(WORKERS) as threads:
        list(threads.map(move, Path(source, "a").glob("[0-9]*")))


def row(name: str, title: str, *left_out: str) -> Row:
    """Return a row."""
    jobs: dict[str, Job] = {
        "tessarr": partial(tessarr_job, name, verify=False),
        "tessarr verify": partial(tessarr_job, name, verify=True),
        "rechunker": partial(rechunker_job, name),
        "cubed": partial(cubed_job, name),
        "dask tasks": partial(dask_job, name, method="tasks"),
        "dask p2p": partial(dask_job, name, method="p2p"),
        "dask p2p memory": partial(dask_job, name, method="p2p-memory"),
        "xarray": partial(xarray_job, name),
        "tensorstore": partial(tensorstore_job, name),
        "limit": partial(limit_job, name),
    }
    layout = LAYOUTS[name]
    size = prod(layout.shape) * int(layout.dtype[1]) / GB
    return Row(
        f"{title}, {size:.3g} GB", partial(make, name), partial(check, name),
        {peer: job for peer, job in jobs.items() if peer not in left_out}, layout.limit,
    )  # fmt: skip


ROWS = {
    "P1": row("P1", "rechunk hours of the globe to series of points", "limit"),
    "P2": row("P2", "rechunk to the other axis", "limit"),
    "P3": row("P3", "assemble chunks into shards", "rechunker", "cubed", "limit"),
    "P4": row("P4", "rechunk 1000 to 999 along two axes"),
    "P4L": row("P4L", "rechunk 1000 to 999 along two axes, of more than the memory"),
}
