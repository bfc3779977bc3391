"""Every array of other writers, opened on the page: the element under the cursor, or in the table, is that of the array."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from fixtures import Case, cases, open_case

import tessarr
from tessarr.errors import TessarrError
from tessarr.serve import app, serve_background
from tessarr.types import AnyArray
from tessarr.viewer import page_files, page_path
from tests.browser.chromium import Browser, Page
from tests.browser.looking import bounds_of, place_of, readout

CASES = list(cases(Path(__file__).resolve().parents[1] / "fixtures"))
READY = (
    "document.querySelector('.table tbody tr') || document.querySelector('#node .error')"
    " || document.querySelector('canvas.plot:not(.flat)')"
)
FIRST = READY + " || document.querySelector('canvas.flat[data-frame], canvas.flat[data-pending=\"0\"]')"


@pytest.fixture(scope="module")
def times() -> Iterator[list[float]]:
    found: list[float] = []
    yield found
    if found:
        shares = ", ".join(f"{share} %: {np.percentile(found, share):.2f} s" for share in (50, 95, 100))
        print(f"\nfrom the URL to the first picture or table, {len(found)} arrays: {shares}")


@pytest.mark.filterwarnings("ignore")  # what the library says about odd documents is tested elsewhere
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_an_array_of_another_writer_is_shown_or_its_error_in_words(
    browser: Browser, case: Case, times: list[float]
) -> None:
    try:
        array = open_case(case)
        expected = np.asarray(array[tuple(length // 2 for length in array.shape)]) if 0 not in array.shape else None
    except (TessarrError, ValueError, OSError, KeyError, TypeError, MemoryError):
        array = expected = None
    place = case.source / case.entry["path"]
    try:
        application = app(array if array is not None else str(place), token="secret", page=page_files())
    except TessarrError:
        pytest.skip("there is no node to serve: the library refuses the place")
    with serve_background(application, port=0) as server:
        url = f"http://127.0.0.1:{server.port}{page_path(application)}"
        page = browser.open(url)
        try:
            page.wait(FIRST)
            times.append(page.evaluate("performance.now()") / 1000)
            page.wait(READY)
            look(page, array, expected)
            assert {urlsplit(one).netloc for one in page.requests} == {urlsplit(url).netloc}
        finally:
            page.close()


def look(page: Page, array: tessarr.Array | None, expected: AnyArray | None, *, missing: str = "") -> None:
    """Compare the element in the middle with that of the array; without one the page has an error in words, or no elements.

    `missing`: a pattern of requests that may be answered by 404, as for chunks that are not stored.
    """
    if array is None:
        return
    if expected is None and 0 not in array.shape:
        page.wait("document.querySelector('#node .error')?.textContent.length > 10")
        return
    if not page.evaluate("document.querySelector('canvas.plot:not(.flat)') !== null"):
        assert page.evaluate("document.querySelector('#node .error')?.textContent ?? ''") == ""
        return
    middle = [length // 2 for length in array.shape]
    if array.ndim == 1:
        page.evaluate("new Promise((done) => setTimeout(done, 100))")
        bounds = bounds_of(page, "canvas.plot:not(.flat)")
        share = (middle[0] + 0.5) / array.shape[0]
        page.hover(bounds["x"] + bounds["width"] * share, bounds["y"] + 60)
        text = readout(page, r"^\S.*: .*$")
        index = int(re.findall(r" (\d+)(?: \(.*?\))?: ", text)[0])
        compare(text, np.asarray(array[index]))
        return
    page.settled()
    indices = json.loads(
        page.evaluate(
            "JSON.stringify([...document.querySelectorAll('input[data-axis]')]"
            ".map((one) => [Number(one.dataset.axis), Number(one.value)]))"
        )
    )
    chosen = dict(indices)
    free = [axis for axis in range(array.ndim) if axis not in chosen]
    selects = json.loads(
        page.evaluate("JSON.stringify([...document.querySelectorAll('.tabs select')].map((one) => Number(one.value)))")
    )
    x, y = selects
    page.hover(*place_of(page, middle[x], middle[y]))
    text = readout(page, r"^\S.*: [^…]+$")
    colours = [axis for axis in free if axis not in (x, y)]
    where: list[int | slice] = [
        slice(None) if axis in colours else chosen.get(axis, middle[axis]) for axis in range(array.ndim)
    ]
    compare(text, np.asarray(array[tuple(where)]))
    assert [one for one in page.problems if not missing or not re.search(f" 404 .*{missing}", one)] == []


def compare(text: str, value: AnyArray) -> None:
    """Compare the text about an element with its value."""
    shown = text.rpartition(": ")[2]
    stored = re.search(r"\(stored (.*?)\)", shown)
    shown = stored[1] if stored else shown
    if value.ndim:
        assert [float(part.split(" ")[-1]) for part in shown.split(", ")] == value.ravel().astype(float).tolist()
        return
    if value.dtype.kind == "b":
        assert shown == str(bool(value)).lower()
    elif value.dtype.kind in "mM":
        assert shown != ""
    elif value.dtype.kind == "c":
        np.testing.assert_equal(
            np.complex128(shown.replace("Infinity", "inf").replace("NaN", "nan")), np.complex128(value)
        )
    else:
        word = shown.split(" ")[0].replace("Infinity", "inf")
        if value.dtype.kind in "iu":
            assert int(word) == int(value)
        else:
            np.testing.assert_equal(value.dtype.type(word), value[()])
