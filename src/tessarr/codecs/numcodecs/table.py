"""Look up numcodecs ids, with errors for those that are unknown or refused."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from tessarr.codecs.numcodecs.coders import Bytes, Coder, as_buffer, checked, run
from tessarr.errors import MetadataValidationError, PickleCodecDisabledError, Problem, UnknownCodecError
from tessarr.types import JSON, Buffer

_HOME = {
    "blosc": "coders:Blosc",
    "zstd": "coders:Zstd",
    "gzip": "coders:GZip",
    "zlib": "coders:Zlib",
    "bz2": "coders:BZ2",
    "lzma": "coders:LZMA",
    "lz4": "coders:LZ4",
    "crc32": "coders:CRC32",
    "crc32c": "coders:CRC32C",
    "adler32": "coders:Adler32",
    "fletcher32": "coders:Fletcher32",
    "jenkins_lookup3": "coders:JenkinsLookup3",
    "shuffle": "coders:Shuffle",
    "base64": "coders:Base64",
    "packbits": "coders:PackBits",
    "delta": "elements:Delta",
    "fixedscaleoffset": "elements:FixedScaleOffset",
    "quantize": "elements:Quantize",
    "astype": "elements:AsType",
    "bitround": "elements:BitRound",
    "zfpy": "zfpy:ZFPY",
    "pcodec": "pcodec:PCodec",
    "imagecodecs_zlib": "imagecodecs:Zlib",
    "imagecodecs_deflate": "imagecodecs:Deflate",
    "imagecodecs_zstd": "imagecodecs:Zstd",
    "imagecodecs_bz2": "imagecodecs:BZ2",
    "imagecodecs_lzma": "imagecodecs:LZMA",
    "imagecodecs_lz4": "imagecodecs:LZ4",
    "imagecodecs_blosc": "imagecodecs:Blosc",
    "imagecodecs_lzw": "imagecodecs:LZW",
}

OBJECT_CODECS = ("vlen-utf8", "vlen-bytes", "vlen-array", "json2", "msgpack2", "categorize")
"""Filters that encode ``|O`` elements to bytes."""
FIXED = {"vlen-utf8": "U", "vlen-bytes": "S", "categorize": "U"}
"""Kinds of fixed-length elements that such a filter is also used for."""

_PACKAGES = {
    "n5_wrapper": "zarr<3",
    "ffmpeg": "numcodecs-ffmpeg",
    "flac": "flac-numcodecs",
    "wavpack": "wavpack-numcodecs",
}


def refuse_pickle(codec_id: object) -> None:
    """Raise `PickleCodecDisabledError` for an id that means unpickling."""
    if isinstance(codec_id, str) and codec_id.removeprefix("numcodecs.").lower().startswith(("pickle", "dill")):
        raise PickleCodecDisabledError(
            f"the codec {codec_id!r} would run code from the data",
            codec=codec_id,
            hint="Rewrite the array with the software that wrote it, using another object codec such as vlen-utf8",
        )


def config_id(config: Mapping[str, JSON]) -> str:
    """Return the id of a numcodecs configuration. Raises `MetadataValidationError`, or `PickleCodecDisabledError` for
    pickle.
    """
    codec_id = config.get("id")
    if not isinstance(codec_id, str):
        problem = Problem(("id",), "missing", f"a numcodecs configuration needs an id, got {config!r}")
        raise MetadataValidationError("invalid codec", [problem])
    refuse_pickle(codec_id)
    return codec_id


def unknown(codec_id: str) -> UnknownCodecError:
    """Make the error for an id that no installed package provides."""
    package = "imagecodecs" if codec_id.startswith("imagecodecs_") else _PACKAGES.get(codec_id)
    hint = f"Install the package {package!r}" if package else "Install the package that provides it, or register it"
    return UnknownCodecError(f"unknown numcodecs codec {codec_id!r}", codec=codec_id, hint=hint)


def make_coder(codec_id: str, config: Mapping[str, object]) -> Coder:
    """Make the coder of an id; `config` is without the id.

    Other ids are looked up in numcodecs' registry, where other packages register codecs. Raises
    `UnknownCodecError`, `PickleCodecDisabledError` or `MetadataValidationError`.
    """
    refuse_pickle(codec_id)
    home = _HOME.get(codec_id)
    if home is None:
        return ForeignCoder(codec_id, config)
    module, _, name = home.partition(":")
    coder: Coder = getattr(import_module(f"tessarr.codecs.numcodecs.{module}"), name)(config)
    return coder


class ForeignCoder(Coder):
    """Wrap a codec that another package registered with numcodecs. Only its result can be checked."""

    is_foreign = True

    def __init__(self, codec_id: str, config: Mapping[str, object]) -> None:
        from tessarr.common.numcodecs import numcodecs

        registry = numcodecs.registry
        if codec_id in OBJECT_CODECS or (codec_id not in registry.codec_registry and codec_id not in registry.entries):
            raise unknown(codec_id)
        self.codec_id = codec_id  # type: ignore[misc]  # a constant of every other coder
        self.config = self.members = dict(config)
        try:
            self._codec: Any = registry.get_codec({"id": codec_id, **config})
        except Exception as error:
            problem = Problem((), "value", str(error))
            raise MetadataValidationError(f"invalid {codec_id} codec", [problem], codec=codec_id) from error

    def canonical(self) -> dict[str, JSON]:
        return {name: value for name, value in self._codec.get_config().items() if name != "id"}

    def encode(self, data: object) -> Buffer:
        return as_buffer(run(self.codec_id, lambda: self._codec.encode(data)))

    def decode(self, data: Bytes, nbytes: int | None) -> Buffer:
        decoded = run(self.codec_id, lambda: self._codec.decode(data))
        return checked(self.codec_id, as_buffer(decoded), nbytes)
