"""Real servers on loopback, each started on a free port and ended with its test session.

`scripts/install_test_servers.sh` puts them where they are looked for: ``build/test-servers`` (or the directory in
``TESSARR_TEST_SERVERS``), then the usual places of the system.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import hmac
import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[3]
S3_OPTIONS = {"access_key_id": "testkey", "secret_access_key": "testsecret-never-shown", "region": "us-east-1"}
AZURE_ACCOUNT = "devstoreaccount1"
# The key that every Azurite has, published in its documentation.
AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


class Server(NamedTuple):
    """A running server."""

    host: str
    port: int
    root: Path

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"


def installed_servers() -> Path:
    """Where `scripts/install_test_servers.sh` puts what it installs."""
    return Path(os.environ.get("TESSARR_TEST_SERVERS", ROOT / "build" / "test-servers"))


def why_missing(name: str) -> str | None:
    """What that script said when it could not install the program `name`."""
    told = installed_servers() / "missing"
    lines = told.read_text().splitlines() if told.is_file() else []
    return next((line for line in lines if line.startswith(f"{name}: ")), None)


def find_program(name: str) -> str:
    """Where the program `name` is.

    Raises `FileNotFoundError` that says how to install it. Where that was tried in vain the test is skipped; in CI, where
    everything is to be tried, it fails.
    """
    installed = installed_servers()
    for place in (installed / "bin" / name, installed / "node_modules" / ".bin" / name, Path("/usr/sbin") / name):
        if place.is_file():
            return str(place)
    found = shutil.which(name)
    if found is None:
        reason = why_missing(name)
        if reason is not None and not os.environ.get("CI"):
            pytest.skip(f"cannot be installed here: {reason}")
        raise FileNotFoundError(
            f"{name} is not installed; run scripts/install_test_servers.sh" + (f" ({reason})" if reason else "")
        )
    return found


def zarrita_modules() -> Path:
    """The directory in whose ``node_modules`` zarrita.js is. See `find_program`."""
    place = installed_servers() / "zarrita"
    if not (place / "node_modules" / "zarrita").exists():
        reason = why_missing("zarrita")
        if reason is not None and not os.environ.get("CI"):
            pytest.skip(f"cannot be installed here: {reason}")
        raise FileNotFoundError(f"zarrita is not installed; run scripts/install_test_servers.sh ({reason})")
    return place


def free_port() -> int:
    """A port that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(command: Sequence[str], port: int, root: Path, env: dict[str, str] | None = None) -> Iterator[Server]:
    """Runs `command` until the block ends; ready as soon as `port` accepts connections."""
    log = root.parent / f"{root.name}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env={**os.environ, **(env or {})}, cwd=root
        )
    try:
        wait_for(port, process, log)
        yield Server("127.0.0.1", port, root)
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Returns when `port` answers. Raises `RuntimeError` with the server's log when it does not."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.03)
    raise RuntimeError(f"the server did not start: {log.read_text(errors='replace')[-2000:]}")


@contextmanager
def s3_server(root: Path, *flags: str) -> Iterator[Server]:
    """VersityGW, an S3 server over a directory, with real conditional writes; one bucket, ``bucket``."""
    (root / "data" / "bucket").mkdir(parents=True)
    port = free_port()
    command = [find_program("versitygw"), "--port", f"127.0.0.1:{port}", "--quiet", *flags, "posix", str(root / "data")]
    keys = {
        "ROOT_ACCESS_KEY": S3_OPTIONS["access_key_id"],
        "ROOT_SECRET_KEY": S3_OPTIONS["secret_access_key"],
    }
    with running(command, port, root, keys) as server:
        yield server


@contextmanager
def gcs_server(root: Path) -> Iterator[Server]:
    """fake-gcs-server with one bucket, ``bucket``."""
    port = free_port()
    command = [find_program("fake-gcs-server"), "-backend", "memory", "-scheme", "http", "-host", "127.0.0.1"]
    command += ["-port", str(port), "-public-host", f"127.0.0.1:{port}", "-log-level", "error"]
    with running(command, port, root) as server:
        body = json.dumps({"name": "bucket"}).encode()
        request = urllib.request.Request(
            f"http://{server.address}/storage/v1/b?project=p", body, {"Content-Type": "application/json"}
        )
        urllib.request.urlopen(request).close()
        yield server


@contextmanager
def azure_server(root: Path) -> Iterator[Server]:
    """Azurite's blob service with one container, ``container``."""
    port = free_port()
    command = [
        find_program("azurite-blob"),
        "--blobHost",
        "127.0.0.1",
        "--blobPort",
        str(port),
        "--inMemoryPersistence",
    ]
    # Node may be installed beside the servers.
    env = {"PATH": f"{installed_servers() / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"}
    with running([*command, "--skipApiVersionCheck", "--silent", "--disableTelemetry"], port, root, env) as server:
        _make_container(server, "container")
        yield server


def _make_container(server: Server, name: str) -> None:
    now = dt.datetime.now(dt.UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
    headers = {"x-ms-date": now, "x-ms-version": "2021-08-06"}
    lines = ["PUT", *[""] * 11, *(f"{key}:{value}" for key, value in headers.items())]
    lines += [f"/{AZURE_ACCOUNT}/{AZURE_ACCOUNT}/{name}", "restype:container"]
    digest = hmac.new(base64.b64decode(AZURE_KEY), "\n".join(lines).encode(), hashlib.sha256).digest()
    headers |= {
        "Authorization": f"SharedKey {AZURE_ACCOUNT}:{base64.b64encode(digest).decode()}",
        "Content-Length": "0",
    }
    url = f"http://{server.address}/{AZURE_ACCOUNT}/{name}?restype=container"
    urllib.request.urlopen(urllib.request.Request(url, headers=headers, method="PUT")).close()


_NGINX = """
daemon off; worker_processes 1; pid {root}/nginx.pid; error_log {root}/error.log;
events {{ worker_connections 512; }}
http {{
  access_log off; client_body_temp_path {root}/t1; proxy_temp_path {root}/t2; fastcgi_temp_path {root}/t3;
  uwsgi_temp_path {root}/t4; scgi_temp_path {root}/t5;
  server {{
    listen 127.0.0.1:{port}; root {root}/data;
    location / {{ try_files $uri =404; }}
    location /plain/ {{ rewrite ^/plain/(.*)$ /$1 break; max_ranges 0; try_files $uri =404; }}
    location /forbidden/ {{ deny all; }}
  }}
}}
"""


@contextmanager
def http_server(root: Path) -> Iterator[Server]:
    """nginx over ``root/data``: with ranges at ``/``, without at ``/plain/``, and 403 at ``/forbidden/``."""
    (root / "data").mkdir(parents=True)
    port = free_port()
    config = root / "nginx.conf"
    user = "user root; " if os.geteuid() == 0 else ""
    config.write_text(user + _NGINX.format(root=root, port=port))
    with running([find_program("nginx"), "-c", str(config), "-e", str(root / "error.log")], port, root) as server:
        yield server


@contextmanager
def redis_server(root: Path) -> Iterator[Server]:
    """A Redis without persistence."""
    port = free_port()
    command = [
        find_program("redis-server"),
        "--port",
        str(port),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--dir",
        str(root),
    ]
    with running(command, port, root) as server:
        yield server
