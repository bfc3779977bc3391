"""Resolve the runtime options of arrays, as users give them, and mark arguments that are left to their default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tessarr.engine.bound import RuntimeOptions
from tessarr.settings import config as settings


class Default:
    """The type of `DEFAULT`."""

    def __repr__(self) -> str:
        return "DEFAULT"


DEFAULT = Default()
"""``fill_value=DEFAULT``: the data type's own default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayConfig:
    """Runtime options of an array; never stored."""

    order: str = "C"
    """Memory layout of the arrays that reading returns: "C" or "F"."""
    write_empty_chunks: bool = False
    read_missing_chunks: bool = True

    @property
    def options(self) -> RuntimeOptions:
        """The options that engines take."""
        return RuntimeOptions(self.write_empty_chunks, self.read_missing_chunks)

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> ArrayConfig:
        """Make options from a dict; missing ones come from the settings. Raises `TypeError` for an unknown option."""
        return array_config(data)

    def to_dict(self) -> dict[str, object]:
        """Convert to a plain dict."""
        return {name: getattr(self, name) for name in self.__slots__}


ArrayConfigLike: TypeAlias = "ArrayConfig | Mapping[str, object]"
"""What users give as ``config``."""

_IGNORED_OPTIONS = ("sharding_coalesce_max_gap_bytes", "sharding_coalesce_max_bytes")

_defaults: tuple[int, ArrayConfig] | None = None
"""The number of changes of the settings (`Config.changes`), and the options that followed from them then."""


def _from_settings() -> ArrayConfig:
    global _defaults
    changes, known = settings.changes, _defaults
    if known is None or known[0] != changes:
        options = ArrayConfig(
            order=settings.get("array.order", "C"),
            write_empty_chunks=settings.get("array.write_empty_chunks", False),
            read_missing_chunks=settings.get("array.read_missing_chunks", True),
        )
        known = _defaults = (changes, options)
    return known[1]


def array_config(given: ArrayConfigLike | None, base: ArrayConfig | None = None, **legacy: object) -> ArrayConfig:
    """Make runtime options from an `ArrayConfig`, a dict, or ``None``; missing options come from `base` or the settings.

    Raises `TypeError` for an unknown option.
    """
    if isinstance(given, ArrayConfig):
        return given
    base = base or _from_settings()
    if given is None and not legacy:
        return base
    wanted: dict[str, Any] = {name: value for name, value in legacy.items() if value is not None}
    wanted |= dict(given or {})
    unknown = wanted.keys() - {*ArrayConfig.__slots__, *_IGNORED_OPTIONS}
    if unknown:
        raise TypeError(f"Unknown array config keys: {sorted(unknown)}; known: {', '.join(ArrayConfig.__slots__)}")
    known = {name: value for name, value in wanted.items() if name in ArrayConfig.__slots__}
    if known.get("order", "C") not in ("C", "F"):
        raise ValueError(f"order must be 'C' or 'F', got {known['order']!r}")
    for name in ("write_empty_chunks", "read_missing_chunks"):
        if not isinstance(known.get(name, False), bool | np.bool):
            raise ValueError(f"Expected instance of bool for {name}, got {known[name]!r}")
    return ArrayConfig(**{**base.to_dict(), **known})
