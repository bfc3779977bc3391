"""Documents and stores made by hand, for tests that begin with what is stored."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
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


def v2_array_document(
    shape: Sequence[int] = (4,), chunks: Sequence[int] | None = None, dtype: Any = "<i4", **members: Any
) -> dict[str, Any]:
    """A valid ``.zarray``, with `members` in place of its own."""
    return {
        "zarr_format": 2,
        "shape": list(shape),
        "chunks": list(shape if chunks is None else chunks),
        "dtype": dtype,
        "compressor": None,
        "fill_value": 0,
        "order": "C",
        "filters": None,
        **members,
    }


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


class Place:
    """Where an array of a test is stored: in a dict, or in a directory."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self.values: dict[str, bytes] = {}

    @property
    def store(self) -> Any:
        """The store-like value to open."""
        return self.values if self.folder is None else str(self.folder)

    def put(self, documents: Mapping[str, Any], values: Mapping[str, bytes] | None = None) -> Place:
        """Store `documents` by node path and `values` by key."""
        for key, value in store_of(documents, values).items():
            if self.folder is None:
                self.values[key] = value
            else:
                (self.folder / key).parent.mkdir(parents=True, exist_ok=True)
                (self.folder / key).write_bytes(value)
        return self

    def open(self, document: Any, values: Mapping[str, bytes] | None = None) -> Any:
        """The root array `document`, with `values` and nothing else."""
        self.values.clear()
        if self.folder is not None and self.folder.exists():
            shutil.rmtree(self.folder)
        return tessarr.open(self.put({"": document}, values).store, mode="r+")

    def get(self, key: str) -> bytes | None:
        """The stored value of `key`."""
        if self.folder is None:
            value = self.values.get(key)
            return None if value is None else bytes(value)
        path = self.folder / key
        return path.read_bytes() if path.is_file() else None

    def keys(self) -> list[str]:
        """Every key but those of documents."""
        if self.folder is None:
            found = list(self.values)
        else:
            found = [path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*") if path.is_file()]
        return sorted(key for key in found if not key.endswith("zarr.json"))
