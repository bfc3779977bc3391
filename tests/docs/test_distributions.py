"""The source distribution builds, and what it builds works in an environment that holds nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import ROOT


def test_the_readme_runs_where_only_the_source_distribution_is_installed(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "build", "--no-isolation", "--sdist", "--outdir", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (made,) = tmp_path.glob("tessarr-*.tar.gz")
    # The crates that the development build has compiled already need no second time.
    variables = {**os.environ, "CARGO_TARGET_DIR": str(ROOT / "rust" / "target")}
    check = [sys.executable, str(ROOT / "scripts" / "distributions.py"), "check", str(made)]
    done = subprocess.run(check, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "README.md: " in done.stdout
