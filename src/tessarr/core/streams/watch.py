"""Wait until a document may have changed: adaptive pauses, ended early by inotify where the kernel reports changes.

A follower does not rely on inotify, because network file systems report nothing about other machines: it looks again after
the longest pause at the latest. inotify watches inodes: before each pause the directories are looked up again, because
another one may have come in the place of one that was watched. Source: inotify(7).
"""

from __future__ import annotations

import ctypes
import os
import select
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Protocol, runtime_checkable

_SHORTEST_LOCAL_S = 0.001
_SHORTEST_REMOTE_S = 0.02
_GROWTH = 2.0
"""Each look that finds no change makes the next pause longer by this factor."""
_SLICE_S = 0.2
"""Seconds. How often a pause looks at the event that stops it, where nothing can wake the thread for it."""
_MOVED_TO, _CLOSE_WRITE, _DELETE_SELF, _MOVE_SELF = 0x80, 0x8, 0x400, 0x800
_NONBLOCK_CLOEXEC = os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0) if sys.platform == "linux" else 0


@runtime_checkable
class Event(Protocol):
    """What stops a follower: `threading.Event`, `asyncio.Event`, or another object with this method."""

    def is_set(self) -> bool:
        """Whether the follower shall stop."""
        ...


class Watch:
    """The pauses between looks at documents in `directories` (empty: not local, or nothing reports changes)."""

    def __init__(self, directories: list[str], longest_s: float, *, remote: bool) -> None:
        self.longest_s = longest_s
        self._shortest_s = min(longest_s, _SHORTEST_REMOTE_S if remote else _SHORTEST_LOCAL_S)
        self._pause_s = self._shortest_s
        self._notifier = _notifier(directories) if longest_s > 0 else None

    def changed(self) -> None:
        """Record that the last look found a change: the next pauses are short again."""
        self._pause_s = self._shortest_s

    def pause(self, most_s: float, stop: Event | None) -> None:
        """Wait until something may have changed, for at most `most_s` seconds, or until `stop` is set."""
        notifier, is_replaced = self._watched()
        if is_replaced:
            return
        until = time.monotonic() + self._next(most_s, notifier)
        wait: Callable[[float], bool] = _sleep if notifier is None else notifier.wait
        if notifier is None and isinstance(stop, threading.Event):
            wait = stop.wait
        while (left := until - time.monotonic()) > 0 and not (stop is not None and stop.is_set()):
            if wait(left if stop is None else min(left, _SLICE_S)):
                return

    async def pause_async(self, most_s: float, stop: Event | None) -> None:
        """Wait as `pause` does, without blocking the event loop."""
        import asyncio

        notifier, is_replaced = self._watched()
        if is_replaced:
            return
        until = time.monotonic() + self._next(most_s, notifier)
        woken = asyncio.Event()
        with nullcontext() if notifier is None else notifier.calling(woken.set):
            while (left := until - time.monotonic()) > 0 and not (stop is not None and stop.is_set()):
                with suppress(TimeoutError):
                    await asyncio.wait_for(woken.wait(), left if stop is None else min(left, _SLICE_S))
                    return

    def _watched(self) -> tuple[_Notifier | None, bool]:
        """Return what ends the next pause, and whether a directory was replaced since the last one, so that none is due."""
        try:
            return self._notifier, self._notifier is not None and self._notifier.watch()
        except OSError:  # a directory is missing now
            return None, False

    def _next(self, most_s: float, notifier: _Notifier | None) -> float:
        seconds = self._pause_s if notifier is None else self.longest_s
        self._pause_s = min(self._pause_s * _GROWTH, self.longest_s)
        return min(seconds, most_s)

    def close(self) -> None:
        """Release the descriptor."""
        if self._notifier is not None:
            self._notifier.close()
            self._notifier = None


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return False


class _Notifier:
    """An inotify descriptor for `directories`."""

    def __init__(self, libc: ctypes.CDLL, descriptor: int, directories: list[str]) -> None:
        self._libc, self._descriptor, self._directories = libc, descriptor, directories
        self._watches: dict[str, int] = {}

    def watch(self) -> bool:
        """Watch the directories. Returns whether one of them was not watched before. Raises `OSError`."""
        mask = _MOVED_TO | _CLOSE_WRITE | _DELETE_SELF | _MOVE_SELF
        before = dict(self._watches)
        for directory in self._directories:
            # The number stays the same as long as the directory does.
            number = self._libc.inotify_add_watch(self._descriptor, os.fsencode(directory), mask)
            if number < 0:
                raise OSError(ctypes.get_errno(), "cannot watch the directory", directory)
            self._watches[directory] = number
        return before != self._watches

    def wait(self, seconds: float) -> bool:
        """Wait for an event, and consume all events there are."""
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        if not poll.poll(seconds * 1000):
            return False
        with suppress(BlockingIOError):
            while os.read(self._descriptor, 1 << 16):
                pass
        return True

    @contextmanager
    def calling(self, woken: Callable[[], None]) -> Iterator[None]:
        """Let the running event loop call `woken` when there is an event; consume the events at the end."""
        import asyncio

        loop = asyncio.get_running_loop()
        try:
            loop.add_reader(self._descriptor, woken)
        except NotImplementedError:  # the loop watches no descriptors: only the pause ends the wait
            yield
            return
        try:
            yield
        finally:
            loop.remove_reader(self._descriptor)
            self.wait(0)

    def close(self) -> None:
        os.close(self._descriptor)


def _notifier(directories: list[str]) -> _Notifier | None:
    """Watch `directories`; ``None`` where the system has no inotify, or no descriptor left."""
    if not directories or sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        descriptor = libc.inotify_init1(_NONBLOCK_CLOEXEC)
    except AttributeError:
        return None
    if descriptor < 0:
        return None
    notifier = _Notifier(libc, descriptor, directories)
    try:
        notifier.watch()
    except OSError:
        notifier.close()
        return None
    return notifier
