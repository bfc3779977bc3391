"""Arrays are read although another package breaks the import of numcodecs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tessarr

_READ = """
import sys, warnings
warnings.simplefilter("ignore")
try:
    import numcodecs
except ValueError as error:
    print(error)
import tessarr
for name in ("text", "text-v2", "bytes", "zstd", "blosc", "gzip"):
    print(name, tessarr.open_array(f"{sys.argv[1]}/{name}", mode="r")[...].tolist())
tessarr.create_array(f"{sys.argv[1]}/new", shape=2, dtype="string")[...] = ["x", "y"]
import numcodecs
assert numcodecs.zlib.Zlib and numcodecs.blosc.compress
try:
    tessarr.registry.get_numcodec({"id": "zfpy"})
except tessarr.errors.UnknownCodecError as error:
    print(*str(error).split())
"""


def _run(code: str, packages: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `code` where `packages` come before what is installed."""
    path = os.pathsep.join([str(packages), str(Path(tessarr.__file__).parents[1])])
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_arrays_are_read_where_zfpy_breaks_numcodecs(tmp_path: Path, engine: str) -> None:
    texts = ["a", "bc", ""]
    for name, zarr_format in (("text", 3), ("text-v2", 2)):
        tessarr.create_array(tmp_path / name, shape=3, dtype="string", zarr_format=zarr_format)[...] = texts
    tessarr.create_array(tmp_path / "bytes", shape=3, dtype="bytes")[...] = np.array([b"a", b"", b"c"], object)
    for codec in ("zstd", "blosc", "gzip"):
        tessarr.create_array(tmp_path / codec, data=np.arange(3), compressors=codec)
    release = tmp_path / "packages" / "zfpy-1.0.1.post0.dist-info"
    release.mkdir(parents=True)
    (release / "METADATA").write_text("Metadata-Version: 2.1\nName: zfpy\nVersion: 1.0.1.post0\n")
    done = _run(_READ, release.parent, str(tmp_path), TESSARR_ENGINE=engine)
    assert done.returncode == 0, done.stderr
    broken, *values, fault = done.stdout.splitlines()
    assert "invalid literal for int()" in broken
    assert values == [
        "text ['a', 'bc', '']",
        "text-v2 ['a', 'bc', '']",
        "bytes [b'a', b'', b'c']",
        *(f"{codec} [0, 1, 2]" for codec in ("zstd", "blosc", "gzip")),
    ]
    assert "has no codec 'zfpy'" in fault
    assert "numcodecs.zfpy raises ValueError(" in fault
    report = _run("from tessarr.__main__ import main; main(['doctor'])", release.parent).stdout
    problems = [line for line in report.splitlines() if "PROBLEM" in line]
    assert len(problems) == 1, problems
    assert "the package zfpy 1.0.1.post0 breaks numcodecs.zfpy, which raises ValueError: invalid literal" in problems[0]


def test_a_package_that_cannot_be_imported_at_all_is_named(tmp_path: Path) -> None:
    package = tmp_path / "numcodecs"
    package.mkdir()
    (package / "__init__.py").write_text("from numcodecs import registry")
    (package / "registry.py").write_text("import numcodecs\n1 / 0")
    done = _run("import tessarr.common.numcodecs", tmp_path)
    assert "MissingDependencyError: numcodecs cannot be imported" in done.stderr
    assert "numcodecs.registry raises ZeroDivisionError" in done.stderr
