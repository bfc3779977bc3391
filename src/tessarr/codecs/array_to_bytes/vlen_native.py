"""Run the vlen codecs in the Rust module, where it is built: between a chunk and NumPy's memory, without an object per text.

For corrupt data, and for objects that are not text or bytes, the functions here return ``None`` or ``False``; the Python
implementation then runs over the whole chunk and raises the error. Both give the same bytes and the same elements.
"""

from __future__ import annotations

from functools import cache
from types import ModuleType

from tessarr.common import extension
from tessarr.types import AnyArray, Buffer


@cache
def native() -> ModuleType | None:
    """Return the Rust module; ``None`` where it cannot be loaded, or belongs to an older tessarr."""
    rust = extension.module()
    return rust if hasattr(rust, "vlen_decode") else None


def encode(values: AnyArray, *, as_text: bool) -> bytes | None:
    """Encode a chunk of the one-dimensional `values`: StringDType, or objects that are text, or without `as_text` bytes.

    ``None``: no Rust module, or an element that is something else.
    """
    rust = native()
    return None if rust is None else rust.vlen_encode(values, as_text)


def decode(data: Buffer, out: AnyArray, *, as_text: bool) -> bool:
    """Decode a chunk into the one-dimensional `out`: StringDType, or objects that become text, or without `as_text` bytes.

    `data` is contiguous, and no thread writes to it meanwhile. Returns ``False`` without a Rust module, and for a chunk that is
    corrupt or has another number of elements; some elements may have been written then.
    """
    rust = native()
    return rust is not None and rust.vlen_decode(data, out, as_text)
