"""Make the pictures of the documentation: the page of ``tessarr view``, and what a notebook shows of an array and a group.

    python scripts/screenshots.py DIR

Needs Chromium (Debian: apt-get install chromium). The data are computed here, so that every run shows the same.
"""

from __future__ import annotations

import argparse
import base64
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import tessarr
    from tests.browser.chromium import Browser

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
WIDTH, HEIGHT = 1200, 880


def fill(group: tessarr.Group) -> None:
    """Write monthly temperatures of a made-up planet with Earth's coasts."""
    lat, lon, month = np.linspace(-88.75, 88.75, 72), np.arange(1.25, 360, 2.5), np.arange(36)
    angle, y, x = np.meshgrid(2 * np.pi * month / 12, np.deg2rad(lat), np.deg2rad(lon), indexing="ij")
    warm = 278 + 28 * np.cos(2 * y) - 15 * np.sin(y) * np.cos(angle)
    waves = 5 * np.sin(3 * x + angle / 2) * np.cos(y) + 3 * np.cos(7 * x - angle) * np.cos(y) ** 2
    attributes = {"long_name": "Air temperature", "units": "K", "scale_factor": 0.01, "add_offset": 250.0}
    climate = group.create_group("climate")
    air = np.round((warm + waves - 250) / 0.01).astype("i2")
    names = ("time", "lat", "lon")
    climate.create_array(
        "air", data=air, chunks=(6, 36, 36), shards=(36, 72, 72), dimension_names=names, attributes=attributes
    )
    months = {"units": "days since 2024-01-01"}
    climate.create_array("time", data=month * 30, dimension_names=("time",), attributes=months)
    climate.create_array("lat", data=lat, dimension_names=("lat",), attributes={"units": "degrees_north"})
    climate.create_array("lon", data=lon, dimension_names=("lon",), attributes={"units": "degrees_east"})
    group.create_array("stations/height", data=np.arange(40.0))
    group.create_array("stations/name", data=np.array([f"station {number}" for number in range(40)], dtype="U"))


def page_picture(browser: Browser, group: tessarr.Group) -> bytes:
    """Show a map with a series on the page, and return the picture."""
    from tests.browser.conftest import serving

    server, url = serving(group.store, "climate.zarr")
    with server:
        page = browser.open("about:blank")
        page.call("Emulation.setDeviceMetricsOverride", width=WIDTH, height=HEIGHT, deviceScaleFactor=1, mobile=False)
        page.go(f"{url}#/climate/air?i0=6&at=55,50&map=inferno")
        page.wait("document.body.innerText.includes('Coast lines') && document.querySelector('.series canvas.plot')")
        page.wait("[...document.querySelectorAll('.row .name')].some((one) => one.textContent === 'height')")
        page.evaluate("new Promise((done) => setTimeout(done, 1000))")
        page.settled()
        return base64.b64decode(page.call("Page.captureScreenshot", format="png")["data"])


def notebook_picture(browser: Browser, group: tessarr.Group, folder: Path) -> bytes:
    """Show the descriptions of the group and of an array below each other, and return the picture."""
    cells = ((">>> group", group), ('>>> group["climate/air"]', group["climate/air"]))
    html = "".join(f"<pre>{code}</pre>{node._repr_html_()}" for code, node in cells)
    html = re.sub("memory://[0-9a-f]+", "memory://climate", html)  # a number of this process
    file = folder / "notebook.html"
    file.write_text(f"<!DOCTYPE html><meta charset=utf-8><body style='margin:12px'>{html}", encoding="utf-8")
    page = browser.open("about:blank")
    page.call("Emulation.setDeviceMetricsOverride", width=760, height=1200, deviceScaleFactor=1, mobile=False)
    page.go(file.as_uri())
    page.wait("document.querySelectorAll('.tsr-node').length === 2")
    height = (
        page.evaluate("Math.ceil([...document.querySelectorAll('.tsr-node')].at(-1).getBoundingClientRect().bottom)")
        + 12
    )
    clip = {"x": 0, "y": 0, "width": 760, "height": height, "scale": 1}
    shot = page.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
    return base64.b64decode(shot["data"])


def main() -> int:
    """Write the pictures into a directory."""
    import tessarr
    from tests.browser.chromium import Browser, find_chromium

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    directory: Path = parser.parse_args().directory
    program = find_chromium()
    if program is None:
        print("Chromium is needed (Debian: apt-get install chromium)", file=sys.stderr)
        return 1
    directory.mkdir(parents=True, exist_ok=True)
    group = tessarr.open_group(tessarr.storage.MemoryStore(), mode="w", attributes={"title": "Monthly means"})
    fill(group)
    group = tessarr.consolidate_metadata(group.store)
    with Browser(program) as browser, tempfile.TemporaryDirectory() as folder:
        (directory / "page.png").write_bytes(page_picture(browser, group))
        (directory / "notebook.png").write_bytes(notebook_picture(browser, group, Path(folder)))
    for name in ("page.png", "notebook.png"):
        print(f"{directory / name}: {(directory / name).stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
