"""Translate the keywords of zarr-python's older ``create`` to those of `create_array`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tessarr.core.creation.array_config import DEFAULT
from tessarr.core.stored.parse_cache import parse_node
from tessarr.dtypes.parse import from_numpy
from tessarr.errors import UnsupportedOperationError
from tessarr.metadata import formats
from tessarr.metadata.array import ArrayMetadata

if TYPE_CHECKING:
    from tessarr.core.array import Array

_NO_EFFECT = [
    "synchronizer",
    "chunk_store",
    "cache_metadata",
    "cache_attrs",
    "read_only",
    "meta_array",
    "mode",
    "storage_options",
    "use_consolidated",
    "normalize_keys",
    "partial_decompress",
]


def view(array: Array, changes: Mapping[str, Any], read_only: bool | None) -> Array:
    """Return `array` with some members of its v2 document changed, in memory only.

    Raises `UnsupportedOperationError` for v3, whose codecs depend on the data type, and `MetadataValidationError` for invalid
    metadata. Whether stored chunks match the metadata is checked only when they are read.
    """
    import numpy as np

    given = {name: value for name, value in changes.items() if value is not None}
    metadata = array._metadata
    if given and metadata.zarr_format != 2:
        hint = "Read the values and use NumPy's view"
        raise UnsupportedOperationError("only v2 arrays have views", path=array.name, hint=hint)
    if "dtype" in given:
        given["dtype"] = from_numpy(np.dtype(given["dtype"])).to_v2()
    for name in given.keys() & {"shape", "chunks"}:
        given[name] = [given[name]] if isinstance(given[name], int) else list(given[name])
    if given:
        documents = metadata.documents()
        documents[".zarray"] = {**documents[".zarray"], **given}
        found = parse_node(2, documents)
        assert isinstance(found, ArrayMetadata)
        metadata = found
    closed = array._read_only if read_only is None else read_only
    made = type(array)._make(array._store, array.path, metadata, array._options, read_only=closed, order=array.order)
    made.is_view = True
    return made


def set_fill_value(array: Array, value: object) -> None:
    """Replace the stored fill value, as which elements never written are read. Raises `ReadOnlyError`."""
    from tessarr.core.asynchronous.sans_io import run_steps
    from tessarr.core.creation.metadata import fill_from
    from tessarr.core.stored import metadata_io

    array._require_writable()
    state = array._state
    metadata = array._metadata.with_(fill_value=fill_from(array._metadata.data_type, value, array.zarr_format))
    document = metadata.documents()[formats.KEYS[metadata.zarr_format].array]
    run_steps(array._require_current_steps())
    metadata_io.change_document(array._store, array.path, metadata, {"fill_value": document["fill_value"]})
    run_steps(array._adopt_steps(metadata, state))


_KNOWN = frozenset(
    "shape dtype data chunks chunk_shape shards filters compressor compressors serializer codecs compression "  # noqa: SIM905
    "compression_opts object_codec fill_value order overwrite write_data attributes chunk_key_encoding dimension_names "
    "dimension_separator write_empty_chunks read_missing_chunks storage_transformers zarr_version".split()
)


def check_keywords(given: Mapping[str, object]) -> None:
    """Raise `TypeError` for a keyword that `create` does not have, also where nothing is created."""
    if given and (unknown := given.keys() - _KNOWN - {*_NO_EFFECT}):
        raise TypeError(f"create() got an unexpected keyword argument {', '.join(map(repr, sorted(unknown)))}")


def creation_arguments(zarr_format: int, given: Mapping[str, object]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split the keywords of `create` into keywords of `new_array_metadata` and runtime options.

    Raises `TypeError` for an unknown keyword.
    """
    rest = {name: value for name, value in given.items() if name not in _NO_EFFECT}
    runtime: dict[str, object] = {
        name: rest.pop(name) for name in ("write_empty_chunks", "read_missing_chunks") if name in rest
    }
    chunks = rest.pop("chunk_shape", None)
    legacy_chunks = rest.pop("chunks", None)
    chunks = chunks if chunks is not None else legacy_chunks
    chunks = "auto" if chunks is None or chunks is True else chunks
    separator = rest.pop("dimension_separator", None)
    encoding = rest.pop("chunk_key_encoding", None)
    arguments: dict[str, object] = {
        "chunks": chunks,
        "chunk_key_encoding": encoding if encoding is not None else separator,
        "compressors": _compressors(rest),
        "codecs": rest.pop("codecs", None),
        "filters": rest.pop("filters", "auto"),
        "fill_value": rest.pop("fill_value", DEFAULT),
        "dtype": rest.pop("dtype", None),
    }
    if arguments["fill_value"] is None and zarr_format == 3:
        arguments["fill_value"] = DEFAULT
    for name in (
        "shards",
        "serializer",
        "order",
        "attributes",
        "dimension_names",
        "object_codec",
        "storage_transformers",
    ):
        if name in rest:
            arguments[name] = rest.pop(name)
    if rest:
        raise TypeError(f"create() got an unexpected keyword argument {', '.join(map(repr, sorted(rest)))}")
    return arguments, runtime


def _compressors(rest: dict[str, object]) -> object:
    """Merge ``compressors``, ``compressor``, and v1's ``compression`` with ``compression_opts`` into one value."""
    given = rest.pop("compressors", "auto")
    single = rest.pop("compressor", "auto")
    compression = rest.pop("compression", "auto")
    options = rest.pop("compression_opts", None)
    if compression is None:  # as in h5py, and unlike a compressor that is not named
        single = None if isinstance(single, str) and single in ("auto", "default") else single
    elif compression != "auto":
        from tessarr.metadata.field import Document
        from tessarr.metadata.v1 import compressor_from_v1

        doc = Document({"compression": compression, "compression_opts": options}, "compression", "create")
        single = compressor_from_v1(doc)
        doc.finish()
    if isinstance(given, str) and given == "auto":
        given = "auto" if isinstance(single, str) and single in ("auto", "default") else single
    return given
