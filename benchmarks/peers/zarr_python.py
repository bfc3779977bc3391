"""Measure zarr-python 3 with its two pipelines, zarrs-python's, tessarr's, and tessarr's patch."""

from __future__ import annotations

import importlib
import importlib.metadata
from typing import Any, ClassVar

import numpy as np
import zarr
import zarr.codecs
from layouts import Layout

from peers.base import NotSupportedError, Peer


def use_pipeline(path: str) -> None:
    """Set the pipeline of arrays opened later to `path`. Raises ImportError for a missing class."""
    module, _, name = path.rpartition(".")
    if not hasattr(importlib.import_module(module), name):
        raise ImportError(f"{path} does not exist in this release")
    zarr.config.set({"codec_pipeline.path": path})


class ZarrPython(Peer):
    """Measure the default pipeline."""

    statement: ClassVar[str] = "import zarr"

    def version(self) -> str:
        return f"zarr-python {zarr.__version__}"

    def open(self, path: str) -> Any:
        return zarr.open_array(path, mode="r+")

    def open_url(self, url: str) -> Any:
        from obstore.store import HTTPStore

        store = zarr.storage.ObjectStore(HTTPStore.from_url(url, client_options={"allow_http": True}), read_only=True)
        return zarr.open_array(store, mode="r")

    def open_dataset(self, endpoint: str, bucket: str, *, consolidated: bool) -> Any:
        import xarray as xr
        from obstore.store import S3Store

        place = S3Store(
            bucket, endpoint=endpoint, region="us-east-1", skip_signature=True, client_options={"allow_http": True}
        )
        store = zarr.storage.ObjectStore(place, read_only=True)
        return xr.open_dataset(store, engine="zarr", consolidated=consolidated)

    def dask_array(self, path: str, chunks: tuple[int, ...]) -> Any:
        import dask.array

        return dask.array.from_array(self.open(path), chunks=chunks)

    def read(self, array: Any, selection: tuple[Any, ...]) -> np.ndarray:
        return np.asarray(array[selection])

    def outer(self, array: Any, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return np.asarray(array.oindex[rows, columns])

    def points(self, array: Any, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return np.asarray(array.vindex[rows, columns])

    def create(self, path: str, layout: Layout, *, durable: bool) -> Any:
        if durable:
            raise NotSupportedError("no fsync")
        codecs: dict[str, Any] = {
            "raw": None,
            "blosc": zarr.codecs.BloscCodec(cname="lz4", clevel=5, shuffle="shuffle"),
            "zstd": zarr.codecs.ZstdCodec(level=3),
            "gzip": zarr.codecs.GzipCodec(level=1),
        }
        return zarr.create_array(
            path, shape=layout.shape, chunks=layout.chunk, shards=layout.shard, dtype=layout.dtype,
            compressors=codecs[layout.codec], fill_value=0,
        )  # fmt: skip

    def write(self, array: Any, selection: tuple[Any, ...], value: np.ndarray) -> None:
        array[selection] = value

    def create_varying(self, kind: str, count: int, chunk: int) -> Any:
        dtype = {"text": "string", "bytes": "variable_length_bytes"}[kind]
        return zarr.create_array({}, shape=count, chunks=(chunk,), dtype=dtype, compressors=None)

    def list_group(self, path: str) -> int:
        return len([name for name, _ in zarr.open_group(path, mode="r").arrays()])


class ZarrFused(ZarrPython):
    """Measure the fused pipeline."""

    def __init__(self) -> None:
        use_pipeline("zarr.core.codec_pipeline.FusedCodecPipeline")

    def version(self) -> str:
        return f"zarr-python {zarr.__version__}, FusedCodecPipeline"


class Zarrs(ZarrPython):
    """Measure zarrs-python, a Rust pipeline for zarr-python."""

    statement: ClassVar[str] = "import zarr, zarrs"

    def __init__(self) -> None:
        use_pipeline("zarrs.ZarrsCodecPipeline")

    def version(self) -> str:
        return f"zarrs-python {importlib.metadata.version('zarrs')}"


class TessarrPipeline(ZarrPython):
    """Measure tessarr's pipeline under zarr-python."""

    def __init__(self) -> None:
        use_pipeline("tessarr.zarr_python.pipeline.TessarrCodecPipeline")

    def version(self) -> str:
        return f"zarr-python {zarr.__version__}, pipeline of tessarr"

    def forget(self) -> None:
        import tessarr

        tessarr.clear_chunk_cache()


class Patched(TessarrPipeline):
    """Measure zarr-python with tessarr's patch."""

    def __init__(self) -> None:
        import tessarr.zarr_python

        tessarr.zarr_python.patch()

    def version(self) -> str:
        return f"zarr-python {zarr.__version__}, patched by tessarr"
