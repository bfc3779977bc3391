"""zarr-python's ``zarr.abc.numcodec``: the shape of a numcodecs object."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Numcodec(Protocol):
    """What is accepted wherever a v2 filter or compressor is: a codec of numcodecs, or one that behaves so."""

    codec_id: str

    def encode(self, buf: Any) -> Any:
        """Encode a buffer."""
        ...

    def decode(self, buf: Any, out: Any = None) -> Any:
        """Decode a buffer."""
        ...

    def get_config(self) -> object:
        """The configuration, with ``id``."""
        ...


__all__ = ["Numcodec"]
