"""Write a page that needs no server of tessarr: static files beside a hierarchy that browsers can read.

The files are those of the page, ``place.json``, and ``nodes.json``: for each node what a server says about it (its documents,
facts and findings), and the decoded coordinates. The page reads chunks from the hierarchy by its URL, and decodes them in the
browser. Every server of files, and a bucket, can publish the directory.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

from tessarr.core.stored.walk import walk
from tessarr.errors import UnsupportedOperationError
from tessarr.serve import App, app
from tessarr.serve.http.messages import Request
from tessarr.serve.http.paths import quoted
from tessarr.stores.url import StoreLike
from tessarr.types import JSONObject
from tessarr.viewer import page_files

MAX_NODES = 10_000
"""Nodes of one page: browsers read the descriptions of all before the first picture."""
MAX_LABELS = 20_000
"""Elements of an array of coordinates that is written; the page shows indices along longer axes."""


def export(
    place: StoreLike,
    directory: str | os.PathLike[str],
    *,
    url: str,
    path: str = "",
    name: str = "data",
    storage_options: Mapping[str, object] | None = None,
) -> int:
    """Write a page of the hierarchy at a place into a directory, and return the number of nodes.

    `url` is where browsers find the hierarchy: an address, or a path from the page. `name` is the title. Descriptions are
    of the moment of this call; elements are read when they are looked at.

    Raises `NodeNotFoundError` when there is no node, `UnsupportedOperationError` for more than `MAX_NODES` nodes.

    >>> import tempfile, tessarr
    >>> store = tessarr.storage.MemoryStore()
    >>> _ = tessarr.create_array(store, name="x", shape=4, dtype="i4")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export(store, folder, url="../data.zarr"), sorted(os.listdir(folder))[-3:]
    (2, ['place.json', 'viewer.css', 'viewer.js'])
    """
    application = app(place, path, storage_options=storage_options)
    nodes = dict(_nodes(application))
    target = Path(directory)
    target.mkdir(parents=True, exist_ok=True)
    for file, (data, _) in page_files().items():
        (target / file).write_bytes(data)
    content = {"nodes": nodes, "coordinates": dict(_coordinates(application, nodes))}
    (target / "nodes.json").write_text(json.dumps(content, ensure_ascii=False, allow_nan=False), encoding="utf-8")
    about = {"root": url.rstrip("/"), "name": name, "nodes": "nodes.json"}
    (target / "place.json").write_text(json.dumps(about, ensure_ascii=False), encoding="utf-8")
    return len(nodes)


def _nodes(application: App) -> Iterator[tuple[str, JSONObject]]:
    """Describe every node, groups with all of their members."""
    served = application.served
    paths = [served.relative(entry.path) for entry in walk(served.store, served.path)]
    if len(paths) > MAX_NODES:
        raise UnsupportedOperationError(
            f"the hierarchy has {len(paths)} nodes, more than {MAX_NODES} for a page without a server",
            hint="Export a group of it, or run tessarr serve",
        )
    for path in paths:
        place = f"/{quoted(path)}/" if path else "/"
        node = _answer(application, f"{place}?json&check")
        while (last := node.get("next")) is not None:
            more = _answer(application, f"{place}?json&after={quoted(str(last))}")
            node["members"] = [*_objects(node, "members"), *_objects(more, "members")]
            node["next"] = more["next"]
        node["findings"] = [one for one in _objects(node, "findings") if one["path"] == path]
        yield path, node


def _objects(node: JSONObject, name: str) -> list[JSONObject]:
    return cast("list[JSONObject]", node.get(name) or [])


def _coordinates(application: App, nodes: Mapping[str, JSONObject]) -> Iterator[tuple[str, JSONObject]]:
    """Decode the arrays of coordinates, as far as the page shows them."""
    lengths: dict[str, int] = {}
    for node in nodes.values():
        paths, shape = cast("list[str | None]", node.get("coordinates", [])), cast("list[int]", node.get("shape", []))
        lengths |= {path: length for path, length in zip(paths, shape, strict=True) if path}
    for path, length in sorted(lengths.items()):
        if length <= MAX_LABELS:
            yield path, _answer(application, f"/{quoted(path)}.json")


def _answer(application: App, target: str) -> JSONObject:
    response = application.respond(Request.of("GET", target))
    content = b"".join(bytes(window) for window in response.windows if not callable(window))
    if response.status != 200:
        raise UnsupportedOperationError(f"a node cannot be described: {content.decode()}")
    return cast("JSONObject", json.loads(content))
