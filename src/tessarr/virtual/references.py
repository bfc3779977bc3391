"""Write arrays as references to the chunks that are stored elsewhere: the only writer of manifests and of Kerchunk files.

`tessarr.virtual.parquet_references` has the layout of Kerchunk's Parquet form.
"""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Mapping
from functools import partial
from math import prod

from tessarr.common import strict_json
from tessarr.core.array import Array
from tessarr.core.group import Group
from tessarr.core.locate import locate
from tessarr.core.stored.metadata_io import create_node
from tessarr.errors import BaseZarrError, UnsupportedOperationError
from tessarr.keys.v2 import V2KeyEncoding
from tessarr.metadata import serialize
from tessarr.metadata.array import ArrayMetadata
from tessarr.metadata.group import GroupMetadata
from tessarr.metadata.v3 import new_transformers
from tessarr.model.conversion.downgrade import array_to_v2, group_to_v2
from tessarr.stores.base import Store
from tessarr.stores.buffers import byte_view
from tessarr.stores.path import ancestors, join, path_of_file_url, prefix_of
from tessarr.stores.transformed.manifest import MOST_NBYTES
from tessarr.stores.url import StoreLike
from tessarr.stores.virtual.branches import commits
from tessarr.stores.virtual.reference import Reference
from tessarr.types import JSON, Coords, JSONObject
from tessarr.virtual.located import LocatedChunks, located_chunks
from tessarr.virtual.parquet_references import Rows, write_parquet

_NAME = "manifest.json"
_TRANSFORMER: JSONObject = {"name": "chunk-manifest-json", "configuration": {"manifest": f"./{_NAME}"}}


@commits
def save_references(
    source: Array | Group | Mapping[str, Array | GroupMetadata],
    place: StoreLike,
    *,
    inline: Mapping[str, Array] | None = None,
    v2: Mapping[str, ArrayMetadata | GroupMetadata] | None = None,
    overwrite: bool = False,
    storage_options: Mapping[str, object] | None = None,
) -> int:
    """Write arrays without their chunks, which stay where they are. Returns the number of references.

    `source`: an array, a virtual one too; a group with all below; or path → array, or the description of a group. `inline`:
    path → arrays that are copied, such as coordinates. `place`: a path that ends in ``.json`` gets a Kerchunk file, with copied
    chunks in it; one in ``.parq`` or ``.parquet`` a directory in Kerchunk's Parquet form, always of format 2, without an array
    at the root; any other place arrays with the storage transformer ``chunk-manifest-json``, of format 3. `v2`: path →
    attributes and fill values of a Kerchunk file of format 2, which older readers need; without it, the file has format 3.
    References are absolute URLs.

    Raises `UnsupportedOperationError` where a chunk is not a range of a file with a URL, or the chunks of a virtual array are
    not stored chunks; `BaseZarrError` for an existing place unless `overwrite`; `MetadataValidationError` where format 2 has
    no such codecs; `MissingDependencyError` for Parquet without pyarrow.

    >>> import numpy as np, tempfile, tessarr
    >>> from tessarr import virtual
    >>> folder = tempfile.mkdtemp()
    >>> days = [tessarr.create_array(f"{folder}/{day}.zarr", data=np.full(3, day)) for day in (1, 2)]
    >>> virtual.save_references(virtual.stack(days), f"{folder}/all.zarr")
    2
    >>> options = {"manifest": {"allow": [folder]}}
    >>> tessarr.open_array(f"{folder}/all.zarr", mode="r", storage_options=options)[...].tolist()
    [[1, 1, 1], [2, 2, 2]]
    """
    groups, arrays = _nodes(source, inline or {})
    located = {path: located_chunks(array) for path, array in arrays.items()}
    name = os.fspath(place) if isinstance(place, str | os.PathLike) else ""
    if is_parquet(name):
        return _write_parquet(name, groups, located, inline or {}, v2 or {}, overwrite, storage_options)
    if is_kerchunk(name):
        return _write_kerchunk(name, groups, located, inline or {}, v2, overwrite, storage_options)
    store, at, _ = locate(place, None, None, storage_options)
    for path, group in groups.items():
        create_node(store, join(at, path), group, overwrite=overwrite and not path)
    count = 0
    for path, chunks in located.items():
        count += write_manifest(store, join(at, path), chunks, overwrite=overwrite and not groups)
    for path, array in (inline or {}).items():
        create_node(store, join(at, path), array._metadata)
        Array._opened(store, join(at, path), array._metadata, read_only=False, config=None)[...] = array[...]
    return count


def is_parquet(place: StoreLike) -> bool:
    """Whether references at `place` are written in Kerchunk's Parquet form."""
    return isinstance(place, str | os.PathLike) and os.fspath(place).rstrip("/").endswith((".parq", ".parquet"))


def is_kerchunk(place: StoreLike) -> bool:
    """Whether references at `place` are written as a Kerchunk file."""
    return isinstance(place, str | os.PathLike) and os.fspath(place).endswith(".json")


class _Object:
    """A JSON object that is written member by member, so that memory holds its text only."""

    def __init__(self) -> None:
        self._text = bytearray(b"{")
        self.count = 0

    def add(self, name: str, value: JSON) -> None:
        self._text += b",\n" if self.count else b"\n"
        self._text += strict_json.dumps(name) + b": " + strict_json.dumps(value, indent=None)
        self.count += 1

    @property
    def nbytes(self) -> int:
        return len(self._text)

    def dumps(self) -> bytes:
        return bytes(self._text + b"\n}")


def write_manifest(store: Store, path: str, chunks: LocatedChunks, *, overwrite: bool = False) -> int:
    """Create the array at `path` of `store`, whose chunks are where a manifest says. Returns the number of its entries.

    Raises `UnsupportedOperationError` for a manifest over 64 MiB, `ContainsArrayError` and `ContainsGroupError`.
    """
    entries = _Object()
    for coords, place in chunks:
        name = ".".join(map(str, coords)) or "0"
        entries.add(name, {"path": place.url, "offset": place.offset, "length": place.nbytes})
        if entries.nbytes >= MOST_NBYTES:
            raise UnsupportedOperationError(
                "the manifest is too large", store=store.url, path=f"/{path}", expected=f"at most {MOST_NBYTES} bytes",
                got=f"{entries.nbytes} after {entries.count} chunks", hint="Write a Kerchunk file, or larger chunks",
            )  # fmt: skip
    transformers = new_transformers([_TRANSFORMER])
    create_node(store, path, chunks.metadata.with_(storage_transformers=transformers), overwrite=overwrite)
    store.set(prefix_of(path) + _NAME, entries.dumps())
    return entries.count


def _write_kerchunk(
    place: str,
    groups: Mapping[str, GroupMetadata],
    arrays: Mapping[str, LocatedChunks],
    inline: Mapping[str, Array],
    v2: Mapping[str, ArrayMetadata | GroupMetadata] | None,
    overwrite: bool,
    storage_options: Mapping[str, object] | None,
) -> int:
    refs, count = _Object(), 0
    documents: dict[str, JSON] = {}
    for path, array in inline.items():
        documents |= _documents(path, array._metadata)
        for coords, key in array.stored_chunks():
            value = b64encode(byte_view(array._store.get(key) or b"")).decode()
            refs.add(prefix_of(path) + array._metadata.chunk_key_encoding.encode(coords), f"base64:{value}")
    for path, group in groups.items():
        documents |= _documents(path, group if v2 is None else group_to_v2(group).metadata)
    for path, chunks in arrays.items():
        metadata = chunks.metadata if v2 is None else _in_v2(chunks, v2.get(path))
        documents |= _documents(path, metadata)
        if v2 is not None:
            documents[f"{prefix_of(path)}.zarray"] = _as_kerchunk(str(documents[f"{prefix_of(path)}.zarray"]))
        encode = metadata.chunk_key_encoding.encode
        for coords, where in chunks:
            refs.add(prefix_of(path) + encode(coords), [_as_fsspec(where.url), where.offset, where.nbytes])
            count += 1
    for name, document in documents.items():
        refs.add(name, document)
    directory, _, name = place.rpartition("/")
    store, at, _ = locate(directory or ".", None, None, storage_options)
    key = join(at, name)
    if store.exists(key) and not overwrite:
        raise BaseZarrError("there is a file of references already", store=store.url, key=key, hint="overwrite=True")
    store.set(key, b'{"version": 1, "refs": ' + refs.dumps() + b"}")
    return count


def _write_parquet(
    place: str,
    groups: Mapping[str, GroupMetadata],
    arrays: Mapping[str, LocatedChunks],
    inline: Mapping[str, Array],
    v2: Mapping[str, ArrayMetadata | GroupMetadata],
    overwrite: bool,
    storage_options: Mapping[str, object] | None,
) -> int:
    documents: dict[str, JSON] = {}
    rows: dict[str, Rows] = {}
    for path, group in groups.items():
        documents |= _documents(path, group_to_v2(group).metadata)
    for path, array in inline.items():
        given = array._metadata if array.zarr_format == 2 else array_to_v2(array._metadata, rekey=True).metadata
        rows[path] = (
            given.with_(chunk_key_encoding=V2KeyEncoding(".")),
            partial(_copied, array, dict(array.stored_chunks())),
        )
    for path, chunks in arrays.items():
        rows[path] = _in_v2(chunks, v2.get(path)), partial(_referred, chunks)
    for path, (metadata, _) in rows.items():
        documents |= _documents(path, metadata)
        documents[f"{prefix_of(path)}.zarray"] = _as_kerchunk(str(documents[f"{prefix_of(path)}.zarray"]))
    store, at, _ = locate(place, None, None, storage_options)
    return write_parquet(store, at, documents, rows, overwrite=overwrite)


def _copied(array: Array, keys: Mapping[Coords, str], coords: Coords) -> bytes | None:
    value = array._store.get(keys[coords]) if coords in keys else None
    return None if value is None else bytes(byte_view(value))


def _referred(chunks: LocatedChunks, coords: Coords) -> Reference | None:
    found = chunks.find(coords)
    return None if found is None else Reference(_as_fsspec(found.url), found.offset, found.nbytes)


def _documents(path: str, metadata: ArrayMetadata | GroupMetadata) -> dict[str, JSON]:
    return {prefix_of(path) + name: data.decode() for name, data in serialize.dumps(metadata.documents()).items()}


def _as_kerchunk(document: str) -> str:
    """Make the compressor the last filter: VirtualiZarr reads no other form."""
    found: dict[str, JSON] = json.loads(document)
    filters = found["filters"]
    codecs = [*(filters if isinstance(filters, list) else []), found["compressor"]]
    return json.dumps({**found, "filters": [codec for codec in codecs if codec] or None, "compressor": None})


def _in_v2(chunks: LocatedChunks, stated: ArrayMetadata | GroupMetadata | None) -> ArrayMetadata:
    """Describe an array in format 2, where a fill value also means that the element is missing."""
    made: ArrayMetadata = array_to_v2(chunks.metadata, rekey=True).metadata.with_(chunk_key_encoding=V2KeyEncoding("."))
    if not isinstance(stated, ArrayMetadata):
        return made
    counts = (axis.nchunks for axis in made.chunk_grid.axes(made.shape))
    fill = stated.fill_value if sum(1 for _ in chunks) == prod(counts) else made.fill_value
    return made.with_(attributes=stated.attributes, fill_value=fill)


def _as_fsspec(url: str) -> str:
    """Return a URL as fsspec takes it, which decodes no URL: a local file as its path."""
    return path_of_file_url(url, windows=os.name == "nt") if url.startswith("file:") else url


def _nodes(
    source: Array | Group | Mapping[str, Array | GroupMetadata], inline: Mapping[str, Array]
) -> tuple[dict[str, GroupMetadata], dict[str, Array]]:
    """Return the groups, parents first, and the arrays, by path."""
    if isinstance(source, Array):
        return {}, {"": source}
    if isinstance(source, Group):
        members = dict(source.members(max_depth=None))
        arrays = {path: node for path, node in members.items() if isinstance(node, Array)}
        groups = {"": source, **{path: node for path, node in members.items() if isinstance(node, Group)}}
        found = {path: GroupMetadata(zarr_format=3, attributes=dict(node.attrs)) for path, node in groups.items()}
    else:
        nodes = {path.strip("/"): node for path, node in source.items()}
        arrays = {path: node for path, node in nodes.items() if isinstance(node, Array)}
        found = {path: node for path, node in nodes.items() if isinstance(node, GroupMetadata)}
        if "" not in arrays:
            found.setdefault("", GroupMetadata(zarr_format=3))
    for path in (*arrays, *inline):
        for above in ancestors(path):
            found.setdefault(above, GroupMetadata(zarr_format=3))
    return dict(sorted(found.items())), arrays
