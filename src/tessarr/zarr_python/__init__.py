"""tessarr inside zarr-python: a patch, a codec pipeline, stores, codecs and data types; see docs/zarr-python.md.

    with tessarr.zarr_python.patch(): …       # zarr-python's arrays are read and written by tessarr
    python -m tessarr.zarr_python SCRIPT      # the same for an unchanged program
    tessarr.accelerate(z)                     # a tessarr array over one array of zarr-python, without a patch
    tessarr.zarr_python.as_store(store)       # a store of zarr-python over any store of tessarr
    zarr.config.set({"codec_pipeline.path": "tessarr.zarr_python.pipeline.TessarrCodecPipeline"})

Importing this changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tessarr.zarr_python.adopt import accelerate as accelerate
from tessarr.zarr_python.counts import Stats as Stats
from tessarr.zarr_python.counts import stats as stats
from tessarr.zarr_python.patch import TESTED as TESTED
from tessarr.zarr_python.patch import FallbackError as FallbackError
from tessarr.zarr_python.patch import PatchError as PatchError
from tessarr.zarr_python.patch import explain as explain
from tessarr.zarr_python.patch import is_patched as is_patched
from tessarr.zarr_python.patch import patch as patch
from tessarr.zarr_python.patch import unpatch as unpatch

if TYPE_CHECKING:
    from tessarr.zarr_python.stores.shape import TessarrStore


def as_store(place: object, *, mode: str | None = None) -> TessarrStore:
    """Make a store of zarr-python of a store of tessarr, a path or a URL; see `tessarr.zarr_python.stores.shape.as_store`."""
    from tessarr.zarr_python.stores import shape

    return shape.as_store(place, mode=mode)


def load_ipython_extension(ipython: object) -> None:  # noqa: ARG001 - the name of the argument is theirs
    """Patch zarr-python in a notebook: ``%load_ext tessarr.zarr_python``."""
    patch()


def unload_ipython_extension(ipython: object) -> None:  # noqa: ARG001 - the name of the argument is theirs
    """Undo the patch: ``%unload_ext tessarr.zarr_python``."""
    unpatch()


def dask_setup(worker: object) -> None:  # noqa: ARG001 - the name of the argument is theirs
    """Patch zarr-python in a process of dask: ``--preload tessarr.zarr_python``, or ``distributed.worker.preload``."""
    patch()
