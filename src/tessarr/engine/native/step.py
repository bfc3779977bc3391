"""Describe one step of a codec chain to Rust, or say why Rust does not serve an array."""

from __future__ import annotations

from tessarr.types import JSONObject


class UnsupportedError(Exception):
    """The array holds something that the native engine does not know; the text says what."""


def named(name: str, configuration: JSONObject) -> JSONObject:
    """Describe a codec to the Rust module."""
    return {"name": name, "configuration": configuration}
