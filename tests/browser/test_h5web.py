"""Plots that H5Web draws, by WebGL: loaded when one is opened, moved, selected; what is drawn before, and without WebGL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.storage import MemoryStore
from tests.browser.chromium import Browser, Page, pixels_of
from tests.browser.conftest import serving
from tests.browser.looking import bounds_of, choose, dragged, pixel, place_of, pointed, readout, saved
from tests.waiting import until

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
    scales = [{"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [1.0, 1.0, 1.0]}]}]
    axes = [{"name": "c", "type": "channel"}, {"name": "y", "type": "space"}, {"name": "x", "type": "space"}]
    channels = [
        {"color": color, "window": {"start": 0, "end": 40, "min": 0, "max": 40}} for color in ("FF0000", "00FF00")
    ]
    image = {"version": "0.5", "multiscales": [{"axes": axes, "datasets": scales}], "omero": {"channels": channels}}
    light = np.indices((41, 41), "u1")
    group.create_group("image", attributes={"ome": image}).create_array("0", data=light, chunks=(1, 16, 16))
    colors = np.stack([*np.indices((40, 50)), np.full((40, 50), 9)], axis=-1).astype("u1")
    group.create_array("rgb", data=4 * colors)
    group.create_array("wave", data=np.sin(np.arange(100)))
    server, address = serving(store)
    with server:
        yield address


def domain_of(page: Page) -> list[float]:
    """Return where points are drawn: left, top, width, height, and the edges of what is shown."""
    page.wait(f"document.querySelector('{page.plot}')?.dataset.domain")
    page.evaluate("new Promise((done) => setTimeout(done, 300))")
    return [float(part) for part in page.evaluate(f"document.querySelector('{page.plot}').dataset.domain").split(",")]


def middle_of(page: Page) -> tuple[int, int]:
    bounds = bounds_of(page, page.plot)
    return int(bounds["x"] + bounds["width"] / 2), int(bounds["y"] + bounds["height"] / 2)


def files_of(page: Page) -> set[str]:
    return {one.rpartition("/")[2] for one in page.requests if "/@view/" in one}


def test_h5web_is_loaded_when_a_plot_of_it_is_opened(browser: Browser, plots: str) -> None:
    page = browser.open(f"{plots}#/heights?view=table")
    page.wait("document.querySelector('.table td')")
    before = files_of(page)
    assert "h5web.css" not in before
    page.evaluate("[...document.querySelectorAll('.tabs button')].find((one) => one.textContent === 'Surface').click()")
    page.wait("document.querySelector('canvas.plot:not(.flat)')?.dataset.drawn")
    assert {"h5web.css"} < files_of(page) - before
    assert page.problems == []


def test_the_first_picture_is_drawn_before_h5web_is_there(browser: Browser, plots: str) -> None:
    page = browser.open(f"{plots}#/heights?view=table")
    page.wait("document.querySelector('.table td')")
    held: list[str] = []

    def hold(message: dict[str, Any]) -> None:
        if message["method"] == "Fetch.requestPaused":
            held.append(message["params"]["requestId"])

    browser.listen(hold)
    page.call("Fetch.enable", patterns=[{"urlPattern": "*h5web.css"}])
    page.evaluate("location.hash = '#/heights?view=heatmap&map=gray'")
    page.wait("document.querySelector('canvas.flat')?.dataset.pending === '0'")
    until(lambda: len(held) == 1, "H5Web is asked for")
    assert page.evaluate(f"document.querySelector('{page.plot}')") is None
    bounds, pixels = bounds_of(page, "canvas.flat"), page.screenshot()
    row = pixels[int(bounds["y"]) + 20, int(bounds["x"]) + 2 :: 20][:20]
    assert row[0].tolist() == [0, 0, 0]
    assert (np.diff(row[:, 0].astype(int)) >= 0).all()
    assert row[-1, 0] > 200
    left, top, first_x, first_y, size = map(
        float,
        page.evaluate("document.querySelector('canvas.flat').dataset.box.split(',').slice(0, 5).join()").split(","),
    )
    page.hover(bounds["x"] + left + (8.5 - first_x) * size, bounds["y"] + top + (5.5 - first_y) * size)
    assert readout(page, "dim_0 5, dim_1 8: .*") == f"dim_0 5, dim_1 8: {HEIGHTS[5, 8]}"
    page.evaluate("document.querySelector('canvas.flat').focus()")
    page.press("ArrowRight")
    assert readout(page, "dim_0 5, dim_1 9: .*") == f"dim_0 5, dim_1 9: {HEIGHTS[5, 9]}"
    page.call("Fetch.continueRequest", requestId=held[0])
    page.settled()
    page.press("ArrowDown")
    assert readout(page, "dim_0 6, dim_1 9: .*"), "the keyboard stays with the plot"
    assert page.evaluate("document.querySelectorAll('canvas').length") == 2  # the plot, and the colour bar
    browser.ignore(hold)
    assert page.problems == []


@pytest.mark.parametrize("place", ["heights?map=viridis", "image?flipx=1&flipy=1", "rgb?fill=1"])
def test_without_webgl_elements_have_the_same_colours(
    browser: Browser, browser_without_graphics: Browser, plots: str, place: str
) -> None:
    found = []
    for one in (browser, browser_without_graphics):
        page = one.open(f"{plots}#/{place}")
        page.settled()
        pixels = page.screenshot()
        found.append([pixel(page, pixels, column, row) for row in range(0, 40, 4) for column in range(0, 40, 4)])
        assert page.problems == []
    assert found[0] == found[1]
    assert len({tuple(color) for color in found[0]}) >= 10


@pytest.mark.parametrize(
    "place", ["wave", "wave?shape=both", "mass?view=scatter&against=size&tint=mass&shape=both&errors=0"]
)
def test_without_webgl_lines_and_points_are_at_the_same_places(
    browser: Browser, browser_without_graphics: Browser, plots: str, place: str
) -> None:
    drawn = []
    for browser_of_one in (browser, browser_without_graphics):
        page = browser_of_one.open(f"{plots}#/{place}")
        page.wait(f"Object.keys(document.querySelector('{page.plot}')?.dataset ?? {{}}).length > 0")
        page.evaluate("new Promise((done) => setTimeout(done, 300))")
        left, top, width, height = (int(bounds_of(page, page.plot)[one]) for one in ("x", "y", "width", "height"))
        pixels = page.screenshot()[top : top + height, left : left + width].astype(int)
        drawn.append(abs(pixels - 255).max(axis=2) > 100)
        assert page.problems == []
    for one, other in (drawn, drawn[::-1]):
        assert one.sum() > 500
        near = np.zeros_like(other)
        for down, right in np.ndindex(7, 7):
            near |= np.roll(other, (down - 3, right - 3), (0, 1))
        assert not (one & ~near).any()


def test_without_webgl_a_plane_is_moved_zoomed_and_read(browser_without_graphics: Browser, plots: str) -> None:
    page = browser_without_graphics.open(f"{plots}#/heights?view=heatmap")
    page.settled()
    text = pointed(page, lambda: place_of(page, 8, 5), "dim_0 5, dim_1 8: .*")
    assert text == f"dim_0 5, dim_1 8: {HEIGHTS[5, 8]}"
    x, y = middle_of(page)
    dragged(page, (x, y), (x - 60, y), shift=False)
    page.wait("location.hash.includes('box=')")
    page.evaluate("document.querySelector('canvas.plot').focus()")
    page.press("0")
    page.wait("!location.hash.includes('box=')")
    assert page.problems == []


def test_without_webgl_a_line_has_a_cursor_and_is_saved(browser_without_graphics: Browser, plots: str) -> None:
    page = browser_without_graphics.open(f"{plots}#/wave")
    page.wait("document.querySelector('canvas.plot')?.dataset.frame")
    page.evaluate("document.querySelector('canvas.plot').focus()")
    page.press("ArrowRight")
    assert readout(page, "dim_0 0: .*") == "dim_0 0: 0"
    assert (pixels_of(saved(page, "Save the line as a picture")) == ACCENT).all(axis=2).sum() > 50
    assert page.problems == []


def test_a_browser_without_webgl_is_told_in_words_what_surfaces_need(
    browser_without_graphics: Browser, plots: str
) -> None:
    page = browser_without_graphics.open(f"{plots}#/heights?view=surface")
    page.wait("document.querySelector('.error.data')?.textContent.includes('no WebGL')")
    assert "Table" in page.evaluate("document.querySelector('.error.data').textContent")
    page.evaluate("[...document.querySelectorAll('.tabs button')].find((one) => one.textContent === 'Table').click()")
    page.wait("document.querySelector('.table td') && !document.querySelector('.error.data')")
    assert page.problems == []


def test_a_surface_has_a_hole_where_there_are_no_numbers(browser: Browser, plots: str) -> None:
    page = browser.open(f"{plots}#/heights?view=surface&turn=0,90&map=viridis")
    page.wait("document.querySelector('canvas.plot:not(.flat)')?.dataset.drawn === '41,41,0,90'")
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
    page.wait("Number(document.querySelector('canvas.plot:not(.flat)').dataset.domain.split(',')[4]) > 2.02")
    west, east, low, high = domain_of(page)[4:]
    page.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=-120, modifiers=1)  # with Alt
    page.wait(f"Number(document.querySelector('canvas.plot:not(.flat)').dataset.domain.split(',')[4]) > {west + 0.02}")
    assert domain_of(page)[5] < east
    assert domain_of(page)[6:] == pytest.approx([low, high])
    page.evaluate("document.querySelector('canvas.plot:not(.flat)').focus()")
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
    bounds = bounds_of(page, "canvas.plot:not(.flat)")
    x = int(bounds["x"] + left + (3 - west) / (east - west) * width)
    bottom = int(bounds["y"] + top + height) - 5
    pixels = page.screenshot()
    assert pixels[bottom, x - 1 : x + 2].tolist() != [[255, 255, 255]] * 3
    assert pixels[bottom, x + 20].tolist() == [255, 255, 255]
    texts = page.evaluate("[...document.querySelectorAll('svg.axes text')].map((one) => one.textContent)")
    assert {"1", "10", "100", "1000", "mass"} <= set(texts)
    assert page.problems == []


def test_points_are_saved_with_their_axes(browser: Browser, plots: str) -> None:
    page = browser.open(f"{plots}#/mass?view=scatter&against=size")
    domain_of(page)
    picture = pixels_of(saved(page, "Save the points as a picture"))
    assert (picture == ACCENT).all(axis=2).sum() > 50
    canvas, host = bounds_of(page, "canvas.plot:not(.flat)"), bounds_of(page, ".h5web")
    beside = picture[:, : int(canvas["x"] - host["x"]) - 12]
    assert (beside.max(axis=2) < 90).sum() > 50  # the numbers of the axis, and its title
    assert page.problems == []


CANCELLED = """(() => {
    const [canvas, [x, y]] = [document.querySelector('canvas.plot:not(.flat)'), %s];
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
    page.wait("Object.keys(document.querySelector('canvas.plot:not(.flat)')?.dataset ?? {}).length > 0")
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
    page.evaluate("document.querySelector('canvas.plot:not(.flat)').focus()")
    page.press("ArrowRight")
    readout(page, "row 0: .*")
    page.wait("document.querySelectorAll('.h5web .over rect').length === 2")
    choose(page, "select[aria-label='How points are joined']", "steps")
    page.wait("location.hash.includes('shape=steps')")
    page.evaluate("new Promise((done) => setTimeout(done, 300))")
    assert (page.screenshot() == ACCENT).all(axis=2).sum() > 200
    assert page.problems == []
