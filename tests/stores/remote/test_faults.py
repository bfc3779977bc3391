"""What breaks between here and an S3 server is tried again where that is right, and told where it is not."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import pickle
import traceback
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Literal

import numpy as np
import pytest

import tessarr
from tessarr.errors import ConflictError
from tessarr.stores.base import Fetch, Store
from tessarr.stores.remote.obstore.store import ObjectStore
from tessarr.stores.remote.retry import RequestError, scrub
from tessarr.stores.url import open_url
from tessarr.types import ByteRange
from tests.narrow import calls
from tests.stores.contract import increment, plain
from tests.stores.remote.proxy import Fault, Kind, Proxy
from tests.stores.remote.servers import S3_OPTIONS
from tests.waiting import until_async

_number = itertools.count()
VALUE = np.random.default_rng(3).bytes(100_000)


def open_s3(proxy: Proxy, *, retries: int | None = None, fault: Fault | None = None, **options: Any) -> Store:
    """A store of its own behind `proxy`, quick to try again; and quick to lose patience, where `fault` is to try it.

    On a busy machine such a store loses patience with answers that nothing is wrong with, so it tries more often.
    """
    client = {"timeout": "300s", "read_timeout": "300s"}
    if fault is not None and fault.kind in ("hang", "drip"):
        client = {"timeout": "1500ms", "read_timeout": "1s"}
        retries = 40 if retries is None else retries
    retry = {"max_retries": 3 if retries is None else retries, "backoff": {"init_backoff": timedelta(milliseconds=1)}}
    settings = {**S3_OPTIONS, "retry_config": retry, "client_options": client, **options}
    return open_url(f"s3+http://{proxy.address}/bucket/f{next(_number)}", storage_options=settings)


@pytest.fixture
def store(s3_proxy: Proxy) -> Store:
    """A store whose client waits longer than any request is held."""
    return _filled(open_s3(s3_proxy), s3_proxy)


def _filled(store: Store, proxy: Proxy) -> Store:
    """The store with the value ``k``, and nothing seen of that."""
    store.set("k", VALUE)
    proxy.clear()
    return store


_TRANSIENT = [
    Fault("status", status=429), Fault("status", status=500), Fault("status", status=502), Fault("status", status=503),
    Fault("status", status=504), Fault("reset"), Fault("hang"), Fault("truncate"), Fault("short"), Fault("drip"),
]  # fmt: skip


def _name(fault: Fault) -> str:
    return f"{fault.kind}{fault.status if fault.kind == 'status' else ''}"


@pytest.mark.parametrize("fault", _TRANSIENT, ids=_name)
@pytest.mark.parametrize("byte_range", [None, ByteRange(1000, 60_000), ByteRange(-3000)], ids=["whole", "part", "tail"])
def test_a_passing_fault_of_a_read_is_tried_again(s3_proxy: Proxy, fault: Fault, byte_range: ByteRange | None) -> None:
    store = _filled(open_s3(s3_proxy, fault=fault), s3_proxy)
    if fault.kind == "short" and byte_range is None:
        byte_range = ByteRange(0)  # a whole answer that is consistently too short looks like a shorter object
    expected = VALUE if byte_range is None else VALUE[slice(*byte_range.bounds(len(VALUE)))]
    s3_proxy.faults.append(Fault(fault.kind, status=fault.status))
    assert plain(store.get("k", byte_range)) == expected
    s3_proxy.faults.append(Fault(fault.kind, status=fault.status))
    assert plain(asyncio.run(store.get_async("k", byte_range))) == expected
    assert len(s3_proxy.seen) == 4


@pytest.mark.parametrize("kind", ["status", "reset", "hang", "lost"])
def test_a_passing_fault_of_a_write_is_tried_again(s3_proxy: Proxy, kind: Kind) -> None:
    store = _filled(open_s3(s3_proxy, fault=Fault(kind)), s3_proxy)
    s3_proxy.faults.append(Fault(kind, match="^PUT"))
    store.set("k", b"new")
    s3_proxy.faults.append(Fault(kind, match="^PUT"))
    asyncio.run(store.set_async("n", b"newer"))
    s3_proxy.faults.append(Fault(kind, match="^(DELETE|POST)"))
    store.delete("gone")
    assert not any(fault.times for fault in s3_proxy.faults)
    assert [plain(store.get(key)) for key in ("k", "n")] == [b"new", b"newer"]


@pytest.mark.parametrize("fault", _TRANSIENT, ids=_name)
def test_a_lasting_fault_is_an_error_with_the_place_and_the_attempts(s3_proxy: Proxy, fault: Fault) -> None:
    store = _filled(open_s3(s3_proxy, retries=3, fault=fault), s3_proxy)
    quick = open_s3(s3_proxy, retries=1, fault=fault)
    s3_proxy.faults.append(Fault(fault.kind, match="^GET", status=fault.status, times=99))
    with pytest.raises(RequestError) as caught:
        store.fetch([Fetch("k", (ByteRange(0, 5000),))]) if fault.kind != "hang" else quick.get("k")
    error = caught.value
    assert error.attempts == (4 if fault.kind != "hang" else 2)
    assert error.status == (fault.status if fault.kind == "status" else None)
    assert error.key == "k"
    assert str(error.store).startswith(f"s3+http://{s3_proxy.address}/bucket/f")
    assert f"after {error.attempts} attempts" in str(error)


LARGE = np.random.default_rng(4).bytes(11_000_000)
OPERATIONS: dict[str, tuple[str, Callable[[Store], Any], Callable[[Store], Any], Any]] = {
    "ranges": (
        "^GET",
        lambda store: plain(store.get_ranges("k", [ByteRange(0, 9), ByteRange(5, 7), ByteRange(-3)])),
        lambda store: store.get_ranges_async("k", [ByteRange(0, 9), ByteRange(5, 7), ByteRange(-3)]),
        [VALUE[:9], VALUE[5:7], VALUE[-3:]],
    ),
    "size": ("^HEAD", lambda store: store.getsize("k"), lambda store: store.getsize_async("k"), len(VALUE)),
    "list": ("^GET", lambda store: sorted(store.list()), lambda store: store.list_prefix_async(""), ["a/b", "k"]),
    "list_dir": ("^GET", lambda store: store.list_dir(""), lambda store: store.list_dir_async(""), (["k"], ["a/"])),
    "set": ("^PUT", lambda store: _after(store.set("n", VALUE)), lambda store: store.set_async("n", VALUE), None),
    "delete": ("^(DELETE|POST)", lambda store: store.delete("a/b"), lambda store: store.delete_async("a/b"), None),
    "delete_prefix": (
        "^POST",
        lambda store: store.delete_many(["a/b", "a/c"]),
        lambda store: store.delete_many_async(["a/b", "a/c"]),
        None,
    ),
    "parts": ("^PUT", lambda store: _after(store.set("n", LARGE)), lambda store: store.set_async("n", LARGE), None),
    "parts begun": ("uploads", lambda store: _after(store.set("n", LARGE)), lambda s: s.set_async("n", LARGE), None),
    "parts ended": (
        "^POST.*uploadId",
        lambda store: _after(store.set("n", LARGE)),
        lambda store: store.set_async("n", LARGE),
        None,
    ),
}


def _after(_: Any) -> None:
    """Versions differ from time to time."""


def _stored(store: Store, operation: str) -> Any:
    """What there is to see of a write that came through."""
    if operation == "set" or operation.startswith("parts"):
        return plain(store.get("n")) == (VALUE if operation == "set" else LARGE)
    return store.get("a/b") is None if operation.startswith("delete") else True


@pytest.mark.parametrize("fault", [*_TRANSIENT, Fault("lost")], ids=_name)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_passing_fault_of_any_operation_changes_nothing(
    s3_proxy: Proxy, monkeypatch: pytest.MonkeyPatch, fault: Fault, operation: str
) -> None:
    monkeypatch.setattr("tessarr.stores.remote.obstore.store.MULTIPART_FROM", 10_000_000)
    options: dict[str, Any] = {}
    if operation.startswith("parts") and fault.kind in ("hang", "drip"):  # megabytes take longer, and that is no fault
        options["client_options"] = {"timeout": "5s", "read_timeout": "3s"}
    store = _filled(open_s3(s3_proxy, fault=fault, **options), s3_proxy)
    match, call, call_async, expected = OPERATIONS[operation]
    if operation == "size" and fault.kind in ("truncate", "short", "drip"):
        match = "^NEVER"  # an answer to HEAD has no body
    if operation.startswith("delete") or operation in ("set", "parts"):
        fault = fault if fault.kind not in ("truncate", "short", "drip") else Fault("lost")  # nor have these
    store.set("a/b", b"1")
    s3_proxy.faults.append(Fault(fault.kind, match=match, status=fault.status))
    found = call(store)
    assert expected is None or found == expected
    assert _stored(store, operation)
    store.set("a/b", b"1")
    s3_proxy.faults.append(Fault(fault.kind, match=match, status=fault.status))
    found = asyncio.run(call_async(store))
    found = plain(found) if operation == "ranges" else sorted(found) if operation == "list" else found
    assert expected is None or found == expected
    assert _stored(store, operation)
    assert match == "^NEVER" or not any(planned.times for planned in s3_proxy.faults)


@pytest.mark.parametrize("fault", [Fault("status"), Fault("reset"), Fault("status", status=403)], ids=_name)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_lasting_fault_of_any_operation_is_an_error(
    store: Store, s3_proxy: Proxy, monkeypatch: pytest.MonkeyPatch, fault: Fault, operation: str
) -> None:
    monkeypatch.setattr("tessarr.stores.remote.obstore.store.MULTIPART_FROM", 10_000_000)
    match, call, call_async, _ = OPERATIONS[operation]
    store.set("a/b", b"1")
    s3_proxy.faults.append(Fault(fault.kind, match=match, status=fault.status, times=99))
    for once in calls(lambda: call(store), lambda: asyncio.run(call_async(store))):
        with pytest.raises(RequestError) as caught:
            once()
        assert caught.value.status == (fault.status if fault.kind == "status" else None)
        assert caught.value.attempts == (1 if fault.status == 403 else 4)
        assert str(caught.value.store).startswith(f"s3+http://{s3_proxy.address}/bucket/f")


@pytest.mark.parametrize(
    ("status", "code"), [(403, "AccessDenied"), (401, "Unauthorized"), (400, "InvalidRequest"), (404, "NoSuchBucket")]
)
def test_a_refusal_is_told_at_once_and_never_a_missing_key(
    store: Store, s3_proxy: Proxy, status: int, code: str
) -> None:
    for read in calls(
        lambda: store.get("k"),
        lambda: store.get("k", ByteRange(-4)),
        lambda: store.fetch([Fetch("k"), Fetch("other")]),
        lambda: asyncio.run(store.fetch_async([Fetch("k"), Fetch("other")])),
        lambda: store.update("k", increment),
    ):
        s3_proxy.clear()
        s3_proxy.faults.append(Fault("status", status=status, code=code, times=99))
        with pytest.raises(RequestError) as caught:
            read()
        assert caught.value.status == status
        assert caught.value.attempts == 1


def test_one_bad_request_of_many_fails_the_whole_wave(store: Store, s3_proxy: Proxy) -> None:
    for number in range(20):
        store.set(f"c/{number}", b"%d" % number)
    s3_proxy.faults.append(Fault("status", match="c/13", status=403, code="AccessDenied", times=99))
    wanted = [Fetch(f"c/{number}") for number in range(20)]
    with pytest.raises(RequestError, match="AccessDenied"):
        store.fetch(wanted)
    with pytest.raises(RequestError, match="AccessDenied"):
        asyncio.run(store.fetch_async(wanted))


def test_an_object_that_changes_between_its_parts_is_read_again(s3_proxy: Proxy) -> None:
    store = _filled(open_s3(s3_proxy, fault=Fault("hang")), s3_proxy)
    old, new = b"o" * 3_000_000, b"n" * 3_000_000
    store.set("k", old)
    s3_proxy.faults.append(Fault("hang", match="^GET"))
    s3_proxy.latency_s = 0.05
    calls = itertools.count()
    assert isinstance(store, ObjectStore)
    send = store._request

    async def send_and_change(key: str, byte_range: ByteRange | None) -> Any:
        answer = await send(key, byte_range)
        if next(calls) == 0:
            store.store.put(store._at(key), new)
        return answer

    store._request = send_and_change  # type: ignore[method-assign]
    parts = store.get_ranges("k", [ByteRange(0, 10), ByteRange(2_999_990)])
    assert plain(parts) in ([b"n" * 10, b"n" * 10], [b"o" * 10, b"o" * 10])


def test_a_conditional_write_whose_answer_was_lost_is_recognised(store: Store, s3_proxy: Proxy) -> None:
    store.set("n", b"1")
    s3_proxy.faults.append(Fault("lost", match="^PUT"))
    store.update("n", increment)
    assert plain(store.get("n")) == b"2"
    s3_proxy.faults.append(Fault("lost", match="^PUT"))
    asyncio.run(store.update_async("n", increment))
    assert plain(store.get("n")) == b"3"
    s3_proxy.faults.append(Fault("lost", match="^PUT"))
    assert store.set_if_not_exists("new", b"x")


def test_a_conditional_write_whose_answer_was_lost_is_recognised_at_the_second_look(
    store: Store, s3_proxy: Proxy
) -> None:
    s3_proxy.faults += [Fault("lost", match="^PUT"), Fault("reset", match="^GET"), Fault("status", match="^GET")]
    assert store.set_if_not_exists("new", b"x")


def test_a_value_that_was_written_and_removed_while_answers_were_lost_is_a_conflict(
    store: Store, s3_proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(store, ObjectStore)
    look = store._version_of_first_attempt

    async def remove_and_look(key: str, options: Any) -> Any:
        await store.delete_async(key)
        return await look(key, options)

    monkeypatch.setattr(store, "_version_of_first_attempt", remove_and_look)
    s3_proxy.faults.append(Fault("lost", match="^PUT"))
    with pytest.raises(ConflictError) as caught:
        store.set("new", b"x", if_match=None)
    assert caught.value.in_doubt


def test_a_conditional_write_that_lost_to_another_is_not_taken_for_ones_own(store: Store, s3_proxy: Proxy) -> None:
    version = store.version("k")
    store.set("k", b"other")
    with pytest.raises(ConflictError) as caught:
        store.set("k", b"other", if_match=version)
    assert not caught.value.in_doubt
    s3_proxy.faults.append(Fault("reset", match="^PUT"))
    with pytest.raises(ConflictError) as caught:
        store.set("k", b"other", if_match=version)
    assert caught.value.in_doubt  # the first request got no answer


@pytest.mark.parametrize("zarr_format", [3, 2])
def test_a_resize_whose_answer_was_lost_before_another_one_says_that_its_outcome_is_unknown(
    store: Store, s3_proxy: Proxy, monkeypatch: pytest.MonkeyPatch, zarr_format: Literal[2, 3]
) -> None:
    assert isinstance(store, ObjectStore)
    array = tessarr.create_array(store, name="a", shape=4, chunks=2, dtype="i4", zarr_format=zarr_format)
    look = store._version_of_first_attempt

    async def resize_and_look(key: str, options: Any) -> Any:
        document = json.loads(plain(await store.get_async(key)) or b"")
        await store.set_async(key, json.dumps({**document, "shape": [9]}).encode())
        return await look(key, options)

    monkeypatch.setattr(store, "_version_of_first_attempt", resize_and_look)
    name = "zarr.json" if zarr_format == 3 else ".zarray"
    s3_proxy.faults.append(Fault("lost", match=f"^PUT .*{name}"))
    with pytest.raises(ConflictError, match="the shape of the array") as caught:
        array.resize((6,))
    assert caught.value.in_doubt
    assert "unknown" in "".join(caught.value.__notes__)
    array.refresh()
    assert array.shape == (9,)
    tessarr.open_array(store, path="a").resize((7,))
    with pytest.raises(ConflictError, match="the shape of the array") as caught:
        array.resize((6,))
    assert not caught.value.in_doubt


def test_being_cancelled_ends_the_requests_and_gives_the_places_back(store: Store, s3_proxy: Proxy) -> None:
    assert isinstance(store, ObjectStore)
    s3_proxy.hold()

    async def main() -> None:
        task = asyncio.create_task(store.fetch_async([Fetch(f"k{number}") for number in range(100)]))
        await until_async(lambda: s3_proxy.holding >= 8, "requests are in flight")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert s3_proxy.overdue == 0  # it ended although nothing was answered
    assert store._limiter.statistics().in_flight == 0
    s3_proxy.release()
    assert plain(asyncio.run(store.get_async("k"))) == VALUE


def test_the_loop_goes_on_while_requests_wait(store: Store, s3_proxy: Proxy) -> None:
    async def main() -> Any:
        s3_proxy.hold()
        task = asyncio.create_task(store.get_async("k"))
        await until_async(lambda: s3_proxy.holding, "the request is held, and this loop goes on")
        s3_proxy.release()
        return await task

    assert plain(asyncio.run(main())) == VALUE
    assert plain(asyncio.run(main())) == VALUE  # and in a second loop
    assert s3_proxy.overdue == 0


def test_credentials_are_in_no_repr_error_traceback_log_or_pickle(
    s3_proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    store = open_s3(s3_proxy, retries=0, fault=Fault("hang"), session_token="hush-token")
    texts = [repr(store), store.url, repr(pickle.dumps(store)), repr(store.with_read_only())]
    for fault in (Fault("status", status=403, code="AccessDenied"), Fault("reset"), Fault("hang")):
        s3_proxy.faults.append(fault)
        with pytest.raises(RequestError) as caught:
            store.get("k")
        texts += [
            str(caught.value),
            repr(pickle.dumps(caught.value)),
            "".join(traceback.format_exception(caught.value)),
        ]
    texts.append(caplog.text)
    for text in texts:
        for secret in (S3_OPTIONS["access_key_id"], S3_OPTIONS["secret_access_key"], "hush-token", "Signature="):
            assert secret not in text


def test_what_looks_like_a_credential_is_scrubbed() -> None:
    for text in (
        "GET https://account.blob.core.windows.net/c/k?sv=2020&sig=hush failed",
        "https://someone:hush@example.com/k",
        'headers: {"Authorization": "Bearer hush"}',
        "x-amz-security-token: hush",
    ):
        assert "hush" not in scrub(text)
        assert scrub(text)


def test_a_place_that_refuses_missing_keys_opens_what_is_v3(store: Store, s3_proxy: Proxy) -> None:
    tessarr.create_array(store, name="g/x", data=np.arange(4), fill_value=9)
    s3_proxy.faults.append(Fault("status", match=r"\.z|meta", status=403, code="AccessDenied", times=10**6))
    assert tessarr.open_array(store, path="g/x", mode="r")[:].tolist() == [0, 1, 2, 3]
    assert tessarr.open(store, path="g/x", mode="r").shape == (4,)
    assert asyncio.run(tessarr.open_group_async(store, path="g", mode="r")).zarr_format == 3
    s3_proxy.faults.append(Fault("status", match="zarr.json", status=403, code="AccessDenied", times=10**6))
    with pytest.raises(RequestError) as caught:
        tessarr.open_array(store, path="g/x", mode="r")
    assert caught.value.status == 403
