"""``tessarr view``: the first line is the URL of the page, which serves the page and the data."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
import webbrowser
from pathlib import Path
from urllib.parse import urljoin

import pytest

from tessarr.cli.verbs import view
from tests.waiting import PATIENCE_S, until


def read(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
        content: bytes = answer.read()
        return content


def test_the_first_line_is_the_url_of_a_page_that_finds_the_data(data: Path) -> None:
    command = [sys.executable, "-m", "tessarr", "view", str(data), "--no-browser", "--port", "0"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SSH_")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=kept) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/t/[\w-]{22}/@view/", url)
            assert b'src="viewer.js"' in read(url)
            place = json.loads(read(f"{url}place.json"))
            assert place["name"] == "data.zarr"
            node = json.loads(read(urljoin(url, f"{place['root']}/?json")))
            assert "temperature" in {member["name"] for member in node["members"]}
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()


def test_a_browser_is_opened_beside_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    view._open("http://127.0.0.1:1/")
    until(lambda: opened == ["http://127.0.0.1:1/"], "the browser was asked")
