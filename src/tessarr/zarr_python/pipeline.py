"""The codec pipeline: tessarr's engines serve the calls of zarr-python's codec pipeline.

    zarr.config.set({"codec_pipeline.path": "tessarr.zarr_python.pipeline.TessarrCodecPipeline"})

It inherits from zarr-python's `BatchedCodecPipeline`, and falls back to it: for stores and codecs of other packages, GPU
buffers, chunks of irregular grids, inner chunks that another codec reads. zarr-python still plans each selection and makes a
tuple per chunk; the patch avoids these costs too.

Wherever tessarr is installed, zarr-python loads this module for its entry point, whichever pipeline is set. Therefore it
imports the engines (`piped`) only when an array is read or written through it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from zarr.core.array_spec import ArraySpec
from zarr.core.buffer import cpu
from zarr.core.codec_pipeline import BatchedCodecPipeline
from zarr.registry import register_pipeline

if TYPE_CHECKING:
    from zarr.abc.store import ByteGetter, ByteSetter
    from zarr.core.array_spec import ArrayConfig
    from zarr.core.buffer import NDBuffer
    from zarr.core.common import MemoryOrder
    from zarr.core.indexing import SelectorTuple
    from zarr.core.metadata import ArrayMetadata

    from tessarr.zarr_python.piped.array import PipedArray

    _Read: TypeAlias = tuple[ByteGetter, ArraySpec, SelectorTuple, SelectorTuple, bool]
    _Write: TypeAlias = tuple[ByteSetter, ArraySpec, SelectorTuple, SelectorTuple, bool]


_ENGINES = "tessarr.zarr_python.piped.array"
"""The module that loads the engines."""
_MAX_EARLY_READS = 32
"""Loading the engines takes as long as zarr-python needs for a hundred chunks; a process that reads more has it back soon."""
_SMALL_NBYTES = 1 << 18
"""Of a decoded chunk. A larger one takes zarr-python so much longer that the engines are loaded for it."""


@dataclass(frozen=True)
class TessarrCodecPipeline(BatchedCodecPipeline):
    """zarr-python's pipeline; tessarr reads and writes whole batches where it can."""

    metadata: ArrayMetadata | None = field(default=None, compare=False, repr=False)
    """The metadata of the array; ``None`` for a pipeline within a codec, which only encodes and decodes."""
    store: Any = field(default=None, compare=False, repr=False)
    _piped: PipedArray | None = field(default=None, compare=False, repr=False)
    """The array bound by tessarr; ``None`` before the first read or write."""

    @classmethod
    def from_array_metadata_and_store(cls, array_metadata: ArrayMetadata, store: object) -> Self:
        """Make the pipeline of the array with this metadata in `store`."""
        if array_metadata.zarr_format == 2:
            from zarr.codecs._v2 import V2Codec

            v2 = [V2Codec(filters=array_metadata.filters, compressor=array_metadata.compressor)]
            spec = ArraySpec(
                shape=array_metadata.chunks,
                dtype=array_metadata.dtype,
                fill_value=array_metadata.fill_value,
                config=_default_config(array_metadata.order),
                prototype=cpu.buffer_prototype,
            )
            pipeline = cls.from_codecs([codec.evolve_from_array_spec(spec) for codec in v2])
        else:
            pipeline = cls.from_codecs(array_metadata.codecs)
        object.__setattr__(pipeline, "metadata", array_metadata)
        object.__setattr__(pipeline, "store", store)
        return pipeline

    def evolve_from_array_spec(self, array_spec: ArraySpec) -> Self:
        pipeline = super().evolve_from_array_spec(array_spec)
        object.__setattr__(pipeline, "metadata", self.metadata)
        object.__setattr__(pipeline, "store", self.store)
        return pipeline

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_piped": None}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)

    async def read(
        self,
        batch_info: Iterable[_Read],
        out: NDBuffer,
        drop_axes: tuple[int, ...] = (),
    ) -> Any:
        batch = list(batch_info)
        if not batch:
            return ()
        if self._piped is None and _is_too_early(batch, out):
            return await super().read(batch, out, drop_axes)
        if await self._array().read(batch, out, drop_axes):
            return ({"status": "present"},) * len(batch)
        return await super().read(batch, out, drop_axes)

    async def write(
        self,
        batch_info: Iterable[_Write],
        value: NDBuffer,
        drop_axes: tuple[int, ...] = (),
    ) -> None:
        batch = list(batch_info)
        if batch and not await self._array().write(batch, value, drop_axes):
            await super().write(batch, value, drop_axes)

    def _array(self) -> PipedArray:
        """Return the array bound by tessarr; the first call loads the engines."""
        found = self._piped
        if found is None:
            from tessarr.zarr_python.piped.array import PipedArray

            found = PipedArray(self.metadata, self.store, keeps_padding=self.supports_partial_encode)
            object.__setattr__(self, "_piped", found)
        return found


_early_reads = 0
"""How often `_is_too_early` answered yes in this process."""


def _is_too_early(batch: list[_Read], out: NDBuffer) -> bool:
    """Return whether zarr-python reads `batch` because loading the engines takes longer: one of the first small chunks."""
    global _early_reads
    if _ENGINES in sys.modules or len(batch) != 1 or _early_reads >= _MAX_EARLY_READS:
        return False
    if prod(batch[0][1].shape) * out.dtype.itemsize > _SMALL_NBYTES:
        return False
    from tessarr.zarr_python.counts import COUNTS, is_strict

    if is_strict():
        return False
    _early_reads += 1
    COUNTS.fall_back("one of the first small chunks that a process reads, before tessarr's engines are loaded")
    return True


def _default_config(order: MemoryOrder) -> ArrayConfig:
    from zarr.core.array_spec import ArrayConfig

    return ArrayConfig.from_dict({"order": order})


register_pipeline(TessarrCodecPipeline)
