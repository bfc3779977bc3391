"""User attributes: a mapping that stores every change, also of nested objects and lists."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Generic, Self, SupportsIndex, TypeAlias, TypeVar

from tessarr.common import strict_json
from tessarr.core.asynchronous.sans_io import async_variant, run_steps, sans_io, steps_of
from tessarr.errors import ConflictError
from tessarr.settings import config as settings

if TYPE_CHECKING:
    from _typeshed import SupportsKeysAndGetItem

    from tessarr.core.array import Array
    from tessarr.core.group_parts.members import Members

    Items: TypeAlias = SupportsKeysAndGetItem[str, object] | Iterable[tuple[str, object]]


Value: TypeAlias = Any
"""The value of an attribute: of JSON, nested objects and lists live; with the setting for it as it was given."""


class Attributes(MutableMapping[str, Value]):
    """The user attributes of an array or group.

    Reading gives the values as of when the node was opened or last changed through this object; `refresh` reloads
    them. Writing changes the stored document, under the store's lock, and leaves attributes that others wrote alone.
    A nested object or list is live: changing it stores the whole attribute, unless another writer has changed that since
    it was read, which is a `ConflictError`. `put` and `clear` replace all attributes.

    >>> import tessarr
    >>> group = tessarr.group()
    >>> group.attrs["sensor"] = {"name": "A", "gains": [1, 2]}
    >>> group.attrs["sensor"]["gains"].append(3)
    >>> group.attrs.asdict()
    {'sensor': {'name': 'A', 'gains': [1, 2, 3]}}
    """

    def __init__(self, node: Array | Members) -> None:
        self._node = node

    @property
    def _values(self) -> dict[str, Value]:
        return self._node._metadata.attributes

    def __getitem__(self, name: str) -> Value:
        return _live(self._current(name), self._replacer(name))

    def _replacer(self, name: str) -> Save:
        """Make what stores an attribute as a whole, as long as the stored one is that which this object holds now."""
        known = self._values[name]

        def replace(value: object) -> None:
            nonlocal known
            new = strict_json.plain(value)

            def change(old: dict[str, object]) -> dict[str, object]:
                if name not in old or _text(old[name]) != _text(known):
                    raise self._changed_meanwhile(name, known, old.get(name))
                return {**old, name: new}

            def change_newer(old: dict[str, object]) -> dict[str, object]:
                return old if name in old and _text(old[name]) == _text(new) else change(old)

            run_steps(self._node._change_attributes_steps(change, change_newer))
            known = new
            self._keep_given({name: value})

        return replace

    def _changed_meanwhile(self, name: str, known: object, stored: object) -> ConflictError:
        return ConflictError(
            f"the attribute {name!r} was changed or deleted after it was read here",
            store=self._node._store.url,
            path=self._node.name,
            expected=known,
            got=stored,
            hint=f"Nothing was changed: call attrs.refresh() and repeat the change; attrs[{name!r}] = … replaces the whole",
        )

    def _current(self, name: str) -> object:
        """Return the value as it was given, with the setting for that while it is the stored one; else as it is stored."""
        value: object = self._values[name]
        given = self._node._given_attributes.get(name)
        return given if given is not None and strict_json.plain(given) == value else value

    def _keep_given(self, given: Mapping[str, object]) -> None:
        if settings.get("zarr_python.given_attributes"):
            self._node._given_attributes = {**self._node._given_attributes, **given}

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __setitem__(self, name: str, value: object) -> None:
        self.update({name: value})

    def __delitem__(self, name: str) -> None:
        if name not in self._values:
            raise KeyError(name)
        self._change(lambda old: {key: value for key, value in old.items() if key != name})

    def pop(self, name: str, *default: object) -> Value:
        """Remove a stored attribute and return its value, which one writer gets; `default` where there is none.

        Raises `KeyError` where there is none, and no `default`.
        """
        if len(default) > 1:
            raise TypeError(f"pop takes a name and one default, got {len(default)} defaults")
        popped: object = None

        def change(old: dict[str, object]) -> dict[str, object]:
            nonlocal popped
            popped = old.pop(name)
            return old

        def change_newer(old: dict[str, object]) -> dict[str, object]:
            return {key: value for key, value in old.items() if key != name}

        try:
            run_steps(self._node._change_attributes_steps(change, change_newer))
        except KeyError:
            if not default:
                raise
            return default[0]
        return _live(strict_json.plain(popped), None)

    def popitem(self) -> tuple[str, Value]:
        """Remove the first attribute, and return its name and its stored value, which one writer gets.

        Raises `KeyError` where there is none, or another writer has removed it.
        """
        if not self._values:
            raise KeyError("there is no attribute")
        name = next(iter(self._values))
        return name, self.pop(name)

    def setdefault(self, name: str, default: object = None) -> Value:
        """Return the value of an attribute; where none is stored, set it to `default` first."""
        if name not in self._values:
            new = strict_json.plain(default)
            self._change(lambda old: old if name in old else {**old, name: new})
            self._keep_given({name: default})
        return self[name]

    @sans_io
    async def update(self, items: Items = (), /, **named: object) -> None:
        """Set several attributes in one write."""
        given = dict(items, **named)
        new = strict_json.plain(given)
        await self._node._change_attributes_steps(lambda old: {**old, **new})
        self._keep_given(given)

    @sans_io
    async def put(self, attributes: Mapping[str, object]) -> None:
        """Replace all attributes in one write. Raises `TypeError` for what JSON cannot hold."""
        given = dict(attributes)
        new = strict_json.plain(given)
        await self._node._change_attributes_steps(lambda old: new)
        self._keep_given(given)

    @sans_io
    async def clear(self) -> None:
        """Remove all attributes in one write."""
        await steps_of(Attributes.put)(self, {})

    def asdict(self) -> dict[str, object]:
        """Return a copy as plain dicts and lists."""
        if settings.get("zarr_python.given_attributes"):
            return {name: deepcopy(self._current(name)) for name in self._values}
        copy: dict[str, object] = strict_json.plain(self._values)
        return copy

    @sans_io
    async def refresh(self) -> None:
        """Reload the attributes from the store."""
        await steps_of(type(self._node).refresh)(self._node)  # type: ignore[arg-type]

    update_async = async_variant(update)
    put_async = async_variant(put)
    clear_async = async_variant(clear)
    refresh_async = async_variant(refresh)

    def _change(self, change: Callable[[dict[str, object]], dict[str, object]]) -> None:
        run_steps(self._node._change_attributes_steps(change))

    def __repr__(self) -> str:
        return f"Attributes({self.asdict()!r})"

    def __eq__(self, other: object) -> bool:
        return self.asdict() == (other.asdict() if isinstance(other, Attributes) else other)

    __hash__ = None  # type: ignore[assignment]


Save: TypeAlias = Callable[[object], None]


def _text(value: object) -> str:
    """Return an attribute as text, which is equal for equal ones, those of NaN included."""
    return json.dumps(value, sort_keys=True)


def _live(value: object, save: Save | None) -> object:
    """Wrap a dict or list so that a change stores the whole attribute; return any other value unchanged."""
    if isinstance(value, dict):
        return _LiveDict(value, save)
    if isinstance(value, tuple) and settings.get("zarr_python.given_attributes"):
        return tuple(_live(item, save) for item in value)
    if isinstance(value, list | tuple):
        return _LiveList(value, save)
    return float(value) if isinstance(value, strict_json.FloatLiteral) else value


T = TypeVar("T")


class _Live(Generic[T]):
    """What nested objects and lists share; `T`: the plain `dict` or `list`."""

    _save_whole: Save | None

    def _plain(self) -> T:
        """Copy the members as they are."""
        raise NotImplementedError

    def _restore(self, before: T) -> None:
        """Put the members back that `_plain` has copied."""
        raise NotImplementedError

    def _save(self, _: object = None) -> None:
        if self._save_whole is not None:  # a copy made by `type(self)(…)` saves nothing
            self._save_whole(self)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        before = self._plain()
        yield
        try:
            self._save()
        except Exception:
            self._restore(before)
            raise

    def __reduce__(self) -> tuple[object, ...]:
        return type(self._plain()), (strict_json.plain(self),)


class _LiveDict(_Live["dict[str, object]"], dict[str, Any]):
    """A nested object: every change stores the whole attribute, and is undone where that fails."""

    def __init__(self, value: Mapping[str, object] = {}, save: Save | None = None) -> None:
        super().__init__({name: _live(item, self._save) for name, item in value.items()})
        self._save_whole = save

    def _plain(self) -> dict[str, object]:
        return dict(self)

    def _restore(self, before: dict[str, object]) -> None:
        super().clear()
        super().update(before)

    def __setitem__(self, name: str, value: object) -> None:
        with self._changing():
            super().__setitem__(name, value)

    def __delitem__(self, name: str) -> None:
        with self._changing():
            super().__delitem__(name)

    def __ior__(self, other: Items) -> Self:  # type: ignore[override,misc]  # as `dict`, whose overloads say the same
        self.update(other)
        return self

    def update(self, items: Items = (), /, **named: object) -> None:
        """Change several members in one write."""
        with self._changing():
            super().update(items, **named)

    def pop(self, name: str, *default: object) -> object:
        """Remove a member and return its value, or `default` where there is none."""
        with self._changing():
            return super().pop(name, *default)

    def popitem(self) -> tuple[str, object]:
        """Remove and return the last member."""
        with self._changing():
            return super().popitem()

    def setdefault(self, name: str, default: object = None) -> object:
        """Return the value of a member; where there is none, set it to `default` first."""
        with self._changing():
            return super().setdefault(name, default)

    def clear(self) -> None:
        """Remove every member."""
        with self._changing():
            super().clear()


class _LiveList(_Live["list[object]"], list[Any]):
    """A nested list: every change stores the whole attribute, and is undone where that fails."""

    def __init__(self, value: Iterable[object] = (), save: Save | None = None) -> None:
        super().__init__(_live(item, self._save) for item in value)
        self._save_whole = save

    def _plain(self) -> list[object]:
        return list(self)

    def _restore(self, before: list[object]) -> None:
        super().clear()
        super().extend(before)

    def __setitem__(self, index: SupportsIndex | slice, value: Any) -> None:
        with self._changing():
            super().__setitem__(index, value)

    def __delitem__(self, index: SupportsIndex | slice) -> None:
        with self._changing():
            super().__delitem__(index)

    def __iadd__(self, items: Iterable[object]) -> Self:  # type: ignore[misc]  # as `list`
        self.extend(items)
        return self

    def __imul__(self, times: SupportsIndex) -> Self:
        with self._changing():
            super().__imul__(times)
        return self

    def append(self, item: object) -> None:
        """Add an item at the end."""
        with self._changing():
            super().append(item)

    def extend(self, items: Iterable[object]) -> None:
        """Add items at the end."""
        with self._changing():
            super().extend(items)

    def insert(self, index: SupportsIndex, item: object) -> None:
        """Insert an item before position `index`."""
        with self._changing():
            super().insert(index, item)

    def pop(self, index: SupportsIndex = -1) -> object:
        """Remove and return the item at position `index`."""
        with self._changing():
            return super().pop(index)

    def remove(self, item: object) -> None:
        """Remove the first item that is equal to `item`."""
        with self._changing():
            super().remove(item)

    def clear(self) -> None:
        """Remove every item."""
        with self._changing():
            super().clear()

    def sort(self, *, key: Callable[[Any], Any] | None = None, reverse: bool = False) -> None:
        """Sort the items, by `key` if it is given."""
        with self._changing():
            super().sort(key=key, reverse=reverse)

    def reverse(self) -> None:
        """Reverse the order of the items."""
        with self._changing():
            super().reverse()
