"""The ``zstd`` codec: Zstandard frames.

Source: zarr-extensions, "zstd"; RFC 8878. v3 name ``zstd``, v2 id ``zstd``; ``numcodecs.zstd`` is the same bytes.

>>> ZstdCodec.from_json({"level": 3}).to_json()
{'name': 'zstd', 'configuration': {'level': 3, 'checksum': False}}

``level`` is −131072 to 22; 0 means the library's default. ``checksum`` is written also when false, because older
zarrs and zarr-python documents have it always and their readers expect it. Decoding accepts any number of frames,
skippable ones, and frames that do not state their content size; a frame that needs a dictionary is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from tessarr.codecs.base import BytesToBytes
from tessarr.codecs.members import boolean, check_members, integer, read_members
from tessarr.codecs.raw import MAX_RATIO, UNKNOWN_SIZE_LIMIT, corrupt, flat_bytes, size_error
from tessarr.types import JSON, Buffer, JSONObject

if TYPE_CHECKING:
    import numpy.typing as npt

_CHECKS = {"level": integer(-131072, 22), "checksum": boolean}
_MAGIC = 0xFD2FB528
_SKIPPABLE = 0x184D2A50
"""The first of 16 magic numbers for frames that hold no content."""
_LONGEST_HEADER = 18
"""Bytes: magic number, descriptors of frame and window, dictionary, content size."""
_MAX_BLOCK = 128 << 10
"""Largest decoded size of a block (RFC 8878, 3.1.1.2.3)."""


@dataclass(frozen=True, slots=True)
class ZstdCodec(BytesToBytes):
    """Compress with Zstandard."""

    name = "zstd"
    level: int = 0
    """−131072 (fastest) to 22 (smallest); 0: the library's default, 3."""
    checksum: bool = False
    """Whether frames carry a checksum of their content, which readers verify."""

    def __post_init__(self) -> None:
        check_members(self.name, {"level": self.level, "checksum": self.checksum}, _CHECKS)

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        """Parse the configuration. A missing level is read as 0: the level does not matter to a reader."""
        return cls(**read_members(cls.name, configuration, _CHECKS))

    def to_json(self) -> JSONObject:
        return {"name": self.name, "configuration": {"level": self.level, "checksum": self.checksum}}

    def encoded_size(self, nbytes: int) -> None:
        return

    def encode(self, data: Buffer) -> Buffer:
        """Encode one frame that states its content size."""
        from tessarr.common.numcodecs import numcodecs

        encoded: bytes = numcodecs.zstd.compress(flat_bytes(data), self.level, self.checksum)
        return encoded

    def decode(self, data: Buffer, nbytes: int | None) -> Buffer:
        """Decode all frames of `data`."""
        source = flat_bytes(data)
        if nbytes is not None:
            if _frame_header(source.data, 0).content != nbytes or not 0 < nbytes <= len(source) * MAX_RATIO:
                _check_size(source, nbytes)
            out = np.empty(nbytes, np.uint8)
            _decompress(source, out)
            return out
        extent = _walk(source.data)
        if extent.bound > UNKNOWN_SIZE_LIMIT:
            raise size_error("zstd", None, f"up to {extent.bound} bytes")
        if extent.exact is not None:
            return self.decode(source, extent.exact)
        from tessarr.common.numcodecs import numcodecs

        try:
            decoded: bytes = numcodecs.zstd.decompress(source)
        except (RuntimeError, ValueError) as error:
            raise corrupt("zstd", error) from error
        return decoded

    def decode_into(self, data: Buffer, out: memoryview) -> bool:
        source = flat_bytes(data)
        _check_size(source, len(out))
        _decompress(source, flat_bytes(out))
        return True


decode = ZstdCodec().decode
"""Decoding depends on no parameter of the codec."""


def _check_size(source: npt.NDArray[np.uint8], nbytes: int) -> None:
    """Refuse frames that state, or by their blocks imply, another decoded size than `nbytes`."""
    view = source.data
    if nbytes > len(source) * MAX_RATIO:
        raise corrupt("zstd", f"{len(source)} bytes cannot decode to {nbytes}")
    if nbytes and _frame_header(view, 0).content == nbytes:
        return  # further frames, if any, are added up by numcodecs, which refuses more than the output holds
    extent = _walk(view)
    if extent.exact is not None and extent.exact != nbytes:
        raise size_error("zstd", nbytes, f"{extent.exact} bytes")
    if extent.bound < nbytes:
        raise size_error("zstd", nbytes, f"at most {extent.bound} bytes")


def _decompress(source: npt.NDArray[np.uint8], out: npt.NDArray[np.uint8]) -> None:
    """Decode `source`, whose size was checked, to exactly ``len(out)`` bytes."""
    from tessarr.common.numcodecs import numcodecs

    if len(out) == 0 and _walk(source.data).exact == 0:
        return  # numcodecs treats empty content as an error
    try:
        numcodecs.zstd.decompress(source, out)
    except (RuntimeError, ValueError) as error:
        raise corrupt("zstd", error) from error


class _Header(NamedTuple):
    content: int | None
    """Stated content size in bytes; 0 for a skippable frame."""
    end: int
    """Offset of the first block; for a skippable frame the offset of its end."""
    checksum: bool
    skippable: bool


class _Extent(NamedTuple):
    exact: int | None
    """Content of all frames in bytes, when every frame states it."""
    bound: int
    """Largest decoded size of the frames in bytes."""


def _uint(source: memoryview, at: int, width: int) -> int:
    if at + width > len(source):
        raise corrupt("zstd", f"the data ends at byte {len(source)}, inside a frame")
    return int.from_bytes(source[at : at + width], "little")


def _frame_header(source: memoryview, at: int) -> _Header:
    """Parse the header of a frame. Source: RFC 8878, 3.1.1 and 3.1.2."""
    head = bytes(source[at : at + _LONGEST_HEADER])
    magic = int.from_bytes(head[:4], "little")
    is_skippable = magic & ~0xF == _SKIPPABLE and len(head) >= 4
    if is_skippable and len(head) >= 8:
        end = at + 8 + int.from_bytes(head[4:8], "little")
        if end > len(source):
            raise corrupt("zstd", "a skippable frame reaches past the end")
        return _Header(0, end, False, True)
    if magic != _MAGIC and not is_skippable and len(head) >= 4:
        raise corrupt("zstd", f"no frame begins at byte {at} (found {magic:#010x})")
    descriptor = head[4] if len(head) > 4 and not is_skippable else 0
    if descriptor & 0x08:
        raise corrupt("zstd", "a reserved bit of the frame header is set")
    single = bool(descriptor & 0x20)
    dictionary = 5 + (not single)  # the window descriptor says nothing about the size
    begin = dictionary + (0, 1, 2, 4)[descriptor & 3]
    width = (1 if single else 0, 2, 4, 8)[descriptor >> 6]
    if begin + width > len(head) or is_skippable:
        raise corrupt("zstd", f"the data ends at byte {len(source)}, inside a frame")
    if any(head[dictionary:begin]):
        raise corrupt("zstd", "the frame needs a dictionary")
    content = int.from_bytes(head[begin : begin + width], "little") + (256 if width == 2 else 0) if width else None
    return _Header(content, at + begin + width, bool(descriptor & 0x04), False)


def _walk(source: memoryview) -> _Extent:
    """Bound the decoded size of the frames, from frame and block headers alone.

    A bound is kept for frames that do not state their size: raw and run-length blocks count exactly, compressed ones
    as 128 KiB, which is the most a block may hold.
    """
    exact: int | None = 0
    bound = at = 0
    while at < len(source) or at == 0:
        header = _frame_header(source, at)
        at = header.end
        if header.skippable:
            continue
        frame_bound, at = _walk_blocks(source, at)
        at += 4 if header.checksum else 0
        if at > len(source):
            raise corrupt("zstd", "the data ends inside a frame's checksum")
        if header.content is None:
            exact = None
        elif header.content > frame_bound:
            raise corrupt("zstd", f"a frame states {header.content} bytes, its blocks hold at most {frame_bound}")
        elif exact is not None:
            exact += header.content
        bound += frame_bound if header.content is None else header.content
    return _Extent(exact, bound)


def _walk_blocks(source: memoryview, at: int) -> tuple[int, int]:
    """Return the size bound of one frame's blocks, and the offset of their end."""
    bound = 0
    last = False
    while not last:
        header = _uint(source, at, 3)
        last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
        if kind == 3 or size > _MAX_BLOCK:
            raise corrupt("zstd", f"the block at byte {at} is malformed")
        bound += size if kind < 2 else _MAX_BLOCK
        at += 3 + (1 if kind == 1 else size)
        if at > len(source):
            raise corrupt("zstd", "the data ends inside a block")
    return bound, at
