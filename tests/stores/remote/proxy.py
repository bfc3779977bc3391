"""An HTTP proxy before a real server: it counts requests, adds latency, and breaks answers on purpose."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal, NamedTuple
from urllib.parse import unquote

from tests.stores.remote.google import Message, XmlUploads
from tests.stores.remote.servers import Server
from tests.waiting import PATIENCE_S
from tests.work import other_threads

_QUIET_TURNS = 5
Kind = Literal["status", "reset", "hang", "truncate", "short", "drip", "lost"]


class Seen(NamedTuple):
    """One request that came by."""

    method: str
    target: str
    range: str | None

    @property
    def key(self) -> str:
        """The path without the query, decoded."""
        return unquote(self.target.partition("?")[0])


@dataclass
class Fault:
    """What to do to the next `times` requests whose ``METHOD target`` matches `match`.

    status: answer so without asking the server · reset: close without an answer · hang: never answer · truncate:
    announce everything, send half, close · short: announce and send half · drip: a byte every now and then, without
    end · lost: let the server act, then close without an answer.
    """

    kind: Kind
    match: str = ""
    times: int = 1
    status: int = 503
    code: str = "Injected"
    headers: dict[str, str] = field(default_factory=dict)
    """More headers of the answer, where the kind is "status"."""


@dataclass
class Proxy:
    """A running proxy."""

    upstream: Server
    google: bool = False
    host: str = "127.0.0.1"
    port: int = 0
    latency_s: float = 0.0
    """For how long nothing must happen before the requests that came are answered, all together: a wave."""
    faults: list[Fault] = field(default_factory=list)
    choose: Callable[[str], Fault | None] | None = None
    """What to do to a request, by its ``METHOD target``, instead of `faults`."""
    seen: list[Seen] = field(default_factory=list)
    most_at_once: int = 0
    connections: int = 0
    keeps: bool = False
    """Whether all requests of a connection go to the server by one connection too: quicker, but a server may close it."""
    overdue: int = 0
    """Requests that were held for a minute: whoever had to let them pass did not."""
    _uploads: XmlUploads = field(default_factory=XmlUploads)
    _at_once: int = 0
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _transports: set[asyncio.WriteTransport] = field(default_factory=set)
    _kept: dict[asyncio.Task[None] | None, tuple[asyncio.StreamReader, asyncio.StreamWriter]] = field(
        default_factory=dict
    )
    """Connections to the server, by the task that serves a client."""
    _loop: asyncio.AbstractEventLoop | None = None
    _waves: int = 0
    _wave: asyncio.Task[None] | None = None
    _waiting: int = 0
    """How many requests the present wave has."""
    _hanging: int = 0
    _passing: int | None = None
    """How many more requests pass a closed gate; ``None`` while it is open."""
    _held: list[asyncio.Future[None]] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def clear(self) -> None:
        """Forgets what came by, and all faults."""
        self.seen.clear()
        self.faults.clear()
        self.most_at_once = self.connections = self._waves = 0

    def rounds(self) -> int:
        """How many round trips came after one another while there was latency: the number of waves."""
        return self._waves

    # -- requests that a test holds ----------------------------------------------------------------------------

    def hold(self, *, passing: int = 0) -> None:
        """Hold every request from now on, apart from the next `passing`, until `let_pass` or `release`."""
        self._passing = passing

    @property
    def holding(self) -> int:
        """How many requests are held."""
        return len(self._held)

    @property
    def in_flight(self) -> int:
        """How many requests came that are not answered."""
        return self._at_once

    def let_pass(self) -> None:
        """Answer the requests that are held at this moment; those that come later are held."""
        if self._held and self._loop is not None:
            self._loop.call_soon_threadsafe(self._open)

    def release(self) -> None:
        """Answer the requests that are held, and hold no more."""
        self._passing = None
        self.let_pass()

    def _open(self) -> None:
        for one in self._held:
            if not one.done():
                one.set_result(None)

    @property
    def _is_closed(self) -> bool:
        return self._passing is not None

    async def _hold(self) -> None:
        """Wait at the gate."""
        if self._passing is None:
            return
        if self._passing > 0:
            self._passing -= 1
            return
        one = asyncio.get_running_loop().create_future()
        self._held.append(one)
        try:
            # Whoever calls `release` meanwhile may have found nothing to let pass.
            while self._is_closed and not (await asyncio.wait({one}, timeout=PATIENCE_S))[0]:
                self.overdue += 1
                self.release()
        finally:
            self._held.remove(one)

    async def _join_wave(self) -> None:
        """Wait until the requests that are sent side by side are all here."""
        if self._wave is None:
            self._wave = asyncio.get_running_loop().create_task(self._end_wave(self.latency_s))
            self._waiting = 0
        self._waiting += 1
        await asyncio.shield(self._wave)

    async def _end_wave(self, latency_s: float) -> None:
        """Come to an end when nothing happened for several turns of the loop in succession: no request came, none is being
        answered, and no thread of the client did anything. How long a turn takes decides nothing."""
        quiet, turns, before = 0, 0, None
        while quiet < _QUIET_TURNS and turns < 100 * _QUIET_TURNS:
            await asyncio.sleep(latency_s / _QUIET_TURNS)
            now = (len(self.seen), self._waiting + self._hanging == self._at_once, other_threads())
            quiet = quiet + 1 if now == before and now[1] and now[2] is not None else 0
            before, turns = now, turns + 1
        self._waves += 1  # before the client can know
        self._wave = None

    def counts(self) -> dict[str, int]:
        """Requests by method; listings count as LIST."""
        counts: dict[str, int] = {}
        for request in self.seen:
            name = "LIST" if re.search(r"[?&](list-type|prefix|comp=list)", request.target) else request.method
            counts[name] = counts.get(name, 0) + 1
        return counts

    # -- one connection ----------------------------------------------------------------------------------------

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)  # a loop holds its tasks by weak references only
        self._transports.add(writer.transport)
        try:
            while (request := await _read_message(reader, is_request=True)) is not None:
                if not await self._answer(request, writer):
                    break
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()
            if task in self._kept:
                self._kept.pop(task)[1].close()

    async def _answer(self, request: Message, writer: asyncio.StreamWriter) -> bool:
        method, target, _ = request.head.split(" ", 2)
        self.seen.append(Seen(method, target, request.headers.get("range")))
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            await self._hold()
            if self.latency_s:
                await self._join_wave()
            fault = self._next_fault(f"{method} {target}")
            if fault is None:
                answer = await self._forward(request)
                writer.write(_bytes_of(answer, with_body=method != "HEAD"))
                await writer.drain()
                return True
            return await self._break(fault, request, writer)
        finally:
            self._at_once -= 1

    def _next_fault(self, line: str) -> Fault | None:
        if self.choose is not None:
            return self.choose(line)
        for fault in self.faults:
            if fault.times > 0 and re.search(fault.match, line):
                fault.times -= 1
                return fault
        return None

    async def _break(self, fault: Fault, request: Message, writer: asyncio.StreamWriter) -> bool:
        if fault.kind == "status":
            body = f"<Error><Code>{fault.code}</Code><Message>on purpose</Message></Error>".encode()
            headers = {"content-type": "application/xml", "content-length": str(len(body)), **fault.headers}
            answer = Message(f"HTTP/1.1 {fault.status} Injected", headers, body)
            writer.write(_bytes_of(answer, with_body=not request.head.startswith("HEAD")))
            await writer.drain()
            return True
        if fault.kind == "hang":
            self._hanging += 1
            try:
                await asyncio.sleep(60)
            finally:
                self._hanging -= 1
        if fault.kind in ("hang", "reset"):
            return False
        answer = await self._forward(request)
        half = answer.body[: len(answer.body) // 2]
        if fault.kind == "truncate":
            writer.write(_bytes_of(answer, with_body=True)[: -len(answer.body) or None])
            writer.write(half)
        elif fault.kind == "short":
            writer.write(_bytes_of(answer._replace(body=half), with_body=True))
        elif fault.kind == "drip":
            writer.write(_bytes_of(answer, with_body=True)[: -len(answer.body) or None])
            for byte in answer.body:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0.2)
        await writer.drain()
        return False

    async def _forward(self, request: Message) -> Message:
        return await (self._uploads.answer(request, self._ask) if self.google else self._ask(request))

    async def _ask(self, request: Message) -> Message:
        """The server's answer."""
        task = asyncio.current_task() if self.keeps else None
        reader, writer = self._kept.get(task) or await asyncio.open_connection(self.upstream.host, self.upstream.port)
        if self.keeps:
            self._kept[task] = reader, writer
        try:
            headers = {**request.headers, "connection": "keep-alive" if self.keeps else "close"}
            if self.google:
                headers["host"] = self.upstream.address
            writer.write(_bytes_of(request._replace(headers=headers), with_body=True))
            await writer.drain()
            answer = await _read_message(reader, is_request=False, has_body=not request.head.startswith("HEAD"))
            if answer is None:
                raise ConnectionResetError("the server closed without an answer")
        finally:
            if not self.keeps:
                writer.close()
        answer.headers.pop("connection", None)
        return answer


async def _read_message(reader: asyncio.StreamReader, *, is_request: bool, has_body: bool = True) -> Message | None:
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    head, *lines = raw.decode("latin-1").rstrip("\r\n").split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if headers.get("expect"):
        headers.pop("expect")
    body = b""
    if not has_body:
        return Message(head, headers, body)
    if "chunked" in headers.get("transfer-encoding", ""):
        while size := int((await reader.readline()).split(b";")[0], 16):
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
        del headers["transfer-encoding"]
    elif "content-length" in headers:
        body = await reader.readexactly(int(headers["content-length"]))
    elif not is_request:
        body = await reader.read()
    return Message(head, headers, body)


def _bytes_of(message: Message, *, with_body: bool) -> bytes:
    headers = dict(message.headers)
    if with_body and not message.head.startswith(("GET", "HEAD", "DELETE")):
        headers["content-length"] = str(len(message.body))
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"{message.head}\r\n{lines}\r\n".encode("latin-1") + (message.body if with_body else b"")


@contextmanager
def start_proxy(upstream: Server, *, google: bool = False) -> Iterator[Proxy]:
    """A proxy before `upstream`, in a thread of its own."""
    loop = asyncio.new_event_loop()
    proxy = Proxy(upstream, google, _loop=loop)
    ready = threading.Event()

    async def main() -> None:
        server = await asyncio.start_server(proxy.serve, proxy.host, 0, limit=2**20)
        proxy.port = server.sockets[0].getsockname()[1]
        ready.set()
        try:
            await asyncio.Event().wait()
        finally:
            for listening in server.sockets:
                loop.remove_reader(listening)
            await asyncio.sleep(
                0
            )  # what was accepted becomes transports, which a server that is closed refuses, unclosed
            server.close()

    task = loop.create_task(main())

    def run() -> None:
        asyncio.set_event_loop(loop)
        with suppress(asyncio.CancelledError):
            loop.run_until_complete(task)
        quiet = 0
        while quiet < 3:  # connections that were accepted already still become tasks, and transports close in the loop
            rest = asyncio.all_tasks(loop)
            # Only tasks that have begun to serve are cancelled: others would never close their connections.
            for one in proxy._tasks:
                one.cancel()
            for transport in proxy._transports:  # closing alone waits for a client that reads no more
                transport.abort()
            loop.run_until_complete(asyncio.gather(asyncio.sleep(0.005), *rest, return_exceptions=True))
            quiet = 0 if rest else quiet + 1
        loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(PATIENCE_S)
    try:
        yield proxy
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join(PATIENCE_S)
