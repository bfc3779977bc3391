"""Random programs on one store, beside a dictionary that does the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from tessarr.errors import ConflictError
from tessarr.stores.protocols import ConditionalSet
from tessarr.types import Buffer, ByteRange
from tests.stateful.places import make_store, reopened

NAMES = ["a", "b", "c", "0", "1.2", ".zgroup", "zarr.json", "ä b"]
FOLDERS = ["", "d/", "d/e/", "f.g/"]


class StoreProgram:
    """A store, its model, and the steps of a program."""

    def __init__(self, rng: Random, folder: Path) -> None:
        self.rng = rng
        self.store = make_store(rng, folder)
        self.model: dict[str, bytes] = {}
        self.steps: list[Callable[[], None]] = [
            *[self.set_value] * 4,
            *[
                self.get,
                self.get_range,
                self.get_ranges,
                self.sizes,
                self.create,
                self.update,
                self.delete,
                self.delete_prefix,
            ],
            *[self.list_all, self.list_prefix, self.list_dir, self.set_if, self.replace_prefix, self.reopen],
        ]

    def _key(self) -> str:
        """A key; more often one that is there. No key is a folder of another."""
        if self.model and self.rng.random() < 0.6:
            return self.rng.choice(sorted(self.model))
        return self.rng.choice(FOLDERS) + self.rng.choice(NAMES)

    def _value(self) -> bytes:
        return self.rng.randbytes(self.rng.choice([0, 1, 5, 300, 5000]))

    def set_value(self) -> None:
        key, value = self._key(), self._value()
        self.store.set(key, value)
        self.model[key] = value

    def get(self) -> None:
        key = self._key()
        _equal(self.store.get(key), self.model.get(key), key)

    def _range(self, length: int) -> ByteRange:
        begin = self.rng.randint(0, length + 2)
        kinds = [
            ByteRange(begin),
            ByteRange(begin, begin + self.rng.randint(0, length + 2)),
            ByteRange(-self.rng.randint(1, length + 2)),
        ]
        return self.rng.choice(kinds)

    def get_range(self) -> None:
        key = self._key()
        value = self.model.get(key)
        part = self._range(len(value or b""))
        _equal(self.store.get(key, part), None if value is None else _cut(value, part), f"{key} {part}")

    def get_ranges(self) -> None:
        key = self._key()
        value = self.model.get(key)
        parts = [self._range(len(value or b"")) for _ in range(self.rng.randint(1, 4))]
        found = self.store.get_ranges(key, parts)
        if value is None:
            _equal(found, None, key)
        else:
            assert found is not None, f"{key} is missing"
            for part, data in zip(parts, found, strict=True):
                _equal(data, _cut(value, part), f"{key} {part}")

    def sizes(self) -> None:
        key = self._key()
        value = self.model.get(key)
        assert self.store.exists(key) is (value is not None), f"exists({key})"
        assert self.store.getsize(key) == (None if value is None else len(value)), f"getsize({key})"

    def create(self) -> None:
        key, value = self._key(), self._value()
        assert self.store.set_if_not_exists(key, value) is (key not in self.model), f"set_if_not_exists({key})"
        self.model.setdefault(key, value)

    def update(self) -> None:
        key, more = self._key(), self._value()
        kind = self.rng.randrange(3)

        def change(old: Buffer | None) -> bytes | None:
            before = b"" if old is None else bytes(memoryview(old))
            return None if kind == 0 else before if kind == 1 else before[:100] + more

        self.store.update(key, change)
        after = change(self.model.get(key))
        self._now(key, after)

    def _now(self, key: str, value: bytes | None) -> None:
        self.model.pop(key, None)
        if value is not None:
            self.model[key] = value

    def delete(self) -> None:
        key = self._key()
        self.store.delete(key)
        self.model.pop(key, None)

    def _prefix(self) -> str:
        return self.rng.choice([folder for folder in FOLDERS if folder])

    def delete_prefix(self) -> None:
        if self.rng.random() < 0.3:
            prefix = self._prefix()
            self.store.delete_prefix(prefix)
            self.model = {key: value for key, value in self.model.items() if not key.startswith(prefix)}

    def replace_prefix(self) -> None:
        if self.rng.random() < 0.3:
            prefix = self._prefix()
            items = {self.rng.choice(NAMES): self._value() for _ in range(2)}
            self.store.replace_prefix(prefix, {prefix + name: value for name, value in items.items()})
            self.model = {key: value for key, value in self.model.items() if not key.startswith(prefix)}
            self.model |= {prefix + name: value for name, value in items.items()}

    def set_if(self) -> None:
        """Replace a value where it has its version, and not where it has another one."""
        if not isinstance(self.store, ConditionalSet):
            return
        key, value = self._key(), self._value()
        version = self.store.version(key)
        assert (version is None) is (key not in self.model), f"version({key})"
        if version is not None and self.rng.random() < 0.5:
            other = self.model[key] + b"other"  # another value: the version may be made of it
            self.store.set(key, other)
            self.model[key] = other
            try:
                self.store.set(key, value, if_match=version)
            except ConflictError:
                return
            raise AssertionError(f"set({key}) with a version that is gone")
        self.store.set(key, value, if_match=version)
        self.model[key] = value

    def list_all(self) -> None:
        assert sorted(self.store.list()) == sorted(self.model), f"list(): {sorted(self.store.list())}"

    def list_prefix(self) -> None:
        prefix = self.rng.choice(FOLDERS)
        expected = sorted(key for key in self.model if key.startswith(prefix))
        assert sorted(self.store.list_prefix(prefix)) == expected, f"list_prefix({prefix})"

    def list_dir(self) -> None:
        prefix = self.rng.choice(FOLDERS)
        below = [key.removeprefix(prefix) for key in self.model if key.startswith(prefix)]
        keys = sorted(prefix + rest for rest in below if "/" not in rest)
        prefixes = sorted({f"{prefix}{rest.partition('/')[0]}/" for rest in below if "/" in rest})
        found = self.store.list_dir(prefix)
        assert (found.keys, found.prefixes) == (keys, prefixes), f"list_dir({prefix}): {found}"

    def reopen(self) -> None:
        self.store = reopened(self.store)
        self.finish()

    def finish(self) -> None:
        """Compare all values."""
        self.list_all()
        for key, value in self.model.items():
            _equal(self.store.get(key), value, key)


def _cut(value: bytes, part: ByteRange) -> bytes:
    return value[slice(part.start, part.stop)]


def _equal(found: Any, expected: bytes | None, what: str) -> None:
    plain = None if found is None else bytes(memoryview(found))
    assert plain == expected, f"{what}: {_told(plain)} instead of {_told(expected)}"


def _told(value: bytes | None) -> str:
    return "nothing" if value is None else f"{len(value)} bytes {value[:10]!r}"
