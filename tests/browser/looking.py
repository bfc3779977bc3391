"""Look at the page: places of elements, pixels, the text under the cursor."""

from __future__ import annotations

import json
from typing import Any

from tests.browser.chromium import Page


def place_of(page: Page, x: float, y: float) -> tuple[float, float]:
    """Return the pixel of the page at the middle of an element of the picture."""
    left, top, first_x, first_y, size, rows, size_y, columns = map(
        float, page.evaluate("document.querySelector('canvas.plot').dataset.box").split(",")
    )
    y = rows - 1 - y if rows else y  # latitudes rise upwards
    x = columns - 1 - x if columns else x
    bounds = bounds_of(page, "canvas.plot")
    return bounds["x"] + left + (x + 0.5 - first_x) * size, bounds["y"] + top + (y + 0.5 - first_y) * size_y


def bounds_of(page: Page, selector: str) -> dict[str, float]:
    """Return where an element of the page is, in pixels."""
    script = f"JSON.stringify(document.querySelector({json.dumps(selector)}).getBoundingClientRect())"
    found: dict[str, float] = json.loads(page.evaluate(script))
    return found


def pixel(page: Page, pixels: Any, x: float, y: float) -> list[int]:
    """Return the colour at the middle of an element of the picture, in a screenshot."""
    at_x, at_y = place_of(page, x, y)
    found: list[int] = pixels[int(at_y), int(at_x)].tolist()
    return found


def readout(page: Page, pattern: str) -> str:
    """Wait until the text about the cursor matches a pattern, and return the match."""
    found: str = page.wait(f"document.querySelector('.readout')?.textContent.match(/{pattern}/)?.[0]")
    return found


def choose(page: Page, selector: str, value: str, *, event: str = "change") -> None:
    """Give a control of the page a value, as a person does."""
    page.evaluate(
        f"{{const one = document.querySelector({json.dumps(selector)}); one.value = {json.dumps(value)};"
        f" one.dispatchEvent(new Event({json.dumps(event)}));}}"
    )
