"""neuroglancer's own client, from its Python package, draws an array that its reader cannot decode: by a view of the server."""

from __future__ import annotations

import threading
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

import tessarr
from tessarr.serve import CorsOptions, app, serve_background
from tessarr.storage import MemoryStore
from tests.browser.chromium import Browser
from tests.serve.client import Counting
from tests.waiting import PATIENCE_S

neuroglancer: Any = pytest.importorskip("neuroglancer", reason="neuroglancer is not installed (extra test)")

PLANE = (np.arange(64 * 96, dtype="f8").reshape(64, 96) * 7) % 251
SIZE = 6
"""Pixels of an element."""
SHADER = "void main() { emitRGB(vec3(toRaw(getDataValue()) / 255.0, 0.0, 1.0)); }"
"""Draw the value as red, and mark what is drawn of data by blue."""


def test_the_client_draws_every_element(browser: Browser) -> None:
    neuroglancer.set_server_bind_address("127.0.0.1")
    viewer = neuroglancer.Viewer()
    address = urlsplit(viewer.get_viewer_url())
    store = MemoryStore()
    tessarr.create_array(store, name="image", data=PLANE, chunks=(40, 50), dimension_names=("y", "x"))
    cors: CorsOptions = {"allow_origins": [f"{address.scheme}://{address.netloc}"]}
    application = app(store, token="secret", name="d.zarr", cors_options=cors)
    counting = Counting(application.served)
    done, shots = threading.Event(), []

    def keep(answer: Any) -> None:
        shots.append(answer.screenshot.image_pixels)
        done.set()

    with serve_background(counting, port=0) as server:
        url = f"http://127.0.0.1:{server.port}/t/secret/d.zarr/@for=neuroglancer/image/"
        with viewer.txn() as state:
            state.layers["image"] = neuroglancer.ImageLayer(source=f"zarr3://{url}", shader=SHADER)
            state.layout = "xy"
            state.position = [32, 48]
            state.cross_section_scale = 1 / SIZE
            state.show_axis_lines = state.show_default_annotations = False
        page = browser.open(viewer.get_viewer_url())
        try:
            viewer.async_screenshot(keep)
            assert done.wait(PATIENCE_S), page.problems
        finally:
            page.close()
    pixels = shots[0]
    rows, columns = np.nonzero((pixels[..., 1] == 0) & (pixels[..., 2] == 255))
    assert (int(np.ptp(rows)) + 1, int(np.ptp(columns)) + 1) == (96 * SIZE, 64 * SIZE)
    middle = SIZE // 2
    drawn = pixels[rows.min() + middle : rows.max() + 1 : SIZE, columns.min() + middle : columns.max() + 1 : SIZE, 0]
    np.testing.assert_array_equal(drawn, PLANE.T)  # it draws the first dimension from left to right
    chunks = [path for method, path, _ in counting.seen if method == "GET" and "/c/" in path]
    assert 1 <= len(chunks) == len(set(chunks))
    assert len(counting.seen) < 40
