"""What the tests need is installed as root or in CI; a person's system is never changed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "install_test_servers.sh"
PROGRAMS = ("bash", "cat", "chmod", "dirname", "mkdir", "rm", "tail", "tee")


@pytest.mark.short
@pytest.mark.parametrize("ci", ["", "1"])
def test_system_packages_are_installed_by_sudo_only_in_ci(tmp_path: Path, ci: str) -> None:
    programs, log = tmp_path / "bin", tmp_path / "sudo.log"
    programs.mkdir()
    for name in PROGRAMS:
        found = shutil.which(name)
        assert found is not None
        (programs / name).symlink_to(found)
    for name, line in (("id", "echo 1000"), ("apt-get", "exit 1"), ("sudo", f'echo "$@" >>{log}')):
        (programs / name).write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
        (programs / name).chmod(0o755)
    functions, _, _ = SCRIPT.read_text(encoding="utf-8").partition("\nfrom_debian & ")
    (tmp_path / "scripts").mkdir()
    copy = tmp_path / "scripts" / "install.sh"
    copy.write_text(f"{functions}\nfrom_debian || true\n", encoding="utf-8")
    environment = {"PATH": str(programs), "HOME": str(tmp_path), "PYTHON": "python3", **({"CI": ci} if ci else {})}
    subprocess.run(["bash", copy, "servers"], env=environment, cwd=tmp_path, check=True)
    if ci:
        asked = log.read_text(encoding="utf-8")
        assert "apt-get update" in asked
        assert "chromium" in asked
        return
    assert not log.exists()
    assert "needs root" in (tmp_path / "servers" / "missing.chromium").read_text(encoding="utf-8")
