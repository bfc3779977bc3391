"""ASGI applications that serve a place: any ASGI server runs them, any ASGI framework mounts them.

Source: ASGI specification 3.0 (HTTP, lifespan).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, MutableMapping
from typing import Literal, TypeAlias, TypeVar, cast, get_args
from urllib.parse import quote

from tessarr.core.asynchronous.sans_io import Steps, run_steps, run_steps_async
from tessarr.core.locate import locate
from tessarr.core.stored.walk import read_entries
from tessarr.errors import NodeNotFoundError, UnsupportedOperationError
from tessarr.serve.contained import contained
from tessarr.serve.http.cors import CorsOptions, check_options
from tessarr.serve.http.messages import Request, Response
from tessarr.serve.http.paths import below
from tessarr.serve.respond import respond
from tessarr.serve.served import METHODS, Scope, Served
from tessarr.stores.base import Store
from tessarr.stores.buffers import byte_view
from tessarr.stores.protocols import Remote
from tessarr.stores.url import StoreLike
from tessarr.tools.sources.store import source_store
from tessarr.types import Buffer

R = TypeVar("R")
Message: TypeAlias = MutableMapping[str, object]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

ReadOnlyHTTPMethod = Literal["GET", "HEAD"]
READ_ONLY_HTTP_METHODS: frozenset[str] = frozenset(get_args(ReadOnlyHTTPMethod))
"""The methods that a client of keys may use."""
_WRITING = frozenset({"PUT", "POST", "PATCH", "DELETE"})
_LOG = logging.getLogger("tessarr.serve")


class App:
    """An ASGI application that serves one place, read-only. Made by `app`, `store_app` and `node_app`."""

    def __init__(self, served: Served) -> None:
        self.served = served

    def __repr__(self) -> str:
        return f"App({self.served.store!r}, {self.served.path!r})"

    def respond(self, request: Request) -> Response:
        """Respond to a request from this thread. Windows of the response are read when they are sent."""
        return run_steps(respond(self.served, request))

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one connection or event of an ASGI server."""
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})

    async def _http(self, scope: Message, receive: Receive, send: Send) -> None:
        response = await self._run(respond(self.served, _request_of(scope)))
        headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in response.headers]
        if response.announces_length:
            headers.append((b"content-length", str(response.nbytes).encode()))
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        if len(response.windows) < 2:
            body = await self._window(response, 0) if response.windows else b""
            await send({"type": "http.response.body", "body": body, "more_body": False})
            return
        gone = asyncio.ensure_future(_disconnected(receive))
        try:
            for number in range(len(response.windows)):
                if gone.done():  # no value is read for a client that has left
                    return
                body = await self._window(response, number)
                more = number + 1 < len(response.windows)
                await send({"type": "http.response.body", "body": body, "more_body": more})
        finally:
            gone.cancel()

    async def _run(self, steps: Steps[R]) -> R:
        """Run steps: await the calls of a store that waits for a network, make all others in one thread."""
        if isinstance(self.served.store, Remote):
            return await run_steps_async(steps)
        return await asyncio.get_running_loop().run_in_executor(None, run_steps, steps)

    async def _window(self, response: Response, number: int) -> bytes:
        window = response.windows[number]
        data: Buffer = await self._run(window()) if callable(window) else window
        return data if isinstance(data, bytes) else bytes(byte_view(data))


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        event = (await receive())["type"]
        await send({"type": f"{event}.complete"})
        if event == "lifespan.shutdown":
            return


def _request_of(scope: Message) -> Request:
    """Make a request of an ASGI scope, below the path at which a framework mounted the application."""
    raw, decoded, root = scope.get("raw_path"), str(scope["path"]), str(scope.get("root_path") or "").rstrip("/")
    path = raw.partition(b"?")[0].decode("latin-1") if isinstance(raw, bytes) else quote(decoded)
    if root and below(decoded, root) is not None:
        path = "/" + "/".join(path.split("/")[root.count("/") + 1 :])
    query = cast("bytes", scope.get("query_string") or b"").decode("latin-1")
    lines = cast("Iterable[tuple[bytes, bytes]]", scope["headers"])
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in lines]
    return Request.of(str(scope["method"]), f"{path}?{query}", headers)


# -- making applications -------------------------------------------------------------------------------------------------------


def app(
    place: StoreLike,
    path: str = "",
    *,
    storage_options: Mapping[str, object] | None = None,
    name: str = "",
    token: str | None = None,
    allowed_hosts: Collection[str] | None = None,
    cors_options: CorsOptions | None = None,
    root_path: str = "",
    as_stored: bool = False,
    follow_links: bool = False,
    methods: Collection[str] | None = None,
    dynamic: bool = True,
    page: Mapping[str, tuple[bytes, str]] | None = None,
) -> App:
    """Make an ASGI application that serves the hierarchy at a place: a path, a URL, a store, an array or a group.

    A file of NetCDF, HDF5, TIFF or NumPy is shown as Zarr v3, without a copy.

    Documents and chunks of the hierarchy are served, and nothing else. Groups without consolidated metadata get some in the
    responses, unless `as_stored`. `follow_links`: follow symbolic links out of a directory.

    - `name`: a segment of the path before the keys, such as ``air.zarr``.
    - `token`: requests need the path ``/t/TOKEN/…``, or the header ``Authorization: Bearer TOKEN``.
    - `allowed_hosts`: values of the header ``Host`` that are answered; ``None``: all.
    - `root_path`: the path under which a reverse proxy offers the server.
    - `dynamic`: answer requests for slices, statistics and descriptions too, within budgets of decoded bytes.
    - `page`: files of a page to serve at ``@view/``, name → content and media type; see `tessarr.viewer`.

    Raises `NodeNotFoundError` when there is no node, `UnsupportedOperationError` for `methods` that write.

    >>> import tessarr
    >>> store = tessarr.storage.MemoryStore()
    >>> _ = tessarr.create_array(store, name="x", shape=4, dtype="i4")
    >>> app(store).respond(Request.of("GET", "/x/zarr.json")).status
    200
    """
    store, at, _ = locate(_place_of(place), path, "r", storage_options)
    if read_entries(store, [at])[0].kind is None:
        raise NodeNotFoundError("no array or group to serve", store=store.url, path=f"/{at}")
    if cors_options is not None:
        check_options(cors_options)
    return App(
        Served(
            store=store if follow_links else contained(store), path=at, name=name, token=token,
            allowed_hosts=allowed_hosts, cors=cors_options, root_path=root_path, as_stored=as_stored,
            methods=_served_methods(methods), is_dynamic=dynamic, page=page,
        )
    )  # fmt: skip


def store_app(
    store: StoreLike,
    *,
    methods: Collection[str] | None = None,
    cors_options: CorsOptions | None = None,
    max_body_size: int | None = None,  # noqa: ARG001 - of zarr-http-server, for PUT
) -> App:
    """Make an ASGI application that serves every key of a store, as stored.

    The names are those of zarr-http-server. Raises `UnsupportedOperationError` for `methods` that write, such as PUT.
    """
    return _drop_in(store, "store", methods, cors_options)


def node_app(
    node: StoreLike,
    *,
    methods: Collection[str] | None = None,
    cors_options: CorsOptions | None = None,
    max_body_size: int | None = None,  # noqa: ARG001 - of zarr-http-server, for PUT
) -> App:
    """Make an ASGI application that serves the keys of an array or a group, as stored: documents and chunks, no other key.

    The names are those of zarr-http-server. Raises `UnsupportedOperationError` for `methods` that write, such as PUT.
    """
    return _drop_in(node, "hierarchy", methods, cors_options)


def _drop_in(place: StoreLike, scope: Scope, methods: Collection[str] | None, cors: CorsOptions | None) -> App:
    store, at, _ = locate(_place_of(place), None, "r")
    if cors is not None:
        check_options(cors)
    served = Served(
        store=store if scope == "store" else contained(store), path=at, scope=scope, cors=cors, as_stored=True,
        methods=_served_methods(methods),
    )  # fmt: skip
    return App(served)


def _place_of(place: StoreLike) -> StoreLike:
    """Return the store of a foreign file; the place of a node, zarr-python's included; any other place as it is."""
    found: StoreLike = getattr(place, "store_path", place)
    return found if isinstance(found, Store) else source_store(found) or found


def _served_methods(methods: Collection[str] | None) -> tuple[str, ...]:
    """Return the methods that are answered; HEAD goes with GET, OPTIONS and PROPFIND change nothing."""
    if methods is None:
        return METHODS
    writing = sorted(_WRITING.intersection(methods))
    if writing:
        raise UnsupportedOperationError(
            f"tessarr serves data read-only, without {', '.join(writing)}",
            hint="Write through tessarr or zarr-python where the data is; READ_ONLY_HTTP_METHODS are served",
        )
    unknown = sorted(set(methods) - set(METHODS))
    if unknown:
        raise ValueError(f"methods must be among {', '.join(METHODS)}; got {', '.join(unknown)}")
    return tuple(
        name for name in METHODS if name in methods or (name == "HEAD" and "GET" in methods) or name == "OPTIONS"
    )
