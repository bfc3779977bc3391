"""Filters and compressors of Zarr v2, by their numcodecs configuration.

>>> v2_compressor({"id": "zlib", "level": 5}).to_v2()
{'id': 'zlib', 'level': 5}

A configuration is written back exactly as it was read. An id that no package provides does not stop an array from being
opened: its codec raises `UnknownCodecError` when the first chunk is read or written. Codecs that would unpickle data
are refused at once.

Source: Zarr v2, "Metadata" (``compressor``, ``filters``); numcodecs 0.16.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

import numpy as np

from tessarr.codecs.base import ArrayToBytes, BytesToBytes, ChunkSpec, Codec
from tessarr.codecs.numcodecs.coders import Coder
from tessarr.codecs.numcodecs.table import FIXED, OBJECT_CODECS, config_id, make_coder, refuse_pickle, unknown
from tessarr.codecs.raw import flat_bytes
from tessarr.dtypes.base import DataType
from tessarr.errors import CodecError, MetadataValidationError, Problem, TessarrError, UnknownCodecError
from tessarr.types import JSON, AnyArray, Buffer, JSONObject

Config: TypeAlias = Mapping[str, JSON]


class _FromV2(Codec):
    """Base class of codecs made from a v2 configuration. Equal by configuration."""

    config: dict[str, JSON]
    """The stored v2 configuration, id included."""

    def __init__(self, config: Config) -> None:
        self.config = dict(config)
        self.name = config_id(config)  # type: ignore[misc]  # one class for all ids

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _FromV2) and type(self) is type(other) and self.config == other.config

    def __hash__(self) -> int:
        return hash(repr(self.config))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.config!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.config,)

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> NoReturn:  # noqa: ARG003
        """Raise `TypeError`: a v2 configuration has no v3 form under this class; see `tessarr.codecs.numcodecs.v3`."""
        raise TypeError("codecs of Zarr v2 are made with v2_compressor and v2_filters")

    def to_v2(self) -> JSONObject:
        """Return the numcodecs configuration, exactly as it was stored."""
        return dict(self.config)

    def to_json(self) -> JSONObject:
        """Return the equivalent v3 codec object."""
        return as_codec(self.config).to_json()


class V2Codec(_FromV2, BytesToBytes):
    """Use a numcodecs filter or compressor as a bytes → bytes codec.

    `encode` accepts arrays of any dtype, which arithmetic filters need, and may return one. `decode` takes
    and returns plain bytes.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        members = {name: value for name, value in config.items() if name != "id"}
        self.coder: Coder = make_coder(self.name, members)

    @property
    def is_foreign(self) -> bool:
        return self.coder.is_foreign

    def encoded_size(self, nbytes: int) -> int | None:
        return self.coder.encoded_size(nbytes)

    def encode(self, data: Buffer) -> Buffer:
        array = data if isinstance(data, np.ndarray) else flat_bytes(data)
        return self.coder.encode(np.ascontiguousarray(array).reshape(array.shape))

    def decode(self, data: Buffer, nbytes: int | None) -> Buffer:
        return self.coder.decode(flat_bytes(data), nbytes)

    def decode_into(self, data: Buffer, out: memoryview) -> bool:
        return self.coder.decode_into(flat_bytes(data), flat_bytes(out))


class _Unusable(_FromV2):
    """Raise the reason on use, not before, so that the metadata can be inspected."""

    def __init__(self, config: Config, reason: TessarrError | None = None) -> None:
        super().__init__(config)
        self.reason = reason

    @property
    def is_foreign(self) -> bool:
        """Return true: another package may provide the codec later."""
        return True

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.config, self.reason)

    def _raise(self) -> NoReturn:
        if self.reason is None:
            raise unknown(self.name)
        raise UnknownCodecError(
            f"the numcodecs codec {self.name!r} cannot be used: {self.reason}", codec=self.name
        ) from self.reason


class UnknownV2Codec(_Unusable, BytesToBytes):
    """Stand for a filter or compressor that cannot be used here."""

    def encoded_size(self, nbytes: int) -> None:
        """Return ``None``."""
        return

    def encode(self, data: Buffer) -> NoReturn:
        """Raise `UnknownCodecError`."""
        self._raise()

    def decode(self, data: Buffer, nbytes: int | None) -> NoReturn:
        """Raise `UnknownCodecError`."""
        self._raise()


class UnknownV2ObjectCodec(_Unusable, ArrayToBytes):
    """Stand for an object filter that cannot be used here."""

    def encoded_size(self, spec: ChunkSpec) -> None:
        """Return ``None``."""
        return

    def encode(self, chunk: AnyArray, spec: ChunkSpec) -> NoReturn:
        """Raise `UnknownCodecError`."""
        self._raise()

    def decode(self, data: Buffer, spec: ChunkSpec) -> NoReturn:
        """Raise `UnknownCodecError`."""
        self._raise()


def v2_compressor(config: Config) -> BytesToBytes:
    """Make the codec of a ``compressor`` or plain filter.

    Raises `MetadataValidationError` when there is no id, `PickleCodecDisabledError` for pickle. An unknown id, or a
    configuration that cannot be used, gives an `UnknownV2Codec`.
    """
    codec_id = config_id(config)
    if codec_id in OBJECT_CODECS:
        reason = CodecError(f"{codec_id} stores objects, and these elements have a fixed size", codec=codec_id)
        return UnknownV2Codec(config, reason)
    try:
        return V2Codec(config)
    except UnknownCodecError:
        return UnknownV2Codec(config)
    except MetadataValidationError as error:
        return UnknownV2Codec(config, error)


def v2_filters(filters: Sequence[Config] | None, data_type: DataType) -> tuple[ArrayToBytes | None, list[BytesToBytes]]:
    """Make the codecs of a ``filters`` list, in order: the object codec of a ``|O`` type, or ``None``, and all others.

    Raises `MetadataValidationError` for a ``|O`` type without an object codec as its first filter, and for filters
    without an id; `PickleCodecDisabledError` for pickle at any position, before any codec is made.
    """
    configs = list(filters or ())
    for config in configs:
        refuse_pickle(config_id(config))
    if configs and data_type.dtype.kind == FIXED.get(config_id(configs[0])):
        from tessarr.codecs.numcodecs.objects import FixedObjectCodec

        return FixedObjectCodec(configs[0]), [v2_compressor(config) for config in configs[1:]]
    if not is_object(data_type):
        return None, [v2_compressor(config) for config in configs]
    if not configs:
        problem = Problem(("filters",), "missing", f"|O needs an object codec first, one of {', '.join(OBJECT_CODECS)}")
        raise MetadataValidationError("an array of objects has no object codec", [problem])
    first, *rest = configs
    codec = _object_codec(first) if first["id"] in OBJECT_CODECS else UnknownV2ObjectCodec(first)
    return codec, [v2_compressor(config) for config in rest]


def _object_codec(config: Config) -> ArrayToBytes:
    from tessarr.codecs.numcodecs.objects import ObjectCodec

    return ObjectCodec(config)


def is_object(data_type: DataType) -> bool:
    """Return whether v2 calls the type ``|O``."""
    return data_type.object_codec is not None or data_type.dtype.kind in "OT"


def config_of_v3(codec: Codec) -> dict[str, JSON] | None:
    """Return the numcodecs configuration under which v2 stores the bytes of a v3 codec; ``None`` where it has none
    (UPG-06).
    """
    document: Any = codec.to_json()
    configuration = document.get("configuration", {})
    if codec.name.startswith("numcodecs."):
        return {"id": codec.name.removeprefix("numcodecs."), **configuration}
    if codec.name == "blosc":
        members = {name: value for name, value in configuration.items() if name in ("cname", "clevel", "blocksize")}
        shuffle = configuration.get("shuffle")
        return {"id": "blosc", **members, "shuffle": _SHUFFLES.index(shuffle) if shuffle in _SHUFFLES else -1}
    if codec.name in ("gzip", "crc32c", "vlen-utf8", "vlen-bytes"):
        return {"id": codec.name, **configuration}
    if codec.name == "zstd":
        return {"id": "zstd", **{name: value for name, value in configuration.items() if name != "checksum" or value}}
    return None


_SHUFFLES = ["noshuffle", "shuffle", "bitshuffle"]


def v2_config(value: object) -> dict[str, JSON]:
    """Complete what a user passes as a v2 filter or compressor to the configuration that numcodecs writes.

    `value` is a numcodecs codec, a configuration with an id, or a codec made here. A zstd ``checksum`` that is false is
    left out, as by zarr-python: TensorStore and numcodecs before 0.13 do not know the member.
    """
    config = _whole_config(value)
    if config.get("id") == "zstd" and not config.get("checksum"):
        config.pop("checksum", None)
    return config


def _whole_config(value: object) -> dict[str, JSON]:
    get_config = getattr(value, "get_config", None)
    if get_config is not None:
        refuse_pickle(getattr(value, "codec_id", None))
        return dict(get_config())
    if isinstance(value, Mapping):
        codec_id = config_id(value)
        members = {name: item for name, item in value.items() if name != "id"}
        if codec_id in OBJECT_CODECS:
            return _object_config(codec_id, members)
        return {"id": codec_id, **make_coder(codec_id, members).canonical()}
    from tessarr.codecs.numcodecs.objects import ObjectCodec

    if isinstance(value, _FromV2 | ObjectCodec):
        return dict(value.config)
    raise TypeError(f"a numcodecs codec or its configuration is needed, got {type(value).__name__}: {value!r}")


def _object_config(codec_id: str, members: Mapping[str, JSON]) -> dict[str, JSON]:
    from tessarr.common.numcodecs import numcodecs

    try:
        return dict(numcodecs.get_codec({"id": codec_id, **members}).get_config())
    except TypeError as error:
        example = {
            "vlen-array": '"vlen-array:<i4"',
            "categorize": "numcodecs.Categorize(labels=['a', 'b'], dtype=object)",
        }
        raise CodecError(
            f"the {codec_id} codec cannot be made from these members",
            codec=codec_id,
            got=str(error),
            hint=f"Give its parameters, for example {example[codec_id]}" if codec_id in example else None,
        ) from error


def as_codec(value: object, *, zarr_format: int = 3) -> Codec:
    """Make a codec from a numcodecs codec (``Blosc(...)``, ``Delta(...)``) or its configuration (``{"id": …}``).

    For format 2 the codec has `to_v2`. For format 3 it is the codec of the specification where the bytes are the same,
    otherwise the one named ``numcodecs.<id>``.

    >>> as_codec({"id": "gzip", "level": 2})
    GzipCodec(level=2)
    >>> as_codec({"id": "zlib", "level": 2}).to_json()
    {'name': 'numcodecs.zlib', 'configuration': {'level': 2}}

    Raises `UnknownCodecError`, `MetadataValidationError`, `PickleCodecDisabledError`, or `TypeError`.
    """
    config = v2_config(value)
    if zarr_format == 3:
        from tessarr.codecs.numcodecs.v3 import v3_codec

        return v3_codec(config)
    return _object_codec(config) if config["id"] in OBJECT_CODECS else V2Codec(config)
