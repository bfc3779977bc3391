"""Plots that H5Web draws, by WebGL: loaded when they are opened, moved and selected; and what the page says without WebGL."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import tessarr
from tessarr.storage import MemoryStore
from tests.browser.chromium import Browser, Page, pixels_of
from tests.browser.conftest import serving
from tests.browser.looking import bounds_of, choose, dragged, readout, saved

HEIGHTS = np.tile(np.linspace(0, 1, 41), (41, 1))
HEIGHTS[15:26, 15:26] = np.nan
ACCENT = [29, 91, 184]


@pytest.fixture(scope="module")
def plots() -> Iterator[str]:
    store = MemoryStore()
    group = tessarr.open_group(store, mode="w")
    row = ("row",)
    group.create_array("mass", data=np.array([10.0, 100, 1000, 1, 10]), dimension_names=row)
    group.create_array("mass_errors", data=np.array([20.0, 0, 0, 0, 0]), dimension_names=row)
    group.create_array("size", data=np.array([3.0, 1, 2, 5, 4]), dimension_names=row)
    group.create_array("heights", data=HEIGHTS)
    group.create_array("wave", data=np.sin(np.arange(100)))
    server, address = serving(store)
    with server:
        yield address


def domain_of(page: Page) -> list[float]:
    """Return where points are drawn: left, top, width, height, and the edges of what is shown."""
    page.wait("document.querySelector('canvas.plot')?.dataset.domain")
    page.evaluate("new Promise((done) => setTimeout(done, 300))")
    return [float(part) for part in page.evaluate("document.querySelector('canvas.plot').dataset.domain").split(",")]


def middle_of(page: Page) -> tuple[int, int]:
    bounds = bounds_of(page, "canvas.plot")
    return int(bounds["x"] + bounds["width"] / 2), int(bounds["y"] + bounds["height"] / 2)


def files_of(page: Page) -> set[str]:
    return {one.rpartition("/")[2] for one in page.requests if "/@view/" in one}


def test_h5web_is_loaded_when_a_plot_of_it_is_opened(browser: Browser, plots: str) -> None:
    page = browser.open(f"{plots}#/heights?view=table")
    page.wait("document.querySelector('.table td')")
    before = files_of(page)
    assert "h5web.css" not in before
    page.evaluate("[...document.querySelectorAll('.tabs button')].find((one) => one.textContent === 'Surface').click()")
    page.wait("document.querySelector('canvas.plot')?.dataset.drawn")
    assert {"h5web.css"} < files_of(page) - before
    assert page.problems == []


def test_without_webgl_the_picture_of_a_plane_is_the_one_of_the_server(
    browser_without_graphics: Browser, plots: str
) -> None:
    page = browser_without_graphics.open(f"{plots}#/heights?view=heatmap")
    page.wait("document.querySelector('.error.data')?.textContent.includes('no WebGL')")
    page.wait("document.querySelector('img.plane')?.naturalWidth >= 41")
    assert page.evaluate("document.querySelector('img.plane').alt") == "Picture of heights"
    assert page.problems == []


@pytest.mark.parametrize("view", ["surface", "scatter", "line"])
def test_a_browser_without_webgl_is_told_in_words_what_else_there_is(
    browser_without_graphics: Browser, plots: str, view: str
) -> None:
    page = browser_without_graphics.open(f"{plots}#/heights?view={view}")
    page.wait("document.querySelector('.error.data')?.textContent.includes('no WebGL')")
    assert "Table" in page.evaluate("document.querySelector('.error.data').textContent")
    assert page.evaluate("document.querySelector('.downloads a').href").endswith((".png?", ".npy?0=0", ".png"))
    page.evaluate("[...document.querySelectorAll('.tabs button')].find((one) => one.textContent === 'Table').click()")
    page.wait("document.querySelector('.table td') && !document.querySelector('.error.data')")
    assert page.problems == []


def test_a_surface_has_a_hole_where_there_are_no_numbers(browser: Browser, plots: str) -> None:
    page = browser.open(f"{plots}#/heights?view=surface&turn=0,90&map=viridis")
    page.wait("document.querySelector('canvas.plot')?.dataset.drawn === '41,41,0,90'")
    page.evaluate("new Promise((done) => setTimeout(done, 300))")
    pixels = page.screenshot()
    x, y = middle_of(page)
    assert pixels[y, x].tolist() == [255, 255, 255]
    assert pixels[y, x + 100].tolist() != [255, 255, 255]
    text = page.evaluate("[...document.querySelectorAll('.corner')].map((one) => one.textContent).join()")
    assert text == "dim_1 0, dim_0 0,dim_1 40, dim_0 0,dim_1 0, dim_0 40,dim_1 40, dim_0 40"
    assert page.problems == []


def test_points_are_moved_zoomed_and_follow_the_colours_of_the_page(browser: Browser, plots: str) -> None:
    page = browser.open(f"{plots}#/mass?view=scatter&against=size&domain=1.5,4.5,0,500")
    _, _, width, _, *edges = domain_of(page)
    assert edges == pytest.approx([1.5, 4.5, 0, 500])
    x, y = middle_of(page)
    dragged(page, (x, y), (x - width / 6, y), shift=False)
    page.wait("!location.hash.includes('domain=1.5,4.5')")
    assert domain_of(page)[4:6] == pytest.approx([2, 5], abs=0.02)
    page.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=-120)
    page.wait("Number(document.querySelector('canvas.plot').dataset.domain.split(',')[4]) > 2.02")
    page.evaluate("document.querySelector('canvas.plot').focus()")
    page.press("0")
    page.wait("!location.hash.includes('domain')")
    assert (page.screenshot() == ACCENT).all(axis=2).sum() > 20
    page.click("#theme")
    page.evaluate("new Promise((done) => setTimeout(done, 300))")
    pixels = page.screenshot()
    assert (pixels == ACCENT).all(axis=2).sum() == 0
    assert (pixels == [127, 178, 255]).all(axis=2).sum() > 20
    page.click("#theme")
    assert page.problems == []


def test_a_bar_below_0_reaches_the_edge_of_a_logarithmic_axis(browser: Browser, plots: str) -> None:
    page = browser.open(f"{plots}#/mass?view=scatter&against=size&scaley=log&guides=0")
    page.wait("document.body.innerText.includes('Errors (mass_errors)')")
    left, top, width, height, west, east, *_ = domain_of(page)
    bounds = bounds_of(page, "canvas.plot")
    x = int(bounds["x"] + left + (3 - west) / (east - west) * width)
    bottom = int(bounds["y"] + top + height) - 5
    pixels = page.screenshot()
    assert pixels[bottom, x - 1 : x + 2].tolist() != [[255, 255, 255]] * 3
    assert pixels[bottom, x + 20].tolist() == [255, 255, 255]
    texts = page.evaluate("[...document.querySelectorAll('[data-type=ordinate] text')].map((one) => one.textContent)")
    assert {"1", "10", "100", "1000", "mass"} <= set(texts)
    assert page.problems == []


def test_points_are_saved_with_their_axes(browser: Browser, plots: str) -> None:
    page = browser.open(f"{plots}#/mass?view=scatter&against=size")
    domain_of(page)
    picture = pixels_of(saved(page, "Save the points as a picture"))
    assert (picture == ACCENT).all(axis=2).sum() > 50
    canvas, host = bounds_of(page, "canvas.plot"), bounds_of(page, ".h5web")
    beside = picture[:, : int(canvas["x"] - host["x"]) - 12]
    assert (beside.max(axis=2) < 90).sum() > 50  # the numbers of the axis, and its title
    assert page.problems == []


CANCELLED = """(() => {
    const [canvas, [x, y]] = [document.querySelector('canvas.plot'), %s];
    const send = (type, left, top, more) => canvas.dispatchEvent(new PointerEvent(type, {bubbles: true, pointerId: 1,
        clientX: left, clientY: top, shiftKey: true, ...more}));
    canvas.setPointerCapture = canvas.releasePointerCapture = () => undefined;
    send('pointerdown', x, y, {button: 0, buttons: 1});
    send('pointermove', x + 60, y + 60, {buttons: 1});
    send('pointercancel', x + 60, y + 60, {});
    return new Promise((done) => setTimeout(() => {
        send('pointermove', x + 90, y + 90, {});
        send('pointerup', x + 90, y + 90, {button: 0});
        setTimeout(done, 300);
    }, 300));
})()"""
"""A drag with Shift that the browser ends for a gesture of its own, and a pointer that moves on."""


@pytest.mark.parametrize("place", ["heights", "wave", "mass?view=scatter&against=size"])
def test_a_selection_ends_where_the_browser_takes_the_pointer_away(browser: Browser, plots: str, place: str) -> None:
    page = browser.open(f"{plots}#/{place}")
    page.wait("Object.keys(document.querySelector('canvas.plot')?.dataset ?? {}).length > 0")
    page.evaluate("new Promise((done) => setTimeout(done, 500))")
    x, y = middle_of(page)
    page.hover(x + 70, y + 70)  # where the pointer is at the end
    page.evaluate("new Promise((done) => setTimeout(done, 300))")
    before, pixels = page.evaluate("location.hash"), page.screenshot()
    page.evaluate(CANCELLED % [x - 20, y - 20])
    assert page.evaluate("location.hash") == before
    assert (page.screenshot() != pixels).any(axis=2).sum() < 100  # no rectangle
    dragged(page, (x - 40, y - 40), (x + 60, y + 60))
    page.wait("/domain=|span=|box=/.test(location.hash)")
    assert page.problems == []


def test_the_keyboard_marks_a_point(browser: Browser, plots: str) -> None:
    page = browser.open(f"{plots}#/mass?view=scatter&against=size&errors=0")
    domain_of(page)
    page.evaluate("document.querySelector('canvas.plot').focus()")
    page.press("ArrowRight")
    readout(page, "row 0: .*")
    page.wait("document.querySelectorAll('.h5web svg path').length === 1")
    choose(page, "select[aria-label='How points are joined']", "steps")
    page.wait("location.hash.includes('shape=steps')")
    page.evaluate("new Promise((done) => setTimeout(done, 300))")
    assert (page.screenshot() == ACCENT).all(axis=2).sum() > 200
    assert page.problems == []
