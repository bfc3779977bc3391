"""Define the functions of a peer, each implemented in the fastest public way of its library.

A peer that cannot do something raises `NotSupportedError`; the cell stays empty and the row is not lost.
"""

from __future__ import annotations

import importlib
from typing import Any, ClassVar

import numpy as np
from layouts import Layout

NAMES = (
    "tessarr",
    "tessarr-reference",
    "tessarr-free",
    "zarr-python",
    "zarr-fused",
    "tensorstore",
    "zarrs",
    "zarr-pipeline",
    "zarr-patched",
    "zarrista",
    "zarr2",
    "icechunk",
    "limit",
    "old",
)
PEERS = {
    "tessarr": "peers.tessarr_peer:Tessarr",
    "tessarr-reference": "peers.tessarr_peer:TessarrReference",
    "tessarr-free": "peers.tessarr_peer:FreeTessarr",
    "zarr-python": "peers.zarr_python:ZarrPython",
    "zarr-fused": "peers.zarr_python:ZarrFused",
    "tensorstore": "peers.tensorstore_peer:TensorStore",
    "zarrs": "peers.zarr_python:Zarrs",
    "zarr-pipeline": "peers.zarr_python:TessarrPipeline",
    "zarr-patched": "peers.zarr_python:Patched",
    "zarrista": "peers.zarrista_peer:Zarrista",
    "zarr2": "peers.zarr2:Zarr2",
    "icechunk": "peers.icechunk_peer:Icechunk",
    "limit": "peers.limit:Limit",
    "old": "peers.tessarr_peer:OldTessarr",
}


class NotSupportedError(Exception):
    """Report an operation that the peer lacks."""


class Peer:
    """Wrap one library. Handles are the objects that it opens; selections are tuples of slices and integers."""

    name: str = ""
    """As in `PEERS`."""
    statement: ClassVar[str] = "pass"
    """What importing it means, for the row of import times."""
    suffix: ClassVar[str] = ""
    """Added to the names of layouts: a peer may need them in another format."""

    def version(self) -> str:
        """Return name and version of the measured library."""
        raise NotSupportedError

    def forget(self) -> None:
        """Drop decoded chunks that outlive a handle, so that no run profits from the run before."""

    def dask_array(self, path: str, chunks: tuple[int, ...]) -> Any:
        """Make a dask array over a stored array."""
        raise NotSupportedError("its handles are no arrays to dask")

    def open(self, path: str) -> Any:
        """Open an array for reading and writing."""
        raise NotSupportedError

    def open_url(self, url: str) -> Any:
        """Open an array at an ``http:`` URL for reading, as if for the first time."""
        raise NotSupportedError

    def open_dataset(self, endpoint: str, bucket: str, *, consolidated: bool) -> Any:
        """Open the dataset of xarray in a bucket of the S3 service at `endpoint`, as if for the first time."""
        raise NotSupportedError("no engine of xarray")

    def read(self, array: Any, selection: tuple[Any, ...]) -> np.ndarray:
        """Read a box into a new array."""
        raise NotSupportedError

    def outer(self, array: Any, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Read the cross of `rows` and `columns`."""
        raise NotSupportedError

    def points(self, array: Any, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Read the elements at (`rows`, `columns`)."""
        raise NotSupportedError

    def create(self, path: str, layout: Layout, *, durable: bool) -> Any:
        """Make an empty array; `durable`: every write is on the disk when it returns."""
        raise NotSupportedError

    def write(self, array: Any, selection: tuple[Any, ...], value: np.ndarray) -> None:
        """Write `value` to a box."""
        raise NotSupportedError

    def create_varying(self, kind: str, count: int, chunk: int) -> Any:
        """Make an empty array of elements of varying length (`kind`: text or bytes) in memory, without a compressor."""
        raise NotSupportedError("no text and bytes in memory")

    def create_together(self, path: str, layout: Layout, names: tuple[str, ...], *, durable: bool) -> Any:
        """Make a group of arrays filled with 1, to be changed by transactions."""
        raise NotSupportedError("no transactions")

    def change_together(self, handle: Any, names: tuple[str, ...], value: np.ndarray) -> None:
        """Write `value` to all of these arrays in one transaction."""
        raise NotSupportedError("no transactions")

    def read_together(self, handle: Any, name: str) -> np.ndarray:
        """Read all of one of these arrays."""
        raise NotSupportedError("no transactions")

    def list_group(self, path: str) -> int:
        """Open a group and list its arrays by name; how many there are."""
        raise NotSupportedError

    def read_all(self, layout: Layout) -> np.ndarray:
        """Read a whole array through a handle that is opened for it."""
        return self.read(self.open(layout.path), (slice(None),) * len(layout.shape))


def load(name: str) -> Peer:
    """Return the peer called `name`. Raises ImportError when it is not installed."""
    module, _, attribute = PEERS[name].partition(":")
    peer: Peer = getattr(importlib.import_module(module), attribute)()
    peer.name = name
    return peer
