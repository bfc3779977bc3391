"""A browser, and a hierarchy of many kinds of arrays on a page."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import tessarr
from tessarr.serve import BackgroundServer, app, serve_background
from tessarr.storage import MemoryStore
from tessarr.viewer import page_files, page_path
from tests.browser.chromium import Browser, find_chromium

AIR = (np.arange(3 * 60 * 80, dtype="i2") % 3001).reshape(3, 60, 80)
GRADIENT = np.arange(256 * 256, dtype="u2").reshape(256, 256)
HOSTILE = '<img src=x onerror="window.hacked=1">'


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = find_chromium()
    if program is None:
        pytest.skip("needs the program chromium (Debian: apt-get install chromium)")
    with Browser(program) as running:
        yield running


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


@pytest.fixture(scope="session")
def server() -> Iterator[BackgroundServer]:
    store = MemoryStore()
    fill(store)
    application = app(store, name="demo.zarr", token="secret", page=page_files())
    with serve_background(application, port=0) as running:
        yield running


@pytest.fixture(scope="session")
def url(server: BackgroundServer) -> str:
    from tessarr.serve import App

    application = server._server.app  # type: ignore[union-attr]
    assert isinstance(application, App)
    return f"http://127.0.0.1:{server.port}{page_path(application)}"
