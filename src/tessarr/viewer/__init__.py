"""The page of ``tessarr view``: HTML and CSS, and a script that `make viewer` builds from ``viewer/``.

The page needs no network: it loads only its own files, and data from the server that it comes from (`tessarr.serve`).

>>> sorted(page_files())
['coast.json', 'icon.svg', 'index.html', 'licenses.txt', 'viewer.css', 'viewer.js']
"""

from __future__ import annotations

from importlib.resources import files

from tessarr.serve import App
from tessarr.serve.served import PAGE_SEGMENT

_KINDS = {
    "index.html": "text/html; charset=utf-8",
    "viewer.css": "text/css; charset=utf-8",
    "viewer.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "coast.json": "application/json",
    "licenses.txt": "text/plain; charset=utf-8",
}
"""The files of the page, and their media types."""


def page_files() -> dict[str, tuple[bytes, str]]:
    """Read the files of the page: name → content and media type, for the argument `page` of `tessarr.serve.app`."""
    here = files("tessarr.viewer")
    return {name: ((here / name).read_bytes(), kind) for name, kind in _KINDS.items()}


def page_path(application: App) -> str:
    """Return the path of URLs of the page that an application serves.

    >>> import tessarr, tessarr.serve
    >>> store = tessarr.storage.MemoryStore()
    >>> _ = tessarr.create_array(store, shape=4, dtype="i4")
    >>> page_path(tessarr.serve.app(store, name="x.zarr", token="secret", page=page_files()))
    '/t/secret/@view/'
    """
    return application.served.page_base + f"/{PAGE_SEGMENT}/"
