"""An open page asks whether its node changed by versions alone, and reports how long tiles take."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tessarr
from tessarr.serve import app, serve_background
from tessarr.storage import MemoryStore
from tessarr.viewer import page_files, page_path
from tests.browser.chromium import Browser
from tests.serve.client import Counting
from tests.waiting import until


def test_a_page_of_what_does_not_change_asks_for_versions_only(browser: Browser) -> None:
    store = MemoryStore()
    tessarr.create_array(store, name="a", data=np.arange(64.0).reshape(8, 8))
    counting = Counting(app(store, name="d.zarr", token="secret", page=page_files()).served)

    def asked(method: str) -> list[str]:
        return [path for one, path, _ in counting.seen if one == method]

    with serve_background(counting, port=0) as server:
        page = browser.open(f"http://127.0.0.1:{server.port}{page_path(counting)}#/a")
        page.settled()
        until(lambda: len(asked("HEAD")) >= 2, "the page looked for changes")
        before = len(asked("GET"))
        until(lambda: len(asked("HEAD")) >= 6, "the page looked again")
        assert len(asked("GET")) <= before + 1  # the first look learns the version of the description
        page.evaluate("Object.defineProperty(document, 'visibilityState', { value: 'hidden' })")
        page.close()


@pytest.mark.parametrize("name", ["gradient", "huge"])
def test_tiles_are_requested_and_timed(browser: Browser, url: str, name: str) -> None:
    page = browser.open(f"{url}#/{name}")
    page.settled()
    for box in ("0,0,1", "64,64,0.25", "100,100,4"):
        page.go(f"{url}#/{name}?box={box}")
        page.settled()
    script = (
        f"JSON.stringify(performance.getEntriesByType('resource').filter((one) => one.name.includes('{name}.raw'))"
        ".map((one) => one.duration))"
    )
    times = json.loads(page.evaluate(script))
    assert len(times) >= 2
    assert min(times) > 0
    shares = ", ".join(f"{share} %: {np.percentile(times, share):.0f} ms" for share in (50, 95, 100))
    print(f"\ntiles of {name}, {len(times)} requests: {shares}")
    assert page.problems == []
