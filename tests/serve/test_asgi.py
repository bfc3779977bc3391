"""Applications under ASGI: servers, frameworks that mount them, the names of zarr-http-server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

import tessarr
from tessarr.errors import MissingDependencyError, UnsupportedOperationError
from tessarr.serve import (
    AUTO_PORT,
    READ_ONLY_HTTP_METHODS,
    App,
    BackgroundServer,
    CorsOptions,
    app,
    node_app,
    serve_background,
    store_app,
)
from tessarr.storage import LocalStore, MemoryStore
from tests.serve.client import Client
from tests.serve.conftest import ODD


def ask(application: Any, method: str, path: str, headers: dict[str, str] | None = None) -> httpx.Response:
    async def go() -> httpx.Response:
        transport = httpx.ASGITransport(app=application)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.request(method, path, headers=headers)

    return asyncio.run(go())


def test_asgi_answers_as_the_server_of_the_standard_library(place: Path) -> None:
    from tessarr.serve.http.paths import quoted

    application = app(place)
    client = Client(application)
    for path in ("/zarr.json", "/air/c/0/0", "/shard/c/0/0", "/nothing", "/", f"/{quoted(ODD)}/y/zarr.json"):
        for method in ("GET", "HEAD"):
            answer, direct = ask(application, method, path), client(method, path)
            assert (answer.status_code, answer.content) == (direct.status, direct.body)
            assert answer.headers["content-length"] == str(direct.nbytes)
    part = ask(application, "GET", "/shard/c/0/0", {"Range": "bytes=-16"})
    assert (part.status_code, len(part.content)) == (206, 16)
    etag = part.headers["etag"]
    unchanged = ask(application, "GET", "/shard/c/0/0", {"If-None-Match": etag})
    assert unchanged.status_code == 304
    assert "content-length" not in unchanged.headers
    assert ask(application, "PUT", "/x").status_code == 405


def test_fastapi_mounts_the_application_beside_its_own_paths(place: Path) -> None:
    fastapi = pytest.importorskip("fastapi", reason="fastapi is not installed (extra test)")
    api = fastapi.FastAPI()

    def hello() -> dict[str, str]:
        return {"hello": "world"}

    api.add_api_route("/hello", hello)
    api.mount("/data", app(place))
    assert ask(api, "GET", "/hello").json() == {"hello": "world"}
    assert ask(api, "GET", "/data/air/c/0/0").content == (place / "air" / "c" / "0" / "0").read_bytes()
    part = ask(api, "GET", "/data/shard/c/0/0", {"Range": "bytes=-16"})
    assert (part.status_code, part.headers["content-length"]) == (206, "16")
    assert ask(api, "HEAD", "/data/air/zarr.json").headers["content-length"] == str(
        (place / "air" / "zarr.json").stat().st_size
    )
    assert ask(api, "PROPFIND", "/data/below/", {"Depth": "0"}).status_code == 207
    assert ask(api, "GET", "/data/nothing").status_code == 404


def test_a_mounted_application_knows_where_it_is(place: Path) -> None:
    routing = pytest.importorskip("starlette.routing", reason="starlette is not installed (extra test)")
    applications = pytest.importorskip("starlette.applications", reason="starlette is not installed (extra test)")
    outer = applications.Starlette(routes=[routing.Mount("/some/data", app=app(place))])
    assert ask(outer, "GET", "/some/data/zarr.json").status_code == 200
    assert ask(outer, "GET", "/some/data/air/c/0/0").content == (place / "air" / "c" / "0" / "0").read_bytes()
    assert ask(outer, "GET", "/some/data/").status_code == 200
    assert ask(outer, "GET", "/elsewhere/zarr.json").status_code == 404


def test_a_mount_is_removed_from_the_path(place: Path) -> None:
    application = app(place)

    async def mounted(scope: Any, receive: Any, send: Any) -> None:
        await application({**scope, "root_path": "/some/data"}, receive, send)

    assert ask(mounted, "GET", "/some/data/air/zarr.json").status_code == 200
    assert ask(mounted, "GET", "/some/data").status_code == 200


def test_lifespan_and_websockets_are_answered(place: Path) -> None:
    sent: list[str] = []

    async def go(scope: dict[str, Any], *events: str) -> None:
        waiting = iter(events)

        async def receive() -> dict[str, Any]:
            return {"type": next(waiting)}

        async def send(message: Any) -> None:
            sent.append(message["type"])

        await app(place)(scope, receive, send)

    asyncio.run(go({"type": "lifespan"}, "lifespan.startup", "lifespan.shutdown"))
    asyncio.run(go({"type": "websocket"}))
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete", "websocket.close"]


def test_no_value_is_read_for_a_client_that_has_left(place: Path) -> None:
    sent: list[int] = []

    async def go() -> None:
        async def receive() -> dict[str, Any]:
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.body":
                sent.append(len(message["body"]))
            await asyncio.sleep(0)

        scope: dict[str, Any] = {
            "type": "http",
            "method": "GET",
            "path": "/shard/c/0/0",
            "headers": [],
            "query_string": b"",
        }
        await app(place)(scope, receive, send)

    asyncio.run(go())
    assert len(sent) < 4


def test_uvicorn_runs_the_application(place: Path) -> None:
    pytest.importorskip("uvicorn", reason="uvicorn is not installed (extra serve)")
    with serve_background(app(place), port=0, uvicorn_options={"log_level": "error"}) as running:
        assert httpx.get(f"{running.url}/zarr.json").status_code == 200
        assert httpx.get(f"{running.url}/shard/c/0/0", headers={"Range": "bytes=0-3"}).status_code == 206
        assert tessarr.open_array(f"{running.url}/air", mode="r")[9, 9] == 99


def test_an_application_of_others_needs_uvicorn(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    async def other(scope: Any, receive: Any, send: Any) -> None:
        return None

    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(MissingDependencyError, match="uvicorn"):
        serve_background(other, port=0)


# -- the names of zarr-http-server -------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [store_app, node_app, app])
def test_methods_that_write_are_not_offered(place: Path, make: Any) -> None:
    for methods in ({"PUT"}, {"GET", "PUT"}, {"DELETE"}):
        with pytest.raises(UnsupportedOperationError, match="read-only"):
            make(LocalStore(place), methods=methods)
    with pytest.raises(ValueError, match="BREW"):
        make(LocalStore(place), methods={"BREW"})
    only = Client(make(LocalStore(place), methods={"GET"}))
    assert only("HEAD", "/zarr.json").status == 200
    assert only("PROPFIND", "/").status == 405
    assert {"GET", "HEAD"} == READ_ONLY_HTTP_METHODS


def test_a_node_serves_its_own_keys_only(place: Path) -> None:
    group = tessarr.open_group(place, mode="r")
    (place / "notes.txt").write_text("x")
    below = Client(node_app(tessarr.open_group(place, path="below", mode="r")))
    assert below.get("/zarr.json").body == (place / "below" / "zarr.json").read_bytes()
    assert below.get("/x/c/0").status == 200
    assert below.get("/../air/zarr.json").status == 404
    assert Client(node_app(group)).get("/notes.txt").status == 404
    assert Client(node_app(tessarr.open_array(place / "air", mode="r"))).get("/c/0/0").status == 200
    assert Client(node_app(tessarr.open_array(place / "air", mode="r"))).get("/c/5/5").status == 404


@pytest.mark.parametrize("kind", ["array", "group"])
def test_nodes_of_zarr_python_are_served(place: Path, kind: str) -> None:
    import zarr

    node = zarr.open(str(place), path="air" if kind == "array" else "", mode="r")
    client = Client(node_app(node))
    key = "/c/0/0" if kind == "array" else "/air/c/0/0"
    assert client.get(key).body == (place / "air" / "c" / "0" / "0").read_bytes()
    stored = Client(store_app(zarr.storage.LocalStore(str(place))))
    assert stored.get("/air/zarr.json").body == (place / "air" / "zarr.json").read_bytes()
    assert stored.get("/shard/c/0/0", range="bytes=-16").status == 206


def test_servers_take_a_place_or_an_application() -> None:
    store = MemoryStore()
    tessarr.create_array(store, shape=4, dtype="i4")
    options: CorsOptions = {"allow_origins": ["https://app.example"]}
    with serve_background(store_app(store, cors_options=options), host="127.0.0.1", port=AUTO_PORT) as running:
        assert isinstance(running, BackgroundServer)
        answer = httpx.get(f"{running.url}/zarr.json", headers={"Origin": "https://app.example"})
        assert answer.headers["access-control-allow-origin"] == "https://app.example"
    with serve_background(store, port=0) as running:
        assert httpx.get(f"{running.url}/zarr.json").status_code == 200
    assert isinstance(app(store), App)
