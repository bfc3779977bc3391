"""The Zarr Object Model: the structure of a hierarchy as one value, independent of data and store.

Source: ZEP 6 (draft), with its gaps closed as docs/model.md says. Models come from `from_store`, from `from_json`
or from your own code; `to_store` creates the hierarchy that a model describes (metadata documents only, no chunks).

>>> from tessarr import model
>>> spec = model.from_json('{"zarr_format": 3, "node_type": "group", "attributes": {"a": 1}, "members": {}}')
>>> spec.attributes, dict(model.flatten(spec)) == {"": spec}
({'a': 1}, True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tessarr.core.stored.model_io import from_store, to_store
    from tessarr.model.comparison import Difference, diff, equal
    from tessarr.model.conversion.mapping import Mapped, to_v2, to_v3
    from tessarr.model.flat import flatten, unflatten
    from tessarr.model.json import from_json, to_json
    from tessarr.model.match import Pattern, like, mismatches
    from tessarr.model.node import ArraySpec, ArraySpecV2, ArraySpecV3, GroupSpec, Spec
    from tessarr.model.schema.schema import json_schema
    from tessarr.model.valid import NodeProblem, Rule, require_valid, validate

_HOME = {
    **dict.fromkeys(("ArraySpec", "ArraySpecV2", "ArraySpecV3", "GroupSpec", "Spec"), "node"),
    **dict.fromkeys(("from_json", "to_json"), "json"),
    **dict.fromkeys(("flatten", "unflatten"), "flat"),
    **dict.fromkeys(("Difference", "diff", "equal"), "comparison"),
    **dict.fromkeys(("Pattern", "like", "mismatches"), "match"),
    **dict.fromkeys(("NodeProblem", "Rule", "require_valid", "validate"), "valid"),
    **dict.fromkeys(("Mapped", "to_v2", "to_v3"), "conversion.mapping"),
    **dict.fromkeys(("from_store", "to_store"), "tessarr.core.stored.model_io"),  # which does I/O
    "json_schema": "schema.schema",
}

__all__ = [
    "ArraySpec", "ArraySpecV2", "ArraySpecV3", "GroupSpec", "Spec",
    "from_json", "to_json", "from_store", "to_store",
    "flatten", "unflatten",
    "diff", "equal", "Difference",
    "Pattern", "like", "mismatches", "NodeProblem", "Rule", "validate", "require_valid",
    "to_v2", "to_v3", "Mapped",
    "json_schema",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    home = _HOME[name] if _HOME[name].startswith("tessarr.") else f"tessarr.model.{_HOME[name]}"
    return getattr(importlib.import_module(home), name)
