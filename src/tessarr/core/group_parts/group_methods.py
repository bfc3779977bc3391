"""Methods of a group that call only its members and `create_array`: iteration by kind, trees, shorthands, old names."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, Unpack

import numpy.typing as npt

from tessarr.common.warn import warn_as_zarr_python
from tessarr.core.array import Array
from tessarr.core.asynchronous.sans_io import async_variant, sans_io
from tessarr.core.creation.like import like
from tessarr.core.group_parts.array_creation import ArrayCreation, fits
from tessarr.core.info import group_info
from tessarr.core.stored.create_nodes import create_nodes
from tessarr.core.tree import TreeView
from tessarr.dtypes.parse import DTypeLike
from tessarr.errors import ZarrDeprecationWarning
from tessarr.types import AnyArray, ShapeLike

if TYPE_CHECKING:
    from tessarr.core.creation.arguments import (
        DatasetOptions,
        FilledOptions,
        MemberOptions,
        RequireDatasetOptions,
        ShapedOptions,
    )
    from tessarr.core.group import Group
    from tessarr.core.streams.follow import Follower, FollowOptions

P = ParamSpec("P")
R = TypeVar("R")


def _listing(function: Callable[P, Iterator[R]]) -> Callable[P, Coroutine[object, object, list[R]]]:
    """Make the async variant of a method that returns an iterator: the same items, as a list."""

    @functools.wraps(function)
    def listed(*args: P.args, **kwargs: P.kwargs) -> list[R]:
        return list(function(*args, **kwargs))

    made = async_variant(listed)
    made.__doc__ = f"List the items of `{function.__name__}` asynchronously."
    return made


class GroupMethods(ArrayCreation):
    """Iterate over members by kind, draw trees, create arrays by shorthands and old names. Base of `Group`."""

    # -- by kind -----------------------------------------------------------------------------------------------------

    def keys(self) -> Iterator[str]:
        """Iterate over the names of the members."""
        return iter(self)

    def values(self) -> Iterator[Array | Group]:
        """Iterate over the members."""
        return (node for _, node in self.members())

    def items(self) -> Iterator[tuple[str, Array | Group]]:
        """Iterate over ``(name, member)``."""
        return iter(self.members())

    def groups(self) -> Iterator[tuple[str, Group]]:
        """Iterate over ``(name, subgroup)``."""
        return ((name, node) for name, node in self.members() if isinstance(node, self._group))

    def group_keys(self) -> Iterator[str]:
        """Iterate over the names of the subgroups."""
        return (name for name, _ in self.groups())

    def group_values(self) -> Iterator[Group]:
        """Iterate over the subgroups."""
        return (node for _, node in self.groups())

    def arrays(self, recurse: bool = False) -> Iterator[tuple[str, Array]]:
        """Iterate over ``(name, array)``; with `recurse` over arrays at any depth, each with the last name of its path."""
        found = self.members(None if recurse else 0)
        return ((node.basename if recurse else name, node) for name, node in found if isinstance(node, Array))

    def array_keys(self, recurse: bool = False) -> Iterator[str]:
        """Iterate over the names of the arrays."""
        return (name for name, _ in self.arrays(recurse))

    def array_values(self) -> Iterator[Array]:
        """Iterate over the arrays."""
        return (node for _, node in self.arrays())

    def tree(
        self, expand: bool | None = None, level: int | None = None, *, max_nodes: int = 500, plain: bool = False
    ) -> TreeView:
        """Draw the hierarchy below this group, `level` levels deep, with at most `max_nodes` nodes."""
        return TreeView(self, level=level, max_nodes=max_nodes, plain=plain)

    # -- creating ------------------------------------------------------------------------------------------------------

    def require_groups(self, *names: str) -> tuple[Group, ...]:
        """Open several groups, creating those that are missing."""
        return tuple(self.require_group(name) for name in names)

    def create_groups(self, *names: str, overwrite: bool = False) -> tuple[Group, ...]:
        """Create several groups."""
        return tuple(self.create_group(name, overwrite=overwrite) for name in names)

    def create_hierarchy(self, nodes: Mapping[str, object], *, overwrite: bool = False) -> Iterator[tuple[str, Any]]:
        """Create nodes from their metadata, by path below this group; see `tessarr.create_hierarchy`."""
        for path, whole, metadata in create_nodes(self._store, self._path, nodes, overwrite=overwrite):
            yield path, self._group._of(self._store, whole, metadata)

    def array(self, name: str, data: npt.ArrayLike | None = None, **kwargs: Unpack[ShapedOptions]) -> Array:
        """Create an array from `data`, with the keywords of `tessarr.create`."""
        warn_as_zarr_python("Use Group.create_array instead.", ZarrDeprecationWarning)
        return self.create(name, data=data, **kwargs)

    def empty(self, name: str, shape: ShapeLike, **kwargs: Unpack[FilledOptions]) -> Array:
        """Create an array without writing values; elements read as 0."""
        return self.create(name, shape=shape, **kwargs)

    def zeros(self, name: str, shape: ShapeLike, **kwargs: Unpack[FilledOptions]) -> Array:
        """Create an array of zeros."""
        kwargs.setdefault("fill_value", 0)
        return self.create(name, shape=shape, **kwargs)

    def ones(self, name: str, shape: ShapeLike, **kwargs: Unpack[FilledOptions]) -> Array:
        """Create an array of ones."""
        kwargs.setdefault("fill_value", 1)
        return self.create(name, shape=shape, **kwargs)

    def full(self, name: str, fill_value: object, *, shape: ShapeLike, **kwargs: Unpack[MemberOptions]) -> Array:
        """Create an array of `fill_value`."""
        return self.create(name, shape=shape, fill_value=fill_value, **kwargs)

    def empty_like(self, name: str, data: object, **kwargs: Unpack[ShapedOptions]) -> Array:
        """Create an array with the shape, chunks and dtype of `data`."""
        return self.create(name, **self._like(data, kwargs))

    def zeros_like(self, name: str, data: object, **kwargs: Unpack[ShapedOptions]) -> Array:
        """Create an array of zeros with the shape, chunks and dtype of `data`."""
        return self.create(name, **self._like(data, {"fill_value": 0, **kwargs}))

    def ones_like(self, name: str, data: object, **kwargs: Unpack[ShapedOptions]) -> Array:
        """Create an array of ones with the shape, chunks and dtype of `data`."""
        return self.create(name, **self._like(data, {"fill_value": 1, **kwargs}))

    def full_like(self, name: str, data: object, **kwargs: Unpack[ShapedOptions]) -> Array:
        """Create an array of one value with the shape, chunks and dtype of `data`."""
        return self.create(name, **self._like(data, kwargs))

    def _like(self, data: object, given: Mapping[str, object]) -> dict[str, Any]:
        """Take keywords of `create` from an array-like, unless given; the format is the group's."""
        return like(data, self.zarr_format, given)

    # -- older names -----------------------------------------------------------------------------------------------------

    def info_items(self) -> list[tuple[str, str]]:
        """Return the lines of `Group.info` as ``(label, value)`` pairs."""
        return group_info(self).items

    def create_dataset(self, name: str, **kwargs: Unpack[DatasetOptions]) -> Array:
        """Create an array as `create` does, under the name of h5py and zarr-python 2."""
        warn_as_zarr_python("Use Group.create_array instead.", ZarrDeprecationWarning)
        return self.create(name, **kwargs)

    def require_dataset(
        self,
        name: str,
        shape: ShapeLike,
        dtype: DTypeLike | None = None,
        exact: bool = False,
        **kwargs: Unpack[RequireDatasetOptions],
    ) -> Array:
        """Open or create an array as h5py and zarr-python 2 do: the existing array must be able to hold `dtype` safely."""
        warn_as_zarr_python("Use Group.require_array instead.", ZarrDeprecationWarning)
        given = dtype if exact else None
        found = self.require_array(name, shape=shape, dtype=dtype if name not in self else given, exact=exact, **kwargs)
        if dtype is not None and not exact and not fits(dtype, found):
            raise TypeError(f"Incompatible dtype: array {found.name} has {found.dtype}, which cannot hold {dtype}")
        return found

    def pop(self, name: str, *default: object) -> Any:
        """Remove a member and return the node: its metadata stays readable, its chunks are deleted."""
        if default and name not in self:
            return default[0]
        found = self[name]
        del self[name]
        return found

    def popitem(self) -> tuple[str, Array | Group]:
        """Remove a member and return ``(name, node)``. Raises `KeyError` for an empty group."""
        for name in self:
            return name, self.pop(name)
        raise KeyError("the group has no members")

    def setdefault(self, name: str, default: Any = None) -> Array | Group:
        """Open the member `name`; if it is missing, store `default` as an array."""
        if name not in self:
            self[name] = default
        return self[name]

    def update(self, *members: Any, **named: Any) -> None:
        """Store several array-likes."""
        for name, value in dict(*members, **named).items():
            self[name] = value

    def clear(self) -> None:
        """Remove all members."""
        for name in [*self]:
            del self[name]

    def visitkeys(self, func: Callable[[str], R | None]) -> R | None:
        """Call ``func(path)`` for every node below until it returns something other than ``None``."""
        return self.visititems(lambda path, _: func(path))

    visit = visitkeys

    def visitvalues(self, func: Callable[[Array | Group], R | None]) -> R | None:
        """Call ``func(node)`` for every node below until it returns something other than ``None``."""
        return self.visititems(lambda _, node: func(node))

    def visititems(self, func: Callable[[str, Array | Group], R | None]) -> R | None:
        """Call ``func(path, node)`` for every node below until it returns something other than ``None``."""
        for path, node in sorted(self.members(None), key=lambda item: item[0]):
            result = func(path, node)
            if result is not None:
                return result
        return None

    @sans_io
    async def follow(self, names: Sequence[str], **options: Unpack[FollowOptions]) -> Follower[dict[str, AnyArray]]:
        """Iterate over the rows of the arrays `names` together: ``(rows, {name: block})``, up to their common length.

        `options` and errors are those of `Array.follow`; `KeyError` for a missing member.

        >>> import tessarr
        >>> group = tessarr.group()
        >>> t, u = group.create_array("t", data=[1, 2, 3]), group.create_array("u", data=[10, 20])
        >>> [(rows.stop, blocks["t"].tolist(), blocks["u"].tolist()) for rows, blocks in group.follow(["t", "u"], timeout=0)]
        [(2, [1, 2], [10, 20])]
        """
        from tessarr.core.streams.follow_group import GroupFollower, members_steps

        arrays = await members_steps(self, names)
        return await GroupFollower(arrays, options).begin_steps()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the group has no attribute and no member {name!r}") from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(name for name in self if name.isidentifier())]

    def _ipython_key_completions_(self) -> list[str]:
        return sorted(self)

    keys_async = _listing(keys)
    values_async = _listing(values)
    items_async = _listing(items)
    groups_async = _listing(groups)
    group_keys_async = _listing(group_keys)
    group_values_async = _listing(group_values)
    arrays_async = _listing(arrays)
    array_keys_async = _listing(array_keys)
    array_values_async = _listing(array_values)
    follow_async = async_variant(follow)
    tree_async = async_variant(tree)
    require_groups_async = async_variant(require_groups)
    create_groups_async = async_variant(create_groups)
    create_hierarchy_async = _listing(create_hierarchy)
    array_async = async_variant(array)
    empty_async = async_variant(empty)
    zeros_async = async_variant(zeros)
    ones_async = async_variant(ones)
    full_async = async_variant(full)
    empty_like_async = async_variant(empty_like)
    zeros_like_async = async_variant(zeros_like)
    ones_like_async = async_variant(ones_like)
    full_like_async = async_variant(full_like)
    create_dataset_async = async_variant(create_dataset)
    require_dataset_async = async_variant(require_dataset)
    pop_async = async_variant(pop)
    popitem_async = async_variant(popitem)
    setdefault_async = async_variant(setdefault)
    update_async = async_variant(update)
    clear_async = async_variant(clear)
    visititems_async = async_variant(visititems)
    visitkeys_async = visit_async = async_variant(visitkeys)
    visitvalues_async = async_variant(visitvalues)
