"""Find the view that a path names, and serve it as a place of its own."""

from __future__ import annotations

from typing import NamedTuple

from tessarr.serve.http.paths import Path
from tessarr.serve.served import Served
from tessarr.serve.views.options import Options, parse_options
from tessarr.serve.views.store import ViewStore

_MAX_VIEWS = 256


class Found(NamedTuple):
    """A view, as a served place, and the path in it."""

    served: Served
    path: Path


def split(path: Path) -> tuple[int, Options] | None:
    """Return the position of the segment that describes a view, and what it says; ``None``: there is none.

    Raises `Refusal` for options without meaning.
    """
    for position, segment in enumerate(path.segments):
        options = parse_options(segment) if segment.startswith("@") else None
        if options is not None:
            return position, options
    return None


async def find_steps(served: Served, path: Path) -> Found | None:
    """Return the view that a path names; ``None``: it names none, or a node of the hierarchy has such a name."""
    found = split(path)
    if found is None:
        return None
    position, options = found
    name = "/".join(path.segments[: position + 1])
    view = served.views.get(name)
    if view is None:
        above = path.segments[:position]
        if served.is_private([*above, "zarr.json"]) or await served.node_steps(name) is not None:
            return None
        if len(served.views) >= _MAX_VIEWS:
            served.views.clear()
        store = ViewStore(served.store, served.key("/".join(above)), options, served.budget)
        view = served.views[name] = Served(
            store=store, methods=served.methods, as_stored=served.as_stored, boundary=served.boundary, is_encoded=True
        )
    return Found(view, Path(path.segments[position + 1 :], path.is_directory))
