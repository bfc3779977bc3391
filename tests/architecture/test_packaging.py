"""What other tools must be able to make of our metadata."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_no_extra_reads_like_a_version() -> None:
    # Markers `extra == "v2"` are compared as versions by pip 24, which then refuses the wheel for any other extra.
    assert [name for name in PROJECT["optional-dependencies"] if re.match(r"v?[0-9]", name)] == []


def test_all_holds_every_extra_for_users() -> None:
    extras = PROJECT["optional-dependencies"]
    (everything,) = extras["all"]
    named = everything.removeprefix("tessarr[").removesuffix("]").split(",")
    large = {
        "fits",
        "grib",
    }  # readers of 70 and 180 MB for one format each, of which `make setup` would install every one
    assert sorted(named) == sorted(set(extras) - large - {"all", "apps", "peers", "test", "mutation", "docs", "dev"})


def test_no_package_but_ours_is_shipped() -> None:
    # A second distribution with a top-level package `zarr` would break environments that have zarr-python.
    source = Path(__file__).parents[2] / "src"
    packages = [path.name for path in source.iterdir() if (path / "__init__.py").exists() or path.suffix == ".py"]
    assert packages == ["tessarr"]
