"""Plates of OME-Zarr on the page: wells to choose from, fields, pictures on request."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pytest

import tessarr
from tessarr.conventions.ome.attributes import write
from tessarr.conventions.ome.images import Axis, Level
from tessarr.storage import MemoryStore
from tests.browser.chromium import Browser
from tests.browser.conftest import HOSTILE, serving
from tests.browser.looking import pixel

WELLS = ("A/1", "A/3", "B/2")


def fill(store: MemoryStore) -> None:
    wells = [{"path": path, "rowIndex": "AB".index(path[0]), "columnIndex": int(path[2]) - 1} for path in WELLS]
    plate = {
        "version": "0.5",
        "rows": [{"name": "A"}, {"name": "B"}],
        "columns": [{"name": "1"}, {"name": "2"}, {"name": HOSTILE}],
        "wells": [*wells, {"path": "../outside", "rowIndex": 1, "columnIndex": 0}],
    }
    group = tessarr.open_group(store, mode="w", attributes={"ome": {"version": "0.5", "plate": plate}})
    levels = [Level(str(level), (2.0**level, 2.0**level)) for level in range(2)]
    for number, path in enumerate(WELLS):
        well = {"version": "0.5", "images": [{"path": "0"}, {"path": "1"}]}
        group.create_group(path, attributes={"ome": {"version": "0.5", "well": well}})
        for field in range(2):
            attributes = write([Axis("y", "space"), Axis("x", "space")], levels, version="0.5", name="field")
            image = group.create_group(f"{path}/{field}", attributes=attributes)
            plane = np.full((64, 64), 50 * number + 10 * field, "u1")
            plane[0, 0] = 255
            for level in range(2):
                image.create_array(str(level), data=plane[:: 2**level, :: 2**level], chunks=(32, 32))


@pytest.fixture
def url() -> Iterator[str]:
    store = MemoryStore()
    fill(store)
    server, address = serving(store, "plate.zarr")
    with server:
        yield address


def test_a_well_and_a_field_are_chosen_from_a_table(browser: Browser, url: str) -> None:
    page = browser.open(url)
    page.wait("document.querySelector('table.plate')")
    rows = "[...document.querySelectorAll('table.plate tbody tr')].map((row) => [...row.cells].map((one) => one.textContent))"
    assert json.loads(page.evaluate(f"JSON.stringify({rows})")) == [
        ["A", "A1", "–", f"A{HOSTILE}"],
        ["B", "–", "B2", "–"],
    ]
    page.click("table.plate tbody tr:nth-child(2) a")
    page.wait("location.hash === '#/B/2' && document.querySelector('.well a')")
    fields = "JSON.stringify([...document.querySelectorAll('.well a')].map((one) => one.textContent))"
    assert json.loads(page.evaluate(fields)) == ["Field 0", "Field 1"]
    page.click(".well li:nth-child(2) a")
    page.wait("location.hash === '#/B/2/1'")
    page.wait("document.querySelector('canvas.plot:not(.flat)')")
    page = browser.open(f"{url}#/B/2/1?map=gray&low=0&high=255")
    page.settled()
    assert pixel(page, page.screenshot(), 30, 30)[0] == 110
    assert page.problems == []


def test_pictures_of_the_wells_are_shown_on_request(browser: Browser, url: str) -> None:
    page = browser.open(url)
    page.wait("document.querySelector('table.plate')")
    assert not [one for one in page.requests if ".png" in one]
    page.evaluate(
        "[...document.querySelectorAll('button')].find((one) => one.textContent.startsWith('Pictures')).click()"
    )
    images = "[...document.querySelectorAll('table.plate img')]"
    page.wait(f"{images}.length === 3 && {images}.every((one) => one.complete && one.naturalWidth === 32)")
    names = page.evaluate(f"JSON.stringify({images}.map((one) => one.alt))")
    assert json.loads(names) == ["A1", f"A{HOSTILE}", "B2"]
    assert page.problems == []
