"""What an exception of obstore says about a request.

obstore distinguishes errors by type where it can. The rest (the HTTP status of an error without a type of its own, the error
code in the body of the response, the cause of a transport error) is in the text of the exception alone: `PATTERNS` is the one
table of what the text is searched for, each with the reason.

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
    # A failed connection is a `GenericError`, as is an option that means nothing.
    "transport": re.compile(
        r"(?i)http error|error sending request|response body|decoding|invalid \w+ response|timed? ?out|connection|reset|"
        r"end of file|incomplete"
    ),
    # S3 answers 400 with this code when the body came too slowly; another attempt may succeed.
    "timeout": re.compile(r"RequestTimeout"),
    # HTTP servers that state no length: obstore does not read from them, fsspec does.
    "length": re.compile(r"Content-Length Header missing"),
    # 416, in the words of each store: a range that begins behind the end is empty here.
    "past the end": re.compile(r"status code: 416|object was only|Requested range was"),
    # HTTP servers that answer a range with the whole value.
    "range refused": re.compile(r"non-partial response|Range request not supported|CONTENT_RANGE header"),
}
"""What the text of an exception of obstore is searched for."""


def _says(meaning: Meaning, text: str) -> re.Match[str] | None:
    return PATTERNS[meaning].search(text)


def is_past_the_end(error: Exception) -> bool:
    """Return whether a range began behind the end of the value."""
    return _says("past the end", str(error)) is not None


def is_range_refused(error: Exception) -> bool:
    """Return whether the server serves no ranges."""
    return _says("range refused", str(error)) is not None


def names_bad_credentials(error: Exception) -> bool:
    """Return whether a refusal is about the credentials, not about the key."""
    return _says("credentials", str(error)) is not None


def fault_of(error: Exception) -> Fault | None:
    """Classify an exception of obstore; ``None`` for one that is not about the request."""
    name, text = type(error).__name__, str(error)
    if isinstance(error, FileNotFoundError) or _says("directory", text):
        if _says("bucket", text):
            return Fault("final", scrub(text), status=404)
        if _says("upload", text):  # it starts over
            return Fault("again", scrub(text), status=404)
        return Fault("missing", "", status=404, outcome="ok")
    if name in ("AlreadyExistsError", "PreconditionError"):
        return Fault("conflict", scrub(text), status=412, outcome="ok")
    if found := _says("status", text):
        fault = fault_of_status(int(found[1]), text)
        return Fault("again", fault.text, status=400) if _says("timeout", text) else fault
    if name in ("PermissionDeniedError", "UnauthenticatedError"):
        return Fault("final", scrub(text), status=403 if name == "PermissionDeniedError" else 401)
    if _says("length", text):
        return Fault("final", f"{scrub(text)}; as fsspec+http:// or fsspec+https:// it is read without")
    if name == "GenericError" and _says("transport", text):
        cause, may_pass = cause_of(text)
        message = f"{scrub(text)} ({cause})" if cause else scrub(text)
        return Fault("again" if may_pass else "final", message, outcome="slow_down" if may_pass else "neutral")
    if name.endswith("Error") and type(error).__module__.startswith(("obstore", "obspec")):
        return Fault("final", scrub(text))
    return Fault("final", scrub(text)) if isinstance(error, OSError) else None


_CAUSES = re.compile(
    r'(?:message|error): "([^"]+)"|\bInvalidCertificate\(\s*((?:Other\(\s*OtherError\(\s*)?\w+)|\b(TimedOut|IncompleteBody|'
    r"IncompleteMessage|ConnectionReset|UnexpectedEof|Parse\(\s*\w+)"
)
_IN_WORDS = {
    "TimedOut": "timed out",
    "IncompleteBody": "the connection ended within the body",
    "IncompleteMessage": "the connection ended without an answer",
    "ConnectionReset": "connection reset",
    "UnexpectedEof": "the connection ended too early",
    "Parse": "the answer is not HTTP",
}


def cause_of(text: str) -> tuple[str, bool]:
    """What obstore's "Debug source" says lies behind a failed request, and whether another attempt could help.

    >>> cause_of('error sending request Debug source: Os { message: "Connection refused" }')
    ('Connection refused', True)
    """
    found = _CAUSES.search(text.partition("Debug source")[2])
    if found is None:
        return "", True
    said, certificate, name = found.groups()
    if certificate is not None:
        return f"the server's certificate is not accepted ({re.split(r'[^A-Za-z]+', certificate)[-1]})", False
    return scrub(said) if said else _IN_WORDS[re.split(r"[^A-Za-z]+", name)[0]], True
