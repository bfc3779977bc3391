"""One step of a codec chain as Rust is told of it, and the reason why Rust does not serve an array."""

from __future__ import annotations

from tessarr.types import JSONObject


class UnsupportedError(Exception):
    """The array holds something that the native engine does not know; the text says what."""


def named(name: str, configuration: JSONObject) -> JSONObject:
    """A codec as the Rust module is told of it."""
    return {"name": name, "configuration": configuration}
