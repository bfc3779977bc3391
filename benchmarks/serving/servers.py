"""Run one server of a directory, in the environment of this interpreter: ``python servers.py NAME PLACE PORT``."""

from __future__ import annotations

import http.server
import os
import sys
from importlib import import_module
from pathlib import Path

PREFIXES = {
    "tessarr": "/t/secret/data.zarr",
    "tessarr, uvicorn": "/t/secret/data.zarr",
    "http.server": "",
    "zarr-http-server": "",
    "xpublish": "/datasets/air/zarr",
    "tiled": "/zarr/v3",
}
"""Server → the path of URLs before the keys of the hierarchy."""


def main(name: str, place: str, port: int) -> None:
    """Serve until the process is ended."""
    if name.startswith("tessarr"):
        from tessarr.serve import app, serve

        application = app(place, name="data.zarr", token="secret")
        serve(application, port=port, uvicorn_options={"log_level": "error"} if "uvicorn" in name else None)
    elif name == "http.server":
        os.chdir(place)
        handler = http.server.SimpleHTTPRequestHandler
        handler.protocol_version = "HTTP/1.1"  # kinder than its command line, which closes each connection
        handler.log_message = lambda *_: None  # type: ignore[method-assign]
        http.server.ThreadingHTTPServer(("127.0.0.1", port), handler).serve_forever()
    elif name == "zarr-http-server":
        import zarr

        zarr_http_server = import_module("zarr_http_server")
        zarr_http_server.serve(zarr_http_server.store_app(zarr.storage.LocalStore(place, read_only=True)), port=port)
    elif name == "xpublish":
        import xarray

        xpublish = import_module("xpublish")
        dataset = xarray.open_zarr(place, consolidated=False)[["air"]]
        xpublish.Rest({"air": dataset}).serve(host="127.0.0.1", port=port, log_level="error")
    else:
        import uvicorn
        import zarr

        mapping, adapters = import_module("tiled.adapters.mapping"), import_module("tiled.adapters.array")
        stored = zarr.open_array(Path(place, "air"), mode="r")  # its own adapter of Zarr fails with zarr 3.4
        lengths = tuple((chunk,) * (length // chunk) for length, chunk in zip(stored.shape, stored.chunks, strict=True))
        array = adapters.ArrayAdapter.from_array(stored[...], chunks=lengths)
        tree = mapping.MapAdapter({"air": array})
        uvicorn.run(
            import_module("tiled.server.app").build_app(
                tree, authentication=import_module("tiled.config").Authentication(allow_anonymous_access=True)
            ),
            port=port,
            log_level="error",
        )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
