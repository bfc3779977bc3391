"""What notebooks show of arrays and groups, converted by nbconvert: legible in light and dark, and without styles."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import tessarr
from tests.browser.chromium import Browser
from tests.browser.test_access import LEAST_CONTRAST, luminance


def notebook(html: str) -> str:
    """Convert a notebook with one output to HTML, without the page around it, which loads scripts."""
    nbformat = pytest.importorskip("nbformat", reason="needs nbconvert, of the extra test: make setup")
    nbconvert = pytest.importorskip("nbconvert", reason="needs nbconvert, of the extra test: make setup")
    output = nbformat.v4.new_output("execute_result", {"text/html": html, "text/plain": "plain"}, execution_count=1)
    cell = nbformat.v4.new_code_cell("array", execution_count=1, outputs=[output])
    body, _ = nbconvert.HTMLExporter(template_name="basic").from_notebook_node(nbformat.v4.new_notebook(cells=[cell]))
    assert isinstance(body, str)
    return body


@pytest.fixture(scope="module")
def group() -> tessarr.Group:
    made = tessarr.open_group(tessarr.storage.MemoryStore(), mode="w", attributes={"title": "seen"})
    made.create_array("air", data=np.zeros((8, 60, 80)), chunks=(1, 20, 20), shards=(4, 40, 40))
    made.create_array("below/lat", data=np.zeros(60))
    return made


@pytest.mark.filterwarnings("ignore")  # of packages of Jupyter
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("place", ["", "air"])
def test_a_description_is_legible_in_a_converted_notebook(
    browser: Browser, tmp_path: Path, group: tessarr.Group, place: str, scheme: str
) -> None:
    node = group[place] if place else group
    file = tmp_path / "notebook.html"
    file.write_text(f"<!DOCTYPE html><meta charset=utf-8>{notebook(node._repr_html_())}", encoding="utf-8")
    page = browser.open("about:blank")
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    page.go(file.as_uri())
    page.wait("document.querySelector('.tsr-node')")
    style = "getComputedStyle(document.querySelector('.tsr-node'))"
    text, ground = (
        "#" + "".join(f"{int(part):02x}" for part in re.findall(r"\d+", page.evaluate(f"{style}.{name}"))[:3])
        for name in ("color", "backgroundColor")
    )
    light, dark = sorted((luminance(text), luminance(ground)), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= LEAST_CONTRAST
    assert (luminance(ground) > 0.5) == (scheme == "light")
    box = "document.querySelector('.tsr-node').getBoundingClientRect()"
    assert page.evaluate(f"{box}.width") < 1200
    if place:
        assert page.evaluate("document.querySelector('.tsr-node svg').getBoundingClientRect().width") > 100
    assert page.problems == []
    page.close()


@pytest.mark.filterwarnings("ignore")  # of packages of Jupyter
def test_a_description_says_the_same_without_styles(browser: Browser, tmp_path: Path, group: tessarr.Group) -> None:
    html = re.sub(r"<style>.*?</style>", "", notebook(group._repr_html_() + group["air"]._repr_html_()), flags=re.S)
    file = tmp_path / "bare.html"
    file.write_text(f"<!DOCTYPE html><meta charset=utf-8>{html}", encoding="utf-8")
    page = browser.open(file.as_uri())
    page.wait("document.querySelector('.tsr-node')")
    text = page.text()
    for part in ("Group /", "air", "below", "title", "Array /air", "float64", "2 × 2 × 2 = 8 shards"):
        assert part in text
    page.close()
