"""The page of ``tessarr view``: HTML and CSS, and a script that `make viewer` builds from ``viewer/``.

The page needs no network: it loads only its own files, and data from the server that it comes from (`tessarr.serve`).

>>> [name for name in page_files() if not name.startswith("part-")]
['coast.json', 'h5web.css', 'icon.svg', 'index.html', 'licenses.txt', 'viewer.css', 'viewer.js']
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import PurePosixPath

from tessarr.serve import App
from tessarr.serve.served import PAGE_SEGMENT

_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
"""Ending of a file of the page → media type."""


def page_files() -> dict[str, tuple[bytes, str]]:
    """Read the files of the page: name → content and media type, for the argument `page` of `tessarr.serve.app`."""
    found = {one.name: one for one in files("tessarr.viewer").iterdir() if one.name != "manifest.json"}
    kinds = {name: _KINDS.get(PurePosixPath(name).suffix) for name in sorted(found)}
    return {name: (found[name].read_bytes(), kind) for name, kind in kinds.items() if kind is not None}


def page_path(application: App) -> str:
    """Return the path of URLs of the page that an application serves.

    >>> import tessarr, tessarr.serve
    >>> store = tessarr.storage.MemoryStore()
    >>> _ = tessarr.create_array(store, shape=4, dtype="i4")
    >>> page_path(tessarr.serve.app(store, name="x.zarr", token="secret", page=page_files()))
    '/t/secret/@view/'
    """
    return application.served.page_base + f"/{PAGE_SEGMENT}/"
