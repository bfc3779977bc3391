"""Object stores and forked processes: the client library has threads, which a fork leaves behind."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.errors import UnsupportedOperationError
from tests.stores.remote import servers
from tests.stores.remote.servers import S3_OPTIONS

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]
VALUES = np.arange(4096).reshape(64, 64)


def forked(work: Callable[[], None]) -> int:
    """The exit status of a child that does `work`: 0 when it went well, a signal's when it waited for ever."""
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1]


def check(array: Any, offset: int = 0) -> None:
    assert (array[...] == VALUES + offset).all()
    assert (array[3, 5:60] == VALUES[3, 5:60] + offset).all()


@pytest.fixture
def array(s3: servers.Server) -> Any:
    """Read once, so that every thread that reading needs is there."""
    url = f"s3+http://{s3.address}/bucket/forked-{os.getpid()}"
    made = tessarr.create_array(
        url, data=VALUES, chunks=(8, 8), shards=(32, 32), storage_options=S3_OPTIONS, overwrite=True
    )
    check(made)
    return made


def test_a_child_of_a_process_that_read_is_told_instead_of_waiting_for_ever(array: Any) -> None:
    url = array.store.url

    def work() -> None:
        with pytest.raises(UnsupportedOperationError, match="forked process"):
            array[0]
        with pytest.raises(UnsupportedOperationError, match="forked process"):
            array[:8] = 1
        with pytest.raises(UnsupportedOperationError, match="forked process"):
            tessarr.open_array(url, mode="r", storage_options=S3_OPTIONS)

    assert forked(work) == 0
    check(array)  # the parent goes on


def test_spawned_processes_read(array: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("access_key_id", "secret_access_key", "region", "allow_http"):
        monkeypatch.setenv(f"AWS_{name.upper()}", str(S3_OPTIONS.get(name, "")))
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        rows = pool.map(partial(row_of, array), range(6))
    assert (np.stack(rows) == VALUES[:6]).all()


def row_of(array: Any, number: int) -> Any:
    return array[number]
