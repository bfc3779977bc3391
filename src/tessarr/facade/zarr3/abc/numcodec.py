"""zarr-python's ``zarr.abc.numcodec``: the protocol of numcodecs codecs."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Numcodec(Protocol):
    """A v2 filter or compressor: a codec of numcodecs, or an object with the same methods."""

    codec_id: str

    def encode(self, buf: object) -> Any:
        """Encode a buffer."""
        ...

    def decode(self, buf: Any, out: Any = None) -> Any:
        """Decode a buffer."""
        ...

    def get_config(self) -> object:
        """Return the configuration as JSON, with the member ``id``."""
        ...


__all__ = ["Numcodec"]
