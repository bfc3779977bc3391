"""The metadata of an array, in one model for all formats.

The vocabulary is that of Zarr v3: data type, chunk grid, chunk key encoding, codecs. Members of older formats with other
terms (order, compressor, filters, compression) are kept as well, so that a document can be written back without changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from tessarr.codecs.base import Codec
from tessarr.common.warn import Diagnostic, report, warn
from tessarr.dtypes.base import DataType, Scalar
from tessarr.errors import ZarrRuntimeWarning
from tessarr.grids.base import ChunkGrid
from tessarr.keys.base import ChunkKeyEncoding
from tessarr.metadata.serialize import array_documents
from tessarr.types import JSON, AnyDType, JSONObject, Shape, ZarrFormat

DIMENSIONS = "_ARRAY_DIMENSIONS"
"""The attribute that holds the dimension names of v1 and v2 arrays."""
PENDING = "tessarr_append"
"""The member of v3 documents with what `ArrayMetadata.pending` holds."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ArrayMetadata:
    """The metadata of one array. Immutable; equal when the documents it would be written as are equal."""

    zarr_format: ZarrFormat
    shape: Shape
    data_type: DataType
    chunk_grid: ChunkGrid
    chunk_key_encoding: ChunkKeyEncoding
    fill_value: Scalar | None
    """0-d array with the exact bits; ``None`` only in v1 and v2 (null: missing chunks are undefined; tessarr returns
    zeros).
    """
    codecs: tuple[Codec, ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    dimension_names: tuple[str | None, ...] | None = None
    """v3: as stated; v2: from the attribute ``_ARRAY_DIMENSIONS``."""
    storage_transformers: tuple[JSONObject, ...] = ()
    """As in the document; binding the array leaves out those that are unknown and may be ignored."""
    extra: dict[str, JSON] = field(default_factory=dict)
    """Unknown document members, which a rewrite must keep."""
    pending: JSON = None
    """v3: the stored member of `tessarr.metadata.reservations`. Never copied to other arrays, and never dumped."""
    order: str = "C"
    """v1, v2: the layout of elements in a chunk. In v3 always "C" (a transpose codec says otherwise)."""
    compressor: JSON = None
    """v1, v2: the compressor's configuration as in a v2 document."""
    filters: tuple[JSONObject, ...] | None = None
    """v2: the filters as in the document."""
    not_writable: str | None = None
    """Why this array can be read and must not be written; ``None`` when it is writable."""
    is_corrected: bool = False
    """Whether the stored document states no valid chunk shape, so that the corrected one is stored before chunks are."""

    def __post_init__(self) -> None:
        """Normalize the fill value to the one the document can state: v1 and v2 have one NaN, without sign and payload.

        Otherwise chunks of the given NaN would not be stored, and would be read as another NaN.
        """
        fill = self.fill_value
        if self.zarr_format == 3 or fill is None or fill.dtype.kind not in "fcV":
            return
        stated = self.data_type.parse_fill(self.data_type.dump_fill(fill, self.zarr_format), self.zarr_format)
        if stated.tobytes() != fill.tobytes():
            message = (
                f"Zarr v{self.zarr_format} cannot state the payload or sign of a NaN; the fill value is a plain NaN"
            )
            warn(message, ZarrRuntimeWarning)
            object.__setattr__(self, "fill_value", stated)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def dtype(self) -> AnyDType:
        """NumPy dtype of elements in memory."""
        return self.data_type.dtype

    @property
    def chunks(self) -> Shape:
        """Shape of every stored chunk (a shard, where there are shards).

        Raises `NotImplementedError` when chunks differ in shape.
        """
        shape = self.chunk_grid.chunk_shape
        if shape is None:
            message = "only regular chunk grids have one chunk shape; see read_chunk_sizes and write_chunk_sizes"
            raise NotImplementedError(message)
        return shape

    @property
    def dimension_separator(self) -> str | None:
        """The separator in chunk keys."""
        return getattr(self.chunk_key_encoding, "separator", None)

    def documents(self) -> dict[str, JSONObject]:
        """Return the documents of this array: key relative to the node → JSON."""
        return array_documents(self)

    def to_dict(self) -> JSONObject:
        """Return the metadata as one document, attributes included (stored v1 and v2 metadata has a separate document
        for them).
        """
        first, *rest = self.documents().values()
        attributes = first.get("attributes", {}) if self.zarr_format == 3 else rest[0] if rest else {}
        return first | {
            "attributes": deepcopy(attributes)
        }  # of an immutable object: who changes the document has a copy

    def with_(self, **changes: Any) -> ArrayMetadata:
        """Return a copy with some fields replaced."""
        return replace(self, **changes)

    def with_attributes(self, attributes: dict[str, object]) -> ArrayMetadata:
        """Return a copy with other user attributes (in v2, also the dimension names in them; malformed names cause a
        warning).
        """
        # Quicker than `replace`, which would check the fill value again; every member of a large group passes here.
        changed = object.__new__(type(self))
        fields = changed.__dict__
        fields.update(self.__dict__)
        fields["attributes"] = attributes
        if self.zarr_format != 3:
            report(map(Diagnostic, misstated_dimensions(attributes, self.ndim)))
            fields["dimension_names"] = stated_dimensions(attributes, self.ndim)
        return changed

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArrayMetadata) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]


def stated_dimensions(attributes: Mapping[str, Any], ndim: int) -> tuple[str | None, ...] | None:
    """Read dimension names from ``_ARRAY_DIMENSIONS`` (a practice of xarray, recommended by OGC); ``None`` if
    malformed.
    """
    names = attributes.get(DIMENSIONS)
    return None if names is None or misstated_dimensions(attributes, ndim) else tuple(names)


def misstated_dimensions(attributes: Mapping[str, object], ndim: int) -> tuple[str, ...]:
    """Describe a malformed ``_ARRAY_DIMENSIONS``, which is ignored; return () if well-formed or missing."""
    names = attributes.get(DIMENSIONS)
    if names is None or (
        isinstance(names, list | tuple) and len(names) == ndim and all(isinstance(name, str) for name in names)
    ):
        return ()
    return (f"attribute {DIMENSIONS} is ignored: expected {ndim} strings, got {names!r}",)
