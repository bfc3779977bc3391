"""`Group`: a node that holds arrays and groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tessarr import registry
from tessarr.common import strict_json
from tessarr.core.asynchronous.sans_io import run_steps
from tessarr.core.group_parts.group_methods import GroupMethods
from tessarr.core.group_parts.members import Members
from tessarr.core.locate import check_chunk_store, format_of_new, locate, requested_format
from tessarr.core.stored import read_nodes
from tessarr.core.stored.create_nodes import create_node_steps
from tessarr.core.stored.parse_cache import parse_document
from tessarr.core.stored.read_nodes import NodeMetadata
from tessarr.errors import NodeTypeValidationError
from tessarr.metadata.group import GroupMetadata as GroupMetadata
from tessarr.stores.base import Store
from tessarr.stores.url import StoreLike
from tessarr.types import JSON, Buffer, ZarrFormat

if TYPE_CHECKING:
    from tessarr.core.asynchronous.async_group import AsyncGroup


class Group(GroupMethods):
    """A node that holds arrays and groups, and attributes; a mapping from names to these members.

    Made by `tessarr.open_group`, `tessarr.create_group` and similar functions; ``Group(store, path)`` opens an existing group.

    >>> import tessarr
    >>> root = tessarr.group()
    >>> z = root.create_array("a/b", shape=(3,), dtype="uint8")
    >>> list(root), list(root["a"])
    (['a'], ['b'])
    """

    def __init__(
        self, store: StoreLike = None, path: str = "", *, read_only: bool | None = None, **legacy: object
    ) -> None:
        """Open the group at `path` of `store` (any store-like value). zarr-python 2's keywords are accepted, without effect."""
        mode = "r" if read_only else None if getattr(store, "read_only", False) else "r+"
        held = getattr(store, "_node", store)  # unwraps an `AsyncGroup`
        if isinstance(held, Group) and not path:
            self.__dict__.update(held.__dict__)
            return
        where, here, mode = locate(store, path or None, mode)
        check_chunk_store(where, legacy.get("chunk_store"))
        opened = run_steps(Group._open_steps(where, here, requested_format(store, None), mode))
        self.__dict__.update(opened.__dict__)

    @classmethod
    async def _open_steps(
        cls,
        store: Store,
        path: str,
        zarr_format: ZarrFormat | None,
        mode: str,
        use_consolidated: bool | str | None = None,
    ) -> Group:
        """Open the group that must be at `path`. See `tessarr.open_group`."""
        wanted = read_nodes.key_of_consolidated(store, path, zarr_format, use_consolidated)
        found, beside = await read_nodes.read_node_and_key_steps(store, path, zarr_format, GroupMetadata, wanted)
        found = await read_nodes.expect_kind_steps(found, store, path, zarr_format, GroupMetadata)
        opened = Group._opened(store, path, found, mode, use_consolidated, beside)
        return opened._with_format_found_at(path if zarr_format is None else None)

    @classmethod
    def _opened(
        cls,
        store: Store,
        path: str,
        metadata: NodeMetadata,
        mode: str,
        use_consolidated: bool | str | None,
        beside: Mapping[str, Buffer | None],
    ) -> Group:
        """Make a group from metadata that was read; `beside`: key → value read in the same request."""
        assert isinstance(metadata, GroupMetadata)
        made = Group._make(store, path, metadata, read_only=mode == "r")
        return made._with_consolidated(use_consolidated, beside)

    @classmethod
    async def _create_steps(
        cls, store: Store, path: str, zarr_format: ZarrFormat, attributes: Mapping[str, object] | None, overwrite: bool
    ) -> Group:
        """Create a group. See `tessarr.create_group`."""
        metadata = GroupMetadata(zarr_format=zarr_format, attributes=strict_json.plain(dict(attributes or {})))
        await create_node_steps(store, path, metadata, overwrite=overwrite)
        return Group._make(store, path, metadata, read_only=False)

    @classmethod
    def open(cls, store: StoreLike, zarr_format: int | None = None) -> Group:
        """Open the group at `store`; see `tessarr.open_group`."""
        where, here, mode = locate(store, None, None)
        existing = "r" if mode == "r" else "r+"
        return run_steps(Group._open_steps(where, here, requested_format(store, zarr_format), existing))

    @classmethod
    def from_dict(cls, store_path: StoreLike, data: GroupMetadata | Mapping[str, JSON]) -> Group:
        """Make a group with the metadata `data` (`GroupMetadata` or one document), without reading or writing."""
        where, here, _ = locate(store_path, None, None)
        document = data if isinstance(data, Mapping) else data.to_dict()
        if document.get("zarr_format", 3) == 3:
            document = {"node_type": "group", **document}
        metadata = parse_document(document, group=True)
        if not isinstance(metadata, GroupMetadata):
            raise NodeTypeValidationError("the document describes an array, not a group")
        return Group._make(where, here, metadata, read_only=False)

    @classmethod
    def from_store(
        cls,
        store: StoreLike,
        *,
        attributes: Mapping[str, object] | None = None,
        zarr_format: int = 3,
        overwrite: bool = False,
    ) -> Group:
        """Create a group at `store`; see `tessarr.create_group`."""
        where, here, _ = locate(store, None, "w" if overwrite else None)
        number = format_of_new(store, zarr_format)
        return run_steps(Group._create_steps(where, here, number, attributes, overwrite))

    @property
    def async_group(self) -> AsyncGroup:
        """The same group as an `AsyncGroup`."""
        return self._asynchronous()

    _async_group = async_group

    def _asynchronous(self) -> AsyncGroup:
        wrapped: AsyncGroup = registry.higher("tessarr.AsyncGroup")(self)
        return wrapped

    # -- representation and comparison -----------------------------------------------------------------------------------

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


Members._group = Group
