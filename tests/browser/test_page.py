"""The page of ``tessarr view`` in a browser: names, values, pictures, keyboard, and nothing from another origin."""

from __future__ import annotations

import json
import re
from urllib.parse import urlsplit

import numpy as np
import pytest

from tests.browser.chromium import Browser
from tests.browser.conftest import AIR, GRADIENT, HOSTILE
from tests.browser.looking import choose, pixel, place_of, readout


@pytest.mark.short
def test_the_page_shows_names_of_nodes_as_text_and_asks_only_its_own_origin(browser: Browser, url: str) -> None:
    page = browser.open(url)
    page.wait("document.body.innerText.includes('lat')")
    text = page.text()
    for name in ("demo.zarr", "weather", "air", "gradient", "wave", "words", "rgb", HOSTILE):
        assert name in text
    assert page.evaluate("window.hacked") is None
    assert {urlsplit(one).netloc for one in page.requests} == {urlsplit(url).netloc}
    html = page.evaluate("document.documentElement.outerHTML")
    assert [one for one in re.findall(r'(?:src|href)="([^"]*)"', html) if "//" in one or one.startswith("data:")] == []
    assert page.problems == []
    assert "secret" not in page.evaluate("document.title") + text


@pytest.mark.short
def test_a_picture_has_the_colours_of_the_values(browser: Browser, url: str) -> None:
    page = browser.open(f"{url}#/gradient?map=gray&low=0&high=65535")
    page.settled()
    pixels = page.screenshot()
    for y, x in [(0, 0), (3, 200), (100, 17), (128, 128), (200, 255), (255, 255)]:
        expected = GRADIENT[y, x] / 65535 * 255
        np.testing.assert_allclose(pixel(page, pixels, x, y), expected, atol=2)
    assert page.problems == []


@pytest.mark.parametrize(
    ("index", "y", "x"), [pytest.param(2, 59, 79, marks=pytest.mark.short), (0, 0, 0), (1, 33, 12), (0, 0, 7)]
)
def test_the_value_under_the_cursor_is_that_of_the_array(
    browser: Browser, url: str, index: int, y: int, x: int
) -> None:
    page = browser.open(f"{url}#/weather/air?i0={index}")
    page.settled()
    page.hover(*place_of(page, x, y))
    stored = AIR[index, y, x]
    shown = readout(page, rf"lat {y} .*, lon {x}: .*stored {stored}\)")
    assert f"lat {y} ({60 - y})" in shown
    assert ("missing" if stored == 7 else f"{200 + stored / 2:g} K") in shown
    page.wait(f"document.querySelector('.slider .label').textContent === '2000-01-0{index + 1}'")


def test_a_plane_of_ten_to_the_twelfth_elements_is_drawn_and_read_exactly(browser: Browser, url: str) -> None:
    page = browser.open(f"{url}#/huge?box=0,500400,0.5&map=gray&low=0&high=5")
    page.settled()
    assert pixel(page, page.screenshot(), 1000, 500_700) == [255, 255, 255]
    page.hover(*place_of(page, 1000, 500_700))
    readout(page, ": 5$")
    page.click("button[title='Show everything']")
    page.settled()
    assert page.problems == []


def test_integers_beyond_2_to_the_53_are_shown_exactly(browser: Browser, url: str) -> None:
    page = browser.open(f"{url}#/large")
    page.settled()
    page.hover(*place_of(page, 0, 0))
    readout(page, str(2**63 + 1))
    page.click(".tabs button:last-child")
    page.wait(f"document.querySelector('tbody td')?.textContent === '{2**63 + 1}'")


def test_lines_tables_and_rgb_are_drawn(browser: Browser, url: str) -> None:
    page = browser.open(f"{url}#/wave")
    page.wait("document.querySelector('canvas.plot:not(.flat)')")
    bounds = json.loads(
        page.evaluate("JSON.stringify(document.querySelector('canvas.plot:not(.flat)').getBoundingClientRect())")
    )
    page.hover(bounds["x"] + bounds["width"] / 2, bounds["y"] + 50)
    index = int(readout(page, r"dim_0 \d+: ").split()[1].rstrip(":"))
    assert repr(float(np.sin(index / 300)))[:8] in page.evaluate("document.querySelector('.readout').textContent")
    page.go(f"{url}#/words")
    page.wait(f"document.querySelector('tbody td')?.textContent === {json.dumps(HOSTILE)}")
    page.go(f"{url}#/rgb")
    page.wait("document.querySelector('h2').textContent.includes('rgb')")
    page.settled()
    assert pixel(page, page.screenshot(), 20, 20) == [10, 200, 30]
    assert page.problems == []


def test_sliders_and_axes_are_in_the_url(browser: Browser, url: str) -> None:
    page = browser.open(f"{url}#/weather/air")
    page.settled()
    choose(page, "input[type=range]", "2", event="input")
    page.wait("location.hash.includes('i0=2')")
    page.settled()
    page.hover(*place_of(page, 5, 6))
    readout(page, rf"stored {AIR[2, 6, 5]}\)")
    choose(page, "select", "0")
    page.wait("location.hash.includes('x=0')")
    page.settled()
    page.hover(*place_of(page, 1, 6))
    readout(page, rf"lat 6 .*, time 1 .*stored {AIR[1, 6, 0]}\)")


def test_the_keyboard_reaches_nodes_and_elements(browser: Browser, url: str) -> None:
    page = browser.open(url)
    page.wait("document.body.innerText.includes('lat')")
    page.evaluate("document.querySelector('[role=treeitem][tabindex=\"0\"]').focus()")
    for _ in range(20):
        page.press("ArrowDown")
        if page.evaluate("document.activeElement.textContent.includes('gradient')"):
            break
    page.press("Enter")
    page.wait("location.hash === '#/gradient'")
    page.settled()
    page.evaluate("document.querySelector('canvas.plot:not(.flat)').focus()")
    page.press("ArrowRight")
    page.press("ArrowRight")
    readout(page, f"dim_0 128, dim_1 129: {GRADIENT[128, 129]}")


def test_search_and_dark_mode(browser: Browser, url: str) -> None:
    page = browser.open(url)
    page.wait("document.body.innerText.includes('lat')")
    choose(page, "#search", "LAT", event="input")
    names = page.evaluate("[...document.querySelectorAll('.row .name')].map((one) => one.textContent)")
    assert names == ["demo.zarr", "weather", "lat"]
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before


def test_the_chunk_grid_shows_what_is_stored(browser: Browser, url: str) -> None:
    page = browser.open(f"{url}#/gradient?grid=1&map=gray&low=0&high=1")
    page.settled()
    page.wait("performance.getEntriesByType('resource').some((one) => one.name.includes('.chunks'))")
    page.settled()
    pixels = page.screenshot()
    at_x, at_y = place_of(page, 127.5, 30)
    red = pixels[int(at_y), int(at_x) - 2 : int(at_x) + 3].astype(int)
    assert (red[:, 0] - red[:, 1]).max() > 80
