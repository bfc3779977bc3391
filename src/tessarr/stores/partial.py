"""Writing parts of a value, for stores that can only replace whole values."""

from __future__ import annotations

from collections.abc import Iterable

from tessarr.errors import KeyValidationError
from tessarr.types import Buffer

Part = tuple[int, memoryview]


def parts_by_key(key_start_values: Iterable[tuple[str, int, Buffer]]) -> dict[str, list[Part]]:
    """The parts of each key, sorted by start. Raises `KeyValidationError` (a `ValueError`) where two overlap."""
    parts: dict[str, list[Part]] = {}
    for key, start, value in key_start_values:
        if start < 0:
            raise KeyValidationError("a part begins before the value", key=key, expected="start >= 0", got=start)
        parts.setdefault(key, []).append((start, memoryview(value).cast("B")))
    for key, items in parts.items():
        items.sort(key=lambda part: part[0])
        for (start, value), (next_start, _) in zip(items, items[1:], strict=False):
            if start + value.nbytes > next_start:
                raise KeyValidationError(
                    "parts overlap", key=key, got=f"bytes {start}-{start + value.nbytes} and {next_start}-"
                )
    return parts


def merge_parts(old: Buffer | None, parts: list[Part]) -> bytes:
    """`old` with `parts` laid over it; gaps are zero bytes."""
    size = max([memoryview(old).nbytes if old is not None else 0, *(start + part.nbytes for start, part in parts)])
    new = bytearray(size)
    if old is not None:
        new[: memoryview(old).nbytes] = memoryview(old).cast("B")
    for start, part in parts:
        new[start : start + part.nbytes] = part
    return bytes(new)
