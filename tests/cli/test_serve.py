"""``tessarr serve``: the first line is the URL, and what is unsafe must be said."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import tessarr
from tessarr.cli.serving import name_of
from tests.waiting import PATIENCE_S

Run = Callable[..., Any]


def default_interrupts() -> None:
    """A shell may have started the tests with SIGINT ignored, which the processes they start would inherit."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def server(*arguments: object, **environment: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """A running server and its first lines: of the text, or of the JSON document."""
    import os

    command = [sys.executable, "-m", "tessarr", "serve", *map(str, arguments), "--port", "0"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SSH_")}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, preexec_fn=default_interrupts,
        env={**kept, **environment},
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            lines = [process.stdout.readline()]
            if lines[0] == "{\n":
                while lines[-1] != "}\n":
                    lines.append(process.stdout.readline())
            elif environment:
                lines.append(process.stdout.readline())
            yield process, lines
        finally:
            process.kill()


def read(url: str, **headers: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=PATIENCE_S) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def test_the_first_line_is_the_url_of_the_root(data: Path) -> None:
    with server(data) as (process, lines):
        url = lines[0].strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/t/[\w-]{22}/data\.zarr/", url)
        assert tessarr.open_group(url, mode="r")["temperature"][39, 59] == 2399  # type: ignore[index]
        assert read(f"{url}/temperature/zarr.json")[0] == 200
        assert read(url.replace("/t/", "/t/x"))[0] == 401
        assert read(f"{url}zarr.json", Host="evil.test")[0] == 421
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0


def test_json_and_the_way_through_ssh(data: Path) -> None:
    with server(data, "--json", SSH_CONNECTION="192.0.2.1 1234 192.0.2.9 22") as (process, lines):
        document = json.loads("".join(lines))
        assert document["url"].startswith(f"http://127.0.0.1:{document['port']}/t/")
        assert f"-L {document['port']}:127.0.0.1:{document['port']} " in document["ssh"]
        assert document["ssh"].endswith("@192.0.2.9")
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) in (0, 130)
    with server(data, SSH_CONNECTION="192.0.2.1 1234 192.0.2.9 22") as (_, lines):
        assert lines[0].startswith("http://")
        assert "ssh -N -L" in lines[1]


def test_a_public_server_needs_no_token_and_offers_cors(data: Path) -> None:
    options = ("--public", "--cors", "https://app.example", "--allowed-host", "data.example", "--as-stored")
    with server(data, *options, "--root-path", "/files/") as (_, lines):
        url = lines[0].strip()
        assert url.endswith("/files/data.zarr/")
        request = urllib.request.Request(
            f"{url}zarr.json", headers={"Origin": "https://app.example", "Host": "data.example"}
        )
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            assert answer.headers["Access-Control-Allow-Origin"] == "https://app.example"
            assert answer.read() == (data / "zarr.json").read_bytes()
        assert read(f"{url.replace('/files', '')}zarr.json")[0] == 200


def test_an_array_in_a_place_is_served_under_its_name(data: Path) -> None:
    with server(data, "below/table", "--token", "chosen-by-me") as (_, lines):
        assert lines[0].strip().endswith("/t/chosen-by-me/table/")
        assert read(f"{lines[0].strip()}zarr.json")[0] == 200


def test_other_machines_need_a_word(run: Run, data: Path) -> None:
    ran = run("serve", data, "--host", "0.0.0.0")
    assert ran.code == 2
    assert "--public" in ran.err
    assert "--token" in ran.err


def test_what_cannot_be_served_is_an_error(run: Run, data: Path, tmp_path: Path) -> None:
    assert run("serve", tmp_path / "nothing").code == 2
    assert run("serve", data, "no/such/node").code == 2
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ran = run("serve", data, "--port", taken.getsockname()[1], "--json")
        assert ran.code == 2
        assert "error" in ran.json


@pytest.mark.parametrize(
    ("place", "path", "expected"),
    [
        ("/data/air.zarr", "", "air.zarr"),
        ("/data/air.zarr/", "a/b", "b"),
        ("s3://bucket/air.zarr/", "", "air.zarr"),
        ("file:///a.zip|zip:", "", "a.zip"),
        ("/", "", "data.zarr"),
    ],
)
def test_the_name_in_the_url_is_that_of_the_node(place: str, path: str, expected: str) -> None:
    assert name_of(place, path) == expected
