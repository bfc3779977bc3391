"""Convert a v3 array's metadata to v2, as far as v2 can express it.

>>> from tessarr.metadata import formats
>>> new = {"zarr_format": 3, "node_type": "array", "shape": [4, 4], "data_type": "int16", "fill_value": 0,
...        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 2]}},
...        "chunk_key_encoding": {"name": "v2", "configuration": {"separator": "."}},
...        "codecs": [{"name": "transpose", "configuration": {"order": [1, 0]}},
...                   {"name": "bytes", "configuration": {"endian": "big"}},
...                   {"name": "zstd", "configuration": {"level": 3}}]}
>>> old = array_to_v2(formats.parse_node(3, {"zarr.json": new}).node).metadata
>>> old.order, old.to_dict()["dtype"], old.compressor
('F', '>i2', {'id': 'zstd', 'level': 3})

Blockers: sharding, grids that are not regular, codecs and data types that v2 does not know, dimensions of which only
some have names, storage transformers, and (unless `rekey`) chunk keys other than v2's.
"""

from __future__ import annotations

from tessarr.codecs.array_to_array.transpose import TransposeCodec
from tessarr.codecs.array_to_bytes.bytes import BytesCodec
from tessarr.codecs.base import BytesToBytes, Codec
from tessarr.codecs.chain import split
from tessarr.codecs.numcodecs.v2 import config_of_v3
from tessarr.errors import MetadataValidationError, Problem
from tessarr.keys.v2 import V2KeyEncoding
from tessarr.metadata.array import ArrayMetadata
from tessarr.metadata.group import GroupMetadata
from tessarr.model.conversion.upgrade import DIMENSIONS, Converted, reparsed
from tessarr.types import JSON, JSONObject

_WHAT = "the array cannot be expressed in Zarr v2"


def group_to_v2(group: GroupMetadata) -> Converted:
    """Convert a v3 group to v2."""
    notes = [f"member {name!r} is dropped" for name in group.extra if name != "consolidated_metadata"]
    return Converted(group.with_(zarr_format=2, extra={}, consolidated_metadata=None), tuple(notes))


def array_to_v2(array: ArrayMetadata, *, rekey: bool = False) -> Converted:
    """Convert a v3 array to v2, for the same chunks.

    With `rekey` the chunk keys become v2's with the same separator: existing chunks must then be moved.

    Raises `MetadataValidationError` listing every blocker.
    """
    problems: list[Problem] = []
    notes = [f"member {name!r} is dropped" for name in array.extra]
    if array.chunk_grid.chunk_shape is None or array.chunk_grid.name != "regular":
        problems.append(Problem(("chunk_grid",), "unsupported", f"v2 has no {array.chunk_grid.name} grids"))
    if array.storage_transformers:
        problems.append(Problem(("storage_transformers",), "unsupported", "v2 has no storage transformers"))
    if array.data_type.lacks_unit:
        problems.append(Problem(("data_type",), "unsupported", "v2 requires a unit of times"))
    if array.not_writable:
        problems.append(Problem(("codecs",), "unsupported", array.not_writable))
    keys = _keys(array, rekey, problems, notes)
    words = _words(array, problems)
    attributes = _attributes(array, problems)
    if problems:
        raise MetadataValidationError(_WHAT, problems)
    order, endian, compressor, filters = words
    data_type = array.data_type.with_byteorder(">" if endian == "big" else "<")
    fill = array.fill_value
    if fill is not None and data_type.itemsize is not None:
        fill = fill.astype(data_type.dtype)
    new = array.with_(
        zarr_format=2,
        data_type=data_type,
        fill_value=fill,
        chunk_key_encoding=keys,
        attributes=attributes,
        extra={},
        order=order,
        compressor=compressor,
        filters=tuple(filters) or None,
    )
    return Converted(reparsed(new, problems, _WHAT), tuple(notes))


def _keys(array: ArrayMetadata, rekey: bool, problems: list[Problem], notes: list[str]) -> V2KeyEncoding:
    encoding = array.chunk_key_encoding
    if isinstance(encoding, V2KeyEncoding):
        return encoding
    separator = getattr(encoding, "separator", None)
    if not rekey or separator is None:
        message = f"v2 would look for the chunks under other keys than the {encoding.name} encoding's"
        problems.append(Problem(("chunk_key_encoding",), "unsupported", message))
        return V2KeyEncoding()
    notes.append(f"chunk keys change: {encoding.encode((0,) * array.ndim)} is no longer looked for")
    return V2KeyEncoding(separator)


def _attributes(array: ArrayMetadata, problems: list[Problem]) -> JSONObject:
    attributes = dict(array.attributes)
    names = array.dimension_names
    if names is None or all(name is None for name in names):
        return attributes
    if any(name is None for name in names):
        message = f"{DIMENSIONS} cannot hold a dimension without a name"
        problems.append(Problem(("dimension_names",), "unsupported", message))
    elif attributes.get(DIMENSIONS, list(names)) != list(names):
        message = f"the attribute {DIMENSIONS} names other dimensions: {attributes[DIMENSIONS]!r}"
        problems.append(Problem(("dimension_names",), "unsupported", message))
    else:
        attributes[DIMENSIONS] = list(names)
    return attributes


def _words(
    array: ArrayMetadata, problems: list[Problem]
) -> tuple[str, str | None, JSONObject | None, list[JSONObject]]:
    """Convert codecs to order, byte order, compressor and filters."""
    before, middle, after = split(array.codecs)
    order = "C"
    filters: list[JSONObject] = []
    for codec in before:
        if isinstance(codec, TransposeCodec):
            axes = codec.order
            if axes in (tuple(range(array.ndim)), "C"):
                continue
            if axes in (tuple(reversed(range(array.ndim))), "F") and order == "C" and not filters:
                order = "F"
            else:
                message = f"v2 knows the orders C and F, not transpose {axes} here"
                problems.append(Problem(("codecs",), "unsupported", message))
        else:
            filters += _config(codec, problems)
    endian: str | None = None
    tail: list[JSONObject] = []
    if isinstance(middle, BytesCodec):
        endian = middle.endian
    elif middle.name in ("vlen-utf8", "vlen-bytes"):
        filters.append({"id": middle.name})
    elif middle.name.startswith("numcodecs."):
        tail += _config(middle, problems)
    else:
        problems.append(Problem(("codecs",), "unsupported", f"v2 has no {middle.name} codec"))
    for step in after:
        tail += _config(step, problems)
    compressor = tail.pop() if tail else None
    _check_filter_order(filters, endian, problems)
    return order, endian, compressor, [*filters, *tail]


def _check_filter_order(filters: list[JSONObject], endian: str | None, problems: list[Problem]) -> None:
    """Check that the byte order in which a v2 filter leaves elements is the one the bytes codec states."""
    from tessarr.model.conversion.upgrade import _order

    for config in filters:
        stated: JSON = config.get("astype") or config.get("dtype")
        if endian is not None and isinstance(stated, str):
            import numpy as np

            found = _order(np.dtype(stated))
            if found not in (None, endian):
                message = f"the filter {config['id']} works on {stated}, the bytes codec stores {endian}-endian"
                problems.append(Problem(("codecs",), "unsupported", message))


def _config(codec: Codec, problems: list[Problem]) -> list[JSONObject]:
    """Return the numcodecs configuration of a codec; if v2 has no such codec, add a problem and return []."""
    config = config_of_v3(codec)
    if config is not None:
        return [config]
    kind = "compressor" if isinstance(codec, BytesToBytes) else "filter"
    problems.append(Problem(("codecs",), "unsupported", f"v2 has no {kind} {codec.name}"))
    return []
