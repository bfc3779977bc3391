"""Zarr v2 documents: ``.zarray``, ``.zgroup``, ``.zattrs``.

Source: "Zarr storage specification version 2" and the OGC community standard's text of it. Decisions where the text is
silent or real files differ are in docs/decisions.md. ``dimension_separator`` is written only when it is ``/``, so that
documents with ``.`` are valid under both texts.
"""

from __future__ import annotations

from collections.abc import Mapping

from tessarr.codecs.array_to_array.transpose import TransposeCodec
from tessarr.codecs.array_to_bytes.bytes import BytesCodec
from tessarr.codecs.base import Codec
from tessarr.codecs.numcodecs import v2_compressor, v2_filters
from tessarr.dtypes.base import DataType
from tessarr.dtypes.parse import from_v2
from tessarr.errors import TessarrError
from tessarr.grids.regular import RegularGrid
from tessarr.keys.v2 import V2KeyEncoding
from tessarr.metadata.array import ArrayMetadata, misstated_dimensions, stated_dimensions
from tessarr.metadata.field import Document, Parsed, check_attributes
from tessarr.settings import config, is_strict
from tessarr.types import JSON, JSONObject, Shape, ZarrFormat

ARRAY_KEY = ".zarray"
GROUP_KEY = ".zgroup"
ATTRIBUTES_KEY = ".zattrs"
_REQUIRED = ("zarr_format", "shape", "chunks", "dtype", "compressor", "fill_value", "order", "filters")


def parse_array(documents: Mapping[str, object]) -> Parsed:
    """Parse ``.zarray`` and, if present, ``.zattrs``. Raises `MetadataValidationError` listing every problem."""
    doc = Document(documents[ARRAY_KEY], "v2 array metadata", ARRAY_KEY)
    doc.require(_REQUIRED)
    doc.format(2)
    compressor = _codec_config(doc, "compressor", doc.fields.get("compressor"))
    filters = _filters(doc)
    attributes = check_attributes(documents.get(ATTRIBUTES_KEY, {}), ATTRIBUTES_KEY)
    extra = {name: value for name, value in doc.fields.items() if name not in (*_REQUIRED, "dimension_separator")}
    if doc.fields.get("dimension_separator") == ".":
        extra["dimension_separator"] = "."
    return resolve_array(doc, 2, compressor=compressor, filters=filters, attributes=attributes, extra=extra)


def _codec_config(doc: Document, name: str, value: object) -> JSONObject | None:
    if value is None:
        return None
    if not isinstance(value, Mapping) or not isinstance(value.get("id"), str):
        doc.add(name, "type", f'must be null or an object with a string "id", got {value!r}')
        return None
    return dict(value)


def _filters(doc: Document) -> tuple[JSONObject, ...] | None:
    value = doc.fields.get("filters")
    if value is None:
        return None
    if not isinstance(value, list | tuple):
        doc.add("filters", "type", f"must be null or a list of objects, got {value!r}")
        return None
    if not value:
        doc.diagnose("an empty list of filters should be null; read as null")
        return None
    return tuple(config for item in value if (config := _codec_config(doc, "filters", item or {})) is not None)


def resolve_array(
    doc: Document,
    zarr_format: ZarrFormat,
    *,
    compressor: JSONObject | None,
    filters: tuple[JSONObject, ...] | None,
    attributes: dict[str, JSON],
    extra: dict[str, JSON],
) -> Parsed:
    """Build the metadata of a v1 or v2 array from a document with v2's compressor and filters."""
    shape = doc.lengths("shape")
    order = doc.choice("order", ("C", "F"), "C")
    separator = doc.choice("dimension_separator", (".", "/"), ".") if zarr_format == 2 else "."
    grid = _grid(doc, shape)
    data_type = _data_type(doc, filters)
    fill = None
    if data_type is not None and doc.fields.get("fill_value") is not None:
        try:
            fill = data_type.parse_fill(doc.fields["fill_value"], zarr_format)
        except TessarrError as error:
            doc.adopt("fill_value", error)
        for message in data_type.fill_diagnostics(doc.fields["fill_value"], zarr_format):
            doc.diagnose(message)
    codecs: tuple[Codec, ...] = ()
    if data_type is not None and not doc.problems:
        try:
            codecs = chain_from_v2(order, compressor, filters, data_type, len(shape))
        except TessarrError as error:
            if error.kind == "pickle_refused":
                raise
            doc.adopt("filters", error)
    doc.finish()
    assert grid is not None
    assert data_type is not None
    for message in misstated_dimensions(attributes, len(shape)):
        doc.diagnose(message)
    array = ArrayMetadata(
        zarr_format=zarr_format,
        shape=shape,
        data_type=data_type,
        chunk_grid=grid,
        chunk_key_encoding=V2KeyEncoding(separator),
        fill_value=fill,
        codecs=codecs,
        attributes=attributes,
        dimension_names=stated_dimensions(attributes, len(shape)),
        extra=extra,
        order=order,
        compressor=compressor,
        filters=filters,
    )
    return doc.parsed(array)


def _grid(doc: Document, shape: Shape) -> RegularGrid | None:
    if "chunks" not in doc.fields or any(problem.loc == ("shape",) for problem in doc.problems):
        return None
    try:
        grid = RegularGrid.from_json({"chunk_shape": doc.fields["chunks"]}, shape)
    except TessarrError as error:
        found = len(doc.problems)
        doc.adopt("chunks", error)  # whose loc has v3's name: chunks/chunk_shape
        doc.problems[found:] = [item._replace(loc=(item.loc[0], *item.loc[2:])) for item in doc.problems[found:]]
        return None
    for message in grid.diagnostics:
        doc.diagnose(message)
    return grid


def _data_type(doc: Document, filters: tuple[JSONObject, ...] | None) -> DataType | None:
    if "dtype" not in doc.fields:
        return None
    try:
        data_type = from_v2(doc.fields["dtype"], filters)
    except TessarrError as error:
        if error.kind == "pickle_refused":
            raise
        doc.adopt("dtype", error)
        return None
    _check_orders(doc)
    if data_type.lacks_unit and (is_strict() or not config.get("zarr_python.arguments")):  # which lets them be created
        doc.tolerate("dtype", f"must state the unit of times, got {doc.fields['dtype']!r}", "counts without a unit")
    return data_type


def _check_orders(doc: Document) -> None:
    """Add a diagnostic about single bytes with a byte order, which other implementations refuse."""
    from tessarr.metadata.legacy import plain_orders

    dtype = doc.fields["dtype"]
    meant = plain_orders(dtype)
    if meant != dtype and (is_strict() or not config.get("zarr_python.documents")):  # zarr-python reads it silently
        doc.diagnose(f"single bytes have no byte order: {dtype!r} is read as {meant!r}")


def chain_from_v2(
    order: str,
    compressor: Mapping[str, JSON] | None,
    filters: tuple[JSONObject, ...] | None,
    data_type: DataType,
    ndim: int,
) -> tuple[Codec, ...]:
    """Return the v3 chain that stores the same bytes: transpose for order F, then elements as declared, filters,
    compressor.
    """
    before = [TransposeCodec(tuple(reversed(range(ndim))))] if order == "F" and ndim > 1 else []
    middle, after = v2_filters(filters or (), data_type)
    last = [] if compressor is None else [v2_compressor(compressor)]
    return (*before, middle or BytesCodec(None), *after, *last)
