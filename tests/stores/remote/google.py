"""Google's XML uploads, which the emulator lacks, in the words that it knows (its JSON interface)."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import parse_qs, quote, unquote


class Message(NamedTuple):
    """A request or an answer; names of headers in lower case."""

    head: str
    headers: dict[str, str]
    body: bytes


Send = Callable[[Message], Awaitable[Message]]


@dataclass
class XmlUploads:
    """Translates uploads, whole and in parts; the parts of an upload are kept here until it ends."""

    _parts: dict[str, dict[int, bytes]] = field(default_factory=dict)

    async def answer(self, request: Message, send: Send) -> Message:
        """The answer to `request`; `send` asks the emulator."""
        method, target, _ = request.head.split(" ", 2)
        place, _, query = target.partition("?")
        asked = {name: values[0] for name, values in parse_qs(query, keep_blank_values=True).items()}
        if "uploads" in asked:
            number = str(len(self._parts))
            self._parts[number] = {}
            return _xml(f"<InitiateMultipartUploadResult><UploadId>{number}</UploadId></InitiateMultipartUploadResult>")
        if "uploadId" not in asked:
            return await _put(request, send) if method == "PUT" else await send(request)
        parts = self._parts.get(asked["uploadId"])
        if parts is None:
            return _xml("<Error><Code>NoSuchUpload</Code></Error>", "404 Not Found")
        if method == "PUT":
            parts[int(asked["partNumber"])] = request.body
            return Message("HTTP/1.1 200 OK", {"etag": f'"{asked["partNumber"]}"', "content-length": "0"}, b"")
        del self._parts[asked["uploadId"]]
        if method == "DELETE":
            return Message("HTTP/1.1 204 No Content", {}, b"")
        wanted = [int(number) for number in re.findall(rb"<PartNumber>(\d+)</PartNumber>", request.body)]
        whole = b"".join(parts[number] for number in wanted)
        made = await _put(Message(f"PUT {place} HTTP/1.1", request.headers, whole), send)
        if not made.head.split(" ", 2)[1].startswith("2"):
            return made
        ended = _xml(
            f"<CompleteMultipartUploadResult><ETag>{made.headers['etag']}</ETag></CompleteMultipartUploadResult>"
        )
        return ended._replace(headers={**made.headers, **ended.headers})


async def _put(request: Message, send: Send) -> Message:
    _, target, version = request.head.split(" ", 2)
    bucket, _, name = unquote(target.partition("?")[0]).lstrip("/").partition("/")
    query = f"uploadType=media&name={quote(name, safe='')}"
    headers = dict(request.headers)
    generation = headers.pop("x-goog-if-generation-match", None)
    if generation is not None:
        query += f"&ifGenerationMatch={generation}"
    answer = await send(Message(f"POST /upload/storage/v1/b/{bucket}/o?{query} {version}", headers, request.body))
    if not answer.head.split(" ", 2)[1].startswith("2"):
        return answer
    made = json.loads(answer.body)
    told = {"etag": json.dumps(made["etag"]), "x-goog-generation": str(made["generation"]), "content-length": "0"}
    return Message(answer.head, told, b"")


def _xml(body: str, status: str = "200 OK") -> Message:
    headers = {"content-type": "application/xml", "content-length": str(len(body))}
    return Message(f"HTTP/1.1 {status}", headers, body.encode())
