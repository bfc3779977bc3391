"""CORS: which pages of other origins may read responses. Off unless options are given.

Source: the Fetch standard, "CORS protocol".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypedDict

from tessarr.serve.http.messages import Request, Response, with_headers

EXPOSED = ("Content-Range", "Content-Length", "Accept-Ranges", "ETag")
"""Headers that pages need and could not read otherwise."""
ALLOWED = ("Range", "If-Match", "If-None-Match", "If-Range", "Authorization")
"""Headers that pages may send. A range from the end ("bytes=-8") needs this; other ranges need no preflight."""


class CorsOptions(TypedDict, total=False):
    """Options of CORS, with the names of Starlette's middleware. Missing keys have the defaults beside them."""

    allow_origins: list[str]
    """Origins, such as ``https://app.example``, or ``["*"]`` (none)."""
    allow_methods: list[str]
    """Methods (those that are served)."""
    allow_headers: list[str]
    """Headers of requests (``Range`` and those of conditional requests)."""
    allow_credentials: bool
    """Whether cookies may be sent, never together with the origin ``*`` (``False``)."""
    allow_origin_regex: str | None
    """A regular expression that whole origins must match."""
    allow_private_network: bool
    """Whether pages of public addresses may ask for a private one (``False``)."""
    expose_headers: list[str]
    """Headers of responses that pages may read (``Content-Range``, ``Content-Length``, ``Accept-Ranges``, ``ETag``)."""
    max_age: int
    """Seconds for which a browser may cache the answer to a preflight (600)."""


def check_options(options: Mapping[str, object]) -> None:
    """Raise `ValueError` for an unknown option, and for credentials together with the origin ``*``."""
    unknown = set(options) - set(CorsOptions.__annotations__)
    if unknown:
        raise ValueError(
            f"CORS has no option {', '.join(sorted(unknown))}; expected {', '.join(CorsOptions.__annotations__)}"
        )
    origins = options.get("allow_origins") or ()
    if options.get("allow_credentials") and isinstance(origins, list) and "*" in origins:
        raise ValueError('allow_credentials needs named origins, not "*": any page could read the data as its user')


def with_cors(options: CorsOptions | None, request: Request, response: Response) -> Response:
    """Add the headers of CORS to a response."""
    if options is None:
        return response
    origin = request.header("origin")
    if origin is None or not _is_allowed(options, origin):
        return with_headers(response, [("Vary", "Origin")])
    headers = [("Access-Control-Expose-Headers", ", ".join(options.get("expose_headers", EXPOSED)))]
    return with_headers(response, [*_origin_headers(options, origin), *headers])


def preflight(options: CorsOptions | None, request: Request, methods: tuple[str, ...]) -> Response:
    """Answer OPTIONS: to a preflight what pages may send, else the methods. No token is needed, as browsers send none."""
    allow = ", ".join(methods)
    headers: list[tuple[str, str]] = [("Allow", allow)]
    origin = request.header("origin")
    if options is not None:
        headers.append(("Vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers"))
    if options is not None and origin is not None and _is_allowed(options, origin):
        headers += [(name, value) for name, value in _origin_headers(options, origin) if name != "Vary"]
        headers += [
            ("Access-Control-Allow-Methods", ", ".join(options.get("allow_methods", methods))),
            ("Access-Control-Allow-Headers", ", ".join(options.get("allow_headers", ALLOWED))),
            ("Access-Control-Max-Age", str(options.get("max_age", 600))),
        ]
        if options.get("allow_private_network") and request.header("access-control-request-private-network"):
            headers.append(("Access-Control-Allow-Private-Network", "true"))
    return Response(status=204, headers=tuple(headers))


def _origin_headers(options: CorsOptions, origin: str) -> list[tuple[str, str]]:
    if options.get("allow_credentials"):
        return [
            ("Access-Control-Allow-Origin", origin),
            ("Access-Control-Allow-Credentials", "true"),
            ("Vary", "Origin"),
        ]
    if "*" in options.get("allow_origins", ()):
        return [("Access-Control-Allow-Origin", "*")]
    return [("Access-Control-Allow-Origin", origin), ("Vary", "Origin")]


def _is_allowed(options: CorsOptions, origin: str) -> bool:
    origins = options.get("allow_origins", ())
    pattern = options.get("allow_origin_regex")
    return "*" in origins or origin in origins or (pattern is not None and re.fullmatch(pattern, origin) is not None)
