"""Find where two models differ.

>>> from tessarr.model.node import ArraySpecV2, GroupSpec
>>> def tree(**attributes):
...     array = ArraySpecV2(shape=[1], chunks=[1], dtype="|u1", compressor=None, attributes=attributes)
...     return GroupSpec(zarr_format=2, members={"x": array})
>>> [str(difference) for difference in diff(tree(a=1), tree(a=2))]
['/x attributes/a: 1 → 2']
>>> equal(tree(a=1), tree(a=2)), equal(tree(a=1), tree(a=2), ignore=["attributes"])
(False, True)
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tessarr.model.canonical import canonical
from tessarr.model.fields import attributes_json
from tessarr.types import JSON, JSONObject

Kind = Literal["added", "removed", "changed"]

_ALIASES: dict[str, tuple[str, ...]] = {
    "codecs": ("codecs", "compressor", "filters", "order"),
    "chunks": ("chunks", "chunk_grid"),
    "chunk_keys": ("chunk_key_encoding", "dimension_separator"),
    "data_type": ("data_type", "dtype"),
}
"""Names to ignore in both formats, with their members; any name of a document member works too."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Describe one difference of two models."""

    path: str
    """The node, from the root ("" is the root)."""
    loc: tuple[str | int, ...]
    """Location in the node's document; () when the node as a whole was added, removed, or is of another kind."""
    kind: Kind
    old: JSON
    new: JSON

    def __str__(self) -> str:
        where = " ".join(filter(None, (f"/{self.path}", "/".join(map(str, self.loc)))))
        if self.kind == "changed":
            return f"{where}: {_short(self.old)} → {_short(self.new)}"
        return f"{where}: {self.kind} {_short(self.new if self.kind == 'added' else self.old)}"

    def to_json(self) -> JSONObject:
        """Return the difference as a JSON object."""
        return {"path": self.path, "loc": list(self.loc), "kind": self.kind, "old": self.old, "new": self.new}


def _short(value: JSON) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= 80 else f"{text[:77]}..."


def equal(a: object, b: object, *, ignore: Collection[str] = ()) -> bool:
    """Return whether two models have the same structure, apart from the document members named in `ignore`.

    ``"attributes"``, ``"codecs"`` (compressor, filters and order too), ``"chunks"``, ``"chunk_keys"``, ``"data_type"``,
    ``"shape"``, ``"fill_value"`` and every other name of a document member may be ignored.
    """
    return next(iterate(a, b, ignore=ignore), None) is None


def diff(a: object, b: object, *, ignore: Collection[str] = ()) -> list[Difference]:
    """List every difference between two models, `a` being the old one; `ignore` as in `equal`."""
    return list(iterate(a, b, ignore=ignore))


def iterate(a: object, b: object, *, ignore: Collection[str] = (), path: str = "") -> Iterator[Difference]:
    """Yield the differences of `diff`, for nodes `a` and `b` at `path`."""
    ignored = frozenset(name for item in ignore for name in _ALIASES.get(item, (item,)))
    yield from _nodes(a, b, path, ignored)


def _nodes(a: Any, b: Any, path: str, ignored: frozenset[str]) -> Iterator[Difference]:
    if _kind(a) != _kind(b):
        yield Difference(path, (), "changed", _kind(a), _kind(b))
        return
    one, other = own_json(a), own_json(b)
    if not same(one, other):
        yield from _values(_without(canonical(one), ignored), _without(canonical(other), ignored), path, ())
    if _kind(a) == "group" and "members" not in ignored:
        for name in [*a.members, *(name for name in b.members if name not in a.members)]:
            below = f"{path}/{name}" if path else name
            if name not in b.members:
                yield Difference(below, (), "removed", _kind(a.members[name]), None)
            elif name not in a.members:
                yield Difference(below, (), "added", None, _kind(b.members[name]))
            else:
                yield from _nodes(a.members[name], b.members[name], below, ignored)


def own_json(spec: Any) -> JSONObject:
    """Return a node's document with its attributes, without its members."""
    return {**spec.document(), "attributes": attributes_json(spec.attributes)}


def _kind(spec: object) -> str:
    return "group" if hasattr(spec, "members") else "array"


def _without(document: JSONObject, ignored: frozenset[str]) -> JSONObject:
    return {name: value for name, value in document.items() if name not in ignored}


def _values(a: Any, b: Any, path: str, loc: tuple[str | int, ...]) -> Iterator[Difference]:
    if same(a, b):
        return
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for name in [*a, *(name for name in b if name not in a)]:
            if name not in b:
                yield Difference(path, (*loc, name), "removed", a[name], None)
            elif name not in a:
                yield Difference(path, (*loc, name), "added", None, b[name])
            else:
                yield from _values(a[name], b[name], path, (*loc, name))
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for position, (one, other) in enumerate(zip(a, b, strict=True)):
            yield from _values(one, other, path, (*loc, position))
    else:
        yield Difference(path, loc, "changed", a, b)


def same(a: object, b: object) -> bool:
    """Return whether two JSON values are equal; NaN equals NaN, ``true`` is not ``1``.

    >>> same(float("nan"), float("nan")), same(True, 1), same([1], [1.0]), same({"a": []}, {"a": []})
    (True, False, True, True)
    """
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same(a[name], b[name]) for name in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    return bool(a == b or (a != a and b != b))
