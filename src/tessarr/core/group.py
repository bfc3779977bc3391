"""`Group`: a node that holds arrays and groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Self

from tessarr.core.asynchronous.sans_io import Steps, ask, finish, steps_of, stepwise, twin
from tessarr.core.attributes import Attributes
from tessarr.core.creation.metadata import array_config
from tessarr.core.group_parts.array_creation import Making
from tessarr.core.group_parts.group_methods import Grouping
from tessarr.core.node import CHANGING, Node
from tessarr.core.stored import metadata_io
from tessarr.core.stored.metadata_io import NodeMetadata
from tessarr.core.stored.parse_cache import parse_node
from tessarr.core.stored.walk import Entry, walking_below
from tessarr.errors import (
    ArrayInsteadError,
    ArrayNotFoundError,
    ContainsArrayError,
    GroupInsteadError,
    GroupNotFoundError,
    ReadOnlyError,
)
from tessarr.metadata import formats
from tessarr.metadata.group import GroupMetadata
from tessarr.stores.base import Store
from tessarr.stores.path import join, normalize_path, prefix_of
from tessarr.types import Buffer

if TYPE_CHECKING:
    from tessarr.core.array import Array
    from tessarr.core.asynchronous.classes import AsyncGroup
    from tessarr.core.info import GroupInfo


class Group(Node, Making, Grouping):
    """A node that holds arrays and groups, and attributes; a mapping from names to them.

    Made by `tessarr.open_group`, `tessarr.create_group` and their kin; ``Group(store, path)`` opens an existing one.

    >>> import tessarr
    >>> root = tessarr.group()
    >>> z = root.create_array("a/b", shape=(3,), dtype="uint8")
    >>> list(root), list(root["a"])
    (['a'], ['b'])
    """

    _metadata: GroupMetadata
    _read_only: bool

    def __init__(self, store: Any = None, path: str = "", *, read_only: bool | None = None, **legacy: Any) -> None:
        """Open the group at `path` of `store` (any store-like value). v2-era keywords are accepted, without effect."""
        from tessarr.core.open import open_group

        mode = "r" if read_only else None if getattr(store, "read_only", False) else "r+"
        held = getattr(store, "_node", store)  # of an `AsyncGroup`
        if isinstance(held, Group) and not path:
            self.__dict__.update(held.__dict__)
            return
        opened = open_group(store, path=path or None, mode=mode, chunk_store=legacy.get("chunk_store"))
        self.__dict__.update(opened.__dict__)

    @classmethod
    def _make(cls, store: Store, path: str, metadata: GroupMetadata, *, read_only: bool) -> Self:
        """A group whose metadata is known already."""
        self = cls.__new__(cls)
        self._store = store
        self._path = path
        self._metadata = metadata
        self._read_only = read_only
        return self

    # -- what it is --------------------------------------------------------------------------------------------------

    @property
    def metadata(self) -> GroupMetadata:
        """The metadata."""
        return self._metadata

    @property
    def zarr_format(self) -> int:
        """2 or 3."""
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
        """A readable summary, without looking at members."""
        from tessarr.core.info import group_info

        return group_info(self)

    @stepwise
    def info_complete(self) -> Steps[GroupInfo]:
        """`info` with the number of members."""
        from tessarr.core.info import group_info

        return group_info(self, (yield from self._walking(None)))

    # -- members -----------------------------------------------------------------------------------------------------

    def _join(self, path: str) -> str:
        relative = normalize_path(path)
        return join(self._path, relative)

    def _open(self, path: str, metadata: NodeMetadata) -> Array | Group:
        if isinstance(metadata, GroupMetadata):
            consolidated = self._metadata.consolidated_metadata
            if consolidated is not None:
                below = consolidated.under(path[len(prefix_of(self._path)) :])
                metadata = metadata.with_(consolidated_metadata=below)
            return Group._make(self._store, path, metadata, read_only=self._read_only)
        from tessarr.core.array import Array

        chosen = array_config(None)
        order = metadata.order if metadata.zarr_format != 3 else chosen.order
        return Array._make(self._store, path, metadata, chosen.options, read_only=self._read_only, order=order)

    def _reading_member(self, path: str) -> Steps[NodeMetadata | None]:
        consolidated = self._metadata.consolidated_metadata
        if consolidated is not None:
            relative = path[len(prefix_of(self._path)) :]
            node: NodeMetadata | None = consolidated.parsed(relative, parse_node)
            return node
        return (yield from metadata_io.reading(self._store, [path], self._metadata.zarr_format))[0]

    def _getting(self, path: str) -> Steps[Array | Group | None]:
        """The member at `path`, or ``None``."""
        whole = self._join(path)
        metadata = yield from self._reading_member(whole)
        return None if metadata is None else self._open(whole, metadata)

    @stepwise
    def __getitem__(self, path: str) -> Steps[Array | Group]:
        """The member at `path`, which may lead down several groups. Raises `KeyError`."""
        if not isinstance(path, str):
            raise TypeError(f"a member's path is a string, got {path!r}")
        found = yield from self._getting(path)
        if found is None:
            raise KeyError(f"no member {path!r} in group {self.name}")
        return found

    @stepwise
    def get(self, path: str, default: Any = None) -> Steps[Any]:
        """The member at `path`, or `default`."""
        try:
            return (yield from steps_of(Group.__getitem__)(self, path))
        except KeyError:
            return default

    @stepwise
    def get_array(self, path: str) -> Steps[Array]:
        """The array at `path`. Raises `ArrayNotFoundError`, also when a group is there."""
        from tessarr.core.array import Array

        found = yield from steps_of(Group.get)(self, path)
        if isinstance(found, Array):
            return found
        wrong = ArrayNotFoundError if found is None else GroupInsteadError
        raise wrong("no array here", store=self._store.url, path=f"/{self._join(path)}")

    @stepwise
    def get_group(self, path: str) -> Steps[Group]:
        """The group at `path`. Raises `GroupNotFoundError`, also when an array is there."""
        found = yield from steps_of(Group.get)(self, path)
        if isinstance(found, Group):
            return found
        wrong = GroupNotFoundError if found is None else ArrayInsteadError
        raise wrong("no group here", store=self._store.url, path=f"/{self._join(path)}")

    @stepwise
    def __contains__(self, path: object) -> Steps[bool]:
        return isinstance(path, str) and (yield from self._reading_member(self._join(path))) is not None

    @stepwise
    def __delitem__(self, path: str) -> Steps[None]:
        """Remove a member and everything below it. Raises `KeyError`."""
        self._will_change()
        if not (yield from steps_of(Group.__contains__)(self, path)):
            raise KeyError(f"no member {path!r} in group {self.name}")
        yield from metadata_io.deleting(self._store, self._join(path))

    @stepwise
    def __setitem__(self, name: str, value: Any) -> Steps[None]:
        """Store an array-like as the array `name`, replacing a member of that name."""
        yield from steps_of(Group.create_array)(self, name, data=value, overwrite=True)

    def _reading_below(self, max_depth: int | None) -> Steps[list[tuple[str, NodeMetadata]]]:
        """Path and metadata of every member down to `max_depth`, level by level; of consolidated metadata if it is used."""
        prefix, depth = prefix_of(self._path), max_depth
        if self._metadata.consolidated_metadata is not None:
            held = self._metadata.consolidated_metadata
            paths = held.children("") if depth == 0 else held.paths()
            return [
                (prefix + path, held.parsed(path, parse_node))
                for path in paths
                if depth is None or path.count("/") <= depth
            ]
        zarr_format = self._metadata.zarr_format
        names = formats.KEYS[zarr_format].all
        below = yield from walking_below(self._store, Entry(self._path, {}), zarr_format, names, max_depth=max_depth)
        read = [(entry.path, metadata_io.parsed(self._store, entry, zarr_format)) for entry in below]
        return [(path, metadata) for path, metadata in read if metadata is not None]

    def _children(self) -> Steps[list[str]]:
        """Names of the direct members, sorted."""
        start = len(prefix_of(self._path))
        return sorted(path[start:] for path, _ in (yield from self._reading_below(0)))

    @stepwise
    def non_members(self) -> Steps[tuple[str, ...]]:
        """Names with something stored below them that are no members: no document of this format describes them.

        Zarr v3.1 has no implicit groups, so what is below such a name is no part of this hierarchy.
        """
        prefix = prefix_of(self._path)
        (listing,) = yield [ask(self._store, "list_dir", prefix)]
        members = set((yield from self._children()))
        return tuple(sorted({child[len(prefix) : -1] for child in listing.prefixes} - members))

    @stepwise
    def members(
        self, max_depth: int | None = 0, *, use_consolidated_for_children: bool = True
    ) -> Steps[tuple[tuple[str, Array | Group], ...]]:
        """``(path relative to this group, member)`` of all members down to `max_depth` (0: direct; ``None``: all).

        Raises `ValueError` for a negative `max_depth`.
        """
        return (yield from self._walking(max_depth))

    def _walking(self, max_depth: int | None) -> Steps[tuple[tuple[str, Array | Group], ...]]:
        """All members down to `max_depth`, those of a group before those of each of its groups."""
        if max_depth is not None and max_depth < 0:
            raise ValueError(f"max_depth must be None or at least 0, got {max_depth}")
        below: dict[str, list[tuple[str, Array | Group]]] = {}
        for path, metadata in (yield from self._reading_below(max_depth)):
            above, _, name = path.rpartition("/")
            below.setdefault(above, []).append((name, self._open(path, metadata)))
        for members in below.values():
            members.sort(key=itemgetter(0))
        return tuple(_in_order(self, below))

    @stepwise
    def nmembers(self, max_depth: int | None = 0) -> Steps[int]:
        """Number of members down to `max_depth`."""
        return len((yield from self._walking(max_depth)))

    def __iter__(self) -> Iterator[str]:
        return iter(finish(self._children()))

    def __len__(self) -> int:
        return len(finish(self._children()))

    # -- changing ------------------------------------------------------------------------------------------------------

    def _require_writable(self) -> None:
        if self.read_only:
            raise ReadOnlyError(
                "the group is read-only", store=self._store.url, path=self.name, hint="Open it with mode='r+'"
            )

    def _will_change(self) -> None:
        """Check that members may be changed; from then on they are read from the store, not from a consolidated copy."""
        self._require_writable()
        with CHANGING:
            self._metadata, self._state = self._metadata.with_(consolidated_metadata=None), object()

    @stepwise
    def update_attributes(self, new_attributes: dict[str, Any]) -> Steps[Group]:
        """Set several attributes in one write; returns the group."""
        yield from steps_of(Attributes.update)(self.attrs, new_attributes)
        return self

    @stepwise
    def refresh(self) -> Steps[None]:
        """Read the metadata anew, consolidated metadata included where it was used."""
        done = False
        while not done:
            state, before = self._state, self._metadata
            node = yield from metadata_io.requiring(self._store, self._path, before.zarr_format, GroupMetadata)
            assert isinstance(node, GroupMetadata)
            with CHANGING:
                if done := self._state is state:
                    self._metadata, self._state = node, object()
        if before.consolidated_metadata is not None:
            self._with_consolidated(None)

    def _with_consolidated(self, use: bool | str | None, known: Mapping[str, Buffer | None] | None = None) -> Group:
        """Use consolidated metadata: if it is there (``None``), or raise (``True``), or not at all (``False``).

        `known`: values that were read already, by key.
        """
        from tessarr.core.stored.consolidated import read_consolidated

        if use is False or (use is None and not self._store.supports_consolidated_metadata):
            return self
        key = use if isinstance(use, str) else None
        found = read_consolidated(self._store, self._path, self._metadata, key, known or {})
        if found is None and use:
            raise ValueError(f"group {self.name} of {self._store.url} has no consolidated metadata")
        with CHANGING:
            self._metadata, self._state = self._metadata.with_(consolidated_metadata=found), object()
        return self

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in self.__dict__.items() if name not in ("_state", "_attributes_order")}
        return {**kept, "given": self._store.given}

    @stepwise
    def create_group(
        self, name: str, overwrite: bool = False, *, attributes: Mapping[str, Any] | None = None
    ) -> Steps[Group]:
        """Create a group below this one. Raises `ContainsGroupError` or `ContainsArrayError`."""
        from tessarr.core.open import create_group

        self._will_change()
        place: dict[str, Any] = {"path": self._join(name), "zarr_format": self.zarr_format}
        return (yield from steps_of(create_group)(self._store, overwrite=overwrite, attributes=attributes, **place))

    @stepwise
    def require_group(self, name: str, overwrite: bool = False, **kwargs: Any) -> Steps[Group]:
        """The group `name`, created if it is missing. Raises `ContainsArrayError` when an array is there."""
        found = None if overwrite else (yield from self._getting(name))
        if found is None:
            return (yield from steps_of(Group.create_group)(self, name, overwrite=overwrite, **kwargs))
        if not isinstance(found, Group):
            raise ContainsArrayError("an array is in the way", store=self._store.url, path=f"/{self._join(name)}")
        return found

    def move(self, source: str, dest: str) -> None:
        """Move a member to another path below this group; its keys are copied, then the old ones removed."""
        from tessarr.core.copy import move_node

        self._will_change()
        move_node(self._store, self._join(source), self._join(dest))

    # -- telling -------------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<Group {self._store.url.rstrip('/')}{self.name if self._path else ''}>"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Group)
            and self._path == other._path
            and (self._store is other._store or self._store.url == other._store.url)
        )

    def __hash__(self) -> int:
        return hash((self._store.url, self._path))

    @classmethod
    def open(cls, store: Any, zarr_format: int | None = None) -> Group:
        """Open the group at `store`; see `tessarr.open_group`."""
        from tessarr.core.open import open_group

        return open_group(store, mode="r+", zarr_format=zarr_format)

    @classmethod
    def from_dict(cls, store_path: Any, data: Any) -> Group:
        """A group with the metadata `data` (`GroupMetadata` or one document); nothing is read or written."""
        from tessarr.core.creation.from_metadata import group_from_document

        return group_from_document(store_path, data if isinstance(data, Mapping) else data.to_dict())

    @classmethod
    def from_store(
        cls, store: Any, *, attributes: Mapping[str, Any] | None = None, zarr_format: int = 3, overwrite: bool = False
    ) -> Group:
        """Create a group at `store`; see `tessarr.create_group`."""
        from tessarr.core.open import create_group

        return create_group(store, attributes=attributes, zarr_format=zarr_format, overwrite=overwrite)

    @property
    def async_group(self) -> AsyncGroup:
        """The same group with an asynchronous surface."""
        from tessarr.core.asynchronous.classes import AsyncGroup

        return AsyncGroup(self)

    _async_group = async_group

    getitem_async = twin(__getitem__)
    contains_async = twin(__contains__)
    delitem_async = twin(__delitem__)
    setitem_async = twin(__setitem__)
    get_async = twin(get)
    get_array_async = twin(get_array)
    get_group_async = twin(get_group)
    non_members_async = twin(non_members)
    members_async = twin(members)
    nmembers_async = twin(nmembers)
    create_group_async = twin(create_group)
    require_group_async = twin(require_group)
    update_attributes_async = twin(update_attributes)
    refresh_async = twin(refresh)
    move_async = twin(move)
    info_complete_async = twin(info_complete)


def _in_order(
    group: Group, below: Mapping[str, Sequence[tuple[str, Array | Group]]]
) -> Iterator[tuple[str, Array | Group]]:
    """Members of a group, then those of each of its groups, with paths relative to it."""
    yield from below.get(group.path, ())
    for name, member in below.get(group.path, ()):
        if isinstance(member, Group):
            yield from ((f"{name}/{path}", node) for path, node in _in_order(member, below))
