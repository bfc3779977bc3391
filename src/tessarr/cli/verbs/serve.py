"""``tessarr serve``: serve a hierarchy over HTTP, read-only."""

from __future__ import annotations

import argparse
import getpass
import os
import secrets
import signal
import socket
import sys

from tessarr.cli.places import split_place, storage_options
from tessarr.cli.printing import OK, add_place, add_verb, note, print_json

_TOKEN_NBYTES = 16


def add(verbs: object) -> None:
    """Add the verb."""
    verb = add_verb(
        verbs,
        "serve",
        summary="serve a hierarchy over HTTP, read-only",
        text="Serve a hierarchy over HTTP to every client that reads Zarr: browsers, zarr-python, xarray, GDAL, neuroglancer. "
        "The first line of the output is the URL of its root. Only this machine can connect, and only who knows the URL.",
        examples="""
tessarr serve data.zarr
tessarr serve data.zip --port 8080
tessarr serve s3://bucket/data.zarr --storage skip_signature=true
tessarr serve data.zarr --cors https://hms-dbmi.github.io
tessarr serve data.zarr --host 0.0.0.0 --public --allowed-host data.example.org
""",
    )
    add_place(verb)
    verb.add_argument("--host", default="127.0.0.1", help="the address to listen at (127.0.0.1: this machine only)")
    verb.add_argument("--port", type=_port, default="auto", help="the port (8000, or a free one where that is taken)")
    secret = verb.add_mutually_exclusive_group()
    secret.add_argument("--token", metavar="TEXT", help="the secret in the URL (default: a random one)")
    secret.add_argument("--public", action="store_true", help="no secret in the URL: who can connect can read")
    verb.add_argument("--root-path", default="", metavar="PATH", help="the path under which a proxy offers the server")
    verb.add_argument(
        "--allowed-host", action="append", default=[], metavar="NAME",
        help="answer requests for this host name too; * for all (may be repeated)",
    )  # fmt: skip
    verb.add_argument(
        "--cors", action="append", default=[], metavar="ORIGIN",
        help="let pages of this origin read the data; * for all (may be repeated)",
    )  # fmt: skip
    verb.add_argument("--as-stored", action="store_true", help="do not make up consolidated metadata")
    verb.add_argument(
        "--no-dynamic", action="store_true", help="serve what is stored only: no slices, pictures, statistics"
    )
    verb.add_argument("--follow-symlinks", action="store_true", help="follow links out of the directory")
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serve until interrupted."""
    from tessarr.serve import CorsOptions, app
    from tessarr.serve.running import bind
    from tessarr.serve.threaded import Server

    host: str = arguments.host
    is_local = host in ("127.0.0.1", "::1", "localhost")
    if not is_local and not arguments.public and arguments.token is None:
        raise ValueError(
            f"{host} can be reached from other machines; say --public to let everyone read, or choose a secret with --token"
        )
    place, inner = split_place(arguments.place)
    path = "/".join(part.strip("/") for part in (inner, arguments.path) if part.strip("/"))
    cors: CorsOptions | None = {"allow_origins": arguments.cors} if arguments.cors else None
    application = app(
        place, path, storage_options=storage_options(arguments.storage), name=_name(place, path),
        token=None if arguments.public else arguments.token or secrets.token_urlsafe(_TOKEN_NBYTES),
        allowed_hosts=[*_hosts(host), *arguments.allowed_host], cors_options=cors,
        root_path=_root_path(arguments.root_path), as_stored=arguments.as_stored, follow_links=arguments.follow_symlinks,
        dynamic=not arguments.no_dynamic,
    )  # fmt: skip
    sock = bind(host, arguments.port)
    port: int = sock.getsockname()[1]
    server = Server(application, sock)
    _announce(arguments, host, port, f"{application.served.base}/")
    previous = signal.signal(signal.SIGTERM, lambda *_: server.stop())
    try:
        server.run()
    finally:
        signal.signal(signal.SIGTERM, previous)
        server.close(5.0)
    return OK


def _announce(arguments: argparse.Namespace, host: str, port: int, base: str) -> None:
    """Print the URL on the first line, and how to reach it from the machine where the user sits."""
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    url = f"http://{f'[{shown}]' if ':' in shown else shown}:{port}{base}"
    tunnel = _tunnel(port) if os.environ.get("SSH_CONNECTION") else None
    if arguments.json:
        print_json({"url": url, "host": host, "port": port, "ssh": tunnel})
    else:
        print(url)
        if tunnel is not None:
            print(f"from your machine: {tunnel}")
    sys.stdout.flush()
    if not arguments.json:
        note("press Ctrl+C to stop")


def _tunnel(port: int) -> str:
    """Return the command that makes the port reachable through SSH."""
    address = os.environ["SSH_CONNECTION"].split()
    there = address[2] if len(address) > 2 else socket.gethostname()
    return f"ssh -N -L {port}:127.0.0.1:{port} {getpass.getuser()}@{there}"


def _hosts(host: str) -> list[str]:
    from tessarr.serve.http.paths import LOCAL_NAMES

    shown = f"[{host}]" if ":" in host else host
    return [*LOCAL_NAMES, *([] if shown in ("0.0.0.0", "[::]") else [shown])]


def _name(place: str, path: str) -> str:
    """Return the last name of a place or path, which ends the URL: viewers show it as a title."""
    whole = path or os.path.abspath(place) if "://" not in place else path or place.rstrip("/")
    name = whole.replace("\\", "/").rstrip("/").rpartition("/")[2].partition("|")[0]
    return name if name not in ("", ".", "..") and name.isprintable() else "data.zarr"


def _root_path(given: str) -> str:
    return f"/{given.strip('/')}" if given.strip("/") else ""


def _port(text: str) -> int | str:
    return text if text == "auto" else int(text)
