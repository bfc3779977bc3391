"""The registry under threads: a name means what was registered last, and nothing is unknown while it is being looked for."""

from __future__ import annotations

import importlib
import importlib.metadata
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tessarr import registry
from tests.waiting import PATIENCE_S


def test_a_codec_registered_while_the_built_in_one_is_imported_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other:
        """Not the gzip of the specification."""

    monkeypatch.setitem(registry._TABLE["codec"], "gzip", "tessarr.codecs.bytes_to_bytes.gzip:GzipCodec")
    monkeypatch.setattr(registry, "_imported", {})
    original = importlib.import_module

    def register_meanwhile(name: str) -> Any:
        with ThreadPoolExecutor(1) as other:
            other.submit(registry.register, "codec", "gzip", Other).result()
        return original(name)

    monkeypatch.setattr(importlib, "import_module", register_meanwhile)
    found = registry.get("codec", "gzip")
    assert found is not None
    assert found.__name__ == "GzipCodec"  # asked for before
    assert registry.get("codec", "gzip") is Other


def test_what_a_package_offers_is_known_to_a_thread_that_asks_while_another_looks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    offered = importlib.metadata.EntryPoint(
        "offered.codec", "tessarr.codecs.bytes_to_bytes.gzip:GzipCodec", "tessarr.codec"
    )
    looking, go_on = threading.Event(), threading.Event()
    first: list[int] = []

    def slow(group: str) -> list[Any]:
        if not first:
            first.append(1)
            looking.set()
            assert go_on.wait(PATIENCE_S)
        return [offered]

    monkeypatch.setattr(importlib.metadata, "entry_points", slow)
    monkeypatch.setattr(registry, "_entry_points_read", set())
    monkeypatch.setitem(registry._TABLE, "codec", dict(registry._TABLE["codec"]))
    with ThreadPoolExecutor(1) as pool:
        one = pool.submit(registry.get, "codec", "offered.codec")
        try:
            assert looking.wait(PATIENCE_S)
            assert registry.get("codec", "offered.codec") is not None
        finally:
            go_on.set()
        assert one.result() is registry.get("codec", "gzip")


def test_a_codec_registered_before_the_first_lookup_stays_and_the_others_are_found() -> None:
    code = (
        "from concurrent.futures import ThreadPoolExecutor; from tessarr import registry\n"
        "class Other: pass\n"
        "registry.register('codec', 'gzip', Other)\n"
        "names = ['zstd', 'blosc', 'bytes', 'crc32c', 'transpose', 'gzip'] * 4\n"
        "with ThreadPoolExecutor(8) as pool:\n"
        "    print(sorted({found.__name__ for found in pool.map(lambda name: registry.get('codec', name), names)}))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "['BloscCodec', 'BytesCodec', 'Crc32cCodec', 'Other', 'TransposeCodec', 'ZstdCodec']\n"
