"""zarr-python's ``zarr.registry``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tessarr.registry as _ours
from tessarr.registry import (
    get_chunk_key_encoding_class,
    get_codec_class,
    get_numcodec,
    register_buffer,
    register_chunk_key_encoding,
    register_codec,
    register_ndbuffer,
    register_pipeline,
)

if TYPE_CHECKING:
    from tessarr.facade.zarr3.core.buffer.cpu import Buffer, NDBuffer
    from tessarr.facade.zarr3.core.codec_pipeline import BatchedCodecPipeline


__all__ = [
    "fully_qualified_name",
    "get_buffer_class",
    "get_chunk_key_encoding_class",
    "get_codec_class",
    "get_ndbuffer_class",
    "get_numcodec",
    "get_pipeline_class",
    "register_buffer",
    "register_chunk_key_encoding",
    "register_codec",
    "register_ndbuffer",
    "register_pipeline",
]


def fully_qualified_name(cls: type) -> str:
    """Return the name by which settings name a class: that of its module, a point, and its qualified name."""
    return f"{cls.__module__}.{cls.__qualname__}"


def get_pipeline_class(reload_config: bool = False) -> type[BatchedCodecPipeline]:  # noqa: ARG001 - zarr-python's argument
    """Return the class that stands for zarr-python's default pipeline. tessarr's engines read and write chunks."""
    from tessarr.facade.zarr3.core.codec_pipeline import BatchedCodecPipeline

    return BatchedCodecPipeline


def get_buffer_class(reload_config: bool = False) -> type[Buffer]:  # noqa: ARG001 - zarr-python's argument
    """Return the class of the buffers that stores and codecs of zarr-python's contract are given."""
    from tessarr.facade.zarr3.core.buffer.cpu import Buffer

    return Buffer


def get_ndbuffer_class(reload_config: bool = False) -> type[NDBuffer]:  # noqa: ARG001 - zarr-python's argument
    """Return the class of the arrays that codecs of zarr-python's contract are given."""
    from tessarr.facade.zarr3.core.buffer.cpu import NDBuffer

    return NDBuffer


def __getattr__(name: str) -> Any:
    return getattr(_ours, name)
