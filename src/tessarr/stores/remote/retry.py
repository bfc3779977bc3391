"""Retry failed requests to remote stores, with exponential back-off; raise typed errors when the attempts are used up.

| response | what happens |
|---|---|
| 404 for the object | no error: the key is missing |
| 404 for the bucket or container, 401, 403, other 4xx | `RequestError` at once: the response does not mean absence |
| 408, 425, 429, 500, 502, 503, 504, timeout, reset, refused connection | retry; the limiter reduces its slots |
| a certificate that is not accepted | `RequestError` at once |
| body shorter or longer than announced | retry |
| 412, 409 on a conditional write | `ConflictError` |

The back-off before attempt *n* + 1 is random between 0 and ``backoff_s * 2**n`` seconds ("full jitter"), at most
`max_backoff_s`.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from tessarr.errors import ConflictError, StoreError
from tessarr.settings import config

if TYPE_CHECKING:
    from tessarr.stores.remote.limiter import Outcome

FaultKind: TypeAlias = Literal["missing", "retry", "permanent", "conflict", "unchanged"]
_RETRIED_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504})
_TEXT_LIMIT = 300


class RequestError(StoreError):
    """A request to a remote store failed. `status` is the HTTP status; ``None``: there was no response."""

    kind = "request"

    def __init__(self, what: str, *, status: int | None = None, attempts: int = 1, **facts: object) -> None:
        super().__init__(what, **facts)
        self.status = status
        self.attempts = attempts


class Fault(Exception):  # noqa: N818 - not every fault is an error: a missing key is one
    """The classified failure of one request: see the table at the head of this file."""

    def __init__(
        self,
        kind: FaultKind,
        text: str,
        *,
        status: int | None = None,
        outcome: Outcome = "neutral",
        error: Exception | None = None,
    ) -> None:
        """Describe the failure. `error` is raised after the last attempt; ``None``: a `RequestError`."""
        super().__init__(text)
        self.kind = kind
        self.text = text
        self.status = status
        self.outcome: Outcome = outcome
        self.error = error


class RetryPolicy(NamedTuple):
    """The attempts, the back-off and the deadline of a request."""

    attempts: int = 6
    """Attempts in all, the first one included."""
    backoff_s: float = 0.1
    base: float = 2.0
    max_backoff_s: float = 10.0
    deadline_s: float = 180.0
    """No new attempt begins after this, or after the setting ``async.timeout`` where that is less. Signed requests stay
    valid for at least five minutes."""

    def back_off_s(self, attempt: int) -> float:
        """Return the back-off after an attempt, the first of which is number 0: random, with a limit that grows."""
        import random  # loads hashlib

        return random.uniform(0, min(self.backoff_s * self.base**attempt, self.max_backoff_s))


class RetryState:
    """The attempts of one request."""

    def __init__(
        self, policy: RetryPolicy, *, store: str, key: str = "", operation: str, began: float | None = None
    ) -> None:
        """Start counting attempts. `began` is the start of the first, by `time.monotonic`; ``None``: now."""
        self._policy = policy
        self._place = {"store": store, "key": key}
        self._operation = operation
        self._began = time.monotonic() if began is None else began
        self.attempts = 0

    def pause(self, fault: Fault) -> float:
        """Return the seconds to wait before the next attempt; raise the error of `fault` after the last attempt."""
        self.attempts += 1
        if fault.kind == "conflict":
            raise ConflictError(
                "another writer was faster", **self._place, expected="the version that was read", got=fault.text
            )
        late = time.monotonic() - self._began > self._deadline_s()
        if fault.kind != "retry" or late or self.attempts >= self._policy.attempts:
            raise self._error(fault) if fault.error is None else fault.error
        return self._policy.back_off_s(self.attempts - 1)

    def _deadline_s(self) -> float:
        """Return the earlier of the policy's deadline and the setting ``async.timeout``."""
        timeout = config.get("async.timeout")
        return self._policy.deadline_s if timeout is None else min(float(timeout), self._policy.deadline_s)

    def _error(self, fault: Fault) -> RequestError:
        status = "no answer" if fault.status is None else f"status {fault.status}"
        times = f"{self.attempts} attempt{'s' if self.attempts > 1 else ''}"
        return RequestError(
            f"{self._operation} failed",
            status=fault.status,
            attempts=self.attempts,
            **self._place,
            got=f"{status} after {times}: {fault.text}",
            hint=_HINTS.get(fault.status or 0),
        )


_HINTS = {
    401: "Give credentials in storage_options or in the environment",
    403: "The credentials do not allow this. Where listing is not allowed, S3 also answers 403 for missing keys: "
    "storage_options={'forbidden_is_missing': 'documents'} then takes 403 for absence of metadata documents, True of any key",
    404: "The bucket or container does not exist, or the credentials do not allow to see it",
}


def fault_of_status(status: int, text: str) -> Fault:
    """Classify a response with the HTTP error `status`. 404 is taken to be about the object."""
    text = scrub(text)
    if status in _RETRIED_STATUSES:
        return Fault("retry", text, status=status, outcome="slow_down")
    if status in (404, 410):
        return Fault("missing", text, status=status, outcome="ok")
    return Fault({412: "conflict", 409: "conflict", 304: "unchanged"}.get(status, "permanent"), text, status=status)  # type: ignore[arg-type]


_XML_CODE = re.compile(r"<Code>([^<]+)</Code>")
_XML_MESSAGE = re.compile(r"<Message>([^<]+)</Message>")
_SECRET_QUERY = re.compile(r"\?[^\s\"'<>)]*")
_USERINFO = re.compile(r"(?<=://)[^/@\s]*@")
_HEADER = re.compile(
    r"(?i)(authorization|token|secret|password|signature|credential|sig|key)(\"?\s*[:=]\s*)\S+.*?(?=[,\n;]|$)"
)


def scrub(text: str) -> str:
    """Return `text` on one line, cut to a readable length, with everything removed that could be a credential."""
    code, message = _XML_CODE.search(text), _XML_MESSAGE.search(text)
    if code is not None:
        text = f"{code[1]}: {message[1]}" if message is not None else code[1]
    text = " ".join(text.split("Debug source")[0].split())
    return _HEADER.sub(r"\1\2…", scrub_url(text))[:_TEXT_LIMIT]


def scrub_url(url: str) -> str:
    """Return `url` without user name, password and queries.

    >>> scrub_url("s3+http://me:secret@host/bucket?token=1")
    's3+http://host/bucket'
    """
    return _USERINFO.sub("", _SECRET_QUERY.sub("", url))
