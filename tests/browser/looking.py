"""Look at the page: places of elements, pixels, the text under the cursor."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

from tests.browser.chromium import Page
from tests.waiting import until

SAVED = """new Promise((resolve) => {
    URL.createObjectURL = (blob) => {
        const reader = new FileReader();
        reader.onload = () => resolve(reader.result.split(',')[1]);
        reader.readAsDataURL(blob);
        return 'data:,';
    };
    document.querySelector(%s).click();
})"""
"""What a button saves, as base64, in place of the browser's download."""


def place_of(page: Page, x: float, y: float) -> tuple[float, float]:
    """Return the pixel of the page at the middle of an element of the picture."""
    left, top, first_x, first_y, size, rows, size_y, columns = map(
        float, page.evaluate(f"document.querySelector('{page.plot}').dataset.box").split(",")
    )
    y = rows - 1 - y if rows else y  # latitudes rise upwards
    x = columns - 1 - x if columns else x
    bounds = bounds_of(page, page.plot)
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


def pointed(page: Page, place: Callable[[], tuple[float, float]], pattern: str) -> str:
    """Point at a place until the text about the cursor matches, and return the match.

    Numbers that arrive later remove the cursor.
    """
    found: list[str] = []

    def look() -> bool:
        x, y = place()
        page.hover(x + 1, y)
        page.hover(x, y)
        match = page.evaluate(f"document.querySelector('.readout')?.textContent.match(/{pattern}/)?.[0]")
        found.extend([match] if match else [])
        return bool(found)

    until(look, f"the text about the cursor matches {pattern}")
    return found[0]


def choose(page: Page, selector: str, value: str, *, event: str = "change") -> None:
    """Give a control of the page a value, as a person does."""
    page.evaluate(
        f"{{const one = document.querySelector({json.dumps(selector)}); one.value = {json.dumps(value)};"
        f" one.dispatchEvent(new Event({json.dumps(event)}));}}"
    )


def saved(page: Page, label: str) -> bytes:
    """Return the file that a button saves."""
    return base64.b64decode(page.evaluate(SAVED % json.dumps(f"[aria-label={json.dumps(label)}]")))


def dragged(page: Page, from_: tuple[float, float], to: tuple[float, float], *, shift: bool = True) -> None:
    """Drag from one place of the page to another, with Shift by default."""
    mouse = {"button": "left", "buttons": 1, "modifiers": 8 if shift else 0}
    page.call("Input.dispatchMouseEvent", type="mousePressed", x=from_[0], y=from_[1], clickCount=1, **mouse)
    for share in (0.5, 1):
        x, y = (start + share * (end - start) for start, end in zip(from_, to, strict=True))
        page.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y, **mouse)
    page.call("Input.dispatchMouseEvent", type="mouseReleased", x=to[0], y=to[1], clickCount=1, **mouse)
