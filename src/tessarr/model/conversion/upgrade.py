"""Convert an array's metadata to a newer format, for the same stored chunks (UPG-01 to UPG-09).

>>> from tessarr.metadata import formats
>>> old = {"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": ">f8", "compressor": {"id": "zlib", "level": 1},
...        "fill_value": None, "order": "C", "filters": None}
>>> new = array_to_v3(formats.parse_node(2, {".zarray": old}).node)
>>> [codec["name"] for codec in new.metadata.to_dict()["codecs"]], new.metadata.to_dict()["data_type"]
(['bytes', 'numcodecs.zlib'], 'float64')
>>> new.notes
('fill_value null becomes 0.0', 'codec numcodecs.zlib is not a registered name')

Every difference in meaning between the new document and the old one is a note; what the new format cannot express raises
`MetadataValidationError` with one problem per blocker.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tessarr.codecs.array_to_array.transpose import TransposeCodec
from tessarr.codecs.array_to_bytes.bytes import BytesCodec
from tessarr.codecs.base import ArrayToArray, ArrayToBytes, BytesToBytes, ChunkSpec, Codec
from tessarr.codecs.fit import fit_chain
from tessarr.dtypes.base import DataType, Scalar
from tessarr.dtypes.struct import Struct
from tessarr.errors import MetadataValidationError, Problem, TessarrError
from tessarr.metadata import formats, serialize
from tessarr.metadata.array import ArrayMetadata
from tessarr.metadata.group import GroupMetadata
from tessarr.types import AnyDType, Buffer

DIMENSIONS = "_ARRAY_DIMENSIONS"
_UNREGISTERED_TYPES = ("null_terminated_bytes", "raw_bytes", "variable_length_bytes")


class Converted(NamedTuple):
    """Hold one node in another format."""

    metadata: Any
    """`ArrayMetadata` or `GroupMetadata`."""
    notes: tuple[str, ...]
    """Differences of the converted document, in sentences."""


def array_to_v2(array: ArrayMetadata) -> Converted:
    """Convert a v1 array to v2: the same data type, chunks and compressor under v2's names; no filters."""
    notes = [f"unknown member {name!r} of meta is dropped" for name in array.extra]
    return Converted(array.with_(zarr_format=2, filters=None, extra={}), tuple(notes))


def group_to_v3(group: GroupMetadata) -> Converted:
    """Convert a v2 group to v3."""
    notes = [f"unknown member {name!r} of .zgroup is dropped" for name in group.extra]
    return Converted(group.with_(zarr_format=3, extra={}), tuple(notes))


def array_to_v3(array: ArrayMetadata, *, keep_array_dimensions: bool = False) -> Converted:
    """Convert a v2 (or v1) array to v3, for the same chunks under the same keys.

    ``_ARRAY_DIMENSIONS`` becomes ``dimension_names``, and stays an attribute only with `keep_array_dimensions`.

    Raises `MetadataValidationError` listing every blocker.
    """
    problems: list[Problem] = []
    notes: list[str] = [f"unknown member {name!r} is dropped" for name in array.extra if name != "dimension_separator"]
    data_type = _data_type(array, problems)
    fill = _fill(array, data_type, notes)
    codecs = _codecs(array, problems) if data_type is not None else ()
    attributes = dict(array.attributes)
    if array.dimension_names is not None and not keep_array_dimensions:
        attributes.pop(DIMENSIONS, None)
    if problems or data_type is None:
        raise MetadataValidationError("the array cannot be expressed in Zarr v3", problems)
    new = array.with_(
        zarr_format=3,
        data_type=data_type,
        fill_value=fill,
        codecs=_fitted(array, data_type, fill, codecs, problems),
        attributes=attributes,
        extra={},
        order="C",
        compressor=None,
        filters=None,
    )
    notes += [f"codec {codec.name} is not a registered name" for codec in codecs if codec.name.startswith("numcodecs.")]
    if data_type.name in _UNREGISTERED_TYPES:
        notes.append(f"data type {data_type.name} is not a registered name")
    return Converted(reparsed(new, problems, "the array cannot be expressed in Zarr v3"), tuple(notes))


def is_upgrade(document: Buffer, old: Mapping[str, Buffer]) -> bool:
    """Whether `document` (``zarr.json``) is what the documents of Zarr v2 among `old` (name → value) are converted to."""
    try:
        node: Any = formats.parse_node(
            2,
            {name: formats.loads(name, value, key=name) for name, value in old.items() if name in formats.KEYS[2].all},
        ).node
        if isinstance(node, ArrayMetadata):
            converted = [array_to_v3(node, keep_array_dimensions=keep) for keep in (False, True)]
        else:
            converted = [group_to_v3(node)]
    except TessarrError:
        return False
    return any(serialize.dumps(new.metadata.documents())["zarr.json"] == bytes(document) for new in converted)


def reparsed(array: ArrayMetadata, problems: list[Problem], what: str) -> ArrayMetadata:
    """Return the array as a reader will parse it; metadata that cannot be written and read again is a blocker."""
    if not problems:
        try:
            documents = array.documents()
            found = formats.parse_node(array.zarr_format, documents).node
            assert isinstance(found, ArrayMetadata)
            return found
        except TessarrError as error:
            problems += getattr(error, "problems", None) or [Problem((), "unsupported", str(error))]
    raise MetadataValidationError(what, problems)


def byte_order(data_type: DataType) -> str | None:
    """Return "little" or "big", or ``None`` where elements have no byte order. Raises `ValueError` when fields
    differ.
    """
    orders = {_order(dtype) for dtype in _leaves(data_type.dtype)} - {None}
    if len(orders) > 1:
        raise ValueError("fields of different byte order")
    return next(iter(orders), None) if data_type.itemsize is not None else None


def _leaves(dtype: AnyDType) -> list[AnyDType]:
    if dtype.subdtype is not None:
        return _leaves(dtype.subdtype[0])
    if dtype.names is None:
        return [dtype]
    return [leaf for name in dtype.names for leaf in _leaves(dtype[name])]


def _order(dtype: AnyDType) -> str | None:
    import sys

    if dtype.kind in "SVOT" or (dtype.itemsize == 1 and dtype.kind != "U"):
        return None
    mark = dtype.byteorder if dtype.byteorder in "<>" else {"little": "<", "big": ">"}[sys.byteorder]
    return "little" if mark == "<" else "big"


def _data_type(array: ArrayMetadata, problems: list[Problem]) -> DataType | None:
    """Return the type without its byte order, if v3 can express it."""
    try:
        byte_order(array.data_type)
        array.data_type.to_json()
    except ValueError as error:  # also a TessarrError of metadata
        message = str(error) if isinstance(error, TessarrError) else f"{error}: the bytes codec states one for all"
        problems.append(Problem(("dtype",), "unsupported", message))
        return None
    if isinstance(array.data_type, Struct) and array.data_type.has_lists:
        message = "v3 has subarray fields as the type fixed_size_list only, which is proposed and not registered"
        problems.append(Problem(("dtype",), "unsupported", f"{message}; `tessarr convert` writes it"))
        return None
    return array.data_type.with_byteorder("=")


def _fill(array: ArrayMetadata, data_type: DataType | None, notes: list[str]) -> Scalar | None:
    if data_type is None:
        return None
    if array.fill_value is None:
        fill = data_type.default_fill()
        notes.append(f"fill_value null becomes {data_type.dump_fill(fill, 3)!r}")
        return fill
    if data_type.itemsize is None:
        return array.fill_value
    return array.fill_value.astype(data_type.dtype)  # swaps bytes, keeps bits


def _codecs(array: ArrayMetadata, problems: list[Problem]) -> tuple[Codec, ...]:
    """Build the chain: transpose for order F, filters over elements, bytes (or the object codec), other filters, the
    compressor.
    """
    before: list[Codec] = []
    if array.order == "F" and array.ndim > 1:
        before.append(TransposeCodec(tuple(reversed(range(array.ndim)))))
    middle: Codec | None = None
    after: list[Codec] = []
    endian = byte_order(array.data_type)
    for position, config in enumerate([*(array.filters or ()), *([array.compressor] if array.compressor else [])]):
        is_filter = position < len(array.filters or ())
        loc: tuple[str | int, ...] = ("filters", position) if is_filter else ("compressor",)
        codec = _codec(config, loc, problems)
        if isinstance(codec, ArrayToArray) and middle is None and not after:
            before.append(codec)
            endian = _endian_behind(codec, endian)
        elif isinstance(codec, ArrayToBytes) and middle is None and not after:
            middle = codec
        elif isinstance(codec, BytesToBytes):
            after.append(codec)
        elif codec is not None:
            message = f"{codec.name} ({codec.kind}) cannot follow the codecs before it in a v3 chain"
            problems.append(Problem(loc, "unsupported", message))
    return (*before, middle or BytesCodec(endian), *after)  # type: ignore[arg-type]


def _codec(config: object, loc: tuple[str | int, ...], problems: list[Problem]) -> Codec | None:
    from tessarr.codecs.numcodecs import as_codec

    try:
        return as_codec(config)
    except TessarrError as error:
        problems.append(Problem(loc, "unsupported", str(error)))
        return None


def _endian_behind(codec: Codec, endian: str | None) -> str | None:
    """Return the byte order in which a v2 filter leaves elements: that of its ``astype`` (or ``dtype``), if any."""
    if codec.name == "numcodecs.packbits":
        return None
    coder = getattr(codec, "coder", None)
    members = getattr(coder, "members", {})
    stated = members.get("astype") or members.get("encode_dtype") or members.get("dtype")
    return endian if stated is None else _order(np.dtype(stated))


def _fitted(
    array: ArrayMetadata, data_type: DataType, fill: Scalar | None, codecs: tuple[Codec, ...], problems: list[Problem]
) -> tuple[Codec, ...]:
    assert fill is not None
    try:
        return fit_chain(codecs, ChunkSpec(array.chunks, data_type, fill))
    except TessarrError as error:
        problems.append(Problem(("filters",), "unsupported", str(error)))
        return codecs
