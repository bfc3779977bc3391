"""``tessarr info``: describe an array or a group."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from math import prod
from typing import Any

from tessarr.cli.places import open_node
from tessarr.cli.printing import (
    OK,
    add_html,
    add_place,
    add_verb,
    human,
    jsonable,
    lengths,
    print_json,
    table,
    write_html,
)
from tessarr.cli.terminal.chunk_map import draw_map
from tessarr.cli.terminal.screen import screen_of
from tessarr.common.counted import counted
from tessarr.core.array import Array
from tessarr.core.group import Group
from tessarr.stores.base import Store
from tessarr.stores.path import prefix_of
from tessarr.stores.wrappers.base import WrapperStore
from tessarr.types import Coords

_AXIS_ORDERS = {
    "C": "C: slowest axis first, the reverse of what the format lists",
    "F": "F: fastest axis first, as the format lists them",
}
_LABELS = 16
"""Cells of the labels, and the space after them."""


def add(verbs: object) -> None:
    """Add the verb."""
    verb = add_verb(
        verbs,
        "info",
        summary="describe an array or group",
        text="Show format, shape, data type, chunks, codecs, attributes, stored size and engine of an array, and a map of its\n"
        "stored chunks; counts and sizes of a group.",
        examples="""
tessarr info data.zarr
tessarr info data.zarr group/temperature
tessarr info data.zip/temperature --json
tessarr info data.zarr --html data.html
tessarr info s3://bucket/data.zarr --storage skip_signature=true --no-sizes
""",
    )
    add_place(verb)
    verb.add_argument(
        "--no-sizes", action="store_true", help="do not list stored keys (which takes long for large remote data)"
    )
    add_html(verb)
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the summary."""
    node = open_node(arguments.place, arguments.path, storage=arguments.storage)
    sizes = node._store.supports_listing and not arguments.no_sizes
    stored: list[Coords] | None = [] if sizes else None
    if isinstance(node, Array):
        if stored is not None:
            stored = [coords for coords, _ in node.stored_chunks()]
        described = describe_array(node, stored)
        rows = _array_rows(described)
    else:
        described = describe_group(node, sizes=sizes)
        rows = _group_rows(described)
    if arguments.html is not None:
        from tessarr.cli.report_html import info_page

        write_html(arguments.html, info_page(node, rows, stored))
    if arguments.json:
        print_json(described)
    elif isinstance(node, Array) and stored is not None:
        print(table([*rows, *_chunk_map(node, stored)]))
    else:
        print(table(rows))
    return OK


def describe_array(array: Array, stored: Sequence[Coords] | None) -> dict[str, object]:
    """Describe an array, as plain values; stored sizes only with `stored`, the coords of its stored chunks or shards."""
    metadata = array._metadata
    document = metadata.to_dict()
    regular = metadata.chunk_grid.chunk_shape is not None
    described: dict[str, object] = {
        "kind": "array",
        "store": array._store.url,
        "path": array.name,
        "zarr_format": array.zarr_format,
        "shape": list(array.shape),
        "dimension_names": None if array.dims is None else list(array.dims),
        "axis_order": _axis_order(array._store),
        "data_type": document.get("data_type", document.get("dtype")),
        "dtype": str(array.dtype),
        "fill_value": document["fill_value"],
        "chunks": list(array.chunks) if regular or array.shards is not None else None,
        "shards": list(array.shards) if array.shards is not None and regular else None,
        "nchunks": array.nchunks,
        "codecs": [codec.to_json() for codec in metadata.codecs] if array.zarr_format == 3 else None,
        "storage_transformers": list(metadata.storage_transformers),
    }
    if array.zarr_format != 3:
        described |= {
            "compressor": metadata.compressor,
            "filters": list(metadata.filters or ()),
            "order": metadata.order,
        }
    described |= {
        "chunk_key_encoding": metadata.chunk_key_encoding.name,
        "separator": metadata.dimension_separator,
        "attributes": array.attrs.asdict(),
        "nbytes": array.nbytes if metadata.data_type.itemsize is not None else None,
        **_stored(array, stored),
        "read_only": metadata.not_writable,
        "engine": {"name": array.engine.name, "reason": array.engine.reason},
    }
    return described


def _axis_order(store: Store | None) -> str | None:
    """Return the order in which a store shows the axes of another format; ``None`` for a store of Zarr."""
    from tessarr.stores.virtual.container import ContainerStore

    while isinstance(store, WrapperStore):
        if isinstance(store, ContainerStore):
            return store.axis_order
        store = store.store
    return None


def _stored(array: Array, stored: Sequence[Coords] | None) -> dict[str, object]:
    if stored is None:
        return {"nbytes_stored": None, "values_stored": None, "ratio": None}
    nbytes = array.nbytes_stored()
    known = array._metadata.data_type.itemsize is not None
    return {
        "nbytes_stored": nbytes,
        "values_stored": len(stored),
        "ratio": round(array.nbytes / nbytes, 2) if nbytes and known else None,
    }


def _chunk_map(array: Array, stored: Sequence[Coords]) -> list[tuple[str, str]]:
    """Draw which chunks or shards are stored, where there is more than one."""
    grid = [axis.nchunks for axis in array._bound.axes]
    if prod(grid) < 2:
        return []
    screen = screen_of(sys.stdout, os.environ)
    lines, legend = draw_map(stored, grid, screen.columns - _LABELS, max(4, screen.rows // 2), screen.has_unicode)
    noun = "shards" if array._sharding is not None else "chunks"
    return [(f"{noun} stored", "\n".join([*lines, legend]))]


def describe_group(group: Group, *, sizes: bool) -> dict[str, object]:
    """Describe a group, as plain values; the nodes below only with `sizes`."""
    described: dict[str, object] = {
        "kind": "group",
        "store": group._store.url,
        "path": group.name,
        "zarr_format": group.zarr_format,
        "consolidated": group._metadata.consolidated_metadata is not None,
        "attributes": group.attrs.asdict(),
    }
    if sizes:
        below = [node for _, node in group.members(max_depth=None)]
        arrays = [node for node in below if isinstance(node, Array)]
        described |= {
            "members": sorted(group),
            "arrays": len(arrays),
            "groups": len(below) - len(arrays),
            "nbytes": sum(array.nbytes for array in arrays if array._metadata.data_type.itemsize is not None),
            "nbytes_stored": group._store.getsize_prefix(prefix_of(group.path)),
        }
    return described


def _array_rows(known: dict[str, Any]) -> list[tuple[str, str]]:
    names = known["dimension_names"]
    data_type = known["data_type"]
    rows = [
        ("array", f"{known['path']} of {known['store']}"),
        ("format", f"Zarr v{known['zarr_format']}"),
        ("shape", lengths(known["shape"], names)),
        *([("axis order", _AXIS_ORDERS[known["axis_order"]])] if known["axis_order"] else []),
        ("data type", data_type if isinstance(data_type, str) else _short(data_type)),
        ("fill value", _short(known["fill_value"])),
    ]
    grid = lengths(known["chunks"]) if known["chunks"] is not None else "of differing shapes"
    rows.append(("chunks", f"{grid}, {counted(known['nchunks'], 'chunk')}"))
    if known["shards"] is not None:
        rows.append(("shards", lengths(known["shards"])))
    if known["codecs"] is not None:
        rows.append(("codecs", "\n".join(map(_codec, _flat(known["codecs"])))))
    else:
        rows += [
            ("compressor", _codec(known["compressor"])),
            ("filters", ", ".join(map(_codec, known["filters"])) or "none"),
        ]
        rows.append(("order", known["order"]))
    if known["storage_transformers"]:
        rows.append(("transformers", "\n".join(map(_codec, known["storage_transformers"]))))
    if known["nbytes"] is not None:
        rows.append(("size", human(known["nbytes"])))
    if known["nbytes_stored"] is not None:
        ratio = f", ratio {known['ratio']}" if known["ratio"] else ""
        stored = counted(known["values_stored"], "shard" if known["shards"] is not None else "chunk")
        rows.append(("stored", f"{human(known['nbytes_stored'])} in {stored} and metadata{ratio}"))
    if known["read_only"]:
        rows.append(("read-only", known["read_only"]))
    rows.append(("engine", f"{known['engine']['name']} ({known['engine']['reason']})"))
    return rows + _attribute_rows(known["attributes"])


def _group_rows(known: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [("group", f"{known['path']} of {known['store']}"), ("format", f"Zarr v{known['zarr_format']}")]
    if "members" in known:
        names = known["members"]
        shown = ", ".join(names[:12]) + (f" … ({len(names)})" if len(names) > 12 else "")
        rows += [
            ("members", shown or "none"),
            ("below", f"{counted(known['arrays'], 'array')}, {counted(known['groups'], 'group')}"),
            ("size", human(known["nbytes"])),
            ("stored", human(known["nbytes_stored"])),
        ]
    rows.append(("consolidated", "yes" if known["consolidated"] else "no"))
    return rows + _attribute_rows(known["attributes"])


def _attribute_rows(attributes: dict[str, object]) -> list[tuple[str, str]]:
    if not attributes:
        return [("attributes", "none")]
    width = max(map(len, attributes))
    return [("attributes", "\n".join(f"{name:<{width}}  {_short(value)}" for name, value in attributes.items()))]


def _flat(codecs: list[Any]) -> list[object]:
    """Flatten a list of codecs, with the codecs of a sharding codec after it."""
    flat = []
    for codec in codecs:
        inner = codec.get("configuration", {}).get("codecs") if codec["name"] == "sharding_indexed" else None
        flat += [{"name": "sharding_indexed"}, *_flat(inner)] if inner else [codec]
    return flat


def _codec(config: Any) -> str:
    """Format a codec on one line."""
    if not config:
        return "none"
    name = config.get("name", config.get("id"))
    options = config.get("configuration", {key: value for key, value in config.items() if key not in ("id", "name")})
    return f"{name}({', '.join(f'{key}={_short(value)}' for key, value in options.items())})" if options else str(name)


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(jsonable(value), ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= 100 else f"{text[:99]}…"
