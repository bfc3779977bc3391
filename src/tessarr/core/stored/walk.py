"""Walk a hierarchy: read the stored documents of every node below a path, in one round of requests per level.

Consolidation, the members of groups, models and tools all read hierarchies through this module. Only groups are listed, not
arrays, whose prefixes hold the chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from tessarr.common.warn import Diagnostic, report
from tessarr.core.asynchronous.sans_io import gather_calls, run_steps, store_call
from tessarr.errors import StoreError, TessarrError, UnsupportedOperationError
from tessarr.metadata import consolidated, formats
from tessarr.stores.base import Fetch, Store
from tessarr.stores.functions import publishes
from tessarr.stores.path import is_reserved_name, prefix_of
from tessarr.stores.protocols import JOURNAL, List, Remote, Settle, may_be_claimed
from tessarr.types import JSON, Buffer, ZarrFormat

NAMES = ("zarr.json", ".zarray", ".zgroup", ".zattrs", consolidated.V2_KEY, "meta", "attrs")
_V1_NAMES = formats.KEYS[1].all


@dataclass(slots=True)
class Entry:
    """One node as it is stored."""

    path: str
    """Path from the root of the store; "" is the root."""
    values: dict[str, Buffer]
    """The documents: name relative to the node → stored bytes."""
    keys: tuple[str, ...] = ()
    """Groups only: names of the keys directly in the group, documents included."""
    children: tuple[str, ...] = ()
    """Groups only: names of the prefixes directly in the group, nodes or not."""
    _parsed: dict[str, Any] = field(default_factory=dict)

    @property
    def prefix(self) -> str:
        """The prefix of the node's keys."""
        return prefix_of(self.path)

    @property
    def formats(self) -> tuple[ZarrFormat, ...]:
        """The Zarr formats of the node's documents, newest first."""
        found: list[ZarrFormat] = [3] if "zarr.json" in self.values else []
        if self.values.keys() & {".zarray", ".zgroup"}:
            found.append(2)
        if "meta" in self.values and not found:
            found.append(1)
        return tuple(found)

    @property
    def kind(self) -> Literal["array", "group"] | None:
        """The kind of node by the names of its documents, even of invalid ones; ``None`` when there is no node."""
        if "zarr.json" in self.values:
            return "array" if b'"array"' in bytes(self.values["zarr.json"]) and not self.is_group(3) else "group"
        if self.values.keys() & {".zarray", "meta"}:
            return "array"
        return "group" if ".zgroup" in self.values else None

    def json(self, name: str) -> Any:
        """Parse the document `name`. Raises `MetadataValidationError` for invalid JSON, `KeyError` when missing."""
        if name not in self._parsed:
            self._parsed[name] = formats.loads(name, self.values[name], key=self.prefix + name)
        return self._parsed[name]

    def documents(self, zarr_format: int) -> dict[str, Any]:
        """Parse the documents of one format: name → JSON. Raises `MetadataValidationError`."""
        return {name: self.json(name) for name in formats.KEYS[zarr_format].all if name in self.values}

    def is_group(self, zarr_format: int) -> bool:
        """Whether the documents of a format describe a group; ``False`` if they are invalid."""
        if zarr_format != 3:
            return zarr_format == 2 and ".zarray" not in self.values
        text = bytes(self.values["zarr.json"])
        if b"group" not in text and b"\\u" not in text:  # the usual array: its JSON need not be parsed for this
            return False
        try:
            return consolidated.kind_of({"zarr.json": self.json("zarr.json")}) == "group"
        except TessarrError:
            return False


def walk(
    store: Store, path: str = "", *, zarr_format: ZarrFormat | None = None, names: Sequence[str] = NAMES
) -> list[Entry]:
    """List every node at and below `path`, parents before children; with `zarr_format` only nodes of that format.

    A store that cannot list is walked by its consolidated metadata. Raises `UnsupportedOperationError` when there is none.
    """

    async def steps() -> list[Entry]:
        top = (await read_entries_steps(store, [path.strip("/")], names))[0]
        chosen = zarr_format or next(iter(top.formats), None)
        if chosen not in top.formats:
            return []
        below = await walk_below_steps(store, top, zarr_format, names) if top.is_group(chosen) else []
        return [top, *below]

    return run_steps(steps())


async def walk_below_steps(
    store: Store,
    top: Entry,
    zarr_format: ZarrFormat | None,
    names: Sequence[str] = NAMES,
    *,
    max_depth: int | None = None,
    others: bool = False,
) -> list[Entry]:
    """List every node below the group `top`, level by level, down to `max_depth` (0: direct members).

    With `zarr_format` only nodes of that format, and no names that the format reserves for extensions; with `others` also
    nodes that have other formats only, but no nodes below these.
    """
    level = [top]
    blocks: dict[str, consolidated.Consolidated] = {}
    found: list[Entry] = []
    depth = 0
    while level and (max_depth is None or depth <= max_depth):
        await _list_groups_steps(store, level, blocks)
        below = [
            entry.prefix + name
            for entry in level
            for name in entry.children
            if name and not is_staged(name) and not (zarr_format == 3 and is_reserved_name(name))
        ]
        entries = await read_entries_steps(store, below, names, v1=False)
        level = []
        for entry in entries:
            present = entry.formats
            if not present or (zarr_format == 3 and _is_of_an_extension(entry)):
                continue
            if zarr_format is not None and zarr_format not in present:
                found += [entry] if others else []
                continue
            found.append(entry)
            if depth != max_depth and entry.is_group(zarr_format or present[0]):
                level.append(entry)
        depth += 1
    return found


def is_staged(path: str) -> bool:
    """Whether a path leads through a place where a tool works (``.….partial``): what is there is no member of a group."""
    return any(name.startswith(".") and name.endswith(".partial") for name in path.split("/"))


def _is_of_an_extension(entry: Entry) -> bool:
    """Whether the name begins with ``__`` and the document describes no node: extensions may keep files there."""
    if not entry.path.rpartition("/")[2].startswith("__"):
        return False
    try:
        return entry.json("zarr.json").get("node_type") not in ("array", "group")
    except (TessarrError, AttributeError):
        return True


def read_entries(store: Store, paths: Sequence[str], names: Sequence[str] = NAMES) -> list[Entry]:
    """Read the documents of several nodes in one `fetch`. See `read_entries_steps`."""
    return run_steps(read_entries_steps(store, paths, names))


async def read_entries_steps(
    store: Store, paths: Sequence[str], names: Sequence[str] = NAMES, *, v1: bool = True, claims: bool = True
) -> list[Entry]:
    """Read the documents of several nodes in one `fetch`; documents of v1 only at the first path, with `v1`, in stores of ours.

    Without `claims` those are missing that a transaction is creating.
    """
    if not paths:
        return []
    late = [name for name in names if name not in _V1_NAMES]
    v1 = v1 and store.may_hold_v1
    prefixes = map(prefix_of, paths)
    places = [(path, at, names if v1 and i == 0 else late) for i, (path, at) in enumerate(zip(paths, prefixes))]
    wanted = [(path, name) for path, _, here in places for name in here]
    requests = [Fetch(prefix + name) for _, prefix, here in places for name in here]
    answers = await fetch_settled_steps(store, requests, paths, claims=claims)
    values: dict[str, dict[str, Buffer]] = {path: {} for path in paths}
    for (path, name), answer in zip(wanted, answers, strict=True):
        if answer is not None:
            values[path][name] = answer[0]
    return [Entry(path, found) for path, found in values.items()]


def requests_of(path: str, names: tuple[str, ...]) -> Sequence[Fetch]:
    """Make the requests for documents of the node at `path`, by their names."""
    return [Fetch(f"{path}/{name}") for name in names] if path else _requests_at_root(names)


@lru_cache
def _requests_at_root(names: tuple[str, ...]) -> Sequence[Fetch]:
    return tuple(map(Fetch, names))


async def fetch_settled_steps(
    store: Store, requests: Sequence[Fetch], paths: Sequence[str], *, claims: bool = True
) -> list[list[Buffer] | None]:
    """Fetch documents of the nodes at `paths`; complete a transaction that a process left unfinished there first (`Settle`).
    A document that another transaction claims is returned as readers see it (`resolve_steps`); so are those that it creates,
    unless `claims` is false.

    The journal, or in a remote store the claim of a single node, is looked for in the same fetch, so that this costs no round
    trip.
    """
    journals = [Fetch(f"{path}/{JOURNAL}" if path else JOURNAL) for path in paths] if isinstance(store, Settle) else []
    places = paths if claims and not journals and publishes(store) else ()  # a store with journals publishes nothing
    claim = _claims_of(places) if len(places) == 1 and isinstance(store, Remote) else []
    while True:
        wanted = [*requests, *claim, *journals]
        try:
            answers = await store_call(store, "fetch", wanted)
        except StoreError as error:
            if not claim or getattr(error, "status", None) not in (401, 403):
                raise
            places, claim = (), []  # a bucket without permission to list refuses missing keys
            continue
        check_answers(store, answers, len(wanted))
        documents, there = list(answers[: len(requests)]), list(answers[len(requests) :])
        found = [path for path, journal in zip(paths, there[len(claim) :], strict=False) if journal is not None]
        if not found:
            return await _resolved_steps(store, requests, documents, places, there[: len(claim)])
        for path in found:
            await store_call(store, "settle", path)
        journals = []


async def _resolved_steps(
    store: Store,
    requests: Sequence[Fetch],
    documents: list[list[Buffer] | None],
    paths: Sequence[str],
    claims: list[list[Buffer] | None],
) -> list[list[Buffer] | None]:
    """Replace the documents that a transaction of level *publish* changes or creates by what they are for readers.

    `claims`: what was found beside the documents of `paths`; empty: they are requested.
    """
    if [answer for answer in documents if answer and may_be_claimed(answer[0])]:
        from tessarr.core.claims.settle import resolve_steps  # a transaction is being committed: rare

        documents = await resolve_steps(store, requests, documents)
    if not paths or (len(paths) == 1 and any(documents)):
        return documents
    there = {request.key.rpartition("/")[0] for request, answer in zip(requests, documents, strict=True) if answer}
    missing = [path for path in paths if path not in there]
    if missing:
        from tessarr.core.claims.settle import resolve_missing_steps

        if not claims:
            claims = await store_call(store, "fetch", _claims_of(missing))
        documents = await resolve_missing_steps(store, requests, documents, dict(zip(missing, claims, strict=True)))
    return documents


def _claims_of(paths: Sequence[str]) -> list[Fetch]:
    from tessarr.core.claims.intents import CLAIM

    return [Fetch(prefix_of(path) + CLAIM) for path in paths]


def block_of(entry: Entry) -> consolidated.Consolidated | None:
    """Parse the consolidated metadata among the documents of a group; ``None`` when there is no usable one."""
    if "zarr.json" in entry.values:
        diagnostics: list[Diagnostic] = []
        block = consolidated.parse_v3(entry.json("zarr.json").get(consolidated.FIELD), diagnostics)
        report(diagnostics)
        return block
    return consolidated.parse_v2(entry.json(consolidated.V2_KEY)) if consolidated.V2_KEY in entry.values else None


def check_answers(store: Store, answers: Sequence[JSON], wanted: int) -> None:
    """Raise `StoreError` unless `fetch` returned a response to each request."""
    if len(answers) != wanted:
        raise StoreError(
            "fetch returned another number of responses than it got requests",
            store=store.url,
            expected=str(wanted),
            got=str(len(answers)),
        )


async def _list_groups_steps(
    store: Store, groups: Sequence[Entry], blocks: dict[str, consolidated.Consolidated]
) -> None:
    """Set `keys` and `children` of groups, in one round of listings."""
    if not isinstance(store, List):
        for entry in groups:
            entry.children = tuple(_from_consolidated(store, entry, blocks))
        return
    listings = await gather_calls([store_call(store, "list_dir", entry.prefix) for entry in groups])
    for entry, listing in zip(groups, listings, strict=True):
        start = len(entry.prefix)
        entry.keys = tuple(key[start:] for key in listing.keys)
        entry.children = tuple(prefix[start:-1] for prefix in listing.prefixes)


def _from_consolidated(store: Store, entry: Entry, blocks: dict[str, consolidated.Consolidated]) -> list[str]:
    """List the children by the group's own consolidated metadata, or by that of the nearest group above."""
    block = block_of(entry)
    if block is None:
        above = [path for path in blocks if not path or entry.path.startswith(f"{path}/")]
        if not above:
            raise UnsupportedOperationError(
                "this store cannot list, and there is no consolidated metadata to name the members of a group",
                store=store.url,
                path=f"/{entry.path}",
                hint="Open the group by its consolidated metadata, or name the member",
            )
        holder = max(above, key=len)
        block = blocks[holder].under(entry.path[len(holder) :])
    blocks[entry.path] = block
    return list(block.children(""))
