"""Answer GET and HEAD of one value: conditions, byte ranges, and content that is read in windows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from tessarr.core.asynchronous.sans_io import Call, gather_calls, store_call
from tessarr.errors import StoreError
from tessarr.metadata.formats import DOCUMENT_NAMES
from tessarr.serve.consolidated import made_up_steps
from tessarr.serve.contained import ContainedStore
from tessarr.serve.http import conditions, ranges
from tessarr.serve.http.messages import Request, Response, Window, problem, without_content
from tessarr.serve.http.ranges import Interval, Spec
from tessarr.serve.served import Served
from tessarr.stores.base import Fetch, Store
from tessarr.stores.buffers import byte_view
from tessarr.stores.fetch import Fetched, Version, version_of
from tessarr.stores.protocols import Remote
from tessarr.types import Buffer, ByteRange

WINDOW = 1 << 20
"""Bytes that are read before the next are sent. Each connection holds one window in memory."""
_ATTEMPTS = 5
"""How often a value is read again that was replaced while it was read."""
_NOTHING = (ByteRange(0, 0),)
_ANSWERS_ALL = (ContainedStore, Remote)
"""Stores whose `fetch` tells the version and the size of a value with its bytes."""


class Found(NamedTuple):
    """Parts of a stored value, all of one version."""

    size: int
    version: Version | None
    parts: list[Buffer]


async def key_steps(served: Served, relative: str, request: Request) -> Response | None:
    """Answer a request for a key below the root of URLs; ``None``: no such key, or it is not served."""
    if not await served.belongs_steps(relative):
        return None
    key = served.key(relative)
    if not served.as_stored:
        made = await made_up_steps(served.store, key)
        if made is not None:
            return content_of(made, "application/json", request, served.boundary)
    if served.is_encoded:
        value = await store_call(served.store, "get", key)
        return None if value is None else content_of(bytes(byte_view(value)), _kind(key), request, served.boundary)
    return await value_steps(served.store, key, request, served.boundary)


async def value_steps(store: Store, key: str, request: Request, boundary: str) -> Response | None:
    """Answer a request for the value of `key`; ``None``: there is no such key."""
    try:
        specs = ranges.parse(request.header("range"))
    except ranges.TooManyRangesError:
        return problem(416, f"at most {ranges.MAX_RANGES} ranges in one request")
    early = _read_early(request, specs)
    found = await read_steps(store, key, early)
    if found is None:
        return None
    if found.version is None and found.size <= WINDOW:
        whole = await read_steps(store, key, (ByteRange(0, WINDOW),))
        if whole is None:
            return None
        return content_of(bytes(byte_view(whole.parts[0])), _kind(key), request, boundary)
    etag = None if found.version is None else conditions.etag_of(key, found.version)
    answer, intervals = _begin(request, specs, found.size, etag)
    if answer is not None:
        return answer
    response = _framed(intervals, found.size, _kind(key), _validators(etag), boundary)
    if request.method == "HEAD":
        return without_content(response.head)
    batches = _batches(response.layout)
    windows: list[Window] = [partial(_window_steps, store, key, batch, found.version) for batch in batches[1:]]
    if batches and batches[0] == [Interval(*part.bounds(found.size)) for part in early]:
        windows.insert(0, found.parts[0])
    elif batches:
        windows.insert(0, await _window_steps(store, key, batches[0], found.version))
    return Response(
        status=response.head.status, headers=response.head.headers, windows=windows, nbytes=response.head.nbytes
    )


def content_of(data: bytes, kind: str, request: Request, boundary: str) -> Response:
    """Answer a request for content that is in memory; its entity tag is the hash of the bytes."""
    try:
        specs = ranges.parse(request.header("range"))
    except ranges.TooManyRangesError:
        return problem(416, f"at most {ranges.MAX_RANGES} ranges in one request")
    etag = conditions.etag_of(data)
    answer, intervals = _begin(request, specs, len(data), etag)
    if answer is not None:
        return answer
    response = _framed(intervals, len(data), kind, _validators(etag), boundary)
    if request.method == "HEAD":
        return without_content(response.head)
    windows = [data[one.start : one.stop] if isinstance(one, Interval) else one for one in response.layout]
    return Response(
        status=response.head.status, headers=response.head.headers, windows=windows, nbytes=response.head.nbytes
    )


# -- reading -------------------------------------------------------------------------------------------------------------


async def read_steps(store: Store, key: str, wanted: tuple[ByteRange, ...]) -> Found | None:
    """Read ranges of a value, its size and its version, all of one version; ``None``: there is no such key.

    Raises `StoreError` for a value that is replaced during each attempt.
    """
    fetch = store_call(store, "fetch", [Fetch(key, wanted)])
    if isinstance(store, _ANSWERS_ALL):
        (answer,) = await fetch
        if answer is None:
            return None
        size = answer.size if isinstance(answer, Fetched) else None
        if size is None:
            size = await store_call(store, "getsize", key)
        return None if size is None else Found(size, version_of(answer), list(answer))
    version = Call(partial(store.version, key), partial(_unavailable, key), waits=False)
    for _ in range(_ATTEMPTS):
        before, size, answers, after = await gather_calls([version, store_call(store, "getsize", key), fetch, version])
        if before == after and (size is None) == (answers[0] is None):
            return None if size is None else Found(size, before, list(answers[0]))
    raise StoreError("the value changed while it was read", store=store.url, key=key, got=f"{_ATTEMPTS} times")


async def _unavailable(key: str) -> None:
    """Stand in for the async variant of `Store.version`, which stores that are not remote do not need."""
    raise NotImplementedError(key)


async def _window_steps(store: Store, key: str, batch: Sequence[bytes | Interval], version: Version | None) -> Buffer:
    """Read the intervals of a batch in one request, and join them with the frames between them.

    Raises `StoreError` if the value no longer has `version`, or is shorter: bytes of two versions are never mixed.
    """
    wanted = tuple(ByteRange(one.start, one.stop) for one in batch if isinstance(one, Interval))
    found = await read_steps(store, key, wanted) if wanted else None
    if wanted and (found is None or found.version != version):
        raise StoreError("the value changed while it was sent", store=store.url, key=key)
    parts = iter(found.parts if found is not None else ())
    joined: list[Buffer] = []
    for one in batch:
        if not isinstance(one, Interval):
            joined.append(one)
            continue
        part = byte_view(next(parts))
        if part.nbytes != one.stop - one.start:
            raise StoreError("the value became shorter while it was sent", store=store.url, key=key)
        joined.append(part)
    return joined[0] if len(joined) == 1 else b"".join(joined)


def _read_early(request: Request, specs: list[Spec] | None) -> tuple[ByteRange, ...]:
    """Choose what is read together with the size: what is probably sent, so that a remote store needs one request."""
    conditional = any(name in request.headers for name in ("if-match", "if-none-match", "if-range"))
    if request.method == "HEAD" or conditional:
        return _NOTHING
    if specs is None:
        return (ByteRange(0, WINDOW),)
    if len(specs) > 1:
        return _NOTHING
    first, last = specs[0]
    if first is None:
        return (ByteRange(-last),) if last and last <= WINDOW else _NOTHING
    return (ByteRange(first, first + WINDOW if last is None else min(last + 1, first + WINDOW)),)


# -- headers and layout -----------------------------------------------------------------------------------------------------


class _Framed(NamedTuple):
    head: Response
    """The response without content."""
    layout: list[bytes | Interval]
    """The content: frames, and intervals of the value."""


def _begin(
    request: Request, specs: list[Spec] | None, size: int, etag: str | None
) -> tuple[Response | None, list[Interval] | None]:
    """Decide about conditions and ranges: a response without content, or the intervals to send (``None``: all)."""
    validators = _validators(etag)
    status = conditions.decide(request, etag)
    if status == 304:
        return Response(status=304, headers=validators, nbytes=size), None
    if status == 412:
        return problem(412, "the value has another entity tag", validators), None
    if specs is None or not conditions.range_applies(request, etag):
        return None, None
    intervals = ranges.resolve(specs, size)
    if not intervals:
        return problem(416, f"the value has {size} bytes", (("Content-Range", f"bytes */{size}"), *validators)), None
    return None, intervals


def _framed(
    intervals: list[Interval] | None, size: int, kind: str, headers: tuple[tuple[str, str], ...], boundary: str
) -> _Framed:
    if intervals is None or len(intervals) == 1:
        interval = Interval(0, size) if intervals is None else intervals[0]
        extra = () if intervals is None else (("Content-Range", ranges.content_range(interval, size)),)
        nbytes = interval.stop - interval.start
        head = Response(
            status=200 if intervals is None else 206,
            headers=(("Content-Type", kind), *headers, *extra),
            nbytes=nbytes,
        )
        return _Framed(head, [interval] if nbytes else [])
    layout: list[bytes | Interval] = []
    for number, interval in enumerate(intervals):
        layout += [ranges.frame(boundary, interval, size, kind, is_first=number == 0), interval]
    layout.append(ranges.end(boundary))
    nbytes = sum(one.stop - one.start if isinstance(one, Interval) else len(one) for one in layout)
    kinds = ("Content-Type", f"multipart/byteranges; boundary={boundary}")
    return _Framed(Response(status=206, headers=(kinds, *headers), nbytes=nbytes), layout)


def _batches(layout: Sequence[bytes | Interval]) -> list[list[bytes | Interval]]:
    """Group a layout into windows; intervals that are longer than a window are cut."""
    batches: list[list[bytes | Interval]] = []
    room = 0
    for one in layout:
        if not isinstance(one, Interval):
            if not batches:
                batches.append([])
                room = WINDOW
            batches[-1].append(one)
            continue
        start = one.start
        while start < one.stop:
            if not room:
                batches.append([])
                room = WINDOW
            stop = min(one.stop, start + room)
            batches[-1].append(Interval(start, stop))
            room -= stop - start
            start = stop
    return batches


def _validators(etag: str | None) -> tuple[tuple[str, str], ...]:
    tag = () if etag is None else (("ETag", etag),)
    return (*tag, ("Accept-Ranges", "bytes"))


def _kind(key: str) -> str:
    """Return the media type of a value: chunks are bytes, whatever their name."""
    return "application/json" if key.rpartition("/")[2] in DOCUMENT_NAMES else "application/octet-stream"
