"""Write references in Kerchunk's Parquet layout, a record at a time: see `tessarr.stores.virtual.reference` for the layout."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from math import prod
from typing import TypeAlias

import numpy as np

from tessarr.common import strict_json
from tessarr.errors import BaseZarrError, UnsupportedOperationError
from tessarr.metadata.array import ArrayMetadata
from tessarr.stores.base import Store
from tessarr.stores.path import join, prefix_of
from tessarr.stores.protocols import List
from tessarr.stores.virtual.reference import Reference, import_pyarrow
from tessarr.types import JSON, Coords

RECORD_SIZE = 10_000
"""Chunks per Parquet file, as kerchunk has them."""

_RECORD = re.compile(r"(?:.*/)?refs\.\d+\.parq").fullmatch

Rows: TypeAlias = tuple[ArrayMetadata, Callable[[Coords], bytes | Reference | None]]
"""An array of format 2, and what finds the value of a chunk, or a reference to it."""


def write_parquet(
    store: Store, at: str, documents: Mapping[str, JSON], arrays: Mapping[str, Rows], *, overwrite: bool
) -> int:
    """Write the references of `arrays` to the directory `at` of `store`. One record of rows is in memory at once.

    `documents`: key → document, such as ``t/.zarray``. The document of the directory is written last; records of references
    that were there before are removed. Returns the number of references.

    Raises `MissingDependencyError` without pyarrow; `UnsupportedOperationError` for an array at the root, whose chunks this
    layout cannot name; `BaseZarrError` for an existing directory of references unless `overwrite`.
    """
    pa, parquet = import_pyarrow()
    if "" in arrays:
        raise UnsupportedOperationError(
            "Parquet references hold no array at the root", store=store.url,
            hint="Save a group, or a mapping: {'name': array}",
        )  # fmt: skip
    key = join(at, ".zmetadata")
    if store.exists(key):
        if not overwrite:
            raise BaseZarrError("there are references already", store=store.url, key=key, hint="overwrite=True")
        store.delete(key)
    columns = [("path", pa.string()), ("offset", pa.int64()), ("size", pa.int64()), ("raw", pa.binary())]
    written: set[str] = set()
    count = 0
    for path, rows in arrays.items():
        for record, table in enumerate(_records(*rows)):
            sink = pa.BufferOutputStream()
            parquet.write_table(pa.table(table, schema=pa.schema(columns)), sink, compression="zstd")
            name = f"{prefix_of(join(at, path))}refs.{record}.parq"
            store.set(name, sink.getvalue().to_pybytes())
            written.add(name)
            count += sum(url is not None for url in table["path"])
    if overwrite and isinstance(store, List):
        records = (one for one in store.list_prefix(prefix_of(at)) if _RECORD(one) is not None)
        store.delete_many([one for one in records if one not in written])
    parsed: dict[str, JSON] = {
        key: json.loads(text) if isinstance(text, str) else text for key, text in documents.items()
    }
    store.set(key, strict_json.dumps({"metadata": parsed, "record_size": RECORD_SIZE}))
    return count


def _records(
    metadata: ArrayMetadata, find: Callable[[Coords], bytes | Reference | None]
) -> Iterator[dict[str, list[object]]]:
    """Return the columns of each record: a row per chunk in C order, also for a chunk that is missing."""
    counts = tuple(axis.nchunks for axis in metadata.chunk_grid.axes(metadata.shape))
    total = prod(counts)
    for start in range(0, total, RECORD_SIZE):
        rows: list[tuple[str | None, int, int, bytes | None]] = []
        for number in range(start, min(start + RECORD_SIZE, total)):
            found = find(tuple(int(at) for at in np.unravel_index(number, counts)) if counts else ())
            if isinstance(found, Reference) and found.nbytes:
                rows.append((found.url, found.offset, found.nbytes, None))
            else:  # a size of 0 would mean the whole file
                rows.append((None, 0, 0, None if found is None else found if isinstance(found, bytes) else b""))
        yield dict(zip(("path", "offset", "size", "raw"), map(list, zip(*rows, strict=True)), strict=True))
