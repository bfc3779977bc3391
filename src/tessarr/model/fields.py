"""Convert document members that collide with members of a model: ``attributes`` and ``members``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields as fields_of
from dataclasses import is_dataclass
from typing import Any, cast

from tessarr.common.strict_json import plain
from tessarr.errors import MetadataValidationError, Problem
from tessarr.types import JSON, JSONObject

_UNDERSCORED = re.compile("_+members")


def attributes_json(attributes: object) -> JSONObject:
    """Convert user attributes to a JSON object: a mapping, a dataclass, or an object with ``to_json()``.

    Raises `MetadataValidationError` for anything else, and for keys that are not strings.
    """
    to_json = getattr(attributes, "to_json", None)
    if to_json is not None:
        attributes = to_json()
    elif is_dataclass(attributes) and not isinstance(attributes, type):
        attributes = {item.name: getattr(attributes, item.name) for item in fields_of(attributes)}
    if not isinstance(attributes, Mapping):
        problem = Problem(("attributes",), "type", f"must be a mapping or a dataclass, got {attributes!r}")
        raise MetadataValidationError("invalid model", [problem])
    _check_keys(attributes, ("attributes",))
    return cast("JSONObject", {name: plain(_open(value)) for name, value in attributes.items()})


def _open(value: object) -> Any:
    """Convert dataclasses inside attributes to objects."""
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: _open(getattr(value, item.name)) for item in fields_of(value)}
    if isinstance(value, Mapping):
        return {name: _open(item) for name, item in value.items()}
    return [_open(item) for item in value] if isinstance(value, list | tuple) else value


def _check_keys(value: object, loc: tuple[str | int, ...]) -> None:
    if isinstance(value, Mapping):
        for name, item in value.items():
            if not isinstance(name, str):
                problem = Problem(loc, "type", f"keys must be strings, got {name!r}")
                raise MetadataValidationError("invalid model", [problem])
            _check_keys(item, (*loc, name))
    elif isinstance(value, list | tuple):
        for position, item in enumerate(value):
            _check_keys(item, (*loc, position))


def rename_members(fields: Mapping[str, JSON]) -> dict[str, Any]:
    """Rename a document's own ``members``, which would collide with the model's.

    >>> rename_members({"members": 1, "_members": 2})
    {'__members': 1, '_members': 2}

    ``members`` gets one underscore more than the longest such name. Under the draft's rule the result is ambiguous for a
    document that has ``_members`` and no ``members``; there the longest name gets two more, a length that is otherwise
    unused:

    >>> rename_members({"_members": 2})
    {'___members': 2}
    """
    lengths = sorted(map(_underscores, _family(fields)))
    if "members" in fields:
        old, new = "members", f"{'_' * (lengths[-1] + 1 if lengths else 1)}members"
    elif lengths:
        old = f"{'_' * lengths[-1]}members"
        new = f"__{old}"
    else:
        return dict(fields)
    return {new if name == old else name: value for name, value in fields.items()}


def restore_names(fields: Mapping[str, JSON]) -> dict[str, JSON]:
    """Undo `rename_members`.

    >>> restore_names({"__members": 1, "_members": 2}), restore_names({"___members": 2})
    ({'members': 1, '_members': 2}, {'_members': 2})
    """
    lengths = sorted(map(_underscores, _family(fields)))
    if not lengths:
        return dict(fields)
    longest, next_longest = lengths[-1], lengths[-2] if len(lengths) > 1 else 0
    new = "members" if longest - next_longest < 3 else f"{'_' * (longest - 2)}members"
    return {new if name == f"{'_' * longest}members" else name: value for name, value in fields.items()}


def _family(fields: Mapping[str, JSON]) -> list[str]:
    return [name for name in fields if _UNDERSCORED.fullmatch(name)]


def _underscores(name: str) -> int:
    return len(name) - len("members")
