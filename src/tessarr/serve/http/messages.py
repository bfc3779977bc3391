"""HTTP requests and responses as values.

Source: RFC 9110 (HTTP semantics).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TypeAlias, cast

from tessarr.core.asynchronous.sans_io import Steps
from tessarr.types import Buffer

Window: TypeAlias = "Buffer | Callable[[], Steps[Buffer]]"
"""An interval of the content of a response: bytes, or steps that read the bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Hold one HTTP request.

    >>> Request.of("GET", "/a%20b?keys", {"Range": "bytes=0-"}).header("range")
    'bytes=0-'
    """

    method: str
    path: str
    """The path of the target as it was sent, percent-encoded."""
    query: str = ""
    """The query of the target as it was sent, without the question mark."""
    headers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Name in lower case → values, in the order of their lines."""

    @classmethod
    def of(cls, method: str, target: str, headers: Mapping[str, str] | Iterable[tuple[str, str]] = ()) -> Request:
        """Make a request from a target (path and query) and headers."""
        path, _, query = target.partition("?")
        lines = cast("Mapping[str, str]", headers).items() if isinstance(headers, Mapping) else headers
        return cls(method=method, path=path, query=query, headers=grouped(lines))

    def header(self, name: str) -> str | None:
        """Return the value of a header, lines of one name joined by commas; ``None`` when it was not sent."""
        values = self.headers.get(name)
        return None if values is None else ", ".join(values)


def grouped(lines: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Group header lines by their names, in lower case."""
    headers: dict[str, tuple[str, ...]] = {}
    for name, value in lines:
        headers[name.lower()] = (*headers.get(name.lower(), ()), value.strip(" \t"))
    return headers


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """Hold one HTTP response."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    windows: Sequence[Window] = ()
    """The content. The first window of a content that is read in steps is bytes: it was read before the status was known."""
    nbytes: int = 0
    """Length of the content in bytes; for HEAD and 304, of the content that GET returns."""

    def header(self, name: str) -> str | None:
        """Return the value of the first header of that name, or ``None``."""
        return next((value for known, value in self.headers if known.lower() == name.lower()), None)

    @property
    def announces_length(self) -> bool:
        """Whether the response has a ``Content-Length``: not with 204 and 304, whose content is always empty."""
        return self.status not in (204, 304)


def with_headers(response: Response, headers: Iterable[tuple[str, str]]) -> Response:
    """Return the response with more headers; those that it has already stay."""
    known = {name.lower() for name, _ in response.headers}
    more = [(name, value) for name, value in headers if name.lower() not in known]
    return Response(
        status=response.status, headers=(*response.headers, *more), windows=response.windows, nbytes=response.nbytes
    )


def without_content(response: Response) -> Response:
    """Return the response to HEAD: the same headers, no content."""
    return Response(status=response.status, headers=response.headers, nbytes=response.nbytes)


def content(
    status: int, data: bytes, kind: str = "text/plain; charset=utf-8", headers: Iterable[tuple[str, str]] = ()
) -> Response:
    """Make a response from its content."""
    return Response(
        status=status, headers=(("Content-Type", kind), *headers), windows=(data,) if data else (), nbytes=len(data)
    )


def problem(status: int, text: str = "", headers: Iterable[tuple[str, str]] = ()) -> Response:
    """Make the response of an error: its reason, and what to do, as text."""
    reason = HTTPStatus(status).phrase
    return content(status, f"{status} {reason}{': ' if text else ''}{text}\n".encode(), headers=headers)
