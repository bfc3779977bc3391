"""Threads are as many as the process may use."""

from __future__ import annotations

from pathlib import Path

import pytest

import tessarr
from tessarr.engine.processors import processors, quota


def groups(folder: Path, own: str, files: dict[str, str]) -> int:
    """`quota` where the system's files say this."""
    (folder / "own").write_text(own)
    for name, text in files.items():
        file = folder / "mount" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return quota(str(folder / "own"), str(folder / "mount"))


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"a/b/cpu.max": "200000 100000\n"}, 2),
        ({"a/b/cpu.max": "max 100000\n", "a/cpu.max": "350000 100000\n"}, 3),
        ({"a/b/cpu.max": "50000 100000\n"}, 1),
        ({"a/b/cpu.max": "800000 100000\n", "a/cpu.max": "100000 100000\n"}, 1),
        ({"a/b/cpu.max": "max 100000\n"}, 1 << 20),
        ({}, 1 << 20),
        ({"a/b/cpu.max": "nonsense"}, 1 << 20),
    ],
)
def test_a_control_group_and_those_around_it_bound_the_threads(
    tmp_path: Path, files: dict[str, str], expected: int
) -> None:
    assert groups(tmp_path, "0::/a/b\n", files) == expected


def test_control_groups_of_the_first_version_bound_them_too(tmp_path: Path) -> None:
    own = "7:blkio:/x\n4:cpu,cpuacct:/a\n0::/\n"
    files = {"cpu,cpuacct/a/cpu.cfs_quota_us": "300000\n", "cpu,cpuacct/a/cpu.cfs_period_us": "100000\n"}
    assert groups(tmp_path, own, files | {"blkio/x/cpu.max": "1 1"}) == 3
    files["cpu,cpuacct/a/cpu.cfs_quota_us"] = "-1\n"
    quota.cache_clear()
    assert groups(tmp_path, own, files) == 1 << 20


def test_the_setting_bounds_them_further() -> None:
    with tessarr.config.set({"threading.max_workers": 1}):
        assert processors() == 1
    assert processors() <= quota()
