"""Make up consolidated metadata: a client opens a hierarchy with one request, though nothing is consolidated.

A group of v3 without consolidated metadata gets them in its ``zarr.json``; a group of v2 gets a ``.zmetadata``. Stored ones are
sent as they are. Nothing is written. The documents are read for each request, so that the answer is never stale.
"""

from __future__ import annotations

from tessarr.core.stored.walk import Entry, read_entries_steps, walk_below_steps
from tessarr.errors import TessarrError, UnsupportedOperationError
from tessarr.metadata import consolidated, formats, serialize
from tessarr.metadata.consolidated import FIELD, V2_KEY
from tessarr.stores.base import Store
from tessarr.stores.path import prefix_of


async def made_up_steps(store: Store, key: str) -> bytes | None:
    """Return the document at `key` with consolidated metadata that are made up; ``None``: send what is stored.

    That is the case where the document is not one of a group, where consolidated metadata are stored, where the store cannot
    list, and where a document of the hierarchy cannot be parsed.
    """
    path, _, name = key.rpartition("/")
    if name not in ("zarr.json", V2_KEY):
        return None
    try:
        if name == "zarr.json":
            return await _v3_steps(store, path)
        return await _v2_steps(store, path)
    except UnsupportedOperationError:
        return None
    except TessarrError as error:
        if error.kind.startswith("metadata"):
            return None
        raise


async def _v3_steps(store: Store, path: str) -> bytes | None:
    (own,) = await read_entries_steps(store, [path], ("zarr.json",))
    if "zarr.json" not in own.values or not own.is_group(3):
        return None
    document = own.json("zarr.json")
    if document.get(FIELD) is not None:
        return None
    below = await walk_below_steps(store, Entry(path, own.values), 3, ("zarr.json",))
    start = len(prefix_of(path))
    block = consolidated.dump_v3({entry.path[start:]: entry.documents(3) for entry in below})
    return serialize.dumps({"zarr.json": {**document, FIELD: block}})["zarr.json"]


async def _v2_steps(store: Store, path: str) -> bytes | None:
    names = (".zgroup", ".zattrs", ".zarray", V2_KEY)
    (own,) = await read_entries_steps(store, [path], names)
    if ".zgroup" not in own.values or ".zarray" in own.values or V2_KEY in own.values:
        return None
    below = await walk_below_steps(store, Entry(path, own.values), 2, formats.KEYS[2].all)
    start = len(prefix_of(path))
    nodes = {"": own.documents(2)} | {entry.path[start:]: entry.documents(2) for entry in below}
    return serialize.dumps({V2_KEY: consolidated.dump_v2(nodes)})[V2_KEY]
