"""N5's compression ``jpeg``: the elements of a block, mapped to bytes, as a grey JPEG image. v3 name ``tessarr.n5_jpeg``.

>>> N5JpegCodec(quality=90).to_json()["configuration"]["max"]
255.0

An element v becomes the byte ``((v - min) / (max - min)) ** gamma * 255``, rounded, and comes back by the inverse, clipped to
its
type. Width and height of the image carry no meaning; `width` is that of images written here, where it divides the block. Loses
precision (extra ``codecs``). No v2 id.

Source: n5-jpeg, class ``JPEGCompression`` of its Java source.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from tessarr.codecs.array_to_bytes.jpeg import pillow
from tessarr.codecs.base import BytesToBytes
from tessarr.codecs.members import Check, check_members, choice, integer, read_members
from tessarr.codecs.raw import corrupt, flat_bytes, size_error
from tessarr.errors import CodecError, MetadataValidationError, Problem
from tessarr.types import JSON, Buffer, JSONObject

_TYPES = (*(f"{sign}int{bits}" for sign in ("u", "") for bits in (8, 16, 32, 64)), "float32", "float64")
_LONGEST = 65500
"""libjpeg's limit on the pixels of a side."""


def _number(value: object) -> str | None:
    fine = isinstance(value, int | float) and not isinstance(value, bool) and np.isfinite(value)
    return None if fine else f"must be a number, got {value!r}"


_CHECKS: dict[str, Check] = {
    "quality": integer(0, 100),
    "data_type": choice(*_TYPES),
    "min": _number,
    "max": _number,
    "gamma": _number,
    "width": integer(1),
}


@dataclass(frozen=True, slots=True)
class N5JpegCodec(BytesToBytes):
    """Store big-endian elements of `data_type` as a grey JPEG image."""

    name = "tessarr.n5_jpeg"
    quality: int = 100
    data_type: str = "uint8"
    min: float = 0.0
    max: float = 255.0
    gamma: float = 1.0
    width: int = 1

    def __post_init__(self) -> None:
        check_members(self.name, self._members(), _CHECKS)
        problems = [
            *([Problem(("max",), "value", f"must differ from min, {self.min}")] if self.max == self.min else []),
            *([Problem(("gamma",), "value", f"must be positive, got {self.gamma}")] if self.gamma <= 0 else []),
        ]
        if problems:
            raise MetadataValidationError(f"invalid {self.name} codec", problems, codec=self.name)

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        return cls(**read_members(cls.name, configuration, _CHECKS))

    def to_json(self) -> JSONObject:
        return {"name": self.name, "configuration": self._members()}

    def _members(self) -> JSONObject:
        return {name: getattr(self, name) for name in _CHECKS}

    @property
    def _dtype(self) -> np.dtype[np.generic]:
        return np.dtype(self.data_type).newbyteorder(">")

    @property
    def _is_plain(self) -> bool:
        return (self.data_type, self.min, self.max, self.gamma) == ("uint8", 0, 255, 1)

    def encoded_size(self, nbytes: int) -> None:
        if nbytes % self._dtype.itemsize:
            raise CodecError("n5_jpeg takes whole elements", codec=self.name, got=f"{nbytes} bytes")

    def encode(self, data: Buffer) -> Buffer:
        elements = flat_bytes(data).view(self._dtype)
        samples = elements.view(np.uint8) if self._is_plain else self._to_samples(elements.astype(np.float64))
        width = self.width if len(samples) % self.width == 0 else 1
        if not 0 < len(samples) // width <= _LONGEST or width > _LONGEST:
            raise CodecError(
                "JPEG images have 1 to 65500 pixels a side", codec=self.name, got=f"{len(samples)} elements"
            )
        stream = io.BytesIO()
        pillow().fromarray(samples.reshape(-1, width)).save(stream, "JPEG", quality=self.quality)
        return stream.getvalue()

    def _to_samples(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.uint8]:
        share = np.clip((values - self.min) / (self.max - self.min), 0, 1)
        found: npt.NDArray[np.uint8] = np.floor(share**self.gamma * 255 + 0.5).astype(np.uint8)
        return found

    def decode(self, data: Buffer, nbytes: int | None) -> Buffer:
        source, image_module = flat_bytes(data).tobytes(), pillow()
        count = None if nbytes is None else nbytes // self._dtype.itemsize
        try:
            with image_module.open(io.BytesIO(source), formats=("JPEG",)) as image:
                if image.mode != "L" or count not in (None, image.width * image.height):
                    raise size_error(self.name, count, f"{image.width} × {image.height} pixels of mode {image.mode}")
                samples = np.asarray(image).reshape(-1)
        except (OSError, SyntaxError, ValueError, image_module.DecompressionBombError) as error:
            if isinstance(error, CodecError):
                raise
            raise corrupt(self.name, error) from error
        return samples.tobytes() if self._is_plain else self._from_samples(samples)

    def _from_samples(self, samples: npt.NDArray[np.uint8]) -> bytes:
        values = (samples / 255.0) ** (1 / self.gamma) * (self.max - self.min) + self.min
        dtype = self._dtype
        if dtype.kind == "f":
            return values.astype(dtype).tobytes()
        info = np.iinfo(self.data_type)
        # The largest float below an integer type's bound, where a float cannot be the bound itself.
        top = float(info.max) if int(float(info.max)) <= info.max else np.nextafter(float(info.max), 0)
        return np.floor(np.clip(values, info.min, top) + 0.5).clip(info.min, top).astype(dtype).tobytes()
