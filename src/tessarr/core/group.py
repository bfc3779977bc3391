"""`Group`: a node that holds arrays and groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self

from tessarr.core import nodes
from tessarr.core.attributes import Attributes
from tessarr.core.creation import array_config
from tessarr.core.grouping import Grouping
from tessarr.core.node import Node
from tessarr.core.nodes import NodeMetadata
from tessarr.core.twins import twin
from tessarr.errors import (
    ArrayNotFoundError,
    ContainsArrayError,
    ContainsGroupError,
    GroupNotFoundError,
    ReadOnlyError,
    UnsupportedOperationError,
)
from tessarr.metadata.group import GroupMetadata
from tessarr.stores.base import Store
from tessarr.stores.path import normalize_path
from tessarr.types import Buffer

if TYPE_CHECKING:
    from tessarr.core.aio import AsyncGroup
    from tessarr.core.array import Array
    from tessarr.core.info import GroupInfo

Member = "Array | Group"


class Group(Node, Grouping):
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
        from tessarr.core.hierarchy import open_group

        mode = "r" if read_only else None if getattr(store, "read_only", False) else "r+"
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

    def info_complete(self) -> GroupInfo:
        """`info` with the number of members."""
        from tessarr.core.info import group_info

        return group_info(self, complete=True)

    # -- members -----------------------------------------------------------------------------------------------------

    def _join(self, path: str) -> str:
        relative = normalize_path(path)
        return "/".join(part for part in (self._path, relative) if part)

    def _open(self, path: str, metadata: NodeMetadata) -> Array | Group:
        if isinstance(metadata, GroupMetadata):
            consolidated = self._metadata.consolidated_metadata
            if consolidated is not None:
                below = consolidated.under(path[len(nodes.prefix_of(self._path)) :])
                metadata = metadata.with_(consolidated_metadata=below)
            return Group._make(self._store, path, metadata, read_only=self._read_only)
        from tessarr.core.array import Array

        chosen = array_config(None)
        order = metadata.order if metadata.zarr_format != 3 else chosen.order
        return Array._make(self._store, path, metadata, chosen.options, read_only=self._read_only, order=order)

    def _read_member(self, path: str) -> NodeMetadata | None:
        consolidated = self._metadata.consolidated_metadata
        if consolidated is not None:
            relative = path[len(nodes.prefix_of(self._path)) :]
            node: NodeMetadata | None = consolidated.metadata(relative)
            return node
        return nodes.read_node(self._store, path, self._metadata.zarr_format)

    def __getitem__(self, path: str) -> Array | Group:
        """The member at `path`, which may lead down several groups. Raises `KeyError`."""
        if not isinstance(path, str):
            raise TypeError(f"a member's path is a string, got {path!r}")
        whole = self._join(path)
        metadata = self._read_member(whole)
        if metadata is None:
            raise KeyError(f"no member {path!r} in group {self.name}")
        return self._open(whole, metadata)

    def get(self, path: str, default: Any = None) -> Any:
        """The member at `path`, or `default`."""
        try:
            return self[path]
        except KeyError:
            return default

    def get_array(self, path: str) -> Array:
        """The array at `path`. Raises `ArrayNotFoundError`, also when a group is there."""
        from tessarr.core.array import Array

        found = self.get(path)
        if isinstance(found, Array):
            return found
        raise ArrayNotFoundError("no array here", store=self._store.url, path=f"/{self._join(path)}")

    def get_group(self, path: str) -> Group:
        """The group at `path`. Raises `GroupNotFoundError`, also when an array is there."""
        found = self.get(path)
        if isinstance(found, Group):
            return found
        raise GroupNotFoundError("no group here", store=self._store.url, path=f"/{self._join(path)}")

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and self._read_member(self._join(path)) is not None

    def __delitem__(self, path: str) -> None:
        """Remove a member and everything below it. Raises `KeyError`."""
        self._will_change()
        if path not in self:
            raise KeyError(f"no member {path!r} in group {self.name}")
        nodes.delete_node(self._store, self._join(path))

    def __setitem__(self, name: str, value: Any) -> None:
        """Store an array-like as the array `name`, replacing a member of that name."""
        self.create_array(name, data=value, overwrite=True)

    def _children(self) -> Iterator[tuple[str, NodeMetadata]]:
        """Names and metadata of the direct members, by name."""
        consolidated = self._metadata.consolidated_metadata
        if consolidated is not None:
            for name in sorted(consolidated.children("")):
                yield name, consolidated.metadata(name)
            return
        prefix = nodes.prefix_of(self._path)
        if not self._store.supports_listing:
            raise UnsupportedOperationError(
                "this store cannot list, so the members of a group are unknown",
                store=self._store.url,
                path=self.name,
                hint="Open the group by its consolidated metadata, or name the member",
            )
        names = [child[len(prefix) : -1] for child in self._store.list_dir(prefix).prefixes]
        # "__" is for extensions in v3; a listing that names the prefix itself gives "", which is nobody
        hidden = "__" if self._metadata.zarr_format == 3 else "\0"
        names = [name for name in names if name and not name.startswith(hidden)]
        found = nodes.read_nodes(self._store, [prefix + name for name in names], self._metadata.zarr_format)
        yield from ((name, metadata) for name, metadata in zip(names, found, strict=True) if metadata is not None)

    def non_members(self) -> tuple[str, ...]:
        """Names with something stored below them that are no members: no document of this format describes them.

        Zarr v3.1 has no implicit groups, so what is below such a name is no part of this hierarchy.
        """
        prefix = nodes.prefix_of(self._path)
        return tuple(sorted({child[len(prefix) : -1] for child in self._store.list_dir(prefix).prefixes} - {*self}))

    def members(
        self, max_depth: int | None = 0, *, use_consolidated_for_children: bool = True
    ) -> tuple[tuple[str, Array | Group], ...]:
        """``(path relative to this group, member)`` of all members down to `max_depth` (0: direct; ``None``: all)."""
        return tuple(self._walk(max_depth))

    def _walk(self, max_depth: int | None) -> Iterator[tuple[str, Array | Group]]:
        prefix = nodes.prefix_of(self._path)
        below = []
        for name, metadata in self._children():
            member = self._open(prefix + name, metadata)
            yield name, member
            if isinstance(member, Group):
                below.append((name, member))
        if max_depth is None or max_depth > 0:
            deeper = None if max_depth is None else max_depth - 1
            for name, member in below:
                for path, node in member._walk(deeper):
                    yield f"{name}/{path}", node

    def nmembers(self, max_depth: int | None = 0) -> int:
        """Number of members down to `max_depth`."""
        return sum(1 for _ in self._walk(max_depth))

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self._children())

    def __len__(self) -> int:
        return sum(1 for _ in self._children())

    # -- changing ------------------------------------------------------------------------------------------------------

    def _require_writable(self) -> None:
        if self.read_only:
            raise ReadOnlyError(
                "the group is read-only", store=self._store.url, path=self.name, hint="Open it with mode='r+'"
            )

    def _will_change(self) -> None:
        """Check that members may be changed; from then on they are read from the store, not from a consolidated copy."""
        self._require_writable()
        self._metadata = self._metadata.with_(consolidated_metadata=None)

    def _change_attributes(self, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        self._require_writable()
        metadata = nodes.change_attributes(self._store, self._path, self._metadata, change)
        assert isinstance(metadata, GroupMetadata)
        self._metadata = metadata

    def update_attributes(self, new_attributes: dict[str, Any]) -> Group:
        """Set several attributes in one write; returns the group."""
        self.attrs.update(new_attributes)
        return self

    def refresh(self) -> None:
        """Read the metadata anew, consolidated metadata included where it was used."""
        node = nodes.require_node(self._store, self._path, self._metadata.zarr_format, GroupMetadata)
        assert isinstance(node, GroupMetadata)
        consolidated = self._metadata.consolidated_metadata is not None
        self._metadata = node
        if consolidated:
            self._with_consolidated(None)

    def _with_consolidated(self, use: bool | str | None, known: Mapping[str, Buffer | None] | None = None) -> Group:
        """Use consolidated metadata: if it is there (``None``), or raise (``True``), or not at all (``False``).

        `known`: values that were read already, by key.
        """
        from tessarr.core.consolidation import read_consolidated

        if use is False or (use is None and not self._store.supports_consolidated_metadata):
            return self
        key = use if isinstance(use, str) else None
        found = read_consolidated(self._store, self._path, self._metadata, key, known or {})
        if found is None and use:
            raise ValueError(f"group {self.name} of {self._store.url} has no consolidated metadata")
        self._metadata = self._metadata.with_(consolidated_metadata=found)
        return self

    def create_group(self, name: str, *, overwrite: bool = False, attributes: Mapping[str, Any] | None = None) -> Group:
        """Create a group below this one. Raises `ContainsGroupError` or `ContainsArrayError`."""
        from tessarr.core.hierarchy import create_group

        self._will_change()
        return create_group(
            self._store,
            path=self._join(name),
            zarr_format=self.zarr_format,
            overwrite=overwrite,
            attributes=attributes,
        )

    def require_group(self, name: str, *, overwrite: bool = False, **kwargs: Any) -> Group:
        """The group `name`, created if it is missing. Raises `ContainsArrayError` when an array is there."""
        found = None if overwrite else self.get(name)
        if found is None:
            return self.create_group(name, overwrite=overwrite, **kwargs)
        if not isinstance(found, Group):
            raise ContainsArrayError("an array is in the way", store=self._store.url, path=f"/{self._join(name)}")
        return found

    def create_array(self, name: str, *, compressor: Any = None, **kwargs: Any) -> Array:
        """Create an array below this group; the keywords are those of `tessarr.create_array`."""
        from tessarr.core.hierarchy import create_array

        self._will_change()
        if compressor is not None:
            kwargs["compressors"] = compressor
        kwargs.setdefault("zarr_format", self.zarr_format)
        return create_array(self._store, name=self._join(name), **kwargs)

    def create(self, name: str, **kwargs: Any) -> Array:
        """`create_array`, also with the older keywords of `tessarr.create`."""
        from tessarr.core.hierarchy import create

        self._will_change()
        kwargs.setdefault("zarr_format", self.zarr_format)
        return create(store=self._store, path=self._join(name), **kwargs)

    def require_array(self, name: str, *, shape: Any, dtype: Any = None, exact: bool = False, **kwargs: Any) -> Array:
        """The array `name`, created if it is missing.

        Raises `TypeError` when the array there has another shape or a dtype that cannot hold `dtype` (with `exact`:
        another dtype), `ContainsGroupError` when a group is there.
        """
        import numpy as np

        from tessarr.core.array import Array

        found = self.get(name)
        if found is None:
            return self.create(name, shape=shape, dtype=dtype, **kwargs)
        if not isinstance(found, Array):
            raise ContainsGroupError("a group is in the way", store=self._store.url, path=f"/{self._join(name)}")
        wanted = (shape,) if isinstance(shape, int) else tuple(shape)
        if found.shape != wanted:
            raise TypeError(f"array {found.name} has shape {found.shape}, not {wanted}")
        if dtype is not None and (
            found.dtype != np.dtype(dtype) if exact else not np.can_cast(np.dtype(dtype), found.dtype)
        ):
            raise TypeError(f"array {found.name} has dtype {found.dtype}, not {np.dtype(dtype)}")
        return found

    def move(self, source: str, dest: str) -> None:
        """Move a member to another path below this group; its keys are copied, then the old ones removed."""
        from tessarr.core.copying import move_node

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
        from tessarr.core.hierarchy import open_group

        return open_group(store, mode="r+", zarr_format=zarr_format)

    @classmethod
    def from_store(
        cls, store: Any, *, attributes: Mapping[str, Any] | None = None, zarr_format: int = 3, overwrite: bool = False
    ) -> Group:
        """Create a group at `store`; see `tessarr.create_group`."""
        from tessarr.core.hierarchy import create_group

        return create_group(store, attributes=attributes, zarr_format=zarr_format, overwrite=overwrite)

    @property
    def async_group(self) -> AsyncGroup:
        """The same group with an asynchronous surface."""
        from tessarr.core.aio import AsyncGroup

        return AsyncGroup(self)

    _async_group = async_group

    getitem_async = twin(__getitem__)
    contains_async = twin(__contains__)
    delitem_async = twin(__delitem__)
    members_async = twin(members)
    nmembers_async = twin(nmembers)
    create_group_async = twin(create_group)
    require_group_async = twin(require_group)
    create_array_async = twin(create_array)
    require_array_async = twin(require_array)
    update_attributes_async = twin(update_attributes)
    refresh_async = twin(refresh)
    move_async = twin(move)
    info_complete_async = twin(info_complete)
