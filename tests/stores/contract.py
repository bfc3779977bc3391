"""What every store promises, as tests to inherit.

A test class of a store inherits the parts that apply and gives the fixture ``store``, an empty writable store::

    class TestMyStore(StoreContract, ConditionalContract, SharedContract):
        @pytest.fixture
        def store(self, tmp_path): return MyStore(tmp_path)

`StoreContract` is reading, writing, deleting and listing. `ConditionalContract` is for stores with versions and
``if_match``; `SharedContract` for those that other processes can open (their pickles lead to the same values, and their
locks exclude other processes). A read-only place inherits `ReadContract` alone and gives ``seeded`` instead: a store
that holds `SEED`.
"""

from __future__ import annotations

import asyncio
import itertools
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from tessarr.common import extension
from tessarr.common.segments import Piece, Stored
from tessarr.errors import ConflictError, KeyValidationError, ReadOnlyError
from tessarr.stores.base import Fetch, Listing, Store
from tessarr.stores.fetch import UNCHANGED, Fetched
from tessarr.stores.functions import replace as put
from tessarr.stores.functions import stamp_below
from tessarr.stores.protocols import ExchangePrefixes, Remote, ReplacePrefix
from tessarr.types import Buffer, ByteRange
from tests.narrow import calls
from tests.waiting import PATIENCE_S

SEED = {
    "zarr.json": b"{}",
    "a/b": b"0123456789",
    "a/c/d": b"d",
    "ab/x": b"x",
    "empty": b"",
    "é/ü b": "ß".encode(),
    ".zgroup": b"{ }",
}

ENGINES = [
    pytest.param(
        "native", marks=pytest.mark.skipif(extension.module() is None, reason="the Rust module was not built")
    ),
    "reference",
]
"""For tests of stores that arrays of either engine use."""

BAD_KEYS = ["", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "../a", "a/./b", "a/..", "a\0b", "\ud800"]


def plain(value: Any) -> Any:
    """Buffers as bytes, lists of them as lists of bytes, ``None`` as it is."""
    if value is None:
        return None
    if isinstance(value, list):
        return [plain(item) for item in value]
    return bytes(memoryview(value))


def increment(old: Buffer | None) -> bytes:
    """The change that concurrent updates make."""
    return str(int(bytes(memoryview(old)) if old is not None else b"0") + 1).encode()


class ReadContract:
    """Reading `SEED`."""

    @pytest.fixture
    def seeded(self, store: Store) -> Store:
        for key, value in SEED.items():
            store.set(key, value)
        return store

    @pytest.mark.spec("V3-STORE-04")
    def test_a_value_is_got_whole_and_a_missing_key_is_none(self, seeded: Store) -> None:
        for key, value in SEED.items():
            assert plain(seeded.get(key)) == value, key
        assert seeded.get("nothing") is None
        assert seeded.get("a/nothing") is None

    @pytest.mark.spec("V3-STORE-04")
    def test_an_empty_value_is_present(self, seeded: Store) -> None:
        assert plain(seeded.get("empty")) == b""
        for part in (ByteRange(0, 0), ByteRange(3), ByteRange(-2)):
            assert plain(seeded.get("empty", part)) == b"", part
        assert seeded.exists("empty")
        assert seeded.getsize("empty") == 0

    @pytest.mark.spec("FS-03")
    def test_a_prefix_is_no_key(self, seeded: Store) -> None:
        assert seeded.get("a") is None
        assert not seeded.exists("a")
        assert seeded.getsize("a") is None

    @pytest.mark.spec("V3-STORE-05", "V3-STORE-07")
    @pytest.mark.parametrize(
        ("byte_range", "expected"),
        [
            (ByteRange(0), b"0123456789"),
            (ByteRange(2, 5), b"234"),
            (ByteRange(7), b"789"),
            (ByteRange(0, 0), b""),
            (ByteRange(5, 5), b""),
            (ByteRange(8, 99), b"89"),
            (ByteRange(8, 2**62), b"89"),
            (ByteRange(10), b""),
            (ByteRange(50, 60), b""),
            (ByteRange(-3), b"789"),
            (ByteRange(-99), b"0123456789"),
        ],
        ids=str,
    )
    def test_a_range_is_half_open_and_ends_with_the_value(
        self, seeded: Store, byte_range: ByteRange, expected: bytes
    ) -> None:
        assert plain(seeded.get("a/b", byte_range)) == expected
        assert plain(seeded.get_ranges("a/b", [byte_range])) == [expected]

    def test_a_range_of_a_missing_key_is_none(self, seeded: Store) -> None:
        assert seeded.get("nothing", ByteRange(0, 2)) is None
        assert seeded.get_ranges("nothing", [ByteRange(0, 2), ByteRange(-1)]) is None

    def test_several_ranges_come_in_the_order_asked(self, seeded: Store) -> None:
        ranges = [ByteRange(8, 10), ByteRange(0, 2), ByteRange(-1), ByteRange(0, 2), ByteRange(3, 3), ByteRange(4)]
        expected = [b"89", b"01", b"9", b"01", b"", b"456789"]
        assert plain(seeded.get_ranges("a/b", ranges)) == expected
        assert plain(seeded.get_ranges("a/b", [])) == []

    @pytest.mark.spec("V3-STORE-06", "V3-STORE-18")
    def test_partial_values_come_in_order_with_repeats_and_none(self, seeded: Store) -> None:
        wanted = [
            ("a/b", ByteRange(0, 2)), ("a/c/d", ByteRange(0, 1)), ("a/b", ByteRange(8, 10)),
            ("zz", ByteRange(0, 1)), ("a/b", None),
        ]  # fmt: skip
        assert plain(seeded.get_partial_values(wanted)) == [b"01", b"d", b"89", None, b"0123456789"]

    def test_a_fetch_answers_every_request_in_order(self, seeded: Store) -> None:
        requests = [Fetch("a/b", (ByteRange(1, 3), ByteRange(-1))), Fetch("nothing"), Fetch("ab/x"), Fetch("empty")]
        expected = [[b"12", b"9"], None, [b"x"], [b""]]
        assert [plain(answer) for answer in seeded.fetch(requests)] == expected
        assert [plain(answer) for answer in asyncio.run(seeded.fetch_async(requests))] == expected

    def test_a_fetch_of_whole_values_answers_every_request_in_order(self, seeded: Store) -> None:
        requests = [Fetch(key) for key in ("a/c/d", "nothing", "a/b", "a", "empty", "a/c/d", "no/thing/here")]
        expected = [[b"d"], None, [b"0123456789"], None, [b""], [b"d"], None]
        assert [plain(answer) for answer in seeded.fetch(requests)] == expected

    def test_sizes_are_bytes_and_none_when_missing(self, seeded: Store) -> None:
        assert seeded.getsize("a/b") == 10
        assert seeded.getsize("nothing") is None

    @pytest.mark.spec("V3-STORE-01", "FS-11")
    @pytest.mark.parametrize("key", BAD_KEYS, ids=ascii)
    def test_a_malformed_key_is_refused_on_reading(self, seeded: Store, key: str) -> None:
        with pytest.raises(KeyValidationError):
            seeded.get(key)
        with pytest.raises(KeyValidationError):
            seeded.get_ranges(key, [ByteRange(0, 1)])

    def test_the_asynchronous_reads_mean_the_same(self, seeded: Store) -> None:
        async def read() -> list[Any]:
            return [
                plain(await seeded.get_async("a/b")),
                plain(await seeded.get_async("a/b", ByteRange(2, 5))),
                await seeded.get_async("nothing"),
                plain(await seeded.get_ranges_async("a/b", [ByteRange(0, 1), ByteRange(-1)])),
                plain(await seeded.get_partial_values_async([("a/b", ByteRange(0, 1)), ("zz", None)])),
                await seeded.exists_async("a/b"),
                await seeded.getsize_async("a/b"),
            ]

        assert asyncio.run(read()) == [b"0123456789", b"234", None, [b"0", b"9"], [b"0", None], True, 10]

    def test_many_threads_read_the_same(self, seeded: Store) -> None:
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda key: plain(seeded.get(key)), [*SEED] * 20))
        assert found == [*SEED.values()] * 20

    def test_a_read_only_twin_refuses_every_write(self, seeded: Store) -> None:
        twin = seeded.with_read_only()
        assert twin.read_only
        assert plain(twin.get("a/b")) == b"0123456789"
        for write in calls(
            lambda: twin.set("k", b""),
            lambda: twin.set("k", b"", if_match=None),
            lambda: twin.set_if_not_exists("k", b""),
            lambda: twin.set_partial_values([("k", 0, b"1")]),
            lambda: twin.update("k", increment),
            lambda: twin.delete("a/b"),
            lambda: twin.delete_many(["a/b"]),
            lambda: twin.delete_prefix("a/"),
            lambda: twin.replace_prefix("a/", {"a/n": b""}),
            lambda: twin.clear(),
        ):
            with pytest.raises(ReadOnlyError):
                write()
        assert plain(twin.get("a/b")) == b"0123456789"

    @pytest.mark.spec("V3-STORE-20")
    def test_the_url_names_the_place_and_the_repr_shows_it(self, seeded: Store) -> None:
        assert ":" in seeded.url
        assert seeded.url in repr(seeded)

    def test_a_conditional_read_returns_a_value_of_any_other_version(self, seeded: Store) -> None:
        for version in (None, "another"):
            assert plain(seeded.get_if_changed("a/b", version)) == [b"0123456789"]
            assert plain(asyncio.run(seeded.get_if_changed_async("a/b", version))) == [b"0123456789"]
            assert seeded.get_if_changed("nothing", version) is None


class WriteContract:
    """Writing to an empty store."""

    parts_are_of_one_value = True
    """Whether parts asked for together are, though others write meanwhile."""

    @pytest.mark.spec("V3-STORE-09")
    def test_a_set_replaces_the_whole_value(self, store: Store) -> None:
        store.set("k", b"0123456789")
        store.set("k", b"xy")
        assert plain(store.get("k")) == b"xy"

    def test_two_prefixes_are_exchanged_whole_or_not_at_all(self, store: Store) -> None:
        if not isinstance(store, ExchangePrefixes):
            return
        for key in ("a/k", "a/c/0", "b/k", "b/c/1", "ab"):
            store.set(key, key.encode())
        if store.exchange_prefixes("a/", "b/"):
            found = {key: plain(store.get(key)) for key in store.list()}
            assert found == {"b/k": b"a/k", "b/c/0": b"a/c/0", "a/k": b"b/k", "a/c/1": b"b/c/1", "ab": b"ab"}
        else:
            assert plain(store.get("a/k")) == b"a/k"
        kept = {key: plain(store.get(key)) for key in store.list()}
        assert not store.exchange_prefixes("a/", "missing/")
        assert not store.exchange_prefixes("missing/", "a/")
        assert {key: plain(store.get(key)) for key in store.list()} == kept

    @pytest.mark.spec("V3-STORE-02", "V3-NAME-08")
    def test_keys_are_case_sensitive(self, store: Store) -> None:
        store.set("foo", b"a")
        store.set("FOO", b"b")
        assert [plain(store.get(key)) for key in ("foo", "FOO", "Foo")] == [b"a", b"b", None]

    @pytest.mark.spec("V3-NAME-10", "V3-NAME-09")
    def test_keys_are_unicode_and_never_normalised(self, store: Store) -> None:
        composed, decomposed = "\u00e9", "e\u0301"
        store.set(composed, b"1")
        store.set(decomposed, b"2")
        store.set("日本/🧊 #%25&?", b"3")
        assert [plain(store.get(key)) for key in (composed, decomposed, "日本/🧊 #%25&?")] == [b"1", b"2", b"3"]

    @pytest.mark.parametrize(
        "value",
        [
            b"abcd", bytearray(b"abcd"), memoryview(b"abcd"), np.frombuffer(b"abcd", dtype="u1"),
            np.frombuffer(b"abcd", dtype="<u2").reshape(1, 2), np.frombuffer(b"abcd", dtype="S4"),
        ],
        ids=lambda value: type(value).__name__,
    )  # fmt: skip
    def test_any_buffer_can_be_set(self, store: Store, value: Buffer) -> None:
        store.set("k", value)
        assert plain(store.get("k")) == b"abcd"

    def test_awkward_buffers_can_be_set(self, store: Store) -> None:
        store.set("t", np.array(["2001-01-01"], dtype="M8[s]"))
        store.set("e", np.empty((0, 3), dtype="f4"))
        assert plain(store.get("t")) == np.array([978307200], dtype="i8").tobytes()
        assert plain(store.get("e")) == b""

    def test_the_store_keeps_no_reference_to_the_value(self, store: Store) -> None:
        value = np.zeros(4, dtype="u1")
        store.set("k", value)
        value[:] = 9
        assert plain(store.get("k")) == bytes(4)

    def test_what_was_got_stays_what_it_was(self, store: Store) -> None:
        store.set("k", b"old!")
        whole, part = store.get("k"), store.get("k", ByteRange(1, 3))
        store.set("k", b"new?")
        assert (plain(whole), plain(part)) == (b"old!", b"ld")
        assert whole is not None
        assert memoryview(whole).readonly

    def test_a_large_value_comes_back(self, store: Store) -> None:
        value = np.random.default_rng(1).bytes(3_000_001)
        store.set("big/value", value)
        assert plain(store.get("big/value")) == value
        assert plain(store.get("big/value", ByteRange(2_999_990))) == value[-11:]

    @pytest.mark.spec("V3-STORE-01", "FS-11")
    @pytest.mark.parametrize("key", BAD_KEYS, ids=ascii)
    def test_a_malformed_key_is_refused_on_writing(self, store: Store, key: str) -> None:
        with pytest.raises(KeyValidationError):
            store.set(key, b"x")
        with pytest.raises(KeyValidationError):
            store.update(key, increment)

    def test_set_if_not_exists_writes_once(self, store: Store) -> None:
        assert store.set_if_not_exists("k", b"1")
        assert not store.set_if_not_exists("k", b"2")
        assert plain(store.get("k")) == b"1"

    @pytest.mark.spec("V3-STORE-10", "V3-STORE-18")
    def test_partial_values_are_laid_over_the_old_value(self, store: Store) -> None:
        store.set("k", b"0123456789")
        store.set_partial_values([("k", 8, b"XYZ"), ("n", 2, b"ab"), ("k", 0, b"A")])
        assert plain(store.get("k")) == b"A1234567XYZ"
        assert plain(store.get("n")) == b"\0\0ab"

    @pytest.mark.spec("V3-STORE-10")
    def test_overlapping_partial_values_are_refused_and_nothing_is_written(self, store: Store) -> None:
        store.set("k", b"0123")
        with pytest.raises(ValueError, match="overlap"):
            store.set_partial_values([("n", 0, b"1"), ("k", 0, b"ab"), ("k", 1, b"c")])
        assert plain(store.get("k")) == b"0123"
        assert store.get("n") is None

    def test_an_update_gets_the_old_value_and_sets_the_new(self, store: Store) -> None:
        store.update("a/k", increment)
        store.update("a/k", increment)
        assert plain(store.get("a/k")) == b"2"

    def test_an_update_that_fails_changes_nothing_and_lets_go(self, store: Store) -> None:
        def fail(old: Buffer | None) -> bytes:
            raise RuntimeError("no")

        store.set("k", b"1")
        with pytest.raises(RuntimeError, match="no"):
            store.update("k", fail)
        assert plain(store.get("k")) == b"1"
        store.update("k", increment)
        assert plain(store.get("k")) == b"2"

    def test_a_splice_keeps_ranges_of_the_old_value(self, store: Store) -> None:
        large = bytes(range(256)) * 8192  # large enough to be copied within the kernel
        store.set("a/k", large)
        read: list[bytes] = []

        def change(old: Stored | None) -> list[Piece]:
            assert old is not None
            assert old.nbytes == len(large)
            read.append(plain(old.read(ByteRange(-3))))
            return [b"new", ByteRange(7, 1 << 20), b"", np.frombuffer(b"mid", "u1"), ByteRange(1 << 20, len(large))]

        store.splice("a/k", change)
        assert read == [large[-3:]]
        assert plain(store.get("a/k")) == b"new" + large[7 : 1 << 20] + b"mid" + large[1 << 20 :]

    def test_a_splice_of_nothing_makes_a_value_and_one_that_fails_changes_nothing(self, store: Store) -> None:
        def fail(old: Stored | None) -> list[Piece]:
            raise RuntimeError("no")

        store.splice("n/k", lambda old: [b"1", b"2"] if old is None else [])
        with pytest.raises(RuntimeError, match="no"):
            store.splice("n/k", fail)
        assert plain(store.get("n/k")) == b"12"
        asyncio.run(store.splice_async("n/k", lambda old: [b"0", ByteRange(0, 1)] if old else None))
        assert plain(store.get("n/k")) == b"01"

    def test_parts_that_are_asked_for_together_are_of_one_value(self, store: Store) -> None:
        if isinstance(store, Remote) or not self.parts_are_of_one_value:
            return  # requests of their own, which `fetch_versioned` tells apart
        store.set("k", b"0" * 5000)
        ended = threading.Event()

        def write() -> None:
            for turn in range(200):
                store.set("k", b"%d" % (turn % 10) * 5000)
            ended.set()

        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(write)
            while not ended.is_set() and not writing.done():
                parts = store.get_ranges("k", [ByteRange(start, start + 1) for start in range(0, 5000, 500)])
                assert parts is not None
                assert len({plain(part) for part in parts}) == 1
            writing.result()

    @pytest.mark.parametrize("before", [None, b"5"])
    @pytest.mark.parametrize("put_there", [None, b"70"])
    @pytest.mark.parametrize("deletes", [False, True])
    def test_a_whole_value_that_comes_during_an_update_is_not_undone(
        self, store: Store, before: bytes | None, put_there: bytes | None, deletes: bool
    ) -> None:
        if not store.supports_deletes and (deletes or put_there is None):
            return
        if before is not None:
            store.set("n/k", before)
        other: list[threading.Thread] = []

        def change(old: Buffer | None) -> Buffer | None:
            if not other:
                other.append(threading.Thread(target=put, args=(store, "n/k", put_there)))
                other[0].start()
                other[0].join(0.2)  # it waits for this update, or not
            return None if deletes and plain(old) == before else increment(old)

        store.update("n/k", change)
        other[0].join()
        # The whole value came after the update, or the update after it.
        second = None if deletes and put_there == before else increment(put_there)
        assert plain(store.get("n/k")) in (put_there, second)

    def test_no_update_of_many_threads_is_lost(self, store: Store) -> None:
        with ThreadPoolExecutor(8) as pool:
            for done in [pool.submit(store.update, "n/k", increment) for _ in range(80)]:
                done.result()
        assert plain(store.get("n/k")) == b"80"

    def test_a_lock_excludes_other_threads_and_is_per_key(self, store: Store) -> None:
        entered = threading.Event()

        def enter() -> None:
            with store.lock("k"):
                entered.set()

        thread = threading.Thread(target=enter)
        with store.lock("k"):
            thread.start()
            with store.lock("other"):
                pass
            assert not entered.wait(0.05)
        assert entered.wait(PATIENCE_S)
        thread.join()

    def test_the_asynchronous_writes_mean_the_same(self, store: Store) -> None:
        async def write() -> list[Any]:
            await store.set_async("k", b"1")
            await store.update_async("k", increment)
            found = [plain(await store.get_async("k")), await store.set_if_not_exists_async("k", b"9")]
            await store.set_partial_values_async([("k", 1, b"!")])
            return [*found, plain(await store.get_async("k"))]

        assert asyncio.run(write()) == [b"2", False, b"2!"]

    def test_it_can_be_closed_twice(self, store: Store) -> None:
        store.set("k", b"1")
        store.close()
        store.close()


class DeleteContract:
    """Deleting."""

    @pytest.mark.spec("V3-STORE-11", "FS-05")
    def test_a_deleted_key_is_missing_and_a_missing_one_is_no_error(self, store: Store) -> None:
        store.set("a/k", b"1")
        store.delete("a/k")
        store.delete("a/k")
        store.delete("never/was")
        assert store.get("a/k") is None
        assert [*store.list()] == []

    @pytest.mark.spec("FS-05")
    def test_deleting_a_prefix_as_a_key_deletes_nothing(self, store: Store) -> None:
        store.set("a/k", b"1")
        store.delete("a")
        assert plain(store.get("a/k")) == b"1"

    @pytest.mark.spec("V3-STORE-11")
    def test_many_keys_are_deleted(self, store: Store) -> None:
        for key in ("a", "b/c", "b/d"):
            store.set(key, b"1")
        store.delete_many(key for key in ("a", "missing", "b/c"))
        assert [*store.list()] == ["b/d"]

    @pytest.mark.spec("V3-STORE-12")
    def test_a_deleted_prefix_takes_what_is_below_it_and_nothing_else(self, store: Store) -> None:
        for key in ("a/b", "a/c/d", "ab/x", "z"):
            store.set(key, b"1")
        store.delete_prefix("a/")
        store.delete_prefix("never/")
        assert sorted(store.list()) == ["ab/x", "z"]

    def test_a_prefix_that_is_deleted_in_one_step_is_never_found_in_part(self, store: Store) -> None:
        if not isinstance(store, ReplacePrefix):
            return
        keys = [f"a/{number}" for number in range(200)]
        for key in keys:
            store.set(key, b"1")
        with ThreadPoolExecutor(1) as pool:
            deleting = pool.submit(store.delete_prefix, "a/")
            gone = next(key for key in itertools.cycle(keys) if not store.exists(key))
            assert [key for key in keys if store.exists(key)] == [], gone
            deleting.result()

    @pytest.mark.spec("V3-STORE-03")
    def test_a_prefix_without_its_slash_is_refused(self, store: Store) -> None:
        store.set("a/b", b"1")
        with pytest.raises(KeyValidationError):
            store.delete_prefix("a")
        assert store.exists("a/b")

    def test_clear_empties_the_store(self, store: Store) -> None:
        for key in ("a/b", "a/c/d", "z", ".zgroup"):
            store.set(key, b"1")
        store.clear()
        assert [*store.list()] == []
        store.set("a/b", b"2")
        assert plain(store.get("a/b")) == b"2"

    def test_an_update_that_returns_none_deletes(self, store: Store) -> None:
        store.set("a/k", b"1")
        store.update("a/k", lambda _: None)
        assert store.get("a/k") is None
        store.update("a/k", lambda _: None)
        assert [*store.list()] == []

    def test_a_splice_that_returns_none_deletes(self, store: Store) -> None:
        store.set("a/k", b"1")
        store.splice("a/k", lambda _: None)
        assert [*store.list()] == []

    @pytest.mark.parametrize("prefix", ["", "n/", "n/m/"])
    def test_a_replaced_prefix_holds_exactly_the_new_values(self, store: Store, prefix: str) -> None:
        for key in ("old", "both", "sub/old"):
            store.set(prefix + key, b"old")
        if prefix:
            store.set("beside", b"1")
            store.set(prefix[:-1] + "x/y", b"2")
        store.replace_prefix(prefix, {f"{prefix}both": b"new", f"{prefix}deep/er/new": b"", f"{prefix}sub2": b"s"})
        found = {key: plain(store.get(key)) for key in store.list()}
        expected = {f"{prefix}both": b"new", f"{prefix}deep/er/new": b"", f"{prefix}sub2": b"s"}
        if prefix:
            expected |= {"beside": b"1", prefix[:-1] + "x/y": b"2"}
        assert found == expected

    def test_a_prefix_that_was_not_there_is_replaced(self, store: Store) -> None:
        store.replace_prefix("new/node/", {"new/node/zarr.json": b"{}"})
        assert [*store.list()] == ["new/node/zarr.json"]

    def test_the_asynchronous_deletes_mean_the_same(self, store: Store) -> None:
        async def delete() -> None:
            await store.delete_async("a/b")
            await store.delete_many_async(["a/c", "zz"])
            await store.delete_prefix_async("d/")
            await store.replace_prefix_async("e/", {"e/new": b"1"})

        for key in ("a/b", "a/c", "d/e/f", "e/old", "stays"):
            store.set(key, b"1")
        asyncio.run(delete())
        assert sorted(store.list()) == ["e/new", "stays"]
        asyncio.run(store.clear_async())
        assert [*store.list()] == []

    def test_a_listing_may_be_changed_under(self, store: Store) -> None:
        for key in SEED:
            store.set(key, b"1")
        for key in store.list_prefix(""):
            store.delete(key)
        assert [*store.list()] == []


class ListContract:
    """Listing."""

    @pytest.mark.spec("V3-STORE-14", "FS-06")
    def test_every_key_is_listed_once_and_no_directory(self, seeded: Store) -> None:
        assert sorted(seeded.list()) == sorted(SEED)

    @pytest.mark.spec("V3-STORE-15", "FS-07", "V3-STORE-03")
    def test_a_prefix_lists_what_is_below_it(self, seeded: Store) -> None:
        assert sorted(seeded.list_prefix("a/")) == ["a/b", "a/c/d"]
        assert sorted(seeded.list_prefix("")) == sorted(SEED)
        assert [*seeded.list_prefix("b/")] == []
        assert [*seeded.list_prefix("a/b/")] == []

    @pytest.mark.spec("V3-STORE-16", "FS-08")
    def test_a_directory_lists_its_direct_children(self, store: Store) -> None:
        for key in ("a/b", "a/c", "a/d/e", "a/f/g", "a/f/h/i", "ab"):
            store.set(key, b"1")
        assert store.list_dir("a/") == Listing(["a/b", "a/c"], ["a/d/", "a/f/"])
        assert store.list_dir("") == Listing(["ab"], ["a/"])
        assert store.list_dir("b/") == Listing([], [])
        assert store.list_dir("ab/") == Listing([], [])

    @pytest.mark.spec("V3-STORE-03")
    @pytest.mark.parametrize("prefix", ["a", "/", "a//", "../", "a/./"])
    def test_a_malformed_prefix_is_refused_when_listing(self, seeded: Store, prefix: str) -> None:
        with pytest.raises(KeyValidationError):
            seeded.list_dir(prefix)
        with pytest.raises(KeyValidationError):
            [*seeded.list_prefix(prefix)]

    def test_the_sizes_under_a_prefix_add_up(self, seeded: Store) -> None:
        assert seeded.getsize_prefix("a/") == 11
        assert seeded.getsize_prefix("") == sum(map(len, SEED.values()))
        assert asyncio.run(seeded.getsize_prefix_async("nothing/")) == 0

    def test_the_asynchronous_listings_mean_the_same(self, seeded: Store) -> None:
        async def look() -> list[Any]:
            return [sorted(await seeded.list_prefix_async("a/")), await seeded.list_dir_async("a/")]

        assert asyncio.run(look()) == [["a/b", "a/c/d"], Listing(["a/b"], ["a/c/"])]


class StoreContract(ReadContract, WriteContract, DeleteContract, ListContract):
    """Everything a general store promises."""

    def test_a_stamp_changes_with_the_values_that_count(self, store: Store) -> None:
        def stamp() -> str | None:
            return stamp_below(store, "a/", lambda key: not key.endswith(".json"))

        store.set("a/b", b"1")
        store.set("a/zarr.json", b"{}")
        before = stamp()
        store.set("a/zarr.json", b"{ }")
        store.set("b/c", b"1")
        assert stamp() == before
        found = [before]
        for key, value in (("a/b", b"two"), ("a/c/d", b"1"), ("a/b", None)):
            store.delete(key) if value is None else store.set(key, value)
            found.append(stamp())
        assert set(found) == {None} or len({*found}) == 4


class ConditionalContract:
    """Versions, and writes that depend on them."""

    def test_a_version_changes_with_the_value(self, store: Store) -> None:
        assert store.version("k") is None
        versions = []
        for number in range(20):
            store.set("k", b"%02d" % number)
            versions.append(store.version("k"))
        assert None not in versions
        assert len(set(versions)) == 20
        assert store.version("k") == versions[-1]
        store.set("k", b"other")
        store.delete("k")
        assert store.version("k") is None

    def test_a_conditional_read_returns_only_what_has_changed(self, store: Store) -> None:
        store.set("k", b"first")
        first = store.get_if_changed("k", None)
        assert isinstance(first, Fetched)
        assert first.version is not None
        assert plain(first) == [b"first"]
        assert store.get_if_changed("k", first.version) is UNCHANGED
        assert asyncio.run(store.get_if_changed_async("k", first.version)) is UNCHANGED
        store.set("k", b"second value")
        second = asyncio.run(store.get_if_changed_async("k", first.version))
        assert isinstance(second, Fetched)
        assert plain(second) == [b"second value"]
        assert store.get_if_changed("missing", second.version) is None
        assert asyncio.run(store.get_if_changed_async("missing", second.version)) is None

    def test_a_conditional_set_writes_only_over_its_version(self, store: Store) -> None:
        first = store.set("k", b"1", if_match=None) or store.version("k")
        assert first == store.version("k")
        with pytest.raises(ConflictError):
            store.set("k", b"2", if_match=None)
        second = store.set("k", b"2", if_match=first) or store.version("k")
        with pytest.raises(ConflictError):
            store.set("k", b"3", if_match=first)
        assert plain(store.get("k")) == b"2"
        assert second == store.version("k")
        with pytest.raises(ConflictError):
            store.set("missing", b"3", if_match=second)
        assert store.get("missing") is None

    def test_one_of_many_conditional_sets_wins(self, store: Store) -> None:
        store.set("k", b"start")
        version = store.version("k")

        def attempt(number: int) -> bool:
            try:
                store.set("k", b"%d" % number, if_match=version)
            except ConflictError:
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(attempt, range(16))) == 1

    def test_one_of_many_creators_wins(self, store: Store) -> None:
        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(lambda n: store.set_if_not_exists("k", b"%d" % n), range(16))) == 1


_CHILD = """
import pickle, sys, threading
from tests.stores.contract import increment
store = pickle.loads(bytes.fromhex(sys.argv[1]))
threads = [threading.Thread(target=lambda: [store.update("n/k", increment) for _ in range(int(sys.argv[3]))])
           for _ in range(int(sys.argv[2]))]
[thread.start() for thread in threads]; [thread.join() for thread in threads]
store.close()
"""


class SharedContract:
    """What other processes see of the same place."""

    processes, threads, rounds = 8, 8, 3

    def test_a_pickle_leads_to_the_same_values(self, store: Store) -> None:
        store.set("a/k", b"1")
        twin = pickle.loads(pickle.dumps(store))
        assert plain(twin.get("a/k")) == b"1"
        twin.set("a/k", b"2")
        assert plain(store.get("a/k")) == b"2"
        assert pickle.loads(pickle.dumps(store.with_read_only())).read_only

    def test_no_update_of_many_processes_and_threads_is_lost(self, store: Store) -> None:
        arguments = [pickle.dumps(store).hex(), str(self.threads), str(self.rounds)]
        children = [
            subprocess.Popen([sys.executable, "-c", _CHILD, *arguments], env=child_environment())
            for _ in range(self.processes)
        ]
        statuses = [child.wait(120) for child in children]
        assert statuses == [0] * self.processes, statuses
        assert plain(store.get("n/k")) == str(self.processes * self.threads * self.rounds).encode()
        if store.supports_listing:
            assert [*store.list()] == ["n/k"]


def child_environment() -> dict[str, str]:
    """The environment in which a child finds this package and these tests."""
    import os

    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
