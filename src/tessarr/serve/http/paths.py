"""Paths of URLs, keys, tokens and hosts.

Each segment of a path is decoded once, so that ``%2F`` cannot make a slash, and then checked. A name is encoded so that only
letters, digits and ``-._~`` stay: a link in a listing is never taken for a scheme (``a:b``), a query or a fragment.

>>> quoted("a b/ü+%#?"), parse_path("/a%20b/%C3%BC")
('a%20b/%C3%BC%2B%25%23%3F', Path(segments=('a b', 'ü'), is_directory=False))
"""

from __future__ import annotations

import hmac
import os
import re
from collections.abc import Collection
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, unquote_to_bytes

from tessarr.serve.http.messages import Request
from tessarr.stores.path import windows_name_problem

TOKEN_SEGMENT = "t"
"""The segment before the token."""
_FORBIDDEN = re.compile(r"[/\\\x00-\x1f]").search
LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")
"""Hosts by which a browser on the same machine reaches a server on loopback."""


class Path(NamedTuple):
    """A decoded path."""

    segments: tuple[str, ...]
    is_directory: bool
    """The path ends with a slash."""

    @property
    def key(self) -> str:
        """The segments, joined by slashes."""
        return "/".join(self.segments)

    @property
    def prefix(self) -> str:
        """The key with a slash at its end; empty for no segments."""
        return f"{self.key}/" if self.segments else ""


@lru_cache(maxsize=256)  # each request asks for the name of its place
def quoted(key: str) -> str:
    """Encode a key as the path of a URL, segment by segment."""
    return "/".join(quote(segment, safe="") for segment in key.split("/"))


def parse_path(path: str, *, windows: bool = os.name == "nt") -> Path | None:
    r"""Decode the path of a target; ``None``: it can name no key.

    That are paths with an empty segment, ``.`` or ``..``, a control character, a slash or backslash within a segment, bytes
    that are not UTF-8, and on Windows names of devices, streams and drives.

    >>> [parse_path(text) for text in ("/a//b", "/../x", "/a%2fb", "/%5c%5cserver", "/%00", "/%ff")]
    [None, None, None, None, None, None]
    >>> parse_path("/a/nul.txt", windows=True), parse_path("/c:/x", windows=True), parse_path("/c:/x", windows=False).key
    (None, None, 'c:/x')
    """
    if not path.startswith("/") or not path.isascii():
        return None
    rest, is_directory = path[1:], path.endswith("/")
    parts = rest.removesuffix("/").split("/") if rest.removesuffix("/") else []
    if rest == "/":  # "//" is an empty segment, "/" is the root
        return None
    segments: list[str] = []
    for part in parts:
        try:
            name = unquote_to_bytes(part).decode("utf-8") if "%" in part else part
        except UnicodeDecodeError:
            return None
        if name in ("", ".", "..") or _FORBIDDEN(name) is not None:
            return None
        if windows and windows_name_problem(name) is not None:
            return None
        segments.append(name)
    return Path(tuple(segments), is_directory)


def below(path: str, root: str) -> str | None:
    """Return the part of a path below `root` (with a leading slash); ``None``: the path is elsewhere.

    >>> below("/data/x", "/data"), below("/database", "/data"), below("/x", ""), below("/data", "/data")
    ('/x', None, '/x', '')
    """
    root = root.rstrip("/")
    if path == root or path.startswith(f"{root}/"):
        return path[len(root) :]
    return None


def without_token(request: Request, path: str, token: str) -> str | None:
    """Return the path without ``/t/TOKEN``, or the path if the header ``Authorization`` holds the token; else ``None``.

    The comparison takes the same time wherever the texts differ.
    """
    first, _, rest = path.removeprefix("/").partition("/")
    given, slash, after = rest.partition("/")
    if first == TOKEN_SEGMENT and _equal(given, token):
        return slash + after
    kind, _, bearer = (request.header("authorization") or "").partition(" ")
    return path if kind.lower() == "bearer" and _equal(bearer.strip(), token) else None


def _equal(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), token.encode())


def host_is_allowed(request: Request, allowed: Collection[str] | None) -> bool:
    """Whether the header ``Host`` names one of the allowed hosts; ``None`` allows every host.

    A page of another site whose name was made to resolve to this machine (DNS rebinding) sends its own name.

    >>> of = lambda *hosts: Request(method="GET", path="/", headers={"host": hosts} if hosts else {})
    >>> [host_is_allowed(of(*hosts), ["localhost", "[::1]"]) for hosts in (["LOCALHOST:80"], ["[::1]:1"], ["evil.test"], [])]
    [True, True, False, False]
    """
    if allowed is None:
        return True
    hosts = request.headers.get("host", ())
    return len(hosts) == 1 and ("*" in allowed or name_of_host(hosts[0]) in {host.lower() for host in allowed})


def name_of_host(host: str) -> str:
    """Return a host without its port, in lower case.

    >>> name_of_host("[::1]:8000"), name_of_host("Example.org:80"), name_of_host("example.org.")
    ('[::1]', 'example.org', 'example.org')
    """
    name, colon, port = host.strip().rpartition(":")
    if not colon or not port.isdigit() or (host.startswith("[") and not name.endswith("]")):
        name = host.strip()
    return name.lower().rstrip(".")
