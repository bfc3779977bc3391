"""A browser, and a hierarchy of many kinds of arrays on a page.

`make test` runs the tests that are marked ``short``, `make test-browser` all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

import tessarr
from tessarr.serve import BackgroundServer, app, serve_background
from tessarr.storage import MemoryStore
from tessarr.stores.base import Store
from tessarr.viewer import page_files, page_path
from tests.browser.chromium import GRAPHICS, NO_GRAPHICS, Browser, find_chromium

AIR = (np.arange(3 * 60 * 80, dtype="i2") % 3001).reshape(3, 60, 80)
GRADIENT = np.arange(256 * 256, dtype="u2").reshape(256, 256)
HOSTILE = '<img src=x onerror="window.hacked=1">'


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if "WHOLE_BROWSER" in os.environ:
        return
    for item in items:
        if Path(__file__).parent in item.path.parents and item.get_closest_marker("short") is None:
            item.add_marker(pytest.mark.skip(reason="runs in `make test-browser`, because it takes minutes"))


def running(options: Sequence[str]) -> Iterator[Browser]:
    program = find_chromium()
    if program is None:
        pytest.skip("needs the program chromium (Debian: apt-get install chromium)")
    with Browser(program, options) as found:
        yield found


@pytest.fixture(scope="session")
def running_browser() -> Iterator[Browser]:
    yield from running(GRAPHICS)


@pytest.fixture(scope="session")
def running_without_graphics() -> Iterator[Browser]:
    yield from running(NO_GRAPHICS)


@pytest.fixture
def browser(running_browser: Browser) -> Iterator[Browser]:
    """A browser with WebGL, computed by its processor.

    Its tabs are closed after the test: an open page goes on asking for changes, also during other tests.
    """
    yield running_browser
    for page in [*running_browser.pages]:
        page.close()


@pytest.fixture
def browser_without_graphics(running_without_graphics: Browser) -> Iterator[Browser]:
    """A browser without WebGL, whose tabs are closed after the test."""
    yield running_without_graphics
    for page in [*running_without_graphics.pages]:
        page.close()


def fill(store: MemoryStore) -> None:
    group = tessarr.open_group(store, mode="w", attributes={"title": HOSTILE})
    packed = {"scale_factor": 0.5, "add_offset": 200.0, "_FillValue": 7, "units": "K"}
    names = ("time", "lat", "lon")
    group.create_array("weather/air", data=AIR, chunks=(1, 20, 20), dimension_names=names, attributes=packed)
    days = {"units": "days since 2000-01-01"}
    group.create_array("weather/time", data=np.arange(3), dimension_names=("time",), attributes=days)
    group.create_array("weather/lat", data=np.linspace(60.0, 1.0, 60), dimension_names=("lat",))
    group.create_array("gradient", data=GRADIENT, chunks=(64, 64), shards=(128, 128))
    group.create_array("wave", data=np.sin(np.arange(10_000) / 300))
    group.create_array("words", data=np.array([HOSTILE, "ü"], dtype="U"))
    group.create_array("large", data=np.array([[2**63 + 1, 2]], dtype="u8"))
    group.create_array("rgb", data=np.tile(np.array([10, 200, 30], "u1"), (40, 50, 1)))
    group.create_array(f"{HOSTILE}/x", data=np.arange(3))
    huge = group.create_array("huge", shape=(10**6, 10**6), chunks=(1000, 1000), dtype="f4")
    huge[500_000:501_000, :3000] = 5


def serving(store: Store, name: str = "demo.zarr") -> tuple[BackgroundServer, str]:
    """Serve a page of a store; return the server, which ends by ``with``, and the URL of the page."""
    application = app(store, name=name, token="secret", page=page_files())
    server = serve_background(application, port=0)
    return server, f"http://127.0.0.1:{server.port}{page_path(application)}"


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    store = MemoryStore()
    fill(store)
    server, address = serving(store)
    with server:
        yield address
