"""Share what verbs need that run a server: its options, the URL on the first line of the output, and the end."""

from __future__ import annotations

import argparse
import getpass
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from tessarr.cli.places import split_place, storage_options, what_is_there
from tessarr.cli.printing import OK, note, print_json
from tessarr.errors import NodeNotFoundError
from tessarr.stores.url import is_url

if TYPE_CHECKING:
    from tessarr.serve import App


def add_server_options(verb: argparse.ArgumentParser) -> None:
    """Add the options of a server."""
    verb.add_argument(
        "--host", default="localhost", help="the address to listen at (localhost: this machine only, 127.0.0.1 and ::1)"
    )
    verb.add_argument("--port", type=_port, default="auto", help="the port (8000, or a free one where that is taken)")
    secret = verb.add_mutually_exclusive_group()
    secret.add_argument("--token", metavar="TEXT", help="the secret in the URL (default: a random one)")
    secret.add_argument("--public", action="store_true", help="no secret in the URL: who can connect can read")
    verb.add_argument("--root-path", default="", metavar="PATH", help="the path under which a proxy offers the server")
    verb.add_argument(
        "--allowed-host", action="append", default=[], metavar="NAME",
        help="answer requests for this host name too; * for all (may be repeated)",
    )  # fmt: skip
    verb.add_argument("--follow-symlinks", action="store_true", help="follow links out of the directory")


def application_of(
    arguments: argparse.Namespace,
    *,
    cors: list[str] | None = None,
    as_stored: bool = False,
    dynamic: bool = True,
    page: Mapping[str, tuple[bytes, str]] | None = None,
) -> App:
    """Make the application that serves the place of a command. Raises `ValueError` for an unsafe combination of options."""
    from tessarr.serve import app
    from tessarr.serve.served import new_token

    host: str = arguments.host
    is_local = host in ("127.0.0.1", "::1", "localhost")
    if not is_local and not arguments.public and arguments.token is None:
        raise ValueError(
            f"{host} can be reached from other machines; say --public to let everyone read, or choose a secret with --token"
        )
    place, inner = split_place(arguments.place)
    path = "/".join(part.strip("/") for part in (inner, arguments.path) if part.strip("/"))
    if not is_url(place) and not os.path.exists(place):
        raise NodeNotFoundError("no such file or directory", store=place)
    try:
        return app(
            place, path, storage_options=storage_options(arguments.storage), name=name_of(place, path),
            token=None if arguments.public else arguments.token or new_token(),
            allowed_hosts=[*_hosts(host), *arguments.allowed_host], cors_options={"allow_origins": cors} if cors else None,
            root_path=_root_path(arguments.root_path), as_stored=as_stored, follow_links=arguments.follow_symlinks,
            dynamic=dynamic, page=page,
        )  # fmt: skip
    except NodeNotFoundError as error:
        error.hint = what_is_there(place, path, arguments.storage)
        raise


def run_server(
    application: App, arguments: argparse.Namespace, path: str, then: Callable[[str], object] | None = None
) -> int:
    """Serve until interrupted. `path` is that of the URL that is printed; `then` is called with the URL."""
    from tessarr.serve.running import listen
    from tessarr.serve.threaded import Server

    host: str = arguments.host
    sockets = listen(host, arguments.port)
    port: int = sockets[0].getsockname()[1]
    server = Server(application, sockets)
    url = _announce(arguments, host, port, path)
    if then is not None:
        then(url)
    previous = signal.signal(signal.SIGTERM, lambda *_: server.stop())
    previous_fd = signal.set_wakeup_fd(server.wakeup_fd, warn_on_full_buffer=False)
    try:
        server.run()
    finally:
        signal.set_wakeup_fd(previous_fd)
        signal.signal(signal.SIGTERM, previous)
        server.close(5.0)
    return OK


def _announce(arguments: argparse.Namespace, host: str, port: int, path: str) -> str:
    """Print the URL on the first line, and how to reach it from the machine where the user sits; return the URL."""
    shown = {"localhost": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    url = f"http://{f'[{shown}]' if ':' in shown else shown}:{port}{path}"
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
    return url


def _tunnel(port: int) -> str:
    """Return the command that makes the port reachable through SSH."""
    address = os.environ["SSH_CONNECTION"].split()
    there = address[2] if len(address) > 2 else socket.gethostname()
    return f"ssh -N -L {port}:127.0.0.1:{port} {getpass.getuser()}@{there}"


def _hosts(host: str) -> list[str]:
    from tessarr.serve.http.paths import LOCAL_NAMES

    shown = f"[{host}]" if ":" in host else host
    return [*LOCAL_NAMES, *([] if shown in ("0.0.0.0", "[::]") else [shown])]


def name_of(place: str, path: str) -> str:
    """Return the last name of a place or path, which ends the URL: viewers show it as a title."""
    from tessarr.serve.served import last_name

    return last_name(path or (place if "://" in place else os.path.abspath(place)))


def _root_path(given: str) -> str:
    return f"/{given.strip('/')}" if given.strip("/") else ""


def _port(text: str) -> int | str:
    return text if text == "auto" else int(text)
