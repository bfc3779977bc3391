"""Classify the exceptions of obstore.

obstore distinguishes some errors by type. The HTTP status of other errors, the error code in the body of the response and
the cause of a transport error are only in the text of the exception: `PATTERNS` has every pattern that is searched for in
these texts, each with the reason.

Source: the module ``obstore.exceptions``.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from tessarr.stores.remote.retry import Fault, fault_of_status, scrub

Meaning: TypeAlias = Literal[
    "status",
    "directory",
    "bucket",
    "upload",
    "credentials",
    "transport",
    "timeout",
    "length",
    "past the end",
    "range refused",
]
PATTERNS: dict[Meaning, re.Pattern[str]] = {
    # `GenericError` and the errors of a failed listing give the HTTP status in their text only.
    "status": re.compile(r"status code: (\d{3})"),
    # The error of a local file system for a key that is a directory; it is an `OSError` without a number.
    "directory": re.compile(r"Is a directory"),
    # 404 is `NotFoundError` for an object and for its bucket; the error code in the body tells them apart.
    "bucket": re.compile(r"NoSuchBucket|ContainerNotFound|ResourceNotFound|AccountNotFound|bucket does not exist"),
    # 404 of a multipart upload that was completed or aborted while its response was lost.
    "upload": re.compile(r"NoSuchUpload"),
    # 403 is `PermissionDeniedError` for a key that may not be read and for credentials that are not accepted.
    "credentials": re.compile(
        r"ExpiredToken|InvalidToken|TokenRefreshRequired|InvalidAccessKeyId|SignatureDoesNotMatch|RequestTimeTooSkewed|"
        r"AuthenticationFailed|InvalidSecurity|AccountIsDisabled"
    ),
    # A failed connection is a `GenericError`, as is an invalid option.
    "transport": re.compile(
        r"(?i)http error|error sending request|response body|decoding|invalid \w+ response|timed? ?out|connection|reset|"
        r"end of file|incomplete"
    ),
    # S3 answers 400 with this code when the body came too slowly; another attempt may succeed.
    "timeout": re.compile(r"RequestTimeout"),
    # HTTP servers that send no Content-Length: obstore does not read from them, fsspec does.
    "length": re.compile(r"Content-Length Header missing"),
    # A range that begins beyond the end of a value in memory or in a local directory; servers answer with the status 416.
    "past the end": re.compile(r"object was only|Requested range was"),
    # S3 servers that answer a range with the whole value; for plain HTTP it is a `NotSupportedError`.
    "range refused": re.compile(r"non-partial response|CONTENT_RANGE header"),
}
"""The patterns for the texts of obstore's exceptions, by meaning."""


def _match(meaning: Meaning, text: str) -> re.Match[str] | None:
    return PATTERNS[meaning].search(text)


def is_past_the_end(error: Exception) -> bool:
    """Return whether a range began beyond the end of the value."""
    text = str(error)
    status = _match("status", text)
    return status[1] == "416" if status is not None else _match("past the end", text) is not None


def is_range_refused(error: Exception) -> bool:
    """Return whether the server serves no ranges."""
    return type(error).__name__ == "NotSupportedError" or _match("range refused", str(error)) is not None


def names_bad_credentials(error: Exception) -> bool:
    """Return whether a refusal is about the credentials, not about the key."""
    return _match("credentials", str(error)) is not None


def fault_of(error: Exception) -> Fault | None:
    """Classify an exception of obstore; ``None``: the exception does not concern the request."""
    name, text = type(error).__name__, str(error)
    if isinstance(error, FileNotFoundError) or _match("directory", text):
        if _match("bucket", text):
            return Fault("permanent", scrub(text), status=404)
        if _match("upload", text):  # the next attempt starts a new upload
            return Fault("retry", scrub(text), status=404)
        return Fault("missing", "", status=404, outcome="ok")
    if name in ("AlreadyExistsError", "PreconditionError"):
        return Fault("conflict", scrub(text), status=412, outcome="ok")
    if name == "NotModifiedError":
        return Fault("unchanged", "", status=304, outcome="ok")
    if found := _match("status", text):
        fault = fault_of_status(int(found[1]), text)
        return Fault("retry", fault.text, status=400) if _match("timeout", text) else fault
    if name in ("PermissionDeniedError", "UnauthenticatedError"):
        return Fault("permanent", scrub(text), status=403 if name == "PermissionDeniedError" else 401)
    if _match("length", text):
        return Fault("permanent", f"{scrub(text)}; fsspec+http:// and fsspec+https:// URLs do not need the length")
    if name == "GenericError" and _match("transport", text):
        cause, is_transient = cause_of(text)
        message = f"{scrub(text)} ({cause})" if cause else scrub(text)
        if is_transient:
            return Fault("retry", message, outcome="slow_down")
        return Fault("permanent", message)
    if name.endswith("Error") and type(error).__module__.startswith(("obstore", "obspec")):
        return Fault("permanent", scrub(text))
    return Fault("permanent", scrub(text)) if isinstance(error, OSError) else None


_CAUSES = re.compile(
    r'(?:message|error): "([^"]+)"|\bInvalidCertificate\(\s*((?:Other\(\s*OtherError\(\s*)?\w+)|\b(TimedOut|IncompleteBody|'
    r"IncompleteMessage|ConnectionReset|UnexpectedEof|Parse\(\s*\w+)"
)
_CAUSE_TEXTS = {
    "TimedOut": "timed out",
    "IncompleteBody": "the connection ended within the body",
    "IncompleteMessage": "the connection ended without a response",
    "ConnectionReset": "connection reset",
    "UnexpectedEof": "the connection ended too early",
    "Parse": "the response is not HTTP",
}


def cause_of(text: str) -> tuple[str, bool]:
    """Parse the cause of a failed request from obstore's "Debug source"; return it, and whether it is transient.

    >>> cause_of('error sending request Debug source: Os { message: "Connection refused" }')
    ('Connection refused', True)
    """
    found = _CAUSES.search(text.partition("Debug source")[2])
    if found is None:
        return "", True
    message, certificate, name = found.groups()
    if certificate is not None:
        return f"the server's certificate is not accepted ({re.split(r'[^A-Za-z]+', certificate)[-1]})", False
    return scrub(message) if message else _CAUSE_TEXTS[re.split(r"[^A-Za-z]+", name)[0]], True
