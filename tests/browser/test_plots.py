"""Plots of the page: scatter plots, error bars, scales, surfaces, flipped and stretched pictures, files of what is drawn."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tessarr
from tessarr.storage import MemoryStore
from tests.browser.chromium import Browser, Page, pixels_of
from tests.browser.conftest import serving
from tests.browser.looking import bounds_of, choose, dragged, pixel, place_of, pointed, readout, saved
from tests.waiting import until

X = np.array([3.0, 1.0, 2.0, 5.0, 4.0])
Y = np.array([10.0, 100.0, 1000.0, 1.0, 10.0])
ERRORS = np.array([1.0, 20.0, 100.0, 0.5, np.nan])
PLANE = np.arange(12.0).reshape(3, 4)
COMPLEX = np.exp(1j * np.linspace(0, 12, 60))


@pytest.fixture(scope="module")
def plots() -> Iterator[str]:
    store = MemoryStore()
    group = tessarr.open_group(store, mode="w")
    row = ("row",)
    error = {"standard_name": "mass standard_error"}
    group.create_array(
        "points/mass", data=Y, dimension_names=row, attributes={"units": "kg", "ancillary_variables": "flag spread"}
    )
    group.create_array("points/spread", data=ERRORS, dimension_names=row, attributes=error)
    group.create_array("points/flag", data=np.arange(5), dimension_names=row)
    group.create_array("points/size", data=X, dimension_names=row)
    group.create_array("points/row", data=X * 10, dimension_names=row)
    group.create_array("pairs", data=np.stack([X, Y], axis=1))
    group.create_array("plane", data=PLANE)
    group.create_array("plane_errors", data=PLANE / 10)
    group.create_array("turning", data=COMPLEX)
    group.create_array("field", data=np.stack([COMPLEX, 2 * COMPLEX]))
    group.create_array("colors", data=np.tile(np.array([10, 200, 30], "u1"), (8, 8, 1)))
    group.create_array("wide", data=np.tile(np.arange(4.0)[:, None], (1, 4000)), chunks=(4, 500))
    days = np.arange("2024-01-01", "2024-03-01", dtype="datetime64[D]").astype("datetime64[s]")
    group.create_array("days", data=days)
    group.create_array("nothing", data=np.full((10, 20), np.nan))
    group.create_array("none", shape=(0, 5), chunks=(1, 5), dtype="f4")
    server, address = serving(store)
    with server:
        yield address


def point(page: Page, x: float, y: float, *, log: bool = False) -> tuple[float, float]:
    """Return the pixel of the page at two numbers of a scatter plot."""
    left, top, width, height, west, east, low, high = map(
        float, page.wait("document.querySelector('canvas.plot:not(.flat)').dataset.domain").split(",")
    )
    if log:
        y, low, high = math.log10(y), math.log10(low), math.log10(high)
    bounds = bounds_of(page, "canvas.plot:not(.flat)")
    return (
        bounds["x"] + left + (x - west) / (east - west) * width,
        bounds["y"] + top + (1 - (y - low) / (high - low)) * height,
    )


def drawn(page: Page) -> None:
    page.wait("document.querySelector('canvas.plot:not(.flat)')?.dataset.domain")
    page.evaluate("new Promise((done) => setTimeout(done, 300))")


def frame(page: Page) -> list[float]:
    """Return where a line is: left, top, width, height, the first and last element, the least and largest value."""
    page.wait("document.querySelector('canvas.plot:not(.flat)')?.dataset.frame")
    page.evaluate("new Promise((done) => setTimeout(done, 300))")
    return [
        float(part)
        for part in page.evaluate("document.querySelector('canvas.plot:not(.flat)').dataset.frame").split(",")
    ]


def height_of(page: Page, value: float, *, log: bool = False) -> int:
    """Return the row of the page where a line has a value."""
    _, top, _, height, _, _, low, high = frame(page)
    if log:
        value, low, high = math.log10(value), math.log10(low), math.log10(high)
    return int(bounds_of(page, "canvas.plot:not(.flat)")["y"] + top + (1 - (value - low) / (high - low)) * height)


@pytest.mark.parametrize("log", [False, True])
def test_points_are_drawn_against_another_array(browser: Browser, plots: str, log: bool) -> None:
    page = browser.open(f"{plots}#/points/mass?view=scatter&against=points/size{'&scaley=log' if log else ''}")
    drawn(page)
    pixels = page.screenshot()
    ground = pixels[5, 600].tolist()
    for index, (x, y) in enumerate(zip(X, Y, strict=True)):
        at_x, at_y = point(page, x, y, log=log)
        assert pixels[int(at_y), int(at_x)].tolist() == [29, 91, 184]  # --accent
        assert pixels[int(at_y) + 9, int(at_x) + 14].tolist() != [29, 91, 184]
        error = "" if math.isnan(ERRORS[index]) else "±.*"
        text = pointed(page, lambda at=(at_x + 2, at_y - 1): at, rf"row {index} .*{error}")  # type: ignore[misc]
        assert f"size {x:g}, mass (kg) {y:g}" in text
        assert ("±" in text) == (not math.isnan(ERRORS[index]))
    assert ground != [29, 91, 184]
    assert page.problems == []


def test_points_are_drawn_against_the_coordinate_at_first_and_zoomed(browser: Browser, plots: str) -> None:
    page = browser.open(f"{plots}#/points/mass?view=scatter&domain=20,40,0,20")
    drawn(page)
    assert "row 30, mass (kg) 10 ± 1" in pointed(page, lambda: point(page, 30, 10), "row 0 .*±.*")
    page.click("[aria-label='Zoom in']")
    page.wait("!location.hash.includes('domain=20,40')")
    edges = [float(part) for part in page.evaluate("location.hash.match(/domain=([^&]*)/)[1]").split(",")]
    np.testing.assert_allclose(edges, [30 - 10 / 1.5, 30 + 10 / 1.5, 10 - 10 / 1.5, 10 + 10 / 1.5])
    pointed(page, lambda: point(page, 30, 10), "row 0 .*")
    page.click("[aria-label='Show everything']")
    page.wait("!location.hash.includes('domain')")
    page.evaluate("document.querySelector('canvas.plot:not(.flat)').focus()")
    page.press("ArrowRight")
    assert "mass (kg) 100 ± 20" in readout(page, "row 1 .*")
    assert page.problems == []


def test_points_have_the_colours_of_a_third_array(browser: Browser, plots: str) -> None:
    page = browser.open(
        f"{plots}#/points/mass?view=scatter&against=points/size&map=gray&low=0&high=8&errors=0&guides=0"
    )
    drawn(page)
    choose(page, "select[aria-label='What colours are of']", "points/flag")
    page.wait("location.hash.includes('tint=points/flag') && !document.querySelector('.legend').hidden")
    drawn(page)
    pixels = page.screenshot()
    for index, (x, y) in enumerate(zip(X, Y, strict=True)):
        at_x, at_y = point(page, x, y)
        assert abs(int(pixels[int(at_y), int(at_x)][0]) - index / 8 * 255) <= 2
    assert page.problems == []


def test_a_column_is_drawn_against_another_column_and_saved(browser: Browser, plots: str) -> None:
    page = browser.open(f"{plots}#/pairs?view=scatter&x=0&i1=1&against=/1=0")
    drawn(page)
    page.hover(*point(page, 2, 1000))
    readout(page, "dim_0 2: pairs, dim_1 0 2, pairs 1000")
    rows = list(csv.reader(io.StringIO(saved(page, "Save the numbers of the points").decode())))
    assert rows[0] == ["index", "pairs, dim_1 0", "pairs"]
    np.testing.assert_array_equal(np.array(rows[1:], "f8"), np.stack([np.arange(5), X, Y], axis=1))
    picture = pixels_of(saved(page, "Save the points as a picture"))
    assert (picture == [29, 91, 184]).all(axis=2).sum() > 50
    assert page.problems == []


def test_bars_show_the_errors_of_a_line(browser: Browser, plots: str) -> None:
    page = browser.open(f"{plots}#/points/mass?view=line&guides=0")
    page.wait("document.body.innerText.includes('Errors (spread)')")
    left, _, width, _, *_ = frame(page)
    at = int(bounds_of(page, "canvas.plot:not(.flat)")["x"] + left + width * 2.5 / 5)
    pixels = page.screenshot()
    ground = pixels[height_of(page, 600), at + 40].tolist()
    for value in (950, 1050):  # 1000 ± 100
        assert pixels[height_of(page, value), at - 1 : at + 2].tolist() != [ground] * 3
    page.hover(at, bounds_of(page, "canvas.plot:not(.flat)")["y"] + 20)
    assert "1000 kg ± 100" in readout(page, "row 2 .*")
    page.evaluate("document.querySelector('canvas.plot:not(.flat)').focus()")
    page.press("+")
    page.wait("location.hash.includes('span=')")
    span = page.evaluate("location.hash.match(/span=([0-9,]*)/)[1]").replace(",", ":")
    assert page.evaluate("document.querySelector('.downloads a').href").endswith(f"points/mass.npy?0={span}")
    page.click("[aria-label='Show the whole line']")
    page.wait("!location.hash.includes('span=')")
    rows = list(csv.reader(io.StringIO(saved(page, "Save the numbers of the line").decode())))
    assert rows[0] == ["row (index)", "row", "mass", "mass (error)"]
    assert rows[3] == ["2", "20", "1000", "100"]
    page.evaluate(
        "[...document.querySelectorAll('label')].find((one) => one.textContent.includes('Errors')).firstChild.click()"
    )
    page.wait("location.hash.includes('errors=0')")
    assert frame(page)[7] < 1050  # the axis ends a little above the largest value
    page.go(f"{plots}#/plane?view=line&x=1&i0=2")
    page.wait("document.body.innerText.includes('Errors (plane_errors)')")
    assert page.problems == []


def test_a_line_has_a_logarithmic_axis_and_limits(browser: Browser, plots: str) -> None:
    page = browser.open(f"{plots}#/points/mass?view=line&errors=0&guides=0&shape=points")
    left, _, width, _, *_ = frame(page)
    choose(page, "select[aria-label='Scale of values']", "log")
    page.wait("location.hash.includes('scaley=log')")
    pixels = page.screenshot()
    for index, value in enumerate(Y):
        at = int(bounds_of(page, "canvas.plot:not(.flat)")["x"] + left + width * (index + 0.5) / 5)
        assert pixels[height_of(page, value, log=True), at].tolist() == [29, 91, 184]
    choose(page, "[aria-label='Least value of the axis']", "0.1")
    choose(page, "[aria-label='Largest value of the axis']", "1e5")
    page.wait("location.hash.includes('most=100000')")
    assert frame(page)[6:] == [0.1, 1e5]
    assert page.problems == []


def test_lines_of_other_arrays_are_drawn_too(browser: Browser, plots: str) -> None:
    page = browser.open(f"{plots}#/points/size?view=line&guides=0")
    page.wait("document.querySelector('select[aria-label=\"Draw the line of another array too\"]')")
    assert frame(page)[7] < 6
    choose(page, "select[aria-label='Draw the line of another array too']", "points/row")
    page.wait("location.hash.includes('also=points/row') && document.querySelector('.chip')")
    page.wait("Number(document.querySelector('canvas.plot:not(.flat)').dataset.frame.split(',')[7]) > 50")
    pixels = page.screenshot()
    assert (pixels == [180, 83, 9]).all(axis=2).sum() > 50  # --curve-1
    page.click(".chip")
    page.wait("Number(document.querySelector('canvas.plot:not(.flat)').dataset.frame.split(',')[7]) < 6")
    assert page.problems == []


def test_a_phase_is_unwrapped(browser: Browser, plots: str) -> None:
    page = browser.open(f"{plots}#/turning?part=unwrapped")
    assert frame(page)[7] > 12
    choose(page, "select[aria-label='Part of complex numbers']", "phase")
    page.wait("Number(document.querySelector('canvas.plot:not(.flat)').dataset.frame.split(',')[7]) < 4")
    assert page.problems == []


def test_phase_and_magnitude_are_one_picture(browser: Browser, plots: str) -> None:
    page = browser.open(f"{plots}#/field?part=both&low=0&high=2")
    page.settled()
    page.evaluate("new Promise((done) => setTimeout(done, 300))")
    pixels = page.screenshot()
    dark, light = (np.array(pixel(page, pixels, 7, y), float) for y in (0, 1))
    np.testing.assert_allclose(2 * dark, light, atol=3)
    assert light.max() > 100
    assert page.problems == []


def test_a_rectangle_is_shown_alone(browser: Browser, plots: str) -> None:
    page = browser.open(f"{plots}#/points/mass?view=scatter&against=points/size&errors=0")
    drawn(page)
    dragged(page, point(page, 1.5, 50), point(page, 3.5, 0.5))
    page.wait("location.hash.includes('domain=')")
    west, east, low, high = map(float, page.evaluate("location.hash.match(/domain=([^&]*)/)[1]").split(","))
    np.testing.assert_allclose([west, east, low, high], [1.5, 3.5, 0.5, 50], atol=3)
    assert 1.4 < west < 1.6
    assert 3.4 < east < 3.6
    page.go(f"{plots}#/turning?guides=0")
    page.wait("document.querySelector('.tabs button[aria-pressed=true]')?.textContent === 'Line'")
    left, top, width, height, *_ = frame(page)
    bounds = bounds_of(page, "canvas.plot:not(.flat)")
    at = [(bounds["x"] + left + share * width, bounds["y"] + top + height / 2) for share in (0.5, 0.25)]
    dragged(page, *at)
    page.wait("location.hash.includes('span=15,30') || location.hash.includes('span=14,30')")
    page.go(f"{plots}#/plane")
    page.wait("document.querySelector('.tabs button[aria-pressed=true]')?.textContent === 'Heat map'")
    page.settled()
    page.evaluate("new Promise((done) => setTimeout(done, 300))")
    before = place_of(page, 3, 2)[0] - place_of(page, 2, 2)[0]
    dragged(page, place_of(page, 1.6, 1.6), place_of(page, 2.4, 2.4))
    page.wait("location.hash.includes('box=')")
    page.settled()
    bounds = bounds_of(page, "canvas.plot:not(.flat)")
    middle = place_of(page, 2, 2)
    assert abs(middle[0] - (bounds["x"] + bounds["width"] / 2)) < 6
    assert place_of(page, 3, 2)[0] - place_of(page, 2, 2)[0] >= before
    assert page.problems == []


def test_a_button_saves_a_file(browser: Browser, plots: str, tmp_path: Path) -> None:
    browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    page = browser.open(f"{plots}#/plane")
    page.settled()
    page.click("[aria-label='Save the picture']")
    until(lambda: (tmp_path / "plane.png").is_file(), "the browser saved the picture")
    assert (tmp_path / "plane.png").read_bytes().startswith(b"\x89PNG")
    assert page.problems == []


@pytest.mark.parametrize(("flip_x", "flip_y"), [(1, 0), (0, 1), (1, 1)])
def test_a_flipped_picture_has_its_elements_on_the_other_side(
    browser: Browser, plots: str, flip_x: int, flip_y: int
) -> None:
    page = browser.open(f"{plots}#/plane?map=gray&low=0&high=11&flipx={flip_x}&flipy={flip_y}")
    page.settled()
    assert (place_of(page, 0, 0)[0] > place_of(page, 3, 0)[0]) == bool(flip_x)
    assert (place_of(page, 0, 0)[1] > place_of(page, 0, 2)[1]) == bool(flip_y)
    pixels = page.screenshot()
    for y in range(3):
        for x in range(4):
            assert abs(pixel(page, pixels, x, y)[0] - PLANE[y, x] / 11 * 255) <= 2
    page.hover(*place_of(page, 3, 1))
    readout(page, "dim_0 1, dim_1 3: 7$")
    page.evaluate("document.querySelector('canvas.plot:not(.flat)').focus()")
    page.press("ArrowRight")
    readout(page, "dim_0 1, dim_1 2: 6$" if flip_x else "dim_0 1, dim_1 3: 7$")
    assert page.problems == []


def test_a_wide_plane_fills_the_room(browser: Browser, plots: str) -> None:
    page = browser.open(f"{plots}#/wide?map=gray&low=0&high=3")
    page.settled()
    assert place_of(page, 0, 3)[1] - place_of(page, 0, 0)[1] < 3
    page.evaluate(
        "[...document.querySelectorAll('label')].find((one) => one.textContent.trim() === 'Fill').firstChild.click()"
    )
    page.wait("location.hash.includes('fill=1')")
    page.wait("document.querySelector('canvas.plot:not(.flat)').dataset.box.split(',')[6] > 20")
    page.settled()
    pixels = page.screenshot()
    for x, y in [(20, 0), (3980, 1), (1000, 2), (2500, 3)]:
        assert abs(pixel(page, pixels, x, y)[0] - y / 3 * 255) <= 2
    page.hover(*place_of(page, 1000, 2))
    readout(page, r"dim_0 2, dim_1 \d+: 2$")
    assert page.problems == []


def test_a_picture_is_saved_with_its_axes(browser: Browser, plots: str) -> None:
    page = browser.open(f"{plots}#/plane?map=gray&low=0&high=11")
    page.settled()
    left, top = place_of(page, 3, 2)
    bounds = bounds_of(page, ".h5web")
    picture = pixels_of(saved(page, "Save the picture"))
    assert picture[int(top - bounds["y"]), int(left - bounds["x"])].tolist() == [255, 255, 255]
    assert picture.shape[1] > bounds["width"] + 50  # the colour bar
    assert page.problems == []


def test_colours_are_read_from_blue_to_red(browser: Browser, plots: str) -> None:
    page = browser.open(f"{plots}#/colors?bgr=1")
    page.settled()
    assert pixel(page, page.screenshot(), 4, 4) == [30, 200, 10]
    assert page.problems == []


def test_a_plane_is_a_surface_that_turns(browser: Browser, plots: str) -> None:
    page = browser.open(f"{plots}#/plane?view=surface&map=gray&turn=0,90&low=0&high=11")
    page.wait("document.querySelector('canvas.plot:not(.flat)')?.dataset.drawn === '4,3,0,90'")
    bounds = bounds_of(page, "canvas.plot:not(.flat)")
    pixels = page.screenshot()
    middle = pixels[int(bounds["y"] + bounds["height"] / 2), int(bounds["x"] + bounds["width"] / 2)]
    assert abs(int(middle[0]) - (5 + 6) / 2 / 11 * 255) <= 2  # between two elements, seen from above
    page.evaluate("document.querySelector('canvas.plot:not(.flat)').focus()")
    page.press("ArrowLeft")
    page.wait(
        "document.querySelector('canvas.plot:not(.flat)').dataset.drawn === '4,3,5,90' && location.hash.includes('turn=5,90')"
    )
    page.click("[aria-label='Turn back']")
    page.wait("document.querySelector('canvas.plot:not(.flat)').dataset.drawn === '4,3,30,35'")
    assert (page.screenshot() != pixels).any()
    assert page.problems == []


def test_floats_of_a_table_are_written_in_a_notation(browser: Browser, plots: str) -> None:
    page = browser.open(f"{plots}#/plane?view=table")
    page.wait("document.querySelector('tbody td')?.textContent === '0'")
    choose(page, "select[aria-label='Notation']", "scientific")
    page.wait("[...document.querySelectorAll('tbody td')].some((one) => one.textContent === '1.100000e+1')")
    page.wait("location.hash.includes('notation=scientific')")
    assert page.problems == []


@pytest.mark.parametrize("place", ["points/mass?view=scatter&tint=points/flag", "plane?view=surface", "points/mass"])
def test_plots_in_the_dark_have_names_for_all_controls(browser: Browser, plots: str, place: str) -> None:
    from tests.browser.test_access import NAMELESS

    page = browser.open(f"{plots}#/{place}")
    page.wait("document.querySelector('canvas.plot:not(.flat)')")
    page.click("#theme")
    assert json.loads(page.evaluate(NAMELESS)) == []
    page.click("#theme")
    assert page.problems == []


def test_an_axis_of_dates_is_marked_by_dates(browser: Browser, plots: str) -> None:
    page = browser.open(f"{plots}#/days")
    page.wait("document.querySelector('canvas.plot:not(.flat)')?.dataset.frame")
    marks = page.evaluate("[...document.querySelectorAll('.axes text')].map((one) => one.textContent).join()").split(
        ","
    )
    dates = [mark for mark in marks if mark.startswith("2024-0")]
    assert len(dates) > 3
    assert len(set(dates)) == len(dates)
    assert all(len(date) == len("2024-01-01") for date in dates)
    assert page.problems == []


def test_a_plane_without_values_has_an_edge_and_says_so(browser: Browser, plots: str) -> None:
    page = browser.open(f"{plots}#/nothing")
    page.wait("document.body.innerText.includes('All values are missing.')")
    page.settled()
    width, height = json.loads(
        page.evaluate(
            "{const box = document.querySelector('.axes .edge').getBoundingClientRect();"
            " JSON.stringify([box.width, box.height])}"
        )
    )
    assert width == pytest.approx(2 * height, rel=0.05)
    other = browser.open(f"{plots}#/none")
    other.wait("document.body.innerText.includes('This array has no elements.')")
    assert page.problems == other.problems == []
