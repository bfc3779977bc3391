"""Plan the nodes that a source tree becomes in a store.

Everything is decided before anything is written: names, data types, chunks, codecs and fill values of every node are
valid for the requested format, or `plan_tree` raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, cast

import numpy as np

from tessarr.codecs.base import ChunkSpec
from tessarr.codecs.parse import CodecLike, CodecsLike, NumcodecsCodec, codec_from
from tessarr.common.counted import counted
from tessarr.core.array import Array
from tessarr.core.creation.array_config import DEFAULT
from tessarr.core.creation.metadata import new_array_metadata
from tessarr.core.group import Group
from tessarr.dtypes.parse import from_numpy
from tessarr.errors import BaseZarrError, MetadataValidationError, NodeNameError, Problem, TessarrError
from tessarr.grids.base import ChunkGrid
from tessarr.grids.guess import ChunksLike, normalize_chunks
from tessarr.metadata.array import ArrayMetadata
from tessarr.metadata.group import GroupMetadata
from tessarr.stores.path import check_node_name
from tessarr.tools.sources.attributes import cf_fill_attribute
from tessarr.tools.sources.base import UNSET, Source, SourceArray, SourceGroup
from tessarr.types import JSONObject, Shape, ZarrFormat

if TYPE_CHECKING:
    from tessarr.metadata.n5 import AxisOrder

ChunksChoice: TypeAlias = "str | int | Sequence[int | Sequence[int]] | Mapping[str, int | Sequence[int]] | None"
"""Chunks or shards for many arrays: "keep", "auto", a size ("8MB"), one length along every axis, lengths for the arrays of that
many dimensions, or lengths by dimension name; -1 is a whole axis, a list the length of each chunk along an axis. ``None``: no
shards."""

_SMALL_CHUNK, _FEW_CHUNKS = 64 << 10, 16
"""Smaller chunks of a source are not kept, unless there are only a few of them: each would be one file."""
_DIMENSIONS = "_ARRAY_DIMENSIONS"


@dataclass(slots=True, kw_only=True)
class Choices:
    """Hold a user's choices for all arrays; "keep" is as in the source where the format can express it, else
    automatic.
    """

    zarr_format: ZarrFormat | None = 3
    """``None``: the format of each node of a Zarr source, 3 for other sources."""
    chunks: ChunksChoice = "keep"
    shards: ChunksChoice = "keep"
    filters: CodecsLike = "keep"
    compressors: CodecsLike = "keep"
    codecs: Sequence[CodecLike] | None = None
    """The whole chain of a v3 array, or of its inner chunks where there are shards."""
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    rename: Mapping[str, str] = field(default_factory=dict)
    plain: bool = False
    """Keep no layout of chunks that other implementations may lack: keys have their default encoding."""
    keep_names: bool = False
    """Keep every name that the format allows, of v2 also one that Zarr v3 has not."""
    axis_order: AxisOrder | None = None
    """The axis order of the N5 container that is written; ``None``: Zarr is written."""

    @property
    def decided(self) -> bool:
        """Whether the choices include requests that some arrays may not be able to satisfy."""
        kept = (self.chunks, self.shards, self.filters, self.compressors)
        return self.codecs is not None or not all(choice is None or _is_keep(choice) for choice in kept)


@dataclass(slots=True)
class Planned:
    """Describe one node that is to be written."""

    path: str
    metadata: ArrayMetadata | GroupMetadata
    source: SourceArray | SourceGroup

    def to_json(self) -> JSONObject:
        """Return the node as a JSON object."""
        if not isinstance(self.metadata, ArrayMetadata) or not isinstance(self.source, SourceArray):
            return {"path": f"/{self.path}", "kind": "group"}
        document: dict[str, Any] = dict(self.metadata.to_dict())
        stored = self.metadata.chunk_grid.chunk_shape
        codecs = document.get("codecs", [document.get("compressor")])
        sharded = document.get("codecs", [{}])[0].get("name") == "sharding_indexed"
        inner = document["codecs"][0]["configuration"]["chunk_shape"] if sharded else None
        return {
            "path": f"/{self.path}",
            "kind": "array",
            "shape": list(self.metadata.shape),
            "dimension_names": None if self.metadata.dimension_names is None else list(self.metadata.dimension_names),
            "data_type": document.get("data_type", document.get("dtype")),
            "chunks": inner if sharded else None if stored is None else list(stored),
            "shards": list(stored) if sharded and stored is not None else None,
            "codecs": codecs,
            "nbytes": self.source.nbytes,
        }


@dataclass(slots=True)
class TreePlan:
    """List all nodes that are to be written, parents before children, with notices for the user."""

    nodes: list[Planned]
    notices: list[str]

    @property
    def arrays(self) -> list[Planned]:
        """The arrays."""
        return [node for node in self.nodes if isinstance(node.source, SourceArray)]

    @property
    def nbytes(self) -> int:
        """Bytes of all values, estimated for elements of varying size."""
        return sum(node.source.nbytes for node in self.nodes if isinstance(node.source, SourceArray))


# -- deciding ------------------------------------------------------------------------------------------------------------


def format_of(source: Source, zarr_format: int | str) -> ZarrFormat:
    """Return the format to convert to; "keep" is that of a Zarr source, else 3."""
    if zarr_format not in (1, 2, 3, "keep"):
        raise ValueError(f"zarr_format must be 1, 2, 3 or 'keep', got {zarr_format!r}")
    node = getattr(source, "node", None)
    kept = node.zarr_format if isinstance(node, Array | Group) else 3
    return cast("ZarrFormat", kept if zarr_format == "keep" else zarr_format)


def plan_tree(source: Source, choices: Choices) -> TreePlan:
    """Plan what writing `source` with these choices will write.

    Raises `BaseZarrError` listing every array that the format cannot hold, or when a choice fits no array.
    """
    _check_lengths("chunks", choices.chunks)
    _check_lengths("shards", choices.shards)
    kept = _selected(source, choices)
    if choices.zarr_format == 1 and not (len(kept) == 1 and isinstance(kept[0], SourceArray)):
        raise BaseZarrError("Zarr v1 holds one array and no groups", got=f"{len(kept)} nodes", hint="Convert one array")
    lost = [(path, why) for path, why in source.unsupported if _wanted(path, choices)]
    notices = list(source.notices)
    planned: list[Planned] = []
    names: dict[str, str] = {"": ""}
    for node in kept:
        number: ZarrFormat = choices.zarr_format or (
            node.keep.get("zarr_format", 3) if isinstance(node, SourceArray) else format_of(source, "keep")
        )
        path = _path(node.path, number, names, choices, notices)
        if isinstance(node, SourceGroup):
            planned.append(Planned(path, GroupMetadata(zarr_format=number, attributes=dict(node.attributes)), node))
            continue
        try:
            planned.append(Planned(path, _array_metadata(node, number, choices, notices), node))
        except (TessarrError, TypeError) as error:
            if choices.decided or len(kept) == 1:
                if isinstance(error, TessarrError):
                    error.at(path=f"/{path}")
                raise
            lost.append((path, str(error)))
    _check_choices(planned, choices)
    if lost:
        listed = "".join(f"\n  - /{path.lstrip('/')}: {why}" for path, why in lost)
        what = f"Zarr v{choices.zarr_format or 3}" if choices.axis_order is None else "N5"
        raise BaseZarrError(
            f"{len(lost)} {'array has' if len(lost) == 1 else 'arrays have'} no form in {what}:{listed}\n"
            "Leave them out with exclude (--exclude)"
        )
    if not planned:
        raise BaseZarrError("nothing is left to convert", hint="See the include and exclude patterns")
    return TreePlan(planned, notices)


def _wanted(path: str, choices: Choices) -> bool:
    """Return whether the patterns select a node; a pattern that matches a group matches all below it."""
    parts = path.strip("/").split("/")
    lines = ["/".join(parts[: depth + 1]) for depth in range(len(parts))]

    def matched(patterns: Sequence[str]) -> bool:
        return any(fnmatchcase(line, pattern.strip("/")) for line in lines for pattern in patterns)

    return (not choices.include or matched(choices.include)) and not matched(choices.exclude)


def _selected(source: Source, choices: Choices) -> list[SourceArray | SourceGroup]:
    """Return the nodes that the patterns select, and the groups above them."""
    if not choices.include and not choices.exclude:
        return list(source.nodes)
    wanted = [node.path for node in source.nodes if node.path and _wanted(node.path, choices)]
    above = {"/".join(path.split("/")[:depth]) for path in wanted for depth in range(path.count("/") + 1)}
    return [node for node in source.nodes if node.path in above or node.path in wanted]


def _path(path: str, number: ZarrFormat, names: dict[str, str], choices: Choices, notices: list[str]) -> str:
    """Choose the path of a node in the target: renamed as requested, or where the format does not allow its name."""
    if path in names:
        return names[path]
    parent, _, name = path.rpartition("/")
    if parent not in names:
        _path(parent, number, names, choices, notices)
    new = choices.rename.get(path, choices.rename.get(name, name))
    try:
        if not choices.keep_names:
            if new.startswith("__"):
                raise NodeNameError(
                    f"node name {new!r} is not allowed: names that begin with '__' are reserved (Zarr v3)"
                )
            check_node_name(new, 3)  # so that v2 data can become v3 data
        check_node_name(new, number)
    except NodeNameError as error:
        better = new.strip("_.") or "unnamed"
        notices.append(f"/{path}: stored as {better!r}: {error.what}")
        new = better
    whole = f"{names[parent]}/{new}".lstrip("/")
    if whole in names.values():
        raise BaseZarrError(
            "two nodes would have the same name", path=f"/{whole}", hint="Choose another name with rename (--rename)"
        )
    names[path] = whole
    return whole


def _array_metadata(node: SourceArray, number: ZarrFormat, choices: Choices, notices: list[str]) -> ArrayMetadata:
    attributes = dict(node.attributes)
    if node.cf_fill is not None:
        spelled = cf_fill_attribute(node.cf_fill, number)
        attributes |= {} if spelled is None else {"_FillValue": spelled}
    if node.dimension_names is not None:
        attributes.pop(_DIMENSIONS, None)
        if number != 3:  # also [] of an array without dimensions, which xarray requires
            attributes[_DIMENSIONS] = [name or f"dim_{axis}" for axis, name in enumerate(node.dimension_names)]
            if None in node.dimension_names:
                notices.append(
                    f"/{node.path}: dimensions without a name are called {attributes[_DIMENSIONS]} in v{number}"
                )
    fill = node.fill_value
    if fill is UNSET:
        # v2 software interprets a fill value as "missing": an array without one needs null, not 0.
        fill = DEFAULT if number == 3 else None
    chunks = _chunks(node, choices)
    arguments: dict[str, object] = {
        "shape": node.shape,
        "dtype": node.dtype,
        "zarr_format": number,
        "chunks": chunks,
        "shards": _shards(node, choices, chunks, number),
        "fill_value": fill,
        "attributes": attributes,
        "dimension_names": node.dimension_names if number == 3 else None,
    }
    if choices.axis_order is not None:
        return _dataset(node, attributes, choices.axis_order, choices, notices)
    given = {
        name: getattr(choices, name) for name in ("filters", "compressors") if not _is_keep(getattr(choices, name))
    }
    if number != 3:
        given = {name: _v2_words(value, node) for name, value in given.items()}
    if choices.codecs is not None:
        return _valid(**arguments, codecs=choices.codecs)
    try:
        kept = _source_codecs(node, number)
        if choices.plain:
            kept.pop("chunk_key_encoding", None)
        return _valid(**arguments, **{**kept, **given})
    except (TessarrError, TypeError, KeyError, NotImplementedError):
        if not node.keep:
            raise
        made = _valid(**arguments, **given)
        notices.append(f"/{node.path}: Zarr v{number} cannot express the codecs of the source; automatic ones are used")
        return made


def _dataset(
    node: SourceArray, attributes: Mapping[str, object], order: AxisOrder, choices: Choices, notices: list[str]
) -> ArrayMetadata:
    """Make the metadata of an N5 dataset, with the first compressor that N5 has, else zstd."""
    from tessarr.core.creation.n5 import dataset_arguments
    from tessarr.metadata import n5

    asked, data_type = _chunks(node, choices), from_numpy(node.dtype)
    grid = (
        asked if asked is None or isinstance(asked, ChunkGrid) else normalize_chunks(asked, node.shape, node.itemsize)
    )
    chunks = (None if grid is None else grid.chunk_shape) or _automatic(node)
    given = node.keep.get("compressors", ()) if _is_keep(choices.compressors) else choices.compressors
    given = given if isinstance(given, list | tuple) else [] if given is None else [given]
    codecs = [codec_from(one) for one in given if not (isinstance(one, str) and one == "auto")]
    known = [codec for codec in codecs if n5.compression(codec.to_json()) is not None]
    if len(known) < len(codecs):
        notices.append(
            f"/{node.path}: N5 has no {', '.join(c.name for c in codecs if c not in known)}, which is left out"
        )
    compressor = known[0] if known else None if not codecs and given == [] and node.keep else codec_from("zstd")
    if data_type.name == "bytes":
        chunks = (1,) * len(chunks)
    if node.fill_value is not UNSET and node.fill_value != data_type.default_fill():
        notices.append(
            f"/{node.path}: the fill value {node.fill_value} is not kept: that of N5 is {n5.fill(data_type.name)!r}"
        )
    metadata = _valid(
        shape=node.shape,
        dtype=data_type,
        chunks=chunks,
        attributes=attributes,
        dimension_names=node.dimension_names,
        zarr_format=3,
        **dataset_arguments(chunks, data_type, compressor, order),
    )
    n5.to_n5(metadata.to_dict(), order, {})
    return metadata


def _valid(**arguments: Any) -> ArrayMetadata:
    """Make metadata that the format can express: v1 cannot express all valid metadata."""
    metadata = new_array_metadata(**arguments)
    metadata.documents()
    return metadata


def _is_keep(value: object) -> bool:
    return isinstance(value, str) and value == "keep"


def _source_codecs(node: SourceArray, number: ZarrFormat) -> dict[str, Any]:
    """Make codec arguments as in a Zarr source."""
    keep = node.keep
    if not keep:
        return {}
    origin = keep["zarr_format"]
    if number == 3 and origin == 3:
        return {
            "filters": list(keep["filters"]) or None,
            "serializer": keep["serializer"],
            "compressors": list(keep["compressors"]) or None,
            "chunk_key_encoding": keep["chunk_key_encoding"],
        }
    if number != 3 and origin != 3:
        encoding = {"chunk_key_encoding": keep["chunk_key_encoding"]} if number == origin else {}
        filters = list(keep["v2_filters"] or ()) or None
        return {"filters": filters, "compressors": keep["v2_compressor"], "order": keep["order"], **encoding}
    if number == 3:
        from tessarr.codecs.numcodecs.table import OBJECT_CODECS

        filters = [config for config in keep["filters"] if config.get("id") not in OBJECT_CODECS]
        return {"filters": filters or None, "compressors": list(keep["compressors"]) or None}
    # The order of axes within chunks is only layout, which need not be kept.
    filters = [codec for codec in keep["filters"] if codec.name != "transpose"]
    return {"filters": _v2_words(filters, node), "compressors": _v2_words(keep["compressors"], node)}


def _v2_words(codecs: Any, node: SourceArray) -> Sequence[JSONObject] | str | None:
    """Convert codecs to v1 and v2. Raises `MetadataValidationError` for a codec that v2 lacks."""
    if codecs is None or isinstance(codecs, str):
        return codecs
    from tessarr.model.conversion.downgrade import _config

    data_type = from_numpy(node.dtype)
    spec = ChunkSpec((1,), data_type, data_type.default_fill())  # for codec options that depend on the type of elements
    words: list[JSONObject] = []
    problems: list[Problem] = []
    for codec in codecs if isinstance(codecs, list | tuple) else [codecs]:
        if isinstance(codec, Mapping) and "id" in codec:
            words.append(dict(codec))
        else:
            numcodec = isinstance(codec, NumcodecsCodec)
            words += [dict(codec.get_config())] if numcodec else _config(codec_from(codec).fit(spec), problems)
    if problems:
        raise MetadataValidationError("Zarr v2 cannot express these codecs", problems)
    return words or None


def _check_lengths(what: str, layout: ChunksChoice) -> None:
    given = layout.values() if isinstance(layout, Mapping) else [layout] if _is_length(layout) else layout
    if given is None or isinstance(given, str):
        return
    for size in given if isinstance(given, Iterable) else [given]:
        several = size if isinstance(size, Sequence) and not isinstance(size, str) else [size]
        lengths, least = [one for one in several if _is_length(one)], -1 if several is not size else 1
        if not lengths or len(lengths) < len(several):
            hint = "Give a number, or a list of the lengths of all chunks along an axis"
            raise BaseZarrError(f"{what}: a length is a number", got=layout, hint=hint)
        if any(one == 0 or one < least for one in lengths):
            raise BaseZarrError(f"{what}: lengths are positive, or -1 for a whole axis", got=layout)


def _is_length(value: object) -> TypeGuard[int]:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _chunks(node: SourceArray, choices: Choices) -> ChunksLike:
    if _in_one_chunk(node, choices):
        return tuple(max(1, n) for n in node.shape)
    layout = choices.chunks
    if isinstance(layout, Mapping) and not _named(layout, node):
        layout = "keep"
    if isinstance(layout, int | np.integer):
        layout = (int(layout),) * len(node.shape)
    if isinstance(layout, Sequence) and not isinstance(layout, str) and len(layout) != len(node.shape):
        layout = "keep"
    if layout is None or _is_keep(layout):
        return _source_chunks(node)
    if isinstance(layout, str):
        return layout
    if isinstance(layout, Mapping):
        kept = _source_chunks(node)
        base = kept if isinstance(kept, tuple) else _automatic(node)
        sizes = [layout.get(str(name), size) for name, size in zip(node.dimension_names or (), base, strict=True)]
    else:
        sizes = list(layout)
    sizes = [length if size == -1 else size for size, length in zip(sizes, node.shape, strict=True)]
    lengths = [size for size in sizes if _is_length(size)]
    if len(lengths) < len(sizes):
        return [list(size) if isinstance(size, Sequence) else size for size in sizes]
    if choices.shards in ("keep", None):
        lengths = [min(size, length) if size > 0 else size for size, length in zip(lengths, node.shape, strict=True)]
    return tuple(max(1, size) if size >= 0 else size for size in lengths)


def _in_one_chunk(node: SourceArray, choices: Choices) -> bool:
    """Return whether a coordinate is one chunk, however others are cut; chunks of Zarr stay unless others are requested."""
    kept = bool(node.keep) and _is_keep(choices.chunks) and _is_keep(choices.shards)
    return node.is_coordinate and not kept


def _automatic(node: SourceArray) -> Shape:
    grid = normalize_chunks("auto", node.shape, node.itemsize)
    assert grid.chunk_shape is not None
    return grid.chunk_shape


def _source_chunks(node: SourceArray) -> Shape | str:
    if node.keep:
        kept: Shape | str = node.keep["chunks"]
        return kept
    if node.chunks is None:
        return "auto"
    nbytes, count = node.itemsize, 1
    for size, length in zip(node.chunks, node.shape, strict=True):
        nbytes *= max(1, size)
        count *= -(-length // max(1, size))
    if nbytes < _SMALL_CHUNK and count > _FEW_CHUNKS:
        return "auto"
    return tuple(max(1, min(size, length)) for size, length in zip(node.chunks, node.shape, strict=True))


def _shards(node: SourceArray, choices: Choices, chunks: ChunksLike, number: ZarrFormat) -> ChunksLike:
    layout = None if _in_one_chunk(node, choices) else choices.shards
    if isinstance(layout, int | np.integer):
        layout = (int(layout),) * len(node.shape)
    if _is_keep(layout):
        kept = node.keep.get("shards") if number == 3 else None
        if kept is None or not isinstance(chunks, tuple):
            return None
        return tuple(-(-size // chunk) * chunk for size, chunk in zip(kept, chunks, strict=True))
    if layout is None or isinstance(layout, str):
        return layout
    if isinstance(layout, Mapping):
        if not _named(layout, node):
            return None
        base = chunks if isinstance(chunks, tuple) else _automatic(node)
        layout = [layout.get(str(name), size) for name, size in zip(node.dimension_names or (), base, strict=True)]
    return tuple(layout) if len(layout) == len(node.shape) else None


def _named(layout: Mapping[str, object], node: SourceArray) -> bool:
    return any(name in layout for name in node.dimension_names or ())


def _check_choices(planned: list[Planned], choices: Choices) -> None:
    """Refuse a chunk or shard shape that fits no array: it is a mistake."""
    arrays = [node.source for node in planned if isinstance(node.source, SourceArray)]
    known = {name for array in arrays for name in array.dimension_names or () if name}
    for what, layout in (("chunks", choices.chunks), ("shards", choices.shards)):
        if isinstance(layout, Mapping):
            unknown = sorted(set(layout) - known)
            if unknown:
                raise BaseZarrError(
                    f"{what}: no dimension is named {', '.join(unknown)}", expected=", ".join(sorted(known)) or None
                )
        elif (
            isinstance(layout, Sequence)
            and not isinstance(layout, str)
            and not any(len(array.shape) == len(layout) for array in arrays)
        ):
            raise BaseZarrError(f"{what}: no array has {counted(len(layout), 'dimension')}", got=str(tuple(layout)))
