"""Check that a hierarchy has a given structure, with partial models as constraints.

A pattern is a model with only the relevant parts. A part may be a value, a predicate, or ``...`` for any present value;
members not named are unconstrained.

>>> from tessarr import model
>>> volume = {"ndim": 3, "dtype": "float", "dims": ["z", "y", "x"]}
>>> pattern = {"members": {"a": {"kind": "group", "members": {"volume": volume}}}}
>>> hierarchy = model.GroupSpec(members={"a": model.GroupSpec(members={})})
>>> [str(problem) for problem in model.mismatches(hierarchy, pattern)]
['/a/volume: missing']

Besides the members of the documents, a pattern may contain, for both formats: ``kind`` ("array", "group"), ``ndim``,
``dims`` (dimension names, from ``_ARRAY_DIMENSIONS`` in v2), ``chunk_shape``, ``dtype`` (a NumPy type or its name, a v3
name, or one of the families bool, integer, signed, unsigned, float, complex, number, string, bytes, datetime, timedelta,
struct), ``optional`` (members that may be missing) and ``others`` (the pattern of all members not named; ``False``:
there are none).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from tessarr.errors import TessarrError
from tessarr.model.canonical import canonical
from tessarr.model.comparison import diff, own_json, same
from tessarr.model.node import ArraySpec, GroupSpec, Spec
from tessarr.model.valid import NodeProblem
from tessarr.types import AnyDType

Pattern: TypeAlias = "Mapping[str, Any] | Callable[[Any], object] | Spec"
"""A partial model, a predicate over the node, or a whole model."""

_FAMILIES = {
    "bool": "b",
    "integer": "iu",
    "signed": "i",
    "unsigned": "u",
    "float": "f",
    "floating": "f",
    "complex": "c",
    "number": "iufc",
    "string": "UT",
    "bytes": "SV",
    "datetime": "M",
    "timedelta": "m",
}


def like(spec: Spec, pattern: Pattern, *, ignore: tuple[str, ...] = ()) -> bool:
    """Return whether `spec` has the structure that `pattern` describes.

    A whole model as pattern must be equal, apart from the document members in `ignore` (as in `tessarr.model.equal`).
    """
    if isinstance(pattern, ArraySpec | GroupSpec):
        return not diff(spec, pattern, ignore=ignore)
    return next(_mismatches(spec, pattern, ""), None) is None


def mismatches(spec: Spec, pattern: Pattern) -> list[NodeProblem]:
    """List where `spec` violates `pattern`, with the path of every node concerned."""
    return list(_mismatches(spec, pattern, ""))


def _mismatches(node: object, pattern: object, path: str) -> Iterator[NodeProblem]:
    if isinstance(pattern, ArraySpec | GroupSpec):
        yield from (NodeProblem(d.path, d.loc, "value", str(d)) for d in diff(pattern, node))
    elif callable(pattern):
        if not pattern(node):
            yield NodeProblem(path, (), "rule", f"{getattr(pattern, '__name__', 'the predicate')} does not hold")
    elif isinstance(pattern, Mapping):
        document = canonical(own_json(node))
        for name, wanted in pattern.items():
            if name in ("members", "optional", "others"):
                continue
            known = _VIRTUAL.get(name)
            found = known(node) if known else document.get(name, _MISSING)
            yield from _compare(_normal(name, wanted), found, (name,), path)
        yield from _members(node, pattern, path)
    elif pattern is not ...:
        yield NodeProblem(path, (), "type", f"a pattern must be a mapping, a predicate or a model, got {pattern!r}")


def _members(node: Any, pattern: Mapping[str, Any], path: str) -> Iterator[NodeProblem]:
    required, optional = pattern.get("members", {}), pattern.get("optional", {})
    others = pattern.get("others", ...)
    if not (required or optional or "others" in pattern):
        return
    if not isinstance(node, GroupSpec):
        yield NodeProblem(path, (), "type", "must be a group, is an array")
        return
    for name in required:
        if name not in node.members:
            yield NodeProblem(_below(path, name), (), "missing", "missing")
    for name, member in node.members.items():
        wanted = required.get(name, optional.get(name, others))
        if wanted is False:
            yield NodeProblem(_below(path, name), (), "unknown", "not expected here")
        else:
            yield from _mismatches(member, wanted, _below(path, name))


def _below(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name


class _Missing:
    def __repr__(self) -> str:
        return "nothing"


_MISSING = _Missing()


def _normal(name: str, wanted: Any) -> Any:
    """Convert an expected value to the spelling of `canonical`."""
    if name in _VIRTUAL or callable(wanted) or wanted is ... or name == "fill_value":
        return wanted
    if isinstance(wanted, Mapping) and any(callable(value) or value is ... for value in wanted.values()):
        return wanted
    return canonical({name: wanted}).get(name, wanted)


def _compare(wanted: object, found: object, loc: tuple[str | int, ...], path: str) -> Iterator[NodeProblem]:
    if found is _MISSING:
        yield NodeProblem(path, loc, "missing", "missing")
    elif wanted is ...:
        return
    elif loc == ("dtype",) and isinstance(wanted, str | np.dtype | type):
        if not _is_dtype(found, wanted):
            yield NodeProblem(path, loc, "value", f"expected {wanted}, got {found}")
    elif callable(wanted):
        if not wanted(found):
            name = getattr(wanted, "__name__", "the predicate")
            yield NodeProblem(path, loc, "rule", f"{name} does not hold for {found!r}")
    elif isinstance(wanted, Mapping) and isinstance(found, Mapping):
        for name, value in wanted.items():
            yield from _compare(value, found.get(name, _MISSING), (*loc, name), path)
    elif isinstance(wanted, list | tuple) and isinstance(found, list | tuple) and len(wanted) == len(found):
        for position, (one, other) in enumerate(zip(wanted, found, strict=True)):
            yield from _compare(one, other, (*loc, position), path)
    elif not same(wanted, found):
        yield NodeProblem(path, loc, "value", f"expected {wanted!r}, got {found!r}")


def _is_dtype(found: object, wanted: str | AnyDType | type) -> bool:
    """Return whether a type satisfies the pattern: a family, a NumPy type (abstract ones too), or a v3 name.

    Raises `ValueError` for any other word: no array could ever have it.
    """
    if wanted == "struct":
        return isinstance(found, np.dtype) and found.names is not None
    if isinstance(wanted, str) and wanted in _FAMILIES:
        family = _FAMILIES[wanted]
        return isinstance(found, np.dtype) and found.kind in family and (wanted != "bytes" or found.names is None)
    if isinstance(found, np.dtype) and isinstance(wanted, type) and issubclass(wanted, np.generic):
        return bool(np.issubdtype(found, wanted))
    try:
        meant = np.dtype(wanted)
    except TypeError:
        return bool(found == wanted or found == _named(wanted))
    return isinstance(found, np.dtype) and bool(found.newbyteorder("=") == meant.newbyteorder("="))


def _named(wanted: Any) -> Any:
    from tessarr.dtypes.parse import from_v3

    try:
        return from_v3(wanted).dtype
    except TessarrError as error:
        raise ValueError(f"a pattern has the unknown dtype {wanted!r}; families are {', '.join(_FAMILIES)}") from error


def _dtype(node: Any) -> object:
    """Return the NumPy dtype; the document's text for an unknown type."""
    if isinstance(node, GroupSpec):
        return _MISSING
    from tessarr.dtypes.parse import from_v2, from_v3

    try:
        data_type = from_v3(node.data_type) if node.zarr_format == 3 else from_v2(node.dtype, node.filters)
    except TessarrError:
        return node.data_type if node.zarr_format == 3 else node.dtype
    return np.dtype("U") if data_type.name == "string" else data_type.dtype


def dims(node: Any) -> Any:
    """Return the dimension names of an array of either format; ``None`` without names."""
    if isinstance(node, GroupSpec):
        return _MISSING
    if node.zarr_format == 3:
        return node.dimension_names
    return own_json(node)["attributes"].get("_ARRAY_DIMENSIONS")  # type: ignore[union-attr,call-overload,unused-ignore]


def _chunk_shape(node: Any) -> object:
    if isinstance(node, GroupSpec):
        return _MISSING
    if node.zarr_format == 2:
        return node.chunks
    grid = node.chunk_grid
    return grid.get("configuration", {}).get("chunk_shape", _MISSING) if isinstance(grid, Mapping) else _MISSING


_VIRTUAL: dict[str, Callable[[Any], Any]] = {
    "kind": lambda node: "group" if isinstance(node, GroupSpec) else "array",
    "ndim": lambda node: _MISSING if isinstance(node, GroupSpec) else node.ndim,
    "dims": dims,
    "dtype": _dtype,
    "chunk_shape": _chunk_shape,
}
