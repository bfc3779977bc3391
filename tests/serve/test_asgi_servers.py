"""Any ASGI server runs an application: one contract for those of others, each in a process of its own."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import httpx
import numpy as np
import pytest

import tessarr
from tests.serve.conftest import ODD, fill
from tests.waiting import PATIENCE_S, until

MODULE = "served_place:application"
PROGRAM = "from tessarr.serve import app\napplication = app({!r}, token='secret', allowed_hosts=['localhost'])\n"
BASE = "/t/secret"
LARGE = np.random.default_rng(7).integers(0, 255, size=48 << 20, dtype="u1")
"""A value of 48 windows: more than sockets hold."""
COMMANDS: dict[str, Callable[[str], list[str]]] = {
    "uvicorn": lambda path: ["--uds", path, "--lifespan", "on", MODULE],
    "hypercorn": lambda path: ["--bind", f"unix:{path}", MODULE],
    "granian": lambda path: ["--interface", "asgi", "--uds", path, MODULE],
    "daphne": lambda path: ["-u", path, MODULE],
}

pytestmark = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="this system has no Unix sockets")


class Running(NamedTuple):
    """A server of others, and where it writes what it says."""

    process: subprocess.Popen[bytes]
    client: httpx.Client
    place: Path
    log: Path


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("asgi") / "data.zarr"
    fill(found, 3)
    tessarr.open_group(found, mode="a").create_array("large", data=LARGE, chunks=LARGE.size, compressors=None)
    return found


@contextmanager
def started(name: str, place: Path) -> Iterator[Running]:
    """Run a server until the block ends. A server may close any idle connection (RFC 9112, 9.3.1), and hypercorn does
    where a request was answered before its end was read: each request has a connection of its own."""
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed (extra test)")
    with tempfile.TemporaryDirectory() as folder:
        path, log = f"{folder}/s", Path(folder, "log")
        Path(folder, "served_place.py").write_text(PROGRAM.format(str(place)))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([folder, *sys.path])}
        with log.open("wb") as said:
            process = subprocess.Popen(
                [sys.executable, "-m", name, *COMMANDS[name](path)], env=environment, stdout=said, stderr=said,
                start_new_session=True,
            )  # fmt: skip
        transport = httpx.HTTPTransport(uds=path, limits=httpx.Limits(max_keepalive_connections=0))
        with httpx.Client(transport=transport, base_url="http://localhost", timeout=PATIENCE_S) as client:
            try:
                until(lambda: listens(process, path, log), f"{name} listens")
                yield Running(process, client, place, log)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # some have workers, which would outlive their parent
                process.wait()


@pytest.fixture(scope="module", params=COMMANDS)
def running(request: pytest.FixtureRequest, place: Path) -> Iterator[Running]:
    with started(request.param, place) as found:
        yield found


def listens(process: subprocess.Popen[bytes], path: str, log: Path) -> bool:
    assert process.poll() is None, log.read_text()
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(path) == 0


def test_values_are_sent_as_they_are_stored(running: Running) -> None:
    stored = (running.place / "shard" / "c" / "0" / "0").read_bytes()
    whole = running.client.get(f"{BASE}/shard/c/0/0", headers={"Accept-Encoding": "gzip"})
    assert whole.status_code == 200
    assert whole.content == stored
    assert whole.headers["content-length"] == str(len(stored))
    assert "content-encoding" not in whole.headers
    head = running.client.head(f"{BASE}/shard/c/0/0")
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", str(len(stored)))
    assert head.headers["etag"] == whole.headers["etag"]
    assert running.client.get(f"{BASE}/shard/c/9/9").status_code == 404
    assert running.client.get("/zarr.json").status_code == 401
    assert running.client.get(f"{BASE}/zarr.json", headers={"Host": "evil.test"}).status_code == 421


def test_ranges_and_conditions_are_answered(running: Running) -> None:
    stored = (running.place / "shard" / "c" / "0" / "0").read_bytes()
    target = f"{BASE}/shard/c/0/0"

    def ask(wanted: str) -> httpx.Response:
        return running.client.get(target, headers={"Range": wanted})

    for wanted, part in {
        "bytes=5-8": stored[5:9],
        "bytes=-16": stored[-16:],
        "bytes=4000000-": stored[4000000:],
    }.items():
        assert (ask(wanted).status_code, ask(wanted).content) == (206, part)
    several = ask("bytes=0-3,100-103")
    assert several.status_code == 206
    boundary = several.headers["content-type"].partition("boundary=")[2]
    assert several.content.count(boundary.encode()) == 3
    assert stored[100:104] in several.content
    assert ask("bytes=99999999-").status_code == 416
    tag = running.client.head(target).headers["etag"]
    unchanged = running.client.get(target, headers={"If-None-Match": tag})
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    assert running.client.get(target, headers={"If-Match": '"other"'}).status_code == 412


def test_methods_and_names_reach_the_application(running: Running) -> None:
    from tessarr.serve.http.paths import quoted

    found = running.client.request("PROPFIND", f"{BASE}/below/", headers={"Depth": "1"})
    assert (found.status_code, b"below/zarr.json" in found.content) == (207, True)
    refused = running.client.put(f"{BASE}/zarr.json", content=b"x")
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD, OPTIONS, PROPFIND")
    odd = running.client.get(f"{BASE}/{quoted(ODD)}/y/zarr.json")
    assert odd.content == (running.place / ODD / "y" / "zarr.json").read_bytes()
    listing = running.client.get(f"{BASE}/")
    assert f'<a href="{quoted(ODD)}/">' in listing.text
    assert running.client.get(f"{BASE}/air.json?0=9&1=9").json()["data"] == 99.0


def test_a_large_value_is_streamed(running: Running) -> None:
    received = 0
    with running.client.stream("GET", f"{BASE}/large/c/0") as answer:
        for part in answer.iter_raw():
            assert part == LARGE[received : received + len(part)].tobytes()
            received += len(part)
    assert received == LARGE.size


def test_a_client_that_leaves_harms_nobody(running: Running) -> None:
    for _ in range(3):
        with running.client.stream("GET", f"{BASE}/large/c/0") as answer:
            assert next(answer.iter_raw())
    assert running.client.get(f"{BASE}/zarr.json").status_code == 200
    assert "Traceback" not in running.log.read_text()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_server_starts_and_ends_with_the_events_of_its_protocol(name: str, place: Path) -> None:
    with started(name, place) as found:
        found.process.send_signal(signal.SIGTERM)
        assert found.process.wait(PATIENCE_S) in (0, -signal.SIGTERM)
        said = found.log.read_text()
        assert "Traceback" not in said
        assert "unsupported" not in said, "the events of the protocol lifespan are answered"
