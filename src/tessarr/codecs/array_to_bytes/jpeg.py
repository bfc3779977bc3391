"""The ``jpeg`` codec: a chunk of bytes as a baseline JPEG image (extra ``codecs``). Loses precision.

Source: zarr-extensions pull request 66 (proposed, text of 2026-07-20). v3 name ``jpeg``; no v2 id.

>>> JpegCodec.from_json({}).to_json()
{'name': 'jpeg', 'configuration': {'quality': 90}}

``uint8`` only. A chunk whose last axis has length 3 is a colour image with that axis as its channels, any other chunk is
grey. Width and height of the image carry no meaning: samples are read in order, as Neuroglancer does. The width written is
the length of the last pixel axis, the height the product of the others, unless that exceeds JPEG's limits.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from math import isqrt, prod
from typing import Any, Self

import numpy as np

from tessarr.codecs.base import ArrayToBytes, ChunkSpec
from tessarr.codecs.members import check_members, integer, read_members
from tessarr.codecs.raw import corrupt, flat_bytes, size_error
from tessarr.errors import CodecError, MissingDependencyError
from tessarr.types import JSON, AnyArray, Buffer, JSONObject, Shape

_CHECKS = {"quality": integer(0, 100)}
_LONGEST = 65500
"""libjpeg's limit on the pixels of a side."""


@dataclass(frozen=True, slots=True)
class JpegCodec(ArrayToBytes):
    """Encode a chunk as a JPEG image."""

    name = "jpeg"
    quality: int = 90
    """JPEG quality, 0 to 100."""

    def __post_init__(self) -> None:
        check_members(self.name, {"quality": self.quality}, _CHECKS)

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        return cls(**read_members(cls.name, configuration, _CHECKS))

    def to_json(self) -> JSONObject:
        return {"name": self.name, "configuration": {"quality": self.quality}}

    def encoded_size(self, spec: ChunkSpec) -> None:
        if spec.dtype != np.uint8 or _sides(spec.shape) is None:
            raise CodecError(
                "jpeg cannot store such chunks",
                codec=self.name,
                expected="uint8 that fits an image of at most 65500 × 65500 pixels",
                got=f"shape {spec.shape} of {spec.data_type.name}",
            )

    def encode(self, chunk: AnyArray, spec: ChunkSpec) -> Buffer:
        sides = _sides(spec.shape)
        assert sides is not None  # checked when the chain was bound
        image = np.ascontiguousarray(chunk).reshape(*sides, *(_channels(spec.shape) > 1) * (3,))
        stream = io.BytesIO()
        pillow().fromarray(image).save(stream, "JPEG", quality=self.quality)
        return stream.getvalue()

    def decode(self, data: Buffer, spec: ChunkSpec) -> AnyArray:
        images, channels, count = pillow(), _channels(spec.shape), prod(spec.shape)
        try:
            with images.open(io.BytesIO(flat_bytes(data).tobytes()), formats=("JPEG",)) as image:
                found = (1 if image.mode == "L" else len(image.getbands())) * image.width * image.height
                if found != count or (image.mode == "L") != (channels == 1):
                    raise size_error(self.name, count, f"{image.width} × {image.height} pixels of mode {image.mode}")
                samples = np.asarray(image if channels == 1 else image.convert("RGB"))
        except (OSError, SyntaxError, ValueError, images.DecompressionBombError) as error:
            if isinstance(error, CodecError):
                raise
            raise corrupt(self.name, error) from error
        return samples.reshape(spec.shape)


def _channels(shape: Shape) -> int:
    return 3 if shape and shape[-1] == 3 else 1


def _sides(shape: Shape) -> tuple[int, int] | None:
    """Choose height and width of the image of a chunk; ``None`` when the chunk exceeds JPEG's limits."""
    pixels = shape[:-1] if _channels(shape) == 3 else shape
    count, width = prod(pixels), pixels[-1] if pixels else 1
    if 0 < width <= _LONGEST and 0 < count // width <= _LONGEST:
        return count // width, width
    widths = (n for n in range(isqrt(count), 0, -1) if count % n == 0)
    width = next(widths, 0)
    return (width, count // width) if width and count // width <= _LONGEST else None


def pillow() -> Any:
    """Import the module of images. Raises `MissingDependencyError`."""
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingDependencyError(
            "the jpeg codec needs the package pillow", codec="jpeg", hint="pip install 'tessarr[codecs]'"
        ) from error
    return Image
