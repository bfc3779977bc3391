"""The page for everyone: names of controls, contrast, the keyboard's help, and trees and searches of large hierarchies."""

from __future__ import annotations

import json
import re
from itertools import pairwise

import pytest

import tessarr
from tessarr.storage import MemoryStore
from tessarr.viewer import page_files
from tests.browser.chromium import Browser
from tests.browser.conftest import serving
from tests.browser.looking import choose

CHILDREN = 100_000
LEAST_CONTRAST = 4.5
"""WCAG 2.2, 1.4.3 (AA), for text."""
NAMELESS = """JSON.stringify([...document.querySelectorAll('button, input, select, canvas, [role=treeitem]')]
    .filter((one) => one.isConnected && !one.closest('dialog, [hidden]'))
    .filter((one) => !(one.getAttribute('aria-label') || one.closest('label')?.textContent.trim() || one.textContent.trim()))
    .map((one) => one.outerHTML))"""


def luminance(color: str) -> float:
    """Return the relative luminance of a colour ``#rrggbb`` (WCAG 2.2)."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.short
@pytest.mark.parametrize("theme", [":root", '[data-theme="dark"]'])
def test_text_has_the_contrast_of_level_aa(theme: str) -> None:
    css = page_files()["viewer.css"][0].decode()
    block = css[css.index(f"{theme} {{") :].partition("}")[0]
    colors = dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", block))
    for text in ("text", "quiet", "accent", "error"):
        for ground in ("ground", "panel", "chosen"):
            light, dark = sorted((luminance(colors[text]), luminance(colors[ground])), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= LEAST_CONTRAST, (text, ground)


@pytest.mark.parametrize("place", ["", "#/weather/air?at=3,4", "#/gradient?grid=1", "#/wave", "#/words", "#/rgb"])
def test_every_control_has_a_name(browser: Browser, url: str, place: str) -> None:
    page = browser.open(f"{url}{place}")
    page.wait("document.querySelector('#node h2') && document.querySelectorAll('[role=treeitem]').length > 5")
    if place:
        page.wait("document.querySelector('canvas.plot:not(.flat), .table td')")
        page.wait("!document.querySelector('.h5web canvas:not(.plot)')")  # not yet told to the page
    assert json.loads(page.evaluate(NAMELESS)) == []
    levels = json.loads(
        page.evaluate(
            "JSON.stringify([...document.querySelectorAll('h1, h2, h3')]"
            ".filter((one) => !one.closest('dialog')).map((one) => Number(one.tagName[1])))"
        )
    )
    assert levels[0] == 1
    assert all(below - above <= 1 for above, below in pairwise(levels))
    page.close()


def test_a_key_shows_the_keys(browser: Browser, url: str) -> None:
    page = browser.open(url)
    page.wait("document.querySelector('#node h2')")
    page.press("?")
    page.wait("document.getElementById('help').open")
    page.press("Escape")
    page.close()


def test_a_group_of_a_hundred_thousand_is_listed_in_pages_and_searched(browser: Browser) -> None:
    store = MemoryStore()
    tessarr.open_group(store, mode="w")
    document = tessarr.create_array(store, name="first", shape=(4,), dtype="i1").store.get("first/zarr.json")
    assert document is not None
    for number in range(CHILDREN):
        store.set(f"many/n{number:06d}/zarr.json", bytes(document))
    tessarr.open_group(store, path="many", mode="a")
    server, url = serving(store)
    with server:
        page = browser.open(f"{url}#/first")
        page.wait("[...document.querySelectorAll('.row')].some((one) => one.textContent.includes('many'))")
        page.wait("document.querySelector('canvas.plot:not(.flat)')")
        asked = len(page.requests)
        page.evaluate("[...document.querySelectorAll('.row')].find((one) => one.textContent.includes('many')).click()")
        page.wait("document.querySelector('.members caption')?.textContent === 'The first 1000 members'")
        page.wait("[...document.querySelectorAll('.row')].some((one) => one.textContent.includes('n000003'))")
        assert page.evaluate("document.querySelectorAll('.row').length") < 200
        assert len([one for one in page.requests[asked:] if "/many/?json" in one]) <= 3
        choose(page, "#search", "n012345", event="input")
        page.wait("[...document.querySelectorAll('.row .name')].some((one) => one.textContent === 'n012345')")
        assert page.problems == []
        page.close()
