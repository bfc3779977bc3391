"""Run single codecs in the Rust module, where it is built: one step of the native engine without the others."""

from __future__ import annotations

import json
from abc import abstractmethod
from typing import Any

from tessarr.codecs.base import BytesToBytes
from tessarr.codecs.raw import flat_bytes
from tessarr.common import extension
from tessarr.errors import ChecksumError, CodecError
from tessarr.types import Buffer, JSONObject

_GIVEN_UP = ("unsupported", "reference")
"""Kinds of errors for which the Python implementation runs instead."""


def encode(name: str, configuration: JSONObject, data: Buffer) -> bytes | None:
    """Encode `data` with the step `name`; ``None`` where there is no Rust module, or it does not know the
    step.

    `configuration` is that of the native engine (rust/src/codecs). Raises `CodecError` for data that cannot be encoded.
    """
    return _run("encode_step", name, configuration, flat_bytes(data))


def decode(name: str, configuration: JSONObject, data: Buffer, nbytes: int) -> bytes | None:
    """Decode `data` to `nbytes` bytes; ``None`` as in `encode`.

    Raises `CodecError` for data that is corrupt or decodes to another size, `ChecksumError` for a checksum that does not
    match.
    """
    return _run("decode_step", name, configuration, flat_bytes(data), nbytes)


def _run(function: str, name: str, configuration: JSONObject, *arguments: Any) -> bytes | None:
    rust = extension.module()
    if not hasattr(rust, function):  # no Rust module, or that of an older tessarr
        return None
    assert rust is not None  # hasattr(None, …) is false
    source, *rest = arguments
    data = source.tobytes() if not source.flags.c_contiguous else bytes(source.data)
    try:
        made: bytes = getattr(rust, function)(name, json.dumps(configuration), data, *rest)
    except rust.NativeError as error:
        kind, what, facts = error.args
        if kind in _GIVEN_UP:
            return None
        known = {member: facts[member] for member in ("expected", "got", "hint") if facts.get(member) is not None}
        raise (ChecksumError if kind == "checksum" else CodecError)(what, codec=name, **known) from None
    return made


class StepCodec(BytesToBytes):
    """Run a bytes → bytes codec as one step of the native engine; subclasses implement the same in Python."""

    @abstractmethod
    def step(self) -> tuple[str, JSONObject]:
        """Return name and configuration of the step."""

    @abstractmethod
    def _encode(self, data: Buffer) -> Buffer:
        """Encode in Python."""

    @abstractmethod
    def _decode(self, data: Buffer, nbytes: int | None) -> Buffer:
        """Decode in Python."""

    def encode(self, data: Buffer) -> Buffer:
        made = encode(*self.step(), data)
        return self._encode(data) if made is None else made

    def decode(self, data: Buffer, nbytes: int | None) -> Buffer:
        made = None if nbytes is None else decode(*self.step(), data, nbytes)
        return self._decode(data, nbytes) if made is None else made
