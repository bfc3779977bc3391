"""Pyramids of GeoZarr and of multiscales 0.1 on the page: far out, a coarse level is read; names of nodes are text at once."""

from __future__ import annotations

import numpy as np
import pytest

import tessarr
from tessarr.storage import MemoryStore
from tessarr.tools.pyramid import build_pyramid
from tessarr.tools.pyramid.describe import Describing
from tests.browser.chromium import Browser
from tests.browser.conftest import serving
from tests.browser.looking import pixel


@pytest.mark.parametrize("convention", ["multiscales-0.1", "zarr-conventions"])  # OME-Zarr: test_pictures.py
def test_far_out_a_coarse_level_is_read(browser: Browser, convention: Describing) -> None:
    store = MemoryStore()
    group = tessarr.open_group(store, mode="w")
    plane = np.add.outer(np.arange(2048) // 16, np.arange(2048) // 16).astype("u1")
    group.create_array("0", data=plane, chunks=(256, 256))
    levels = build_pyramid(group, "0", method="nearest", convention=convention)
    coarsest = levels[-1].name
    server, url = serving(store)
    with server:
        page = browser.open(f"{url}#/0?map=gray&low=0&high=255")
        page.settled()
        read = [one for one in page.requests if ".raw" in one]
        assert any(f"/{coarsest}.raw" in one for one in read), (coarsest, read)
        assert not [one for one in read if "/0.raw" in one and "0:2048" in one]
        assert abs(pixel(page, page.screenshot(), 1000, 500)[0] - int(plane[500, 1000])) <= 8
        assert page.problems == []
        page.close()


def test_names_of_nodes_are_text_soon(browser: Browser, url: str) -> None:
    page = browser.open(url)
    page.wait("['gradient', 'weather', 'rgb', 'huge'].every((name) => document.body.innerText.includes(name))")
    print(f"\nnames of nodes are text after {page.evaluate('performance.now()'):.0f} ms")
    assert page.problems == []
