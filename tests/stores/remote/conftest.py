"""The servers, one of each per test session (and worker)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.stores.remote import servers
from tests.stores.remote.proxy import Proxy, start_proxy


def _started(
    start: Callable[[Path], AbstractContextManager[servers.Server]], factory: pytest.TempPathFactory
) -> Iterator[servers.Server]:
    with start(factory.mktemp(start.__name__)) as server:
        yield server


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Server]:
    yield from _started(servers.s3_server, tmp_path_factory)


@pytest.fixture(scope="session")
def gcs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """The GCS emulator behind a proxy that puts Google's XML uploads, which it lacks, into its own words."""
    with servers.gcs_server(tmp_path_factory.mktemp("gcs")) as server, start_proxy(server, google=True) as proxy:
        yield proxy


@pytest.fixture(scope="session")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Server]:
    yield from _started(servers.azure_server, tmp_path_factory)


@pytest.fixture(scope="session")
def nginx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Server]:
    yield from _started(servers.http_server, tmp_path_factory)


@pytest.fixture(scope="session")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Server]:
    yield from _started(servers.redis_server, tmp_path_factory)


@pytest.fixture
def s3_proxy(s3: servers.Server) -> Iterator[Proxy]:
    """A proxy of its own before the S3 server: counts requests, adds latency, breaks answers."""
    with start_proxy(s3) as proxy:
        yield proxy
