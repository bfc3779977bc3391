"""A pytest plugin for `scripts/ecosystem.py`: tests of zarr-python, and of zarrs, with tessarr inside zarr-python.

``ECOSYSTEM_MODE=patch`` puts `tessarr.zarr_python.patch` on for the whole run. ``ECOSYSTEM_MODE=pipeline`` answers
``zarrs.ZarrsCodecPipeline``, which the tests of zarrs put into the setting ``codec_pipeline.path``, by tessarr's pipeline.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import tessarr.zarr_python

MODE = os.environ["ECOSYSTEM_MODE"]


def pytest_configure(config: Any) -> None:  # noqa: ARG001 - the name of the argument is theirs
    """Put tessarr inside zarr-python, before any test is collected."""
    if MODE == "patch":
        tessarr.zarr_python.patch(force=True)
    else:
        _replace_pipeline()


def _replace_pipeline() -> None:
    """Register tessarr's pipeline under the name of that of zarrs."""
    import zarr.registry
    import zarrs

    from tessarr.zarr_python.pipeline import TessarrCodecPipeline

    registries = [
        getattr(zarr.registry, name)
        for name in ("__pipeline_registry", "_pipeline_registry")
        if hasattr(zarr.registry, name)
    ]
    for registry in registries:
        registry.lazy_load()
        registry["zarrs.ZarrsCodecPipeline"] = TessarrCodecPipeline
    vars(zarrs)["ZarrsCodecPipeline"] = TessarrCodecPipeline  # which the tests compare with


def answered() -> str:
    """The mode that was on, if tessarr read or wrote anything; "zarr-python" otherwise."""
    stats = tessarr.zarr_python.stats()
    print("\n", stats, file=sys.stderr)
    return MODE if stats.reads or stats.writes else "zarr-python"
