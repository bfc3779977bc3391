"""The ``blosc`` codec: the Blosc 1 container around lz4, lz4hc, blosclz, zstd, zlib or snappy.

Source: Zarr v3.1, "Blosc codec"; c-blosc, README_CHUNK_FORMAT. v3 name ``blosc``. The v2 id ``blosc`` and the v3 name
``numcodecs.blosc`` have the same bytes and another configuration (numbers for ``shuffle``, no ``typesize``), see
`tessarr.codecs.numcodecs`.

>>> BloscCodec(cname="lz4", clevel=1, shuffle="shuffle", typesize=4).to_json()
{'name': 'blosc', 'configuration': {'typesize': 4, 'cname': 'lz4', 'clevel': 1, 'shuffle': 'shuffle', 'blocksize': 0}}

``typesize`` and ``shuffle``, where left out, are chosen for the elements that reach the codec: their size, and ``bitshuffle``
for single bytes, ``shuffle`` for wider elements; the choice is recorded. Decoding follows the header of the data, never
the configuration. Blosc 2 frames are an error. snappy is available only if the installed numcodecs was built with it.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Literal, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from tessarr.codecs.base import BytesToBytes, ChunkSpec
from tessarr.codecs.members import check_members, choice, integer, optional, plain_value, read_members
from tessarr.codecs.raw import MAX_RATIO, UNKNOWN_SIZE_LIMIT, corrupt, flat_bytes, size_error
from tessarr.errors import CodecError, MetadataValidationError, Problem
from tessarr.types import JSON, Buffer, JSONObject

Shuffle = Literal["noshuffle", "shuffle", "bitshuffle"]
CName = Literal["lz4", "lz4hc", "blosclz", "zstd", "snappy", "zlib"]

SHUFFLES: tuple[Shuffle, ...] = ("noshuffle", "shuffle", "bitshuffle")
"""Names of the shuffle modes, indexed by their numbers in v2 and in the library."""

_CHECKS = {
    "typesize": optional(integer(1)),
    "cname": choice("lz4", "lz4hc", "blosclz", "zstd", "snappy", "zlib"),
    "clevel": integer(0, 9),
    "shuffle": optional(choice(*SHUFFLES)),
    "blocksize": integer(0),
}
_HEADER = struct.Struct("<4B3I")
_MAX_INPUT = (1 << 31) - 1 - 16
_LONGEST_RUN = 8_421_000
"""c-blosc 405: 8,421,505 length bytes of 0xFF overflow a 32-bit length in blosclz, which then writes past its buffer.

No well-formed frame has such a run: 8 MiB of blosclz input bytes for one match of 2 GiB.
"""

T = TypeVar("T")


class BloscShuffle(StrEnum):
    """Values of ``shuffle`` of `BloscCodec`, as zarr-python enumerates them. Each member is the string in documents.

    >>> BloscCodec(shuffle=BloscShuffle.bitshuffle).shuffle == "bitshuffle"
    True
    """

    noshuffle = "noshuffle"
    shuffle = "shuffle"
    bitshuffle = "bitshuffle"


class BloscCname(StrEnum):
    """Values of ``cname`` of `BloscCodec`, as zarr-python enumerates them."""

    lz4 = "lz4"
    lz4hc = "lz4hc"
    blosclz = "blosclz"
    zstd = "zstd"
    snappy = "snappy"
    zlib = "zlib"


@dataclass(frozen=True, slots=True)
class BloscCodec(BytesToBytes):
    """Shuffle and compress, block by block."""

    name = "blosc"
    typesize: int | None = None
    """Bytes per element, the stride of the shuffle; ``None``: the size of the elements that reach the codec."""
    cname: CName | BloscCname = "zstd"
    clevel: int = 5
    """0 (stored) to 9 (smallest)."""
    shuffle: Shuffle | BloscShuffle | None = None
    """``None``: bitshuffle for elements of one byte, shuffle otherwise."""
    blocksize: int = 0
    """Bytes per block; 0: the library decides. The library enlarges small blocks for compressors whose blocks it
    splits.
    """

    def __post_init__(self) -> None:
        for name in ("cname", "shuffle"):
            object.__setattr__(self, name, plain_value(getattr(self, name), "BloscCodec", name))
        check_members(self.name, {name: getattr(self, name) for name in _CHECKS}, _CHECKS)
        object.__setattr__(self, "cname", BloscCname(self.cname))
        if self.shuffle is not None:
            object.__setattr__(self, "shuffle", BloscShuffle(self.shuffle))

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        checks = {**_CHECKS, "typesize": integer(1), "shuffle": choice(*SHUFFLES)}
        required: tuple[str, ...] = ("cname", "clevel", "shuffle", "blocksize")
        if configuration.get("shuffle") != "noshuffle":
            required = ("typesize", *required)
        return cls(**read_members(cls.name, configuration, checks, required=required))

    def to_json(self) -> JSONObject:
        """Return the v3 codec object. Raises `MetadataValidationError` while typesize or shuffle are undecided."""
        if self.shuffle is None or (self.typesize is None and self.shuffle != "noshuffle"):
            raise MetadataValidationError(
                "the blosc codec is not complete",
                [Problem(("typesize",), "missing", "is chosen when an array is created; call fit() or state it")],
                codec=self.name,
            )
        typesize: JSONObject = {} if self.typesize is None else {"typesize": self.typesize}
        rest: JSONObject = {"cname": str(self.cname), "clevel": self.clevel, "shuffle": str(self.shuffle)}
        return {"name": self.name, "configuration": {**typesize, **rest, "blocksize": self.blocksize}}

    def to_dict(self) -> JSONObject:
        """Return `to_json`, without undecided members."""
        members = {name: plain_value(getattr(self, name)) for name in _CHECKS}
        return {"name": self.name, "configuration": {name: v for name, v in members.items() if v is not None}}

    @classmethod
    def from_dict(cls, data: Mapping[str, JSON]) -> Self:
        """Return the codec of `to_dict`."""
        configuration = data.get("configuration", {})
        return cls(**read_members(cls.name, configuration, _CHECKS, required=()))  # type: ignore[arg-type]

    def fit(self, spec: ChunkSpec) -> Self:
        """Decide typesize and shuffle for `spec`; text and other bytes without a stride are not shuffled."""
        size = spec.data_type.itemsize
        typesize = self.typesize or size or 1
        automatic: Shuffle = "noshuffle" if size is None else "bitshuffle" if typesize == 1 else "shuffle"
        return replace(self, typesize=typesize, shuffle=self.shuffle or automatic)

    def encoded_size(self, nbytes: int) -> None:
        return

    def encode(self, data: Buffer) -> Buffer:
        """Encode one Blosc 1 frame."""
        typesize = self.typesize or 1
        shuffle = self.shuffle or ("bitshuffle" if typesize == 1 else "shuffle")
        return compress(data, self.cname, self.clevel, SHUFFLES.index(shuffle), self.blocksize, typesize)

    def decode(self, data: Buffer, nbytes: int | None) -> Buffer:
        return decode(data, nbytes)

    def decode_into(self, data: Buffer, out: memoryview) -> bool:
        source = flat_bytes(data)
        header = read_header(source, len(out))
        _decompress(source, header, flat_bytes(out))
        return True


class Header(NamedTuple):
    """The header of a Blosc 1 frame, checked against the frame."""

    flags: int
    typesize: int
    nbytes: int
    blocksize: int

    @property
    def stored(self) -> bool:
        """Whether the frame holds its content uncompressed."""
        return bool(self.flags & 2)

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return -(-self.nbytes // self.blocksize)


def read_header(source: npt.NDArray[np.uint8], nbytes: int | None) -> Header:
    """Check header and block table of a frame that must decode to `nbytes` (``None``: unknown), before the C library
    reads it.

    Source: c-blosc, README_CHUNK_FORMAT. Raises `CodecError`.
    """
    if len(source) < _HEADER.size:
        raise corrupt("blosc", f"{len(source)} bytes are shorter than a header")
    version, _, flags, typesize, content, blocksize, stored = _HEADER.unpack(source[: _HEADER.size].tobytes())
    if version != 2 or flags & 5 == 5:
        kind = "a Blosc 2 frame" if version > 2 or flags & 5 == 5 else "not a Blosc 1 frame"
        raise corrupt("blosc", f"the data is {kind} (version {version}, flags {flags:#04x})")
    if nbytes is not None and content != nbytes:
        raise size_error("blosc", nbytes, f"{content} bytes by its header")
    if content > UNKNOWN_SIZE_LIMIT or content > len(source) * MAX_RATIO:
        raise size_error("blosc", nbytes, f"{content} bytes by its header, from {len(source)}")
    if stored != len(source):
        raise corrupt("blosc", f"the header says {stored} bytes are stored, there are {len(source)}")
    if flags & 8 or typesize == 0 or (content and not 0 < blocksize <= content):
        raise corrupt("blosc", f"impossible header (flags {flags:#04x}, typesize {typesize}, blocksize {blocksize})")
    header = Header(flags, typesize, content, blocksize)
    if header.stored:
        if content + _HEADER.size != len(source):
            raise corrupt("blosc", f"{content} bytes stored uncompressed cannot take {len(source)} bytes")
    elif content:
        _check_blocks(source, header)
    return header


def _check_blocks(source: npt.NDArray[np.uint8], header: Header) -> None:
    """Check that every block, and the first stream in it, lies within the frame; c-blosc checks the further streams of
    a block.
    """
    table = _HEADER.size + 4 * header.blocks
    if table > len(source):
        raise corrupt("blosc", f"a table of {header.blocks} blocks does not fit into {len(source)} bytes")
    starts = source[_HEADER.size : table].view("<i4").astype(np.int64)
    if starts.min() < table or starts.max() > len(source) - 4:
        raise corrupt("blosc", "a block begins outside the frame")
    sizes = source[starts[:, None] + np.arange(4)].view("<i4")[:, 0].astype(np.int64)
    if sizes.min() < 0 or (starts + 4 + sizes).max() > len(source):
        raise corrupt("blosc", "a block reaches past the end of the frame")
    if header.flags >> 5 == 0 and len(source) > _LONGEST_RUN and b"\xff" * _LONGEST_RUN in source.tobytes():
        raise corrupt("blosc", "a blosclz stream has a length that overflows (c-blosc issue 405)")


def compress(data: Buffer, cname: str, clevel: int, shuffle: int, blocksize: int, typesize: int) -> bytes:
    """Compress one frame. `shuffle`: 0, 1, 2 as in `SHUFFLES`. Raises `CodecError` for more than 2 GiB or a missing
    `cname`.
    """
    from tessarr.common.numcodecs import numcodecs

    flat = flat_bytes(data)
    if len(flat) > _MAX_INPUT:
        raise CodecError(
            "a chunk is too large for blosc",
            codec="blosc",
            expected=f"at most {_MAX_INPUT} bytes",
            got=f"{len(flat)} bytes",
            hint="Use smaller chunks, shards, or the zstd codec",
        )
    # The library takes a larger block for one of all bytes, if a C integer holds its size.
    block = min(blocksize, len(flat))
    try:
        return _off_main_thread(
            lambda: bytes(numcodecs.blosc.compress(flat, cname.encode(), clevel, shuffle, block, typesize=typesize))
        )
    except (RuntimeError, ValueError) as error:
        raise CodecError(f"blosc cannot compress: {error}", codec="blosc") from error


def decode(data: Buffer, nbytes: int | None) -> Buffer:
    """Decode one frame, as `BytesToBytes.decode`."""
    source = flat_bytes(data)
    header = read_header(source, nbytes)
    if header.stored:
        return source[_HEADER.size :].data
    out = np.empty(header.nbytes, np.uint8)
    _decompress(source, header, out)
    return out


def _decompress(source: npt.NDArray[np.uint8], header: Header, out: npt.NDArray[np.uint8]) -> None:
    from tessarr.common.numcodecs import numcodecs

    if header.stored:
        out[:] = source[_HEADER.size :]
        return
    if header.nbytes == 0:
        return
    try:
        if header.blocks == 1:  # c-blosc starts no threads for one block
            numcodecs.blosc.decompress(source, out)
        else:
            _off_main_thread(lambda: numcodecs.blosc.decompress(source, out))
    except (RuntimeError, ValueError) as error:
        raise corrupt("blosc", error) from error


def _off_main_thread(call: Callable[[], T]) -> T:
    """Run `call`, on a helper thread if this is the main thread.

    On the main thread numcodecs switches to c-blosc's global state and its own threads: the order of the blocks then
    differs from run to run, environment variables override the codec, and the process gets extra threads. The
    alternative is a global switch of numcodecs that belongs to the user. On other threads numcodecs uses c-blosc's contexts.
    """
    if threading.current_thread() is not threading.main_thread():
        return call()
    result: T = _helper().submit(call).result()
    return result


_helpers: dict[int, Any] = {}
"""The single helper thread, by process id: a forked child has none of its parent's threads."""


def _helper() -> Any:
    from concurrent.futures import ThreadPoolExecutor
    from os import getpid

    pid = getpid()
    if pid not in _helpers:
        _helpers.clear()
        _helpers[pid] = ThreadPoolExecutor(1, thread_name_prefix="tessarr-blosc")
    return _helpers[pid]
