"""What a row of this folder is, and what is common to the jobs of its peers."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

FULL = os.environ.get("BENCH_SCALE", "full") != "small"
WORKERS = 2

Job: TypeAlias = Callable[[str, str], "dict[str, float] | None"]
"""Does the work from a source to a target, both paths; returns further figures, and "seconds" if not all of it is measured."""


class NotInstalledError(Exception):
    """A program that a peer is."""


class Row(NamedTuple):
    """A row of the table."""

    title: str
    make: Callable[[Path], None]
    """Writes the source to a path that does not exist."""
    check: Callable[[Path, Path, str], None]
    """Raises AssertionError unless the target, written by the peer of that name, has the values of the source."""
    jobs: Mapping[str, Job]
    """By peer; the first one is the one that others are compared with."""
    limit: int = 0
    """The bytes that all workers may use together, where peers take such a limit; 0: none."""
    around: Callable[[Path], AbstractContextManager[Mapping[str, str]]] | None = None
    """What runs beside each job, in a folder of its own, such as a server; yields variables for the environment of the job."""


def timed(work: Callable[[], object]) -> dict[str, float]:
    """Do the work; return its time, where a job has more to do than what is measured."""
    began = time.perf_counter()
    work()
    return {"seconds": time.perf_counter() - began}


@contextmanager
def dask_cluster(limit: int, target: str, workers: int = WORKERS) -> Iterator[Any]:
    """Start workers of one thread each, which may use `limit` bytes together; their files are beside `target`."""
    import dask
    import distributed

    with (
        dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"}),
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, memory_limit=limit // workers or None,
            dashboard_address=None, local_directory=f"{target}.dask",
        ) as cluster,
        distributed.Client(cluster) as client,
    ):  # fmt: skip
        client.wait_for_workers(workers)
        yield client


def assert_equal(source: Any, target: Any) -> None:
    """Raise AssertionError unless two arrays of tessarr have equal values; both are read in slabs."""
    import numpy as np

    assert source.shape == target.shape, f"shape {target.shape}"
    step = max(1, 2**27 // max(1, source.nbytes // max(1, source.shape[0])))
    for start in range(0, source.shape[0], step):
        assert np.array_equal(source[start : start + step], target[start : start + step]), f"values from row {start} on"


def opened(place: Path | str) -> Any:
    """Open the array that a peer wrote: at a path, or as the variable ``a`` of a group there."""
    import tessarr

    node = tessarr.open(place, mode="r")
    return node if isinstance(node, tessarr.Array) else node["a"]
