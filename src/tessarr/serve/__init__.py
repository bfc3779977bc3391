"""Serve hierarchies over HTTP: ``tessarr serve``, applications for ASGI servers, and servers in the background.

The names `store_app`, `node_app`, `serve`, `serve_background`, `BackgroundServer` and `CorsOptions` are those of
zarr-http-server; `app` serves any place, safely by default.

>>> import tessarr, tessarr.serve
>>> store = tessarr.storage.MemoryStore()
>>> _ = tessarr.create_array(store, shape=4, dtype="i4")
>>> tessarr.serve.app(store)
App(MemoryStore('memory://...'), '')
"""

from __future__ import annotations

from tessarr.serve.apps import READ_ONLY_HTTP_METHODS as READ_ONLY_HTTP_METHODS
from tessarr.serve.apps import App as App
from tessarr.serve.apps import app as app
from tessarr.serve.apps import node_app as node_app
from tessarr.serve.apps import store_app as store_app
from tessarr.serve.http.cors import CorsOptions as CorsOptions
from tessarr.serve.running import AUTO_PORT as AUTO_PORT
from tessarr.serve.running import DEFAULT_PORT as DEFAULT_PORT
from tessarr.serve.running import BackgroundServer as BackgroundServer
from tessarr.serve.running import serve as serve
from tessarr.serve.running import serve_background as serve_background

__all__ = [
    "AUTO_PORT",
    "DEFAULT_PORT",
    "READ_ONLY_HTTP_METHODS",
    "App",
    "BackgroundServer",
    "CorsOptions",
    "app",
    "node_app",
    "serve",
    "serve_background",
    "store_app",
]
