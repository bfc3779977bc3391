"""Show an array, a group or a place on the viewer's page from Python: in a notebook below the cell, elsewhere by its URL."""

from __future__ import annotations

import os
from html import escape
from typing import Self

from tessarr.serve import App, BackgroundServer, app, serve_background
from tessarr.serve.http.paths import LOCAL_NAMES
from tessarr.serve.served import last_name, new_token
from tessarr.stores.url import StoreLike
from tessarr.viewer import page_files, page_path

HUB = "JUPYTERHUB_SERVICE_PREFIX"
"""The environment variable in which JupyterHub says under which path a browser reaches the server of a notebook."""


class Viewer:
    """A page in the background of this process, made by `view`. A context manager that ends it."""

    def __init__(self, server: BackgroundServer, path: str, height: int) -> None:
        self._server = server
        self._path = path
        self._height = height

    @property
    def url(self) -> str:
        """The URL of the page, with its secret: who has it can read the data, from this machine."""
        return f"http://127.0.0.1:{self._server.port}{self._path}"

    def __repr__(self) -> str:
        return f"Viewer(port={self._server.port})"  # the URL holds the secret, and a repr may be stored with a notebook

    def _repr_html_(self) -> str:
        hub = os.environ.get(HUB)
        source = self.url if hub is None else f"{hub.rstrip('/')}/proxy/{self._server.port}{self._path}"
        return (
            f'<iframe src="{escape(source)}" width="100%" height="{self._height}" style="border: 1px solid #8888" '
            'title="tessarr view"></iframe>'
        )

    def close(self) -> None:
        """End the server. May be called twice."""
        self._server.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def view(place: StoreLike, path: str = "", *, height: int = 640) -> Viewer:
    """Show the hierarchy at a place on a page: an array, a group, a path, a URL or a store, read-only.

    The result is displayed in a notebook, `height` pixels high; in other programs open its `url` in a browser. The server
    listens on loopback, and ends with `close`, or with the process. Under JupyterHub a notebook reaches it through
    jupyter-server-proxy, with whatever name the hub has; for other kernels on another machine forward its port.

    Raises `NodeNotFoundError` when there is no node.

    >>> import tessarr, urllib.request
    >>> store = tessarr.storage.MemoryStore()
    >>> array = tessarr.create_array(store, name="x", shape=4, dtype="i4")
    >>> with view(array) as page:
    ...     urllib.request.urlopen(page.url).status
    200
    """
    application: App = app(
        place, path, name=_name_of(place, path), token=new_token(), allowed_hosts=None if HUB in os.environ else LOCAL_NAMES,
        page=page_files(),
    )  # fmt: skip
    return Viewer(serve_background(application), page_path(application), height)


def _name_of(place: object, path: str) -> str:
    """Return the last name of a place, which the page has as its title."""
    found = path or getattr(place, "path", "")
    if not found:
        store = getattr(place, "store", place)
        found = os.fspath(store) if isinstance(store, str | os.PathLike) else getattr(store, "url", "")
    return last_name(str(found))
