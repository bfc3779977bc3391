"""Every array of other writers on an exported page: decoded in the browser as the library decodes it, or an error in words."""

from __future__ import annotations

import functools
import http.server
import shutil
import threading
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from fixtures import Case, cases, open_case

from tessarr.errors import TessarrError
from tessarr.viewer.export import export
from tests.browser.chromium import Browser
from tests.browser.test_every_fixture import READY, look
from tests.ranged_files import RangedFiles

DOCUMENTS = ("zarr.json", ".zgroup", ".zarray", "meta")
CASES = list(cases(Path(__file__).resolve().parents[1] / "fixtures"))


class Published:
    """Places, copied to a server of files with a page beside each; an archive is unpacked, as a server of files needs it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._copies: dict[Path, Path] = {}
        self._pages: dict[Path, str] = {}
        self._server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(RangedFiles, directory=str(folder))
        )
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def url_of(self, case: Case) -> str:
        """Return the URL at which a page shows an array; the page is that of the outermost group, or of the array."""
        place, inner = case.source / case.entry["path"], case.entry.get("inner") or ""
        if place not in self._copies:
            self._copies[place] = self._folder / str(len(self._copies))
            if place.is_dir():
                shutil.copytree(place, self._copies[place])
            else:
                with zipfile.ZipFile(place) as archive:
                    archive.extractall(self._copies[place])
        data = self._copies[place]
        folders = [data / "/".join(inner.split("/")[:count]) for count in range(inner.count("/") + 1)]
        root = next((one for one in folders if any((one / name).exists() for name in DOCUMENTS)), data / inner)
        if root not in self._pages:
            page = f"page{len(self._pages)}"
            export(root, self._folder / page, url=quote(f"../{root.relative_to(self._folder).as_posix()}"))
            self._pages[root] = f"http://127.0.0.1:{self._server.server_port}/{page}/"
        return f"{self._pages[root]}#/{quote((data / inner).as_posix()[len(root.as_posix()) + 1 :])}"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Published]:
    found = Published(tmp_path_factory.mktemp("published"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def ends() -> Iterator[Counter[str]]:
    found: Counter[str] = Counter()
    yield found
    print(f"\nexported pages: {dict(found)}")


@pytest.mark.filterwarnings("ignore")  # what the library says about odd documents is tested elsewhere
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_an_array_of_another_writer_is_decoded_in_the_browser_or_its_error_is_in_words(
    browser: Browser, case: Case, published: Published, ends: Counter[str]
) -> None:
    try:
        array = open_case(case)
        expected = np.asarray(array[tuple(length // 2 for length in array.shape)]) if 0 not in array.shape else None
    except (TessarrError, ValueError, OSError, KeyError, TypeError, MemoryError):
        array = expected = None
    page = browser.open(published.url_of(case))
    page.wait(READY)
    page.evaluate("new Promise((done) => setTimeout(done, 300))")
    said = page.evaluate("document.querySelector('#node .error')?.textContent ?? ''")
    if said:
        assert len(said) > 10
        assert "does not answer" not in said
        ends["an error in words"] += 1
    elif page.evaluate("document.querySelector('canvas.plot:not(.flat)') !== null"):
        assert array is not None, "the library refuses this array"
        look(page, array, expected, missing=r"/\d+/")
        ends["drawn"] += 1
    else:
        ends["a table"] += 1
    assert not [one for one in page.requests if ".raw?" in one or "?json" in one]
