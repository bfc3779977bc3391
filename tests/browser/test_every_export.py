"""Every array of other writers on an exported page: decoded in the browser as the library decodes it, or an error in words."""

from __future__ import annotations

import functools
import http.server
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fixtures import Case, cases, open_case

from tessarr.errors import TessarrError
from tessarr.viewer.export import export
from tests.browser.chromium import Browser
from tests.browser.test_every_fixture import READY, look
from tests.browser.test_export import Files

CASES = [case for case in cases(Path(__file__).resolve().parents[1] / "fixtures") if not case.entry.get("inner")]


@pytest.fixture(scope="module")
def ends() -> Iterator[Counter[str]]:
    found: Counter[str] = Counter()
    yield found
    if found:
        print(f"\nexported pages: {dict(found)}")


@pytest.mark.filterwarnings("ignore")  # what the library says about odd documents is tested elsewhere
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_an_array_of_another_writer_is_decoded_in_the_browser_or_its_error_is_in_words(
    browser: Browser, case: Case, tmp_path: Path, ends: Counter[str]
) -> None:
    try:
        array = open_case(case)
        expected = np.asarray(array[tuple(length // 2 for length in array.shape)])
    except (TessarrError, ValueError, OSError, KeyError, TypeError, MemoryError, IndexError):
        pytest.skip("the library refuses the array, or it has no elements")
    place = case.source / case.entry["path"]
    if not place.is_dir():
        pytest.skip("an archive is not published as files")
    shutil.copytree(place, tmp_path / "data")
    try:
        export(tmp_path / "data", tmp_path / "page", url="../data")
    except TessarrError:
        pytest.skip("there is no node to describe: the library refuses the place")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Files, directory=str(tmp_path)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    page = browser.open(f"http://127.0.0.1:{server.server_port}/page/")
    try:
        page.wait(f"{READY} || document.querySelector('#node table.members')")
        page.evaluate("new Promise((done) => setTimeout(done, 300))")
        said = page.evaluate("document.querySelector('#node .error')?.textContent ?? ''")
        if said:
            assert len(said) > 10
            ends["an error in words"] += 1
        elif page.evaluate("document.querySelector('canvas.plot') !== null"):
            look(page, array, expected, missing="/data/")
            ends["drawn"] += 1
        else:
            ends["a table"] += 1
    finally:
        page.close()
        server.shutdown()
        thread.join()
        server.server_close()
