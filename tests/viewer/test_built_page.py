"""The page in the package is what its sources make, small, and asks no other origin."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tessarr.viewer import page_files

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "src" / "tessarr" / "viewer"
SOURCES = ROOT / "viewer"
MANIFEST = json.loads((BUILT / "manifest.json").read_text(encoding="utf-8"))
NAMES = {
    f"http://www.w3.org/{name}"
    for name in ("2000/svg", "1999/xlink", "1999/xhtml", "1998/Math/MathML", "XML/1998/namespace")
}
"""Names of XML namespaces, which are no addresses."""
IN_TEXTS = {
    "https://reactjs.org/docs/error-decoder.html?invariant=",
    "https://docs.pmnd.rs/react-three-fiber/api/objects#using-3rd-party-objects-declaratively",
    "https://github.com/react-spring/react-use-measure/#resize-observer-polyfills",
    "https://jcgt.org/published/0007/04/01/",
    "http://fb.me/use-check-prop-types",
}
"""Addresses in texts of errors, and in a comment, of what H5Web is made of; nothing asks for them."""


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_page_was_built_from_the_present_sources() -> None:
    found = {path.relative_to(SOURCES).as_posix() for path in (SOURCES / "src").iterdir()}
    found |= {path.relative_to(SOURCES).as_posix() for path in (SOURCES / "licenses").iterdir()}
    found |= {"package.json", "package-lock.json", "tsconfig.json", "build.mjs", "compiled_licenses.txt"}
    assert {name: digest(SOURCES / name) for name in sorted(found)} == MANIFEST["sources"], "run `make viewer`"
    assert {name: digest(BUILT / name) for name in MANIFEST["files"]} == MANIFEST["files"], "run `make viewer`"
    assert set(page_files()) - set(MANIFEST["files"]) == {"icon.svg", "index.html", "viewer.css"}


def test_a_build_gives_the_same_bytes(tmp_path: Path) -> None:
    if not (SOURCES / "node_modules" / "esbuild").is_dir() or shutil.which("node") is None:
        pytest.skip("needs the packages of viewer/, which `make viewer` installs")
    shutil.copytree(SOURCES, tmp_path / "viewer", ignore=shutil.ignore_patterns("node_modules", "build"))
    (tmp_path / "viewer" / "node_modules").symlink_to(SOURCES / "node_modules")
    (tmp_path / "src" / "tessarr" / "viewer").mkdir(parents=True)
    subprocess.run(["node", "build.mjs"], cwd=tmp_path / "viewer", check=True)
    for name in (*MANIFEST["files"], "manifest.json"):
        assert (tmp_path / "src" / "tessarr" / "viewer" / name).read_bytes() == (BUILT / name).read_bytes()


def needed(files: dict[str, tuple[bytes, str]], waiting: set[str]) -> set[str]:
    """Return names of files, with those of the scripts that they import at once."""
    found: set[str] = set()
    while waiting:
        found |= waiting
        texts = [files[name][0].decode() for name in waiting]
        waiting = {name for text in texts for name in re.findall(r'(?:from|import)"\./([^"]+)"', text)} - found
    return found


def test_the_page_is_within_its_budgets() -> None:
    files = page_files()
    assert sum(len(data) for data, _ in files.values()) < 2_000_000
    first = needed(files, {"index.html", "viewer.css", "icon.svg", "viewer.js"})
    assert sum(len(files[name][0]) for name in first) < 600_000, "bytes to the first picture, as they are sent"
    (h5web,) = (name for name, (data, _) in files.items() if name.endswith(".js") and b" as drawFramed" in data)
    assert h5web not in first
    assert len(needed(files, {h5web})) < len({name for name in files if name.endswith(".js")})
    moving = first | needed(files, {h5web, "h5web.css"})  # H5Web draws planes, lines and points that are moved
    assert sum(len(gzip.compress(files[name][0])) for name in moving) < 600_000, "compressed, as pages are published"


def test_licences_of_what_is_bundled_are_listed() -> None:
    """Building writes the packages that the scripts have parts of into the manifest."""
    listed = page_files()["licenses.txt"][0].decode()
    locked = json.loads((SOURCES / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    assert {"@h5web/lib", "react", "three", "zarrita", "numcodecs", "fzstd", "world-atlas"} < set(MANIFEST["packages"])
    for name in MANIFEST["packages"]:
        package = locked[f"node_modules/{name}"]
        assert f"\n{name} {package['version']} ({package['license']})\n" in listed
    for name in ("c-blosc", "FastLZ", "bitshuffle", "LZ4", "zlib", "Zstandard"):  # compiled into numcodecs
        assert re.search(rf"^{name} \([A-Za-z0-9-]+\), ", listed, re.MULTILINE), name


def test_the_page_names_no_other_origin() -> None:
    texts = {name: data.decode() for name, (data, _) in page_files().items() if name != "licenses.txt"}
    links = [link for text in texts.values() for link in re.findall(r"https?://[^\s\"'`)]+", text)]
    assert set(links) <= NAMES | IN_TEXTS
    assert re.findall(r'(?:src|href)="([^"]*)"', texts["index.html"]) == ["icon.svg", "viewer.css", "viewer.js"]
    assert "innerHTML" not in texts["viewer.js"]


@pytest.mark.parametrize("path", sorted((SOURCES / "src").glob("*.ts*")), ids=lambda path: path.name)
def test_a_module_of_the_page_is_at_most_500_lines(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 500
