"""The memory that compressors need for their tables, from their configuration. Pure.

Fast compressors need some 100 kB. In each thread, zstd at level 19 needs 80 MB for a long chunk, and lzma 94 MB.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tessarr.codecs.base import Codec

if TYPE_CHECKING:
    from tessarr.types import JSON

_SMALL = 500_000
"""Bytes of a compressor without long tables, and of what decodes, as measured."""
_BLOSC_BLOCK = 256 << 10
"""Bytes that the native blosc encodes at once (`BLOCK_BYTES` of rust/src/codecs/blosc.rs)."""
_LZMA_ENCODER = (3, 9, 17, 32, 48, 94, 94, 186, 370, 674)
"""MiB by preset. Source: xz(1), "-0 ... -9"."""


class _Zstd(NamedTuple):
    """Parameters of a level, as powers of two. Source: zstd, lib/compress/clevels.h, for more than 256 KiB."""

    window: int
    chain: int
    hashes: int


_FAST, _ROWS, _OPTIMAL = 4, 12, 16
"""The last level with short tables; the last without chains, which has a byte for each hash instead; the first that counts
prices."""
_PRICES = 2_000_000
_ZSTD = (
    _Zstd(19, 12, 13), _Zstd(19, 13, 14), _Zstd(20, 15, 16), _Zstd(21, 16, 17), _Zstd(21, 18, 18), _Zstd(21, 18, 19),
    _Zstd(21, 18, 19), _Zstd(21, 19, 20), _Zstd(21, 19, 20), _Zstd(22, 20, 21), _Zstd(22, 21, 22), _Zstd(22, 21, 22),
    _Zstd(22, 22, 23), _Zstd(22, 22, 22), _Zstd(22, 22, 23), _Zstd(22, 23, 23), _Zstd(22, 22, 22), _Zstd(23, 23, 22),
    _Zstd(23, 23, 22), _Zstd(23, 24, 22), _Zstd(25, 25, 23), _Zstd(26, 26, 24), _Zstd(27, 27, 25),
)  # fmt: skip
_DEFAULT = 3


def zstd_tables(level: int, nbytes: int) -> int:
    """Return the bytes of the tables with which zstd compresses `nbytes` at a level.

    >>> zstd_tables(1, 1 << 20), zstd_tables(9, 1 << 20), zstd_tables(19, 8 << 20)
    (98304, 10485760, 85886080)
    """
    level = _DEFAULT if level == 0 else max(0, level)
    window, chain, hashes = _ZSTD[level]
    window = min(window, max(10, (nbytes - 1).bit_length()))
    hashes, optimal = 1 << min(hashes, window + 1), level >= _OPTIMAL
    if _FAST < level <= _ROWS:
        return 5 * hashes
    return 4 * hashes + 4 * (1 << min(chain, window + (level > _ROWS))) + optimal * _PRICES


def table_nbytes(codecs: Sequence[Codec], nbytes: int) -> int:
    """Return the bytes that a thread needs to encode chunks of `nbytes` by bytes → bytes codecs, besides input and output."""
    return sum(_nbytes(codec, _configuration(codec), nbytes) for codec in codecs)


def _configuration(codec: Codec) -> JSON:
    stored: JSON = getattr(codec, "config", None)  # of a v2 document, which may have no v3 form
    return stored if isinstance(stored, dict) else codec.to_dict().get("configuration", {})


def _nbytes(codec: Codec, configuration: JSON, nbytes: int) -> int:
    given = configuration if isinstance(configuration, dict) else {}
    if codec.name == "zstd":
        return _SMALL + zstd_tables(int(str(given.get("level", 0))), nbytes)
    if codec.name == "blosc" and given.get("cname") == "zstd":
        clevel = int(str(given.get("clevel", 5)))
        block = min(nbytes, int(str(given.get("blocksize") or _BLOSC_BLOCK)))
        return _SMALL + zstd_tables({8: 20, 9: 22}.get(clevel, 2 * clevel - 1), block)
    if codec.name in ("lzma", "numcodecs.lzma"):
        preset = given.get("preset")
        return _LZMA_ENCODER[preset if isinstance(preset, int) and 0 <= preset <= 9 else 6] << 20
    if codec.name in ("bz2", "numcodecs.bz2"):
        return 8_000_000
    return _SMALL
