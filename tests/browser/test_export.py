"""A page without a server of tessarr: chunks are read from a server of files, and decoded in the browser."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator

import numpy as np
import pytest

import tessarr
from tessarr.codecs import BloscCodec, GzipCodec, ZstdCodec
from tessarr.viewer.export import export
from tests.browser.chromium import Browser
from tests.browser.looking import pixel, place_of, readout
from tests.ranged_files import RangedFiles

VALUES = (np.arange(60 * 80) % 251).reshape(60, 80)
KINDS = {
    "zstd": {"compressors": (ZstdCodec(),)},
    "gzip": {"compressors": (GzipCodec(),)},
    "blosc": {"compressors": (BloscCodec(cname="lz4", shuffle="shuffle"),)},
    "shards": {"shards": (40, 40)},
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("published")
    group = tessarr.open_group(folder / "data.zarr", mode="w")
    for name, options in KINDS.items():
        group.create_array(name, data=VALUES.astype("i2"), chunks=(20, 20), **options)  # type: ignore[arg-type]
    days = {"units": "days since 2000-01-01"}
    group.create_array("line", data=np.arange(50) / 7, chunks=(9,), dimension_names=("time",))
    group.create_array("time", data=np.arange(50), dimension_names=("time",), attributes=days)
    huge = group.create_array("huge", shape=(10**5, 10**5), chunks=(1000, 1000), dtype="u1", fill_value=9)
    huge[:1000, :1000] = 200
    v2 = tessarr.open_group(folder / "v2.zarr", mode="w", zarr_format=2)
    v2.create_array("zlib", data=VALUES.astype(">f4"), chunks=(20, 30), compressors=[{"id": "zlib", "level": 1}])
    export(folder / "data.zarr", folder / "page", url="../data.zarr", name="data.zarr")
    export(folder / "v2.zarr", folder / "page2", url="../v2.zarr", name="v2.zarr")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(RangedFiles, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("place", [*(f"page/#/{name}" for name in KINDS), "page2/#/zlib"])
def test_arrays_are_decoded_in_the_browser(browser: Browser, url: str, place: str) -> None:
    page = browser.open(f"{url}/{place}?map=gray&low=0&high=255")
    page.settled()
    pixels = page.screenshot()
    for x, y in [(0, 0), (79, 59), (33, 41)]:
        assert abs(pixel(page, pixels, x, y)[0] - int(VALUES[y, x])) <= 1
    page.hover(*place_of(page, 33, 41))
    readout(page, f"dim_0 41, dim_1 33: {VALUES[41, 33]}$")
    assert not [one for one in page.requests if ".raw" in one or "?json" in one]
    assert page.problems == []
    page.close()


def test_coordinates_are_decoded_and_large_planes_sampled(browser: Browser, url: str) -> None:
    page = browser.open(f"{url}/page/#/line?view=table")
    page.wait("document.querySelector('.table tbody')?.innerText.includes('2000-01-08')")
    page.go(f"{url}/page/#/huge")
    page.wait("document.querySelector('h2').textContent.includes('huge')")
    page.settled()
    page.hover(*place_of(page, 50, 50))
    readout(page, ": 200$")
    assert len([one for one in page.requests if "/huge/c/" in one]) < 4096
    page.close()
