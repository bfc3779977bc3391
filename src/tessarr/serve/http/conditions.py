"""Conditional requests: entity tags, and the preconditions of RFC 9110 in their order.

All entity tags here are strong: equal tags mean equal bytes. No times are compared, because versions of values are not times.

Source: RFC 9110, 8.8.3, 13.1, 13.2.2.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Literal

from tessarr.serve.http.messages import Request

_TAGS = re.compile(r'\s*(?:,\s*)*(W/)?"([\x21\x23-\x7e\x80-\xff]*)"\s*(?:,|$)')


def etag_of(*parts: str | bytes) -> str:
    """Return the entity tag of a value, from its version or its bytes; neither can be read from the tag.

    >>> etag_of("a", "1") == etag_of("a", "1"), etag_of("a", "1") == etag_of("a1", "")
    (True, False)
    """
    digest = blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return f'"{digest.hexdigest()}"'


def tags(header: str) -> list[tuple[bool, str]] | None:
    """Parse a list of entity tags to (is weak, tag with quotes); ``None`` for a malformed list.

    >>> tags('"a", W/"b"'), tags("a")
    ([(False, '"a"'), (True, '"b"')], None)
    """
    found, at = [], 0
    while at < len(header):
        match = _TAGS.match(header, at)
        if match is None:
            return None
        found.append((match[1] is not None, f'"{match[2]}"'))
        at = match.end()
    return found


def decide(request: Request, etag: str | None) -> Literal[304, 412] | None:
    """Return the status that the conditions of a request demand for a value with `etag`; ``None``: the value itself.

    `etag` is ``None`` where the version is unknown: it then equals no tag.
    """
    match = request.header("if-match")
    if match is not None and match.strip() != "*" and (etag is None or not _holds(match, etag, weak=False)):
        return 412
    none_match = request.header("if-none-match")
    if none_match is not None and (none_match.strip() == "*" or (etag is not None and _holds(none_match, etag))):
        return 304
    return None


def range_applies(request: Request, etag: str | None) -> bool:
    """Whether ``Range`` is to be respected: without ``If-Range``, or where that names the present entity tag.

    A date never matches, so that the whole value is sent, which is always correct.
    """
    wanted = request.header("if-range")
    return wanted is None or (etag is not None and wanted.strip() == etag)


def _holds(header: str, etag: str, *, weak: bool = True) -> bool:
    """Whether a list of entity tags holds `etag`; without `weak`, weak tags equal none."""
    return any(tag == etag and (weak or not is_weak) for is_weak, tag in tags(header) or ())
