"""Documents and stores made by hand, for tests that begin with what is stored."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import tessarr

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
BIG = {"name": "bytes", "configuration": {"endian": "big"}}
CRC = {"name": "crc32c"}
GZIP = {"name": "gzip", "configuration": {"level": 1}}
GROUP = {"zarr_format": 3, "node_type": "group"}


def array_document(
    shape: Sequence[int] = (4,),
    chunks: Sequence[int] | None = None,
    data_type: Any = "int32",
    *,
    drop: Iterable[str] = (),
    **members: Any,
) -> dict[str, Any]:
    """A valid v3 array document, with `members` in place of its own and without those to `drop`."""
    document: dict[str, Any] = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": data_type,
        "chunk_grid": regular(shape if chunks is None else chunks),
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0,
        "codecs": [LITTLE],
    }
    document.update(members)
    return {name: value for name, value in document.items() if name not in set(drop)}


def regular(chunk_shape: Sequence[int]) -> dict[str, Any]:
    """The document of a regular grid."""
    return {"name": "regular", "configuration": {"chunk_shape": list(chunk_shape)}}


def transpose(*order: Any) -> dict[str, Any]:
    """The document of a transpose codec."""
    return {"name": "transpose", "configuration": {"order": list(order)}}


def sharding(
    chunk_shape: Sequence[int],
    codecs: Sequence[Any] = (LITTLE,),
    index_codecs: Sequence[Any] = (LITTLE, CRC),
    **configuration: Any,
) -> dict[str, Any]:
    """The document of a sharding codec."""
    members = {"chunk_shape": list(chunk_shape), "codecs": list(codecs), "index_codecs": list(index_codecs)}
    return {"name": "sharding_indexed", "configuration": {**members, **configuration}}


def store_of(documents: Mapping[str, Any], values: Mapping[str, bytes] | None = None) -> dict[str, bytes]:
    """A store in a dict: `documents` by node path ("" is the root), other `values` by key."""
    stored = {
        f"{path}/zarr.json" if path else "zarr.json": json.dumps(document).encode()
        for path, document in documents.items()
    }
    return {**stored, **(values or {})}


def opened(document: Any, values: Mapping[str, bytes] | None = None, **keywords: Any) -> Any:
    """The root node that `document` describes, in a store with `values` (chunk key → bytes)."""
    return tessarr.open(store_of({"": document}, values), mode="r+", **keywords)


def stored_json(store: Mapping[str, Any], path: str = "") -> Any:
    """The v3 document of a node in a dict store, refusing what is no JSON."""
    return json.loads(bytes(store[f"{path}/zarr.json" if path else "zarr.json"]).decode(), parse_constant=_refuse)


def _refuse(token: str) -> Any:
    raise AssertionError(f"{token} is no JSON")
