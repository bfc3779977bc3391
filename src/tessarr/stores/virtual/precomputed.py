"""`PrecomputedStore`: a read-only store of Zarr v3 over a Neuroglancer precomputed volume.

The document is converted (`tessarr.metadata.precomputed`), once per store. Chunks, in files of their own or in shards
(`tessarr.stores.virtual.precomputed_shards`), keep their bytes, behind a header with their shape
(`tessarr.codecs.array_to_bytes.clipped`).

>>> from tessarr.stores.memory.store import MemoryStore
>>> info = (b'{"data_type": "uint8", "num_channels": 1, "type": "image", "scales": [{"key": "s", "size": [3, 2, 1],'
...     b' "voxel_offset": [10, 0, 0], "chunk_sizes": [[2, 2, 1]], "resolution": [8, 8, 40], "encoding": "raw"}]}')
>>> store = PrecomputedStore(MemoryStore({"info": info, "s/12-13_0-2_0-1": b"ab"}))
>>> sorted(store.list()), bytes(store.get("s/c/0/0/0/1"))[-2:]
(['s/c/0/0/0/1', 's/zarr.json', 'zarr.json'], b'ab')

Source: Neuroglancer, "Neuroglancer Precomputed Volume Format".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Self

from tessarr.codecs.array_to_bytes.block_codec import DEFAULT, header
from tessarr.common import strict_json
from tessarr.errors import MetadataValidationError, UnsupportedOperationError
from tessarr.keys.default import DefaultKeyEncoding
from tessarr.metadata import precomputed
from tessarr.metadata.n5 import AxisOrder
from tessarr.metadata.precomputed import XYZ, Scale, Volume
from tessarr.stores.base import Fetch, Listing, Version
from tessarr.stores.buffers import as_bytes, cut
from tessarr.stores.fetch import Fetched, version_of
from tessarr.stores.functions import children
from tessarr.stores.path import check_key, check_prefix, prefix_of
from tessarr.stores.protocols import WRITING, ConditionalDelete, ConditionalSet, Lock, fallback
from tessarr.stores.virtual.container import ContainerStore
from tessarr.stores.virtual.precomputed_shards import ShardedChunks
from tessarr.types import Buffer, ByteRange, Coords

_DOCUMENT = "zarr.json"
_KEYS = DefaultKeyEncoding()
_FILE = re.compile(r"(-?[0-9]+)-(-?[0-9]+)_(-?[0-9]+)-(-?[0-9]+)_(-?[0-9]+)-(-?[0-9]+)", re.ASCII)


class PrecomputedStore(ContainerStore):
    """The volume in `store` (a path, a URL, a mapping, a store).

    `axis_order` is ``"C"`` for arrays with the axes c, z, y, x, or ``"F"`` for x, y, z, c, as in Neuroglancer and TensorStore.
    """

    adapter = "neuroglancer-precomputed"

    def __init__(self, store: object, *, axis_order: AxisOrder = "C") -> None:
        super().__init__(store, axis_order=axis_order, read_only=True)

    def has_ability(self, ability: type) -> bool:
        """Whether the wrapped store has `ability`, other than those of writing."""
        return ability not in (*WRITING, ConditionalSet, ConditionalDelete, Lock) and super().has_ability(ability)

    def with_read_only(self, read_only: bool = True) -> Self:
        if not read_only:
            raise UnsupportedOperationError("precomputed volumes are read-only", store=self.url)
        return super().with_read_only()

    # -- documents -------------------------------------------------------------------------------------------------

    @cached_property
    def _volume(self) -> Volume | None:
        """The parsed document; ``None``: there is none."""
        data = self.store.get(precomputed.DOCUMENT)
        if data is None:
            return None
        try:
            found = strict_json.loads(data, key=precomputed.DOCUMENT)
            if not isinstance(found, dict):
                raise MetadataValidationError("a volume is a JSON object", got=type(found).__name__)
            return precomputed.parse(found)
        except MetadataValidationError as error:
            raise error.at(store=self.url, key=precomputed.DOCUMENT) from None

    @cached_property
    def _documents(self) -> dict[str, bytes]:
        """The documents of all nodes by their keys."""
        made = {} if self._volume is None else self._volume.documents(self.axis_order)
        return {
            prefix_of(path) + _DOCUMENT: json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
            for path, document in made.items()
        }

    @cached_property
    def _scales(self) -> dict[str, Scale]:
        return {} if self._volume is None else {scale.key: scale for scale in self._volume.scales}

    @cached_property
    def _sharded(self) -> dict[str, ShardedChunks]:
        """The chunks of each sharded scale by the scale's key."""
        return {key: ShardedChunks(self.store, scale) for key, scale in self._scales.items() if scale.sharding}

    # -- chunks ----------------------------------------------------------------------------------------------------

    def _find(self, key: str) -> tuple[Scale, XYZ] | None:
        """Return the scale and the coordinates along x, y and z of a chunk key; ``None`` for another key."""
        segments = key.rsplit("/", 5)
        scale = self._scales.get(segments[0])
        coords = None if scale is None else _KEYS.decode("/".join(segments[1:]), 4)
        if scale is None or coords is None:
            return None
        x, y, z, channel = coords[:: -1 if self.axis_order == "C" else 1]
        inside = channel == 0 and all(n < m for n, m in zip((x, y, z), scale.grid, strict=True))
        return (scale, (x, y, z)) if inside else None

    def _key(self, scale: Scale, coords: XYZ) -> str:
        every: Coords = (*coords, 0)
        return f"{scale.key}/{_KEYS.encode(every[:: -1 if self.axis_order == 'C' else 1])}"

    def _head(self, scale: Scale, coords: XYZ) -> bytes:
        assert self._volume is not None
        return header(DEFAULT, (self._volume.channels, *scale.block(coords)[::-1]))

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        found = self.fetch([Fetch(key, None if byte_range is None else (byte_range,))])[0]
        return None if found is None else found[0]

    def fetch(self, requests: Sequence[Fetch]) -> list[list[Buffer] | None]:
        """See `Store.fetch`: one `fetch` of the wrapped store requests all chunks, of a sharded scale three."""
        answers: list[list[Buffer] | None] = [None] * len(requests)
        files: list[tuple[int, Scale, XYZ]] = []
        sharded: dict[str, list[tuple[int, Scale, XYZ]]] = {}
        for number, (key, ranges) in enumerate(requests):
            check_key(key)
            document = self._documents.get(key)
            if document is not None:
                answers[number] = [cut(document, part) for part in (ranges if ranges is not None else (None,))]
            elif (found := self._find(key)) is not None:
                (sharded.setdefault(found[0].key, []) if found[0].sharding else files).append((number, *found))
        wanted = [Fetch(_file(scale, coords)) for _, scale, coords in files]
        for (number, scale, coords), body in zip(files, self.store.fetch(wanted) if wanted else (), strict=True):
            if body is not None:
                answers[number] = self._answer(requests[number], scale, coords, body[0], version_of(body))
        for key, chunks in sharded.items():
            bodies = self._sharded[key].fetch([coords for _, _, coords in chunks])
            for (number, scale, coords), place in zip(chunks, bodies, strict=True):
                if place is not None:
                    answers[number] = self._answer(requests[number], scale, coords, *place)
        return answers

    def _answer(self, request: Fetch, scale: Scale, coords: XYZ, body: Buffer, version: Version | None) -> Fetched:
        value = self._head(scale, coords) + as_bytes(body)
        ranges = request.ranges if request.ranges is not None else (None,)
        return Fetched([cut(value, part) for part in ranges], version, len(value))

    def exists(self, key: str) -> bool:
        return self.getsize(key) is not None

    def getsize(self, key: str) -> int | None:
        check_key(key)
        document, found = self._documents.get(key), self._find(key)
        if document is not None or found is None:
            return None if document is None else len(document)
        scale, coords = found
        if scale.sharding is None:
            nbytes = self.store.getsize(_file(scale, coords))
        else:
            (place,) = self._sharded[scale.key].locate([coords])
            nbytes = None if place is None else (place.range.stop or 0) - place.range.start
        return None if nbytes is None else len(self._head(scale, coords)) + nbytes

    @fallback
    def version(self, key: str) -> Version | None:
        """Return ``None``: the version of a chunk comes with its bytes."""
        return None

    # -- listing ---------------------------------------------------------------------------------------------------

    def list(self, prefix: str = "") -> Iterator[str]:
        check_prefix(prefix)
        yield from (key for key in self._documents if key.startswith(prefix))
        for scale in self._scales.values():
            below = f"{scale.key}/"
            if below.startswith(prefix) or prefix.startswith(below):
                yield from (key for key in self._chunk_keys(scale) if key.startswith(prefix))

    def list_dir(self, prefix: str) -> Listing:
        """See `Store.list_dir`: chunks are listed only below the ``c`` of a scale."""
        check_prefix(prefix)
        if any(prefix.startswith(f"{key}/c/") for key in self._scales):
            return children(self.list(prefix), prefix)
        found = children((key for key in self._documents if key.startswith(prefix)), prefix)
        if prefix[:-1] in self._scales:
            found.prefixes.append(f"{prefix}c/")
        return found

    def _chunk_keys(self, scale: Scale) -> Iterator[str]:
        """Yield the keys of the stored chunks of a scale."""
        if scale.sharding is not None:
            yield from (self._key(scale, coords) for coords in self._sharded[scale.key].every())
            return
        for file in self.store.list_dir(prefix_of(scale.key)).keys:
            coords = _coords(scale, file)
            if coords is not None:
                yield self._key(scale, coords)


def _file(scale: Scale, coords: XYZ) -> str:
    """Return the key of the file of a chunk.

    >>> _file(Scale("s", (9, 9, 9), (5, 0, -7), (4, 4, 4), (), (1, 1, 1), None), (2, 0, 1))
    's/13-14_0-4_-3-1'
    """
    starts = [at + i * m for at, i, m in zip(scale.offset, coords, scale.chunk, strict=True)]
    ends = (start + n for start, n in zip(starts, scale.block(coords), strict=True))
    return f"{scale.key}/" + "_".join(f"{start}-{end}" for start, end in zip(starts, ends, strict=True))


def _coords(scale: Scale, file: str) -> XYZ | None:
    """Return the coordinates of the chunk in a file; ``None``: the file is not a chunk of the scale."""
    found = _FILE.fullmatch(file.rpartition("/")[2])
    if found is None:
        return None
    starts = [int(text) - at for text, at in zip(found.groups()[::2], scale.offset, strict=True)]
    if not all(0 <= start < n and start % m == 0 for start, n, m in zip(starts, scale.size, scale.chunk, strict=True)):
        return None
    x, y, z = (start // m for start, m in zip(starts, scale.chunk, strict=True))
    return (x, y, z) if _file(scale, (x, y, z)) == file else None
