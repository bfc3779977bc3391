"""A process that ends at a chosen step: from its n-th change of the file system on, no change is made any more."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tessarr.stores.local import exchange
from tessarr.stores.local.transactions.many import StagedFiles

CHANGES = ("write", "replace", "rename", "link", "unlink", "mkdir", "rmdir", "ftruncate", "utime", "fsync")


class Cut(BaseException):
    """The process has ended here."""


class Process:
    """Counts the changes that are made while it lives, and ends before the one with the number `ends_at`."""

    def __init__(self, ends_at: int | None = None) -> None:
        self.ends_at, self.count = ends_at, 0
        self.calls: list[str] = []
        self.descriptors: set[int] = set()

    @property
    def is_dead(self) -> bool:
        return self.ends_at is not None and self.count > self.ends_at

    def step(self, name: str) -> None:
        self.count += 1
        self.calls.append(name)
        if self.is_dead:
            raise Cut


@contextlib.contextmanager
def process(monkeypatch: pytest.MonkeyPatch, ends_at: int | None = None) -> Iterator[Process]:
    """Run the block as a process that ends at a step; its files are closed, and so its locks released, at the end."""
    running = Process(ends_at)
    original: dict[str, Callable[..., Any]] = {name: getattr(os, name) for name in (*CHANGES, "open", "close")}

    def changing(name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            running.step(name)
            return original[name](*arguments, **options)

        return call

    def opening(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
        if flags & os.O_CREAT:
            running.step("open")
        descriptor: int = original["open"](path, flags, *arguments, **options)
        running.descriptors.add(descriptor)
        return descriptor

    exchange_names = exchange._renameat2()

    def exchanging(one: bytes, other: bytes) -> int:
        running.step("exchange")
        assert exchange_names is not None
        return exchange_names(one, other)

    def closing(descriptor: int) -> None:
        running.descriptors.discard(descriptor)
        original["close"](descriptor)

    with monkeypatch.context() as patch:
        for name in CHANGES:
            patch.setattr(os, name, changing(name))
        patch.setattr(StagedFiles, "write", lambda *_: None)  # in Python, step by step
        patch.setattr(StagedFiles, "place", lambda *_: False)
        patch.setattr(exchange, "_renameat2", lambda: exchanging)
        patch.setattr(os, "open", opening)
        patch.setattr(os, "close", closing)
        try:
            with contextlib.suppress(Cut):
                yield running
        finally:
            for descriptor in running.descriptors:
                with contextlib.suppress(OSError):
                    original["close"](descriptor)
