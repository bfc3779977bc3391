"""`print_debug_info` prints what a bug report needs."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

import pytest

import tessarr
from tessarr.common import extension
from tessarr.core import diagnostics


def test_print_debug_info_prints_the_versions_of_what_is_installed(capsys: pytest.CaptureFixture[str]) -> None:
    tessarr.print_debug_info()
    printed = capsys.readouterr().out.splitlines()
    assert printed[:3] == [
        f"platform: {platform.platform()}",
        f"python: {platform.python_version()}",
        f"tessarr: {tessarr.__version__}",
    ]
    assert [line for line in printed if line.startswith("**")] == [
        "**Required dependencies:**",
        "**Optional dependencies:**",
    ]
    for name in ("numpy", "numcodecs", "google-crc32c"):
        assert f"{name}: {version(name)}" in printed


def test_print_debug_info_leaves_out_what_is_not_installed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def installed(name: str) -> str:
        if name in {"xarray", "numcodecs"}:
            raise PackageNotFoundError(name)
        return f"1.2.{len(name)}"

    monkeypatch.setattr(diagnostics, "version", installed)
    tessarr.print_debug_info()
    printed = capsys.readouterr().out.splitlines()
    assert "numpy: 1.2.5" in printed
    assert "h5py: 1.2.4" in printed
    assert not [line for line in printed if line.startswith(("xarray", "numcodecs"))]


@pytest.mark.parametrize(("built", "said"), [(object(), "built"), (None, "not built")])
def test_print_debug_info_says_whether_the_native_engine_is_built(
    built: object, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extension, "module", lambda: built)
    tessarr.print_debug_info()
    assert f"native engine: {said}" in capsys.readouterr().out.splitlines()
