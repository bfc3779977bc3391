"""Rows X1 and X2: opening datasets with xarray over HTTP from a server that answers 40 ms late; seconds, and requests."""

from __future__ import annotations

import functools
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from layouts import DATA
from peers.base import Peer
from rows_latency import count, url_of
from task import Task, row

VARIANTS = ["200 variables", "time in 512 chunks"]
LATENCY_MS = 40


@functools.cache
def dataset(variant: str) -> str:
    """The name, below `DATA`, of a dataset with consolidated metadata, written on first use."""
    import xarray as xr

    import tessarr.xarray

    name = f"dataset-{variant.replace(' ', '-')}.zarr"
    if not (DATA / name).exists():
        if variant == VARIANTS[0]:
            made = xr.Dataset({f"v{i:03}": (("x",), np.arange(4) + i) for i in range(200)}, {"x": np.arange(4)})
            encoding = {}
        else:
            made = xr.Dataset({"v": (("time",), np.arange(512))}, {"time": np.arange(512) * 6})
            encoding = {"time": {"chunks": (1,)}}
        part = Path(f"{DATA / name}.{os.getpid()}")
        tessarr.xarray.to_zarr(made, part, mode="w", consolidated=True, encoding=encoding)
        part.rename(DATA / name)
    return name


def opening(peer: Peer, variant: str, *, requests: bool) -> Task:
    """Open a dataset, coordinates included."""
    base = url_of(LATENCY_MS)
    url = f"{base}/{dataset(variant)}"

    def run() -> Any:
        return peer.open_dataset(url)

    def check(got: Any) -> None:
        if variant == VARIANTS[0]:
            assert len(got.data_vars) == 200
            assert got["x"].values.tolist() == [0, 1, 2, 3]
        else:
            assert np.array_equal(got["time"].values, np.arange(512) * 6)

    def measure() -> float:
        count(base)
        began = time.perf_counter()
        run()
        elapsed = time.perf_counter() - began
        return count(base) if requests else elapsed

    return Task(run=run, check=check, before=peer.forget, measure=measure)


@row("X1", f"xarray opens a dataset over HTTP, {LATENCY_MS} ms late", VARIANTS, bar=3.0)
def open_datasets(peer: Peer, variant: str) -> Task:
    """How long it takes."""
    return opening(peer, variant, requests=False)


@row("X2", "requests of the same", VARIANTS, unit="requests", most_rounds=3)
def count_requests_of_opening(peer: Peer, variant: str) -> Task:
    """How many requests it takes."""
    return opening(peer, variant, requests=True)
