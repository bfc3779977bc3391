"""Lines of the page: along an axis of any length, at any zoom."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import tessarr
from tessarr.serve import BackgroundServer, app, serve_background
from tessarr.storage import MemoryStore
from tessarr.viewer import page_files, page_path
from tests.browser.chromium import Browser, Page
from tests.browser.looking import bounds_of, readout

LENGTH, CHUNK, START = 10**11, 10**6, 5 * 10**10
STORED = np.arange(1000) / 7


@pytest.fixture(scope="module")
def line_url() -> Iterator[str]:
    store = MemoryStore()
    long = tessarr.create_array(store, name="long", shape=LENGTH, chunks=CHUNK, dtype="f8", fill_value=-1.0)
    long[START : START + len(STORED)] = STORED
    application = app(store, name="lines.zarr", page=page_files())
    server: BackgroundServer = serve_background(application, port=0)
    with server:
        yield f"http://127.0.0.1:{server.port}{page_path(application)}"


def drawn(page: Page) -> dict[str, float]:
    page.wait("document.querySelector('.series canvas.plot:not(.flat)')")
    return bounds_of(page, ".series canvas.plot:not(.flat)")


def test_a_line_of_10_11_elements_is_drawn_from_some_chunks(browser: Browser, line_url: str) -> None:
    page = browser.open(f"{line_url}#/long")
    bounds = drawn(page)
    page.wait(f"document.querySelector('.zoom').textContent.includes('of {LENGTH // CHUNK} chunks')")
    page.hover(bounds["x"] + bounds["width"] / 4, bounds["y"] + 50)
    assert readout(page, r"dim_0 2\d{10}: -1$")
    assert page.problems == []


def test_a_line_shows_every_element_of_a_span(browser: Browser, line_url: str) -> None:
    page = browser.open(f"{line_url}#/long?span={START},{START + 100}")
    bounds = drawn(page)
    page.wait("!document.querySelector('.zoom').textContent.includes('chunks')")
    width = bounds["width"]
    page.hover(bounds["x"] + width * 30.5 / 100, bounds["y"] + 50)
    assert float(readout(page, rf"dim_0 {START + 30}: .*").partition(": ")[2]) == STORED[30]
    page.call(
        "Input.dispatchMouseEvent", type="mouseWheel", x=bounds["x"] + width * 30.5 / 100, y=bounds["y"] + 50,
        deltaX=0, deltaY=-300,
    )  # fmt: skip
    page.wait(f"!location.hash.includes('span={START},{START + 100}')")
    first, last = (int(part) for part in page.evaluate("location.hash").partition("span=")[2].split(","))
    assert START < first < START + 30 < last < START + 100
    page.hover(bounds["x"] + width * (START + 40.5 - first) / (last - first), bounds["y"] + 60)
    index, value = readout(page, r"dim_0 \d+: .*").removeprefix("dim_0 ").split(": ")
    assert float(value) == STORED[int(index) - START]
    assert page.problems == []


def test_the_keyboard_zooms_a_line_and_shows_all_of_it_again(browser: Browser, line_url: str) -> None:
    page = browser.open(f"{line_url}#/long?span={START},{START + 100}")
    drawn(page)
    page.evaluate("document.querySelector('.series canvas.plot:not(.flat)').focus()")
    page.press("ArrowRight")
    page.press("ArrowRight")
    assert float(readout(page, rf"dim_0 {START + 1}: .*").partition(": ")[2]) == STORED[1]
    page.evaluate("document.querySelector('[aria-label=\"Show the whole line\"]').click()")
    page.wait("!location.hash.includes('span')")
    page.wait(f"document.querySelector('.zoom').textContent.includes('of {LENGTH // CHUNK} chunks')")
    assert page.problems == []
