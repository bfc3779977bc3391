"""tessarr inside zarr-python: a patch, a codec pipeline, stores, codecs and data types; see docs/zarr-python.md.

    with tessarr.zarr_python.patch(): …       # zarr-python's arrays are read and written by tessarr
    python -m tessarr.zarr_python SCRIPT      # the same for an unchanged program
    tessarr.accelerate(z)                     # a tessarr array over one array of zarr-python, without a patch
    tessarr.zarr_python.as_store(store)       # a store of zarr-python over any store of tessarr
    zarr.config.set({"codec_pipeline.path": "tessarr.zarr_python.pipeline.TessarrCodecPipeline"})

Importing this changes nothing, and loads nothing else: zarr-python loads the modules of its entry points.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tessarr.zarr_python.adopt import accelerate as accelerate
    from tessarr.zarr_python.counts import FallbackError as FallbackError
    from tessarr.zarr_python.counts import Stats as Stats
    from tessarr.zarr_python.counts import stats as stats
    from tessarr.zarr_python.patching import TESTED as TESTED
    from tessarr.zarr_python.patching import PatchError as PatchError
    from tessarr.zarr_python.patching import explain as explain
    from tessarr.zarr_python.patching import is_patched as is_patched
    from tessarr.zarr_python.patching import patch as patch
    from tessarr.zarr_python.patching import unpatch as unpatch
    from tessarr.zarr_python.stores.shape import as_store as as_store

_HOME = {
    "accelerate": "adopt",
    "as_store": "stores.shape",
    "explain": "patching",
    "FallbackError": "counts",
    "is_patched": "patching",
    "patch": "patching",
    "PatchError": "patching",
    "stats": "counts",
    "Stats": "counts",
    "TESTED": "patching",
    "unpatch": "patching",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'tessarr.zarr_python' has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"tessarr.zarr_python.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__]


def load_ipython_extension(ipython: object) -> None:  # noqa: ARG001 - the name of the argument is theirs
    """Patch zarr-python in a notebook: ``%load_ext tessarr.zarr_python``."""
    from tessarr.zarr_python.patching import patch

    patch()


def unload_ipython_extension(ipython: object) -> None:  # noqa: ARG001 - the name of the argument is theirs
    """Undo the patch: ``%unload_ext tessarr.zarr_python``."""
    from tessarr.zarr_python.patching import unpatch

    unpatch()


def dask_setup(worker: object) -> None:  # noqa: ARG001 - the name of the argument is theirs
    """Patch zarr-python in a process of dask: ``--preload tessarr.zarr_python``, or ``distributed.worker.preload``."""
    from tessarr.zarr_python.patching import patch

    patch()
