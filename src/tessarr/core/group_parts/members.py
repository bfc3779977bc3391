"""Find, list, remove and move the members of a group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from tessarr.common.warn import without_warnings
from tessarr.core import open_transactions
from tessarr.core.array import Array
from tessarr.core.asynchronous.sans_io import Steps, async_variant, run_steps, sans_io, steps_of, store_call
from tessarr.core.attributes import Attributes
from tessarr.core.creation.array_config import array_config
from tessarr.core.info import GroupInfo, group_info
from tessarr.core.node import STATE_LOCK, Node
from tessarr.core.stored import metadata_io, read_nodes
from tessarr.core.stored.consolidated import follow_change_steps, read_consolidated, watch
from tessarr.core.stored.create_nodes import describe_new_steps
from tessarr.core.stored.move import move_node
from tessarr.core.stored.parse_cache import parse_node
from tessarr.core.stored.read_nodes import NodeMetadata
from tessarr.core.stored.walk import Entry, walk_below_steps
from tessarr.errors import (
    ArrayInsteadError,
    ArrayNotFoundError,
    GroupInsteadError,
    GroupNotFoundError,
    IncompatibleNodeError,
    MixedFormatsError,
    ReadOnlyError,
)
from tessarr.metadata import formats
from tessarr.metadata.consolidated import Consolidated
from tessarr.metadata.group import GroupMetadata
from tessarr.settings import config as settings
from tessarr.stores.base import Store
from tessarr.stores.path import join, normalize_path, prefix_of
from tessarr.types import Buffer

if TYPE_CHECKING:
    from tessarr.core.group import Group


N = TypeVar("N", bound=Node)


class Members(Node):
    """A group as a mapping from names to arrays and groups. `Group` inherits it."""

    _metadata: GroupMetadata
    _read_only: bool
    _group: ClassVar[type[Group]]
    """`Group`, which `core/group.py` assigns here: a higher module than this one."""

    @classmethod
    def _make(cls, store: Store, path: str, metadata: GroupMetadata, *, read_only: bool) -> Self:
        """Make a group from known metadata, without reading or writing."""
        self = cls.__new__(cls)
        self._store = store
        self._path = path
        self._metadata = metadata
        self._read_only = read_only
        return self

    @classmethod
    def _of(cls, store: Store, path: str, metadata: NodeMetadata) -> Array | Self:
        """Make the node that was created at `path` with `metadata`."""
        if isinstance(metadata, GroupMetadata):
            return cls._make(store, path, metadata, read_only=False)
        return Array._opened(store, path, metadata, read_only=False, config=array_config(None))

    # -- properties --------------------------------------------------------------------------------------------------

    @property
    def metadata(self) -> GroupMetadata:
        """The metadata."""
        return self._metadata

    @property
    def zarr_format(self) -> int:
        """The Zarr format: 2 or 3."""
        return self._metadata.zarr_format

    @property
    def attrs(self) -> Attributes:
        """The user attributes."""
        return Attributes(self)

    @property
    def read_only(self) -> bool:
        """Whether writes raise `ReadOnlyError`."""
        return self._read_only or self._store.read_only

    @property
    def info(self) -> GroupInfo:
        """A readable summary, without reading members."""
        return group_info(self)

    @sans_io
    async def info_complete(self) -> GroupInfo:
        """Summarise the group as `info` does, with the number of members."""
        return group_info(self, [isinstance(node, Array) for _, node in await self._walk_members_steps(None)])

    def _repr_html_(self) -> str:
        """Describe the group for notebooks, with its first members where these are known or listed without a network."""
        from tessarr.core.notebook.describe import group_html

        return group_html(self)

    # -- members -----------------------------------------------------------------------------------------------------

    def _join(self, path: str) -> str:
        """Return the path of the member `path` in the store."""
        relative = normalize_path(path)
        is_absolute = path.startswith("/") and settings.get("zarr_python.absolute_names")
        return relative if is_absolute else join(self._path, relative)

    def _open(self, path: str, metadata: NodeMetadata) -> Array | Group:
        if isinstance(metadata, GroupMetadata):
            consolidated, relative = self._metadata.consolidated_metadata, self._within(path)
            if consolidated is not None and relative is not None:
                metadata = metadata.with_(consolidated_metadata=consolidated.under(relative))
            group = self._group._make(self._store, path, metadata, read_only=self._read_only)
            return group._with_format_found_at(self._format_found_at())
        array = Array._opened(self._store, path, metadata, read_only=self._read_only, config=None)
        return array._with_format_found_at(self._format_found_at())

    def _within(self, path: str) -> str | None:
        """Return the path of the node at `path` within this group; ``None`` for one that is not below it."""
        prefix = prefix_of(self._path)
        return path[len(prefix) :] if path.startswith(prefix) else None

    def _consolidated_for(self, path: str) -> tuple[Consolidated, str] | None:
        """Return the consolidated metadata in which the node at `path` is looked up, and its path there, if there is any."""
        consolidated, relative = self._metadata.consolidated_metadata, self._within(path)
        if consolidated is None or relative is None or consolidated.changed(relative):
            return None
        return consolidated, relative

    async def _read_member_steps(self, path: str) -> NodeMetadata | None:
        if (found := self._consolidated_for(path)) is not None:
            consolidated, relative = found
            node: NodeMetadata | None = consolidated.parsed(relative, partial(parse_node, store=self._store, path=path))
            return node
        return (await read_nodes.read_nodes_steps(self._store, [path], self._metadata.zarr_format))[0]

    async def _get_member_steps(self, path: str) -> Array | Group | None:
        """Open the member at `path`, or return ``None``."""
        whole = self._join(path)
        metadata = await self._read_member_steps(whole)
        return None if metadata is None else self._open(whole, metadata)

    async def _get_required_steps(self, path: str) -> Array | Group | None:
        """Open the member at `path` before it is created, also one that consolidated metadata lacks, or return ``None``."""
        found = await self._get_member_steps(path)
        if found is None and self._metadata.consolidated_metadata is not None:
            self._will_change()
            found = await self._get_member_steps(path)
        return found

    @sans_io
    async def __getitem__(self, path: str) -> Array | Group:
        """Open the member at `path`, which may lead down several groups. Raises `KeyError`."""
        if not isinstance(path, str):
            raise TypeError(f"a member's path is a string, got {path!r}")
        found = await self._get_member_steps(path)
        if found is None:
            raise KeyError(f"no member {path!r} in group {self.name}")
        return found

    @sans_io
    async def get(self, path: str, default: Any = None) -> Any:
        """Open the member at `path`, or return `default`."""
        try:
            return await steps_of(Members.__getitem__)(self, path)
        except KeyError:
            return default

    @sans_io
    async def get_array(self, path: str) -> Array:
        """Open the array at `path`. Raises `ArrayNotFoundError`, also when a group is there."""
        found = await steps_of(Members.get)(self, path)
        if isinstance(found, Array):
            return found
        if found is None:
            raise ArrayNotFoundError("No array found in store", store=self._store.url, path=f"/{self._join(path)}")
        raise GroupInsteadError("A group exists in store", store=self._store.url, path=f"/{self._join(path)}")

    @sans_io
    async def get_group(self, path: str) -> Group:
        """Open the group at `path`. Raises `GroupNotFoundError`, also when an array is there."""
        found = await steps_of(Members.get)(self, path)
        if isinstance(found, self._group):
            return found
        if found is None:
            raise GroupNotFoundError("No group found in store", store=self._store.url, path=f"/{self._join(path)}")
        raise ArrayInsteadError("An array exists in store", store=self._store.url, path=f"/{self._join(path)}")

    @sans_io
    async def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and await self._read_member_steps(self._join(path)) is not None

    @sans_io
    async def __delitem__(self, path: str) -> None:
        """Remove a member and everything below it. Raises `KeyError`; under `tessarr.as_zarr` a missing one has no effect."""
        place = self._join(path)
        listed = self._consolidated_for(place)
        self._will_change()
        is_there = await steps_of(Members.__contains__)(self, path)
        if not is_there and not await metadata_io.is_half_removed_steps(self._store, place):
            if listed is not None and listed[0].node(listed[1]) is not None:
                await follow_change_steps(self._store, place, replaced=True)  # which a removal could not do before
                return
            if settings.get("zarr_python.arguments"):
                return
            raise KeyError(f"no member {path!r} in group {self.name}")
        await metadata_io.delete_node_steps(self._store, place)

    async def _read_below_steps(self, max_depth: int | None) -> list[tuple[str, NodeMetadata]]:
        """Read path and metadata of every member down to `max_depth`, level by level; from consolidated metadata if used."""
        prefix, depth = prefix_of(self._path), max_depth
        block = self._metadata.consolidated_metadata
        if block is not None and not block.changed_below():
            paths = block.children("") if depth == 0 else block.paths()
            return [
                (prefix + path, block.parsed(path, partial(parse_node, store=self._store, path=prefix + path)))
                for path in paths
                if depth is None or path.count("/") <= depth
            ]
        zarr_format = self._metadata.zarr_format
        names = formats.KEYS[zarr_format].all
        below = await walk_below_steps(self._store, Entry(self._path, {}), zarr_format, names, max_depth=max_depth)
        read = [(entry.path, read_nodes.parsed(self._store, entry, zarr_format)) for entry in below]
        return [(path, metadata) for path, metadata in read if metadata is not None]

    async def _child_names_steps(self) -> list[str]:
        """List the names of the direct members, sorted."""
        start = len(prefix_of(self._path))
        return sorted(path[start:] for path, _ in await self._read_below_steps(0))

    @sans_io
    async def non_members(self) -> tuple[str, ...]:
        """List the names of prefixes in this group that are not members: no document of this format describes them.

        Zarr v3.1 has no implicit groups, so that values below such a prefix are not part of this hierarchy.
        """
        prefix = prefix_of(self._path)
        listing = await store_call(self._store, "list_dir", prefix)
        members = set(await self._child_names_steps())
        return tuple(sorted({child[len(prefix) : -1] for child in listing.prefixes} - members))

    @sans_io
    async def members(
        self, max_depth: int | None = 0, *, use_consolidated_for_children: bool = True
    ) -> tuple[tuple[str, Array | Group], ...]:
        """List ``(path relative to this group, member)`` of all members down to `max_depth` (0: direct; ``None``: all).

        Raises `ValueError` for a negative `max_depth`.
        """
        return await self._walk_members_steps(max_depth)

    async def _walk_members_steps(self, max_depth: int | None) -> tuple[tuple[str, Array | Group], ...]:
        """List all members down to `max_depth`, those of a group before those of each of its groups."""
        if max_depth is not None and max_depth < 0:
            raise ValueError(f"max_depth must be None or at least 0, got {max_depth}")
        below: dict[str, list[tuple[str, Array | Group]]] = {}
        for path, metadata in await self._read_below_steps(max_depth):
            above, _, name = path.rpartition("/")
            below.setdefault(above, []).append((name, self._open(path, metadata)))
        for members in below.values():
            members.sort(key=itemgetter(0))
        return tuple(_in_order(self, below))

    @sans_io
    async def nmembers(self, max_depth: int | None = 0) -> int:
        """Count the members down to `max_depth`."""
        return len(await self._walk_members_steps(max_depth))

    def __iter__(self) -> Iterator[str]:
        return iter(run_steps(self._child_names_steps()))

    def __len__(self) -> int:
        block = self._metadata.consolidated_metadata
        if block is not None and not block.changed_below():
            return len(block.children(""))
        with without_warnings():  # ``list(group)`` iterates, which warns, and asks for the length as well
            return len(run_steps(self._child_names_steps()))

    # -- changing ------------------------------------------------------------------------------------------------------

    def _require_writable(self) -> None:
        open_transactions.refuse_outside(self._store, self._path)
        if self.read_only:
            raise ReadOnlyError(
                "the group is read-only", store=self._store.url, path=self.name, hint="Open it with mode='r+'"
            )

    def _will_change(self) -> None:
        """Require write access, and drop consolidated metadata: members that will change are read from the store."""
        self._require_writable()
        with STATE_LOCK:
            self._metadata, self._state = self._metadata.with_(consolidated_metadata=None), object()

    @sans_io
    async def update_attributes(self, new_attributes: Mapping[str, object]) -> Self:
        """Set several attributes in one write. Returns the group."""
        await steps_of(Attributes.update)(self.attrs, new_attributes)
        return self

    @sans_io
    async def refresh(self) -> None:
        """Reload the metadata, consolidated metadata included where it was used."""
        done = False
        while not done:
            state, before = self._state, self._metadata
            node = await read_nodes.require_node_steps(self._store, self._path, before.zarr_format, GroupMetadata)
            assert isinstance(node, GroupMetadata)
            with STATE_LOCK:
                if done := self._state is state:
                    self._metadata, self._state = node, object()
        if before.consolidated_metadata is not None:
            self._with_consolidated(None)

    def _with_consolidated(self, use: bool | str | None, known: Mapping[str, Buffer | None] | None = None) -> Self:
        """Use consolidated metadata if the group has any (``None``), or require it (``True``), or ignore it (``False``).

        With the setting ``zarr_python.consolidated_on_request``, ``None`` ignores it too.
        `known`: key → value that was read already. Raises `ValueError` when required consolidated metadata is missing.
        """
        if use is None and settings.get("zarr_python.consolidated_on_request"):
            use = False
        if use is False or (use is None and not self._store.supports_consolidated_metadata):
            return self
        if not self._store.supports_consolidated_metadata:
            raise ValueError(
                f"the store {self._store.url} doesn't support consolidated metadata; open the group without"
            )
        key = use if isinstance(use, str) else None
        found = read_consolidated(self._store, self._path, self._metadata, key, known or {})
        if found is None and use:
            raise ValueError(
                f"Consolidated metadata requested with use_consolidated, and group {self.name} of {self._store.url} has none"
            )
        with STATE_LOCK:
            self._metadata, self._state = self._metadata.with_(consolidated_metadata=found), object()
        self._watch()
        return self

    def _watch(self) -> None:
        """Read from the store what the members of this group change, in place of consolidated metadata."""
        if (block := self._metadata.consolidated_metadata) is not None and not self.read_only:
            watch(block, self._store, self._path)

    def __getstate__(self) -> dict[str, object]:
        kept = {name: value for name, value in self.__dict__.items() if name not in ("_state", "_attributes_order")}
        return {**kept, "given": self._store.given}

    def __setstate__(self, state: dict[str, object]) -> None:
        super().__setstate__(state)
        self._watch()

    @sans_io
    async def create_group(
        self, name: str, overwrite: bool = False, *, attributes: Mapping[str, object] | None = None
    ) -> Group:
        """Create a group below this one. Raises `ContainsGroupError` or `ContainsArrayError`."""
        self._will_change()
        path = self._join(name)
        if path != self._path:  # else it is this group that is created, again where it was deleted
            await self._require_current_steps()
        creating = self._group._create_steps(self._store, path, self._metadata.zarr_format, attributes, overwrite)
        return await self._described_steps(creating)

    async def _described_steps(self, creating: Steps[N]) -> N:
        """Create a node below this group, and describe it in Zarr v3 too if the group was migrated meanwhile.

        Raises `StaleNodeError` where the group was migrated before anything was written.
        """
        try:
            made = await creating
        except MixedFormatsError:
            await self._require_current_steps()
            raise
        if await self._migrated_to_steps() is not None:
            await describe_new_steps(self._store, made.path, self._path)
        return made

    @sans_io
    async def require_group(self, name: str, overwrite: bool = False, **kwargs: Any) -> Group:
        """Open the group `name`, creating it if it is missing. Raises `IncompatibleNodeError` when an array is there."""
        found = None if overwrite else await self._get_required_steps(name)
        if found is None:
            return await steps_of(Members.create_group)(self, name, overwrite=overwrite, **kwargs)
        if not isinstance(found, self._group):
            path = f"/{self._join(name)}"
            raise IncompatibleNodeError("Incompatible object: an array, not a group", store=self._store.url, path=path)
        return found

    def move(self, source: str, dest: str) -> None:
        """Move a member to another path below this group: copy its keys, then delete the old keys."""
        self._will_change()
        move_node(self._store, self._join(source), self._join(dest))

    getitem_async = async_variant(__getitem__)
    contains_async = async_variant(__contains__)
    delitem_async = async_variant(__delitem__)
    get_async = async_variant(get)
    get_array_async = async_variant(get_array)
    get_group_async = async_variant(get_group)
    non_members_async = async_variant(non_members)
    members_async = async_variant(members)
    nmembers_async = async_variant(nmembers)
    create_group_async = async_variant(create_group)
    require_group_async = async_variant(require_group)
    update_attributes_async = async_variant(update_attributes)
    refresh_async = async_variant(refresh)
    move_async = async_variant(move)
    info_complete_async = async_variant(info_complete)


def _in_order(
    group: Members, below: Mapping[str, Sequence[tuple[str, Array | Group]]]
) -> Iterator[tuple[str, Array | Group]]:
    """List the members of a group, then those of each of its groups, with paths relative to `group`."""
    yield from below.get(group.path, ())
    for name, member in below.get(group.path, ()):
        if isinstance(member, Members):
            yield from ((f"{name}/{path}", node) for path, node in _in_order(member, below))
