"""Retries of object stores: those of tessarr, against those of obstore (`retry_config`) in their place.

    python benchmarks/retry.py [--percent 10] [--reads 200]      prints a table

An S3 server on loopback is behind a proxy that breaks a share of the requests. Both store objects send the same requests
with the same number of attempts and the same back-off. Needs the servers of `scripts/install_test_servers.sh`.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from obstore.store import S3Store

import tessarr
from tessarr.errors import ConflictError, StoreError
from tessarr.stores.remote.obstore.store import ObjectStore
from tessarr.stores.remote.retry import RetryPolicy
from tests.stores.remote.proxy import Fault, Kind, Proxy, start_proxy
from tests.stores.remote.servers import S3_OPTIONS, s3_server

ATTEMPTS, FIRST_S, LONGEST_S = 6, 0.1, 2.0
VALUE = random.Random(0).randbytes(100_000)
_FAULTS: dict[str, Fault] = {
    "503": Fault("status", status=503),
    "429, Retry-After: 2": Fault("status", status=429, headers={"retry-after": "2"}),
    "connection closed": Fault("reset"),
    "body ends early": Fault("truncate"),
}


class Outcome(NamedTuple):
    """What became of the calls of one run."""

    requests: int
    seconds: float
    errors: int
    slow_downs: int
    """Signals that reached the concurrency limiter."""


def make_store(who: str, proxy: Proxy, prefix: str) -> ObjectStore:
    """A store of which `who` retries: ``"tessarr"`` or ``"obstore"``."""
    backoff = {"init_backoff": timedelta(seconds=FIRST_S), "max_backoff": timedelta(seconds=LONGEST_S), "base": 2}
    ours = who == "tessarr"
    retries = 0 if ours else ATTEMPTS - 1
    config: Any = {**S3_OPTIONS, "endpoint": f"http://{proxy.address}"}
    retry_config: Any = {"max_retries": retries, "backoff": backoff, "retry_timeout": timedelta(seconds=180)}
    client = S3Store(
        "bucket", config=config, client_options={"allow_http": True, "timeout": "120s"}, retry_config=retry_config
    )
    policy = RetryPolicy(attempts=ATTEMPTS if ours else 1, backoff_s=FIRST_S, max_backoff_s=LONGEST_S)
    return ObjectStore(client, url=f"s3+http://{proxy.address}.{who}/bucket", prefix=prefix, retry=policy)


async def read(store: ObjectStore, count: int) -> int:
    """Read `count` values; return how many failed."""
    found = await asyncio.gather(
        *(store.get_async(f"k{number % 8}") for number in range(count)), return_exceptions=True
    )
    return sum(not isinstance(one, memoryview) for one in found)


def reads(who: str, proxy: Proxy, fault: Fault, percent: float, count: int) -> Outcome:
    """Read values of which requests a share is broken."""
    store = make_store(who, proxy, "r/")
    for number in range(8):
        store.set(f"k{number}", VALUE)
    proxy.clear()
    choice = random.Random(1)  # the same requests in every run
    proxy.choose = lambda _: fault if choice.random() * 100 < percent else None
    return measured(store, proxy, count)


def measured(store: ObjectStore, proxy: Proxy, count: int) -> Outcome:
    """Read `count` values through a proxy that breaks what its `choose` says, for the last time."""
    before, began = store._limiter.statistics().slow_downs, time.perf_counter()
    errors = asyncio.run(read(store, count))
    seconds, proxy.choose = time.perf_counter() - began, None
    return Outcome(len(proxy.seen), seconds, errors, store._limiter.statistics().slow_downs - before)


def overloaded(who: str, proxy: Proxy, count: int, capacity: int) -> tuple[Outcome, int]:
    """Read from a server that answers 503 while more than `capacity` requests are in flight; and how many it refused."""
    refused = 0

    def refuse(_: str) -> Fault | None:
        nonlocal refused
        if proxy.in_flight <= capacity:
            return None
        refused += 1
        return _FAULTS["503"]

    store = make_store(who, proxy, "r/")
    proxy.clear()
    proxy.choose = refuse
    return measured(store, proxy, count), refused


def lost_write(who: str, proxy: Proxy, number: int) -> str:
    """Create a value of which the server's response is lost: what the caller gets, though nobody else wrote."""
    store = make_store(who, proxy, f"c{number}/")
    proxy.clear()
    proxy.faults.append(Fault("lost", match="^PUT"))
    try:
        store.set("k", b"mine", if_match=None)
    except ConflictError:
        return f"ConflictError ({len(proxy.seen)} requests)"
    return f"written ({len(proxy.seen)} requests)"


def lasting(who: str, proxy: Proxy, kind: Kind, cancel_after_s: float | None) -> tuple[str, int, float]:
    """Read where every request fails, with ``async.timeout`` of 0.5 s, or cancelled.

    Returns the result, the requests that follow it, and the seconds until it.
    """
    store = make_store(who, proxy, "r/")
    proxy.clear()
    proxy.faults.append(Fault(kind, times=10**6))

    async def call() -> tuple[str, int, float]:
        began = time.perf_counter()
        try:
            async with asyncio.timeout(cancel_after_s):
                await store.get_async("k0")
            result = "read"
        except TimeoutError:
            result = "cancelled"
        except StoreError as error:
            result = type(error).__name__
        seconds, seen = time.perf_counter() - began, len(proxy.seen)
        await asyncio.sleep(4)
        return result, len(proxy.seen) - seen, seconds

    with tessarr.config.set({"async.timeout": 0.5}):
        found = asyncio.run(call())
    proxy.clear()
    return found


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--percent", type=float, default=10)
    parser.add_argument("--reads", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, s3_server(Path(folder)) as server, start_proxy(server) as proxy:
        print(f"{options.reads} reads, {options.percent:g} % of the requests broken")
        print(
            "| fault | who retries | requests | seconds | errors | signals to the limiter |\n|---|---|---|---|---|---|"
        )
        for name, fault in _FAULTS.items():
            for who in ("tessarr", "obstore"):
                found = reads(who, proxy, fault, options.percent, options.reads)
                print(
                    f"| {name} | {who} | {found.requests} | {found.seconds:.1f} | {found.errors} | {found.slow_downs} |"
                )
        for who in ("tessarr", "obstore"):
            found, refused = overloaded(who, proxy, options.reads, 8)
            print(
                f"overload, {who}: {found.requests} requests, {refused} refused, {found.seconds:.1f} s, {found.errors} errors"
            )
        for number, who in enumerate(("tessarr", "obstore")):
            print(f"response to a conditional write lost, {who}: {lost_write(who, proxy, number)}")
        for who in ("tessarr", "obstore"):
            for what, cancel_after_s in (("async.timeout", None), ("cancellation", 0.5)):
                result, later, seconds = lasting(who, proxy, "status", cancel_after_s)
                print(f"lasting 503, {what} 0.5 s, {who}: {result} after {seconds:.1f} s, then {later} more requests")


if __name__ == "__main__":
    main()
