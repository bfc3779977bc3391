"""zarr-python's ``zarr.core``."""

from __future__ import annotations

from tessarr.facade.lazy import submodules

__getattr__, __dir__ = submodules(
    __name__,
    "_info array array_spec attributes buffer chunk_grids chunk_key_encodings codec_pipeline common config dtype group "
    "indexing metadata sync sync_group",
    {
        "BatchedCodecPipeline": "tessarr.facade.zarr3.core.codec_pipeline",
        "Buffer": "tessarr.facade.zarr3.core.buffer",
        "NDBuffer": "tessarr.facade.zarr3.core.buffer",
    },
)
