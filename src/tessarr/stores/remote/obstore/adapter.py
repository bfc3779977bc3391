"""What obstore's clients are asked and answer, in our words and theirs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tessarr.stores.fetch import Version
from tessarr.stores.remote.base import Answer
from tessarr.stores.remote.coalesce import PIECE
from tessarr.stores.remote.loop import in_thread
from tessarr.types import Buffer, ByteRange


def range_options(span: ByteRange | None) -> dict[str, Any]:
    if span is None:
        return {}
    if span.start < 0:
        return {"range": {"suffix": -span.start}}
    return {"range": {"offset": span.start} if span.stop is None else (span.start, span.stop)}


def stream(result: Any) -> Any:
    return result.stream(PIECE) if hasattr(result, "stream") else result


async def body_of(result: Any) -> Buffer:
    """The bytes of a response, from a client whose calls are awaited or from one without such calls."""
    if hasattr(result, "buffer_async"):
        return await result.buffer_async()  # type: ignore[no-any-return]
    return await in_thread(result.buffer)


def answer(result: Any, body: Buffer) -> Answer:
    return Answer(body, result.range[0], result.meta["size"], version_of(result.meta))


def head_answer(meta: Mapping[str, Any]) -> Answer:
    return Answer(b"", 0, meta["size"], version_of(meta))


def version_of(meta: Mapping[str, Any]) -> Version | None:
    """ETag and generation in one word, as `update_version` takes it apart."""
    tag, generation = meta.get("e_tag"), meta.get("version")
    if tag is None and generation is None:
        return None
    return f"{tag or ''}\n{generation}" if generation is not None else str(tag)


def update_version(version: Version) -> dict[str, str]:
    tag, newline, generation = version.partition("\n")
    return {name: part for name, part in (("e_tag", tag), ("version", generation if newline else "")) if part}


def is_past_the_end(error: Exception) -> bool:
    return "status code: 416" in str(error) or "object was only" in str(error) or "Requested range was" in str(error)


def is_range_refused(error: Exception) -> bool:
    text = str(error)
    return "non-partial response" in text or "Range request not supported" in text or "CONTENT_RANGE header" in text
