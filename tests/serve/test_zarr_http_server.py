"""zarr-http-server and tessarr answer the same requests alike, where tessarr does not do more."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
import zarr

import tessarr.serve

theirs = pytest.importorskip("zarr_http_server", reason="zarr-http-server needs Python 3.12")

TARGETS = [
    "/zarr.json", "/air/zarr.json", "/air/c/0/0", "/air/c/1/1", "/air/c/9/9", "/shard/c/0/0", "/point/c", "/nothing",
    "/nothing/zarr.json",
    "/below/x/c/1", "/../secret.txt", "/%2e%2e/secret.txt", "/air/../../secret.txt", "/air//zarr.json", "/%00",
    "/a%20b%2B%C3%BC%25%23%3F%3A/y/zarr.json", "/..%5csecret.txt",
]  # fmt: skip
RANGES = ["bytes=0-9", "bytes=100-", "bytes=-16", "bytes=4001600-9999999", "bytes=99999999-", "bytes=5-2", "lines=0-1"]


def ask(application: Any, method: str, path: str, headers: dict[str, str] | None = None) -> httpx.Response:
    async def go() -> httpx.Response:
        transport = httpx.ASGITransport(app=application, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.request(method, path, headers=headers)

    return asyncio.run(go())


@pytest.fixture(params=["store_app", "node_app"])
def both(request: pytest.FixtureRequest, place: Path) -> tuple[Any, Any]:
    (place.parent / "secret.txt").write_text("secret")
    store = zarr.storage.LocalStore(place, read_only=True)
    given: Any = store if request.param == "store_app" else zarr.open_group(store, mode="r")
    return getattr(tessarr.serve, request.param)(given), getattr(theirs, request.param)(given)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("target", TARGETS)
def test_keys_are_answered_alike(both: tuple[Any, Any], method: str, target: str) -> None:
    own, other = (ask(one, method, target) for one in both)
    assert own.status_code == other.status_code
    if own.status_code == 200:
        assert own.content == other.content
        assert own.headers["content-length"] == other.headers["content-length"]


@pytest.mark.parametrize("wanted", RANGES)
def test_ranges_are_answered_alike(both: tuple[Any, Any], wanted: str) -> None:
    own, other = (ask(one, "GET", "/shard/c/0/0", {"Range": wanted}) for one in both)
    assert own.status_code == other.status_code
    if own.status_code in (200, 206):
        assert own.content == other.content
    if "content-range" in other.headers:
        part, _, size = other.headers["content-range"].partition("/")
        own_part, _, own_size = own.headers["content-range"].partition("/")
        assert own_part == part
        assert size in (own_size, "*")  # some versions do not tell the size


@pytest.mark.parametrize("method", ["POST", "DELETE", "PATCH"])
def test_methods_that_write_are_refused_alike(both: tuple[Any, Any], method: str) -> None:
    assert [ask(one, method, "/zarr.json").status_code for one in both] == [405, 405]


def test_the_names_and_arguments_are_theirs() -> None:
    import inspect

    for name in ("store_app", "node_app", "serve", "serve_background"):
        wanted = set(inspect.signature(getattr(theirs, name)).parameters)
        assert wanted <= set(inspect.signature(getattr(tessarr.serve, name)).parameters), name
    members = {name for name in dir(theirs.BackgroundServer) if not name.startswith("_")}
    assert members <= {*dir(tessarr.serve.BackgroundServer), *("host", "port")}
    assert theirs.CorsOptions.__annotations__.keys() <= tessarr.serve.CorsOptions.__annotations__.keys()
