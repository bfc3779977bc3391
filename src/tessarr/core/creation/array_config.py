"""Resolve the runtime options of arrays, as users give them, and mark arguments that are left to their default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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

    order: str = field(default="C", kw_only=False)
    """Memory layout of the arrays that reading returns: "C" or "F"."""
    write_empty_chunks: bool = field(default=False, kw_only=False)
    read_missing_chunks: bool = True
    sharding_coalesce_max_gap_bytes: int = 512 << 10
    """Kept for programs that read it; the setting of the same name has the effect, for all arrays."""
    sharding_coalesce_max_bytes: int = 16 << 20
    """Likewise."""

    @property
    def options(self) -> RuntimeOptions:
        """The options that engines take, with those that are only kept."""
        limits = self.sharding_coalesce_max_gap_bytes, self.sharding_coalesce_max_bytes
        return RuntimeOptions(self.write_empty_chunks, self.read_missing_chunks, coalescing=limits)

    @classmethod
    def of(cls, order: str, options: RuntimeOptions) -> ArrayConfig:
        """Make the options of an array from what it has."""
        default = _from_settings()
        gap, most = options.coalescing or (default.sharding_coalesce_max_gap_bytes, default.sharding_coalesce_max_bytes)
        return cls(
            order,
            options.write_empty_chunks,
            read_missing_chunks=options.read_missing_chunks,
            sharding_coalesce_max_gap_bytes=gap,
            sharding_coalesce_max_bytes=most,
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> ArrayConfig:
        """Make options from a dict; missing ones come from the settings. Raises `TypeError` for an unknown option."""
        return array_config(data)

    def to_dict(self) -> dict[str, object]:
        """Convert to a plain dict."""
        return {name: getattr(self, name) for name in self.__slots__}


ArrayConfigLike: TypeAlias = "ArrayConfig | Mapping[str, object]"
"""What users give as ``config``."""

_defaults: tuple[int, ArrayConfig] | None = None
"""The number of changes of the settings (`Config.changes`), and the options that followed from them then."""


def _from_settings() -> ArrayConfig:
    global _defaults
    changes, known = settings.changes, _defaults
    if known is None or known[0] != changes:
        options = ArrayConfig(
            settings.get("array.order", "C"),
            settings.get("array.write_empty_chunks", False),
            read_missing_chunks=settings.get("array.read_missing_chunks", True),
            sharding_coalesce_max_gap_bytes=settings.get("array.sharding_coalesce_max_gap_bytes"),
            sharding_coalesce_max_bytes=settings.get("array.sharding_coalesce_max_bytes"),
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
    unknown = wanted.keys() - set(ArrayConfig.__slots__)
    if unknown:
        raise TypeError(f"Unknown array config keys: {sorted(unknown)}; known: {', '.join(ArrayConfig.__slots__)}")
    if wanted.get("order", "C") not in ("C", "F"):
        raise ValueError(f"order must be 'C' or 'F', got {wanted['order']!r}")
    for name in ("write_empty_chunks", "read_missing_chunks"):
        if not isinstance(wanted.get(name, False), bool | np.bool):
            raise ValueError(f"Expected instance of bool for {name}, got {wanted[name]!r}")
    for name in ("sharding_coalesce_max_gap_bytes", "sharding_coalesce_max_bytes"):
        if not isinstance(wanted.get(name, 0), int | np.integer):
            raise TypeError(f"Expected an integer for {name}, got {wanted[name]!r}")
    return ArrayConfig(**{**base.to_dict(), **wanted})
