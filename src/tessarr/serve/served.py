"""What is served: a store, a path in it, and which keys below it belong to the hierarchy.

The keys of a hierarchy are the documents of its nodes, and the chunk keys of its arrays, by their grids and key encodings.
Every other file that happens to be in the directory stays private.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from secrets import token_hex, token_urlsafe
from typing import Literal, NamedTuple

from tessarr.core.stored.parse_cache import parse_entry
from tessarr.core.stored.walk import NAMES, Entry, read_entries_steps
from tessarr.errors import TessarrError
from tessarr.keys.base import ChunkKeyEncoding
from tessarr.metadata.array import ArrayMetadata
from tessarr.metadata.consolidated import V2_KEY
from tessarr.serve.dynamic.budget import Budget
from tessarr.serve.http.cors import CorsOptions
from tessarr.stores.base import Store
from tessarr.stores.local import lock as filelock
from tessarr.stores.path import join, prefix_of

Scope = Literal["hierarchy", "store"]
"""Whether only the keys of the hierarchy are served, or every key."""
METHODS = ("GET", "HEAD", "OPTIONS", "PROPFIND")
PAGE_SEGMENT = "@view"
"""The segment of the path, beside the hierarchy, below which the viewer's page is."""
_TOKEN_NBYTES = 16
MAX_DEPTH = 64
"""Segments of a key. Longer ones are missing: each segment may cost a request for documents."""
_V2_V3_DOCUMENTS = frozenset({"zarr.json", ".zarray", ".zgroup", ".zattrs", V2_KEY})
_V1_DOCUMENTS = frozenset({"meta", "attrs"})
_OME_XML = "OME/METADATA.ome.xml"
"""The file that the layout of bioformats2raw keeps beside its nodes."""
_MAX_KNOWN = 10_000


def new_token() -> str:
    """Make a random secret for URLs."""
    return token_urlsafe(_TOKEN_NBYTES)


def last_name(place: str) -> str:
    """Return the last name of a path or URL, for the URL of a served place; ``data.zarr`` where it cannot be in a URL.

    >>> last_name("s3://bucket/a.zarr/"), last_name("a.zip|zip:"), last_name("/")
    ('a.zarr', 'a.zip', 'data.zarr')
    """
    name = place.replace("\\", "/").rstrip("/").rpartition("/")[2].partition("|")[0]
    return name if name not in ("", ".", "..", PAGE_SEGMENT) and name.isprintable() else "data.zarr"


class _Chunks(NamedTuple):
    """The chunk keys of one array."""

    encoding: ChunkKeyEncoding
    counts: tuple[int, ...]
    """Chunks along each axis."""

    def holds(self, name: str) -> bool:
        coords = self.encoding.decode(name, len(self.counts))
        return coords is not None and all(0 <= index < count for index, count in zip(coords, self.counts, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """Hold a served place and how it is served."""

    store: Store
    path: str = ""
    """The node in the store whose keys are served, relative to it."""
    scope: Scope = "hierarchy"
    name: str = ""
    """Name of the place in URLs, after the token; empty for none."""
    token: str | None = None
    """Without it in the path (or as a bearer token) requests are refused; ``None``: everyone may read."""
    root_path: str = ""
    """The path under which a reverse proxy offers the server."""
    allowed_hosts: Collection[str] | None = None
    """Values of the header ``Host`` that are answered; ``None``: all."""
    cors: CorsOptions | None = None
    methods: tuple[str, ...] = METHODS
    as_stored: bool = False
    """Send documents as they are stored, without consolidated metadata that are made up."""
    boundary: str = field(default_factory=partial(token_hex, 24))
    """Separates ranges of one response."""
    is_dynamic: bool = False
    """Compute responses: slices, statistics, descriptions."""
    budget: Budget = field(default_factory=Budget)
    """Bounds the responses that are computed."""
    page: Mapping[str, tuple[bytes, str]] | None = None
    """Files of the viewer's page: name → content and media type; ``None``: there is no page."""
    is_encoded: bool = False
    """Values are encoded when they are read, so that each is read once, as a whole: those of a `ViewStore`."""
    views: dict[str, Served] = field(default_factory=dict)
    """The views that were requested, by their path."""
    _known: dict[str, _Chunks] = field(default_factory=dict)

    @property
    def page_base(self) -> str:
        """The path of URLs beside the hierarchy: the root path and the token."""
        from tessarr.serve.http.paths import TOKEN_SEGMENT

        return self.root_path.rstrip("/") + (f"/{TOKEN_SEGMENT}/{self.token}" if self.token is not None else "")

    @property
    def base(self) -> str:
        """The path of URLs of the root, without a slash at its end."""
        from tessarr.serve.http.paths import quoted

        return self.page_base + (f"/{quoted(self.name)}" if self.name else "")

    def key(self, relative: str) -> str:
        """Return the key in the store of a key below the root of URLs."""
        return join(self.path, relative)

    def relative(self, path: str) -> str:
        """Return the path below the root of URLs of a node in the store: the inverse of `key`."""
        return path[len(self.path) :].strip("/")

    def holds(self, path: str) -> bool:
        """Whether a node of the store is the served one or below it."""
        return path == self.path or path.startswith(prefix_of(self.path))

    def is_private(self, segments: Sequence[str]) -> bool:
        """Whether a key is never served: a hidden file, or a file of this library's writers."""
        if self.scope == "store":
            return any(filelock.is_hidden(name) for name in segments)
        *folders, name = segments
        return any(folder.startswith(".") for folder in folders) or (
            name.startswith(".") and name not in _V2_V3_DOCUMENTS
        )

    async def belongs_steps(self, relative: str) -> bool:
        """Return whether a key may be served. It need not exist."""
        segments = relative.split("/")
        if self.is_private(segments):
            return False
        if self.scope == "store" or segments[-1] in _V2_V3_DOCUMENTS or join("", relative).endswith(_OME_XML):
            return True
        for count in range(len(segments)):
            known = self._known.get("/".join(segments[:count]))
            if known is not None and known.holds("/".join(segments[count:])):
                return True
        entries = await self._entries_steps(["/".join(segments[:count]) for count in range(len(segments))])
        if segments[-1] in _V1_DOCUMENTS and 1 in entries[-1].formats:
            return True
        for count, entry in enumerate(entries):
            chunks = _chunks_of(entry)
            if chunks is not None:
                if len(self._known) >= _MAX_KNOWN:
                    self._known.clear()
                self._known["/".join(segments[:count])] = chunks
                if chunks.holds("/".join(segments[count:])):
                    return True
        return False

    async def node_steps(self, relative: str) -> Entry | None:
        """Read the documents of the node at a path below the root; ``None``: there is no node."""
        (entry,) = await self._entries_steps([relative])
        return entry if entry.kind is not None else None

    async def is_below_array_steps(self, relative: str) -> bool:
        """Return whether a path is an array or below one, so that it holds chunk keys."""
        segments = relative.split("/") if relative else []
        paths = ["/".join(segments[:count]) for count in range(len(segments) + 1)]
        entries = await self._entries_steps(paths)
        return any(entry.kind == "array" for entry in entries)

    async def _entries_steps(self, paths: Sequence[str]) -> list[Entry]:
        # Documents of v1 are looked for at one path only: at the root, or where a request names them.
        return await read_entries_steps(self.store, [self.key(path) for path in paths], NAMES)


def _chunks_of(entry: Entry) -> _Chunks | None:
    """Return the chunk keys of a node; ``None`` for a group, a missing and an unreadable node."""
    if entry.kind != "array":
        return None
    try:
        metadata = parse_entry(entry, entry.formats[0])
        if not isinstance(metadata, ArrayMetadata):
            return None
        axes = metadata.chunk_grid.axes(metadata.shape)
    except (TessarrError, ValueError):
        return None
    return _Chunks(metadata.chunk_key_encoding, tuple(axis.nchunks for axis in axes))
