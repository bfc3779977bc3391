"""A place that may not be listed answers 403 for what is missing: an error, unless the user says what it stands for."""

from __future__ import annotations

import asyncio
import http.server
import pickle
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.errors import StoreError
from tessarr.stores.memory.store import MemoryStore
from tessarr.stores.remote.retry import RequestError
from tessarr.stores.url import store_from


class Place:
    """An HTTP server over `values` that answers 403, with `body`, for everything else."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.body = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
        self.url = ""

    def fill(self, zarr_format: int) -> None:
        """A group with a dense array and a sparse one, without attributes."""
        memory = MemoryStore()
        group = tessarr.create_group(memory, zarr_format=zarr_format)
        group.create_array("dense", data=np.arange(8), chunks=(4,))
        group.create_array("sparse", shape=(8,), chunks=(4,), dtype="i4")[:4] = 1
        self.values = {key: bytes(memoryview(memory.get(key) or b"")) for key in memory.list()}

    def open(self, path: str, **kwargs: Any) -> Any:
        return tessarr.open(f"{self.url}/{path}", mode="r", **kwargs)


@pytest.fixture
def place() -> Iterator[Place]:
    made = Place()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            value = made.values.get(self.path[1:])
            self.send_response(403 if value is None else 200)
            body = made.body if value is None else value
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Last-Modified", "Sat, 21 Nov 2026 19:00:00 GMT")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield made
    server.shutdown()
    server.server_close()


DOCUMENTS = {"storage_options": {"forbidden_is_missing": "documents"}}
EVERYTHING = {"storage_options": {"forbidden_is_missing": True}}


def test_a_v3_node_opens_without_being_told_anything(place: Place) -> None:
    place.fill(3)
    assert place.open("dense")[...].tolist() == [*range(8)]
    assert place.open("")["dense"].shape == (8,)


def test_a_v2_node_does_not_open_and_the_error_says_what_to_do(place: Place) -> None:
    place.fill(2)
    with pytest.raises(RequestError, match="forbidden_is_missing") as caught:
        place.open("dense")
    assert (caught.value.status, caught.value.attempts) == (403, 1)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_documents_may_be_told_to_be_missing_while_a_chunk_remains_an_error(place: Place, zarr_format: int) -> None:
    place.fill(zarr_format)
    assert place.open("dense", **DOCUMENTS)[...].tolist() == [*range(8)]
    assert place.open("", **DOCUMENTS)["dense"].shape == (8,)
    sparse = place.open("sparse", **DOCUMENTS)
    assert sparse[:4].tolist() == [1] * 4
    with pytest.raises(RequestError, match="status 403"):
        sparse[...]
    with pytest.raises(RequestError, match="status 403"):
        asyncio.run(sparse.read_async())


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_every_key_may_be_told_to_be_missing(place: Place, zarr_format: int) -> None:
    place.fill(zarr_format)
    sparse = place.open("sparse", **EVERYTHING)
    assert sparse[...].tolist() == asyncio.run(sparse.read_async()).tolist() == [1] * 4 + [0] * 4
    assert pickle.loads(pickle.dumps(sparse))[...].tolist() == [1] * 4 + [0] * 4
    with pytest.raises(tessarr.errors.NodeNotFoundError):
        place.open("nothing", **EVERYTHING)


@pytest.mark.parametrize("code", ["ExpiredToken", "InvalidAccessKeyId", "SignatureDoesNotMatch"])
def test_a_fault_of_the_credentials_is_never_absence(place: Place, code: str) -> None:
    place.fill(3)
    sparse = place.open("sparse", **EVERYTHING)
    place.body = f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode()
    with pytest.raises(RequestError, match=code):
        sparse[...]


def test_another_value_of_the_option_is_refused() -> None:
    with pytest.raises(StoreError, match="forbidden_is_missing"):
        store_from("http://host/x", storage_options={"forbidden_is_missing": "yes"})


def test_a_write_that_is_forbidden_is_an_error_all_the_same() -> None:
    from tessarr.stores.remote.obstore.store import ObjectStore

    class Refusing:
        def put(self, *_: object, **__: object) -> None:
            raise PermissionDeniedError("403 Forbidden")

        delete = put

    store = ObjectStore(Refusing(), url="s3://b", forbidden_is_missing=True)  # type: ignore[arg-type]
    with pytest.raises(RequestError):
        store.set("a", b"1")
    with pytest.raises(RequestError):
        store.delete("a")


class PermissionDeniedError(Exception):
    """By the name of obstore's."""


PermissionDeniedError.__module__ = "obstore.exceptions"
