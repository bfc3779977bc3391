"""Every node below a path, as it is stored: the raw documents of all formats, one round of requests per level.

Arrays are not listed (that is where the chunks are), only groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tessarr.errors import TessarrError, UnsupportedOperationError
from tessarr.metadata import consolidated, formats
from tessarr.stores.base import Fetch, Store
from tessarr.stores.path import prefix_of
from tessarr.types import Buffer, ZarrFormat

NAMES = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata", "meta", "attrs")
Progress: TypeAlias = Callable[[int, int, str], None]
"""Called with how much is done, how much there is, and what is being done."""


@dataclass(slots=True)
class Entry:
    """One node as it is stored."""

    path: str
    """From the root of the store; "" is the root."""
    values: dict[str, Buffer]
    """The documents: name relative to the node → stored bytes."""
    keys: tuple[str, ...] = ()
    """Groups only: names of the keys directly in it, documents included."""
    children: tuple[str, ...] = ()
    """Groups only: names of the prefixes directly in it, nodes or not."""
    _parsed: dict[str, Any] = field(default_factory=dict)

    @property
    def prefix(self) -> str:
        """What the keys of the node begin with."""
        return prefix_of(self.path)

    @property
    def formats(self) -> tuple[ZarrFormat, ...]:
        """The formats in which the node is described, newest first."""
        found: list[ZarrFormat] = [3] if "zarr.json" in self.values else []
        found += [2] if self.values.keys() & {".zarray", ".zgroup"} else []
        return tuple([*found, 1] if "meta" in self.values and not found else found)

    def json(self, name: str) -> Any:
        """The parsed document `name`. Raises `MetadataValidationError` when it is no JSON, `KeyError` when missing."""
        if name not in self._parsed:
            self._parsed[name] = formats.loads(name, self.values[name], key=self.prefix + name)
        return self._parsed[name]

    def documents(self, zarr_format: ZarrFormat) -> dict[str, Any]:
        """The parsed documents of one format: name → JSON. Raises `MetadataValidationError`."""
        return {name: self.json(name) for name in formats.KEYS[zarr_format].all if name in self.values}

    def is_group(self, zarr_format: ZarrFormat) -> bool:
        """Whether the documents of a format say that the node is a group."""
        if zarr_format == 3:
            try:
                document = self.json("zarr.json")
            except TessarrError:
                return False
            return isinstance(document, dict) and document.get("node_type") == "group"
        return zarr_format == 2 and ".zarray" not in self.values


def walk(store: Store, path: str = "", *, zarr_format: ZarrFormat | None = None) -> Iterator[Entry]:
    """Every node at and below `path`, parents before children; with `zarr_format` only nodes of that format.

    A store that cannot list is walked by its consolidated metadata. Raises `UnsupportedOperationError` when it has none.
    """
    level = [path.strip("/")]
    blocks: dict[str, consolidated.Consolidated] = {}
    while level:
        below: list[str] = []
        for entry in read_entries(store, level):
            chosen = zarr_format or (entry.formats[0] if entry.formats else None)
            if chosen is None or chosen not in entry.formats:
                continue
            if entry.is_group(chosen):
                below += _list(store, entry, blocks)
            yield entry
        level = below


def read_entries(store: Store, paths: list[str]) -> list[Entry]:
    """The documents of several nodes, asked for at once (v1's only at the first path)."""
    wanted = [(path, name) for path in paths for name in (NAMES if path == paths[0] else NAMES[:5])]
    answers = store.fetch([Fetch(f"{path}/{name}" if path else name) for path, name in wanted])
    values: dict[str, dict[str, Buffer]] = {path: {} for path in paths}
    for (path, name), answer in zip(wanted, answers, strict=True):
        if answer is not None:
            values[path][name] = answer[0]
    return [Entry(path, found) for path, found in values.items()]


def _list(store: Store, entry: Entry, blocks: dict[str, consolidated.Consolidated]) -> list[str]:
    if not store.supports_listing:
        entry.children = tuple(_from_consolidated(store, entry, blocks))
    else:
        listing = store.list_dir(entry.prefix)
        start = len(entry.prefix)
        entry.keys = tuple(key[start:] for key in listing.keys)
        entry.children = tuple(prefix[start:-1] for prefix in listing.prefixes)
    return [entry.prefix + name for name in entry.children]


def _from_consolidated(store: Store, entry: Entry, blocks: dict[str, consolidated.Consolidated]) -> list[str]:
    """The children by the group's own consolidated metadata, or by that of the nearest group above."""
    block = None
    if "zarr.json" in entry.values:
        block = consolidated.parse_v3(entry.json("zarr.json").get(consolidated.FIELD))
    elif consolidated.V2_KEY in entry.values:
        block = consolidated.parse_v2(entry.json(consolidated.V2_KEY))
    if block is None:
        above = [path for path in blocks if not path or entry.path.startswith(f"{path}/")]
        if not above:
            raise UnsupportedOperationError(
                "this store cannot list, and there is no consolidated metadata", store=store.url, path=f"/{entry.path}"
            )
        holder = max(above, key=len)
        block = blocks[holder].under(entry.path[len(holder) :])
    blocks[entry.path] = block
    return list(block.children(""))
