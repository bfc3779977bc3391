"""The types of `Array.metadata`: `ArrayV3Metadata` and `ArrayV2Metadata`, each with the fields of its format only.

>>> old = ArrayV2Metadata.from_dict(
...     {"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<i4", "fill_value": 0, "order": "C", "compressor": None,
...      "filters": None}
... )
>>> old.shape, old.order, old.fill_value, hasattr(old, "dimension_names")
((4,), 'C', np.int32(0), False)
>>> old.update_shape((6,)).to_dict()["shape"]
[6]

Other software distinguishes the formats by these fields (xarray by ``dimension_names``), so v2 metadata must not have those
of v3. Both are views of `tessarr.metadata.array.ArrayMetadata`, the model that tessarr uses; v1 arrays show as v2.

Source: ``zarr.core.metadata`` of zarr-python 3.0 to 3.4, whose names, argument names and value types these are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

from tessarr import registry
from tessarr.codecs.base import Codec
from tessarr.codecs.sharding import ShardingCodec
from tessarr.common.warn import report
from tessarr.dtypes.base import DataType
from tessarr.dtypes.unstable import warn_of_unstable
from tessarr.errors import MetadataValidationError
from tessarr.grids.base import ChunkGrid
from tessarr.grids.regular import RegularGrid
from tessarr.keys.base import ChunkKeyEncoding
from tessarr.metadata import formats, serialize
from tessarr.metadata.array import ArrayMetadata
from tessarr.settings import config
from tessarr.types import JSON, JSONObject, Shape


class _PublicMetadata:
    """Base class of both."""

    __slots__ = ("_model",)
    _model: ArrayMetadata
    _formats: ClassVar[tuple[int, ...]]
    _fields: ClassVar[tuple[str, ...]]
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[object]]]

    def __init_subclass__(cls) -> None:
        """Let `dataclasses.replace` and `dataclasses.fields` know the arguments of the class, as they know zarr-python's."""
        described = dataclasses.make_dataclass("_", cls._fields, init=False, repr=False, eq=False, match_args=False)
        cls.__dataclass_fields__ = {field.name: field for field in dataclasses.fields(described)}

    @classmethod
    def _of(cls, model: ArrayMetadata) -> Self:
        self = cls.__new__(cls)
        object.__setattr__(self, "_model", model)
        return self

    def _parse(self, document: Mapping[str, JSON]) -> None:
        object.__setattr__(self, "_model", _parsed(document, self._formats))

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> Self:
        """Parse one document, attributes included.

        Raises `MetadataValidationError` when it violates its specification, or is of another format or kind of node.
        """
        return cls._of(_parsed(data, cls._formats))

    def to_dict(self) -> JSONObject:
        """Return the metadata as one document, attributes included."""
        return self._document()

    def _document(self) -> JSONObject:
        return self._model.to_dict()

    def to_buffer_dict(self, prototype: Any) -> dict[str, JSON]:
        """Return the stored documents: key relative to the array → a buffer of ``prototype.buffer``."""
        if self._model.zarr_format == 3:
            warn_of_unstable(self._model.data_type)
        documents = serialize.dumps(self._model.documents())
        return {key: prototype.buffer.from_bytes(value) for key, value in documents.items()}

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; cannot set {name!r}")

    def __eq__(self, other: object) -> bool:
        return self._document() == other._document() if isinstance(other, type(self)) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self._fields)})"

    def __reduce__(self) -> tuple[object, ...]:
        return type(self)._of, (self._model,)

    @property
    def zarr_format(self) -> int:
        """1, 2 or 3."""
        return self._model.zarr_format

    @property
    def shape(self) -> Shape:
        """Lengths of the axes."""
        return self._model.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self._model.ndim

    @property
    def dtype(self) -> DataType:
        """The data type; its ``to_native_dtype()`` is NumPy's."""
        return self._model.data_type

    @property
    def fill_value(self) -> Any:
        """A scalar; ``None`` for null in a v1 or v2 document."""
        fill = self._model.fill_value
        return None if fill is None else self._model.data_type.show(fill)[()]

    @property
    def attributes(self) -> dict[str, Any]:
        """The user attributes."""
        return self._model.attributes

    @property
    def chunk_grid(self) -> ChunkGrid:
        """The grid of stored chunks (of shards, where there are shards)."""
        return self._model.chunk_grid

    @property
    def chunks(self) -> Shape:
        """Shape of a chunk (an inner chunk, where there are shards). `NotImplementedError` when chunks differ in shape."""
        sharding = self._sharding
        return sharding.chunk_shape if sharding is not None else self._model.chunks

    @property
    def shards(self) -> Shape | None:
        """Shape of a shard; ``None`` without shards. `NotImplementedError` when shards differ in shape."""
        whole = self._model.chunks
        return whole if self._sharding is not None else None

    @property
    def _sharding(self) -> ShardingCodec | None:
        codecs = self._model.codecs
        return codecs[0] if len(codecs) == 1 and isinstance(codecs[0], ShardingCodec) else None

    def get_chunk_spec(self, _chunk_coords: Sequence[int], array_config: object, prototype: object) -> object:
        """Return zarr-python's description of a stored chunk (a shard, where there are shards), an ``ArraySpec``.

        Raises `NotImplementedError` when chunks differ in shape.
        """
        spec = registry.higher("tessarr.ArraySpec")
        return spec(self._model.chunks, self.dtype, self.fill_value, array_config, prototype)

    def encode_chunk_key(self, chunk_coords: Sequence[int]) -> str:
        """Return the key of a chunk, relative to the array."""
        return self._model.chunk_key_encoding.encode(tuple(chunk_coords))

    def update_shape(self, shape: Sequence[int]) -> Self:
        """Return a copy with another shape."""
        return self._of(_parsed({**self._document(), "shape": list(shape)}, self._formats))

    def update_attributes(self, attributes: dict[str, object]) -> Self:
        """Return a copy with other attributes."""
        return self._of(self._model.with_attributes(attributes))


class ArrayV2Metadata(_PublicMetadata):
    """The metadata of a Zarr v2 array, in the words of v2."""

    __slots__ = ()
    _formats = (1, 2)
    _fields = (
        "shape", "dtype", "chunks", "fill_value", "order", "compressor", "filters", "dimension_separator", "attributes",
    )  # fmt: skip

    def __init__(
        self,
        *,
        shape: Sequence[int],
        dtype: DataType,
        chunks: Sequence[int],
        fill_value: object,
        order: Literal["C", "F"],
        dimension_separator: Literal[".", "/"] = ".",
        compressor: object = None,
        filters: Iterable[object] | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> None:
        """Take `compressor` and `filters` as objects of numcodecs or their configurations, `fill_value` as a value of `dtype`.

        Raises `MetadataValidationError`.
        """
        listed = None if filters is None else [_configuration(item) for item in filters] or None
        fill = None if fill_value is None else dtype.dump_fill(dtype.cast_fill(fill_value), 2)
        self._parse(
            {
                "zarr_format": 2,
                "shape": list(shape),
                "chunks": list(chunks),
                "dtype": dtype.to_v2(),
                "fill_value": fill,
                "order": order,
                "dimension_separator": dimension_separator,
                "compressor": _configuration(compressor),
                "filters": listed,
                "attributes": dict(attributes or {}),
            }
        )

    def to_dict(self) -> JSONObject:
        """Return the metadata as one document, with attributes and always with ``dimension_separator``."""
        return self._document()

    def _document(self) -> JSONObject:
        document = self._model.to_dict()
        if self.zarr_format == 2:
            document.setdefault("dimension_separator", self.dimension_separator)
        return document

    @property
    def order(self) -> str:
        """Layout of elements in a chunk: "C" or "F"."""
        return self._model.order

    @property
    def dimension_separator(self) -> str:
        """The separator between the numbers of a chunk key."""
        return self._model.dimension_separator or "."

    @property
    def compressor(self) -> Any:
        """The compressor, of numcodecs; ``None`` without a compressor."""
        return None if self._model.compressor is None else _numcodec(self._model.compressor)

    @property
    def filters(self) -> tuple[Any, ...] | None:
        """The filters, of numcodecs; ``None`` without filters."""
        return tuple(map(_numcodec, self._model.filters)) if self._model.filters else None


class ArrayV3Metadata(_PublicMetadata):
    """The metadata of a Zarr v3 array."""

    __slots__ = ()
    _formats = (3,)
    _fields = (
        "shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value", "codecs", "attributes", "dimension_names",
        "storage_transformers", "extra_fields",
    )  # fmt: skip
    node_type: ClassVar[Literal["array"]] = "array"

    def __init__(
        self,
        *,
        shape: Sequence[int],
        data_type: DataType,
        chunk_grid: ChunkGrid | Mapping[str, object],
        chunk_key_encoding: ChunkKeyEncoding | Mapping[str, object],
        fill_value: object,
        codecs: Iterable[Codec | Mapping[str, object] | str],
        attributes: Mapping[str, object] | None = None,
        dimension_names: Iterable[str | None] | None = None,
        storage_transformers: Iterable[JSONObject] | None = None,
        extra_fields: Mapping[str, JSON] | None = None,
    ) -> None:
        """Take `fill_value` as a value of `data_type`; grids, key encodings and codecs as objects or their JSON.

        Raises `MetadataValidationError`.
        """
        document: dict[str, Any] = {
            "zarr_format": 3,
            "node_type": "array",
            "shape": list(shape),
            "data_type": data_type.to_json(),
            "chunk_grid": _json_of(chunk_grid),
            "chunk_key_encoding": _key_encoding(chunk_key_encoding),
            "fill_value": data_type.dump_fill(data_type.cast_given_fill(fill_value), 3),
            "codecs": [_json_of(codec) for codec in codecs],
            "attributes": dict(attributes or {}),
            "storage_transformers": list(storage_transformers or ()),
            **(extra_fields or {}),
        }
        if dimension_names is not None:
            document["dimension_names"] = list(dimension_names)
        self._parse(document)

    def to_dict(self) -> JSONObject:
        """Return the document, always with ``storage_transformers``; shapes are tuples, as zarr-python gives them."""
        warn_of_unstable(self._model.data_type)
        return self._document()

    def _document(self) -> JSONObject:
        document: dict[str, Any] = self._model.to_dict()
        document.setdefault("storage_transformers", [])
        document["shape"] = tuple(document["shape"])
        grid = document["chunk_grid"]
        if grid["name"] == "regular":
            sizes = tuple(grid["configuration"]["chunk_shape"])
            document["chunk_grid"] = {**grid, "configuration": {**grid["configuration"], "chunk_shape": sizes}}
        return document

    @property
    def data_type(self) -> DataType:
        """The data type."""
        return self._model.data_type

    @property
    def chunk_key_encoding(self) -> ChunkKeyEncoding:
        """The encoding of chunk keys."""
        return self._model.chunk_key_encoding

    @property
    def codecs(self) -> tuple[Codec, ...]:
        """The codecs, in order."""
        return self._model.codecs

    @property
    def inner_codecs(self) -> tuple[Codec, ...]:
        """The codecs of inner chunks, where there are shards; else `codecs`."""
        return self._sharding.codecs if self._sharding is not None else self._model.codecs

    @property
    def dimension_names(self) -> tuple[str | None, ...] | None:
        """Names of the axes; ``None`` when none are given."""
        return self._model.dimension_names

    @property
    def storage_transformers(self) -> tuple[JSONObject, ...]:
        """As in the document."""
        return self._model.storage_transformers

    @property
    def extra_fields(self) -> dict[str, JSON]:
        """Members of the document that the specification does not name."""
        return self._model.extra


def to_public(model: ArrayMetadata) -> ArrayV2Metadata | ArrayV3Metadata:
    """Present `model` with the terms of its format."""
    return ArrayV3Metadata._of(model) if model.zarr_format == 3 else ArrayV2Metadata._of(model)


def names_that_are_given(names: tuple[str | None, ...] | None) -> tuple[str | None, ...] | None:
    """Return `names`, or raise `AttributeError` for ``None`` where the setting ``zarr_python.only_given_names`` asks for it.

    Arrays of zarr-python have no ``dimension_names``, so that programs take the attribute as a sign that there are names.
    """
    if names is None and config.get("zarr_python.only_given_names"):
        raise AttributeError(
            "the array has no dimension names, and zarr-python's arrays no `dimension_names`; see `dims`"
        )
    return names


def model_of(metadata: object) -> Any:
    """Return the model behind a result of `to_public`; other values unchanged."""
    return metadata._model if isinstance(metadata, _PublicMetadata) else metadata


def _parsed(document: Mapping[str, Any], allowed: tuple[int, ...]) -> ArrayMetadata:
    number: Any = document.get("zarr_format")
    if not formats.is_format(number) or number not in allowed:
        expected = " or ".join(map(str, allowed))
        raise MetadataValidationError(f"Invalid value for zarr_format. Expected {expected}", got=repr(number))
    keys = formats.KEYS[number]
    if number == 3:
        stated = dict(document)
        if isinstance(stated.get("shape"), tuple):
            stated["shape"] = list(stated["shape"])
        if "chunk_key_encoding" in stated:
            stated["chunk_key_encoding"] = _key_encoding(stated["chunk_key_encoding"])
        if isinstance(stated.get("codecs"), list | tuple):
            stated["codecs"] = [_byte_order(codec) for codec in stated["codecs"]]
        documents: dict[str, Any] = {keys.array: stated}
    else:
        rest = {name: value for name, value in document.items() if name not in ("attributes", "node_type")}
        documents = {keys.array: rest, keys.attributes or "": dict(document.get("attributes") or {})}
    model, diagnostics = formats.parse_node(number, documents)
    report(diagnostics)
    if not isinstance(model, ArrayMetadata):
        raise MetadataValidationError("the document describes a group", expected="an array")
    return model


def _numcodec(configuration: Any) -> Any:
    from tessarr.registry import get_numcodec

    return get_numcodec(configuration)


def _configuration(codec: object) -> Any:
    """Return the v2 configuration of a codec: from an object of numcodecs, its configuration, or ``None``."""
    from tessarr.codecs.numcodecs.v2 import v2_config

    return None if codec is None else v2_config(codec)


def _json_of(value: object) -> object:
    """Return the JSON of a grid, key encoding or codec; JSON unchanged."""
    for name in ("to_json", "to_dict"):
        if hasattr(value, name):
            return getattr(value, name)()
    return dict(value) if isinstance(value, Mapping) else value


def _byte_order(codec: object) -> object:
    """Take the codec ``bytes`` without a configuration for little-endian, as zarr-python where a program makes metadata of it.

    In what is stored, a byte order that is not stated is an error (V3-BYTES-02); this one is then stated.
    """
    if codec == "bytes" or (
        isinstance(codec, Mapping) and codec.get("name") == "bytes" and not codec.get("configuration")
    ):
        return {"name": "bytes", "configuration": {"endian": "little"}}
    return codec


def _key_encoding(value: object) -> Any:
    given = _json_of(value)
    # zarr-python also accepts {"name": …, "separator": …}
    if isinstance(given, dict) and "separator" in given and "configuration" not in given:
        return {"name": given["name"], "configuration": {"separator": given["separator"]}}
    return given


__all__ = ["ArrayV2Metadata", "ArrayV3Metadata", "RegularGrid", "model_of", "to_public"]
