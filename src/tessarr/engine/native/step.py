"""Describe one step of a codec chain to Rust, or raise the reason why Rust does not support an array."""

from __future__ import annotations

from tessarr.types import JSONObject


class UnsupportedError(Exception):
    """The native engine does not support the array; the text names the unsupported feature."""


def named(name: str, configuration: JSONObject) -> JSONObject:
    """Describe a codec to the Rust module."""
    return {"name": name, "configuration": configuration}
