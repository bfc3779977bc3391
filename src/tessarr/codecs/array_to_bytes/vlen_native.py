"""Run the vlen codecs in the Rust module, where it is built: several times as fast as `vlen` without it.

NumPy reads text fastest from elements of one width, so Rust pads them, a block at a time. For corrupt data, and for objects
that are not text, the functions here return ``None`` or ``False``; the Python implementation then runs over the whole chunk
and raises the error. Both implementations give the same bytes and the same elements.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from types import ModuleType

import numpy as np
import numpy.typing as npt

from tessarr.codecs.raw import flat_bytes
from tessarr.common import extension
from tessarr.types import AnyArray, Buffer

BLOCK, BLOCK_BYTES = 2048, 1 << 20
"""Elements per block, and about how many of their bytes: a block fits into the CPU's cache, and long texts share calls."""

WIDEST = 128
"""ASCII texts of more bytes are not padded: padding would cost more than making Python objects of them."""


@cache
def native() -> ModuleType | None:
    """Return the Rust module; ``None`` where it cannot be loaded, or belongs to an older tessarr."""
    rust = extension.module()
    return rust if hasattr(rust, "vlen_texts") else None


def encode_texts(values: AnyArray) -> bytes | None:
    """Encode a chunk of the one-dimensional `values` (StringDType or object). ``None``: no Rust module, or not text.

    Elements padded to one width would be faster, but NumPy (2.4) can only say whether a text in a StringDType ends in
    NUL by making a Python object of it.
    """
    rust = native()
    if rust is None:
        return None
    parts = [len(values).to_bytes(4, "little")]
    for start in range(0, len(values), BLOCK):
        part = rust.vlen_join(values[start : start + BLOCK].tolist())
        if part is None:
            return None
        parts.append(part)
    return b"".join(parts)


def decode_texts(data: Buffer, out: AnyArray) -> bool:
    """Decode a chunk into the one-dimensional `out` (StringDType), whose size must be the number of elements.

    Returns ``False`` without a Rust module, and for corrupt data; some elements may have been written then.
    """
    rust = native()
    if rust is None:
        return False
    source, at = _bytes(data), 4
    for place in _blocks(out, len(source)):
        found = rust.vlen_texts(source, at, len(place), WIDEST)
        if found is None:
            return False
        texts, width, at = found
        place[...] = np.frombuffer(texts, np.dtype((np.bytes_, width))) if width else texts
    return at == len(source)


def decode_bytes(data: Buffer, out: npt.NDArray[np.object_]) -> bool:
    """Decode a chunk of byte strings into an array of objects, like `decode_texts`."""
    rust = native()
    if rust is None:
        return False
    source, at = _bytes(data), 4
    for place in _blocks(out, len(source)):
        found = rust.vlen_bytes(source, at, len(place))
        if found is None:
            return False
        place[...], at = found
    return at == len(source)


def _blocks(out: AnyArray, nbytes: int) -> Iterator[AnyArray]:
    """Cut `out`, into which `nbytes` bytes are decoded, into blocks."""
    step = max(1, min(BLOCK, BLOCK_BYTES * len(out) // nbytes))
    return (out[start : start + step] for start in range(0, len(out), step))


def _bytes(data: Buffer) -> bytes:
    return data if isinstance(data, bytes) else flat_bytes(data).tobytes()
