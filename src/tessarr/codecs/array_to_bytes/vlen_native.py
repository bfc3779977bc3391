"""The vlen codecs' way through the Rust module, where it is built: several times as fast as `vlen` without it.

NumPy takes text fastest from elements of one width, so Rust pads them, a block at a time. Data that is corrupt, and
objects that are no text, are not explained here: the answer is ``None`` or ``False``, and the way in Python goes over all of
it again and says what is wrong. Both ways give the same bytes and the same elements.
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

BLOCK, BLOCK_BYTES = 2048, 1 << 17
"""Elements that are worked on at a time, and about how many of their bytes: they stay in the processor's cache."""

WIDEST = 128
"""Texts of more bytes are not padded: it costs more than to make Python objects of them."""


@cache
def native() -> ModuleType | None:
    """The Rust module; ``None`` where it cannot be loaded, or is of an older tessarr."""
    rust = extension.module()
    return rust if hasattr(rust, "vlen_texts") else None


def encode_texts(values: AnyArray) -> bytes | None:
    """A chunk of the one-dimensional `values` (StringDType or object). ``None``: there is no Rust module, or no text.

    The way back through one width, which would be faster, is not open: NumPy (2.4) tells of no text in a StringDType
    whether it ends in NUL, but by making a Python object of it.
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
    """Decode a chunk of as many elements as the one-dimensional `out` (StringDType) has into it.

    ``False``: there is no Rust module, or the data is corrupt; some elements may be written then.
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
    """`decode_texts` for bytes, into an array of objects."""
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
    """`out`, which `nbytes` bytes are decoded into, in pieces."""
    step = max(1, min(BLOCK, BLOCK_BYTES * len(out) // nbytes))
    return (out[start : start + step] for start in range(0, len(out), step))


def _bytes(data: Buffer) -> bytes:
    return data if isinstance(data, bytes) else flat_bytes(data).tobytes()
