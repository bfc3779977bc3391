"""Any mutable mapping as a store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, MutableMapping

import pytest

import tessarr
from tessarr.errors import ConflictError, UnsupportedOperationError
from tessarr.stores.base import ANY, Any_, Fetch, Store, Version
from tessarr.stores.memory.mapping import DictStore, KVStore, MappingStore
from tessarr.stores.protocols import ConditionalSet, Lock
from tessarr.stores.url import store_from
from tessarr.types import Buffer, ByteRange
from tests.stores.contract import StoreContract, plain


class Minimal(MutableMapping[str, bytes]):
    """What V1-01 asks for, and iteration."""

    def __init__(self) -> None:
        self.values_by_key: dict[str, bytes] = {}
        self.closed = 0

    def __getitem__(self, key: str) -> bytes:
        return self.values_by_key[key]

    def __setitem__(self, key: str, value: bytes) -> None:
        assert type(value) is bytes
        self.values_by_key[key] = value

    def __delitem__(self, key: str) -> None:
        del self.values_by_key[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_by_key)

    def __len__(self) -> int:
        return len(self.values_by_key)

    def close(self) -> None:
        self.closed += 1


@pytest.mark.spec("V1-01", "V2-01", "OGC-07")
class TestMappingStore(StoreContract):
    @pytest.fixture
    def store(self) -> MappingStore:
        return MappingStore(Minimal())


class TestDictStore(StoreContract):
    @pytest.fixture
    def store(self) -> DictStore:
        return DictStore()


class FourMethods(Store):
    """The documented least that a store implements."""

    def __init__(self) -> None:
        self.values_by_key: dict[str, bytes] = {}

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        value = MappingStore(self.values_by_key).get(key)
        if value is None or byte_range is None:
            return value
        start, stop = byte_range.bounds(len(value))
        return memoryview(value)[start:stop]

    def set(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        self._check_writable(key)
        if if_match is not ANY:
            raise UnsupportedOperationError("no versions")
        MappingStore(self.values_by_key).set(key, value)
        return None

    def delete(self, key: str) -> None:
        self._check_writable(key)
        MappingStore(self.values_by_key).delete(key)

    def list(self) -> Iterator[str]:  # type: ignore[override]  # as stores written for zarr-python 2 have it
        return iter([*self.values_by_key])


@pytest.mark.spec("V3-STORE-18", "V3-STORE-08", "OGC-07")
class TestAStoreOfFourMethods(StoreContract):
    parts_are_of_one_value = False  # each part is a call of `get`

    @pytest.fixture
    def store(self) -> FourMethods:
        return FourMethods()


class OnlyParts(FourMethods):
    """A store that reads and writes parts of values only."""

    get = Store.get
    set = Store.set

    def get_partial_values(self, key_ranges):  # type: ignore[no-untyped-def]
        return [FourMethods.get(self, key, part) for key, part in key_ranges]

    def set_partial_values(self, key_start_values):  # type: ignore[no-untyped-def]
        from tessarr.stores.buffers import merge_parts, parts_by_key

        self._check_writable("")
        for key, parts in parts_by_key(key_start_values).items():
            FourMethods.set(self, key, merge_parts(FourMethods.get(self, key), parts))


@pytest.mark.spec("V3-STORE-18")
class TestAStoreOfPartsOnly(StoreContract):
    parts_are_of_one_value = False  # each part is a call of `get`

    @pytest.fixture
    def store(self) -> OnlyParts:
        return OnlyParts()


def test_a_conditional_set_is_refused() -> None:
    with pytest.raises(UnsupportedOperationError, match="conditional"):
        MappingStore({}).set("a", b"", if_match=None)


@pytest.mark.spec("V3-STORE-19")
def test_a_store_that_cannot_list_or_delete_says_so() -> None:
    class Fixed(Store):
        def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
            return b"{}" if key == "zarr.json" else None

    store = Fixed()
    assert store.get("zarr.json") == b"{}"
    for call in (
        store.list,
        lambda: store.list_dir(""),
        lambda: list(store.list_prefix("a/")),
        lambda: store.delete("zarr.json"),
    ):
        with pytest.raises(UnsupportedOperationError):
            call()


def test_keys_of_others_are_left_out_and_the_mapping_is_closed() -> None:
    mapping = Minimal()
    mapping.values_by_key.update({"a": b"1", 3: b"", "": b""})  # type: ignore[dict-item]
    store = KVStore(mapping)
    assert [*store.list()] == ["a"]
    assert store.mapping is mapping
    assert store == MappingStore(mapping)
    assert store != MappingStore(Minimal())
    with store:
        assert plain(store.get("a")) == b"1"
    assert mapping.closed == 1


def test_an_error_of_the_mapping_is_not_a_missing_key() -> None:
    class Broken(Minimal):
        def __getitem__(self, key: str) -> bytes:
            raise ConnectionError("down")

    with pytest.raises(ConnectionError):
        MappingStore(Broken()).get("a")


@pytest.mark.spec("V3-STORE-18")
@pytest.mark.parametrize("missing", ["get", "set", "delete", "list"])
def test_a_class_that_lacks_a_method_gives_an_error_that_names_it_and_loses_nothing(missing: str) -> None:
    methods = {name: getattr(FourMethods, name) for name in ("__init__", "get", "set", "delete", "list")}
    store = type("Unfinished", (Store,), {name: method for name, method in methods.items() if name != missing})()
    store.values_by_key["a/b"] = b"old"
    calls = {
        "get": [lambda: store.get("a/b"), lambda: store.exists("a/b"), lambda: store.fetch([Fetch("a/b")])],
        "set": [lambda: store.set("a/b", b"new"), lambda: store.update("a/b", lambda _: b"new")],
        "delete": [lambda: store.delete("a/b")],
        "list": [store.list, lambda: store.list_dir("")],
    }
    for call in calls[missing]:
        with pytest.raises(UnsupportedOperationError, match=missing):
            call()
    assert store.values_by_key == {"a/b": b"old"}


class Plain:
    """The four methods and nothing else: no class of tessarr's is inherited."""

    def __init__(self) -> None:
        self.values_by_key: dict[str, bytes] = {}

    def get(self, key: str, byte_range: ByteRange | None = None) -> bytes | None:
        value = self.values_by_key.get(key)
        return value if value is None or byte_range is None else value[slice(*byte_range.bounds(len(value)))]

    def set(self, key: str, value: bytes) -> None:
        self.values_by_key[key] = value

    def delete(self, key: str) -> None:
        self.values_by_key.pop(key, None)

    def list(self, prefix: str = "") -> Iterator[str]:
        return (key for key in [*self.values_by_key] if key.startswith(prefix))


class TestFourMethods(StoreContract):
    @pytest.fixture
    def store(self) -> Store:
        return store_from(Plain())[0]


class TestAnObjectOfFourCoroutines(StoreContract):
    parts_are_of_one_value = False  # each part is a call of `get`

    @pytest.fixture
    def store(self) -> Store:
        class Awaited:
            def __init__(self) -> None:
                self.plain = Plain()

            async def get(self, key: str, byte_range: ByteRange | None = None) -> bytes | None:
                return self.plain.get(key, byte_range)

            async def set(self, key: str, value: bytes) -> None:
                self.plain.set(key, value)

            async def delete(self, key: str) -> None:
                self.plain.delete(key)

            async def list(self, prefix: str = "") -> AsyncIterator[str]:
                for key in self.plain.list(prefix):
                    yield key

        return store_from(Awaited())[0]


class ComparesByContent(Plain):
    """Equal to every other object with the same values, as a dictionary is."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComparesByContent) and other.values_by_key == self.values_by_key

    __hash__ = None  # type: ignore[assignment]


class AwaitedComparesByContent(ComparesByContent):
    async def get(self, key: str, byte_range: ByteRange | None = None) -> bytes | None:  # type: ignore[override]
        return super().get(key, byte_range)


@pytest.mark.parametrize("kind", [ComparesByContent, AwaitedComparesByContent])
def test_stores_of_two_objects_differ_even_when_the_objects_have_the_same_content(kind: type[Plain]) -> None:
    """Else two equal stores had different hashes, and two places with the same values were one."""
    one, two = kind(), kind()
    assert store_from(one)[0] == store_from(one)[0]
    assert hash(store_from(one)[0]) == hash(store_from(one)[0])
    assert store_from(one)[0] != store_from(two)[0]
    assert store_from(one)[0] != store_from(one, read_only=True)[0]


@pytest.mark.parametrize("missing", ["get", "set", "delete", "list"])
def test_an_object_that_lacks_one_of_the_four_methods_is_refused_by_an_error_that_names_it(missing: str) -> None:
    methods = {name: method for name, method in vars(Plain).items() if name != missing}
    lacking = type("Unfinished", (), methods)()
    with pytest.raises(UnsupportedOperationError, match=rf"Unfinished is not a store: it lacks {missing}\("):
        tessarr.create_array(lacking, shape=(2,), dtype="i4")
    with pytest.raises(TypeError, match="Unsupported type for store_like"):
        store_from(object())


def test_an_object_with_get_and_list_alone_can_be_read() -> None:
    values = Plain()
    tessarr.create_array(values, data=[1, 2, 3])
    reader = type("Reader", (), {"get": Plain.get, "list": Plain.list, "values_by_key": values.values_by_key})()
    assert tessarr.open_array(reader, mode="r")[:].tolist() == [1, 2, 3]


def test_what_an_object_can_do_beyond_four_methods_its_store_can_do() -> None:
    class Versioned(Plain):
        def version(self, key: str) -> str | None:
            value = self.values_by_key.get(key)
            return None if value is None else value.hex()

        def set_if(self, key: str, value: bytes, version: str | None) -> str | None:
            if self.version(key) != version:
                raise ConflictError("another writer was faster", key=key)
            self.set(key, value)
            return self.version(key)

    store = store_from(Versioned())[0]
    assert isinstance(store, ConditionalSet)
    assert not isinstance(store_from(Plain())[0], ConditionalSet | Lock)
    assert store.set("a", b"1", if_match=None) == b"1".hex()
    with pytest.raises(ConflictError):
        store.set("a", b"2", if_match=None)
    z = tessarr.create_array(store, name="z", shape=(0,), chunks=(4,), dtype="i4")
    assert z.append([1, 2]) == (2,)
