"""Convert the document of a Neuroglancer precomputed volume (``info``) to documents of Zarr v3.

Source: Neuroglancer, "Neuroglancer Precomputed Volume Format" and "Neuroglancer Precomputed Sharded Format".

>>> volume = parse({"type": "image", "data_type": "uint8", "num_channels": 1, "scales": [{
...     "key": "8_8_40", "size": [100, 80, 10], "chunk_sizes": [[64, 64, 64]], "resolution": [8, 8, 40], "encoding": "raw"}]})
>>> documents = volume.documents("C")
>>> documents["8_8_40"]["shape"], documents["8_8_40"]["chunk_grid"]["configuration"]["chunk_shape"]
([1, 10, 80, 100], [1, 10, 64, 64])
>>> [axis["name"] for axis in documents[""]["attributes"]["ome"]["multiscales"][0]["axes"]]
['c', 'z', 'y', 'x']

A volume is a group with an array for each scale, at the path of the scale's ``key``. Neuroglancer lists the axes x, y, z and
channel, x fastest. With axis order ``"C"`` arrays have the axes c, z, y, x, and the group the metadata of an OME-Zarr image,
whose transformations are ``resolution`` and ``voxel_offset`` in nanometres; with ``"F"`` they are x, y, z, c, as in
TensorStore, and the group lists its levels as Multiscale Arrays 0.1 do. Indices start at 0, wherever the volume is. Of several
``chunk_sizes`` the first is read. Missing chunks hold 0. All other members are attributes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import NamedTuple, TypeAlias

from tessarr.errors import MetadataValidationError, Problem
from tessarr.metadata.n5 import AxisOrder
from tessarr.types import JSON, JSONObject

DOCUMENT = "info"
_TYPES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32")
_AXES = ("x", "y", "z", "c")
_VOLUME = ("@type", "data_type", "num_channels", "scales", "ome", "multiscales")
_SCALE = ("key", "size", "chunk_sizes", "encoding", "sharding", "compressed_segmentation_block_size")
_KEY = re.compile(
    r"(?!\.+(?:/|\Z))(?!zarr\.json(?:/|\Z))[^/\0\ud800-\udfff]+(?:/(?!\.+(?:/|\Z))(?!zarr\.json(?:/|\Z))[^/\0\ud800-\udfff]+)*"
)
_MOST_CHANNELS = 1 << 16

XYZ: TypeAlias = tuple[int, int, int]
_Loc: TypeAlias = tuple[str | int, ...]


class Sharding(NamedTuple):
    """How the chunks of a scale are placed in shards."""

    preshift_bits: int
    hash: str
    minishard_bits: int
    shard_bits: int
    minishard_index_encoding: str
    data_encoding: str


@dataclass(frozen=True, slots=True)
class Scale:
    """One scale of a volume. Lengths are along x, y and z."""

    key: str
    size: XYZ
    offset: XYZ
    chunk: XYZ
    codecs: tuple[JSON, ...]
    """Codecs of a block with the axes c, z, y, x."""
    resolution: tuple[float, float, float]
    sharding: Sharding | None
    attributes: JSONObject = field(default_factory=dict)

    @property
    def grid(self) -> XYZ:
        """The number of chunks along x, y and z."""
        x, y, z = (-(-n // m) for n, m in zip(self.size, self.chunk, strict=True))
        return x, y, z

    def block(self, coords: XYZ) -> XYZ:
        """Return the shape of a chunk along x, y and z, which ends where the volume ends."""
        x, y, z = (min(m, n - i * m) for n, m, i in zip(self.size, self.chunk, coords, strict=True))
        return x, y, z


@dataclass(frozen=True, slots=True)
class Volume:
    """A parsed volume."""

    data_type: str
    channels: int
    scales: tuple[Scale, ...]
    attributes: JSONObject

    def documents(self, order: AxisOrder) -> dict[str, JSONObject]:
        """Make the v3 documents of the volume and of its scales, by path; between them are groups."""
        found: dict[str, JSONObject] = {"": _group(self._described(order))}
        for scale in self.scales:
            segments = scale.key.split("/")
            for end in range(1, len(segments)):
                found.setdefault("/".join(segments[:end]), _group({}))
            found[scale.key] = self._array(scale, order)
        return found

    def _described(self, order: AxisOrder) -> JSONObject:
        paths = [scale.key for scale in self.scales]
        if order == "F":
            levels: JSONObject = {"datasets": [{"path": path} for path in paths], "version": "0.1"}
            return {**self.attributes, "multiscales": [levels]}
        axes: list[JSON] = [{"name": "c", "type": "channel"}]
        axes += [{"name": name, "type": "space", "unit": "nanometer"} for name in "zyx"]
        datasets: list[JSON] = [
            {"path": scale.key, "coordinateTransformations": list(_transformations(scale))} for scale in self.scales
        ]
        image: JSONObject = {"axes": axes, "datasets": datasets}
        return {**self.attributes, "ome": {"version": "0.5", "multiscales": [image]}}

    def _array(self, scale: Scale, order: AxisOrder) -> JSONObject:
        shape = [*scale.size, self.channels]
        chunks = [*(max(1, min(n, m)) for n, m in zip(scale.size, scale.chunk, strict=True)), self.channels]
        codecs: list[JSON] = [{"name": "tessarr.clipped", "configuration": {"codecs": list(scale.codecs)}}]
        if order == "F":
            codecs.insert(0, {"name": "transpose", "configuration": {"order": [3, 2, 1, 0]}})
        step = -1 if order == "C" else 1
        return {
            "zarr_format": 3,
            "node_type": "array",
            "shape": list(shape[::step]),
            "data_type": self.data_type,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunks[::step])}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": 0,
            "codecs": codecs,
            "attributes": scale.attributes,
            "dimension_names": list(_AXES[::step]),
        }


def _group(attributes: JSONObject) -> JSONObject:
    return {"zarr_format": 3, "node_type": "group", "attributes": attributes}


def _transformations(scale: Scale) -> Sequence[JSON]:
    steps: list[JSON] = [{"type": "scale", "scale": [1.0, *scale.resolution[::-1]]}]
    if any(scale.offset):
        at = [n * m for n, m in zip(scale.offset, scale.resolution, strict=True)]
        steps.append({"type": "translation", "translation": [0.0, *at[::-1]]})
    return steps


# -- parsing -------------------------------------------------------------------------------------------------------------


def parse(info: Mapping[str, JSON]) -> Volume:
    """Parse the document of a volume. Raises `MetadataValidationError` listing every problem."""
    problems: list[Problem] = []
    kind = info.get("@type", "neuroglancer_multiscale_volume")
    if kind != "neuroglancer_multiscale_volume":
        problems.append(Problem(("@type",), "unsupported", f"tessarr reads volumes, not {kind!r}"))
    data_type = info.get("data_type")
    data_type = data_type.lower() if isinstance(data_type, str) else data_type
    if data_type not in _TYPES:
        problems.append(
            Problem(("data_type",), "unsupported", f"must be one of {', '.join(_TYPES)}; got {data_type!r}")
        )
    channels = info.get("num_channels", 1)
    if type(channels) is not int or not 0 < channels <= _MOST_CHANNELS:
        problems.append(Problem(("num_channels",), "value", f"must be 1 to {_MOST_CHANNELS}, got {channels!r}"))
        channels = 1
    listed = info.get("scales")
    if not isinstance(listed, Sequence) or isinstance(listed, str) or not listed:
        problems.append(Problem(("scales",), "value", f"must be a list with at least one scale, got {listed!r}"))
        listed = []
    scales = [_scale(one, ("scales", number), str(data_type), channels, problems) for number, one in enumerate(listed)]
    _check_keys([scale.key for scale in scales], problems)
    if problems:
        raise MetadataValidationError("invalid precomputed volume", problems)
    attributes = {name: value for name, value in info.items() if name not in _VOLUME}
    return Volume(str(data_type), channels, tuple(scales), attributes)


def _check_keys(keys: Sequence[str], problems: list[Problem]) -> None:
    for number, key in enumerate(keys):
        above = [other for at, other in enumerate(keys) if at != number and f"{key}/".startswith(f"{other}/")]
        if key and above:
            message = f"{key!r} is the place of another scale, or below it: {above[0]!r}"
            problems.append(Problem(("scales", number, "key"), "value", message))


def _scale(given: object, loc: _Loc, data_type: str, channels: int, problems: list[Problem]) -> Scale:
    """Parse a scale; what is wrong is added to `problems`, and is 1 in the result."""
    if not isinstance(given, Mapping):
        problems.append(Problem(loc, "value", f"must be an object, got {given!r}"))
        given = {}
    key = given.get("key")
    key = key.rstrip("/") if isinstance(key, str) else key
    if not isinstance(key, str) or _KEY.fullmatch(key) is None:
        message = f"must be the path of a directory below the volume, such as '8_8_8'; got {key!r}"
        problems.append(Problem((*loc, "key"), "value", message))
        key = ""
    sizes = given.get("chunk_sizes")
    first = sizes[0] if isinstance(sizes, Sequence) and not isinstance(sizes, str) and sizes else None
    return Scale(
        key=key,
        size=_integers(given.get("size"), (*loc, "size"), 0, problems),
        offset=_integers(given.get("voxel_offset", [0, 0, 0]), (*loc, "voxel_offset"), None, problems),
        chunk=_integers(first, (*loc, "chunk_sizes", 0), 1, problems),
        codecs=tuple(_codecs(given, loc, data_type, channels, problems)),
        resolution=_numbers(given.get("resolution"), (*loc, "resolution"), problems),
        sharding=_sharding(given.get("sharding"), (*loc, "sharding"), problems),
        attributes={name: value for name, value in given.items() if name not in _SCALE},
    )


def _integers(value: object, loc: _Loc, least: int | None, problems: list[Problem]) -> XYZ:
    low, high = -(1 << 63) if least is None else least, 1 << 63
    if isinstance(value, Sequence) and len(value) == 3 and all(type(n) is int and low <= n < high for n in value):
        return value[0], value[1], value[2]
    at_least = "" if least is None else f" of at least {least}"
    problems.append(Problem(loc, "value", f"must be three integers{at_least} (x, y, z), got {value!r}"))
    return 1, 1, 1


def _numbers(value: object, loc: _Loc, problems: list[Problem]) -> tuple[float, float, float]:
    numbers = [float(n) for n in value if type(n) is int or isinstance(n, float)] if isinstance(value, Sequence) else []
    if len(numbers) == 3 and isinstance(value, Sequence) and len(value) == 3 and all(map(isfinite, numbers)):
        return numbers[0], numbers[1], numbers[2]
    problems.append(Problem(loc, "value", f"must be three numbers (x, y, z), got {value!r}"))
    return 1.0, 1.0, 1.0


def _codecs(given: Mapping[str, JSON], loc: _Loc, data_type: str, channels: int, problems: list[Problem]) -> list[JSON]:
    """Make the codecs of an encoding, and of the shards' ``data_encoding``."""
    encoding = given.get("encoding")
    encoding = encoding.lower() if isinstance(encoding, str) else encoding
    last: JSONObject = {"name": "transpose", "configuration": {"order": [1, 2, 3, 0]}}
    found: list[JSON] = []
    if encoding == "raw":
        small = data_type.endswith("int8")
        found = [{"name": "bytes"} if small else {"name": "bytes", "configuration": {"endian": "little"}}]
    elif encoding == "compressed_segmentation":
        name = "compressed_segmentation_block_size"
        block = _integers(given.get(name), (*loc, name), 1, problems)
        found = [{"name": "tessarr.compressed_segmentation", "configuration": {"block_size": list(block)}}]
        _require(data_type in ("uint32", "uint64"), loc, f"holds uint32 or uint64, not {data_type}", problems)
    elif encoding == "jpeg":
        found = [last, {"name": "jpeg"}]
        fine = data_type == "uint8" and channels in (1, 3)
        _require(fine, loc, f"jpeg holds 1 or 3 channels of uint8, not {channels} of {data_type}", problems)
    else:
        known = "raw, compressed_segmentation, jpeg"
        problems.append(Problem((*loc, "encoding"), "unsupported", f"unknown {encoding!r}; known: {known}"))
    sharding = given.get("sharding")
    if isinstance(sharding, Mapping) and sharding.get("data_encoding") == "gzip":
        found.append({"name": "gzip", "configuration": {"level": 6}})
    return found


def _require(fine: bool, loc: _Loc, message: str, problems: list[Problem]) -> None:
    if not fine:
        problems.append(Problem((*loc, "encoding"), "value", message))


def _sharding(given: object, loc: _Loc, problems: list[Problem]) -> Sharding | None:
    if given is None:
        return None
    if not isinstance(given, Mapping):
        problems.append(Problem(loc, "value", f"must be an object, got {given!r}"))
        return None
    words = {
        "@type": ("neuroglancer_uint64_sharded_v1",),
        "hash": ("identity", "murmurhash3_x86_128"),
        "minishard_index_encoding": ("raw", "gzip"),
        "data_encoding": ("raw", "gzip"),
    }
    chosen = {name: given.get(name, "raw" if "encoding" in name else None) for name in words}
    for name, known in words.items():
        if chosen[name] not in known:
            message = f"must be one of {', '.join(known)}; got {chosen[name]!r}"
            problems.append(Problem((*loc, name), "value", message))
    bits: dict[str, int] = {}
    for name in ("preshift_bits", "minishard_bits", "shard_bits"):
        value = given.get(name)
        if type(value) is int and 0 <= value <= 64:
            bits[name] = value
        else:
            bits[name] = 0
            problems.append(Problem((*loc, name), "value", f"must be an integer of 0 to 64, got {value!r}"))
    if bits["minishard_bits"] + bits["shard_bits"] > 64 or bits["minishard_bits"] > 32:
        problems.append(Problem(loc, "value", "a chunk id has 64 bits, a shard at most 2**32 minishards"))
    return Sharding(
        hash=str(chosen["hash"]),
        minishard_index_encoding=str(chosen["minishard_index_encoding"]),
        data_encoding=str(chosen["data_encoding"]),
        **bits,
    )
