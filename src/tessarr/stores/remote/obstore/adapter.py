"""Call the clients of obstore, blocking or awaited; convert ranges and versions between our form and theirs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tessarr.stores.fetch import Version
from tessarr.stores.remote import loop
from tessarr.stores.remote.coalesce import BIG, PART_SIZE
from tessarr.stores.remote.loop import block, in_thread
from tessarr.stores.remote.obstore import clients
from tessarr.types import Buffer, ByteRange


def range_options(span: ByteRange | None) -> dict[str, Any]:
    if span is None:
        return {}
    if span.start < 0:
        return {"range": {"suffix": -span.start}}
    return {"range": {"offset": span.start} if span.stop is None else (span.start, span.stop)}


async def invoke(client: object, method: str, *arguments: object, **options: object) -> Any:
    """Call `method` of the client or of one of its responses.

    Where an event loop is running, await its ``_async`` variant; a method without variant runs in a thread. Where no loop is
    running, the caller is synchronous (`tessarr.stores.remote.loop.run_blocking`), and the method blocks.
    """
    if not clients.is_checked:
        clients.check_threads()
    if loop.running_loop() is None:
        return block(getattr(client, method), *arguments, **options)
    awaited = getattr(client, f"{method}_async", None)
    if awaited is None:
        return await in_thread(getattr(client, method), *arguments, **options)
    return await awaited(*arguments, **options)


async def get(client: Any, name: str, options: Mapping[str, Any]) -> tuple[Any, Buffer]:
    """Send a GET; return the response and its body. Of a big object that is requested whole, the body is only the head."""
    if loop.running_loop() is None:
        if not clients.is_checked:
            clients.check_threads()
        return block(_get_blocking, client, name, options)
    result = await invoke(client, "get", name, options=options)
    if options or result.meta["size"] < BIG:
        return result, await invoke(result, "buffer")
    return result, await anext(aiter(_stream(result)))


def _get_blocking(client: Any, name: str, options: Mapping[str, Any]) -> tuple[Any, Buffer]:
    result = client.get(name, options=options)
    if options or result.meta["size"] < BIG:
        return result, result.buffer()
    return result, next(iter(_stream(result)))


def _stream(result: object) -> Any:
    stream = getattr(result, "stream", None)
    return result if stream is None else stream(PART_SIZE)


def version_of(meta: Mapping[str, object]) -> Version | None:
    """Join ETag and generation to one version; `update_version` splits them."""
    tag, generation = meta.get("e_tag"), meta.get("version")
    if tag is None and generation is None:
        return None
    return f"{tag or ''}\n{generation}" if generation is not None else str(tag)


def update_version(version: Version) -> dict[str, str]:
    tag, newline, generation = version.partition("\n")
    return {name: part for name, part in (("e_tag", tag), ("version", generation if newline else "")) if part}
