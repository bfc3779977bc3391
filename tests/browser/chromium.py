"""Drive Chromium by the DevTools protocol over a pipe, with the standard library alone.

Source: https://chromedevtools.github.io/devtools-protocol (version 1.3).
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import queue
import shutil
import signal
import struct
import subprocess
import tempfile
import threading
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from tests.waiting import PATIENCE_S

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")
_OPTIONS = (
    "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--no-first-run", "--mute-audio",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--force-device-scale-factor=1",
    "--window-size=1200,900", "--remote-debugging-pipe",
)  # fmt: skip
NO_GRAPHICS = ("--disable-gpu", "--disable-3d-apis")
"""Options for a browser without WebGL, as on many remote desktops."""
GRAPHICS = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader")
"""Options for WebGL, computed by the processor."""


def find_chromium() -> str | None:
    """Return the program, if it is installed."""
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


class Browser:
    """A running Chromium without a window."""

    def __init__(self, program: str, options: Sequence[str] = GRAPHICS) -> None:
        self._profile = tempfile.mkdtemp(prefix="tessarr-chromium-")
        theirs_in, self._to = os.pipe()
        self._from, theirs_out = os.pipe()
        line = f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self._process = subprocess.Popen(
            ["bash", "-c", line, program, *_OPTIONS, *options, f"--user-data-dir={self._profile}", "about:blank"],
            pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        os.close(theirs_in)
        os.close(theirs_out)
        self._ids = itertools.count(1)
        self._answers: dict[int, queue.Queue[dict[str, Any]]] = {}
        self._listeners: list[Callable[[dict[str, Any]], None]] = []
        self.group = self._process.pid
        """The process group of the program."""
        self.pages: list[Page] = []
        """The open tabs."""
        self.plot = "canvas.plot" if options is NO_GRAPHICS else "canvas.plot:not(.flat)"
        """What a plot is drawn on in the end: the canvas of H5Web, where there is WebGL."""
        threading.Thread(target=self._receive, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(PATIENCE_S)
        os.close(self._to)
        shutil.rmtree(self._profile, ignore_errors=True)

    def call(self, method: str, session: str | None = None, **parameters: object) -> dict[str, Any]:
        """Call a method of the protocol, and return its result."""
        number = next(self._ids)
        answer: queue.Queue[dict[str, Any]] = queue.Queue()
        self._answers[number] = answer
        message: dict[str, object] = {"id": number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        found = answer.get(timeout=PATIENCE_S)
        if "error" in found:
            raise RuntimeError(f"{method}: {found['error']}")
        result: dict[str, Any] = found["result"]
        return result

    def listen(self, listener: Callable[[dict[str, Any]], None]) -> None:
        self._listeners.append(listener)

    def ignore(self, listener: Callable[[dict[str, Any]], None]) -> None:
        self._listeners.remove(listener)

    def _receive(self) -> None:
        left = b""
        while data := os.read(self._from, 1 << 20):
            *messages, left = (left + data).split(b"\0")
            for text in messages:
                message = json.loads(text)
                if "id" in message:
                    self._answers.pop(message["id"]).put(message)
                else:
                    for listener in list(self._listeners):
                        listener(message)
        os.close(self._from)

    def open(self, url: str) -> Page:
        """Open a page in a new tab."""
        self.pages.append(Page(self, url))
        return self.pages[-1]


class Page:
    """A tab."""

    def __init__(self, browser: Browser, url: str) -> None:
        self._browser = browser
        self.plot = browser.plot
        self._target: str = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self._session: str = browser.call("Target.attachToTarget", targetId=self._target, flatten=True)["sessionId"]
        self.requests: list[str] = []
        """URLs of all requests."""
        self.problems: list[str] = []
        """Errors and warnings on the console, and exceptions that were not caught."""
        browser.listen(self._event)
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.go(url)

    def close(self) -> None:
        self._browser.ignore(self._event)
        self._browser.pages.remove(self)
        self._browser.call("Target.closeTarget", targetId=self._target)

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        return self._browser.call(method, self._session, **parameters)

    def go(self, url: str) -> None:
        self.call("Page.navigate", url=url)

    def _event(self, message: dict[str, Any]) -> None:
        if message.get("sessionId") != self._session:
            return
        method, parameters = message["method"], message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(parameters["exceptionDetails"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.problems.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}")
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning"):
            self.problems.append(json.dumps(parameters["args"]))

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript, of a promise when it is fulfilled."""
        found = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"])
        return found["result"].get("value")

    def wait(self, expression: str) -> Any:
        """Wait until an expression is true, and return its value."""
        wrapped = f"""new Promise((resolve, reject) => {{
            const end = Date.now() + {PATIENCE_S * 1000};
            const look = () => {{
                let found;
                try {{ found = ({expression}); }} catch (error) {{ found = undefined; }}
                if (found) resolve(found instanceof Node ? true : found);
                else if (Date.now() > end) reject(new Error(document.body.innerText.slice(0, 2000)));
                else setTimeout(look, 20);
            }};
            look();
        }})"""
        for attempt in range(3):
            try:
                return self.evaluate(wrapped)
            except RuntimeError as error:  # the page was replaced while it was looked at
                if attempt == 2 or "document.body" in str(error) or "context" not in str(error):
                    raise
        raise AssertionError

    def text(self) -> str:
        found: str = self.evaluate("document.body.innerText")
        return found

    def settled(self) -> None:
        """Wait until coordinates were read, the picture is drawn with them, and nothing is in flight."""
        self.wait(
            "document.querySelector('section.data')?.dataset.coordinates"
            f" && document.querySelector('{self.plot}')?.dataset.box"
            f" && document.querySelector('{self.plot}').dataset.pending === '0'"
        )
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def click(self, selector: str) -> None:
        self.evaluate(f"document.querySelector({json.dumps(selector)}).click()")

    def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def hover(self, x: float, y: float) -> None:
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def screenshot(self) -> Any:
        """Return the pixels of the page: shape (height, width, 3)."""
        data = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        return pixels_of(data)

    def save(self, file: Path) -> None:
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))


def pixels_of(data: bytes) -> Any:
    """Decode a PNG of eight bits per part, without interlacing: shape (height, width, 3)."""
    at, packed, parts = 8, b"", 3
    width = height = 0
    while at < len(data):
        (nbytes,), kind = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        part = data[at + 8 : at + 8 + nbytes]
        if kind == b"IHDR":
            width, height, parts = *struct.unpack(">II", part[:8]), {2: 3, 6: 4}[part[9]]
        packed += part if kind == b"IDAT" else b""
        at += 12 + nbytes
    rows = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 1 + parts * width)
    out = np.zeros((height, width * parts), np.uint8)
    above = np.zeros(width * parts, np.uint8)
    for number, row in enumerate(rows):
        line = _unfiltered(int(row[0]), row[1:], above, parts)
        out[number] = above = line
    return out.reshape(height, width, parts)[..., :3]


def _unfiltered(kind: int, row: Any, above: Any, parts: int) -> Any:
    """Undo the filter of a row (PNG specification, 9.2)."""
    if kind == 0:
        return row
    if kind == 2:
        return row + above
    if kind == 1:
        return np.cumsum(row.reshape(-1, parts), axis=0, dtype=np.uint8).reshape(-1)
    line = bytearray(row.tobytes())
    before = above.tobytes()
    for at in range(len(line)):
        left = line[at - parts] if at >= parts else 0
        if kind == 3:
            guess = (left + before[at]) // 2
        else:
            corner = before[at - parts] if at >= parts else 0
            estimate = left + before[at] - corner
            guess = min((left, before[at], corner), key=lambda one: abs(one - estimate))
        line[at] = (line[at] + guess) & 255
    return np.frombuffer(bytes(line), np.uint8)
