"""Rows X1 and X2: opening datasets with xarray in object storage that answers 40 ms late; seconds, and requests."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

import numpy as np
from layouts import DATA
from peers.base import NotSupportedError, Peer
from rows_latency import measured, url_of
from task import Task, row

MANY = "200 variables"
"""Of a dataset as those of weather are, with the coordinates time, level, latitude and longitude."""
VARIANTS = [
    MANY,
    f"{MANY}, version 2",
    f"{MANY}, not consolidated",
    f"{MANY} of one coordinate",
    "time in 512 chunks",
]
LATENCY_MS = 40
HOURS = np.datetime64("2026-01-01T00", "ns") + np.arange(24) * np.timedelta64(1, "h")
COORDINATES = {"time": HOURS, "level": np.array([850, 1000]), "lat": np.arange(4.0), "lon": np.arange(5.0)}


def is_consolidated(variant: str) -> bool:
    """Return whether one request is enough for all metadata."""
    return not variant.endswith("not consolidated")


def contents(variant: str) -> Any:
    """Make the dataset of a variant in memory."""
    import xarray as xr

    if not variant.startswith(MANY):
        ds = xr.Dataset({"v": (("time",), np.arange(512))}, {"time": np.arange(512) * 6})
        ds.time.encoding["chunks"] = (1,)
        return ds
    coordinates = {"lon": COORDINATES["lon"]} if variant.endswith("one coordinate") else COORDINATES
    values = np.zeros([len(one) for one in coordinates.values()], "float32")
    variables = {f"v{i:03}": (tuple(coordinates), values + i, {"units": "K"}) for i in range(200)}
    return xr.Dataset(variables, dict(coordinates))


@functools.cache
def dataset(variant: str) -> str:
    """Return the name, below `DATA`, of a dataset, which is written on first use."""
    import tessarr.xarray

    name = f"dataset-{variant.replace(',', '').replace(' ', '-')}"
    if not (DATA / name).exists():
        part = Path(f"{DATA / name}.{os.getpid()}")
        tessarr.xarray.to_zarr(
            contents(variant),
            part,
            mode="w",
            consolidated=is_consolidated(variant),
            zarr_format=2 if variant.endswith("version 2") else 3,
        )
        part.rename(DATA / name)
    return name


def opening(peer: Peer, variant: str, *, requests: bool) -> Task:
    """Open a dataset, coordinates included."""
    if type(peer).open_dataset is Peer.open_dataset:
        raise NotSupportedError("no engine of xarray")
    base = url_of(LATENCY_MS)
    bucket = dataset(variant)

    def run() -> Any:
        return peer.open_dataset(base, bucket, consolidated=is_consolidated(variant))

    def check(got: Any) -> None:
        expected = contents(variant)
        assert got.coords.to_dataset().equals(expected.coords.to_dataset())
        assert set(got.data_vars) == set(expected.data_vars)

    return Task(run=run, check=check, before=peer.forget, measure=measured(run, base, requests=requests))


@row("X1", f"xarray opens a dataset in S3, {LATENCY_MS} ms late", VARIANTS, bar=3.0)
def open_datasets(peer: Peer, variant: str) -> Task:
    """How long it takes."""
    return opening(peer, variant, requests=False)


@row("X2", "requests of the same", VARIANTS, unit="requests", most_rounds=3)
def count_requests_of_opening(peer: Peer, variant: str) -> Task:
    """How many requests it takes."""
    return opening(peer, variant, requests=True)
