"""Pictures of the page: channels, labels, maps, complex numbers, series, and what changes while the page is open."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.conventions.ome.attributes import write
from tessarr.conventions.ome.images import Axis, Level
from tessarr.storage import MemoryStore
from tests.browser.chromium import Browser, Page
from tests.browser.conftest import serving
from tests.browser.looking import bounds_of, choose, pixel, place_of, readout

CELLS = np.zeros((2, 3, 64, 96), "u2")
CELLS[0, :, :32] = 1000
CELLS[1, :, :, 48:] = 400
LABELS = np.zeros((1, 3, 64, 96), "u1")
LABELS[0, :, 20:40, 10:30] = 7
SERIES = np.sin(np.arange(20) / 3).astype("f4")
COMPLEX = np.exp(1j * np.linspace(-3, 3, 40))[None, :] * np.linspace(1, 2, 30)[:, None]


def fill(store: MemoryStore) -> None:
    group = tessarr.open_group(store, mode="w")
    kinds = ((None, "channel"), ("micrometer", "space"), ("micrometer", "space"), ("micrometer", "space"))
    axes = [Axis(name, kind, unit) for name, (unit, kind) in zip("czyx", kinds, strict=True)]
    levels = [Level(str(level), (1.0, 2.0, 0.5 * 2**level, 0.5 * 2**level)) for level in range(2)]
    attributes = write(axes, levels, version="0.5", name="cells")
    channels = [
        {"label": "blue one", "color": "0000FF", "window": {"start": 0, "end": 2000}, "active": True},
        {"label": "red one", "color": "FF0000", "window": {"start": 0, "end": 400}, "active": True},
    ]
    ome = attributes["ome"]
    assert isinstance(ome, dict)
    image = group.create_group("cells", attributes={"ome": {**ome, "omero": {"channels": channels}}})
    image.create_group("labels", attributes={"ome": {"version": "0.5", "labels": ["nuclei"]}})
    nuclei = image.create_group("labels/nuclei", attributes=write(axes, levels, version="0.5", name="nuclei"))
    for level in range(2):
        step = 2**level
        image.create_array(str(level), data=CELLS[:, :, ::step, ::step], chunks=(1, 1, 32, 32))
        nuclei.create_array(str(level), data=LABELS[:, :, ::step, ::step], chunks=(1, 1, 32, 32))
    lat, lon = np.linspace(-88, 88, 45), np.arange(2.0, 360, 4)
    values = np.broadcast_to(SERIES[:, None, None] + 300, (20, 45, 90)).copy()
    group.create_array("air", data=values, chunks=(5, 45, 90), dimension_names=("time", "lat", "lon"))
    group.create_array("lat", data=lat, dimension_names=("lat",), attributes={"units": "degrees_north"})
    group.create_array("lon", data=lon, dimension_names=("lon",), attributes={"units": "degrees_east"})
    group.create_array("complex", data=COMPLEX)
    people = np.array([(1, 2.5, b"a"), (2, 3.5, b"bc")], dtype=[("id", "i4"), ("mass", "f8"), ("tag", "S3")])
    group.create_array("people", data=people)
    group.create_array("growing", data=np.zeros((8, 8), "u1"), chunks=(8, 8))


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    made = MemoryStore()
    fill(made)
    return made


@pytest.fixture(scope="module")
def url(store: MemoryStore) -> Iterator[str]:
    server, address = serving(store)
    with server:
        yield address


def shown(page: Page) -> None:
    """Wait for a picture that stays: the last request for tiles was answered, and coordinates and channels were read."""
    page.wait("document.querySelector('canvas.plot:not(.flat)')?.dataset.box")
    page.evaluate("new Promise((done) => setTimeout(done, 300))")
    page.settled()


def test_light_of_channels_is_added_in_the_colours_of_the_image(browser: Browser, url: str) -> None:
    page = browser.open(f"{url}#/cells?i1=1")
    page.wait("document.querySelectorAll('.channel input.limit').length === 4")
    shown(page)
    pixels = page.screenshot()
    assert pixel(page, pixels, 10, 10) == [0, 0, 128]  # 1000 of 2000
    assert pixel(page, pixels, 70, 10) == [255, 0, 128]
    assert pixel(page, pixels, 70, 50) == [255, 0, 0]
    assert pixel(page, pixels, 10, 50) == [0, 0, 0]
    page.hover(*place_of(page, 70, 10))
    readout(page, "y 10 .5., x 70 .35.: blue one 1000, red one 400")
    page.click(".channel[data-channel='1'] input[type=checkbox]")
    page.wait("location.hash.includes('channels=0')")
    shown(page)
    assert pixel(page, page.screenshot(), 70, 10) == [0, 0, 128]
    choose(page, ".channel[data-channel='0'] input.limit:last-child", "1000")
    shown(page)
    assert pixel(page, page.screenshot(), 70, 10) == [0, 0, 255]
    assert page.problems == []


def test_labels_lie_over_the_image(browser: Browser, url: str) -> None:
    page = browser.open(f"{url}#/cells/0")
    page.wait("[...document.querySelectorAll('option')].some((one) => one.textContent === 'nuclei')")
    shown(page)
    before = page.screenshot()
    choose(page, "label select:has(option[value='cells/labels/nuclei'])", "cells/labels/nuclei")
    page.wait("location.hash.includes('labels=cells/labels/nuclei')")
    shown(page)
    after = page.screenshot()
    assert pixel(page, before, 20, 35) == [0, 0, 0]
    assert max(pixel(page, after, 20, 35)) > 100
    assert pixel(page, after, 40, 35) == pixel(page, before, 40, 35)
    assert page.problems == []


def test_a_map_has_north_above_and_coast_lines(browser: Browser, url: str) -> None:
    page = browser.open(f"{url}#/air?map=gray&low=0&high=1")
    page.wait("[...document.querySelectorAll('label')].some((one) => one.textContent.includes('Coast lines'))")
    shown(page)
    assert place_of(page, 0, 44)[1] < place_of(page, 0, 0)[1]
    page.hover(*place_of(page, 30, 44))
    readout(page, "lat 44 .88., lon 30 .122.: ")
    with_lines = page.screenshot()
    page.evaluate(
        "[...document.querySelectorAll('label')].find((one) => one.textContent.includes('Coast')).firstChild.click()"
    )
    page.wait("location.hash.includes('coast=0')")
    shown(page)
    without = page.screenshot()
    left, top = map(int, place_of(page, 0, 44))
    right, bottom = map(int, place_of(page, 89, 0))
    changed = (with_lines != without).any(axis=2)[top:bottom, left:right]
    assert 0.01 < changed.mean() < 0.3
    edge = int(place_of(page, 90, 0)[0])  # half an element beyond the last column
    assert not (with_lines != without)[top:bottom, edge + 1 : edge + 6].any()
    australia = [int(part) - start for part, start in zip(place_of(page, 33, 16), (left, top), strict=True)]
    assert changed[australia[1] - 40 : australia[1] + 40, australia[0] - 40 : australia[0] + 40].any()
    assert not changed[australia[1] - 3 : australia[1] + 3, australia[0] - 3 : australia[0] + 3].any()  # inland
    assert page.problems == []


def test_a_click_shows_the_series_and_a_click_on_it_its_index(browser: Browser, url: str) -> None:
    page = browser.open(f"{url}#/air")
    shown(page)
    x, y = place_of(page, 12, 30)
    for kind in ("mousePressed", "mouseReleased"):
        page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)
    page.wait("location.hash.includes('at=12,30')")
    page.wait("document.querySelector('.series canvas.plot:not(.flat)')")
    page.evaluate("document.querySelector('.series canvas').scrollIntoView({block: 'center'})")
    bounds = bounds_of(page, ".series canvas.plot:not(.flat)")
    at = bounds["x"] + bounds["width"] * 7.5 / 20
    page.hover(at, bounds["y"] + 40)
    value = readout(page, r"time 7: .*").partition(": ")[2]
    assert np.float32(value) == np.float32(SERIES[7] + np.float32(300))
    for kind in ("mousePressed", "mouseReleased"):
        page.call(
            "Input.dispatchMouseEvent", type=kind, x=at, y=bounds["y"] + 40, button="left", buttons=1, clickCount=1
        )
    page.wait("location.hash.includes('i0=7')")
    assert page.problems == []


@pytest.mark.parametrize("part", ["abs", "phase", "real", "imag"])
def test_parts_of_complex_numbers_are_drawn(browser: Browser, url: str, part: str) -> None:
    low, high = (-np.pi, np.pi) if part == "phase" else (-2, 2)
    page = browser.open(f"{url}#/complex?part={part}&map=gray&low={low}&high={high}")
    shown(page)
    functions: dict[str, Callable[[Any], Any]] = {"abs": np.abs, "phase": np.angle, "real": np.real, "imag": np.imag}
    pixels = page.screenshot()
    for x, y in [(0, 0), (39, 29), (20, 11), (5, 25)]:
        expected = (functions[part](COMPLEX[y, x]) - low) / (high - low) * 255
        assert abs(pixel(page, pixels, x, y)[0] - expected) <= 2
    page.hover(*place_of(page, 5, 25))
    readout(page, "dim_0 25, dim_1 5: ")
    text = page.evaluate("document.querySelector('.readout').textContent").partition(": ")[2]
    assert complex(text) == COMPLEX[25, 5]
    assert page.problems == []


def test_fields_of_structs_are_columns(browser: Browser, url: str) -> None:
    page = browser.open(f"{url}#/people")
    page.wait("document.querySelector('.table tbody td')")
    table = page.evaluate("JSON.stringify([...document.querySelectorAll('.table tr')].map((one) => one.innerText))")
    assert [row.split("\t") for row in json.loads(table)] == [
        ["", "id", "mass", "tag"],
        ["0", "1", "2.5", "a"],
        ["1", "2", "3.5", "bc"],
    ]


def test_a_change_of_the_values_and_of_the_node_is_shown(browser: Browser, url: str, store: MemoryStore) -> None:
    page = browser.open(f"{url}#/growing?map=gray&low=0&high=200")
    shown(page)
    array = tessarr.open_array(store, path="growing", mode="r+")
    page.wait(
        "performance.getEntriesByType('resource').filter((one) => one.name.includes('growing.raw')).length > 1"
    )  # the page looked once
    array[...] = 200
    page.wait("document.getElementById('notice').textContent.includes('values changed')")
    shown(page)
    assert pixel(page, page.screenshot(), 4, 4) == [255, 255, 255]
    array.attrs["new"] = "attribute"
    page.wait("document.body.innerText.includes('attribute')")
    assert page.problems == []


def test_findings_are_shown_at_their_node_and_in_the_tree(browser: Browser) -> None:
    store = MemoryStore()
    group = tessarr.open_group(store, mode="w")
    group.create_array("good", data=np.arange(4))
    bad = {"multiscales": [{"version": "0.4", "axes": "none", "datasets": []}]}
    group.create_group("bad", attributes={"ome": {"version": "0.5", **bad}})
    server, url = serving(store)
    with server:
        page = browser.open(f"{url}#/good")
        page.wait("document.querySelector('.checked')?.textContent.includes('in order')")
        page.go(f"{url}#/")
        page.wait("document.querySelector('.checked button')")
        page.click(".checked button")
        page.wait("document.querySelector('.findings a')?.textContent === '/bad'")
        page.wait("document.querySelector('.row .warning')")
        assert page.problems == []
