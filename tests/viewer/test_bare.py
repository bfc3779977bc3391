"""The page opens from the package and what it requires alone: no other package, no program, no network."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tessarr

REQUIRED = ("numpy", "numcodecs", "google_crc32c", "typing_extensions")
PROGRAM = """
import sys, json, urllib.request
from urllib.parse import urljoin

def refuse(event, arguments):
    if event in ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system"):
        raise RuntimeError(f"a program was started: {arguments}")
    if event == "socket.connect" and arguments[1][0] not in ("127.0.0.1", "::1"):
        raise RuntimeError(f"another machine was asked: {arguments}")
    if event == "socket.getaddrinfo" and arguments[0] not in ("127.0.0.1", "::1", "localhost", None):
        raise RuntimeError(f"a name was looked up: {arguments}")

sys.addaudithook(refuse)
import tessarr
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
with tessarr.view(sys.argv[1]) as page:
    read = lambda name: opener.open(urljoin(page.url, name), timeout=60).read()
    files = {name: len(read(name)) for name in ("", "viewer.js", "viewer.css", "icon.svg", "place.json")}
    root = json.loads(read("place.json"))["root"]
    node = json.loads(read(root + "/?json"))
    names = [member["name"] for member in node["members"]]
    print(json.dumps({"files": files, "names": names, "raw": list(read(root + "/a.raw"))}))
foreign = {name.partition(".")[0] for name in sys.modules} & {"zarr", "starlette", "uvicorn", "IPython", "rich", "xarray"}
assert not foreign, foreign
"""


def test_the_page_opens_in_a_bare_environment_without_programs_and_network(tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    packages.mkdir()
    for name in REQUIRED:
        found = importlib.util.find_spec(name)
        if found is None or found.origin is None:
            assert name == "typing_extensions"
            continue
        origin = Path(found.origin)
        top = origin.parent if origin.name == "__init__.py" else origin
        for path in (top, *top.parent.glob(f"{name}.libs"), *top.parent.glob(f"{name}-*.dist-info")):
            (packages / path.name).symlink_to(path)
    (packages / "tessarr").symlink_to(Path(tessarr.__file__).parent)
    tessarr.open_group(tmp_path / "d.zarr", mode="w").create_array("a", data=np.arange(5, dtype="u1"))
    kept = {name: os.environ[name] for name in ("SYSTEMROOT", "TMPDIR", "TEMP") if name in os.environ}
    command = [sys.executable, "-S", "-P", "-c", PROGRAM, str(tmp_path / "d.zarr")]
    ran = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**kept, "PYTHONPATH": str(packages), "PATH": str(tmp_path), "PYTHONUTF8": "1", "HOME": str(tmp_path)},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert told["names"] == ["a"]
    assert told["raw"] == [0, 1, 2, 3, 4]
    assert all(nbytes > 10 for nbytes in told["files"].values())


@pytest.mark.skipif(os.name == "nt", reason="the program is a script of the shell there")
def test_a_program_would_be_noticed() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM.partition("import tessarr")[0] + "import subprocess; subprocess.run(['true'])"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "a program was started" in ran.stderr
