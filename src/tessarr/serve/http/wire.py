"""The wire format of HTTP/1.1: parse the head of a request, write the head of a response.

The parser accepts less than clients may send by old specifications, because every leniency is a way to hide a second
request behind the first: lines end with CR LF, there are no folded lines, no spaces before a colon, one ``Host``, no
``Transfer-Encoding``, and at most one ``Content-Length``.

Source: RFC 9112.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import NamedTuple

from tessarr.serve.http.messages import Request, Response, grouped

MAX_HEAD = 16 << 10
"""Bytes of a request line and headers."""
MAX_LINES = 100
MAX_CONTENT = 64 << 10
"""Bytes of the content of a request, which is read and ignored: WebDAV clients send an XML document with PROPFIND."""
HEAD_END = b"\r\n\r\n"
_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}) ([\x21-\x7e]{1,8192}) HTTP/1\.([01])")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x20-\x7e\x80-\xff\t]*)")
_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}" for status in HTTPStatus}
_ABSOLUTE = re.compile(r"https?://([^/?#]*)(.*)", re.IGNORECASE)


class Head(NamedTuple):
    """The head of a request."""

    request: Request
    nbytes: int
    """Length of the content that follows."""
    keeps_alive: bool
    """The client may send another request over this connection."""


class BadHead(NamedTuple):
    """Why a head is refused; the connection ends after the response."""

    status: int
    text: str


def parse_head(data: bytes) -> Head | BadHead:
    """Parse the head of a request, without the empty line at its end.

    >>> head = parse_head(b"GET /x HTTP/1.1\\r\\nHost: a")
    >>> head.request.path, head.keeps_alive
    ('/x', True)
    >>> parse_head(b"GET /x HTTP/1.1\\r\\nHost: a\\r\\nHost: b")
    BadHead(status=400, text='not exactly one Host')
    """
    lines = data.split(b"\r\n")
    line = _LINE.fullmatch(lines[0])
    if line is None:
        return BadHead(400, "malformed request line")
    if len(lines) > MAX_LINES:
        return BadHead(431, f"more than {MAX_LINES} headers")
    found: list[tuple[str, str]] = []
    for text in lines[1:]:
        header = _HEADER.fullmatch(text)
        if header is None:
            return BadHead(400, "malformed header")
        found.append((header[1].decode("ascii"), header[2].decode("latin-1")))
    target, headers = line[2].decode("ascii"), grouped(found)
    is_old = line[3] == b"0"
    absolute = _ABSOLUTE.fullmatch(target)
    if absolute is not None:
        target = absolute[2] if absolute[2].startswith("/") else f"/{absolute[2]}"
        headers["host"] = (absolute[1],) if len(headers.get("host", ())) == 1 else ()
    problem = _problem(headers, target, is_old)
    if problem is not None:
        return problem
    path, _, query = target.partition("?")
    request = Request(method=line[1].decode("ascii"), path=path, query=query, headers=headers)
    length = headers.get("content-length", ("0",))[0]
    options = {option.strip().lower() for value in headers.get("connection", ()) for option in value.split(",")}
    return Head(request, int(length), "close" not in options and (not is_old or "keep-alive" in options))


def _problem(headers: dict[str, tuple[str, ...]], target: str, is_old: bool) -> BadHead | None:
    if len(headers.get("host", ())) != 1 and not (is_old and "host" not in headers):
        return BadHead(400, "not exactly one Host")
    if "transfer-encoding" in headers:
        return BadHead(501, "Transfer-Encoding is not supported")
    lengths = headers.get("content-length", ())
    if len(lengths) > 1 or any(re.fullmatch(r"[0-9]{1,18}", length) is None for length in lengths):
        return BadHead(400, "malformed Content-Length")
    if lengths and int(lengths[0]) > MAX_CONTENT:
        return BadHead(413, f"the content of a request may have {MAX_CONTENT} bytes")
    if not target.startswith("/") and target != "*":
        return BadHead(400, "malformed target")
    return None


def dump_head(response: Response, *, closes: bool, date: str | None = None) -> bytes:
    """Return the head of a response, the empty line at its end included."""
    lines = [_STATUS_LINES[response.status]]
    lines += [f"{name}: {value}" for name, value in response.headers]
    if response.announces_length:
        lines.append(f"Content-Length: {response.nbytes}")
    if date is not None:
        lines.append(f"Date: {date}")
    lines.append(f"Connection: {'close' if closes else 'keep-alive'}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
