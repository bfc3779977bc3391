"""What a store can do is a question of Protocols, and a wrapper can do what the store that it wraps can do."""

from __future__ import annotations

import importlib
import inspect
import logging
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import tessarr.stores
from tessarr.errors import ConflictError, UnsupportedOperationError
from tessarr.storage import (
    AsyncStore,
    CacheStore,
    ChecksummingStore,
    CountingStore,
    DictStore,
    ForwardingStore,
    LatencyStore,
    LocalStore,
    LoggingStore,
    MemoryStore,
    NormalizingStore,
    PrefixStore,
    ReadOnlyStore,
    RetryStore,
    SQLiteStore,
    Store,
    WrapperStore,
    ZipStore,
)
from tessarr.stores import functions, protocols
from tessarr.stores.fetch import Fetch, Fetched
from tessarr.stores.transformed.hashed import HashedStore
from tessarr.stores.transformed.parts import Part, PartsStore
from tessarr.stores.virtual.n5 import N5FSStore, N5Store
from tessarr.stores.virtual.precomputed import PrecomputedStore
from tessarr.stores.wrappers.cache import LRUStoreCache
from tessarr.stores.wrappers.consolidated import ConsolidatedMetadataStore
from tessarr.stores.wrappers.creating import CreatingStore
from tessarr.types import Buffer, ByteRange

ABILITIES: Mapping[str, type] = {
    name: value
    for name, value in vars(protocols).items()
    if isinstance(value, type) and "_is_runtime_protocol" in vars(value) and value.__module__ == protocols.__name__
}
FORWARDING: Mapping[str, Callable[[Store], Store]] = {
    "ForwardingStore": ForwardingStore,
    "CountingStore": CountingStore,
    "LatencyStore": LatencyStore,
    "LoggingStore": lambda store: LoggingStore(store, log_handler=logging.NullHandler()),
    "PrefixStore": lambda store: PrefixStore(store, "p"),
    "ReadOnlyStore": ReadOnlyStore,
    "CreatingStore": CreatingStore,
    "NormalizingStore": NormalizingStore,
    "twice": lambda store: CountingStore(PrefixStore(store, "p")),
}


def consolidated(store: Store) -> Store:
    """Make the wrapper without reading consolidated metadata, which no store here has."""
    made = ConsolidatedMetadataStore.__new__(ConsolidatedMetadataStore)
    WrapperStore.__init__(made, store)
    return made


CHANGING: Mapping[str, Callable[[Store], Store]] = {
    "WrapperStore": WrapperStore,
    "RetryStore": RetryStore,
    "CacheStore": CacheStore,
    "LRUStoreCache": LRUStoreCache,
    "ConsolidatedMetadataStore": consolidated,
}
TRANSFORMED: Mapping[str, Callable[[Store], Store]] = {
    "RelocatedStore": lambda store: HashedStore(store, "", 2),
    "HashedStore": lambda store: HashedStore(store, "p", 2),
    "PartsStore": lambda store: PartsStore(store, [Part(".a", 2), Part("")]),
    "ChecksummingStore": ChecksummingStore,
}
CONTAINERS: Mapping[str, Callable[[Store], Store]] = {"N5Store": N5Store, "N5FSStore": N5FSStore}
BY_VALUE = {
    "RenamePrefix",
    "ExchangePrefixes",
    "ReplacePrefix",
    "GetRanges",
    "GetIfChanged",
    "GetPartialValues",
    "SetPartialValues",
    "Size",
    "Update",
    "Splice",
    "FetchOne",
    "ListPrefix",
    "DeleteMany",
    "Commit",
    "Locate",
    "Snapshot",
    "ListVersions",
    "Stamp",
}
"""Abilities that a wrapper which may change values makes of `get` and `set`; or does not have, because values pass it by."""


class FourMethods(Store):
    def __init__(self) -> None:
        self.values_by_key: dict[str, bytes] = {}

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        value = self.values_by_key.get(key)
        return value if value is None or byte_range is None else value[slice(*byte_range.bounds(len(value)))]

    def set(self, key: str, value: Buffer) -> None:  # type: ignore[override]
        self.values_by_key[key] = bytes(value)

    def delete(self, key: str) -> None:
        self.values_by_key.pop(key, None)

    def list(self, prefix: str = "") -> Iterator[str]:
        return iter([key for key in self.values_by_key if key.startswith(prefix)])


class Everything(Store):
    """A store with every ability that there is; none of them works."""

    requests_at_once = 3
    directory = "/"


def _refuse(self: Store, *_: Any, **__: Any) -> Any:
    raise NotImplementedError


for _ability in ABILITIES.values():
    for _name in protocols._members(_ability) - set(vars(Everything)):
        setattr(Everything, _name, _refuse)


def abilities(store: object) -> set[str]:
    return {name for name, ability in ABILITIES.items() if isinstance(store, ability)}


def stores(tmp_path: Path) -> dict[str, Store]:
    return {
        "nothing": Store(),
        "four methods": FourMethods(),
        "memory": MemoryStore(),
        "mapping": DictStore(),
        "local": LocalStore(tmp_path),
        "local without locks": LocalStore(tmp_path, file_locks=False),
        "zip": ZipStore(tmp_path / "a.zip", mode="w"),
        "sqlite": SQLiteStore(tmp_path / "a.sqlite"),
        "everything": Everything(),
    }


def test_what_the_shipped_stores_can_do(tmp_path: Path) -> None:
    found = {name: abilities(store) for name, store in stores(tmp_path).items()}
    four = {"Get", "Set", "Delete", "List"}
    conditional = four | {"GetRanges", "Size", "ConditionalSet"}
    assert found["nothing"] == set()
    assert found["four methods"] == four
    assert found["mapping"] == four | {"GetRanges", "Lock"}
    assert found["memory"] == conditional | {
        "ConditionalDelete",
        "Lock",
        "DeleteMany",
        "RenamePrefix",
        "ExchangePrefixes",
        "ReplacePrefix",
        "Commit",
        "Snapshot",
    }
    files = {"Splice", "ListDir", "PlainFiles", "RenamePrefix", "ExchangePrefixes", "ReplacePrefix", "Settle"}
    assert found["local"] == conditional | files | {"Lock", "Update", "Commit", "Snapshot"}
    assert found["local without locks"] == four | files | {"GetRanges", "Size"}
    assert found["zip"] == conditional - {"Delete"} | {"Lock", "ListDir", "ReplacePrefix", "Commit", "Locate", "Stamp"}
    assert found["sqlite"] == conditional | {"Update", "DeleteMany", "ReplacePrefix", "Commit"}
    assert found["everything"] == set(ABILITIES)


@pytest.mark.parametrize("wrap", FORWARDING.values(), ids=FORWARDING)
def test_a_wrapper_that_forwards_has_exactly_the_abilities_of_its_store(
    tmp_path: Path, wrap: Callable[[Store], Store]
) -> None:
    """Whoever adds a Protocol and forgets a wrapper fails here: `Everything` has it, and the wrapper has not.

    `SetMany` is of the store in which a transaction stages values: a wrapper is passed each of them by `set`.
    """
    for name, store in stores(tmp_path).items():
        expected = abilities(store) - {"PlainFiles", "Locate", "ListPrefix", "SetMany"}
        got = abilities(wrap(store))
        assert got - {"Remote"} == expected - {"Remote"}, name
        assert ("Remote" in got) == ("Remote" in expected) or wrap is LatencyStore, name


def test_no_wrapper_is_left_out_here() -> None:
    """Whoever adds a wrapper and forgets to compare its abilities fails here."""
    for module in pkgutil.walk_packages(tessarr.stores.__path__, "tessarr.stores."):
        importlib.import_module(module.name)
    shipped, waiting = set(), [WrapperStore]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        shipped |= {kind.__name__} if kind.__module__.startswith("tessarr.stores.") else set()
    stages = {
        "VersionedStore",
        "PrecomputedStore",
        "ContainerStore",  # the base of containers
    }  # what it can do does not follow from its store: TestVersionedStore, and below
    assert shipped == {*FORWARDING, *CHANGING, *CONTAINERS, *TRANSFORMED, *stages} - {"twice"}


@pytest.mark.parametrize("wrap", TRANSFORMED.values(), ids=TRANSFORMED)
def test_a_storage_transformer_locates_values_and_claims_nothing_else(
    tmp_path: Path, wrap: Callable[[Store], Store]
) -> None:
    parts = isinstance(wrap(MemoryStore()), PartsStore)
    for name, store in stores(tmp_path).items():
        got, inner = abilities(wrap(store)), abilities(store)
        added = {"Locate", *({"ConditionalDelete"} if parts and {"Commit", "ConditionalSet"} <= inner else ())}
        assert got - inner <= added, name
        located = "PlainFiles" in inner or ("Locate" in inner and not parts)
        assert ("Locate" in got) == (located and wrap is not ChecksummingStore), name
        assert got >= inner & {"Get", "List", "Lock", "Remote"}, name
        if not parts:
            prefixes = {"RenamePrefix", "ExchangePrefixes", "ReplacePrefix"}
            together = prefixes | {"ListDir", "ListPrefix", "ListVersions", "Settle", "Stamp"}
            assert got | together | {"PlainFiles", "SetMany"} >= inner, name


@pytest.mark.parametrize("wrap", [*CHANGING.values(), *CONTAINERS.values()], ids=[*CHANGING, *CONTAINERS])
def test_a_wrapper_that_may_change_values_has_no_ability_beyond_its_store(
    tmp_path: Path, wrap: Callable[[Store], Store]
) -> None:
    for name, store in stores(tmp_path).items():
        got, inner = abilities(wrap(store)), abilities(store)
        assert got <= inner, name
        missing = {"ConditionalSet", "ConditionalDelete"} if wrap in CONTAINERS.values() else set()
        assert inner - got <= BY_VALUE | {"PlainFiles", "SetMany"} | missing, name


def test_a_read_only_container_has_no_ability_of_writing(tmp_path: Path) -> None:
    for name, store in stores(tmp_path).items():
        got, inner = abilities(PrecomputedStore(store)), abilities(store)
        assert got == inner & {"Get", "List", "ListDir", "Remote", "Settle", "Size"}, name


def test_a_method_that_a_wrapper_overrides_is_no_ability_that_its_store_lacks() -> None:
    class Noting(WrapperStore):
        def lock(self, key: str) -> protocols.LockContext:
            return super().lock(key)

    assert not isinstance(Noting(FourMethods()), protocols.Lock)
    assert isinstance(Noting(MemoryStore()), protocols.Lock)


def test_a_wrapper_adds_an_ability_by_saying_so() -> None:
    class Locking(WrapperStore):
        def has_ability(self, ability: type) -> bool:
            return ability is protocols.Lock or super().has_ability(ability)

    assert isinstance(Locking(FourMethods()), protocols.Lock)
    assert not isinstance(Locking(FourMethods()), protocols.GetRanges)


def test_an_ability_made_of_several_is_asked_for_each() -> None:
    asked: list[type] = []

    class Asked(FourMethods):
        def has_ability(self, ability: type) -> bool:
            asked.append(ability)
            return ability is not protocols.Delete

    assert not isinstance(Asked(), protocols.Writable)  # type: ignore[misc]  # only its parts are asked for in programs
    assert set(asked) <= {protocols.Get, protocols.Set, protocols.Delete}
    assert isinstance(Asked(), protocols.Set)


def test_every_method_of_a_store_is_forwarded() -> None:
    public = {name for name, value in vars(Store).items() if inspect.isfunction(value) and not name.startswith("_")}
    # These are other words for methods that are forwarded.
    words = {
        "clear",
        "clear_async",
        "delete_dir",
        "is_empty",
        "is_empty_async",
        "list_prefix",
        "close",
        "close_async",
        "with_read_only",
    }
    assert public - words - set(vars(ForwardingStore)) == set()


def test_every_call_reaches_the_wrapped_store_under_its_own_name() -> None:
    """`CountingStore` counts each call; a method that went by another way would be counted as that."""
    inner = MemoryStore({"a": b"0"})
    store = CountingStore(CountingStore(inner))
    store.get("a")
    store.get_ranges("a", [ByteRange(0, 1)])
    store.set("b", b"1")
    store.set("b", b"2", if_match=store.version("b"))
    store.update("b", lambda _: b"3")
    store.delete_many(["b"])
    assert store.store.counter == store.counter  # type: ignore[attr-defined]
    assert store.counter == {"get": 1, "get_ranges": 1, "set": 2, "version": 1, "update": 1, "delete_many": 1}


# -- functions over Protocols ---------------------------------------------------------------------------------------------


class Plain:
    """No `Store`: an object with the four methods."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        value = self.values.get(key)
        return value if value is None or byte_range is None else value[slice(*byte_range.bounds(len(value)))]

    def set(self, key: str, value: Buffer) -> None:
        self.values[key] = bytes(value)

    def delete(self, key: str) -> None:
        self.values.pop(key, None)

    def list(self, prefix: str = "") -> list[str]:
        return [key for key in self.values if key.startswith(prefix)]


class Swapping(Plain):
    """One with versions, in which another writer is faster a few times."""

    def __init__(self, faster: int) -> None:
        super().__init__()
        self.faster = faster

    def version(self, key: str) -> str | None:
        value = self.values.get(key)
        return None if value is None else value.decode()

    def set_if(self, key: str, value: Buffer, version: str | None) -> str | None:
        if self.faster:
            self.faster -= 1
            self.values[key] = str(int(self.values.get(key, b"0")) + 10).encode()
        if self.version(key) != version:
            raise ConflictError("changed", key=key)
        self.values[key] = bytes(value)
        return self.version(key)


def increment(old: Buffer | None) -> bytes:
    return str(int(bytes(old or b"0")) + 1).encode()


def test_functions_work_for_any_object_with_the_methods() -> None:
    store = Plain()
    functions.update(store, "a/n", increment)
    functions.update(store, "a/n", increment)
    assert functions.set_if_not_exists(store, "a/m", b"0123")
    assert not functions.set_if_not_exists(store, "a/m", b"")
    assert functions.get_ranges(store, "a/m", [ByteRange(-1), ByteRange(0, 2)]) == [b"3", b"01"]
    assert functions.list_dir(store, "").prefixes == ["a/"]
    functions.replace_prefix(store, "a/", {"a/x": b"1"})
    functions.update(store, "a/x", lambda _: None)
    assert store.values == {}


def test_an_update_compares_and_swaps_where_the_object_can() -> None:
    store = Swapping(faster=3)
    functions.update(store, "n", increment)
    assert store.values == {"n": b"31"}


def test_ranges_of_a_store_without_get_ranges_are_of_one_value() -> None:
    class Changing(FourMethods):
        calls = 0

        def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
            self.calls += 1
            self.set(key, str(self.calls).encode() * 4)
            return super().get(key, byte_range)

    assert Changing().get_ranges("k", [ByteRange(0, 1), ByteRange(3, 4), ByteRange(-1)]) == [b"1", b"1", b"1"]


def test_a_store_of_coroutines_that_cannot_list_or_delete_has_no_such_ability() -> None:
    class ReadOnly(AsyncStore):
        def has_ability(self, ability: type) -> bool:
            return ability not in (*protocols.WRITING, *protocols.LISTING) and super().has_ability(ability)

        async def get_async(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
            return b"1" if key == "k" else None

    store = ReadOnly()
    assert store.get("k") == b"1"
    assert abilities(store) >= {"Get", "GetRanges"}
    assert abilities(store) & {"Set", "Delete", "List", "ListDir", "ConditionalSet", "DeleteMany"} == set()
    with pytest.raises(UnsupportedOperationError):
        store.list_dir("")


def test_requests_that_a_store_sends_one_by_one_are_forwarded() -> None:
    import asyncio

    class One(MemoryStore):
        async def fetch_one(self, request: Fetch) -> Fetched | None:
            return Fetched([request.key.encode()], "v")

    store = PrefixStore(One(), "p")
    assert isinstance(store, protocols.FetchOne)
    assert asyncio.run(store.fetch_one(Fetch("k"))) == [b"p/k"]
    assert not isinstance(PrefixStore(MemoryStore(), "p"), protocols.FetchOne)
