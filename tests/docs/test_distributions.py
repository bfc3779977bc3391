"""The source distribution has all that the extension is compiled from, and works in an environment that holds nothing else.

`make wheel` compiles it there. A minute of that would say no more here than that the files are those of the checkout, whose
extension `make setup` has compiled.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.docs.pages import ROOT


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    build = [sys.executable, "-m", "build", "--no-isolation", "--sdist", "--outdir", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (made,) = folder.glob("tessarr-*.tar.gz")
    return made


def test_the_readme_runs_where_only_the_source_distribution_is_installed(sdist: Path) -> None:
    check = [sys.executable, str(ROOT / "scripts" / "distributions.py"), "check", str(sdist)]
    done = subprocess.run(check, env={**os.environ, "TESSARR_NATIVE": "off"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "README.md: " in done.stdout


def test_it_has_all_that_the_extension_is_compiled_from(sdist: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as packed:
        packed.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    rust = ROOT / "rust"
    files = [ROOT / "setup.py", rust / "Cargo.toml", rust / "Cargo.lock", *(rust / "src").rglob("*.rs")]
    assert len(files) > 40
    for file in files:
        assert (unpacked / file.relative_to(ROOT)).read_bytes() == file.read_bytes()
