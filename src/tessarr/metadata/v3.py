"""Zarr v3 documents: ``zarr.json``.

Source: Zarr v3.1 core, "Metadata", with the rules merged into its main branch until July 2026 (docs/decisions.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from tessarr import registry
from tessarr.codecs.array_to_bytes.bytes import BytesCodec
from tessarr.codecs.base import ChunkSpec, Codec
from tessarr.codecs.chain import BoundChain
from tessarr.codecs.parse import named_config, parse_codecs
from tessarr.dtypes.base import DataType, Scalar
from tessarr.dtypes.parse import from_v3
from tessarr.errors import (
    CodecError,
    MetadataValidationError,
    NodeTypeValidationError,
    Problem,
    TessarrError,
    problems_of,
)
from tessarr.keys.base import ChunkKeyEncoding
from tessarr.metadata import legacy
from tessarr.metadata.array import PENDING, ArrayMetadata
from tessarr.metadata.field import Document, Parsed
from tessarr.settings import is_strict
from tessarr.types import JSON, JSONObject, Shape

KEY = "zarr.json"
_REQUIRED = (
    "zarr_format",
    "node_type",
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_key_encoding",
    "fill_value",
    "codecs",
)
_OPTIONAL = ("attributes", "storage_transformers", "dimension_names")


def parse_array(documents: Mapping[str, JSON]) -> Parsed:
    """Parse ``zarr.json``. Raises `MetadataValidationError` listing every problem. Does no I/O."""
    doc = Document(documents[KEY], "v3 array metadata", KEY)
    if doc.fields.get("node_type") == "group":
        raise NodeTypeValidationError("the node is a group, not an array", key=KEY, hint="Open it with open_group")
    doc.require(_REQUIRED)
    doc.format(3)
    if doc.fields.get("node_type", "array") != "array":
        doc.add("node_type", "value", f"must be 'array', got {doc.fields['node_type']!r}")
    shape = doc.lengths("shape")
    shape_ok = not any(problem.loc == ("shape",) for problem in doc.problems)
    data_type = _data_type(doc)
    grid = _extension(doc, "chunk_grid", shape) if shape_ok else None
    encoding = _extension(doc, "chunk_key_encoding")
    codecs, ignored = _codecs(doc)
    _old_names(doc)
    fill = _fill(doc, data_type)
    attributes = doc.attributes()
    names = _dimension_names(doc, len(shape)) if shape_ok else None
    transformers, skippable = _storage_transformers(doc)
    extra = doc.extra((*_REQUIRED, *_OPTIONAL))
    if encoding is not None and shape_ok:
        _check_keys(doc, encoding, len(shape))
    if not doc.problems and grid is not None:
        _check_chain(doc, codecs, grid.axes(shape), data_type, fill)
    doc.finish()
    assert data_type is not None
    assert fill is not None
    assert grid is not None
    assert encoding is not None
    array = ArrayMetadata(
        zarr_format=3,
        shape=shape,
        data_type=data_type,
        chunk_grid=grid,
        chunk_key_encoding=encoding,
        fill_value=fill,
        codecs=codecs,
        attributes=attributes,
        dimension_names=names,
        storage_transformers=transformers,
        pending=extra.pop(PENDING, None),
        extra=extra,
        not_writable=_not_writable(ignored, skippable),
    )
    return doc.parsed(array)


def _old_names(doc: Document) -> None:
    """Warn of legacy names, which are read for old data."""
    data_type = doc.fields.get("data_type")
    if isinstance(data_type, Mapping) and data_type.get("name") == "structured":
        doc.tolerate("data_type", "is called structured, as zarr-python before 3.2 wrote it", "struct")
    for codecs in legacy.codec_lists(dict(doc.fields)):
        if any(codec == "endian" or (isinstance(codec, Mapping) and codec.get("name") == "endian") for codec in codecs):
            doc.tolerate("codecs", "has a codec called endian, as before 2024", "bytes")
            return


def _codecs(doc: Document) -> tuple[tuple[Codec, ...], list[str]]:
    if "codecs" not in doc.fields:
        return (), []
    codecs, ignored = parse_codecs(doc.fields["codecs"], ("codecs",), doc.problems)
    for codec in codecs:
        for message in codec.diagnostics:
            doc.diagnose(message)
    return codecs, ignored


def _data_type(doc: Document) -> DataType | None:
    if "data_type" not in doc.fields:
        return None
    try:
        return from_v3(doc.fields["data_type"])
    except TessarrError as error:
        doc.adopt("data_type", error)
        return None


def _extension(doc: Document, point: Any, *context: object) -> Any:
    """Parse a chunk grid or chunk key encoding; ``must_understand`` has no effect there (V3-EXT-09)."""
    if point not in doc.fields:
        return None
    parsed = named_config(doc.fields[point], (point,), doc.problems)
    if parsed is None:
        return None
    name, configuration, _ = parsed
    implementation = registry.get(point, name)
    if implementation is None:
        known = ", ".join(registry.names(point))
        doc.problems.append(Problem((point, "name"), "unsupported", f"unknown {point} {name!r}; known: {known}"))
        return None
    try:
        made = implementation.from_json(configuration, *context)
    except TessarrError as error:
        doc.adopt(point, error)
        return None
    for message in getattr(made, "diagnostics", ()):
        doc.diagnose(message)
    return made


def _check_keys(doc: Document, encoding: ChunkKeyEncoding, ndim: int) -> None:
    """Refuse an encoding that gives two chunks of an array of `ndim` axes the same key."""
    try:
        encoding.template(ndim)
    except MetadataValidationError as error:
        doc.adopt("chunk_key_encoding", error)


def _fill(doc: Document, data_type: DataType | None) -> Scalar | None:
    if data_type is None or "fill_value" not in doc.fields:
        return None
    value = doc.fields["fill_value"]
    if value is None and not getattr(data_type, "fill_may_be_null", False):
        doc.add("fill_value", "value", f"null is not a fill value of {data_type.name}; v3 requires a concrete one")
        return None
    try:
        return data_type.parse_fill(value, 3)
    except TessarrError as error:
        doc.adopt("fill_value", error)
        return None


def _dimension_names(doc: Document, ndim: int) -> tuple[str | None, ...] | None:
    names = doc.fields.get("dimension_names")
    if names is None:
        if "dimension_names" in doc.fields:
            doc.tolerate("dimension_names", "is null, and must be a list", "no names")
        return None
    if not isinstance(names, list | tuple) or not all(name is None or isinstance(name, str) for name in names):
        doc.add("dimension_names", "type", f"must be a list of strings and nulls, got {names!r}")
        return None
    if len(names) != ndim:
        doc.add("dimension_names", "value", f"must have one entry per dimension ({ndim}), got {len(names)}")
        return None
    return tuple(cast("Sequence[str | None]", names))


def _not_writable(ignored: list[str], skippable: list[str]) -> str | None:
    if ignored:
        return f"unknown codecs {ignored} were skipped, so chunks could not be written back"
    if skippable:
        return f"readers may skip the storage transformers {skippable}, and would find other chunks"
    return None


def _storage_transformers(doc: Document) -> tuple[tuple[JSONObject, ...], list[str]]:
    """Parse the storage transformers. Returns them, and the names of those that readers might skip by mistake."""
    value = doc.fields.get("storage_transformers", [])
    if value is None:
        doc.tolerate("storage_transformers", "is null, and must be a list", "an empty one")
        return (), []
    if not isinstance(value, list | tuple):
        doc.add("storage_transformers", "type", f"must be a list, got {value!r}")
        return (), []
    skippable = _check_transformers(value, doc.problems)
    return tuple(cast("Sequence[JSONObject]", value)), skippable


def new_transformers(items: Iterable[JSONObject]) -> tuple[JSONObject, ...]:
    """Check the storage transformers of a new array. Raises `MetadataValidationError` listing every problem."""
    made, problems = tuple(items), list[Problem]()
    for name in _check_transformers(made, problems):
        message = f'{name} changes where chunks are, so that "must_understand": false is wrong'
        problems.append(Problem(("storage_transformers",), "value", message))
    if problems:
        raise MetadataValidationError("invalid storage transformers", problems)
    return made


def _check_transformers(items: Iterable[object], problems: list[Problem]) -> list[str]:
    """Check each storage transformer. Returns the names of those that change the layout, and may be skipped."""
    skippable = []
    for position, item in enumerate(items):
        loc = ("storage_transformers", position)
        parsed = named_config(item, loc, problems)
        if parsed is None:
            continue
        name, configuration, must_understand = parsed
        implementation = registry.get("storage_transformer", name)
        if implementation is None:
            if must_understand:
                message = f"unknown storage transformer {name!r}; register it with tessarr.registry.register"
                problems.append(Problem((*loc, "name"), "unsupported", message))
            continue
        if not must_understand and getattr(implementation, "changes_layout", False):
            skippable.append(name)
        try:
            implementation.from_json(configuration)
        except MetadataValidationError as error:
            problems += problems_of(error, *loc, "configuration")
    return skippable


def _check_chain(doc: Document, codecs: tuple[Codec, ...], axes: Any, data_type: Any, fill: Any) -> None:
    """Bind the chain once, so that parsing refuses an impossible chain."""
    shape: Shape = tuple(axis.size(0) if axis.nchunks else (axis.uniform or 1) for axis in axes)
    try:
        chain = BoundChain(codecs, ChunkSpec(shape, data_type, fill))
        for message in check_endian(chain, strict=is_strict()):
            doc.diagnose(message)
    except CodecError as error:
        doc.adopt("codecs", error)


def check_endian(chain: BoundChain, *, strict: bool) -> tuple[str, ...]:
    """Check that v3 ``bytes`` codecs state the byte order of multi-byte elements, and of the indices of shards.

    Unless `strict`, a structured type without byte order, as zarr-python wrote, is read as little-endian; the diagnostic is
    returned. Raises `CodecError` otherwise.
    """
    if chain.shard is not None:
        check_endian(chain.shard.index_chain, strict=strict)
        return check_endian(chain.shard.inner, strict=strict)
    if isinstance(chain.middle, BytesCodec) and chain.middle.endian is None:
        data_type = chain.middle_spec.data_type
        if data_type.has_byteorder and data_type.dtype.names and not strict:
            return ("a structured type without a stated byte order is read as little-endian",)
        if data_type.has_byteorder:
            raise CodecError(
                f"the bytes codec must state the byte order of {data_type.name}",
                codec="bytes",
                expected='"endian": "little" or "big"',
                got="no endian",
            )
    return ()
