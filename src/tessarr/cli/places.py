"""Resolve places on the command line to nodes."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import tessarr
from tessarr.core.array import Array
from tessarr.core.group import Group
from tessarr.errors import ArrayNotFoundError, NodeNotFoundError, StoreError
from tessarr.metadata import n5
from tessarr.metadata.formats import DOCUMENT_NAMES
from tessarr.stores.base import Store
from tessarr.stores.url import as_url, is_url, store_from
from tessarr.tools.sources import source_kind

_ALLOW = '{"allow": ["s3://bucket/"]}'
_SQLITE = b"SQLite format 3\0"
"""How an SQLite file begins."""
_MAX_LISTED = 1000
"""Entries of a directory that are looked at for a hint."""


def storage_options(given: Sequence[str]) -> dict[str, Any] | None:
    """Parse ``["anon=true", "region=x"]`` to a mapping; ``None`` for none. The value of ``manifest`` is JSON.

    Raises `ValueError` without a "=", or for a value that is not JSON.
    """
    options: dict[str, Any] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals:
            raise ValueError(f"--storage needs NAME=VALUE, got {item!r}")
        if name == "manifest":
            try:
                options[name] = json.loads(value)
            except ValueError as error:
                raise ValueError(f"--storage manifest needs JSON, such as {_ALLOW}: {error}") from None
        else:
            options[name] = {"true": True, "false": False}.get(value.lower(), value)
    return options or None


def printable_place(place: str) -> str:
    """Return a place as it is printed: without what a URL may have of credentials."""
    from tessarr.stores.remote.retry import scrub_url

    return scrub_url(place) if is_url(place) else place


def split_place(place: str) -> tuple[str, str]:
    """Split a path into a zip file or a database into the place of it and the path in it; leave other places whole.

    A local SQLite file, LMDB directory, N5 container or Icechunk repository becomes its URL.
    """
    place = as_url(place)
    if is_url(place):
        return place, ""
    if os.path.exists(place):
        return _store_url(place) or place, ""
    above, below = os.path.split(place.rstrip(os.sep))
    while above and below:
        url = _store_url(above)
        if url is not None or os.path.isfile(above):
            return url or above, os.path.relpath(place, above).replace(os.sep, "/")
        nearer, name = os.path.split(above)
        if nearer == above or not name:
            break
        above = nearer
    return place, ""


def _store_url(place: str) -> str | None:
    """Return the URL of a store that is not a directory of keys, by what is on the disk; ``None`` for anything else.

    References are not looked for: they name places of their own, which a user allows by their scheme.
    """
    whole = os.path.abspath(place)
    path = quote(whole.replace(os.sep, "/"))
    if os.path.isfile(place):
        with open(place, "rb") as file:
            return f"sqlite:{path}" if file.read(len(_SQLITE)) == _SQLITE else None
    if not os.path.isdir(place) or any(os.path.exists(os.path.join(place, name)) for name in DOCUMENT_NAMES):
        return None
    names = set(os.listdir(place))
    if "data.mdb" in names:
        return f"lmdb:{path}"
    if n5.DOCUMENT in names:
        return f"{Path(whole).as_uri()}|n5:"
    return f"{Path(whole).as_uri()}|icechunk:" if "snapshots" in names and names & {"refs", "repo"} else None


def open_store(place: str, path: str = "", *, storage: Sequence[str] = (), writable: bool = False) -> tuple[Store, str]:
    """Open the store at a place; return it and the path of the node in it, which need not exist.

    Raises `NodeNotFoundError` when a local place does not exist.
    """
    root, inner = split_place(place)
    if not is_url(root) and not os.path.exists(root):
        raise NodeNotFoundError("no such file or directory", store=root)
    store, here = store_from(root, mode="r+" if writable else "r", storage_options=storage_options(storage))
    return store, "/".join(part.strip("/") for part in (here, inner, path) if part.strip("/"))


def open_node(
    place: str, path: str = "", *, storage: Sequence[str] = (), zarr_format: int | None = None
) -> Array | Group:
    """Open the array or group at a place, read-only.

    Raises `NodeNotFoundError`, which says whether the place or the node in it is missing.
    """
    root, inner = split_place(place)
    whole = "/".join(part.strip("/") for part in (inner, path) if part.strip("/"))
    if not is_url(root) and not os.path.exists(root):
        raise NodeNotFoundError("no such file or directory", store=root)
    if not is_url(root) and os.path.isfile(root) and not root.endswith(".zip"):
        with open(root, "rb") as file:
            start = file.read(4)
        if not start.startswith(b"PK"):
            kind = source_kind(root)
            target = f"{os.path.splitext(root)[0]}.zarr"
            hint = f"It is {kind}: tessarr view {root} shows it, tessarr convert {root} {target} converts it"
            raise StoreError("a file that is not Zarr", store=root, hint=hint)
    try:
        return tessarr.open(
            root, mode="r", path=whole or None, storage_options=storage_options(storage), zarr_format=zarr_format
        )
    except NodeNotFoundError as error:
        error.hint = what_is_there(root, whole, storage)
        raise


def open_array(place: str, path: str = "", *, storage: Sequence[str] = ()) -> Array:
    """Open an array for reading as `open_node` does. Raises `ArrayNotFoundError` for a group."""
    node = open_node(place, path, storage=storage)
    if isinstance(node, Array):
        return node
    names = [name for name, member in node.members() if isinstance(member, Array)]
    hint = (
        f"Name one of its arrays: {', '.join(names[:8])}"
        if names
        else "It has no array as direct member; see: tessarr tree"
    )
    raise ArrayNotFoundError("a group has no values", store=node._store.url, path=node.name, hint=hint)


def what_is_there(root: str, path: str, storage: Sequence[str]) -> str:
    """Say what is at a place or near a path in it, as the hint of an error about a missing node."""
    if path:
        return _near(root, path, storage)
    if not is_url(root) and os.path.isdir(root):
        found = [name for name in sorted(os.listdir(root))[:_MAX_LISTED] if _is_place(os.path.join(root, name))]
        if found:
            return _there_is(found[:8], found)
    return "Is it Zarr data? A node has zarr.json, .zarray, .zgroup or meta"


def _is_place(path: str) -> bool:
    return _store_url(path) is not None or any(os.path.exists(os.path.join(path, name)) for name in DOCUMENT_NAMES)


def _there_is(shown: Sequence[str], names: Sequence[str]) -> str:
    return f"There is {', '.join(shown)}" + (" …" if len(names) > len(shown) else "")


def _near(root: str, path: str, storage: Sequence[str]) -> str:
    """List the members of the group one level up, for a hint."""
    from difflib import get_close_matches

    above, _, name = path.rpartition("/")
    try:
        group = tessarr.open_group(root, mode="r", path=above or None, storage_options=storage_options(storage))
        names = list(group)
    except (tessarr.errors.TessarrError, OSError):
        return f"See: tessarr tree {root}"
    near = get_close_matches(name, names, 3) or names[:8]
    return _there_is(near, names) if near else "The group is empty"
