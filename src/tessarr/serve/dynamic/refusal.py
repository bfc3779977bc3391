"""The error of a request that cannot be answered, and its JSON; what is wrong with documents, in words."""

from __future__ import annotations

import json

from tessarr.errors import MetadataValidationError, TessarrError
from tessarr.serve.http.messages import Response, content


class Refusal(Exception):  # noqa: N818 - an answer to a client, with a status
    """Refuse a request, with a status of HTTP, a stable word for programs, and what to do."""

    def __init__(self, status: int, kind: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.hint = hint

    def response(self) -> Response:
        """Make the response: a JSON object ``error`` with kind, message and hint."""
        error = {"kind": self.kind, "message": str(self), **({"hint": self.hint} if self.hint else {})}
        headers = (("Retry-After", "2"),) if self.status == 503 else ()
        return content(self.status, json.dumps({"error": error}).encode() + b"\n", "application/json", headers)


def malformed(message: str, hint: str = "") -> Refusal:
    """Make the refusal of a query that has no meaning for the array (400)."""
    return Refusal(400, "query", message, hint)


def too_large(message: str, hint: str) -> Refusal:
    """Make the refusal of a request over a budget (413)."""
    return Refusal(413, "budget", message, hint)


def problem_text(error: Exception) -> str:
    """Return what is wrong with a document, without the place of the store, which is not for clients."""
    if not isinstance(error, TessarrError):
        return str(error)
    if isinstance(error, MetadataValidationError) and error.problems:
        return "; ".join(str(problem) for problem in error.problems)
    return error.what + (f"; got {error.got}" if error.got is not None else "")
